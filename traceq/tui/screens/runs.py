"""All runs."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding

from traceq.tui.view import View
from traceq.tui.widgets.grid import Grid


class Runs(View):
    """A line for each run; enter looks at it, two marked ones are compared."""

    NAME, TITLE, NEEDS = "runs", "Runs", "store"
    HELP = (
        "Every run in the store. Enter looks at one; space marks it, and two marked runs are compared on screen 6: "
        "a is what was before, b is what changed."
    )
    BINDINGS = [Binding("space", "mark", "Mark")]

    def body(self) -> ComposeResult:
        """The runs."""
        yield Grid("Runs", id="runs")

    def load(self) -> None:
        """Ask for the runs."""
        if lack := self.app.lack("run"):
            self.trouble(*lack)
            return
        grid = self.query_one("#runs", Grid)
        self._show_marks()
        self.ask(grid, "runs_at_a_glance", then=lambda _: grid.place({"run": self.app.run_label}))
        grid.focus()

    @on(Grid.Picked, "#runs")
    def look(self, event: Grid.Picked) -> None:
        """Look at the run under the cursor."""
        self.app.choose(str(event.row["run"]))
        self.app.action_go("overview")

    def action_mark(self) -> None:
        """Mark the run under the cursor: a, then b."""
        grid = self.query_one("#runs", Grid)
        if grid.row is None:
            return
        label = str(grid.row["run"])
        marked = [name for name in grid.marks if name != label]
        if label not in grid.marks:
            marked = [*marked, label][-2:]
        grid.marks = dict(zip(marked, ("a", "b"), strict=False))
        self.app.mark((str(marked[0]), str(marked[1])) if len(marked) == 2 else None)
        if len(marked) == 2:
            self.notify(f"6 compares {marked[0]} with {marked[1]}", markup=False)
        grid.refresh()

    def _show_marks(self) -> None:
        grid = self.query_one("#runs", Grid)
        labels = {row["run"] for row in self.app.runs}
        grid.marks = {name: mark for name, mark in grid.marks.items() if name in labels}
