"""What is under the cursor of a timeline, in words."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from traceq.show.palette import sign
from traceq.show.text import printable, short_name
from traceq.tui.widgets.answer import Answer, fit
from traceq.units import show_ns


class Named(Answer):
    """The first row of `timeline_at` on three lines, then the names of the others; `y` copies the whole name."""

    DEFAULT_CSS = """
    Named { height: 6; }
    """

    def draw(self, width: int, height: int) -> Text:
        """Name, times, what is known, what else there is."""
        first, *others = self.rows
        what = f"{sign(first['kind'], first['what']).upper()} {printable(first['what'])}"
        name = printable(str(first["name"])) if first["name"] != first["what"] else ""
        text = Text(no_wrap=True, overflow="crop")
        text.append(what, f"bold {self.style(first['what'])}")
        text.append(f" {short_name(name, max(width - len(what) - 1, 1))}\n", "bold")
        where = f"starts at {show_ns(first['start_ns'])}, lasts {show_ns(first['dur_ns'])}"
        where += "" if first["step"] is None else f", step {first['step']}"
        text.append(fit(f"{where} · {first['lane']}", width) + "\n")
        text.append(fit(_known(first), width) + "\n")
        if others:
            also = ", ".join(f"{str(row['name'])[:60]} {show_ns(row['inside_ns'])}" for row in others)
            text.append(fit(f"{first['items']:,} in this cell: also {also}", width), "dim")
        return text

    def copied(self) -> str:
        """The name of the first."""
        return str(self.rows[0]["name"]) if self.rows else ""


def _known(row: dict[str, Any]) -> str:
    words = []
    if row["op"]:
        words.append(f"op {row['op']}")
    if row["launch"]:
        words.append(f"launched {show_ns(row['latency_ns'])} before by {row['launch']}")
    if row["evidence"]:
        words.append(f"shown by {row['evidence']}")
    if row["next_work"]:
        words.append(f"ended by {short_name(row['next_work'], 40)}")
    if row["module"]:
        words.append(f"in {row['module']}")
    return " · ".join(words)
