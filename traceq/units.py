"""Numbers as people read and type them; base units (ns, bytes, percent) everywhere else."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

NS_PER = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)\s*")
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


MOST_NS = 2**63 - 1


def parse_duration_ns(text: str) -> int:
    """`12.3ms` as 12300000, to the nearest ns. Raises ValueError for what is no number with ns, us, ms or s."""
    if not (found := DURATION.fullmatch(text)):
        raise ValueError(f"{text!r} is not a duration such as 12.3ms (units: ns, us, ms, s)")
    ns = int((Decimal(found[1]) * NS_PER[found[2]]).to_integral_value(ROUND_HALF_UP))
    if ns > MOST_NS:
        raise ValueError(f"{text!r} is longer than a store can hold (292 years)")
    return ns


def show_ns(ns: float) -> str:
    """Three to five significant digits in the largest unit that keeps the number at 1 or more."""
    size = abs(ns)
    for unit in ("s", "ms", "µs"):
        if size >= NS_PER[unit]:
            return f"{ns / NS_PER[unit]:,.3f} {unit}"
    return f"{ns:,.0f} ns" if float(ns).is_integer() else f"{ns:,.1f} ns"


def show_bytes(count: float) -> str:
    """Binary multiples, two decimals from KiB on."""
    size, unit = float(count), BYTE_UNITS[0]
    for unit in BYTE_UNITS:
        if abs(size) < 1024 or unit == BYTE_UNITS[-1]:
            break
        size /= 1024
    return f"{count:,.0f} B" if unit == "B" else f"{size:,.2f} {unit}"


def show_change(value: float | None, unit: str | None) -> str:
    """A difference with its sign."""
    if value is None:
        return "–"
    return f"{'+' if value > 0 else ''}{show_value(value, unit)}" if value else "0"


def show_value(value: object, unit: str | None) -> str:
    """A cell of a table: `value` in base units, made readable by the column's `unit`; `–` for what was not recorded."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if unit == "ns":
        return show_ns(value)
    if unit == "bytes":
        return show_bytes(value)
    if unit == "percent":
        return f"{value:,.1f} %"
    if unit == "ratio":
        return f"{value:,.2f}×"
    if isinstance(value, int) or (value.is_integer() and abs(value) < 2**53):
        return f"{value:,.0f}"
    return f"{value:,.4g}"
