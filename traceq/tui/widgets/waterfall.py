"""From one length to another by the parts in between: each begins where the one before ended."""

from __future__ import annotations

from rich.text import Text

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer, fit, pick
from traceq.units import show_value

SMALL = 0.004  # of the longer side: parts that change less are left to the list


class Waterfall(Answer):
    """Rows with `first`, `second` and `delta` columns, whose firsts sum to the first run and seconds to the second."""

    def __init__(self, title: str, labels: tuple[str, ...], id: str | None = None, empty: str = "") -> None:
        super().__init__(title, id, empty)
        self._labels = labels
        self.names = ("a", "b")
        self.clock = ("a_ns", "b_ns", "delta_ns")

    def draw(self, width: int, height: int) -> Text:
        """The first run, what changes it, the second run."""
        first, second, delta = self.clock
        begin, end = (sum(pick(row, column) for row in self.rows) for column in (first, second))
        most = max(begin, end) or 1.0
        shown = [row for row in self.rows if abs(pick(row, delta)) >= SMALL * most]
        labels = [" ".join(str(row[n]) for n in self._labels if row[n]) for row in shown]
        wide = min(max(map(len, [*labels, *self.names, "others"])), width // 3)
        room = max(width - wide - 14, 1)
        at, low, high = begin, min(begin, 0.0), begin
        for row in self.rows:
            at += pick(row, delta)
            low, high = min(low, at), max(high, at)
        scale = room / ((high - low) or 1.0)
        text = Text(no_wrap=True, overflow="crop")

        def line(label: str, left: float, right: float, value: float, style: str, glyph: str) -> None:
            start, stop = round((min(left, right) - low) * scale), round((max(left, right) - low) * scale)
            if value:  # at least a cell, at the right end too
                start = min(start, room - 1)
                stop = max(stop, start + 1)
            sign = "+" if glyph == "▒" and value > 0 else ""
            text.append(fit(printable(label), wide) + " ")
            text.append(" " * start)
            text.append(glyph * (stop - start), style=style)
            text.append(" " * (room - stop))
            text.append(f"{sign}{show_value(value, 'ns')}".rjust(13) + "\n")

        line(self.names[0], 0, begin, begin, self.style("gemm"), "█")
        at = begin
        for row, label in zip(shown, labels, strict=True):
            change = pick(row, delta)
            line(
                label, at, at + change, row[delta], self.style("unexplained" if change > 0 else "fused_pointwise"), "▒"
            )
            at += change
        if rest := end - at:
            line("others", at, end, round(rest), self.style("other"), "▒")
        line(self.names[1], 0, end, end, self.style("gemm"), "█")
        text.right_crop(1)
        return text
