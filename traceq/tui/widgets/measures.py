"""Figures of two runs side by side, each with whether its difference is real."""

from __future__ import annotations

from rich.text import Text

from traceq.show.text import heading, printable
from traceq.tui.widgets.answer import Answer, fit
from traceq.units import show_value

SIGNS = {"real": "●", "within noise": "≈"}


class Measures(Answer):
    """Rows with measure, unit, a, b, delta, verdict."""

    names = ("a", "b")

    def draw(self, width: int, height: int) -> Text:
        """A line each."""
        rows = [row for row in self.rows if row["a"] is not None or row["b"] is not None]
        values = [[show_value(row[n], row["unit"]) for n in ("a", "b", "delta")] for row in rows]
        heads = [*(printable(name)[:14] for name in self.names), heading("delta", None)]
        widths = [max(map(len, column)) for column in zip(heads, *values, strict=True)]
        label = min(max((len(str(row["measure"])) for row in rows), default=0), width // 3)
        text = Text(no_wrap=True, overflow="crop")
        text.append(" " * label + "  " + "  ".join(h.rjust(w) for h, w in zip(heads, widths, strict=True)), style="dim")
        for row, cells in zip(rows, values, strict=True):
            text.append("\n" + fit(str(row["measure"]), label) + "  ")
            text.append("  ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True)))
            verdict = row["verdict"] or ""
            text.append(f"  {SIGNS.get(verdict, ' ')} {verdict}", style="" if verdict == "real" else "dim")
        return text
