"""Signals that ask a command of several children to end: what runs is saved, and no other is begun."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_heeded(number: int) -> bool:
    """Whether a signal means anything here: under nohup, and in the background of a script, some do not."""
    return signal.getsignal(number) is not signal.SIG_IGN


@contextlib.contextmanager
def heeded(heard: list[int]) -> Iterator[None]:
    """Put signals that come between two children into `heard` too, and go on: what is read in is read to its end."""

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)

    before = {number: signal.signal(number, hear) for number in ASKING if is_heeded(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
