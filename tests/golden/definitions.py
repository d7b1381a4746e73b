"""Reading traces, and the golden rows of the first queries, by plain Python and not by traceq.

All is exact: times are integer ns, ratios are fractions until they are written. The definitions (window, busy, gap,
step, share, …) are the project's; what is not known is NULL, not 0.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures"
DAY_NS = 86_400 * 10**9
Row = dict[str, Any]

# Kernel names -----------------------------------------------------------------------------------------------
# What each name in the fixtures computes and who made it, told by reading the names; the first found counts.

NAMES = [
    ("nccl", "comm", "nccl"),
    ("^triton_poi_", "fused_pointwise", "inductor"),
    ("^triton_(red|per)_", "fused_reduction", "inductor"),
    ("^triton_for_", "fused_foreach", "inductor"),
    (r"^triton__\d", "other", "inductor"),
    ("^scale_rows$", "other", "triton"),
    ("sdpa.*flash|compute_dot_do_o|convert_dq", "attention", "cudnn"),
    ("^void cutlass::Kernel", "gemm", "cutlass"),
    ("^nvjet_|^ampere_.*gemm|sgemm_|cublas|gemv2|dot_kernel", "gemm", "cublas"),
    ("^cutlass.*gemm", "gemm", "cutlass"),
    ("layer_norm|GammaBetaBackward", "norm", "aten"),
    ("cunn_SoftMax|softmax_warp", "softmax", "aten"),
    ("nll_loss", "loss", "aten"),
    ("copy_kernel|CatArrayBatchedCopy", "copy", "aten"),
    ("RadixSort|bitonicSort", "sort", "aten"),
    ("::scan::", "reduction", "aten"),
    ("embedding|partials?_(per_)?segment|compute_grad_weight|sum_and_scatter", "embedding", "aten"),
    ("gather_kernel|indexSelect|UniqueByKey|indexing_backward", "indexing", "aten"),
    ("fused_dropout", "rng", "aten"),
    ("at::native::reduce_kernel", "reduction", "aten"),
    ("elementwise_kernel|multi_tensor_apply", "elementwise", "aten"),
    ("", "other", "unknown"),
]


def classify(name: str) -> tuple[str, str]:
    """Category and origin of a kernel."""
    return next((category, origin) for pattern, category, origin in NAMES if re.search(pattern, name))


# Reading ----------------------------------------------------------------------------------------------------

ARROW = "a flow arrow: correlation ids link instead"
KEPT = {
    **dict.fromkeys(["kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"], "gpu_activities"),
    **dict.fromkeys(["cuda_runtime", "cuda_driver", "runtime"], "api_calls"),
    **dict.fromkeys(["cpu_op", "operator"], "ops"),
    **dict.fromkeys(["user_annotation", "trace"], "ranges"),
    "python_function": "python_calls",
    "overhead": "overheads",
    "cuda_sync": "syncs",
}
SKIPPED = {
    "gpu_user_annotation": "a CPU range projected on the GPU, not work",
    "ac2g": ARROW,
    "fwdbwd": "a flow arrow: sequence numbers link instead",
}
NAMED = {"process_name": "processes", "process_labels": "processes", "thread_name": "threads"}
STEP = re.compile(r"ProfilerStep#(\d+)")
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"}
GRAPH_LAUNCH = "cudaGraphLaunch"


@dataclass
class Event:
    """One row of a trace: `stored_in` is its table, or None with the reason why not; ns as recorded.

    `place` is its number in the file, from 0.
    """

    ph: str
    category: str | None
    name: str
    pid: Any
    start: int | None
    dur: int | None
    args: Row
    stored_in: str | None
    reason: str | None
    is_usable: bool = True
    place: int = 0

    @property
    def end(self) -> int:
        return self.start + self.dur


@dataclass
class Activity:
    """GPU work with the call that launched it and the step in which that call started."""

    kind: str
    name: str
    device: int
    start: int
    end: int
    bytes: int
    order: tuple[int, int, int]
    launch: Event | None
    place: int
    step: Step | None = None
    category: str | None = None
    origin: str | None = None

    @property
    def dur(self) -> int:
        return self.end - self.start


@dataclass(eq=False)
class Step:
    """A marked iteration; `pid` is None where one process makes all calls: its steps are everyone's."""

    number: int
    pid: Any
    start: int
    end: int
    work: list[Activity] = field(default_factory=list)
    launches: list[Event] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    period: int | None = None
    is_followed_well: bool = False

    def has(self, e: Event) -> bool:
        """Whether an event of its process starts in it."""
        return self.pid in (None, e.pid) and self.start <= e.start < self.end


@dataclass
class Trace:
    """A file: what it says of itself, its events, and what follows from them; `explained` is what explain.py found."""

    run: str
    step_ns: int | None
    size: int
    metadata: Row
    events: list[Event]
    unreadable: int
    calls: list[Event] = field(default_factory=list)
    work: list[Activity] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    invisible: int = 0
    explained: Any = None

    @property
    def rank(self) -> int | None:
        return self.metadata.get("distributedInfo", {}).get("rank")

    @property
    def kernels(self) -> list[Activity]:
        return [a for a in self.work if a.kind == "kernel"]

    @property
    def launches(self) -> list[Event]:
        return [c for c in self.calls if is_launch(c)]

    @property
    def good_steps(self) -> list[Step]:
        return [s for s in self.steps if not s.flags]

    @property
    def good_periods(self) -> list[int]:
        """Periods that neither a flagged step nor the one before it spoils."""
        return [s.period for s in self.good_steps if s.is_followed_well and s.period is not None]

    @property
    def devices(self) -> list[int]:
        return sorted({a.device for a in self.work})

    def device_name(self, device: int | None) -> str | None:
        return next((d["name"] for d in self.metadata.get("deviceProperties", []) if d["id"] == device), None)


def is_launch(call: Event) -> bool:
    """Whether a call launches a kernel or a graph."""
    return call.name in LAUNCHES or call.name == GRAPH_LAUNCH


def read(path: Path) -> tuple[Row, int]:
    """The JSON object of a file, and the number of unreadable events (of a file that stops inside one: 1)."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    try:
        return json.loads(text, parse_float=Decimal), 0
    except json.JSONDecodeError:
        return json.loads(text[: text.rindex("},\n") + 1] + "]}", parse_float=Decimal), 1


def ns(us: Any) -> int | None:
    """Recorded µs as ns, a fourth decimal rounded half up; None for what is no number."""
    try:
        return int((Decimal(us) * 1000).quantize(Decimal(1), ROUND_HALF_UP))
    except (InvalidOperation, TypeError):
        return None


def place(ph: str, category: str | None, name: str) -> tuple[str | None, str | None]:
    """The table of an event, or None and why it is left out."""
    kind = (category or "").lower()
    if ph == "M":
        return NAMED.get(name), None if name in NAMED else "a display hint"
    if ph == "C":
        return "counters", None
    if ph == "i":
        return "memory_events" if name in ("[memory]", "[OutOfMemory]") else "ranges", None
    if ph == "X" and kind in ("cpu_op", "operator") and STEP.fullmatch(name):
        return "ranges", None
    if ph == "X" and kind in KEPT:
        return KEPT[kind], None
    return None, SKIPPED.get(kind, "a category that traceq does not know")


def event(row: Row, is_zero_bad: bool) -> Event:
    """An event, usable if it has a time, no negative length, and is not at zero among epochs."""
    ph, category, name = row["ph"], row.get("cat"), row["name"]
    start, dur = ns(row.get("ts")), ns(row.get("dur"))
    is_usable = start is not None and not (start == 0 and is_zero_bad)
    if ph == "X":
        is_usable = is_usable and dur is not None and dur >= 0
    is_usable = is_usable or ph == "M"
    args = row.get("args", {})
    return Event(ph, category, name, row["pid"], start, dur, args, *place(ph, category, name), is_usable)


def load(run: Row, path: Path) -> Trace:
    """A trace with all that follows from its events."""
    found, unreadable = read(path)
    rows = found.pop("traceEvents")
    times = [t for r in rows if r["ph"] == "X" and (t := ns(r["ts"])) is not None and t > 0]
    is_epoch = bool(times) and min(times) > DAY_NS
    events = [event(r, is_epoch) for r in rows]
    for place, e in enumerate(events):
        e.place = place
    trace = Trace(run["label"], run.get("step_ns"), path.stat().st_size, found, events, unreadable)
    derive(trace)
    return trace


# What follows from the events -------------------------------------------------------------------------------


def derive(trace: Trace) -> None:
    """Fill calls, work, steps and invisible replays."""
    usable = [e for e in trace.events if e.is_usable]
    trace.calls = [e for e in usable if e.stored_in == "api_calls"]
    by_id = keyed(trace.calls, lambda c: c.args.get("correlation") or 0)
    trace.work = [activity(e, by_id) for e in usable if e.stored_in == "gpu_activities"]
    answered = {id(a.launch) for a in trace.work}
    trace.invisible = sum(c.name == GRAPH_LAUNCH and id(c) not in answered for c in trace.calls)
    trace.steps = make_steps(usable, len({c.pid for c in trace.calls}) == 1)
    for step in trace.steps:
        step.launches = [c for c in trace.launches if step.has(c)]
        step.work = [a for a in trace.work if a.launch and step.has(a.launch)]
        for a in step.work:
            a.step = step
        step.flags = flags(step, usable, answered)
    for same in keyed(trace.steps, lambda s: s.pid).values():
        for step, after in pairwise(same):
            if step.work and after.work and after.number == step.number + 1:
                step.period = min(a.start for a in after.work) - min(a.start for a in step.work)
            step.is_followed_well = not after.flags


def activity(e: Event, calls: dict[int, list[Event]]) -> Activity:
    """A GPU row, linked to the only call with its correlation id; 0 and a missing id link nothing."""
    correlation = e.args.get("correlation") or 0
    same = calls.get(correlation, []) if correlation else []
    kind = "kernel" if "kernel" in e.category.lower() else e.category.lower().removeprefix("gpu_")
    found = Activity(
        kind, e.name, e.args["device"], e.start, e.end, e.args.get("bytes") or 0,
        (e.start, e.end, correlation), same[0] if len(same) == 1 else None, e.place,
    )  # fmt: skip
    if kind == "kernel":
        found.category, found.origin = classify(e.name)
    return found


def make_steps(usable: list[Event], is_one_process: bool) -> list[Step]:
    """The steps in order of start."""
    marks = [e for e in usable if e.stored_in == "ranges" and e.ph == "X" and STEP.fullmatch(e.name)]
    numbered = [(int(STEP.fullmatch(e.name)[1]), None if is_one_process else e.pid, e) for e in marks]
    steps = [Step(number, pid, e.start, e.end) for number, pid, e in numbered]
    return sorted(steps, key=lambda s: (s.start, s.number))


def flags(step: Step, usable: list[Event], answered: set[int]) -> list[str]:
    """no_gpu; compiles: Dynamo's timer starts in it; partial: GPU work, but not of every launch (cut off)."""
    compiling = [e for e in usable if "(dynamo_timed)" in e.name and e.stored_in in ("ops", "ranges")]
    found = {
        "no_gpu": not step.work,
        "compiles": any(step.has(e) for e in compiling),
        "partial": bool(step.work) and any(id(c) not in answered for c in step.launches),
    }
    return [flag for flag, holds in found.items() if holds]


def union(work: Iterable[Activity]) -> int:
    """Length of the union of intervals of one device: walk over their ends and count how many are open."""
    marks = Counter()
    for a in work:
        marks[a.start] += 1
        marks[a.end] -= 1
    total, opened, before = 0, 0, 0
    for moment in sorted(marks):
        total += moment - before if opened else 0
        opened, before = opened + marks[moment], moment
    return total


def union_over_devices(work: Iterable[Activity]) -> int:
    """Σ of the devices' unions."""
    by_device = defaultdict(list)
    for a in work:
        by_device[a.device].append(a)
    return sum(union(some) for some in by_device.values())


def window(work: list[Activity]) -> int:
    """First start to last end."""
    return max(a.end for a in work) - min(a.start for a in work)


# Arithmetic -------------------------------------------------------------------------------------------------


def ratio(part: Any, whole: Any) -> Fraction | None:
    """part / whole; None where either is missing or whole is 0."""
    return None if part is None or not whole else Fraction(part) / Fraction(whole)


def percent(part: Any, whole: Any) -> Fraction | None:
    return None if (found := ratio(part, whole)) is None else 100 * found


def quantile(values: Iterable[int], q: Fraction) -> Fraction | None:
    """Between the two nearest values in proportion (what most tools call linear)."""
    values = sorted(values)
    if not values:
        return None
    at = q * (len(values) - 1)
    low, high = values[int(at)], values[min(int(at) + 1, len(values) - 1)]
    return low + (at - int(at)) * (high - low)


def median(values: Iterable[int]) -> Fraction | None:
    """The middle one, or the mean of the middle two."""
    return quantile(values, Fraction(1, 2))


def total(values: Iterable[int]) -> int | None:
    """Their sum; None where there is nothing to sum: not recorded is not zero."""
    values = list(values)
    return sum(values) if values else None


def time(work: Iterable[Activity]) -> int:
    return sum(a.dur for a in work)


def in_order(rows: list[Row], *keys: str | Callable[[Row], Any]) -> list[Row]:
    """Rows by keys, `-name` descending; NULL comes last either way."""
    for key in reversed(keys):
        if callable(key):
            rows = sorted(rows, key=key)
            continue
        name = key.removeprefix("-")
        known = sorted((r for r in rows if r[name] is not None), key=itemgetter(name), reverse=key[0] == "-")
        rows = known + [r for r in rows if r[name] is None]
    return rows


def keyed(work: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Lists of what has the same key."""
    found = defaultdict(list)
    for a in work:
        found[key(a)].append(a)
    return found


def by_run(traces: list[Trace]) -> dict[str, list[Trace]]:
    """Traces of each run, runs in order of arrival."""
    return keyed(traces, lambda t: t.run)


# The queries ------------------------------------------------------------------------------------------------


def runs(traces: list[Trace]) -> list[Row]:
    """`created` is the moment of ingest and is left out."""
    return [
        {
            "run": run,
            "traces": len(some),
            "format": "kineto",
            "status": "salvaged" if any(t.unreadable for t in some) else "complete",
            "gpu": gpu_names(some),
            "steps": sum(len(t.steps) for t in some),
            "step_ns": some[0].step_ns,
            "kernels": sum(len(t.kernels) for t in some),
            "kernel_ns": total(a.dur for t in some for a in t.kernels),
            "busy_pct": run_busy(some),
            "size_bytes": sum(t.size for t in some),
        }
        for run, some in by_run(traces).items()
    ]


def gpu_names(traces: list[Trace]) -> str | None:
    """Names of the devices that did something, or of the listed ones where none did."""
    found = set()
    for t in traces:
        found |= {t.device_name(d) for d in t.devices or [d["id"] for d in t.metadata["deviceProperties"]]}
    return ", ".join(sorted(found - {None})) or None


def run_busy(traces: list[Trace]) -> Fraction | None:
    if any(t.invisible for t in traces):
        return None
    per_device = [[a for a in t.work if a.device == d] for t in traces for d in t.devices]
    return percent(sum(union(some) for some in per_device), sum(window(some) for some in per_device))


def share(t: Trace, part: int, whole: int) -> Fraction | None:
    """A share of what the GPU did; not available where some of that was not recorded."""
    return None if t.invisible else percent(part, whole)


def steps(traces: list[Trace]) -> list[Row]:
    rows = [{"start": s.start, **step_row(t, s)} for t in traces for s in t.steps]
    rows = in_order(rows, "run", "rank", "start", "step")
    return [{k: v for k, v in row.items() if k != "start"} for row in rows]


def step_row(t: Trace, s: Step) -> Row:
    kernels = [a for a in s.work if a.kind == "kernel"]
    is_seen = bool(s.work)
    return {
        "run": t.run,
        "rank": t.rank,
        "step": s.number,
        "flags": ", ".join(s.flags) or None,
        "host_ns": s.end - s.start,
        "gpu_span_ns": window(s.work) if is_seen else None,
        "period_ns": s.period,
        "gpu_busy_ns": union_over_devices(s.work) if is_seen and not t.invisible else None,
        "kernels": len(kernels),
        "late": sum(a.start >= s.end for a in s.work),
        "kernel_ns": time(kernels) if is_seen else None,
        "gemm_ns": time(a for a in kernels if a.category == "gemm") if is_seen else None,
        "memop_ns": time(a for a in s.work if a.kind != "kernel") if is_seen else None,
        "launches": len(s.launches),
    }


def categories(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        groups = keyed(t.kernels, lambda a: a.category)
        for category, kernels in ({"other": []} | groups if groups else {}).items():
            stepped = [a for a in kernels if a.step in t.good_steps]
            rows.append({
                "run": t.run,
                "rank": t.rank,
                "category": category,
                "kernels": len(kernels),
                "kernel_ns": time(kernels),
                "pct_of_kernel": share(t, time(kernels), time(t.kernels)),
                "kernels_per_step": ratio(len(stepped), len(t.good_steps)),
                "ns_per_step": ratio(time(stepped), len(t.good_steps)),
            })  # fmt: skip
    return in_order(rows, "run", "rank", "-kernel_ns", "category")


def gemm_share(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        gemms = [a for a in t.kernels if a.category == "gemm"]
        rows.append(gemm_row(t, "all", gemms))
        rows += [gemm_row(t, origin, some) for origin, some in keyed(gemms, lambda a: a.origin).items()]
    return in_order(rows, "run", "rank", lambda r: r["origin"] != "all", "-gemm_ns", "origin")


def gemm_row(t: Trace, origin: str, gemms: list[Activity]) -> Row:
    per_step = ratio(time(a for a in gemms if a.step in t.good_steps), len(t.good_steps))
    busy = union_over_devices(gemms) if t.work and not t.invisible else None
    return {
        "run": t.run,
        "rank": t.rank,
        "origin": origin,
        "kernels": len(gemms),
        "gemm_ns": time(gemms) if t.work else None,
        "gemm_pct_of_kernel": share(t, time(gemms), time(t.kernels)),
        "gemm_busy_ns": busy,
        "gemm_pct_of_busy": percent(busy, union_over_devices(t.work)),
        "gemm_ns_per_step": per_step,
        "gemm_pct_of_step": percent(per_step, t.step_ns),
    }


def top_kernels(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = [a for t in some for a in t.kernels]
        blind = any(t.invisible for t in some)
        named = [
            {
                "run": run,
                "name": name,
                "category": category,
                "origin": origin,
                "kernels": len(same),
                "total_ns": time(same),
                "pct_of_kernel": None if blind else percent(time(same), time(kernels)),
                "mean_ns": ratio(time(same), len(same)),
                "median_ns": median(a.dur for a in same),
                "min_ns": min(a.dur for a in same),
                "max_ns": max(a.dur for a in same),
            }
            for (name, category, origin), same in keyed(kernels, lambda a: (a.name, a.category, a.origin)).items()
        ]
        rows += in_order(named, "-total_ns", "name", "category", "origin")[:top]
    return rows


SIZES = ["< 1 µs", "1–10 µs", "10–100 µs", "0.1–1 ms", "1–10 ms", "10–100 ms", "0.1–1 s", "≥ 1 s"]
BOUNDS = [0, *(10**n for n in range(3, 10)), 2**63 - 1]


def kernel_histogram(traces: list[Trace]) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = [a for t in some for a in t.kernels]
        blind = any(t.invisible for t in some)
        longest = max((a.dur for a in kernels), default=-1)
        for size, (low, high) in zip(SIZES, pairwise(BOUNDS), strict=True):
            inside = [a for a in kernels if low <= a.dur < high]
            if low <= longest:
                rows.append({
                    "run": run,
                    "size": size,
                    "from_ns": low,
                    "below_ns": high,
                    "kernels": len(inside),
                    "pct_of_kernels": None if blind else percent(len(inside), len(kernels)),
                    "kernel_ns": time(inside),
                    "pct_of_kernel": None if blind else percent(time(inside), time(kernels)),
                })  # fmt: skip
    return rows


def launch_latency(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        linked = [a for a in t.work if a.launch]
        calls = keyed(linked, lambda a: id(a.launch)).values()
        firsts = [min(a.start for a in some) - some[0].launch.start for some in calls]
        every = [a.start - a.launch.start for a in linked]
        for basis, waits in (("launch", firsts), ("activity", every)):
            if waits:
                rows.append({
                    "run": t.run,
                    "rank": t.rank,
                    "basis": basis,
                    "launched": len(waits),
                    "min_ns": min(waits),
                    "median_ns": median(waits),
                    "mean_ns": ratio(sum(waits), len(waits)),
                    "p90_ns": quantile(waits, Fraction(9, 10)),
                    "max_ns": max(waits),
                    "before_launch": sum(w < 0 for w in waits),
                })  # fmt: skip
    return in_order(rows, "run", "rank", "-basis")


def diff_categories(traces: list[Trace], a: str | None = None, b: str | None = None) -> list[Row]:
    labels = list(by_run(traces))
    a, b = a or labels[0], b or labels[1]
    sides = {side: [t for t in traces if t.run == side] for side in (a, b)}
    counted = {side: sum(len(t.good_steps) for t in some) for side, some in sides.items()}
    is_per_step = all(counted.values())
    parts = {side: diff_side(some, is_per_step) for side, some in sides.items()}
    rows = []
    for category in {**parts[a], **parts[b]}:
        a_ns, a_kernels = diff_cell(sides[a], parts[a], category)
        b_ns, b_kernels = diff_cell(sides[b], parts[b], category)
        delta = None if a_ns is None or b_ns is None else b_ns - a_ns
        rows.append({
            "category": category,
            "a_ns": a_ns,
            "b_ns": b_ns,
            "delta_ns": delta,
            "delta_pct": percent(delta, a_ns),
            "a_kernels": a_kernels,
            "b_kernels": b_kernels,
            "per": "step" if is_per_step else "trace",
            "a_steps": counted[a],
            "b_steps": counted[b],
            "a_run": a,
            "b_run": b,
        })  # fmt: skip
    return in_order(rows, lambda r: r["category"] != "all", lambda r: -abs(r["delta_ns"] or 0), "category")


Side = dict[str, tuple[Fraction, Fraction]]


def diff_side(traces: list[Trace], is_per_step: bool) -> Side:
    """Kernel time and kernels of each category, per step that counts or per trace."""
    kernels = [a for t in traces for a in t.kernels if not is_per_step or a.step in t.good_steps]
    over = sum(len(t.good_steps) for t in traces) if is_per_step else len(traces)
    groups = {"all": kernels, **keyed(kernels, lambda a: a.category)}
    return {name: (Fraction(time(some), over), Fraction(len(some), over)) for name, some in groups.items()}


def diff_cell(traces: list[Trace], parts: Side, category: str) -> tuple[Any, Any]:
    """Of a run without any GPU row no time is known; of one with, a category that does not occur has none."""
    ns, kernels = parts.get(category, (Fraction(0), Fraction(0)))
    return (ns if any(t.work for t in traces) else None), kernels


def event_counts(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        groups = keyed(t.events, lambda e: (e.ph, e.category, e.stored_in, e.reason))
        for (ph, category, stored_in, reason), some in groups.items():
            kept = sum(e.is_usable for e in some) if stored_in else 0
            lost = len(some) - kept if stored_in else 0
            rows.append(count_row(t, ph, category, kept, len(some) - kept - lost, lost, stored_in, reason))
        if t.unreadable:
            rows.append(count_row(t, None, None, 0, 0, t.unreadable, None, "unreadable text"))
    return in_order(rows, "run", "rank", "-events", "ph", "category", "stored_in", "reason")


def count_row(
    t: Trace, ph: str | None, category: str | None, kept: int, skipped: int, lost: int,
    stored_in: str | None, reason: str | None,
) -> Row:  # fmt: skip
    return {
        "run": t.run,
        "rank": t.rank,
        "ph": ph,
        "category": category,
        "events": kept + skipped + lost,
        "kept": kept,
        "skipped": skipped,
        "lost": lost,
        "stored_in": stored_in,
        "reason": "no usable time" if lost and stored_in else reason,
    }


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    steps: [{}, {"run": "ranks"}],
    categories: [{}, {"run": "default"}],
    gemm_share: [{}, {"run": "overlap"}, {"run": "nogpu"}],
    top_kernels: [{}, {"run": "eager", "top": 3}, {"run": "ranks", "top": None}],
    kernel_histogram: [{}, {"run": "eager"}],
    launch_latency: [{}, {"run": "graph"}],
    diff_categories: [
        {}, {"a": "default", "b": "eager"}, {"a": "ranks", "b": "overlap"}, {"a": "eager", "b": "nogpu"},
        {"a": "ranks", "b": "pair"}, {"a": "cut", "b": "cut"}, {"a": "ranks", "b": "twins"},
    ],
    event_counts: [{}, {"run": "odd"}],
}  # fmt: skip
