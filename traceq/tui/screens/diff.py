"""Two runs compared, as `traceq diff` compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from traceq.show.text import printable
from traceq.tui.access import Given
from traceq.tui.view import View
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.measures import Measures
from traceq.tui.widgets.waterfall import Waterfall
from traceq.tui.work import background

if TYPE_CHECKING:
    import duckdb

    from traceq.analysis.diff import Diff as Found
    from traceq.query import Result

SIGNS = {"faster": "▼", "slower": "▲", "same": "=", "unknown": "?"}
CLOCKS = {
    "profiled": ("a_ns", "b_ns", "delta_ns"),
    "un-profiled": ("a_estimate_ns", "b_estimate_ns", "delta_estimate_ns"),
}
WHERE = {
    "profiled": "Where the time of a step goes, under the profiler",
    "un-profiled": "Where the time of the un-profiled step goes, an estimate",
}


class Diff(View):
    """What changed from one run to another, where it comes from, and whether it is real."""

    NAME, TITLE, NEEDS = "diff", "Diff", "pair"
    HELP = (
        "Two runs compared: those marked with space on the screen of runs, else the run in view and another mode of "
        "the same script (NAME/…), eager first, else its neighbour in the list; x swaps them. The sentence says "
        "whether it is faster; the waterfall leads from a step of the first to a step of the second; below it what "
        "was fused into what, and every kernel as it was matched: added and removed are the unmatched rest. u changes "
        "between the profiled and the un-profiled step."
    )
    BINDINGS = [Binding("u", "clock", "Clock"), Binding("x", "swap", "Swap")]
    CSS = """
    Diff #said { height: auto; padding: 0 1; }
    Diff Grid { height: 12; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._clock = "profiled"
        self._has_estimate = False

    @property
    def crumb(self) -> str:
        """The pair."""
        return " → ".join(self.app.pair) if self.app.pair else self.TITLE

    def body(self) -> ComposeResult:
        """Sentence, waterfall, measures, fused, kernels."""
        with VerticalScroll(can_focus=False):
            yield Static(id="said")
            yield Waterfall(
                WHERE["profiled"], ("part", "what"), id="parts", empty="no periods to divide: see the notes"
            )
            yield Measures("Per step", id="measures")
            yield Grid("What was fused", id="fused", empty="no compiled kernel replaces others here")
            yield Grid("Kernels as they were matched", id="kernels")

    def load(self) -> None:
        """Compare, then show."""
        for widget in self.query("#parts, #measures, #fused, #kernels"):
            widget.asked = None  # type: ignore[attr-defined]
        self.query_one("#said", Static).update("…")
        background(self, self._compare, "compare")

    async def _compare(self) -> None:
        assert self.app.pair
        first, second = self.app.pair
        compared = await self.outcome(self.app.access.work(lambda con: _compared(con, first, second)))
        if compared:
            self._show(*compared)

    def _show(self, found: Found, heads: list[str], tables: dict[str, Result]) -> None:
        labels = (found.first.label, found.second.label)
        words = ("diff", *labels)
        self.query_one("#said", Static).update(_said(found))
        parts, measures = self.query_one("#parts", Waterfall), self.query_one("#measures", Measures)
        parts.names, measures.heads = labels, heads
        self._has_estimate = any(p.delta_estimate_ns is not None for p in found.parts)
        self._set_clock("un-profiled" if self._has_estimate else "profiled")
        for widget, result in tables.items():
            self.put(self.query_one(widget), Given(result, words))
        parts.focus(scroll_visible=False)
        self.call_after_refresh(self.query_one(VerticalScroll).scroll_home, animate=False)  # begin with the sentence

    def _set_clock(self, clock: str) -> None:
        parts = self.query_one("#parts", Waterfall)
        self._clock = clock
        parts.clock = CLOCKS[clock]
        parts.border_title = Text(WHERE[clock])
        parts.refresh(layout=True)

    def action_clock(self) -> None:
        """The other clock, if there is one."""
        if self._has_estimate:
            self._set_clock("profiled" if self._clock == "un-profiled" else "un-profiled")
        else:
            self.notify("no un-profiled step time is known of one or both", markup=False)

    def action_swap(self) -> None:
        """The second run first."""
        self.app.swap()


def _compared(con: duckdb.DuckDBPyConnection, first: str, second: str) -> tuple[Found, list[str], dict[str, Result]]:
    """The comparison, the runs as heads of columns, and what each widget shows.

    Imported here, in a thread: importing takes longer than a key may wait.
    """
    from traceq.analysis import diff, tables
    from traceq.show.page import heads_of

    found = diff.diff(con, first, second)
    return (
        found,
        heads_of(found.first.label, found.second.label),
        {
            "#parts": tables.parts(found),
            "#measures": _measures(tables.measures(found)),
            "#fused": tables.fused(found),
            "#kernels": tables.kernels(found),
        },
    )


def _measures(found: list[dict[str, Any]]) -> Result:
    from traceq.query import Column, Result

    texts = {"measure", "unit", "verdict"}
    columns = tuple(Column(name, "VARCHAR" if name in texts else "DOUBLE") for name in found[0])
    return Result("diff", {}, columns, [tuple(row.values()) for row in found])


def _said(found: Found) -> Text:
    text = Text(f"{SIGNS.get(found.direction, '')} {printable(found.sentence)}", style="bold")
    for line in found.also:
        text.append(f"\n  {printable(line)}", style="not bold")
    for line in found.caveats:
        text.append(f"\n! {printable(line)}", style="not bold dim")
    return text
