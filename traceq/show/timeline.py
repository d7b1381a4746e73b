"""The rows of the query `timeline` as a picture: one line a lane, one letter a bucket."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import IO, Any

from rich.text import Text

from traceq.query import Result
from traceq.show.palette import colour
from traceq.show.table import console
from traceq.show.text import printable
from traceq.units import show_ns

LABEL_WIDTH = 24
KINDS = {"stream": "GPU work, by category", "idle": "GPU idle, by cause", "ops": "operators", "calls": "CUDA calls"}
TICKS = 5
FULL_PCT = 50.0


def buckets_for(out: IO[str], is_wide: bool) -> int:
    """How many buckets a line of `out` has room for."""
    return 400 if is_wide else max(console(out).width - LABEL_WIDTH - 1, 10)


def draw(result: Result, out: IO[str], is_wide: bool, buckets: int) -> None:
    """Draw lanes as letters, which the line above them explains; a capital where at least half of a bucket is filled."""
    screen = console(out, is_wide)
    rows = [dict(zip((c.name for c in result.columns), row, strict=True)) for row in result.rows]
    first = rows[0]
    step = "the whole trace" if first["step"] is None else f"step {first['step']}"
    rank = "" if first["rank"] is None else f", rank {first['rank']}"
    screen.print(Text(printable(f"{first['run']}{rank}: {step}, {show_ns(first['window_ns'])}"), style="bold"))
    screen.print(_axis(first["window_ns"], buckets))
    for kind, title in KINDS.items():
        mine = [r for r in rows if r["kind"] == kind]
        if not mine:
            continue
        letters = _letters(r["what"] for r in mine)
        screen.print(_legend(title, letters))
        for lane, cells in groupby(mine, key=lambda r: r["lane"]):
            screen.print(_lane(lane, list(cells), letters, buckets))


def _axis(window_ns: int, buckets: int) -> Text:
    line = [" "] * buckets
    for tick in range(TICKS):
        label = f"|{show_ns(window_ns * tick / TICKS)}"
        start = buckets * tick // TICKS
        line[start : start + len(label)] = label
    return Text(" " * (LABEL_WIDTH + 1) + "".join(line)[:buckets], style="dim")


def _lane(lane: str, cells: Sequence[dict[str, Any]], letters: dict[str, str], buckets: int) -> Text:
    text = Text(f"{printable(lane)[:LABEL_WIDTH]:<{LABEL_WIDTH}} ")
    by_bucket = {c["bucket"]: c for c in cells}
    for bucket in range(buckets):
        cell = by_bucket.get(bucket)
        if cell is None:
            text.append(" ")
            continue
        letter = letters[cell["what"]]
        text.append(letter.upper() if cell["covered_pct"] >= FULL_PCT else letter, style=colour(cell["what"]))
    return text


def _letters(words: Iterable[str]) -> dict[str, str]:
    """A letter or digit for each word, of its own letters where one is free."""
    found: dict[str, str] = {}
    for word in sorted(set(words)):
        free = [c for c in word.lower() + string.ascii_lowercase + string.digits if c.isalnum() and c.isascii()]
        found[word] = next((c for c in free if c not in found.values()), "?")
    return found


def _legend(title: str, letters: dict[str, str]) -> Text:
    text = Text(f"{title}: ")
    for what, letter in letters.items():
        text.append(f"{letter} {what}  ", style=colour(what))
    return text
