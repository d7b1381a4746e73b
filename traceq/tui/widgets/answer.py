"""What every widget that draws an answer shares: the question it shows, waiting, faults, and nothing to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widget import Widget

from traceq.show.text import printable
from traceq.tui.colours import shade

if TYPE_CHECKING:
    from traceq.query import Column, Result
    from traceq.tui.access import Ask

NOTHING = "none, or not recorded"


class Answer(Widget, can_focus=True):
    """Draws the rows of one question.

    A subclass implements `draw(width, height)` from `self.rows`. The view that asked calls `show`, or `fail`; `asked`
    is the question, for the command line below and for export. Text from a trace is only ever put into a rich `Text`.
    """

    DEFAULT_CSS = """
    Answer { height: auto; border: round $foreground 35%;
        border-title-color: $foreground; border-subtitle-color: $text-muted; padding: 0 1; }
    Answer:focus { border: round $accent; border-title-color: $accent; }
    """

    def __init__(self, title: str = "", id: str | None = None, empty: str = NOTHING, **more: Any) -> None:
        super().__init__(id=id, **more)
        self.heading = title
        self.border_title = Text(title)
        self.asked: Ask | None = None
        self.result: Result | None = None
        self.rows: list[dict[str, Any]] = []
        self.error: str | None = None
        self._empty = empty

    def show(self, result: Result) -> None:
        """Draw these rows from now on."""
        self.result, self.error = result, None
        self.rows = [dict(zip((c.name for c in result.columns), row, strict=True)) for row in result.rows]
        self.shown()
        self.refresh(layout=True)

    def forget(self) -> None:
        """Draw nothing until the next answer."""
        self.result, self.rows, self.error = None, [], None
        self.refresh(layout=True)

    def fail(self, text: str) -> None:
        """Say why there is nothing to draw."""
        self.result, self.rows, self.error = None, [], text
        self.refresh(layout=True)

    def shown(self) -> None:
        """Called when new rows have come; a subclass that keeps a cursor resets it."""

    def draw(self, width: int, height: int) -> Text:
        """The rows as text of at most `width` columns."""
        raise NotImplementedError

    def render(self) -> Text:
        width, height = self.content_size
        text = self._text(width, height)
        if self._is_prose():
            return text
        drawn = text.split("\n")
        for line in drawn:
            if line.cell_len > width:  # a line is a row: where there is no room, it is cut and not wrapped
                line.rstrip()
                line.truncate(width, overflow="ellipsis")
        return Text("\n").join(drawn)

    def get_content_height(self, container: Any, viewport: Any, width: int) -> int:
        text = self._text(width, 0)
        return max(
            1, len(text.wrap(self.app.console, max(width, 1), no_wrap=False)) if self._is_prose() else lines(text)
        )

    def copied(self) -> str:
        """What `y` puts into the clipboard: the text as drawn."""
        return self._text(self.content_size.width, self.content_size.height).plain

    def column(self, name: str) -> Column:
        """A column of the result."""
        assert self.result
        return next(c for c in self.result.columns if c.name == name)

    def style(self, what: object) -> str:
        """The colour of a category, cause or origin on the theme's ground."""
        return shade(str(what), self.app.current_theme.dark)

    def _is_prose(self) -> bool:
        return bool(self.error) or not self.rows

    def _text(self, width: int, height: int) -> Text:
        if self.error:
            return Text("\n".join(map(printable, self.error.split("\n"))), style="red")
        if self.result is None:
            return Text("…", style="dim")
        if not self.rows:
            return Text(self._empty, style="dim")
        return self.draw(max(width, 10), height)


def lines(text: Text) -> int:
    """How many lines a text has."""
    return text.plain.rstrip("\n").count("\n") + 1


def fit(text: str, width: int) -> str:
    """Printable text in exactly `width` cells, cut with an ellipsis."""
    cell = Text(printable(text))
    cell.truncate(max(width, 0), overflow="ellipsis", pad=True)
    return cell.plain


def pick(row: Mapping[str, Any], name: str) -> float:
    """A number of a row as a length to draw; what was not recorded has none."""
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
