"""The order of things: warm up, time in blocks, time step by step, look at memory, profile.

The order matters. A profiler that has run slows what follows, and every synchronisation changes what it measures. So
the profiler comes last, and pipelined blocks touch the GPU's queue only at their ends.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceq.capture.recorder import Recorder

LEAST_WARMUP = 5
MOST_WARMUP = 20
STABLE_STEPS = 3
STABLE_WITHIN = 1.1
BLOCKS = 7
BLOCK_NS = 100_000_000
BLOCK_STEPS = 10
SYNCED_STEPS = 10


@dataclass(frozen=True)
class Plan:
    """How many steps a block has, and how many are timed one by one."""

    block_steps: int
    synced_steps: int


def run(recorder: Recorder) -> Iterator[int]:
    """The course of one script. Each value is the number of steps to let pass before it goes on."""
    spec = recorder.spec
    if spec.is_timed:
        took = yield from _warm_up(recorder, spec.warmup)
        recorder.drop_early()
        yield from _time(recorder, _plan(took))
    elif spec.warmup:
        yield spec.warmup
    recorder.drop_early()
    yield from _profile(recorder)


def _warm_up(recorder: Recorder, wanted: int | None) -> Generator[int, None, list[int]]:
    """Let steps pass until they take the same time and nothing compiles; returns what the last ones took."""
    wait = _synchroniser(recorder)
    took: list[int] = []
    compiled = _compilations()
    wait()
    for _ in range(MOST_WARMUP if wanted is None else wanted):
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


def _plan(took: list[int]) -> Plan:
    step_ns = sorted(took)[len(took) // 2] if took else BLOCK_NS
    return Plan(max(1, min(BLOCK_STEPS, math.ceil(BLOCK_NS / max(1, step_ns)))), SYNCED_STEPS)


def _time(recorder: Recorder, plan: Plan) -> Iterator[int]:
    wait = _synchroniser(recorder)
    timings = recorder.record.timings
    _forget_peak(recorder)
    wait()
    for block in range(BLOCKS):
        started = time.perf_counter_ns()
        yield plan.block_steps
        wait()
        ns = time.perf_counter_ns() - started
        timings.append({"kind": "pipelined", "block": block, "steps": plan.block_steps, "ns": ns})
    for block in range(plan.synced_steps):
        started = time.perf_counter_ns()
        yield 1
        wait()
        timings.append({"kind": "synced", "block": block, "steps": 1, "ns": time.perf_counter_ns() - started})
    _take_peak(recorder)


def _profile(recorder: Recorder) -> Iterator[int]:
    spec = recorder.spec
    profile = recorder.profile()
    for _ in range(spec.wait + 1 + spec.active):
        yield 1
        profile.step()
    recorder.save_profile()


def _synchroniser(recorder: Recorder) -> Callable[[], None]:
    cuda = recorder.torch.cuda
    synchronise: Callable[[], None] = cuda.synchronize
    return lambda: synchronise() if cuda.is_initialized() else None


def _compilations() -> int:
    """How many graphs Dynamo has compiled so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["stats"]["unique_graphs"]) if utils else 0


def _forget_peak(recorder: Recorder) -> None:
    if recorder.torch.cuda.is_initialized():
        recorder.torch.cuda.reset_peak_memory_stats()


def _take_peak(recorder: Recorder) -> None:
    """The peak of allocated memory; of reserved memory where CUDA graphs keep a pool that no allocation shows."""
    cuda = recorder.torch.cuda
    if not cuda.is_initialized():
        return
    has_pool = "torch._inductor.cudagraph_trees" in sys.modules
    recorder.record.peak_memory_bytes = int(cuda.max_memory_reserved() if has_pool else cuda.max_memory_allocated())
    if has_pool:
        recorder.record.note("peak memory is what was reserved: CUDA graphs keep a pool of their own")
