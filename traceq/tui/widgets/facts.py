"""One row as names and values."""

from __future__ import annotations

from rich.text import Text

from traceq.show.text import heading, printable
from traceq.tui.widgets.answer import Answer, fit
from traceq.units import show_value


class Facts(Answer):
    """The named columns (none: all) of the first row, a line each, values never cut."""

    def __init__(self, title: str, names: tuple[str, ...] = (), id: str | None = None) -> None:
        super().__init__(title, id)
        self._names = names

    def draw(self, width: int, height: int) -> Text:
        """Names to the left, values beside them."""
        assert self.result
        columns = [c for c in self.result.columns if not self._names or c.name in self._names]
        headings = [heading(c.name, c.unit) for c in columns]
        least = max(map(len, headings))
        text = Text(overflow="fold")
        for column, name in zip(columns, headings, strict=True):
            text.append(fit(name, least) + "  ", style="dim")
            text.append(printable(show_value(self.rows[0][column.name], column.unit)) + "\n")
        text.right_crop(1)
        return text

    def _is_prose(self) -> bool:
        return True
