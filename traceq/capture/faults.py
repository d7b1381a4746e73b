"""Faults of what runs beside the script: they are told, and never raised into it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Note = Callable[[str], None]


@contextlib.contextmanager
def told(note: Note, what: str) -> Iterator[None]:
    """Go on after a fault, once `note` has been given what did not work and why."""
    try:
        yield
    except Exception as error:
        note(f"{what}: {reason(error)}")


def reason(error: BaseException) -> str:
    """An exception in one line: its kind, and the first line of what it says."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
