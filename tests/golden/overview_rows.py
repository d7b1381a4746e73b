"""Golden rows of the overview queries that need what explain.py finds, by plain Python and not by traceq."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise

from definitions import (
    GRAPH_LAUNCH,
    Activity,
    Row,
    Step,
    Trace,
    by_run,
    in_order,
    keyed,
    median,
    percent,
    ratio,
    share,
    time,
    total,
    union,
    window,
)
from explain import Work
from op_rows import copies_of, kernels_of, short_name, steps_of

HEAVY = {"gemm", "conv", "attention", "rnn"}
STATES = ["host", "launching", "queued", "unknown"]
LAUNCH_BOUND = {"cpu_ops", "python", "cuda_api", "compiled_runtime", "launch_latency"}

# Summary --------------------------------------------------------------------------------------------------

OPTIONS = {
    "with_stack": "stacks",
    "record_shapes": "shapes",
    "profile_memory": "memory",
    "with_flops": "flops",
}


def summary(traces: list[Trace]) -> list[Row]:
    return in_order([summary_row(t, d) for t in traces for d in t.devices or [None]], "run", "rank", "device")


def summary_row(t: Trace, device: int | None) -> Row:
    work = [a for a in t.work if a.device == device]
    kernels, copies, sets = ([a for a in work if a.kind == kind] for kind in ("kernel", "memcpy", "memset"))
    # Work that was not recorded may lie anywhere: it takes the window with it, which busy and idle add up to.
    seen = work and not t.invisible
    busy, length = (union(work), window(work)) if seen else (None, None)
    slows = [word for key, word in OPTIONS.items() if t.metadata.get(key) == 1]
    return {
        "run": t.run,
        "rank": t.rank,
        "device": device,
        "gpu": t.device_name(device),
        "status": "salvaged" if t.unreadable else "complete",
        "recorded_with": ", ".join(slows) or None,
        "step_ns": t.step_ns,
        "steps": len(t.steps),
        "steps_left_out": len(t.steps) - len(t.good_steps),
        "period_ns": median(t.good_periods),
        "window_ns": length,
        "busy_ns": busy,
        "idle_ns": length - busy if seen else None,
        "busy_pct": percent(busy, length),
        "busy_by_stream": busy_by_stream(t, device),
        "kernels": len(kernels),
        "kernel_ns": time(kernels) if work else None,
        "gemm_pct_of_kernel": share(t, time(a for a in kernels if a.category == "gemm"), time(kernels)),
        "memcpys": len(copies),
        "memcpy_ns": time(copies) if work else None,
        "memcpy_bytes": total(a.bytes for a in copies) if copies or not work else 0,
        "memsets": len(sets),
        "memset_ns": time(sets) if work else None,
        "carried_over": sum(a.launch is None for a in work),
        "launches": len(t.launches),
        "graph_launches": sum(c.name == GRAPH_LAUNCH for c in t.launches),
        "launch_call_ns": total(c.dur for c in t.launches),
        "differ_between_steps": differ_between_steps(t),
    }


# Busy and idle ----------------------------------------------------------------------------------------------


def gpu_time(traces: list[Trace]) -> list[Row]:
    rows = [gpu_row(t, device) for t in traces for device in t.devices]
    return in_order(rows, "run", "rank", "device")


def gpu_row(t: Trace, device: int) -> Row:
    work = [w for w in t.explained.work if w.device == device]
    gaps = [g for g in t.explained.device_gaps if g.device == device]
    kernels = kernels_of(work)
    heavy = [w for w in kernels if w.category in HEAVY]
    comm = [w for w in kernels if w.category == "comm"]
    fusible = [w for w in kernels if w.category not in {*HEAVY, "comm"}]
    window = max(w.end for w in work) - min(w.start for w in work)
    ran = running(work)
    busy = sum(ran.values())
    hidden = sum(ns for kinds, ns in ran.items() if {"comm", "compute"} <= kinds)
    exposed = sum(ns for kinds, ns in ran.items() if "comm" in kinds) - hidden
    heavy_busy = sum(running(w for w in work if w in heavy or re.match(r"Memcpy (HtoD|DtoH)", w.name)).values())
    causes = Counter()
    for part in (part for g in gaps for part in g.parts):
        causes[part.cause] += part.ns
    bound = sum(ns for cause, ns in causes.items() if cause in LAUNCH_BOUND)
    split = {
        "window_ns": window,
        "busy_ns": busy,
        "busy_pct": percent(busy, window),
        "compute_only_ns": ran[frozenset({"compute"})],
        "memory_only_ns": ran[frozenset({"memory"})],
        "compute_and_memory_ns": ran[frozenset({"compute", "memory"})],
        "comm_exposed_ns": exposed,
        "comm_hidden_ns": hidden,
        "comm_hidden_pct": percent(hidden, hidden + exposed),
        "heavy_busy_ns": heavy_busy,
        "heavy_busy_pct": percent(heavy_busy, busy),
        "idle_ns": window - busy,
        **{f"idle_{state}_ns": sum(g.dur for g in gaps if g.state == state) for state in STATES},
        "idle_causes": said(causes),
        "launch_bound_ns": bound,
        "launch_bound_pct": percent(bound, window),
    }
    return {
        "run": t.run,
        "rank": t.rank,
        "device": device,
        **(dict.fromkeys(split) if t.invisible else split),
        "kernels": len(kernels),
        "kernel_ns": time(kernels),
        "heavy_kernel_ns": time(heavy),
        "comm_kernel_ns": time(comm),
        "fusible_kernel_ns": time(fusible),
        "fusible_pct_of_kernel": share(t, time(fusible), time(kernels)),
        "fusible_kernels": len(fusible),
        "memop_ns": time(copies_of(work)),
    }


def running(work: Iterable[Work]) -> Counter[frozenset[str]]:
    """How long which kinds of work ran at the same time; not the time when none did."""
    changes: dict[int, Counter[str]] = defaultdict(Counter)
    for w in work:
        kind = "memory" if w.kind != "kernel" else "comm" if w.category == "comm" else "compute"
        changes[w.start][kind] += 1
        changes[w.end][kind] -= 1
    opened, found = Counter(), Counter()
    for moment, after in pairwise(sorted(changes)):
        opened.update(changes[moment])
        found[frozenset(kind for kind, count in opened.items() if count)] += after - moment
    found.pop(frozenset(), None)
    return found


def said(causes: Counter[str]) -> str:
    """The four that hold most, in words."""
    first = sorted(causes.items(), key=lambda found: (-found[1], found[0]))[:4]
    return ", ".join(f"{cause}: {100.0 * ns / causes.total():.1f} %" for cause, ns in first) or "none"


# Steps that differ ------------------------------------------------------------------------------------------


def step_kernels(traces: list[Trace], top: int | None = 50) -> list[Row]:
    rows = []
    for t in traces:
        by_pid = keyed(t.good_steps, lambda s: s.pid)
        found = [{"pid": str(pid), **row} for pid, steps in by_pid.items() for row in unlike(t, steps)]
        rows += in_order(found, "-kernel_ns", "name", "pid")[:top]
    return [{k: v for k, v in row.items() if k != "pid"} for row in in_order(rows, "run", "rank")]


def unlike(t: Trace, steps: list[Step]) -> list[Row]:
    """Kernels that the steps of a process do not launch equally often."""
    step = steps_of(t)
    kernels = [w for w in kernels_of(t.explained.work) if step[w.place] in steps]
    found = []
    for name, same in keyed(kernels, lambda w: w.name).items():
        counts = {s.number: sum(step[w.place] is s for w in same) for s in steps}
        if len(set(counts.values())) > 1:
            found.append({
                "run": t.run,
                "rank": t.rank,
                "min_per_step": min(counts.values()),
                "max_per_step": max(counts.values()),
                "steps": "; ".join(in_steps(n, counts) for n in sorted(set(counts.values()))),
                "name": name,
                "category": same[0].category_by_name,
                "kernels": len(same),
                "kernel_ns": time(same),
            })  # fmt: skip
    return found


def in_steps(number: int, counts: dict[int, int]) -> str:
    """In which steps there are so many."""
    steps = sorted(step for step, count in counts.items() if count == number)
    return f"{number} in {len(steps)} steps" if len(steps) > 4 else f"{number} in step {', '.join(map(str, steps))}"


# What the summary says in words -----------------------------------------------------------------------------


def busy_by_stream(t: Trace, device: int | None) -> str | None:
    """Each stream's union, of the device's window: the busiest eight."""
    work = [w for w in t.explained.work if w.device == device]
    if not work or t.invisible:
        return None
    window = max(w.end for w in work) - min(w.start for w in work)
    busy = {stream: sum(running(some).values()) for stream, some in keyed(work, lambda w: w.stream).items()}
    order = sorted(busy, key=lambda stream: (-busy[stream], stream))
    words = [f"{stream}: {100.0 * busy[stream] / window:.1f} %" for stream in order[:8]]
    return ", ".join(words + ([f"{len(order) - 8} more"] if len(order) > 8 else []))


def differ_between_steps(t: Trace) -> str | None:
    """Short names of the kernels that differ, the most time first."""
    processes = keyed(t.good_steps, lambda s: s.pid).values()
    if not any(len(steps) > 1 for steps in processes):
        return None
    spent = Counter()
    for row in (row for steps in processes for row in unlike(t, steps)):
        spent[short_name(row["name"])] += row["kernel_ns"]
    names = sorted(spent, key=lambda name: (-spent[name], name))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more or "none"


# Trust ----------------------------------------------------------------------------------------------------


def trust(traces: list[Trace]) -> list[Row]:
    """Figures only: the sentences are held by tests/test_queries.py."""
    rows = []
    for run, some in by_run(traces).items():
        checks = {**trust_file(some), **trust_gpu(some), **trust_links(some), **trust_host(some)}
        rows += [{"run": run, "item": item, "value": checks[item]} for item in TRUST_ORDER if item in checks]
    return rows


TRUST_ORDER = [
    "salvaged_files", "reading_notes", "unreadable_events", "rows_without_usable_time",
    "events_of_unknown_category", "gpu_activities", "api_calls", "operators", "activities_without_launch",
    "launches_without_activity", "launched_without_op", "op_disagreements", "clipped_rows", "activities_before_launch",
    "invisible_replays", "other_pct", "unexplained_pct", "resolution_ns", "profiler_overhead_ns",
    "recorded_with_stacks", "steps", "steps_left_out", "inflation_ratio", "ranks_missing", "ranges_called_unknown",
]  # fmt: skip


def trust_file(traces: list[Trace]) -> Row:
    events = [e for t in traces for e in t.events]
    unreadable = sum(t.unreadable for t in traces)
    checks = {
        "salvaged_files": sum(t.unreadable > 0 for t in traces),
        "unreadable_events": unreadable,
        "rows_without_usable_time": sum(bool(e.stored_in) and not e.is_usable for e in events),
        "events_of_unknown_category": sum(e.reason == "a category that traceq does not know" for e in events),
    }
    return checks | ({"reading_notes": 1} if unreadable else {})


def trust_gpu(traces: list[Trace]) -> Row:
    work = [a for t in traces for a in t.work]
    checks = {
        "gpu_activities": len(work),
        "invisible_replays": sum(t.invisible for t in traces),
        "resolution_ns": resolution(work),
    }
    if not work:
        return checks
    kernels = [a for a in work if a.kind == "kernel"]
    other = time(a for a in kernels if a.category == "other")
    return checks | {
        "activities_without_launch": sum(a.launch is None for a in work),
        "activities_before_launch": sum(a.launch is not None and a.start < a.launch.start for a in work),
        "other_pct": None if checks["invisible_replays"] else percent(other, time(kernels)),
    }


def trust_links(traces: list[Trace]) -> Row:
    found = [t.explained for t in traces]
    work = [w for e in found for w in e.work]
    parts = [part for e in found for gap in e.device_gaps for part in gap.parts]
    checks = {
        "api_calls": sum(len(e.calls) for e in found),
        "operators": sum(len(e.ops) for e in found),
        "op_disagreements": sum(e.disagreements for e in found),
        "clipped_rows": sum(e.clipped for e in found),
    }
    checks |= {"launched_without_op": sum(w.launch is not None and w.op is None for w in work)} if work else {}
    unexplained = sum(part.ns for part in parts if part.cause == "unexplained")
    return checks | ({"unexplained_pct": percent(unexplained, sum(part.ns for part in parts))} if parts else {})


def resolution(work: list[Activity]) -> int | None:
    """1000 where every recorded time is in whole µs; times here are as recorded, not from an origin."""
    if not work:
        return None
    return 1 if any(a.start % 1000 or a.dur % 1000 for a in work) else 1000


def trust_host(traces: list[Trace]) -> Row:
    overheads = [e.dur for t in traces for e in t.events if e.stored_in == "overheads"]
    marked = [s for t in traces for s in t.steps]
    good = [s for t in traces for s in t.good_steps]
    sizes = [t.metadata["distributedInfo"]["world_size"] for t in traces if "distributedInfo" in t.metadata]
    period = median(p for t in traces for p in t.good_periods)
    checks = {
        "recorded_with_stacks": sum(t.metadata.get("with_stack") == 1 for t in traces),
        "steps": len(marked),
        "inflation_ratio": ratio(period, traces[0].step_ns),
        "ranks_missing": max(sizes) - len({t.rank for t in traces}) if sizes else None,
    }
    checks |= {"profiler_overhead_ns": sum(overheads)} if overheads else {}
    if calls := [(t, c) for t in traces for c in t.launches]:
        single = [(t, c) for t, c in calls if c.name != GRAPH_LAUNCH]
        checks["launches_without_activity"] = sum(all(a.launch is not c for a in t.work) for t, c in single)
    return checks | ({"steps_left_out": len(marked) - len(good)} if marked else {})


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    summary: [{}, {"run": "flagged"}],
    trust: [{}, {"run": "pair"}],
    gpu_time: [{}, {"run": "model"}],
    step_kernels: [{}, {"run": "uneven", "top": 2}],
}
