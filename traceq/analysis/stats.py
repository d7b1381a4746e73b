"""Medians, bootstrap intervals with a fixed seed, and whether a difference is real.

The draws of a sample depend on its values alone. So an interval is the same in every run, the difference of A and B is
the negative of that of B and A, and a sample compared with itself gives zero without any width.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

SEED = "traceq"
DRAWS = 2001  # so that the 2.5th and 97.5th percentiles are draws themselves: the 51st and the 1951st
TAIL = 50
REAL, WITHIN_NOISE, NOISE_UNKNOWN = "real", "within noise", "noise unknown"
DISTURBED = "disturbed while timing"  # the noise is unknown, and known to be no small one


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; low and high are None where the noise is not known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference:
    """Second less first, with its 95 % interval and what may be said of it: one of the verdicts above."""

    value: float
    low: float | None
    high: float | None
    verdict: str


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values have a median")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def bootstrap_median(values: Sequence[float]) -> Estimate:
    """The median with its bootstrap percentile interval; without an interval for fewer than two values."""
    if len(values) < 2:
        return Estimate(median(values))
    drawn = sorted(_medians(values))
    return Estimate(median(values), drawn[TAIL], drawn[DRAWS - 1 - TAIL])


def difference_of_medians(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Median of `second` less that of `first`, from samples on both sides."""
    value = median(second) - median(first)
    if len(first) < 2 or len(second) < 2:
        return Difference(value, None, None, NOISE_UNKNOWN)
    drawn = sorted(b - a for a, b in zip(_medians(first), _medians(second), strict=True))
    return _judged(value, drawn[TAIL], drawn[DRAWS - 1 - TAIL])


def difference_of_estimates(first: Estimate, second: Estimate) -> Difference:
    """The difference where only intervals are known: their widths add as errors that are independent do."""
    value = second.value - first.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Difference(value, None, None, NOISE_UNKNOWN)
    below = math.hypot(second.value - second.low, first.high - first.value)
    above = math.hypot(second.high - second.value, first.value - first.low)
    return _judged(value, value - below, value + above)


def disturbed(found: Difference) -> Difference:
    """The same where a side was disturbed while it was timed: its interval says nothing."""
    return Difference(found.value, None, None, DISTURBED)


def _judged(value: float, low: float, high: float) -> Difference:
    return Difference(value, low, high, REAL if low > 0 or high < 0 else WITHIN_NOISE)


def _medians(values: Sequence[float]) -> list[float]:
    draw = random.Random(f"{SEED}:{[float(v) for v in values]}")
    return [median(draw.choices(values, k=len(values))) for _ in range(DRAWS)]
