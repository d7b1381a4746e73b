"""Rows as a strip of columns side by side: steps in their order, the moments of a run."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.binding import Binding
from textual.message import Message

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer, pick
from traceq.units import show_value

LEVELS = " ▁▂▃▄▅▆▇█"
HEIGHT = 3


class Strip(Answer):
    """A column of `value` for each row; a cursor names one. `flag` is a column that marks rows with `!`."""

    BINDINGS = [
        Binding("left", "move(-1)", "Before", show=False),
        Binding("right", "move(1)", "After", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
        Binding("enter", "pick", "Open", show=False),
    ]

    class Picked(Message):
        """A row was chosen with enter."""

        def __init__(self, strip: Strip, row: dict[str, Any]) -> None:
            super().__init__()
            self.strip, self.row = strip, row

        @property
        def control(self) -> Strip:
            """The strip, for `on(…, "#id")`."""
            return self.strip

    def __init__(
        self, title: str, label: str, value: str, beside: tuple[str, ...] = (), flag: str = "", id: str | None = None
    ) -> None:
        super().__init__(title, id)
        self._label, self._value, self._beside, self._flag = label, value, (value, *beside), flag
        self.cursor = 0

    def shown(self) -> None:
        """The cursor stays within the rows."""
        self.cursor = min(self.cursor, max(len(self.rows) - 1, 0))

    def draw(self, width: int, height: int) -> Text:
        """Columns around the cursor, marks below them, and the cursor's row in words."""
        cell = max(1, min(6, width // max(len(self.rows), 1)))
        count = max(width // cell, 1)
        first = max(0, min(self.cursor - count // 2, len(self.rows) - count))
        rows = self.rows[first : first + count]
        most = max((pick(row, self._value) for row in self.rows), default=0.0)
        body = max(cell - 1, 1)
        gap = " " * (cell - body)
        text = Text(no_wrap=True, overflow="crop")
        for level in range(HEIGHT - 1, -1, -1):
            for place, row in enumerate(rows, first):
                part = (pick(row, self._value) / most if most else 0.0) * HEIGHT - level
                glyph = LEVELS[max(0, min(8, round(part * 8)))]
                text.append(glyph * body, style="bold" if place == self.cursor else self.style("launch_latency"))
                text.append(gap)
            text.append("\n")
        for place, row in enumerate(rows, first):
            mark = "▲" if place == self.cursor else "!" if self._flag and row[self._flag] else "·"
            mark = "–" if mark == "·" and row[self._value] is None else mark
            text.append(mark.center(body) + gap)
        text.append("\n")
        text.append(self._named())
        return text

    def _named(self) -> str:
        row = self.rows[self.cursor]
        words = [f"{self._label} {row[self._label]}"]
        for name in self._beside:
            words.append(
                f"{name.removesuffix('_ns').replace('_', ' ')} {show_value(row[name], self.column(name).unit)}"
            )
        if self._flag and row[self._flag]:
            words.append(f"! {row[self._flag]}")
        return printable(" · ".join(words))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.rows:
            self.cursor = max(0, min(self.cursor + by, len(self.rows) - 1))
            self.refresh()

    def action_pick(self) -> None:
        """Choose the row under the cursor."""
        if self.rows:
            self.post_message(self.Picked(self, self.rows[self.cursor]))
