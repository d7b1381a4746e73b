"""Golden rows of the queries that comparisons rest on, by plain Python and not by traceq."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from capture_rows import Captured, only
from definitions import GRAPH_LAUNCH, Row, Step, Trace, by_run, gpu_names, in_order, keyed, percent, ratio
from explain import Work
from op_rows import recorded, short_name, steps_of

HEAVY = {"gemm", "conv", "attention", "rnn"}
Span = tuple[int, int]


def skipped(skip: str | None) -> set[int]:
    return {int(number) for number in skip.split(",")} if skip else set()


def category(w: Work, by_name: bool | None) -> str | None:
    return w.category_by_name if by_name else w.category


def part(w: Work, by_name: bool | None) -> str:
    if w.launch is None:
        return "carried_over"
    if w.kind != "kernel":
        return "memops"
    if category(w, by_name) in HEAVY:
        return "heavy"
    return "comm" if category(w, by_name) == "comm" else "fusible"


# Periods ----------------------------------------------------------------------------------------------------


def work_of(t: Trace, s: Step) -> list[Work]:
    step = steps_of(t)
    return [w for w in t.explained.work if step[w.place] is s]


def periods(t: Trace, skip: str | None) -> dict[Any, dict[Step, Span]]:
    """The windows of each process's steps: of steps that count and are followed by the next one, which counts, too."""
    out = skipped(skip)
    found: dict[Any, dict[Step, Span]] = defaultdict(dict)
    for s in t.good_steps:
        if s.period and s.is_followed_well and not out & {s.number, s.number + 1}:
            start = min(w.start for w in work_of(t, s))
            found[s.pid][s] = start, start + s.period
    return found


def lanes(t: Trace, skip: str | None) -> list[tuple[int, list[Span]]]:
    """Each device that a process works on in a step, with the windows of the process."""
    step = steps_of(t)
    return [
        (device, list(windows.values()))
        for pid, windows in periods(t, skip).items()
        for device in sorted({w.device for w in t.explained.work if step[w.place] and step[w.place].pid == pid})
    ]


def clipped(start: int, end: int, windows: Iterable[Span]) -> int:
    return sum(max(min(end, b) - max(start, a), 0) for a, b in windows)


def is_inside(start: int, windows: Iterable[Span]) -> bool:
    return any(a <= start < b for a, b in windows)


def union_inside(work: list[Work], windows: list[Span]) -> int:
    """The time in the windows in which any of the work runs, moment by moment between all ends."""
    busy = 0
    for a, b in windows:
        inside = [w for w in work if w.start < b and w.end > a and w.end > w.start]
        reached = a
        for w in sorted(inside, key=lambda w: w.start):
            busy += max(min(w.end, b) - max(w.start, reached), 0)
            reached = max(reached, min(w.end, b))
    return busy


def period_parts(traces: list[Trace], skip: str | None = None, by_name: bool | None = False) -> list[Row]:
    rows = []
    for t in traces:
        if t.invisible:
            continue
        sums: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])
        whole: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])  # number, length, busy
        for device, windows in lanes(t, skip):
            work = [w for w in t.explained.work if w.device == device]
            whole[device][0] += len(windows)
            whole[device][1] += sum(b - a for a, b in windows)
            whole[device][2] += union_inside(work, windows)
            for w in work:
                what = category(w, by_name) if w.kind == "kernel" else w.kind
                add(sums[device, part(w, by_name), what], w.start, w.end, windows)
            for gap in t.explained.device_gaps:
                at = gap.start
                for p in sorted(gap.parts, key=lambda p: p.part == "launch") if gap.device == device else []:
                    add(sums[device, "idle", p.cause], at, at + p.ns, windows)
                    at += p.ns
        rows += [row for device, of in whole.items() for row in device_parts(t, device, of, sums)]
    return in_order(rows, "run", "rank", "device", lambda r: r["part"] != "period", "part", "-total_ns", "what")


def add(to: list[int], start: int, end: int, windows: list[Span]) -> None:
    to[0] += is_inside(start, windows)
    to[1] += clipped(start, end, windows)


def device_parts(t: Trace, device: int, whole: list[int], sums: dict[tuple[int, str, str], list[int]]) -> list[Row]:
    number, length, busy = whole
    mine = {(part, what): (n, ns) for (d, part, what), (n, ns) in sums.items() if d == device and (n or ns)}
    work = sum(ns for (part, _), (_, ns) in mine.items() if part != "idle")
    idle = sum(ns for (part, _), (_, ns) in mine.items() if part == "idle")
    found: dict[tuple[str, str], tuple[int | None, int]] = {("period", "all"): (None, length), **mine}
    if work != busy:
        found["overlap", "overlap"] = None, busy - work
    if length != busy + idle:
        found["idle", "outside"] = None, length - busy - idle
    return [
        {
            "run": t.run,
            "rank": t.rank,
            "device": device,
            "part": part,
            "what": what,
            "steps": number,
            "activities": n,
            "total_ns": ns,
            "mean_ns": ratio(ns, number),
        }
        for (part, what), (n, ns) in found.items()
    ]


def period_kernels(traces: list[Trace], skip: str | None = None, by_name: bool | None = False) -> list[Row]:
    rows = []
    for t in traces:
        origins = {k.place: k.origin for k in t.kernels}
        sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
        starts: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        sizes: dict[tuple[Any, ...], set[tuple[int, ...]]] = defaultdict(set)
        for device, windows in lanes(t, skip) if not t.invisible else []:
            for w in t.explained.work:
                is_here = is_inside(w.start, windows) or clipped(w.start, w.end, windows)
                if w.kind == "kernel" and w.launch and w.device == device and is_here:
                    key = (device, category(w, by_name), origins[w.place], w.name, w.phase, *of_op(w))
                    add(sums[key], w.start, w.end, windows)
                    starts[key] += [w.start - a for a, b in windows if a <= w.start < b]
                    sizes[key].add(sizes_of(w))
        for key, (kernels, ns) in sums.items():
            device, kind, origin, name, phase, op, module, shapes, types = key
            told = min(sizes[key]) if len(sizes[key]) == 1 else ()
            rows.append({
                "run": t.run, "rank": t.rank, "device": device, "category": kind, "origin": origin, "name": name,
                "short_name": short_name(name), "phase": phase, "op": op, "module": module, "shapes": shapes,
                "types": types, "largest": largest(op, shapes), "elements": prod(told) if told else None,
                "mean_start_ns": ratio(sum(starts[key]), kernels), "kernels": kernels, "total_ns": ns,
            })  # fmt: skip
    return in_order(rows, "run", "rank", "device", "-total_ns", "name", "op", "module", "shapes", "types", "phase")


def of_op(w: Work) -> tuple[str | None, ...]:
    if w.op is None or w.launch.name == GRAPH_LAUNCH:
        return None, None, None, None
    return w.op.name, w.op.module, recorded(w.op, "Input Dims"), recorded(w.op, "Input type")


def sizes_of(w: Work) -> tuple[int, ...]:
    """The numbers that a Triton kernel is launched with."""
    if w.op is None or w.launch.name == GRAPH_LAUNCH or w.op.args.get("kernel_backend") != "triton":
        return ()
    return tuple(int(a) for a in w.op.args.get("Concrete Inputs", ()) if a.isdecimal())


def largest(op: str | None, shapes: str | None) -> int | None:
    found = elements(json.loads(shapes)) if shapes else []
    return (sum if op in ("aten::cat", "aten::stack") else max)(found) if found else None


def elements(dims: Any) -> list[int]:
    """Of each tensor with dimensions in a list; a list may be in it."""
    found: list[int] = []
    for each in dims:
        if all(isinstance(size, int) for size in each):
            found += [prod(each)] if each else []
        else:
            found += elements(each)
    return found


# Steps ------------------------------------------------------------------------------------------------------


def step_measures(traces: list[Trace], skip: str | None = None, by_name: bool | None = False) -> list[Row]:
    rows = []
    counted = [(t, s) for t in traces for s in t.good_steps if s.number not in skipped(skip)]
    least: dict[tuple[Any, ...], int] = {}
    for t, s in counted:
        for key, w in messages(t, s, by_name):
            least[key] = min(w.dur, least.get(key, w.dur))
    for t, s in counted:
        is_followed = s in periods(t, skip).get(s.pid, {})
        needed = sum(least[key] for key, _ in messages(t, s, by_name))
        rows.append({"start": s.start, **measured(t, s, is_followed, by_name, needed)})
    rows = in_order(rows, "run", "rank", "start", "step")
    return [{k: v for k, v in row.items() if k != "start"} for row in rows]


def messages(t: Trace, s: Step, by_name: bool | None) -> list[tuple[tuple[Any, ...], Work]]:
    """The communication of a step: each kernel by run, name, how many of that name came before it, and size."""
    found = [w for w in work_of(t, s) if w.kind == "kernel" and category(w, by_name) == "comm"]
    turns: Counter[tuple[int | None, str]] = Counter()
    told = []
    for w in sorted(found, key=lambda w: (w.start, w.place)):
        size = w.args.get("In msg nelems"), w.args.get("Out msg nelems")
        told.append(((t.run, w.name, turns[w.device, w.name], *size), w))
        turns[w.device, w.name] += 1
    return told


def measured(t: Trace, s: Step, is_followed: bool, by_name: bool | None, needed: int) -> Row:
    work = work_of(t, s)
    speaks = [w for _, w in messages(t, s, by_name)]
    alone = busy_of(work) - busy_of([w for w in work if w not in speaks]) if speaks else 0
    kernels = [w for w in work if w.kind == "kernel"]
    kinds = keyed(kernels, lambda w: part(w, by_name))
    heavy = [*kinds["heavy"], *(w for w in work if "HtoD" in w.name or "DtoH" in w.name)]
    gpu = {
        "busy_ns": busy_of(work),
        "heavy_busy_ns": busy_of(heavy),
        "kernel_ns": total(kernels),
        "heavy_ns": total(kinds["heavy"]),
        "gemm_ns": total(w for w in kernels if category(w, by_name) == "gemm"),
        "comm_ns": total(kinds["comm"]),
        "comm_alone_ns": alone,
        "peer_wait_ns": max(alone - needed, 0),
        "fusible_ns": total(kinds["fusible"]),
        "memop_ns": total(w for w in work if w.kind != "kernel"),
        "kernels": len(kernels),
    }
    return {
        "run": t.run,
        "rank": t.rank,
        "step": s.number,
        "period_ns": s.period if is_followed else None,
        **(dict.fromkeys(gpu) if t.invisible else gpu),
        "launches": len(s.launches),
    }


def total(work: Iterable[Work]) -> int:
    return sum(w.dur for w in work)


def busy_of(work: list[Work]) -> int:
    if not work:
        return 0
    ends = [moment for w in work for moment in (w.start, w.end)]
    by_device = keyed(work, lambda w: w.device)
    return sum(union_inside(some, [(min(ends), max(ends))]) for some in by_device.values())


def unlike_steps(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        for pid, steps in keyed(t.good_steps, lambda s: s.pid).items():
            kernels = {s: [w for w in work_of(t, s) if w.kind == "kernel"] for s in steps}
            for s, mine in kernels.items():
                others = {w.name for other, some in kernels.items() if other is not s for w in some}
                own = [w for w in mine if w.name not in others]
                if mine:
                    rows.append({
                        "pid": str(pid), "run": t.run, "rank": t.rank, "step": s.number, "kernels": len(mine),
                        "own_kernels": len(own), "kernel_ns": total(mine), "own_ns": total(own),
                        "own_pct": percent(total(own), total(mine)),
                    })  # fmt: skip
    rows = in_order(rows, "run", "rank", "step", "pid")
    return [{k: v for k, v in row.items() if k != "pid"} for row in rows]


# Runs -------------------------------------------------------------------------------------------------------


def run_facts(things: list[Trace | Captured]) -> list[Row]:
    """`content` is a digest of the files and left out. Runs without a trace come last."""
    traces = by_run([t for t in things if isinstance(t, Trace)])
    records = {c.run: c for c in only(things)}
    return [facts(run, traces.get(run, []), records.get(run)) for run in dict.fromkeys([*traces, *records])]


def facts(run: str, traces: list[Trace], captured: Captured | None) -> Row:
    said = captured.record if captured else {}
    phases = [r["ns"] for r in captured.facts("compile_phases")] if captured else []
    kernels = [w for t in traces for w in t.explained.work if w.kind == "kernel"]
    linked = [w for w in kernels if w.op and not (w.launch and w.launch.name == GRAPH_LAUNCH)]
    origins = [k.origin for t in traces for k in t.kernels]
    steps = [s for t in traces for s in t.steps]
    where = sorted(
        {(t.rank is None, t.rank, w.device) for t in traces for w in t.explained.work},
        key=lambda at: (at[0], at[1] or 0, at[2]),
    )
    options = {"with_stack": "stacks", "record_shapes": "shapes", "profile_memory": "memory"}
    sizes = [size for t in traces if (size := t.metadata.get("distributedInfo", {}).get("world_size"))]
    kernel_ns = total(kernels) if kernels else None
    step_ns = traces[0].step_ns if traces else None
    return {
        "run": run,
        "mode": said.get("mode"),
        "format": "kineto" if traces else None,
        "gpu": (traces and gpu_names(traces)) or said.get("gpu"),
        "torch_version": said.get("torch_version"),
        "recorded_with": ", ".join(
            word for key, word in options.items() if any(t.metadata.get(key) == 1 for t in traces)
        )
        or None,
        "world_size": max(sizes, default=None),
        "lanes": " ".join(f"{'-' if rank is None else rank}:{device}" for _, rank, device in where) or None,
        "steps": len(steps),
        "good_steps": sum(not s.flags for s in steps),
        "flags": ", ".join(sorted({" ".join(s.flags) for s in steps if s.flags})) or None,
        "invisible_replays": sum(t.invisible for t in traces),
        "kernel_ns": kernel_ns,
        "linked_pct": percent(total(linked), kernel_ns),
        "inductor_kernels": origins.count("inductor"),
        "graph_launches": sum(c.name == GRAPH_LAUNCH for t in traces for c in t.calls),
        **{
            f"{name}{end}_ns": captured.step(kind, what) if captured else (step_ns if (kind, end) == TOLD else None)
            for name, kind in (("step", "pipelined"), ("synced", "synced"))
            for end, what in (("", "median"), ("_low", "low"), ("_high", "high"))
        },
        "is_disturbed": is_disturbed(captured),
        "peak_memory_bytes": said.get("peak_memory_bytes") or max(peaks(traces), default=None),
        "compile_ns": sum(phases) if said.get("facts") else None,
        "graph_breaks": sum(r["count"] for r in captured.facts("graph_breaks")) if said.get("facts") else None,
    }


def is_disturbed(captured: Captured | None) -> bool | None:
    """Steps that wait for nothing took over twice as long as those that wait."""
    pipelined, synced = (captured and captured.step(kind, "median") for kind in ("pipelined", "synced"))
    return None if pipelined is None or synced is None else pipelined > 2 * synced


TOLD = ("pipelined", "")  # what `traceq ingest --step` tells


def peaks(traces: list[Trace]) -> list[int]:
    """What the allocator says is in use on a GPU, moment by moment."""
    return [
        int(e.args["Total Allocated"])
        for t in traces
        for e in t.explained.memory
        if e.args.get("Device Type") != 0 and "Total Allocated" in e.args
    ]


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    period_parts: [{}, {"run": "eager", "by_name": True}, {"run": "uneven", "skip": "1"}],
    period_kernels: [{"run": "default"}, {"run": "shapes", "by_name": True}, {"run": "ranks"}, {"run": "model"}],
    step_measures: [{}, {"run": "eager", "by_name": True}, {"run": "overlap", "skip": "3,4"}],
    unlike_steps: [{}, {"run": "uneven"}],
    run_facts: [{}, {"run": "ranks"}, {"run": "train/default"}],
}
