"""Judgements for pipelines: JUnit XML, and the lines that GitHub's runner shows beside a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from traceq.analysis.check import Judgement
from traceq.show.text import printable
from traceq.units import show_value

Writer = Callable[[Sequence[Judgement], IO[str]], None]
LEVELS = {"ok": "notice", "crossed": "error", "not judged": "warning"}


def sentence(j: Judgement) -> str:
    """A judgement in one line."""
    change = f"{'+' if j.difference.value > 0 else ''}{show_value(j.difference.value, j.unit)}"
    pct = f", {100 * j.difference.value / j.base:+.1f} %" if j.base else ""
    values = f"{show_value(j.base, j.unit)} → {show_value(j.new, j.unit)} ({change}{pct})"
    return printable(
        f"{j.threshold.measure}: {values}; --{j.threshold.kind} {j.threshold.text}: {j.status}, {j.reason}"
    )


def junit(judged: Sequence[Judgement], out: IO[str]) -> None:
    """One test case a threshold: a crossed one fails, one that cannot be judged is skipped."""
    failed, skipped = (sum(j.status == status for j in judged) for status in ("crossed", "not judged"))
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f'<testsuite name="traceq check" tests="{len(judged)}" failures="{failed}" skipped="{skipped}">\n')
    for j in judged:
        name = quoteattr(f"{j.threshold.kind} {j.threshold.text}")
        text = escape(sentence(j))
        inner = {
            "ok": f"<system-out>{text}</system-out>",
            "crossed": f"<failure message={quoteattr(sentence(j))}/>",
            "not judged": f"<skipped message={quoteattr(sentence(j))}/>",
        }[j.status]
        out.write(f'  <testcase classname="traceq" name={name}>{inner}</testcase>\n')
    out.write("</testsuite>\n")


def github(judged: Sequence[Judgement], out: IO[str]) -> None:
    """A workflow command a threshold."""
    for j in judged:
        text = sentence(j).replace("%", "%25")
        out.write(f"::{LEVELS[j.status]} title=traceq check::{text}\n")


WRITERS: Mapping[str, Writer] = {"junit": junit, "github": github}
