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
        """Numbers, columns, labels, on two lines where they do not fit on one; as many rows as there is room for."""
        cell = max(width // len(self.rows), LEAST_LABEL)
        rows = self.rows[: max(width // cell, 1)]
        labels = [printable(str(row[self._label])) for row in rows]
        feet = [labels]
        if max(map(len, labels)) >= cell:  # number above unit
            feet = [
                [label.rpartition(" ")[0] or label for label in labels],
                [label.rpartition(" ")[2] for label in labels],
            ]
        tall = max((height or LEAST_HEIGHT + 2) - 1 - len(feet), 2)
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
        for foot in feet:
            text.append("".join(fit(label, cell - 1) + " " for label in foot) + "\n")
        text.right_crop(1)
        return text
