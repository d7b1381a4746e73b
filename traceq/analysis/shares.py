"""Whole nanoseconds that still sum: dividing integers into integers by the largest remainder."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def per_step(totals: Sequence[int], steps: int) -> list[int]:
    """Each of `totals` divided by `steps`, rounded so that the results sum to the rounded quotient of the sum."""
    exact = [Fraction(total, steps) for total in totals]
    return _rounded(exact, round(sum(exact, Fraction(0))))


def split(total: int, weights: Sequence[int] | Sequence[Fraction]) -> list[int]:
    """`total` in proportion to `weights` (equal parts where all are zero); the parts sum to it."""
    whole = sum(weights)
    exact = [Fraction(total * w, whole) if whole else Fraction(total, len(weights)) for w in weights]
    return _rounded(exact, total)


def _rounded(exact: Sequence[Fraction], wanted: int) -> list[int]:
    floors = [value.numerator // value.denominator for value in exact]
    missing = wanted - sum(floors)
    order = sorted(range(len(exact)), key=lambda n: (floors[n] - exact[n], n))
    for n in order[:missing]:
        floors[n] += 1
    return floors
