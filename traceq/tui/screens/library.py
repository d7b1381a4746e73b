"""All canned questions."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from traceq.show.text import printable
from traceq.tui.view import View


class Library(View):
    """The questions by area; enter opens one with its form."""

    NAME, TITLE, NEEDS = "queries", "Queries", "store"
    HELP = "Every question that traceq answers, by area. Enter opens one with its parameters and its rows; / filters."

    CSS = """
    Library OptionList { height: 1fr; border: round $foreground 35%;
        border-title-color: $foreground; border-subtitle-color: $text-muted; padding: 0 1; }
    Library OptionList:focus { border: round $accent; border-title-color: $accent; }
    """

    def body(self) -> ComposeResult:
        """The list."""
        yield OptionList(id="questions")

    def load(self) -> None:
        """Fill the list once."""
        self._fill("")
        self.query_one("#questions").focus()

    def command(self) -> str:
        """The command that lists them."""
        return "traceq query --list"

    def filtered(self) -> Widget | None:
        """The list."""
        return self.query_one("#questions")

    def _fill(self, words: str) -> None:
        from traceq import query

        listed = self.query_one("#questions", OptionList)
        listed.clear_options()
        area = ""
        for found in query.all_queries():
            if not all(
                w in f"{found.area} {found.name} {found.title} {found.what}".lower() for w in words.lower().split()
            ):
                continue
            if found.area != area:
                area = found.area
                listed.add_option(Option(Text(area, style="bold"), disabled=True))
            listed.add_option(Option(Text.assemble(f"  {found.name:<22} ", (found.title, "dim")), id=found.name))
        if not area:
            listed.add_option(
                Option(Text(f"no question has {printable(repr(words))}: esc clears the filter"), disabled=True)
            )
        listed.action_first()

    def _filter(self, words: str) -> None:
        self._fill(words)

    @on(OptionList.OptionSelected, "#questions")
    def open(self, event: OptionList.OptionSelected) -> None:
        """Open a question."""
        if event.option.id:
            self.app.open_question(event.option.id)
