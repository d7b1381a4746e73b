"""Two runs compared."""

from __future__ import annotations

from textual.app import ComposeResult

from traceq.tui.view import View
from traceq.tui.widgets.grid import Grid


class Diff(View):
    """What changed from one run to another."""

    NAME, TITLE, NEEDS = "diff", "Diff", "pair"
    HELP = "Two runs compared: the two that are marked on the screen of runs (space), else the first two."

    @property
    def crumb(self) -> str:
        """The pair."""
        return " → ".join(self.app.pair or (self.TITLE,))

    def body(self) -> ComposeResult:
        """Categories side by side."""
        yield Grid("Kernel time by category", id="categories")

    def load(self) -> None:
        """Ask for the pair."""
        assert self.app.pair
        a, b = self.app.pair
        self.ask(self.query_one("#categories"), "diff_categories", a=a, b=b)
        self.query_one("#categories").focus()
