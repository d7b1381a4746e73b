"""The analyses as results in base units, so that every renderer can show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from traceq.analysis.advise import Advice
from traceq.analysis.check import Judgement
from traceq.analysis.diff import Diff, Measure
from traceq.analysis.match import Kernel
from traceq.query import Column, Result

TEXT, NS, COUNT = "VARCHAR", "BIGINT", "DOUBLE"


def _columns(*columns: tuple[str, str, str | None, str]) -> tuple[Column, ...]:
    return tuple(Column(*column) for column in columns)


PARTS = _columns(
    ("part", TEXT, None, "heavy, fusible, comm, memops, graph, carried_over, overlap (negative), idle, residual"),
    ("what", TEXT, None, "category, what became of fusible kernels, or cause of idle time"),
    ("a_ns", NS, "ns", "mean of a period in the first run"),
    ("b_ns", NS, "ns", "in the second"),
    ("delta_ns", NS, "ns", "second less first"),
    ("a_estimate_ns", NS, "ns", "of the un-profiled step of the first run"),
    ("b_estimate_ns", NS, "ns", "of that of the second"),
    ("delta_estimate_ns", NS, "ns", "second less first"),
)
CATEGORIES = _columns(
    ("category", TEXT, None, "what the kernels compute"),
    ("origin", TEXT, None, "who made them"),
    ("a_ns", NS, "ns", "kernel time in a period of the first run"),
    ("b_ns", NS, "ns", "of the second"),
    ("delta_ns", NS, "ns", "second less first"),
    ("a_kernels", COUNT, "count", "kernels in a period of the first run"),
    ("b_kernels", COUNT, "count", "of the second"),
)
GPUS = _columns(
    ("rank", "BIGINT", None, "rank of the trace; NULL if the file does not say"),
    ("device", "BIGINT", None, "GPU"),
    ("a_period_ns", NS, "ns", "mean of a period in the first run"),
    ("b_period_ns", NS, "ns", "in the second"),
    ("a_busy_ns", NS, "ns", "of that, work of the GPU in the first run"),
    ("b_busy_ns", NS, "ns", "in the second"),
    ("delta_busy_ns", NS, "ns", "second less first"),
    ("a_comm_ns", NS, "ns", "communication in the first run, waiting for peers included"),
    ("b_comm_ns", NS, "ns", "in the second"),
)
KERNELS = _columns(
    ("how", TEXT, None, "same name, changed (another kernel does it), removed, added"),
    ("category", TEXT, None, "what the kernels compute"),
    ("a_name", TEXT, None, "kernel of the first run"),
    ("b_name", TEXT, None, "kernel of the second"),
    ("a_kernels", COUNT, "count", "in a period of the first run"),
    ("b_kernels", COUNT, "count", "of the second"),
    ("a_ns", NS, "ns", "time in a period of the first run"),
    ("b_ns", NS, "ns", "of the second"),
    ("delta_ns", NS, "ns", "second less first"),
)
FUSED = _columns(
    ("name", TEXT, None, "kernel that a compiler made"),
    ("run", TEXT, None, "run that it is in"),
    ("replaced", TEXT, None, "operators of the other run's kernels that it replaced, with their number"),
    ("kernels", COUNT, "count", "of the compiler's, in a period"),
    ("made_ns", NS, "ns", "their time"),
    ("replaced_kernels", COUNT, "count", "kernels replaced, in a period"),
    ("replaced_ns", NS, "ns", "time of the kernels replaced; what several may have replaced is divided by their time"),
    ("delta_ns", NS, "ns", "second run less first"),
)

UNFUSED = _columns(
    ("run", TEXT, None, "run with compiled code"),
    ("name", TEXT, None, "kernel that no compiler made"),
    ("category", TEXT, None, "what it computes"),
    ("op", TEXT, None, "operator that launched it"),
    (
        "reason",
        TEXT,
        None,
        "why it was left; the query unfused_kernels has the words",
    ),
    ("kernels", COUNT, "count", "in all steps that count"),
    ("ns_per_step", COUNT, "ns", "their time in a step"),
)

SPLIT = _columns(
    ("part", TEXT, None, "data, launch, sync, other_idle, heavy, fusible, memops, comm, other_busy, residual"),
    ("part_ns", NS, "ns", "its time in a step; the parts sum to the step"),
    ("pct_of_step", COUNT, "percent", "of the step"),
)


def split(found: Advice) -> Result:
    """The step in the order in which one should look."""
    rows: list[tuple[Any, ...]] = [(part, ns, 100 * ns / found.step_ns) for part, ns in found.split_ns.items()]
    return Result("advise", {"run": found.run}, SPLIT, rows)


def parts(found: Diff) -> Result:
    """Where the difference comes from."""
    rows: list[tuple[Any, ...]] = [
        (
            p.part, p.what, p.first_ns, p.second_ns, p.delta_ns,
            p.first_estimate_ns, p.second_estimate_ns, p.delta_estimate_ns,
        )
        for p in found.parts
    ]  # fmt: skip
    return Result("diff", {"a": found.first.label, "b": found.second.label}, PARTS, rows)


def categories(found: Diff) -> Result:
    """Kernel time of a period by category and origin; by category alone, of steps or traces, where there are none."""
    if found.safe:
        rows = [
            (
                r["category"], None, r["a_ns"], r["b_ns"], r["delta_ns"],
                *(None if r[f"{side}_ns"] is None else r[f"{side}_kernels"] for side in ("a", "b")),
            )
            for r in found.safe
            if r["category"] != "all"
        ]  # fmt: skip
        return Result("diff_categories", {}, CATEGORIES, rows)
    sums: dict[tuple[str, str], list[Any]] = defaultdict(lambda: [0, 0, Fraction(0), Fraction(0)])
    for n, side in enumerate((found.first, found.second)):
        for kernel in side.kernels:
            sums[kernel.category, kernel.origin][n] += kernel.ns
            sums[kernel.category, kernel.origin][n + 2] += kernel.count
    order = sorted(sums, key=lambda key: (-max(sums[key][:2]), key))
    has = [bool(side.parts) for side in (found.first, found.second)]
    return Result("diff_categories", {}, CATEGORIES, [(*key, *_category(sums[key], has)) for key in order])


def _category(sums: Sequence[Any], has: Sequence[bool]) -> tuple[Any, ...]:
    """Times, their difference and numbers; None for a run whose periods are not known: not recorded is not zero."""
    a, b, m, n = (value if has[place % 2] else None for place, value in enumerate(sums))
    delta = None if a is None or b is None else b - a
    return a, b, delta, *(None if count is None else float(count) for count in (m, n))


def gpus(found: Diff) -> Result:
    """Each GPU that both runs have, the greatest change first."""
    a, b = found.first.gpus, found.second.gpus
    rows = [
        (
            *lane, a[lane].period_ns, b[lane].period_ns, a[lane].busy_ns, b[lane].busy_ns,
            b[lane].busy_ns - a[lane].busy_ns, a[lane].comm_ns, b[lane].comm_ns,
        )
        for lane in a
        if lane in b
    ]  # fmt: skip
    return Result("diff_gpus", {}, GPUS, sorted(rows, key=lambda row: (-abs(row[6]), str(row))))


def kernels(found: Diff) -> Result:
    """Kernels of both runs as they were paired, removed or added."""
    rows = []
    for pair in found.matching.pairs if found.matching else ():
        one, two = pair.first, pair.second
        first, second = (one.ns if one else 0), (two.ns if two else 0)
        either = one or two
        assert either is not None
        names = (one.name if one else None, two.name if two else None)
        counts = (float(one.count) if one else 0.0, float(two.count) if two else 0.0)
        rows.append((pair.how, either.category, *names, *counts, first, second, second - first))
    merged = _merged(rows, keys=4)
    merged.sort(key=lambda row: (-abs(row[8]), -max(row[6], row[7]), str(row)))
    return Result("diff_kernels", {}, KERNELS, merged)


def fused(found: Diff) -> Result:
    """Compilers' kernels with those of the other run that they replaced, the greatest change first."""
    rows = []
    for f in found.matching.fused if found.matching else ():
        side = found.second if f.is_second else found.first
        was = sum(k.ns for k in f.replaced)
        count = sum((k.count for k in f.replaced), Fraction(0))
        delta = f.made.ns - was if f.is_second else was - f.made.ns
        made = (float(f.made.count), f.made.ns)
        rows.append((f.made.name, side.label, _listed(f.replaced), *made, float(count), was, delta))
    rows.sort(key=lambda row: (-abs(row[7]), -row[6], row[0]))
    return Result("diff_fused", {}, FUSED, rows)


def unfused(found: Diff) -> Result:
    """What a compiler could have fused and did not, with the likely reason."""
    rows = [tuple(row[c.name] for c in UNFUSED) for row in found.unfused]
    return Result("unfused_kernels", {}, UNFUSED, sorted(rows, key=lambda row: (-row[6], str(row))))


def measures(found: Diff) -> list[dict[str, Any]]:
    """The figures of both runs with their intervals; units differ from row to row."""
    return [_measure(m) for m in found.measures]


def _measure(m: Measure) -> dict[str, Any]:
    one, two, d = m.first, m.second, m.difference
    return {
        "measure": m.name,
        "unit": m.unit,
        "a": one.value if one else None,
        "a_low": one.low if one else None,
        "a_high": one.high if one else None,
        "b": two.value if two else None,
        "b_low": two.low if two else None,
        "b_high": two.high if two else None,
        "delta": d.value if d else None,
        "delta_low": d.low if d else None,
        "delta_high": d.high if d else None,
        "delta_pct": 100 * d.value / one.value if d and one and one.value else None,
        "ratio": one.value / two.value if one and two and two.value else None,
        "verdict": d.verdict if d else None,
    }


def _listed(replaced: Iterable[Kernel]) -> str:
    """Operators with how many of their kernels, the longest first."""
    sums: dict[str, list[Any]] = defaultdict(lambda: [0, Fraction(0)])
    for kernel in replaced:
        name = (kernel.op or kernel.short_name).removeprefix("aten::")
        sums[name][0] += kernel.ns
        sums[name][1] += kernel.count
    order = sorted(sums, key=lambda name: (-sums[name][0], name))
    return ", ".join(f"{name} ×{float(sums[name][1]):.3g}" for name in order)


def _merged(rows: Sequence[tuple[Any, ...]], keys: int) -> list[tuple[Any, ...]]:
    """Rows with the same first `keys` values as one, the others summed."""
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        held = sums.setdefault(row[:keys], [0] * (len(row) - keys))
        for n, value in enumerate(row[keys:]):
            held[n] += value
    return [(*key, *values) for key, values in sums.items()]


def records(result: Result) -> list[dict[str, Any]]:
    """The rows of a result as objects."""
    names = [c.name for c in result.columns]
    return [dict(zip(names, row, strict=True)) for row in result.rows]


JUDGED = _columns(
    ("measure", TEXT, None, "what was measured"),
    ("threshold", TEXT, None, "how far it may move"),
    ("status", TEXT, None, "ok, crossed, not judged or not recorded"),
    ("reason", TEXT, None, "why"),
    ("unit", TEXT, None, "of base, new and delta: ns, bytes, count, tflop/s"),
    ("base", COUNT, None, "median of the baseline"),
    ("new", COUNT, None, "median of the new run"),
    ("delta", COUNT, None, "new less base"),
    ("delta_pct", COUNT, "percent", "of the baseline"),
    ("low", COUNT, None, "lower end of the difference's interval"),
    ("high", COUNT, None, "upper end"),
)


def judgements(base: str, new: str, judged: Sequence[Judgement]) -> Result:
    """What became of each threshold."""
    rows: list[tuple[Any, ...]] = []
    for j in judged:
        d, t = j.difference, j.threshold
        change = (d.value, j.pct, d.low, d.high) if d else (None,) * 4
        rows.append((t.measure, f"--{t.kind} {t.text}", j.status, j.reason, j.unit, j.base, j.new, *change))
    return Result("check", {"base": base, "new": new}, JUDGED, rows)
