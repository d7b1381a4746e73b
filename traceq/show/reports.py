"""Judgements for pipelines: JUnit XML, and the lines that GitHub's runner shows beside a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from traceq.analysis.check import Judgement
from traceq.show.text import printable
from traceq.units import show_value

Writer = Callable[[str, Sequence[Judgement], IO[str]], None]
COUNTED = {"failures": "crossed", "errors": "not recorded", "skipped": "not judged"}  # of JUnit
LEVELS = {"ok": "notice", "crossed": "error", "not judged": "warning", "not recorded": "error"}


def sentence(j: Judgement) -> str:
    """A judgement in one line."""
    values = f"{show_value(j.base, j.unit)} → {show_value(j.new, j.unit)}"
    if j.difference:
        change = f"{'+' if j.difference.value > 0 else ''}{show_value(j.difference.value, j.unit)}"
        values += f" ({change}{'' if j.pct is None else f', {j.pct:+.1f} %'})"
    joined = " " if j.status == "not recorded" else ", "
    return printable(
        f"{j.threshold.measure}: {values}; --{j.threshold.kind} {j.threshold.text}: {j.status}{joined}{j.reason}"
    )


def pair(base: str, new: str) -> str:
    """What was compared, by the labels."""
    return printable(f"{new} against {base}")


def junit(compared: str, judged: Sequence[Judgement], out: IO[str]) -> None:
    """One test case a threshold: a crossed one fails, one not judged is skipped, one not recorded is an error."""
    counts = {name: sum(j.status == status for j in judged) for name, status in COUNTED.items()}
    numbers = "".join(f' {name}="{count}"' for name, count in counts.items())
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    suite = quoteattr(f"traceq check: {compared}")
    out.write(f'<testsuite name={suite} tests="{len(judged)}"{numbers}>\n')
    for j in judged:
        name = quoteattr(f"{j.threshold.kind} {j.threshold.text}")
        said = f"message={quoteattr(sentence(j))}/>"
        inner = {
            "ok": f"<system-out>{escape(sentence(j))}</system-out>",
            "crossed": f"<failure {said}",
            "not judged": f"<skipped {said}",
            "not recorded": f"<error {said}",
        }[j.status]
        out.write(f'  <testcase classname="traceq" name={name}>{inner}</testcase>\n')
    out.write("</testsuite>\n")


def github(compared: str, judged: Sequence[Judgement], out: IO[str]) -> None:
    """A workflow command a threshold."""
    for j in judged:
        text = f"{compared}: {sentence(j)}".replace("%", "%25")
        out.write(f"::{LEVELS[j.status]} title=traceq check::{text}\n")


WRITERS: Mapping[str, Writer] = {"junit": junit, "github": github}
