"""Lanes over time: a cell shows what fills most of it, as a letter on a ground the stronger the more is filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.color import Color
from textual.message import Message
from textual.strip import Strip

from traceq.show.palette import sign
from traceq.show.text import printable, short_name
from traceq.tui.colours import shade
from traceq.tui.span import Span
from traceq.tui.widgets.answer import Answer, fit
from traceq.units import show_ns

if TYPE_CHECKING:
    from traceq.query import Result

HALF_PCT = 50.0
LEVELS = 8
FAINTEST = 0.22  # of the colour in a cell of which next to nothing is filled
LEAST_NAME = 3  # cells that an item must fill for its name to stand in it
TICK = 14  # cells from one time to the next
LABEL_SHARE = 5
MOST_LABEL_SHARE = 3
WIDEST_LABEL = 28
NARROWEST_LABEL = 20  # a thread's number and what the lane has of it
AROUND = 2  # lines that are not lanes: times above, letters below
Lane = tuple[str, str, int]
Cells = Mapping[Lane, Mapping[int, list[dict[str, Any]]]]


class Gantt(Answer):
    """The rows of `timeline_cells` on the lanes of `timeline_lanes`.

    It posts `Wanted` when another span is to be shown, and `Moved` when the cursor stands on another cell; the screen
    asks and calls `show`. Until then what is here of that span is drawn, stretched.
    """

    DEFAULT_CSS = """
    Gantt { height: 1fr; min-height: 6; }
    """
    BINDINGS = [
        Binding("left", "move(-1)", "Earlier", show=False),
        Binding("right", "move(1)", "Later", show=False),
        Binding("up", "lane(-1)", "Lane above", show=False),
        Binding("down", "lane(1)", "Lane below", show=False),
        Binding("pageup", "lane_page(-1)", "Lanes above", show=False),
        Binding("pagedown", "lane_page(1)", "Lanes below", show=False),
        Binding("h", "pan(-1)", "Pan", key_display="h l"),
        Binding("l,shift+right", "pan(1)", "Pan later", show=False),
        Binding("shift+left", "pan(-1)", "Pan earlier", show=False),
        Binding("home", "edge(0)", "Start of the trace", show=False),
        Binding("end", "edge(1)", "End of the trace", show=False),
        Binding("plus", "zoom(2)", "Zoom", key_display="+ -"),
        Binding("equals_sign", "zoom(2)", "Zoom in", show=False),
        Binding("minus,underscore", "zoom(-2)", "Zoom out", show=False),
    ]

    class Wanted(Message):
        """Another span is to be shown."""

        def __init__(self, span: Span) -> None:
            super().__init__()
            self.span = span

    class Moved(Message):
        """The cursor stands on another cell or lane."""

    def __init__(self, title: str = "", id: str | None = None, empty: str = "") -> None:
        super().__init__(title, id, empty)
        self.lanes: list[dict[str, Any]] = []
        self._is_known = False  # whether there are lanes
        self.span = Span(0, 1, 1)  # what is drawn
        self.wanted = self.span  # what was asked for last
        self.duration_ns = 0
        self.cursor = 0  # a cell
        self.lane = 0
        self._cells: Cells = {}  # as drawn
        self._answer: tuple[Span, Cells] = (self.span, {})  # as answered last
        self._top = 0
        self._anchor_ns: int | None = None  # where a jump went; None once that is out of sight or the cursor was moved
        self._grip: int | None = None  # the cell that the mouse holds

    # What it shows

    @property
    def cells(self) -> int:
        """How many cells there is room for."""
        return max(self.content_size.width - self._label - 1, 1)

    def set_lanes(self, rows: Sequence[dict[str, Any]]) -> None:
        """Draw these lanes from now on; the cursor goes to the first that has GPU work, else to the first."""
        self.lanes, self._is_known = list(rows), True
        self.duration_ns = rows[0]["duration_ns"] if rows else 0
        kinds = [row["kind"] for row in rows]
        self.lane = kinds.index("stream") if "stream" in kinds else 0
        self._top, self._cells, self.result, self.rows = 0, {}, None, []
        self._answer = (self.span, {})
        self.refresh()

    def forget(self) -> None:
        """Draw nothing until the next lanes."""
        super().forget()
        self.set_lanes([])
        self._is_known = False
        self.border_subtitle = ""

    def show(self, result: Result) -> None:
        """Draw these cells from now on."""
        super().show(result)
        start_ns, cell_ns, cells = (int(str(result.params[name])) for name in ("start_ns", "cell_ns", "cells"))
        self.span = Span(start_ns, cell_ns, cells)
        found: dict[Lane, dict[int, list[dict[str, Any]]]] = {}
        for row in self.rows:
            lane = found.setdefault((row["kind"], row["lane"], row["depth"]), {})
            lane.setdefault(row["cell"], []).append(row)
        self._cells, self._answer = found, (self.span, found)
        self.cursor = min(self.cursor, cells - 1)
        self._tell_span()
        self._follow()
        self.post_message(self.Moved())

    @property
    def place(self) -> dict[str, Any] | None:
        """The lane under the cursor."""
        return self.lanes[self.lane] if self.lane < len(self.lanes) else None

    @property
    def at_ns(self) -> int:
        """The moment under the cursor."""
        return self.wanted.at(self.cursor) if self._anchor_ns is None else self._anchor_ns

    def put_cursor(self, start_ns: int, dur_ns: int, kind: str | None = None, lane: str | None = None) -> None:
        """Move the cursor to the middle of something in the span that is wanted, and to a lane if one is named."""
        self._anchor_ns = start_ns
        self.cursor = max(0, min(self.wanted.cell_of(start_ns + dur_ns // 2), self.wanted.cells - 1))
        for number, row in enumerate(self.lanes):
            if row["kind"] == kind and lane in (None, row["lane"]):
                self.lane = number
                break
        self._follow()

    def copied(self) -> str:
        """The lanes as drawn."""
        return "\n".join(self.render_line(y).text.rstrip() for y in range(self.content_size.height))

    # Moving

    def want(self, span: Span) -> None:
        """Ask for another span."""
        self.wanted = span.within(self.duration_ns)
        if self._anchor_ns is not None and not 0 <= self.wanted.cell_of(self._anchor_ns) < self.wanted.cells:
            self._anchor_ns = None
        self._stretch()
        self.post_message(self.Wanted(self.wanted))

    def _stretch(self) -> None:
        """Draw at once what was answered last: each cell of the span that is wanted as the one its middle lies in."""
        answered, cells = self._answer
        self.span = self.wanted
        middles = [self.span.at(cell) + self.span.cell_ns // 2 for cell in range(self.span.cells)]
        places = list(enumerate(map(answered.cell_of, middles)))
        self._cells = {lane: {new: rows[old] for new, old in places if old in rows} for lane, rows in cells.items()}
        self.cursor = min(self.cursor, self.span.cells - 1)
        self._tell_span("… ")
        self.refresh()

    def _tell_span(self, sign: str = "") -> None:
        dur_ns, cell_ns = show_ns(self.span.dur_ns), show_ns(self.span.cell_ns)
        told = f"{sign}{show_ns(self.span.start_ns)} + {dur_ns}, a cell is {cell_ns}"
        self.border_subtitle = Text(told, no_wrap=True)

    def action_move(self, by: int) -> None:
        """Move the cursor; at an edge everything moves."""
        self._anchor_ns = None
        if 0 <= self.cursor + by < self.span.cells:
            self.cursor += by
            self._follow()
            self.post_message(self.Moved())
        else:
            self.want(self.wanted.panned(by))

    def action_lane(self, by: int) -> None:
        """Move the cursor to another lane."""
        self.lane = max(0, min(self.lane + by, len(self.lanes) - 1))
        self._follow()
        self.post_message(self.Moved())

    def action_lane_page(self, by: int) -> None:
        """Move the cursor by as many lanes as are in sight."""
        self.action_lane(by * self._tall)

    def action_pan(self, by: int) -> None:
        """Show a quarter earlier or later."""
        self._anchor_ns = None
        self.want(self.wanted.panned(by * max(self.wanted.cells // 4, 1)))

    def action_edge(self, is_end: int) -> None:
        """Show the start or the end of the trace."""
        self._anchor_ns = None
        self.cursor = self.span.cells - 1 if is_end else 0
        self.want(self.wanted.panned(self.wanted.cell_of(self.duration_ns) if is_end else self.wanted.cell_of(0)))

    def action_zoom(self, by: int) -> None:
        """Cells half as long or twice as long; what is under the cursor stays there."""
        self._zoom(by, self.cursor)

    def _zoom(self, by: int, cell: int) -> None:
        now = self.wanted.cell_ns
        cell_ns = max(now // by, 1) if by > 0 else now * -by
        if cell_ns != now:
            self.want(self.wanted.resized(cell_ns, cell))

    def _follow(self) -> None:
        """Keep the lane of the cursor in sight."""
        if self.lane < self._top:
            self._top = self.lane
        elif self.lane >= self._top + self._tall:
            self._top = self.lane - self._tall + 1
        self.refresh()

    @property
    def _tall(self) -> int:
        return max(self.content_size.height - AROUND, 1)

    def on_resize(self) -> None:
        """There is room for more or fewer cells."""
        self._follow()
        if self.lanes and self.cells != self.wanted.cells and self.result:
            self.want(self.wanted.widened(self.cells))

    # The mouse

    def _cell_at(self, event: events.MouseEvent) -> int | None:
        place = event.get_content_offset(self)
        return None if place is None or place.x <= self._label else place.x - self._label - 1

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel zooms around where the mouse is."""
        self._wheel(event, 2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel zooms around where the mouse is."""
        self._wheel(event, -2)

    def _wheel(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        if (cell := self._cell_at(event)) is not None:
            self._zoom(by, cell)
        else:
            self.action_lane(-by // 2)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of a cell, and put the cursor there."""
        cell, place = self._cell_at(event), event.get_content_offset(self)
        if cell is None or place is None:
            return
        self._grip, self._anchor_ns = cell, None
        self.capture_mouse()
        self.cursor = min(cell, self.span.cells - 1)
        if 0 < place.y < self.content_size.height - 1 and self._top + place.y - 1 < len(self.lanes):
            self.lane = self._top + place.y - 1
        self._follow()
        self.post_message(self.Moved())

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """What is held moves along."""
        if self._grip is not None and (cell := self._cell_at(event)) is not None and cell != self._grip:
            by, self._grip = self._grip - cell, cell
            self.cursor = max(0, min(cell, self.span.cells - 1))
            self.want(self.wanted.panned(by))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self._grip = None
        self.release_mouse()

    # Drawing

    @property
    def _label(self) -> int:
        width = self.content_size.width
        return min(max(width // LABEL_SHARE, NARROWEST_LABEL), WIDEST_LABEL, width // MOST_LABEL_SHARE)

    def render_line(self, y: int) -> Strip:
        """Times, a lane, or what the letters mean."""
        width, height = self.content_size
        base = self.rich_style
        if self.error or not self.lanes:
            text = printable(self.error) if self.error else self._empty if self._is_known else "…"
            wrapped = Text(text, style="dim").wrap(self.app.console, max(width, 1))
            return Strip([Segment(fit(wrapped[y].plain if y < len(wrapped) else "", width), base)], width)
        if y == 0:
            parts = self._times(base)
        elif y == height - 1:
            parts = self._legend(base)
        else:
            number = self._top + y - 1
            parts = self._lane_line(number, base) if number < len(self.lanes) else []
        return Strip(parts).adjust_cell_length(width, base)

    def _times(self, base: Style) -> list[Segment]:
        line = [" "] * self.span.cells
        for tick in range(0, self.span.cells, TICK):
            label = f"│{'+' if tick else ''}{show_ns(tick * self.span.cell_ns if tick else self.span.start_ns)}"
            if tick + len(label) <= self.span.cells:
                line[tick : tick + len(label)] = label
        dim = base + Style(dim=True)
        before, after = "".join(line[: self.cursor]), "".join(line[self.cursor + 1 :])
        more = f"{self._top + 1}–{min(self._top + self._tall, len(self.lanes))} of {len(self.lanes)} ↕"
        label = fit(more if len(self.lanes) > self._tall else "", self._label)
        return [Segment(label + " ", dim), Segment(before, dim), Segment("▼", base + Style(bold=True)),
                Segment(after, dim)]  # fmt: skip

    def _legend(self, base: Style) -> list[Segment]:
        place = self.place
        assert place
        kind = place["kind"]
        firsts = (rows[0] for (own, _, _), cells in self._cells.items() if own == kind for rows in cells.values())
        room, parts = self.span.cells, [Segment(fit(kind, self._label) + " ", base + Style(dim=True))]
        for word, _ in Counter(row["what"] for row in firsts).most_common():
            shown = f" {printable(word)}  "
            room -= 1 + cell_len(shown)
            if room < 0:
                break
            parts.append(Segment(sign(kind, word).upper(), self._style(word, LEVELS) + Style(bold=True)))
            parts.append(Segment(shown, base))
        return parts

    def _lane_line(self, number: int, base: Style) -> list[Segment]:
        row = self.lanes[number]
        is_here = number == self.lane
        style = base + Style(bold=is_here, dim=not is_here)
        parts = [Segment(self._lane_name(number) + ("▸" if is_here else " "), style)]
        lane: Lane = (row["kind"], row["lane"], row["depth"])
        glyphs = [(" ", base)] * self.span.cells
        for cell, glyph, ground in self._drawn(row["kind"], self._cells.get(lane, {})):
            glyphs[cell] = (glyph, ground)
        if is_here and self.cursor < len(glyphs):
            glyph, ground = glyphs[self.cursor]
            glyphs[self.cursor] = (glyph, ground + Style(reverse=True, bold=True))
        for ground, same in groupby(glyphs, key=lambda pair: pair[1]):
            parts.append(Segment("".join(glyph for glyph, _ in same), ground))
        return parts

    def _drawn(self, kind: str, cells: Mapping[int, list[dict[str, Any]]]) -> Iterator[tuple[int, str, Style]]:
        """Cell, what stands there and its style; an item that is alone in several cells has its name there."""
        names = self._names(kind, cells)
        for cell, rows in cells.items():
            first = rows[0]
            letter = sign(kind, first["what"])
            is_full = first["covered_pct"] >= HALF_PCT
            glyph = names.get(cell) or (letter.upper() if is_full else letter)
            level = min(int(first["covered_pct"] / 100 * LEVELS), LEVELS)
            yield cell, glyph, self._style(first["what"], level)

    def _names(self, kind: str, cells: Mapping[int, list[dict[str, Any]]]) -> dict[int, str]:
        found: dict[int, str] = {}
        alone = [
            (cell, rows[0]) for cell, rows in sorted(cells.items()) if len(rows) == 1 and rows[0]["item"] is not None
        ]
        for _, same in groupby(enumerate(alone), key=lambda pair: (pair[1][1]["item"], pair[1][0] - pair[0])):
            run = [pair[1] for pair in same]
            if len(run) < LEAST_NAME:
                continue
            first, room = run[0][1], len(run) - 2
            letter = sign(kind, first["what"]).upper()
            name = short_name(printable(first["name"] or ""), room) if room >= LEAST_NAME else ""
            text = f"{letter} {name}".rstrip().ljust(len(run), "─")
            if cell_len(text) != len(run):  # a letter that takes two cells, or a name that cannot be shortened
                text = letter.ljust(len(run), "─")
            found.update(zip((cell for cell, _ in run), text, strict=True))
        return found

    def _lane_name(self, number: int) -> str:
        """A lane's label: the first of several of one thread has its name, each says its kind and depth."""
        row = self.lanes[number]
        if row["kind"] in ("steps", "stream", "idle"):
            return fit(row["lane"], self._label)
        kind = f" {row['kind']}" + (f" {row['depth']}" if row["kind"] != "calls" else "")
        is_first = number in (0, self._top) or self.lanes[number - 1]["lane"] != row["lane"]
        return fit(row["lane"] if is_first else "", self._label - len(kind)) + kind

    def _style(self, what: str, level: int) -> Style:
        _, ground = self.background_colors
        return cell_style(what, level, self.app.current_theme.dark, ground.hex6)


@lru_cache(maxsize=4096)
def cell_style(what: str, level: int, is_dark: bool, ground: str) -> Style:
    """A ground the nearer to the colour of `what` the more of a cell is filled, and a letter that stands out on it."""
    colour = Color.parse(shade(what, is_dark))
    filled = Color.parse(ground).blend(colour, FAINTEST + (1 - FAINTEST) * level / LEVELS)
    return Style(color="#000000" if filled.brightness > 0.5 else "#ffffff", bgcolor=filled.hex6)
