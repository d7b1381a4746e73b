"""The notes of the trust query."""

from __future__ import annotations

from rich.text import Text

from traceq.show.text import printable
from traceq.tui.widgets.answer import Answer


class Trust(Answer):
    """Each note on a line of its own."""

    def draw(self, width: int, height: int) -> Text:
        """What is to be said; that nothing is, too."""
        notes = [row["note"] for row in self.rows if row["note"]]
        return Text("\n".join(f"! {printable(note)}" for note in notes) if notes else "nothing to remark")

    def _is_prose(self) -> bool:
        return True
