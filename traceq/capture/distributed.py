"""Under torchrun: each rank writes a file of its own, and rank 0 takes them in as one run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traceq.capture.record import read_record

PATIENCE_S = 120.0
PATIENCE_WHEN_ASKED_TO_END_S = 15.0  # torchrun kills after 30
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class World:
    """Which rank this is, of how many, and how many of them are on this machine."""

    rank: int
    size: int
    local_size: int

    @property
    def others(self) -> list[int]:
        """The ranks on this machine whose files rank 0 waits for."""
        return [rank for rank in range(self.local_size) if rank != self.rank]

    @property
    def job(self) -> str:
        """A name that only the ranks of this start share: they have one parent, which was started once."""
        parent = os.getppid()
        started = ""
        with contextlib.suppress(OSError, IndexError):
            started = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{parent}-{started}" if started else str(parent)


def world() -> World | None:
    """This process's place as torchrun tells it; None for a process on its own."""
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return World(rank, size, int(local) if local.isdigit() else size) if size > 1 else None


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Put SIGTERM off until all is written and read: where one rank fails torchrun sends it to the others at once."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def gather(here: World, own: Path) -> tuple[list[str], list[int]]:
    """The traces of all ranks whose files lie beside `own`, and the ranks of this machine that never came."""
    paths = {rank: own.with_name(own.name.replace(f"rank{here.rank}", f"rank{rank}")) for rank in range(here.size)}
    until = time.monotonic() + PATIENCE_S
    while (late := [rank for rank in here.others if not _is_complete(paths[rank])]) and time.monotonic() < until:
        if signal.SIGTERM in signal.sigpending():
            until = min(until, time.monotonic() + PATIENCE_WHEN_ASKED_TO_END_S)
        time.sleep(LOOK_EVERY_S)
    found = [str(path) for rank, path in paths.items() if _is_complete(path) and path.exists()]
    return found, late


def _is_complete(trace: Path) -> bool:
    """Whether the parent of that rank has finished: only it knows how its child ended."""
    record = read_record(str(trace.with_name(trace.name.removesuffix(".json.gz") + ".capture.json")))
    return record is not None and record.status is not None
