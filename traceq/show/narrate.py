"""What goes to standard error: notes, the trust line, errors and progress. Standard output is for data alone."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from traceq.errors import TraceqError
from traceq.show.text import printable

PROGRESS_AFTER_S = 0.5
MOST_LINES = 6
MOST_NAMES = 3


def note(text: str) -> None:
    """One line of narration; where nobody can read it, the work goes on."""
    _say(f"traceq: {printable(text)}")


def fail(error: TraceqError) -> None:
    """The error's line, and the hint below it."""
    _say(f"traceq: error: {printable(error.message)}")
    if error.hint:
        _say(f"hint: {printable(error.hint)}")


def _say(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # a full disk, a closed stream; what lies unwritten would fail again at the end
        sys.stderr = io.StringIO()


def trust(found: dict[str, dict[str, Any]]) -> None:
    """The trust line of each run that has something to say; runs that say the same share one, and come last."""
    alike: dict[str, list[str]] = {}
    for run, entry in found.items():
        if entry["notes"]:
            alike.setdefault("; ".join(entry["notes"]), []).append(run)
    lines = sorted(alike.items(), key=lambda line: len(line[1]))
    for notes, runs in lines[:MOST_LINES]:
        who = ", ".join(runs) if len(runs) <= MOST_NAMES else f"{len(runs)} runs"
        note(f"trust: {who}: {notes}")
    if more := sum(len(runs) for _, runs in lines[MOST_LINES:]):
        note(f"trust: {more} more {'runs have' if more > 1 else 'run has'} notes (traceq query trust)")


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int | None], None]]]:
    """Bytes and rate of the files being read, on a terminal and for work of over half a second."""
    if not sys.stderr.isatty():
        yield lambda _: _nothing
        return
    bars = _Bars()
    try:
        yield bars.add
    finally:
        bars.stop()


def _nothing(done: int, total: int | None) -> None:
    """Progress that nobody watches."""


class _Bars:
    """A bar for the file being read; drawn only once the work has lasted a while."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._started = time.monotonic()
        self._task: Any = None

    def add(self, path: str) -> Callable[[int, int | None], None]:
        self._task = None

        def advance(done: int, total: int | None) -> None:
            if time.monotonic() - self._started < PROGRESS_AFTER_S:
                return
            if self._bars is None:
                self._bars = _draw()
            if self._task is None:
                self._task = self._bars.add_task(printable(path), total=total)
            what = f"{printable(path)} (deriving)" if total and done >= total else printable(path)
            self._bars.update(self._task, completed=done, total=total, description=what)

        return advance

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()


def _draw() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    ]
    bars = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    bars.start()
    return bars
