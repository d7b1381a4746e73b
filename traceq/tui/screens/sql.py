"""Ask anything in SQL; as `traceq sql`, it reads the store and nothing else."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import OptionList

from traceq.errors import TraceqError
from traceq.tui.access import Asked, ClosedError, Statement
from traceq.tui.history import History
from traceq.tui.view import View
from traceq.tui.widgets.editor import Editor, Names
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.prose import Prose
from traceq.tui.work import background
from traceq.units import show_ns

clock = time.perf_counter_ns
FIRST = """SELECT run, category, count(*) AS kernels, sum(dur_ns) AS kernel_ns
FROM kernels
GROUP BY ALL
ORDER BY kernel_ns DESC"""


class Sql(View):
    """A statement above, its rows below."""

    NAME, TITLE, NEEDS = "sql", "SQL", "store"
    HELP = (
        "Type one statement that reads (SELECT, WITH, FROM, PIVOT, DESCRIBE, EXPLAIN): ctrl+r or F5 runs it, escape "
        "stops it. Names of tables and columns are offered while you type: tab takes the first, up and down choose "
        "another. Ctrl+up and ctrl+down, or up from the first line, bring back what was run before. Escape leaves the "
        "editor for the rows, so that digits change screens again; tab goes back. The tables: DESCRIBE kernels, or "
        "traceq schema. Nothing but the store can be read, and nothing can be written."
    )
    CSS = """
    Sql { layers: base above; }
    Sql #statement { height: 2fr; min-height: 5; max-height: 14; }
    Sql #rows, Sql #plan { height: 3fr; }
    Sql #plan { display: none; }
    Sql #words { layer: above; position: absolute; display: none; width: 44; height: auto; max-height: 8;
        border: none; padding: 0; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._history = History()

    def compose(self) -> ComposeResult:
        """The list of names lies above everything else."""
        self._words = OptionList(id="words")
        self._words.can_focus = False
        yield from super().compose()
        yield self._words

    def body(self) -> ComposeResult:
        """Editor and rows."""
        editor = Editor(self._words, id="statement")
        editor.border_title = "Statement"
        yield editor
        yield Grid("Rows", id="rows", empty="no rows")
        with VerticalScroll(id="plan"):
            yield Prose("Plan", "explain_value", id="text")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is typed is no filter."""
        return action != "filter" or not self.query_one(Editor).has_focus

    def load(self) -> None:
        """Learn the names; a statement that was run is run again on the store that is there now."""
        editor, grid = self.query_one(Editor), self.query_one(Grid)
        background(self, self._learn, "names")
        if isinstance(grid.asked, Statement):
            self._run(grid.asked.text)
        else:
            editor.put(FIRST)
            grid.fail("ctrl+r runs the statement")
            editor.focus()

    async def _learn(self) -> None:
        try:
            found = await self.app.access.answer(Asked("schema", {}), limit=None)
        except (ClosedError, TraceqError):
            return  # without names one can still type
        tables: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind, _ in found.rows:
            tables.setdefault(str(table), []).append((str(column), str(kind)))
        self.query_one(Editor).names = Names(tables)

    @on(Editor.Ran)
    def run_statement(self) -> None:
        """Run what stands in the editor, and remember it."""
        text = self.query_one(Editor).text.strip()
        if text:
            self._history.add(text)
            self._run(text)

    def _run(self, text: str) -> None:
        from traceq.store.lockdown import EXPLAIN  # DuckDB comes after the first paint

        grid, start = self.query_one(Grid), clock()
        is_plan = bool(EXPLAIN.match(text))
        grid.display, self.query_one("#plan").display = not is_plan, is_plan
        if is_plan:
            self.put(self.query_one(Prose), Statement(text))
            return
        grid.border_title = Text("Rows · running")
        self.put(grid, Statement(text), partial(self._tell_time, start))

    def _tell_time(self, start: int, _: Any) -> None:
        self.query_one(Grid).border_title = Text(f"Rows · {show_ns(clock() - start)}")

    def failed(self, error: Exception, widget: Any = None) -> None:
        """The rows say what is wrong."""
        self.query_one(Grid).border_title = Text("Rows")
        super().failed(error, widget)

    @on(Editor.Older)
    def bring_back(self, event: Editor.Older) -> None:
        """Another statement of the history."""
        editor = self.query_one(Editor)
        if (text := self._history.older(event.by, editor.text)) is not None:
            editor.put(text)

    def action_back(self) -> None:
        """End what runs; else leave the editor."""
        editor, grid = self.query_one(Editor), self.query_one(Grid)
        if editor.has_focus and not self.is_spinning:
            grid.focus()
        else:
            if self.is_spinning:
                grid.border_title = Text("Rows · stopped")
            super().action_back()
