"""A run in one look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll

from traceq.tui.access import Given
from traceq.tui.moment import Moment
from traceq.tui.view import View
from traceq.tui.widgets.bar import Bar
from traceq.tui.widgets.bars import Bars
from traceq.tui.widgets.facts import Facts
from traceq.tui.widgets.strip import Strip
from traceq.tui.widgets.trust import Trust
from traceq.tui.widgets.verdict import Verdict
from traceq.tui.work import background

if TYPE_CHECKING:
    import duckdb

    from traceq.analysis.advise import Advice
    from traceq.query import Result

BUSY = (("busy_ns", "busy", "gemm"), ("idle_ns", "idle", "sync"))
FACTS = ("gpu", "step_ns", "steps", "period_ns", "window_ns", "kernels", "kernel_ns", "gemm_pct_of_kernel", "launches",
         "graph_launches", "carried_over")  # fmt: skip


class Overview(View):
    """What compiling can gain, busy and idle, categories, causes of idle time, steps, what the numbers cannot see."""

    NAME, TITLE, NEEDS = "overview", "Overview", "gpu"
    HELP = (
        "A run in one look: how much of the time the GPU worked, on what, why it waited, and how even the steps are. "
        "Tab goes from panel to panel; left and right go from step to step. The last panel says what the numbers "
        "cannot see."
    )
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    CSS = """
    Overview .column { width: 1fr; height: auto; }
    Overview.-narrow Horizontal { layout: vertical; }
    Overview Horizontal { height: auto; }
    /* with or without a bar on the right the panels are as wide: else it decides whether it is needed */
    Overview VerticalScroll { scrollbar-gutter: stable; }
    """

    def body(self) -> ComposeResult:
        """Panels, two columns of them where there is room."""
        with VerticalScroll(can_focus=False):
            yield Bar("Busy and idle", BUSY, label=("rank", "device"), id="busy")
            yield Verdict("What torch.compile can gain", id="verdict")
            with Horizontal():
                with Vertical(classes="column"):
                    yield Bars("Kernel time by category", "category", "kernel_ns", ("pct_of_kernel",), id="categories")
                with Vertical(classes="column"):
                    yield Bars("Idle time by cause", "cause", "idle_ns", ("pct_of_idle",), id="causes")
            yield Strip("Steps", "step", "period_ns", ("gpu_busy_ns", "kernels"), flag="flags", id="steps")
            with Horizontal():
                with Vertical(classes="column"):
                    yield Facts("The run", FACTS, id="facts")
                with Vertical(classes="column"):
                    yield Trust("What the numbers cannot see", id="trust")

    def load(self) -> None:
        """Ask everything about the run."""
        run = self.app.run_label
        for panel, name in (
            ("#busy", "summary"), ("#categories", "categories"), ("#causes", "gap_causes"), ("#steps", "steps"),
            ("#facts", "summary"), ("#trust", "trust"),
        ):  # fmt: skip
            self.ask(self.query_one(panel), name, run=run)
        background(self, self._advise, "advise")

    async def _advise(self) -> None:
        run, panel = str(self.app.run_label), self.query_one("#verdict", Verdict)
        advised = await self.outcome(self.app.access.work(lambda con: _advised(con, run)), panel)
        if advised:
            panel.found, split = advised
            self.put(panel, Given(split, ("advise", run)))

    @on(Strip.Picked, "#steps")
    def look_at_step(self, event: Strip.Picked) -> None:
        """Show the step on the timeline."""
        self.app.show_moment(Moment(step=event.row["step"], rank=event.row["rank"]))


def _advised(con: duckdb.DuckDBPyConnection, run: str) -> tuple[Advice, Result]:
    """Advice, and its rows. Imported here, in a thread: importing takes longer than a key may wait."""
    from traceq.analysis import advise, tables

    found = advise.advise(con, run, None)
    return found, tables.split(found)
