"""What changed between two runs, where it comes from, and whether it is real.

Two clocks: the un-profiled step time says how fast a program is; the trace says where time goes. On the trace's clock
the period of a step is divided into parts that sum exactly (the query period_parts); a part's difference is its mean
per period in the second run less that in the first, in whole nanoseconds that sum, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from traceq.analysis import stats
from traceq.analysis.ask import Row, ask
from traceq.analysis.constants import (
    ANCHOR_PCT,
    ANOTHER_MODEL_PCT,
    HEAVY,
    LINKED_PCT,
    NO_GAIN_RATIO,
    SKEWED_PCT,
)
from traceq.analysis.match import Contents, Matching, Pair, match
from traceq.analysis.names import precision, spelled
from traceq.analysis.side import Lane, Place, Side, part_of, side_of, told, unprofiled
from traceq.units import show_ns

FUSIBLE = ("removed", "fused", "added", "changed")
ORDER = ("heavy", "fusible", "comm", "memops", "graph", "carried_over", "overlap", "idle", "residual")
STEP, SYNCED, BUSY = "step, un-profiled", "step, synchronised", "GPU busy"
MOST_CHANGES = 5


@dataclass(frozen=True)
class Measure:
    """One figure of both runs; `difference` is second less first."""

    name: str
    unit: str | None
    first: stats.Estimate | None
    second: stats.Estimate | None
    difference: stats.Difference | None


@dataclass(frozen=True)
class Part:
    """A part of the step on both clocks; estimates are None where an un-profiled step time is not known."""

    part: str
    what: str
    first_ns: int
    second_ns: int
    first_estimate_ns: int | None
    second_estimate_ns: int | None

    @property
    def delta_ns(self) -> int:
        return self.second_ns - self.first_ns

    @property
    def delta_estimate_ns(self) -> int | None:
        if self.first_estimate_ns is None or self.second_estimate_ns is None:
            return None
        return self.second_estimate_ns - self.first_estimate_ns


@dataclass(frozen=True)
class Anchor:
    """Heavy time per step on both sides: what no compiler does away with, so it should agree."""

    first_ns: int
    second_ns: int
    holds: bool | None
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Diff:
    """Everything that `traceq diff` says."""

    first: Side
    second: Side
    sentence: str
    direction: str
    also: tuple[str, ...]
    caveats: tuple[str, ...]
    pays_after_steps: int | None
    measures: tuple[Measure, ...]
    parts: tuple[Part, ...]
    anchor: Anchor | None
    matching: Matching | None
    unfused: tuple[Row, ...]
    breaks: tuple[Row, ...]
    safe: tuple[Row, ...]
    by_name: bool


def diff(con: duckdb.DuckDBPyConnection, first: str, second: str) -> Diff:
    """Compare run `second` with run `first`."""
    facts = [ask(con, "run_facts", run=label)[0] for label in (first, second)]
    by_name = any((f["linked_pct"] or 0) < LINKED_PCT for f in facts)
    lanes = _common_lanes(con, first, second)
    sides = [side_of(con, f, by_name, only) for f, only in zip(facts, lanes, strict=True)]
    a, b = sides
    contents = _contents(con, first), _contents(con, second)
    matching = match(a.kernels, b.kernels, contents) if a.parts and b.parts else None
    parts = _parts(a, b, matching) if matching else ()
    anchor = _anchor(a, b, matching) if matching else None
    measures = _measures(a, b)
    stranger = _another_model(a, b, matching) if matching and a.label != b.label else None
    sentence, direction, also = _stranger(a, b, stranger) if stranger else _verdict(a, b, measures)
    caveats = _caveats(a, b)
    both = list(dict.fromkeys((first, second)))
    left = [row for label in both for row in ask(con, "unfused_kernels", run=label, by_name=by_name, top=None)]
    breaks = [row for label in both for row in ask(con, "graph_breaks", run=label)]
    is_blind = any(f["invisible_replays"] for f in facts)
    safe = [] if matching or is_blind else ask(con, "diff_categories", a=first, b=second)
    return Diff(
        first=a,
        second=b,
        sentence=sentence,
        direction=direction,
        also=also,
        caveats=caveats,
        pays_after_steps=None if stranger else _pays_after(a, b, _compared(measures[0])),
        measures=measures,
        parts=parts,
        anchor=anchor,
        matching=matching,
        unfused=tuple(left),
        breaks=tuple(breaks),
        safe=tuple(safe),
        by_name=by_name,
    )


# The two sides ------------------------------------------------------------------------------------------------------


def _common_lanes(con: duckdb.DuckDBPyConnection, first: str, second: str) -> tuple[set[Lane] | None, set[Lane] | None]:
    """The GPUs to compare: those that both runs have; None for all. One goes with one, whatever their numbers."""
    lanes = [
        {(r["rank"], r["device"]) for r in ask(con, "period_parts", run=run) if r["part"] == "period"}
        for run in (first, second)
    ]
    if lanes[0] == lanes[1] or len(lanes[0]) == len(lanes[1]) == 1:
        return None, None
    common = lanes[0] & lanes[1]
    return (common, common) if common else (None, None)


def _contents(con: duckdb.DuckDBPyConnection, run: str) -> dict[str, Contents]:
    """What is in each generated kernel, by its name or, where it was captured, by its source: that names all."""
    rows = ask(con, "fused_ops", run=run, top=None)
    found = {r["name"]: Contents(tuple(r["ops"].split(", ") if r["ops"] else ()), bool(r["is_cut"])) for r in rows}
    for r in ask(con, "kernel_sources", run=run):
        before = found.get(r["kernel"], Contents())
        elements = before.elements | ({r["elements"]} - {None})
        ops = tuple(op.removeprefix("aten.").partition(".")[0] for op in r["ops"].split(", ")) if r["ops"] else ()
        has_more = before.has_more and not ops
        found[r["kernel"]] = Contents((*before.ops, *ops), has_more, elements)
    return found


# The measures -------------------------------------------------------------------------------------------------------

SAMPLED = (  # name, column of step_measures, unit
    ("period, profiled", "period_ns", "ns"),
    (BUSY, "busy_ns", "ns"),
    ("kernel time", "kernel_ns", "ns"),
    ("heavy kernels", "heavy_ns", "ns"),
    ("fusible kernels", "fusible_ns", "ns"),
    ("communication", "comm_ns", "ns"),
    ("copies and memsets", "memop_ns", "ns"),
    ("kernels", "kernels", "count"),
    ("launches", "launches", "count"),
)
TOLD = (("peak memory", "peak_memory_bytes", "bytes"), ("compilation", "compile_ns", "ns"))  # from run_facts


def _measures(a: Side, b: Side) -> tuple[Measure, ...]:
    made = [
        _estimated(STEP, a, b, "step", "pipelined"),
        _estimated(SYNCED, a, b, "synced", "synced"),
    ]
    for name, column, unit in SAMPLED:
        samples = [[r[column] for r in side.steps if r[column] is not None] for side in (a, b)]
        if any(any(s) for s in samples):
            made.append(_sampled(name, unit, *samples))
    for name, column, unit in TOLD:
        one, two = (told(side.facts, column) for side in (a, b))
        if one or two:
            made.append(Measure(name, unit, one, two, stats.difference_of_estimates(one, two) if one and two else None))
    return tuple(made)


def _estimated(name: str, a: Side, b: Side, column: str, kind: str) -> Measure:
    one, two = a.estimate(column, kind), b.estimate(column, kind)
    samples = a.timed.get(kind, ()), b.timed.get(kind, ())
    if all(len(s) > 1 for s in samples):
        found: stats.Difference | None = stats.difference_of_medians(*samples)
    else:
        found = stats.difference_of_estimates(one, two) if one and two else None
    if found and (a.is_disturbed or b.is_disturbed):
        found = stats.disturbed(found)
    return Measure(name, "ns", one, two, found)


def _sampled(name: str, unit: str, one: Sequence[int], two: Sequence[int]) -> Measure:
    found = stats.difference_of_medians(one, two) if one and two else None
    first, second = (stats.bootstrap_median(s) if s else None for s in (one, two))
    return Measure(name, unit, first, second, found)


# Where the difference comes from ------------------------------------------------------------------------------------


def _parts(a: Side, b: Side, matching: Matching) -> tuple[Part, ...]:
    """The parts of a period, fusible kernels by what became of them; each column sums to its period or step."""
    rows: dict[Place, list[int]] = defaultdict(lambda: [0, 0])
    for n, side in enumerate((a, b)):
        for place, ns in side.parts.items():
            if place[0] != "fusible":
                rows[place][n] = ns
    for what, one, two in _fates(matching):
        rows["fusible", what][0] += one
        rows["fusible", what][1] += two
    places = sorted(rows, key=lambda p: (ORDER.index(p[0]), -abs(rows[p][1] - rows[p][0]), p[1]))
    estimates = [_estimates(side, [(p, rows[p][n]) for p in places]) for n, side in enumerate((a, b))]
    made = [
        Part(*place, rows[place][0], rows[place][1], estimates[0][n], estimates[1][n]) for n, place in enumerate(places)
    ]
    residuals = [e[-1] for e in estimates]
    return tuple(made) if not any(residuals) else (*made, Part("residual", "does not fit", 0, 0, *residuals))


def _estimates(side: Side, rows: Sequence[tuple[Place, int]]) -> list[int | None]:
    """As `unprofiled` says; nothing where the step time is that of a disturbed machine."""
    return [None] * (len(rows) + 1) if side.is_disturbed else unprofiled(side, rows)


def _fates(matching: Matching) -> list[tuple[str, int, int]]:
    """What became of fusible kernels, with their time in the first run and in the second."""
    fates = []
    for pair in matching.pairs:
        kernel = pair.first or pair.second
        if kernel and part_of(kernel.category) == "fusible":
            what = pair.how if pair.how in FUSIBLE else "changed"
            fates.append((what, pair.first.ns if pair.first else 0, pair.second.ns if pair.second else 0))
    for fused in matching.fused:
        sums = (sum(k.ns for k in fused.replaced), fused.made.ns)
        fates.append(("fused", *(sums if fused.is_second else sums[::-1])))
    return fates


def _anchor(a: Side, b: Side, matching: Matching) -> Anchor | None:
    one, two = (sum(ns for (part, _), ns in side.parts.items() if part == "heavy") for side in (a, b))
    if not one and not two:
        return None
    holds = abs(two - one) * 100 <= ANCHOR_PCT * max(one, two)
    return Anchor(one, two, holds, () if holds else _heavy_changes(matching))


def _heavy_changes(matching: Matching) -> tuple[str, ...]:
    """The heavy kernels that changed most, in words."""
    pairs = [p for p in matching.pairs if (k := p.first or p.second) and k.category in HEAVY]
    pairs.sort(key=lambda p: (-abs(_delta(p)), repr(p)))
    most = sum(abs(_delta(p)) for p in pairs)
    return tuple(_change(p) for p in pairs[:MOST_CHANGES] if abs(_delta(p)) * 20 >= most)


def _delta(pair: Pair) -> int:
    return (pair.second.ns if pair.second else 0) - (pair.first.ns if pair.first else 0)


def _change(pair: Pair) -> str:
    one, two = pair.first, pair.second
    if one is None or two is None:
        kernel = one or two
        assert kernel is not None
        return f"{kernel.category} {'gone' if two is None else 'new'}: {kernel.short_name}, {show_ns(kernel.ns)} a step"
    times = f"{show_ns(one.ns)} → {show_ns(two.ns)}"
    if spelled(one.name) == spelled(two.name):
        return f"{one.category} {one.short_name}: {times}"
    moved = f", {one.origin} → {two.origin}" if one.origin != two.origin else ""
    kinds = (precision(one.name), precision(two.name))
    became = f", {kinds[0]} → {kinds[1]}" if kinds[0] and kinds[1] and kinds[0] != kinds[1] else ""
    return f"{one.category} {one.short_name} → {two.short_name}{moved}{became}: {times}"


# The verdict --------------------------------------------------------------------------------------------------------


def _verdict(a: Side, b: Side, measures: Sequence[Measure]) -> tuple[str, str, tuple[str, ...]]:
    """The first sentence, the direction (faster, slower, same, unknown), and what must be said beside it."""
    found = {m.name: m for m in measures}
    busy = found.get(BUSY)
    if a.label == b.label or (a.facts["content"] and a.facts["content"] == b.facts["content"]):
        return f"no difference: {a.label} and {b.label} have the same content", "same", ()
    if not (step := _compared(found[STEP])):
        return _without_speed(_unknown(a, b), busy), "unknown", ()
    if step.verdict == stats.DISTURBED:
        return _without_speed(_disturbed(a, b), busy), "unknown", ()
    direction = _direction(step)
    gpus = a.facts["gpu"], b.facts["gpu"]
    machines = (
        [f"but {a.label} ran on {gpus[0]}, {b.label} on {gpus[1]}"] if None not in gpus and gpus[0] != gpus[1] else []
    )
    also = [*machines, *_synced(_compared(found[SYNCED]), direction), *_busy(_compared(busy), direction)]
    if (steps := _pays_after(a, b, step)) is not None:
        spent = show_ns(b.facts["compile_ns"] - (a.facts["compile_ns"] or 0))
        also.append(f"compilation took {spent}: it has paid for itself after {steps:,} steps")
    return _sentence(a, b, step, direction), direction, tuple(also)


def _stranger(a: Side, b: Side, why: str) -> tuple[str, str, tuple[str, ...]]:
    start = f"cannot be compared: {a.label} and {b.label} are different models, or run different shapes ({why})"
    steps = [f"a step of {s.label} takes {show_ns(s.step.value)}" for s in (a, b) if s.step]
    return start, "unknown", tuple(steps)


@dataclass(frozen=True)
class Compared:
    """A measure that both runs have."""

    first: float
    second: float
    verdict: str

    @property
    def ratio(self) -> float:
        return self.first / self.second if self.second else 1.0


def _compared(measure: Measure | None) -> Compared | None:
    if not measure or not measure.first or not measure.second or not measure.difference:
        return None
    return Compared(measure.first.value, measure.second.value, measure.difference.verdict)


def _direction(found: Compared) -> str:
    if found.verdict == stats.WITHIN_NOISE or 1 / NO_GAIN_RATIO < found.ratio < NO_GAIN_RATIO:
        return "same"
    return "faster" if found.ratio > 1 else "slower"


def _sentence(a: Side, b: Side, step: Compared, direction: str) -> str:
    times = f"a step takes {show_ns(step.second)}, not {show_ns(step.first)}"
    if direction == "same":
        same = f"a step takes {show_ns(step.second)} against {show_ns(step.first)}"
        return f"no gain: {b.label} is {step.ratio:.2f}× as fast as {a.label}; {same} ({step.verdict})"
    if direction == "faster":
        return f"{b.label} is {step.ratio:.2f}× as fast as {a.label}: {times} ({step.verdict})"
    return f"{b.label} is slower, {step.ratio:.2f}× as fast as {a.label}: {times} ({step.verdict})"


def _pays_after(a: Side, b: Side, step: Compared | None) -> int | None:
    """The steps after which what `b` saves in each, if that is real, has made up for its longer compilation."""
    if not step or step.verdict != stats.REAL or _direction(step) != "faster" or b.facts["compile_ns"] is None:
        return None
    spent, saved = b.facts["compile_ns"] - (a.facts["compile_ns"] or 0), step.first - step.second
    return math.ceil(spent / saved) if spent > 0 else None


def _unknown(a: Side, b: Side) -> str:
    missing = " and ".join(side.label for side in (a, b) if side.step is None)
    return f"the un-profiled step time of {missing} is not known"


def _disturbed(a: Side, b: Side) -> str:
    """The contradiction; waiting cannot make steps faster."""
    said = [
        f"{side.label} was disturbed while timing (a step takes {show_ns(side.step.value)}, but "
        f"{show_ns(side.synced.value)} with a synchronisation after each): capture it again"
        for side in (a, b)
        if side.is_disturbed and side.step and side.synced
    ]
    return "; ".join(dict.fromkeys(said))


def _without_speed(why: str, busy: Measure | None) -> str:
    start = f"no verdict on speed: {why}"
    if not (found := _compared(busy)):
        return start
    times = f"{show_ns(found.second)} a step, not {show_ns(found.first)}"
    return f"{start}; the GPU is busy for {times} ({found.verdict})"


def _synced(synced: Compared | None, direction: str) -> list[str]:
    if not synced:
        return []
    times = f"{show_ns(synced.second)} against {show_ns(synced.first)}, {synced.verdict}"
    but = "with" if _direction(synced) == direction else "but with"
    return [f"{but} a synchronisation after each step it is {synced.ratio:.2f}× as fast ({times})"]


def _busy(busy: Compared | None, direction: str) -> list[str]:
    """GPU busy and the step are told together where they do not agree."""
    if not busy or _direction(busy) == direction:
        return []
    change = f"{100 / busy.ratio - 100:+.1f} %" if busy.ratio else "from nothing"
    moved = {"faster": "fell", "slower": "rose", "same": "stayed"}[_direction(busy)]
    step = {"faster": "got shorter", "slower": "got longer", "same": "did not change"}[direction]
    return [f"GPU busy time {moved} ({change}), but the step {step}"]


# What must be known beside it ---------------------------------------------------------------------------------------


def _caveats(a: Side, b: Side) -> tuple[str, ...]:
    """Why the two can only partly be compared."""
    return tuple(dict.fromkeys([*_unlike(a, b), *(s for side in (a, b) for s in _limits(side))]))


def _unlike(a: Side, b: Side) -> list[str]:
    said = []
    for what, words in (
        ("gpu", "another GPU: {} and {}; times compare the machines too"),
        ("torch_version", "another torch: {} and {}"),
        ("format", "recorded by {} and {}, which slow the host differently"),
    ):
        values = [side.facts[what] for side in (a, b)]
        if None not in values and values[0] != values[1]:
            said.append(words.format(*values))
    if a.facts["mode"] != b.facts["mode"]:
        said += [
            f"{side.label} is not eager: its script itself compiles, for {show_ns(side.facts['compile_ns'])}"
            for side in (a, b)
            if side.facts["mode"] == "eager" and side.facts["compile_ns"]
        ]
    options = [side.facts["recorded_with"] or "nothing extra" for side in (a, b)]
    if options[0] != options[1]:
        said.append(f"recording options differ ({options[0]}; {options[1]}): host and idle times cannot be compared")
    said += _lanes(a, b)
    counts = [side.facts["good_steps"] for side in (a, b)]
    if counts[0] != counts[1] and all(counts):
        many = f"{counts[0]} step{'s' if counts[0] > 1 else ''} that count{'' if counts[0] > 1 else 's'}"
        said.append(f"{a.label} has {many}, {b.label} {counts[1]}: all figures are per step")
    return said


def _lanes(a: Side, b: Side) -> list[str]:
    """Which GPUs are compared, where the runs do not have the same; one goes with one, whatever their numbers."""
    lanes = [(side.facts["lanes"] or "").split() for side in (a, b)]
    if not all(lanes):
        return [f"{s.label}: no GPU work was recorded" for s, has in zip((a, b), lanes, strict=True) if not has]
    if set(lanes[0]) == set(lanes[1]) or len(lanes[0]) == len(lanes[1]) == 1:
        return []
    if not set(lanes[0]) & set(lanes[1]):
        have = " and ".join(f"{s.label} has {', '.join(own)}" for s, own in zip((a, b), lanes, strict=True))
        return [f"no GPU (rank:device) is in both: {have}; compared are the means over all that each has"]
    missing = [[lane for lane in lanes[n] if lane not in lanes[1 - n]] for n in (0, 1)]
    return [
        f"{side.label} lacks GPU {', '.join(those)} (rank:device): compared is what both have"
        for side, those in zip((b, a), missing, strict=True)
        if those
    ]


def _limits(side: Side) -> list[str]:
    said = []
    f = side.facts
    if f["invisible_replays"]:
        said.append(
            f"{side.label}: {f['invisible_replays']} CUDA graph replays were not recorded, so its GPU time is not known"
        )
    elif not f["steps"]:
        said.append(f"{side.label}: no steps are marked, so its time has no parts per step")
    elif not side.parts:
        said.append(f"{side.label}: no two steps that count follow on one another, so its time has no parts per step")
    work_ns = (side.busy_ns or 0) - side.peer_wait_ns
    if side.step and work_ns > side.step.value * (1 + SKEWED_PCT / 100):
        said.append(
            f"{side.label}: the GPU works for {show_ns(work_ns)} in a step that is told to take "
            f"{show_ns(side.step.value)}: is that time of this program?"
        )
    if f["steps"] > f["good_steps"]:
        said.append(f"{side.label}: {f['steps'] - f['good_steps']} of {f['steps']} steps are left out ({f['flags']})")
    if side.skipped:
        numbers = ", ".join(map(str, side.skipped))
        said.append(f"{side.label}: step {numbers} is left out as warm-up: its kernels occur in no other step")
    periods = [r["period_ns"] for r in side.steps if r["period_ns"] is not None]
    if side.period_ns and periods:
        middle = stats.median(periods)
        if abs(side.period_ns - middle) * 100 > SKEWED_PCT * middle:
            spread = f"{show_ns(min(periods))} to {show_ns(max(periods))}"
            said.append(
                f"{side.label}: periods scatter ({spread}); the parts are of the mean, {show_ns(side.period_ns)}, "
                f"the median is {show_ns(middle)}"
            )
    return said


def _another_model(a: Side, b: Side, matching: Matching) -> str | None:
    """What speaks against their being one program: heavy kernels of another amount, other names and operators."""
    heavy = [sum(k.ns for k in side.kernels if k.category in HEAVY) for side in (a, b)]
    same = sum(
        p.first.ns + p.second.ns
        for p in matching.pairs
        if p.first and p.second and p.first.category in HEAVY and (p.how == "same" or p.first.op == p.second.op)
    )
    whole = sum(heavy)
    if not whole or abs(heavy[1] - heavy[0]) * 5 < max(heavy) or same * 100 >= ANOTHER_MODEL_PCT * whole:
        return None
    return f"{100 - 100 * same / whole:.0f} % of the time of heavy kernels has no partner"
