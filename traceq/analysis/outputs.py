"""How far the outputs of two runs of one script lie apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Distance:
    """The largest difference of any value kept, absolute and relative to the largest value of the first run.

    None where there is nothing to compare. `values` were compared; `fault` says what cannot be: other shapes, NaN.
    """

    what: str
    values: int
    absolute: float | None
    relative: float | None
    fault: str | None = None


def distances(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> list[Distance]:
    """Of outputs and losses, each where either run kept some."""
    found = []
    for what, numbers in (("losses", _losses), ("outputs", _outputs)):
        a, b = numbers(first or {}), numbers(second or {})
        if a or b:
            found.append(_distance(what, a, b))
    return found


def _losses(kept: Mapping[str, Any]) -> list[float]:
    return [float(value) for value in kept.get("losses", ())]


def _outputs(kept: Mapping[str, Any]) -> list[float]:
    return [float(value) for call in kept.get("outputs", ()) for tensor in call for value in tensor["values"]]


def _distance(what: str, first: Sequence[float], second: Sequence[float]) -> Distance:
    if len(first) != len(second):
        return Distance(what, 0, None, None, f"{len(first)} values against {len(second)}")
    odd = sum(
        math.isnan(a) != math.isnan(b) or math.isinf(a) != math.isinf(b) for a, b in zip(first, second, strict=True)
    )
    if odd:
        return Distance(what, len(first), None, None, f"{odd} values are NaN or infinite on one side only")
    both = [(a, b) for a, b in zip(first, second, strict=True) if math.isfinite(a) and math.isfinite(b)]
    absolute = max((abs(a - b) for a, b in both), default=0.0)
    largest = max((abs(a) for a, _ in both), default=0.0)
    return Distance(what, len(first), absolute, absolute / largest if largest else None)
