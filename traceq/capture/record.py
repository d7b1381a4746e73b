"""What the parent tells the child (`Spec`), and what the child writes beside its trace (`Record`): both JSON files."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = "traceq-capture"
VERSION = 1
NOT_WRITTEN = "the trace could not be written"  # how a note begins that says why
TWO_PROFILERS = "the script profiles itself, so nsys was not told of its steps"
NO_TRACER = "this torch was built without its tracer (Kineto): steps are timed, and there will be no trace"


@dataclass
class Spec:
    """One run of the script in one child process.

    `kind` says what `target` is: `script`, `module` or `code`. `trace` is the child's file, `record` what it tells the
    parent, which keeps it.
    `seed` is None where the script's own randomness is left alone.
    """

    kind: str
    target: str
    argv: list[str]
    trace: str
    record: str
    label: str
    command: str
    mode: str = "eager"
    step: str = "auto"
    wait: int = 1
    warmup: int | None = None
    active: int = 5
    is_timed: bool = True
    shapes: bool = True
    stack: bool = False
    memory: bool = False
    flops: bool = False
    seed: int | None = None
    compile_optimizer: bool = False
    block: str | None = None
    keep_outputs: bool = False
    profiler: str = "torch"
    rank: int | None = None
    world_size: int | None = None
    is_quiet: bool = False


@dataclass
class Record:
    """What one child found out; every field but the first few is None or empty where it was not recorded."""

    command: str
    mode: str
    label: str
    rank: int | None = None
    world_size: int | None = None
    torch_version: str | None = None
    triton_version: str | None = None
    gpu: str | None = None
    seed: int | None = None
    trace: str | None = None
    timings: list[dict[str, Any]] = field(default_factory=list)
    peak_memory_bytes: int | None = None
    step_pipelined_ns: dict[str, float] | None = None
    step_synced_ns: dict[str, float] | None = None
    facts: dict[str, Any] | None = None
    peaks: dict[str, Any] | None = None
    outputs: dict[str, Any] | None = None
    blocks: list[str] = field(default_factory=list)
    own_traces: list[str] = field(default_factory=list)
    steps: int = 0
    step_source: str | None = None
    status: int | None = None
    notes: list[str] = field(default_factory=list)
    format: str = FORMAT
    version: int = VERSION

    def note(self, text: str) -> None:
        """Add a sentence for the user, once."""
        if text not in self.notes:
            self.notes.append(text)


def write(path: str, what: Spec | Record) -> None:
    """Write a whole file or none: a reader never sees half of it."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(asdict(what), file, default=str)
    os.replace(part, path)


def read_spec(path: str) -> Spec:
    """The spec in a file that the parent wrote."""
    with open(path, encoding="utf-8") as file:
        return Spec(**json.load(file))


def read_record(path: str) -> Record | None:
    """The record in a file that a child wrote; None where it wrote none."""
    try:
        with open(path, encoding="utf-8") as file:
            return Record(**json.load(file))
    except FileNotFoundError:
        return None
