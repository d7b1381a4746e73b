"""A form for the parameters of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Input, Label

if TYPE_CHECKING:
    from traceq.query import Query


class Form(VerticalScroll, can_focus=False):
    """A line for each parameter: name, input (empty: the default), meaning. Posts `Submitted` on enter."""

    DEFAULT_CSS = """
    Form { height: auto; max-height: 12; padding: 0 1; }
    Form Horizontal { height: 1; }
    Form Label { width: 14; }
    Form Input { width: 24; height: 1; border: none; background: $panel; padding: 0 1; }
    Form Input:focus { border: none; background: $accent 30%; }
    Form .meaning { width: 1fr; padding: 0 1; color: $text-muted; }
    """

    class Submitted(Message):
        """The values that differ from the defaults, as text."""

        def __init__(self, form: Form, values: dict[str, str]) -> None:
            super().__init__()
            self.form, self.values = form, values

    def __init__(self, query: Query, given: dict[str, str], id: str | None = None) -> None:
        super().__init__(id=id)
        self.query_file = query
        self._given = given

    def compose(self) -> ComposeResult:
        """A line a parameter."""
        for param in self.query_file.params:
            with Horizontal():
                yield Label(param.name, markup=False)
                default = "NULL" if param.default is None else str(param.default)
                yield Input(self._given.get(param.name, ""), placeholder=default, name=param.name, select_on_focus=True)
                yield Label(f"{param.type}: {param.meaning}", classes="meaning", markup=False)

    @property
    def values(self) -> dict[str, str]:
        """What was typed, by parameter."""
        return {str(i.name): i.value for i in self.query(Input) if i.value.strip()}

    def put(self, name: str, value: str) -> None:
        """Give a parameter another value."""
        next(line for line in self.query(Input) if line.name == name).value = value

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in any line asks the question."""
        event.stop()
        self.post_message(self.Submitted(self, self.values))
