"""Idle time of the GPU."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding

from traceq.tui.moment import Moment
from traceq.tui.view import View
from traceq.tui.widgets.bars import Bars
from traceq.tui.widgets.grid import Grid

LONGEST = 10_000  # gaps that are listed at first
COLUMNS = ("dur_ns", "cause", "evidence", "op", "step", "start_ns", "host_ns", "next_work", "device", "rank")


class Gaps(View):
    """Why the GPU was idle, by cause and one by one."""

    NAME, TITLE, NEEDS = "gaps", "Gaps", "gpu"
    HELP = (
        "Idle time of the GPU: by cause above, the longest 10,000 gaps below; a lists all. Enter on a gap shows the "
        "timeline around it. What each cause means: docs/meaning.md."
    )
    BINDINGS = [Binding("a", "all", "All")]

    def body(self) -> ComposeResult:
        """Causes, then gaps."""
        yield Bars("Idle time by cause", "cause", "idle_ns", ("pct_of_idle", "parts", "median_ns"), id="causes")
        yield Grid("Gaps", COLUMNS, id="gaps")

    def load(self) -> None:
        """Ask for causes and gaps."""
        self.ask(self.query_one("#causes"), "gap_causes", run=self.app.run_label)
        self.ask(self.query_one("#gaps"), "longest_gaps", run=self.app.run_label, top=LONGEST)
        self.query_one("#gaps").focus()

    def action_all(self) -> None:
        """List every gap."""
        self.ask(self.query_one("#gaps"), "longest_gaps", run=self.app.run_label, top=None)

    @on(Grid.Picked, "#gaps")
    def look_around(self, event: Grid.Picked) -> None:
        """Show the timeline around a gap."""
        row = event.row
        self.app.show_moment(Moment(row["start_ns"], row["dur_ns"], row["step"], row["rank"], row["device"]))
