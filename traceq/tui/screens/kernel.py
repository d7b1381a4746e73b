"""One kernel: who asks for it, each launch, its source, how to profile it."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from traceq.show.text import printable, short_name
from traceq.tui.moment import Moment
from traceq.tui.view import View
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.prose import Prose

CALLERS = ("op", "module", "phase", "kernels", "total_ns", "pct_of_name", "mean_ns", "shapes", "dtypes")
LAUNCHES = ("start_ns", "dur_ns", "step", "op", "latency_ns", "queue_ns", "stream", "grid", "block", "registers",
            "shared_bytes", "occupancy_pct", "device", "rank")  # fmt: skip
LONGEST_CRUMB = 40


class Kernel(View):
    """The launches, callers and source of one kernel name."""

    TITLE, NEEDS = "Kernel", "gpu"
    HELP = (
        "One kernel name: the operators, modules and shapes that ask for it; each launch, enter shows the timeline "
        "around it; the source, where capture kept it; and the ncu command that profiles just this kernel: y copies it "
        "while its panel has the focus."
    )
    CSS = """
    Kernel #name { height: auto; max-height: 3; padding: 0 1; }
    Kernel #ncu { max-height: 6; }
    Kernel #callers { height: 1fr; min-height: 5; max-height: 10; }
    Kernel #launches { height: 1fr; }
    Kernel #source { height: 1fr; display: none; }
    Kernel Horizontal { height: 3fr; min-height: 6; }
    """

    def __init__(self, name: str, run: str | None) -> None:
        super().__init__()
        self._kernel, self.of_run = name, run

    @property
    def crumb(self) -> str:
        """The name, short."""
        return short_name(printable(self._kernel), LONGEST_CRUMB)

    def body(self) -> ComposeResult:
        """Name, callers, launches beside the source, command line."""
        yield Static(Text(printable(self._kernel), style="bold", overflow="ellipsis"), id="name")
        yield Grid("Who asks for it", CALLERS, id="callers")
        with Horizontal():
            yield Grid("Launches", LAUNCHES, id="launches")
            with VerticalScroll(id="source"):
                yield Prose("Source", "source", "python", id="text")
        yield Prose("Profile it with Nsight Compute", "command", id="ncu")

    def load(self) -> None:
        """Ask all about the name."""
        run, name = self.of_run, self._kernel
        self.ask(self.query_one("#callers"), "kernel_callers", run=run, name=name, top=None)
        self.ask(self.query_one("#launches"), "kernel_launches", run=run, name=name, top=None)
        self.ask(self.query_one("#ncu"), "ncu_command", run=run, name=name)
        self.ask(self.query_one("#text"), "kernel_source", self._show_source, run=run, kernel=name)
        self.query_one("#launches").focus()

    def _show_source(self, _: object) -> None:
        self.query_one("#source").display = bool(self.query_one("#text", Prose).rows)

    @on(Grid.Picked, "#launches")
    def look_around(self, event: Grid.Picked) -> None:
        """Show the timeline around a launch."""
        row = event.row
        self.app.show_moment(
            Moment(row["start_ns"], row["dur_ns"], row["step"], row["rank"], row["device"], row["stream"])
        )
