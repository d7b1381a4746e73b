"""Which block of a model is worth compiling first: gain per second of compile time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traceq.analysis.stats import difference_of_medians, median


@dataclass(frozen=True)
class Block:
    """What compiling one block alone brings: time a step, whether that is real, and what it costs at the start."""

    name: str
    step_ns: float
    gain_ns: float
    gain_low_ns: float | None
    gain_high_ns: float | None
    verdict: str
    compile_ns: int | None
    gain_per_s: float | None


def ranked(
    eager: Sequence[float], compiled: Mapping[str, Sequence[float]], compile_ns: Mapping[str, int | None]
) -> list[Block]:
    """Blocks by gain per second of compile time, best first; those that gain nothing come last, the worst at the end.

    `eager` and `compiled` (by block) are step times in ns, one for each measurement without the profiler.
    """
    found = []
    for name, steps in compiled.items():
        gain = difference_of_medians(steps, eager)
        cost = compile_ns.get(name)
        per_s = gain.value / (cost / 1e9) if cost else None
        found.append(Block(name, median(steps), gain.value, gain.low, gain.high, gain.verdict, cost, per_s))
    return sorted(found, key=_place)


def _place(block: Block) -> tuple[int, float, str]:
    if block.gain_per_s is None:
        return 1 if block.gain_ns > 0 else 2, -block.gain_ns, block.name
    return (0, -block.gain_per_s, block.name) if block.gain_ns > 0 else (2, -block.gain_ns, block.name)
