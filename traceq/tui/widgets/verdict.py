"""What torch.compile can gain: the recommendation, the bounds and what to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer, fit
from traceq.tui.widgets.bars import bar

if TYPE_CHECKING:
    from traceq.analysis.advise import Advice

LABEL = 25
LEAST_ROOM = 8


class Verdict(Answer):
    """`found` is the advice whose rows `show` gets."""

    found: Advice | None = None

    def draw(self, width: int, height: int) -> Text:
        """The sentence, then a line for each bound and each mode, drawn against the largest."""
        found = self.found
        assert found
        text = Text(overflow="ellipsis")
        text.append(printable(f"{found.recommendation}: {found.because}"), style="bold")
        text.append(f"\ngain: {found.gain_class} · confidence: {found.confidence}", style="dim")
        c = found.ceilings
        bounds = [("bound, any mode", c.both), ("bound, graphs alone", c.graphs), ("bound, of GPU busy", c.fusion_busy)]
        rows = [(label, value, "" if value is None else f"{value:,.2f}×") for label, value in bounds]
        for mode, e in found.prospects.items():
            rows.append((f"expected, {mode}", e.likely, f"{e.likely:,.2f}×  ({e.low:,.2f} to {e.high:,.2f})"))
        most = max((value or 0.0 for _, value, _ in rows), default=0.0)
        room = width - LABEL - max(len(shown) for _, _, shown in rows) - 2
        for label, value, shown in rows:
            text.append(f"\n{fit(label, LABEL)} ")
            if room >= LEAST_ROOM:
                kind = "gemm" if label.startswith("bound") else "fused_pointwise"
                text.append(bar((value or 0.0) / most if most else 0.0, room), style=self.style(kind))
            text.append(f" {shown or '–'}")
        for reason in c.conditional:
            text.append(f"\n! any mode, on condition: {printable(reason)}", style="dim")
        return text

    def _is_prose(self) -> bool:
        return True
