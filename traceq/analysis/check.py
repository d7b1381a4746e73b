"""Thresholds for a pipeline: what a new run may cost more than a baseline, judged only where the difference is real."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from traceq.analysis import stats
from traceq.analysis.ask import Row, ask
from traceq.analysis.side import timed, warm_up
from traceq.errors import Status, TraceqError
from traceq.units import BYTE_UNITS, parse_duration_ns

FORMAT, VERSION = "traceq-check", 1
THRESHOLD = re.compile(r"\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%|\D*)\s*")
SAMPLED = {  # measure: column of step_measures, unit
    "period": ("period_ns", "ns"),
    "busy": ("busy_ns", "ns"),
    "kernel_time": ("kernel_ns", "ns"),
    "heavy": ("heavy_ns", "ns"),
    "gemm": ("gemm_ns", "ns"),
    "fusible": ("fusible_ns", "ns"),
    "comm": ("comm_ns", "ns"),
    "memops": ("memop_ns", "ns"),
    "kernels": ("kernels", "count"),
    "launches": ("launches", "count"),
}
TOLD = {"peak_memory": ("peak_memory_bytes", "bytes"), "compile": ("compile_ns", "ns")}  # columns of run_facts
STEPS = {"step": ("step", "pipelined"), "step_synced": ("synced", "synced")}  # columns of run_facts, kind of timing
TFLOPS = "gemm_tflops"
MEASURES = (*STEPS, *SAMPLED, *TOLD, TFLOPS)
OF_THE_MACHINE = ("ns", "tflop/s")  # units that another GPU changes whatever the program does
ALIKE = ("gpu", "torch_version", "recorded_with", "format", "good_steps")


@dataclass(frozen=True)
class Sample:
    """A measure of one run: its samples, or a value with its interval where only that is known."""

    unit: str
    samples: tuple[float, ...] = ()
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def estimate(self) -> stats.Estimate:
        if self.samples:
            return stats.bootstrap_median(self.samples)
        assert self.value is not None
        return stats.Estimate(self.value, self.low, self.high)


@dataclass(frozen=True)
class Snapshot:
    """What `check` needs to know of a run; `--save` writes it."""

    label: str
    facts: Mapping[str, Any]
    measures: Mapping[str, Sample]


@dataclass(frozen=True)
class Threshold:
    """How far a measure may move: `max` upwards, `min` downwards; `amount` in percent or in the measure's base unit."""

    kind: str
    measure: str
    amount: float
    is_pct: bool
    text: str


@dataclass(frozen=True)
class Judgement:
    """A threshold with both sides; `status` is ok, crossed or not judged, `reason` says why."""

    threshold: Threshold
    unit: str
    base: float
    new: float
    difference: stats.Difference
    status: str
    reason: str


# The two runs -------------------------------------------------------------------------------------------------------


def snapshot(con: duckdb.DuckDBPyConnection, run: str) -> Snapshot:
    """The measures of a run, those that it has."""
    facts = ask(con, "run_facts", run=run)[0]
    skip = ",".join(map(str, warm_up(con, run))) or None
    steps = ask(con, "step_measures", run=run, skip=skip)
    found: dict[str, Sample] = {}
    times = timed(con, run)
    for name, (column, kind) in STEPS.items():
        value, low, high = (facts[f"{column}{end}_ns"] for end in ("", "_low", "_high"))
        if len(times.get(kind, ())) > 1:
            found[name] = Sample("ns", tuple(times[kind]))
        elif value is not None:
            found[name] = Sample("ns", (), value, low, high)
    for name, (column, unit) in SAMPLED.items():
        if values := tuple(r[column] for r in steps if r[column] is not None):
            found[name] = Sample(unit, values)
    for name, (column, unit) in TOLD.items():
        if facts[column] is not None:
            found[name] = Sample(unit, (), facts[column], facts[column], facts[column])
    if rate := _tflops(con, run, steps):
        found[TFLOPS] = rate
    return Snapshot(run, {name: facts[name] for name in ALIKE}, found)


def _tflops(con: duckdb.DuckDBPyConnection, run: str, steps: Sequence[Row]) -> Sample | None:
    """The rate of matrix products of known shape, step by step: as much work in each, in its GEMM time."""
    known = [r for r in ask(con, "gemm_shapes", run=run, top=None) if r["tflop_per_s"]]
    times = [r["gemm_ns"] for r in steps if r["gemm_ns"]]
    if not known or not times:
        return None
    rate = sum(r["tflop_per_s"] * r["kernel_ns"] for r in known) / sum(r["kernel_ns"] for r in known)
    middle = stats.median(times)
    return Sample("tflop/s", tuple(rate * middle / ns for ns in times))


def save(found: Snapshot, path: Path) -> None:
    """Write a snapshot as a small JSON file. Raises TraceqError (usage) where it cannot."""
    whole = {"format": FORMAT, "version": VERSION, **asdict(found)}
    try:
        path.write_text(json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    except OSError as error:
        raise TraceqError(
            f"{path}: {error.strerror}", "--save names a file that can be written", Status.USAGE
        ) from error


def saved(path: Path) -> Snapshot:
    """The snapshot in a file. Raises TraceqError (input) naming what is wrong with it."""
    try:
        whole = json.loads(path.read_text("utf-8"))
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise ValueError("it was not written by traceq check --save")
        if whole["version"] != VERSION:
            raise ValueError(f"it has version {whole['version']}, this traceq reads {VERSION}")
        measures = {
            str(name): Sample(**{**sample, "samples": tuple(sample["samples"])})
            for name, sample in whole["measures"].items()
        }
        return Snapshot(str(whole["label"]), dict(whole["facts"]), measures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        hint = "traceq check RUN --save FILE writes a baseline"
        raise TraceqError(f"{path}: no baseline: {what}", hint, Status.INPUT) from error


# Thresholds ---------------------------------------------------------------------------------------------------------


def threshold(kind: str, text: str) -> Threshold:
    """A threshold such as step=+3%, kernels=+0 or peak_memory=+100MiB. Raises TraceqError (usage)."""
    measure, equals, limit = text.partition("=")
    measure = measure.strip()
    if not equals or measure not in MEASURES:
        raise TraceqError(
            f"--{kind} {text}: no measure is called {measure!r}", f"measures: {', '.join(MEASURES)}", Status.USAGE
        )
    amount = THRESHOLD.fullmatch(limit)
    fault = TraceqError(f"--{kind} {text}: {limit!r} is no change", "for example +3%, -5%, +0, +1.5ms", Status.USAGE)
    if not amount:
        raise fault
    sign = -1 if amount[1] == "-" else 1
    if amount[3] == "%":
        return Threshold(kind, measure, sign * float(amount[2]), True, text)
    try:
        return Threshold(kind, measure, sign * _in_base_units(measure, amount[2], amount[3]), False, text)
    except ValueError as error:
        raise fault from error


def _in_base_units(measure: str, number: str, unit: str) -> float:
    kinds = {**{name: unit for name, (_, unit) in (SAMPLED | TOLD).items()}, **dict.fromkeys(STEPS, "ns")}
    kind = kinds.get(measure)
    if kind == "ns" and unit:
        return parse_duration_ns(number + unit)
    if kind == "bytes" and unit:
        return float(number) * float(1024 ** BYTE_UNITS.index(unit))
    if unit:
        raise ValueError(unit)
    return float(number)


def judge(base: Snapshot, new: Snapshot, thresholds: Sequence[Threshold]) -> list[Judgement]:
    """Each threshold on both runs. Raises TraceqError (failed) for a measure that one of them lacks."""
    return [_judged(base, new, t) for t in thresholds]


def _judged(base: Snapshot, new: Snapshot, t: Threshold) -> Judgement:
    for side in (base, new):
        if t.measure not in side.measures:
            raise TraceqError(
                f"{side.label}: {t.measure} was not recorded, so --{t.kind} {t.text} cannot be judged", HINT
            )
    one, two = base.measures[t.measure], new.measures[t.measure]
    if one.samples and two.samples:
        found = stats.difference_of_medians(one.samples, two.samples)
    else:
        found = stats.difference_of_estimates(one.estimate, two.estimate)
    first, second = one.estimate.value, two.estimate.value
    allowed = abs(first) * t.amount / 100 if t.is_pct else t.amount
    is_beyond = found.value > allowed if t.kind == "max" else found.value < allowed
    gpus = base.facts.get("gpu"), new.facts.get("gpu")
    if not is_beyond:
        status, reason = "ok", "within the threshold"
    elif None not in gpus and gpus[0] != gpus[1] and one.unit in OF_THE_MACHINE:
        status, reason = "not judged", f"another GPU: {gpus[0]} and {gpus[1]}"
    elif found.verdict != stats.REAL:
        status, reason = ("ok" if found.verdict == stats.WITHIN_NOISE else "not judged"), found.verdict
    else:
        status, reason = "crossed", "the difference is real"
    return Judgement(t, one.unit, first, second, found, status, reason)


HINT = "record it (traceq capture; record_shapes=True for gemm_tflops; traceq ingest --step TIME), or leave it out"


def notes(base: Snapshot, new: Snapshot) -> list[str]:
    """In what the two are unlike, which may explain a difference."""
    return [
        f"{name.replace('_', ' ')}: {one or 'none'} in {base.label}, {new.facts[name] or 'none'} in {new.label}"
        for name in ALIKE
        if (one := base.facts.get(name)) != new.facts[name]
    ]
