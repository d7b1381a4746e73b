"""Figures of two runs side by side, each with whether its difference is real."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len
from rich.text import Text

from traceq.tui.widgets.answer import Answer, fit
from traceq.units import show_change, show_value

SIGNS = {"real": "●", "within noise": "≈"}
GAP = "  "


class Measures(Answer):
    """Rows with measure, unit, a, b, delta, delta_pct, verdict; `heads` are short names of the two runs."""

    heads = ["a", "b"]

    def draw(self, width: int, height: int) -> Text:
        """A line each: numbers are whole, and where there is no room the name of the measure is cut."""
        rows = [row for row in self.rows if row["a"] is not None or row["b"] is not None]
        heads = [*self.heads, "change", "%", ""]
        table = [_cells(row) for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(heads, *table, strict=True)]
        names = [str(row["measure"]) for row in rows]
        label = min(max(map(len, names), default=0), max(width - sum(widths) - len(GAP) * len(widths), 1))
        text = Text(no_wrap=True, overflow="crop")
        for name, cells, style in [("", heads, "dim"), *zip(names, table, map(_style, rows), strict=True)]:
            numbers = GAP.join(" " * (w - cell_len(c)) + c for c, w in zip(cells[:-1], widths, strict=False))
            text.append(f"{fit(name, label)}{GAP}{numbers}", "dim" if style == "dim" and not name else "")
            text.append(f"{GAP}{cells[-1]}\n", style)
        text.right_crop(1)
        return text


def _cells(row: dict[str, Any]) -> list[str]:
    values = [show_value(row[side], row["unit"]) for side in ("a", "b")]
    pct = "" if row["delta_pct"] is None else f"{row['delta_pct']:+.1f}"
    verdict = row["verdict"] or ""
    return [*values, show_change(row["delta"], row["unit"]), pct, f"{SIGNS.get(verdict, ' ')} {verdict}".rstrip()]


def _style(row: dict[str, Any]) -> str:
    return "" if row["verdict"] == "real" else "dim"
