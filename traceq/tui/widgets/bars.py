"""Rows as labelled horizontal bars."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from rich.text import Text

from traceq.show.text import heading, printable
from traceq.tui.widgets.answer import Answer, fit, pick
from traceq.units import show_value

EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_LABEL = 0.4


class Bars(Answer):
    """A bar for each row: `label`, a bar as long as `value` is of the greatest, and the columns of `beside` as text."""

    def __init__(
        self, title: str, label: str, value: str, beside: tuple[str, ...] = (), id: str | None = None, **more: Any
    ) -> None:
        super().__init__(title, id, **more)
        self._label, self._value, self._beside = label, value, (value, *beside)

    def draw(self, width: int, height: int) -> Text:
        """One line a row; three columns or more are named above them."""
        cells = [[show_value(row[name], self.column(name).unit) for name in self._beside] for row in self.rows]
        heads = [heading(name, self.column(name).unit) for name in self._beside] if len(self._beside) > 2 else []
        lines = [heads, *cells] if heads else cells
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        labels = [printable(show_value(row[self._label], None)) for row in self.rows]
        label_width = min(max(map(cell_len, labels)), int(width * MOST_LABEL))
        room = width - label_width - sum(widths) - 2 * len(widths) - 1
        most = max((abs(pick(row, self._value)) for row in self.rows), default=0.0)
        text = Text(no_wrap=True, overflow="crop")
        if heads:
            named = "".join(f"  {head:>{size}}" for head, size in zip(heads, widths, strict=True))
            text.append(" " * (label_width + 1 + max(room, 0) * (room > 2)) + named + "\n", style="dim")
        for row, label, values in zip(self.rows, labels, cells, strict=True):
            text.append(fit(label, label_width) + " ")
            if room > 2:
                length = abs(pick(row, self._value)) / most if most else 0.0
                text.append(bar(length, room), style=self.style(row[self._label]))
            for value, size in zip(values, widths, strict=True):
                text.append(f"  {value:>{size}}")
            text.append("\n")
        text.right_crop(1)
        return text


def bar(part: float, width: int) -> str:
    """A bar of `part` of `width` cells, to an eighth of a cell; something, if there is anything."""
    eighths = max(round(part * width * 8), 1 if part > 0 else 0)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(width)
