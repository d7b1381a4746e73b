"""The order of things: warm up, time in blocks, time step by step, look at memory, profile.

The order matters. A profiler that has run slows what follows, and every synchronisation changes what it measures. So
the profiler comes last, and pipelined blocks touch the GPU's queue only at their ends.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceq.units import show_bytes

if TYPE_CHECKING:
    from traceq.capture.recorder import Recorder

LEAST_WARMUP = 5
MOST_WARMUP = 20
STABLE_STEPS = 3
STABLE_WITHIN = 1.1
BLOCKS = 7
BLOCK_NS = 100_000_000
SAFE_BLOCK_STEPS = 10  # of a script that may end any time
MOST_BLOCK_STEPS = 1000  # a GPU takes a tenth of a second to settle on its clock
BLOCKS_IN_A_ROW = 4
SYNCED_STEPS = 10
LEAST_SYNCED = 3
FEW = "too few steps to time them: all that is left is profiled"


@dataclass(frozen=True)
class Plan:
    """How many steps a block has, and how many are timed one by one; 0 steps a block is no timing at all."""

    block_steps: int
    synced_steps: int


def plan(step_ns: float, left: int | None, in_a_row: int = MOST_BLOCK_STEPS * BLOCKS_IN_A_ROW) -> Plan:
    """Blocks of a tenth of a second if the script gives so many steps; `left` before those that are profiled.

    Of the steps that a loop takes in a row a block has a fourth at most: so most blocks are free of what comes between.
    """
    wanted = max(1, math.ceil(BLOCK_NS / max(1.0, step_ns)))
    if left is None:
        return Plan(min(wanted, SAFE_BLOCK_STEPS), SYNCED_STEPS)
    if left < BLOCKS + LEAST_SYNCED:
        return Plan(0, 0)
    synced = max(LEAST_SYNCED, min(SYNCED_STEPS, left // 4))
    most = min(MOST_BLOCK_STEPS, in_a_row // BLOCKS_IN_A_ROW, (left - synced) // BLOCKS)
    return Plan(max(1, min(wanted, most)), synced)


def run(recorder: Recorder) -> Iterator[int]:
    """The course of one script. Each value is the number of steps to let pass before it goes on."""
    spec = recorder.spec
    found = recorder.expected()
    expected = found.steps if found else None
    recorded = spec.wait + 1 + spec.active

    def left() -> int | None:
        """Steps that need not be kept for the profiler."""
        return None if expected is None else expected - recorder.count - recorded

    if expected is not None and expected - recorder.count <= recorded + LEAST_WARMUP:
        yield from _profile_few(recorder, expected - recorder.count)
        return
    if expected is not None:
        recorder.drop_early()  # there will be a trace of its own
    if spec.is_timed:
        took = yield from _warm_up(recorder, spec.warmup, left())
        recorder.drop_early()
        step_ns = sorted(took)[len(took) // 2] if took else BLOCK_NS
        yield from _time(recorder, plan(step_ns, left(), found.in_a_row) if found else plan(step_ns, None))
    elif spec.warmup:
        yield spec.warmup
    recorder.drop_early()
    yield from _record(recorder, spec.wait, spec.active)
    recorder.is_complete = True


def _warm_up(recorder: Recorder, wanted: int | None, left: int | None) -> Generator[int, None, list[int]]:
    """Let steps pass until they take the same time and nothing compiles; returns what the last ones took."""
    wait = _synchroniser(recorder)
    took: list[int] = []
    compiled = _compilations()
    most = MOST_WARMUP if left is None else max(LEAST_WARMUP, min(MOST_WARMUP, left - BLOCKS - LEAST_SYNCED))
    wait()
    for _ in range(most if wanted is None else wanted):
        started = time.perf_counter_ns()
        yield 1
        wait()
        took.append(time.perf_counter_ns() - started)
        if (now := _compilations()) != compiled:
            compiled = now
            took.clear()
        if wanted is None and _is_stable(took):
            break
    return took[-STABLE_STEPS:]


def _is_stable(took: list[int]) -> bool:
    last = took[-STABLE_STEPS:]
    return len(took) >= LEAST_WARMUP and max(last) < STABLE_WITHIN * min(last)


def _time(recorder: Recorder, planned: Plan) -> Iterator[int]:
    if not planned.block_steps:
        recorder.record.note(f"too few steps to time them: less than {BLOCKS + LEAST_SYNCED} besides those profiled")
        return
    wait = _synchroniser(recorder)
    timings = recorder.record.timings
    _forget_peak(recorder)
    wait()
    for block in range(BLOCKS):
        started = time.perf_counter_ns()
        yield planned.block_steps
        wait()
        ns = time.perf_counter_ns() - started
        timings.append({"kind": "pipelined", "block": block, "steps": planned.block_steps, "ns": ns})
    for block in range(planned.synced_steps):
        started = time.perf_counter_ns()
        yield 1
        wait()
        timings.append({"kind": "synced", "block": block, "steps": 1, "ns": time.perf_counter_ns() - started})
    _take_peak(recorder)


def _record(recorder: Recorder, wait: int, active: int) -> Iterator[int]:
    """Let `wait` steps pass, and one more for the profiler to begin in; record `active`."""
    profile = recorder.profile(wait, active)
    if profile is None:
        return
    for _ in range(wait + 1 + active):
        yield 1
        profile.step()
    recorder.save_profile()


def _profile_few(recorder: Recorder, left: int) -> Iterator[int]:
    """A script of so few steps is only profiled; what is recorded from its start on is left alone."""
    recorder.record.note(FEW)
    is_recorded = recorder.is_recording_early
    while recorder.is_recording_early:  # each is marked, until they are too many to keep
        yield 1
    if not is_recorded and left >= 2:
        yield from _record(recorder, 0, min(recorder.spec.active, left - 1))


def _synchroniser(recorder: Recorder) -> Callable[[], None]:
    cuda = recorder.torch.cuda
    synchronise: Callable[[], None] = cuda.synchronize
    return lambda: synchronise() if cuda.is_initialized() and not cuda.is_current_stream_capturing() else None


def _compilations() -> int:
    """How many graphs Dynamo has compiled so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["stats"]["unique_graphs"]) if utils else 0


def _forget_peak(recorder: Recorder) -> None:
    if recorder.torch.cuda.is_initialized():
        recorder.torch.cuda.reset_peak_memory_stats()


def _take_peak(recorder: Recorder) -> None:
    """The peak of allocated memory, and what CUDA graphs keep to be replayed in: no allocation shows that."""
    cuda = recorder.torch.cuda
    if not cuda.is_initialized():
        return
    kept = _kept_by_graphs(cuda)
    recorder.record.peak_memory_bytes = int(cuda.max_memory_allocated()) + kept
    if kept:
        recorder.record.note(f"peak memory: {show_bytes(kept)} of it is what CUDA graphs keep for their replays")


def _kept_by_graphs(cuda: Any) -> int:
    """Bytes of this device in pools besides the common one that are not allocated now: graphs work in them."""
    with contextlib.suppress(RuntimeError):  # an allocator that cannot tell, as CUDA's own asynchronous one
        own = [s for s in cuda.memory_snapshot() if any(s.get("segment_pool_id", ()))]
        return sum(s["total_size"] - s["allocated_size"] for s in own if s["device"] == cuda.current_device())
    return 0
