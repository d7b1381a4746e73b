"""A stretch of time that one screen asks the timeline to show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Where to look: a stretch of time, or a step; `device` and `rank` where they are known, `stream` if it is work."""

    start_ns: int | None = None
    dur_ns: int | None = None
    step: int | None = None
    rank: int | None = None
    device: int | None = None
    stream: int | None = None
