"""One canned question: what it says, its parameters, its rows."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from traceq import query
from traceq.errors import TraceqError
from traceq.tui.access import Asked
from traceq.tui.view import View
from traceq.tui.widgets.form import Form
from traceq.tui.widgets.grid import Grid


class Question(View):
    """The form of a question above the rows that it gives."""

    TITLE, NEEDS = "Question", "store"
    HELP = "A question with its parameters: type values, enter asks. An empty line is the default."
    CSS = """
    #what { height: auto; max-height: 5; padding: 0 1; }
    """

    def __init__(self, name: str, run: str | None = None) -> None:
        super().__init__()
        self._query = query.load(name)
        takes = {param.name for param in self._query.params}
        self._given: dict[str, str] = {"run": run} if run is not None and "run" in takes else {}

    @property
    def crumb(self) -> str:
        """The question's name."""
        return self._query.name

    def body(self) -> ComposeResult:
        """What it asks, its form, its rows."""
        yield Static(
            Text.assemble((self._query.title, "bold"), f"\n{self._query.what} ", (self._query.value, "dim")), id="what"
        )
        yield Form(self._query, self._given, id="form")
        yield Grid(id="rows")

    def load(self) -> None:
        """Ask with the values of the form, which follows when another run is looked at, unless one was typed."""
        form, run = self.query_one(Form), self.app.run_label
        if run is not None and self._given and form.values.get("run") == self._given["run"] != run:
            self.query_one("#rows", Grid).forget()
            self._given["run"] = run
            form.put("run", run)
        self._ask(self.query_one(Form).values)

    @on(Form.Submitted)
    def again(self, event: Form.Submitted) -> None:
        """Ask with other values."""
        self._ask(event.values)

    def _ask(self, values: dict[str, str]) -> None:
        grid = self.query_one("#rows", Grid)
        try:
            params = query.bind(self._query, values)
        except TraceqError as error:
            grid.fail(f"{error.message}: {error.hint}")
            return
        self.put(grid, Asked(self._query.name, {name: params[name] for name in values}))
        grid.focus()
