"""Rows as upright columns with labels below."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer, fit, pick
from traceq.tui.widgets.strip import LEVELS
from traceq.units import show_value

LEAST_HEIGHT = 6
LEAST_LABEL = 5


class Histogram(Answer):
    """A column for each row, as high as its `value`, which stands above it."""

    def __init__(self, title: str, label: str, value: str, id: str | None = None, **more: Any) -> None:
        super().__init__(title, id, **more)
        self._label, self._value = label, value

    def draw(self, width: int, height: int) -> Text:
        """Numbers, columns, labels; where columns would be too narrow for their labels, the rows that fit."""
        cell = max(width // len(self.rows), LEAST_LABEL)
        rows = self.rows[: max(width // cell, 1)]
        tall = max((height or LEAST_HEIGHT + 2) - 2, 2)
        most = max(pick(row, self._value) for row in rows)
        unit = self.column(self._value).unit
        text = Text(no_wrap=True, overflow="crop")
        for row in rows:
            text.append(fit(show_value(row[self._value], unit), cell - 1) + " ")
        text.append("\n")
        for level in range(tall - 1, -1, -1):
            for row in rows:
                part = (pick(row, self._value) / most if most else 0.0) * tall - level
                text.append(LEVELS[max(0, min(8, round(part * 8)))] * (cell - 1) + " ", style=self.style("gemm"))
            text.append("\n")
        for row in rows:
            text.append(fit(printable(str(row[self._label])), cell - 1) + " ")
        return text
