"""What the GPU and the host did, moment by moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding

from traceq.errors import TraceqError
from traceq.show.text import printable
from traceq.tui.access import Asked, ClosedError
from traceq.tui.moment import Moment
from traceq.tui.span import Span, fitted
from traceq.tui.tiles import COARSE, Tiles
from traceq.tui.view import View
from traceq.tui.widgets.gantt import Gantt
from traceq.tui.widgets.named import Named
from traceq.tui.work import background

if TYPE_CHECKING:
    from traceq.query import Value

MANY = 300_000  # items of a trace that is cut into tiles first
SHOWN_AT = 3
AROUND = 3  # a gap or kernel is shown with so much before and after it, in its own lengths


class Timeline(View):
    """Steps, streams, idle time and threads of one trace, to move in."""

    NAME, TITLE, NEEDS = "timeline", "Timeline", "run"
    HELP = (
        "Lanes: the steps; each GPU with its streams and why it was idle; each thread with its operators by depth and "
        "its CUDA calls. A cell shows what fills most of it: the letter says what (the line below the lanes explains "
        "those in sight), a capital if half of the cell or more is filled, and the ground is the stronger the fuller "
        "it is. Something that is alone in several cells has its name there. The cursor names what is under it. "
        "Arrows move the cursor, h and l the picture; the wheel zooms, dragging pans, a click moves the cursor."
    )
    BINDINGS = [
        Binding("0", "all", "All"),
        Binding("n", "jump('next_gap')", "Gap", key_display="n N"),
        Binding("N", "jump('previous_gap')", "Gap before", show=False),
        Binding("s", "jump('next_step')", "Step", key_display="s S"),
        Binding("S", "jump('previous_step')", "Step before", show=False),
        Binding("k", "longest", "Longest kernel"),
        Binding("enter", "fit", "Fit"),
        Binding("right_square_bracket", "rank(1)", "Next rank", show=False),
        Binding("left_square_bracket", "rank(-1)", "Rank before", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rank: int | None = None
        self._ranks = 1
        self._reach_ns: int | None = None
        self._tiles: Tiles | None = None
        self._lanes_for: tuple[object, int | None] = (None, None)
        self._turn = asyncio.Lock()

    @property
    def crumb(self) -> str:
        """With the rank, if there are several."""
        return self.TITLE if self._rank is None else f"{self.TITLE}, rank {self._rank}"

    def body(self) -> ComposeResult:
        """The lanes, and what is under the cursor."""
        yield Gantt(id="lanes", empty="nothing with a length was recorded: no GPU work, no operators, no CUDA calls")
        yield Named("Under the cursor", id="named", empty="nothing here")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There are no rows to filter."""
        return action != "filter"

    def refreshed(self) -> None:
        """A moment that another screen wants to be shown is shown even if nothing else changed."""
        super().refreshed()
        if self.app.moment and self.is_current and self._shown_for == self.app.context:
            self.load()

    def load(self) -> None:
        """Show what was asked for, else the first good step, else everything."""
        moment, self.app.moment = self.app.moment or Moment(), None
        if self._lanes_for[0] != self.app.context or moment.rank is not None:
            self._rank = moment.rank
        background(self, partial(self._begin, moment), "cells")
        self.query_one("#lanes").focus()

    async def _begin(self, moment: Moment) -> None:
        await self.outcome(self._begun(moment), self.query_one(Gantt))
        self._tell_crumbs()

    async def _begun(self, moment: Moment) -> None:
        gantt = self.query_one(Gantt)
        if self._lanes_for != (self.app.context, self._rank):
            await self._read_lanes()
        if gantt.lanes:
            span, start_ns, dur_ns = await self._span_of(moment)
            gantt.wanted = span.within(gantt.duration_ns)
            kind = "idle" if moment.stream is None else f"stream {moment.stream}"
            lane = None if moment.device is None else f"GPU {moment.device} {kind}"
            gantt.put_cursor(start_ns, dur_ns, kind.split()[0] if lane else None, lane)
            await self._show(gantt.wanted)
            self._begin_to_cut()

    async def _read_lanes(self) -> None:
        gantt = self.query_one(Gantt)
        found = await self.app.access.answer(Asked("timeline_lanes", self._whose), limit=None)
        lanes = rows_of(found)
        if lanes and self._rank is None:
            self._rank = lanes[0]["rank"]
        gantt.set_lanes(lanes)
        self._lanes_for = (self.app.context, self._rank)
        if self._tiles:
            self._tiles.close()
        self._tiles, self._reach_ns = None, None
        if sum(row["items"] for row in lanes) > MANY:
            lengths = [row["longest_ns"] for row in lanes if row["kind"] not in ("steps", "ranges")]
            self._reach_ns = max(lengths, default=None)
            self._tiles = Tiles(self.app.access, self.app.run_label, self._rank, gantt.duration_ns)

    def _begin_to_cut(self) -> None:
        """Make the tiles, once: after the first picture, which seldom needs them."""
        if self._tiles and not self._tiles.is_begun:
            self._tiles.is_begun = True
            background(self, partial(self._cut, self._tiles), "tiles")

    async def _cut(self, tiles: Tiles) -> None:
        with contextlib.suppress(ClosedError, TraceqError):  # cells are read from the store itself, then
            await tiles.make()

    async def _span_of(self, moment: Moment) -> tuple[Span, int, int]:
        """What to show for a moment, and the start and length of what the cursor stands on."""
        cells = self.query_one(Gantt).cells
        if moment.start_ns is not None and moment.dur_ns is not None:
            around_ns = max(moment.dur_ns, 1) * AROUND
            return (
                fitted(moment.start_ns - around_ns, moment.dur_ns + 2 * around_ns, cells),
                moment.start_ns,
                moment.dur_ns,
            )
        place = await self._place("step", step=moment.step) or await self._place("all")
        return fitted(place["start_ns"], place["dur_ns"], cells), place["start_ns"], place["dur_ns"]

    async def _place(self, place: str, **params: Any) -> dict[str, Any]:
        found = await self.app.access.answer(Asked("timeline_places", {**self._whose, "place": place, **params}))
        row = next(iter(rows_of(found)), {})
        self._ranks = row.get("ranks", self._ranks)
        return row

    @property
    def _whose(self) -> dict[str, Any]:
        return {"run": self.app.run_label, **({} if self._rank is None else {"rank": self._rank})}

    @property
    def _reach(self) -> dict[str, Any]:
        return {} if self._reach_ns is None else {"reach_ns": self._reach_ns}

    @on(Gantt.Wanted)
    def _wanted(self, event: Gantt.Wanted) -> None:
        background(self, partial(self._go, event.span), "cells")

    async def _go(self, span: Span) -> None:
        await self.outcome(self._show(span), self.query_one(Gantt))

    async def _show(self, span: Span) -> None:
        """Ask for the cells of a span; where they are longer than a tile, the tiles answer."""
        gantt, tiles = self.query_one(Gantt), self._tiles
        is_coarse = tiles is not None and span.cell_ns >= tiles.tile_ns
        if tiles and is_coarse:
            if span.cell_ns >= COARSE * tiles.tile_ns:  # less than that is read from the store while tiles are made
                self._begin_to_cut()
                await tiles.is_settled.wait()
            is_coarse = tiles.is_made
            span = span.aligned(tiles.unit(span.cell_ns)) if is_coarse else span
        gantt.wanted = span
        reach = {} if is_coarse else self._reach
        params = {"start_ns": span.start_ns, "cell_ns": span.cell_ns, "cells": span.cells}
        asked = Asked("timeline_cells", {**self._whose, **params, **reach})
        if tiles and is_coarse:
            result = await tiles.answer(asked)
        else:
            result = await self.app.access.answer(asked, limit=None)
        gantt.asked = asked
        gantt.show(result)
        self._tell_command()

    @on(Gantt.Moved)
    def _name_what_is_here(self) -> None:
        """Ask what is under the cursor."""
        if asked := self._under_cursor():
            self.put(self.query_one(Named), asked)

    def _under_cursor(self) -> Asked | None:
        gantt = self.query_one(Gantt)
        if (place := gantt.place) is None:
            return None
        where: dict[str, Value] = {"kind": place["kind"], "lane": place["lane"], "depth": place["depth"]}
        cell: dict[str, Value] = {
            "start_ns": gantt.span.at(gantt.cursor),
            "dur_ns": gantt.span.cell_ns,
            "top": SHOWN_AT,
        }
        return Asked("timeline_at", {**self._whose, **where, **cell, **self._reach})

    # Keys

    def action_all(self) -> None:
        """The whole trace, though a jump be under way."""
        self.workers.cancel_group(self, "jump")
        gantt = self.query_one(Gantt)
        if gantt.lanes:
            at_ns = gantt.at_ns
            gantt.want(fitted(0, gantt.duration_ns, gantt.cells))
            gantt.put_cursor(at_ns, 0)

    def action_jump(self, place: str) -> None:
        """The next gap or step, or the one before; a gap that is shorter than a cell is passed over."""
        self._in_turn(partial(self._jump, place))

    def action_longest(self) -> None:
        """The longest kernel in sight."""
        self._in_turn(partial(self._jump, "longest_kernel"))

    def action_fit(self) -> None:
        """What is under the cursor, as large as it can be with something around it."""
        self._in_turn(self._fit)

    def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Keys in haste: each begins where the one before it arrives."""

        async def whole() -> None:
            async with self._turn:
                await work()

        if self.query_one(Gantt).lanes:
            self.run_worker(cast(Any, whole), group="jump")  # as `background` does, but none ends another

    async def _jump(self, place: str) -> None:
        gantt = self.query_one(Gantt)
        params: dict[str, Any] = {"at_ns": gantt.at_ns}
        if "gap" in place:
            params["least_ns"] = gantt.wanted.cell_ns
        elif place == "longest_kernel":
            params = {"at_ns": gantt.wanted.start_ns, "end_ns": gantt.wanted.end_ns, **self._reach}
        found = await self.outcome(self._place(place, **params), gantt)
        if found is None:
            return
        if not found:
            what = place.replace("_", " ")
            self.notify(f"no {what}{' of a cell or more' if 'gap' in place else ''}", timeout=2, markup=False)
            return
        if "step" in place:
            gantt.want(fitted(found["start_ns"], found["dur_ns"], gantt.cells))
            gantt.put_cursor(found["start_ns"], found["dur_ns"])
        else:
            gantt.want(gantt.wanted.centred(found["start_ns"] + found["dur_ns"] // 2))
            gantt.put_cursor(found["start_ns"], found["dur_ns"], found["kind"], found["lane"])

    async def _fit(self) -> None:
        gantt = self.query_one(Gantt)
        if (asked := self._under_cursor()) is None:
            return
        found = await self.outcome(self.app.access.answer(asked), gantt)
        if found and found.rows:
            row = rows_of(found)[0]
            gantt.want(fitted(row["start_ns"] - row["dur_ns"] // 4, row["dur_ns"] + row["dur_ns"] // 2, gantt.cells))
            gantt.put_cursor(row["start_ns"], row["dur_ns"])

    def action_rank(self, by: int) -> None:
        """Another rank of the run."""
        if self._rank is not None and 0 <= self._rank + by < self._ranks:
            self._rank += by
            self.notify(f"{printable(str(self.app.run_label))}, rank {self._rank}", timeout=2, markup=False)
            background(self, partial(self._begin, Moment()), "cells")

    def on_unmount(self) -> None:
        """The tiles are nobody's now."""
        if self._tiles:
            self._tiles.close()


def rows_of(result: Any) -> list[dict[str, Any]]:
    """Rows by the names of their columns."""
    return [dict(zip((c.name for c in result.columns), row, strict=True)) for row in result.rows]
