"""The kernels of a run."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from traceq.tui.screens.kernel import Kernel
from traceq.tui.view import View
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.histogram import Histogram

COLUMNS = ("name", "category", "origin", "kernels", "total_ns", "pct_of_kernel", "mean_ns", "median_ns", "min_ns",
           "max_ns")  # fmt: skip


class Kernels(View):
    """A line for each kernel name, and how long kernels are."""

    NAME, TITLE, NEEDS = "kernels", "Kernels", "gpu"
    HELP = (
        "Kernels by name, category and origin. Left and right pick a column, s sorts by it, / filters by words as you "
        "type, enter opens one kernel: its launches, operators, shapes, modules and source."
    )
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    CSS = """
    Kernels #sizes { width: 36; height: 1fr; }
    Kernels.-narrow #sizes { display: none; }
    """

    def body(self) -> ComposeResult:
        """The names, and the sizes beside them where there is room."""
        with Horizontal():
            yield Grid("Kernels", COLUMNS, id="names")
            yield Histogram("Sizes of kernels", "size", "kernels", id="sizes")

    def load(self) -> None:
        """Ask for all names."""
        self.ask(self.query_one("#names"), "top_kernels", run=self.app.run_label, top=None)
        self.ask(self.query_one("#sizes"), "kernel_histogram", run=self.app.run_label)
        self.query_one("#names").focus()

    @on(Grid.Picked, "#names")
    def open(self, event: Grid.Picked) -> None:
        """Open one kernel."""
        self.app.push_screen(Kernel(str(event.row["name"]), self.app.run_label))
