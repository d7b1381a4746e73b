"""Thresholds for a pipeline: what a new run may cost more than a baseline, judged only where the difference is real."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from traceq.analysis import stats
from traceq.analysis.ask import Row, ask
from traceq.analysis.side import timed, told, warm_up
from traceq.errors import Status, TraceqError
from traceq.units import BYTE_UNITS, parse_duration_ns

FORMAT, VERSION = "traceq-check", 1
THRESHOLD = re.compile(r"\s*([+-])\s*([0-9]+(?:\.[0-9]+)?)\s*(%|[^\W0-9]*)\s*")
LARGEST = 64 * 1024**2  # bytes: a baseline of 100,000 steps has a quarter of that
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
UNITS = {
    **dict.fromkeys(STEPS, "ns"), **{name: unit for name, (_, unit) in (SAMPLED | TOLD).items()}, TFLOPS: "tflop/s",
}  # fmt: skip
CHANGES = {"ns": "+3%, +1.5ms", "count": "+3%, +0", "bytes": "+3%, +100MiB", "tflop/s": "-5%, +2"}  # examples
MOST = 1e18  # of any measure in its base unit, 30 years in ns: so that no sum overflows
OF_THE_MACHINE = ("ns", "tflop/s")  # units that another GPU changes whatever the program does
NOT_RECORDED = "not recorded"
NO_GPU = "no GPU in what was recorded"
OF_A_GPU = (*SAMPLED, "peak_memory", TFLOPS)
DISTURBED = "is_disturbed"
ALIKE = ("gpu", "torch_version", "recorded_with", "format", "good_steps", "lanes")


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
    """A threshold with both sides; `status` is ok, crossed, not judged or not recorded, `reason` says why.

    A side that was not recorded is None, and with it the difference.
    """

    threshold: Threshold
    unit: str
    base: float | None
    new: float | None
    difference: stats.Difference | None
    status: str
    reason: str

    @property
    def pct(self) -> float | None:
        """The difference, of the baseline."""
        return 100 * self.difference.value / self.base if self.difference and self.base else None


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
        if once := told(facts, column):
            found[name] = Sample(unit, (), once.value, once.low, once.high)
    if rate := _tflops(con, run, steps):
        found[TFLOPS] = rate
    return Snapshot(run, {name: facts[name] for name in (*ALIKE, DISTURBED)}, found)


def _tflops(con: duckdb.DuckDBPyConnection, run: str, steps: Sequence[Row]) -> Sample | None:
    """The rate of matrix products of known shape, step by step: as much work in each, in its GEMM time.

    The rate of all of them is that of a step of mean length.
    """
    known = [r for r in ask(con, "gemm_shapes", run=run, top=None) if r["tflop_per_s"]]
    times = [r["gemm_ns"] for r in steps if r["gemm_ns"]]
    if not known or not times:
        return None
    rate = sum(r["tflop_per_s"] * r["kernel_ns"] for r in known) / sum(r["kernel_ns"] for r in known)
    mean = sum(times) / len(times)
    return Sample("tflop/s", tuple(rate * mean / ns for ns in times))


def save(found: Snapshot, path: Path) -> None:
    """Write a snapshot as a small JSON file, whole or not at all. Raises TraceqError (usage) where it cannot."""
    if path.is_file() and not _is_baseline(path):
        raise TraceqError(
            f"{path}: --save would overwrite what is no baseline", "name another file, or remove it first", Status.USAGE
        )
    whole = {"format": FORMAT, "version": VERSION, **asdict(found)}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    new = path.with_name(f"{path.name}.new")
    try:
        if path.exists() and not path.is_file():  # a pipe, or a device: nothing that could be replaced
            path.write_text(text, "utf-8")
            return
        new.write_text(text, "utf-8")
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise TraceqError(
            f"{path}: {error.strerror}", "--save names a file that can be written", Status.USAGE
        ) from error


def _is_baseline(path: Path) -> bool:
    """Whether a file may be overwritten by a baseline: it is one, of whatever version, or empty."""
    try:
        with open(path, "rb") as file:
            head = file.read(200)
    except OSError:
        return True  # writing will say why not
    return not head or FORMAT.encode() in head


def saved(path: Path) -> Snapshot:
    """The snapshot in a file. Raises TraceqError (input) naming what is wrong with it."""
    try:
        if not path.is_file():
            raise ValueError("a folder or a device, not a file")
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        return _snapshot(_parsed(path.read_bytes()))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TraceqError(
            f"{path}: no baseline: {why}", "traceq check RUN --save FILE writes one", Status.INPUT
        ) from error


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno} is no JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error


def _snapshot(whole: Any) -> Snapshot:
    """What `save` wrote. Raises ValueError naming the first key that is not as it wrote it."""
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise ValueError("it was not written by traceq check --save")
    if whole.get("version") != VERSION:
        raise ValueError(f"it has version {whole.get('version')}, this traceq reads {VERSION}")
    for key, kind in (("label", str), ("facts", dict), ("measures", dict)):
        if not isinstance(whole.get(key), kind):
            raise ValueError(f"{key} is missing, or no {'text' if kind is str else 'object'}")
    facts = {name: whole["facts"][name] for name in (*ALIKE, DISTURBED) if name in whole["facts"]}
    for name, value in facts.items():
        if value is not None and not isinstance(value, str | int):
            raise ValueError(f"facts: {name} is neither text nor a number")
    return Snapshot(whole["label"], facts, {n: _sample(n, s) for n, s in whole["measures"].items() if n in UNITS})


def _sample(name: str, given: Any) -> Sample:
    if not isinstance(given, dict) or given.get("unit") != UNITS[name]:
        raise ValueError(f"measures: {name} is not in {UNITS[name]}")
    samples, ends = given.get("samples"), [given.get(end) for end in ("value", "low", "high")]
    if not isinstance(samples, list) or not all(map(_is_number, samples)):
        raise ValueError(f"measures: {name}: samples are no list of numbers")
    if not all(end is None or _is_number(end) for end in ends) or (not samples and ends[0] is None):
        raise ValueError(f"measures: {name} has neither samples nor a value that is a number")
    return Sample(given["unit"], tuple(samples), *ends)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST


# Thresholds ---------------------------------------------------------------------------------------------------------


def threshold(kind: str, text: str, where: str | None = None, status: Status = Status.USAGE) -> Threshold:
    """A threshold such as step=+3%, kernels=+0 or peak_memory=+100MiB. Raises TraceqError naming `where` it stands."""
    where = where or f"--{kind} {text}"
    measure, equals, limit = text.partition("=")
    measure = measure.strip()
    if measure not in MEASURES:
        raise TraceqError(f"{where}: no measure is called {measure!r}", f"measures: {', '.join(MEASURES)}", status)
    example = f"for example {', '.join(f'{measure}={change}' for change in CHANGES[UNITS[measure]].split(', '))}"
    if not equals:
        raise TraceqError(f"{where}: by how much may it change?", example, status)
    found = THRESHOLD.fullmatch(limit)
    try:
        amount = _amount(UNITS[measure], found) if found else MOST
    except (ValueError, OverflowError):
        amount = MOST
    if not found or amount >= MOST:
        raise TraceqError(f"{where}: {limit!r} is no change of {measure}", example, status)
    return Threshold(kind, measure, -amount if found[1] == "-" else amount, found[3] == "%", text)


def _amount(kind: str, found: re.Match[str]) -> float:
    """In percent or in base units. Raises ValueError for a unit that the measure does not have."""
    _, number, unit = found.groups()
    if not unit or unit == "%":
        return float(number)
    if kind == "ns":
        return float(parse_duration_ns(number + unit))
    if kind == "bytes":
        return float(number) * float(1024 ** BYTE_UNITS.index(unit))
    raise ValueError(unit)


def judge(base: Snapshot, new: Snapshot, thresholds: Sequence[Threshold]) -> list[Judgement]:
    """Each threshold on both runs."""
    return [_judged(base, new, t) for t in thresholds]


def _judged(base: Snapshot, new: Snapshot, t: Threshold) -> Judgement:
    one, two = base.measures.get(t.measure), new.measures.get(t.measure)
    if one and two:
        return _compared(base, new, t, one, two)
    without = {name: side for name, side, has in (("base", base, one), ("new", new, two)) if not has}
    lacking = f"in {' and '.join(without)}"
    if t.measure in OF_A_GPU and not any(s.facts.get("gpu") or s.facts.get("lanes") for s in without.values()):
        lacking += f": {NO_GPU}"
    first, second = (sample.estimate.value if sample else None for sample in (one, two))
    return Judgement(t, UNITS[t.measure], first, second, None, NOT_RECORDED, lacking)


def _compared(base: Snapshot, new: Snapshot, t: Threshold, one: Sample, two: Sample) -> Judgement:
    if one.samples and two.samples:
        found = stats.difference_of_medians(one.samples, two.samples)
    else:
        found = stats.difference_of_estimates(one.estimate, two.estimate)
    disturbed = [name for name, side in (("base", base), ("new", new)) if side.facts.get(DISTURBED)]
    if disturbed and t.measure in STEPS:
        found = stats.disturbed(found)
    first, second = one.estimate.value, two.estimate.value
    allowed = abs(first) * t.amount / 100 if t.is_pct else t.amount
    gpus = base.facts.get("gpu"), new.facts.get("gpu")
    if found.verdict == stats.DISTURBED:
        status, reason = "not judged", f"{found.verdict}: {' and '.join(disturbed)}"
    elif not _is_beyond(found.value, allowed, t.kind):
        status, reason = "ok", "within the threshold"
    elif None not in gpus and gpus[0] != gpus[1] and one.unit in OF_THE_MACHINE:
        status, reason = "not judged", f"another GPU: {gpus[0]} and {gpus[1]}"
    elif found.low is None or found.high is None:
        once = " and ".join(name for name, s in (("base", one), ("new", two)) if s.estimate.low is None)
        status, reason = "not judged", f"{found.verdict}: one measurement of {once}"
    elif not _is_beyond(found.low if t.kind == "max" else found.high, _nearer(allowed, t.kind), t.kind):
        status, reason = "ok", stats.WITHIN_NOISE
    else:
        is_asked = _is_beyond(0, allowed, t.kind)
        status, reason = "crossed", "less than the change asked for" if is_asked else "the difference is real"
    return Judgement(t, one.unit, first, second, found, status, reason)


def _is_beyond(value: float, allowed: float, kind: str) -> bool:
    return value > allowed if kind == "max" else value < allowed


def _nearer(allowed: float, kind: str) -> float:
    """What an interval must exclude: no change, or the change where one is asked for, as by --max step=-10%."""
    return min(allowed, 0) if kind == "max" else max(allowed, 0)


RECORD = "record it (traceq capture; record_shapes=True for gemm_tflops; traceq ingest --step TIME), or leave it out"
RECORD_ON_GPU = "record it on a GPU, or leave it out"
WORDS = {"gpu": "GPU", "lanes": "GPUs (rank:device)"}


def remedy(missing: Sequence[Judgement]) -> str:
    """What makes measures that were not recorded known."""
    return RECORD_ON_GPU if all(j.reason.endswith(NO_GPU) for j in missing) else RECORD


def notes(base: Snapshot, new: Snapshot) -> list[str]:
    """In what the two are unlike, which may explain a difference."""
    return [
        f"{WORDS.get(name) or name.replace('_', ' ')}: "
        f"{one or 'none'} in {base.label}, {new.facts[name] or 'none'} in {new.label}"
        for name in ALIKE
        if name in base.facts and (one := base.facts[name]) != new.facts[name]
    ]
