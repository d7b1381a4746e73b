"""One bar cut into parts, with what each part is below it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer, fit, pick
from traceq.units import show_value

FILLS = "█▓▒░▚▞▤▥"


class Bar(Answer):
    """A bar for each row, of the columns named in `parts`: (column, word, colour's name); `label` names the row."""

    def __init__(
        self, title: str, parts: Sequence[tuple[str, str, str]], label: Sequence[str] = (), id: str | None = None
    ) -> None:
        super().__init__(title, id)
        self._parts, self._label = tuple(parts), tuple(label)

    def draw(self, width: int, height: int) -> Text:
        """For each row a bar and its legend."""
        text = Text(no_wrap=True, overflow="crop")
        names = [" ".join(f"{n} {row[n]}" for n in self._label if row[n] is not None) for row in self.rows]
        label_width = max((len(printable(name)) for name in names), default=0) if len(self.rows) > 1 else 0
        for row, name in zip(self.rows, names, strict=True):
            if label_width:
                text.append(fit(name, label_width) + " ")
            self._draw_row(text, row, width - label_width - bool(label_width))
        text.right_crop(1)
        return text

    def _draw_row(self, text: Text, row: dict[str, object], width: int) -> None:
        sizes = [pick(row, column) for column, _, _ in self._parts]
        for (_, _, name), fill, cells in zip(self._parts, FILLS, shares(sizes, width), strict=False):
            text.append(fill * cells, style=self.style(name))
        text.append("\n")
        for (column, word, name), fill, size in zip(self._parts, FILLS, sizes, strict=False):
            if size or row[column] is None:
                text.append(f"{fill} ", style=self.style(name))
                text.append(f"{word} {show_value(row[column], self.column(column).unit)}   ")
        text.append("\n")


def shares(sizes: Sequence[float], width: int) -> list[int]:
    """`width` cells shared by size: all of them, and at least one for what is there at all."""
    total = sum(sizes)
    if not total or width <= 0:
        return [0] * len(sizes)
    cells = [max(int(size / total * width), 1) if size else 0 for size in sizes]
    largest = max(range(len(cells)), key=lambda place: cells[place])
    cells[largest] = max(cells[largest] + width - sum(cells), 0)
    return cells
