"""The golden rows of the queries named after nsys' reports and rules, by plain Python and not by traceq.

The definitions are those of `nsys stats` and `nsys analyze`; what they read is in recordings.py.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import recordings
from definitions import Row, Trace, by_run, in_order, keyed, median, percent
from recordings import Recording, Span, Work

GRID = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
PROFILER = {"CUDA profiling data flush overhead", "CUDA profiling stop overhead", "CUDA profiling overhead"}
Some = list[Trace] | list[Recording]


def read(traces: Some) -> list[Recording]:
    return [t if isinstance(t, Recording) else recordings.of_trace(t) for t in traces]


def spread(values: Iterable[int | None], unit: str = "ns", before: str = "") -> Row:
    """Mean, median, least, most and the deviation of a sample; None where there is nothing."""
    known = [v for v in values if v is not None]
    names = [f"{before}{name}_{unit}" for name in ("avg", "med", "min", "max", "stddev")]
    if not known:
        return dict.fromkeys(names)
    mean = Fraction(sum(known), len(known))
    squares = sum((v - mean) ** 2 for v in known)
    deviation = math.sqrt(squares / (len(known) - 1)) if len(known) > 1 else 0.0
    return dict(zip(names, [mean, median(known), min(known), max(known), deviation], strict=True))


def printed(name: str | None) -> str | None:
    """A call's name as nsys prints it."""
    return name and re.sub("_v.{4}$", "", name)


def first(rows: list[Row], top: int | None) -> list[Row]:
    """The first rows of each run, runs by name, without the keys that only order them."""
    found = [row for _, some in sorted(keyed(rows, lambda r: r["run"]).items()) for row in some[:top]]
    return [{k: v for k, v in row.items() if not k.startswith("_")} for row in found]


def summed(run: str, durs: list[int], whole: int | None, count: str, names: Row) -> Row:
    return {
        "run": run,
        "time_pct": None if whole is None else percent(sum(durs), whole),
        "total_ns": sum(durs),
        count: len(durs),
        **spread(durs),
        **names,
    }


# Reports that sum ---------------------------------------------------------------------------------------------


def kernels(traces: Some, names: str | None, top: int | None, grid: bool) -> list[Row]:
    rows = []
    which = {"base": 1, "mangled": 2}.get(names or "", 0)
    for run, some in by_run(read(traces)).items():
        work = [w for t in some for w in t.work if w.kind == "kernel"]
        whole = sum(w.dur for w in work) if all(t.is_whole for t in some) else None
        for (name, size), same in keyed(work, lambda w: (w.names[which], size_of(w) if grid else ())).items():
            columns = dict(zip(GRID, size, strict=False)) | {"name": name}
            rows.append(summed(run, [w.dur for w in same], whole, "instances", columns))
    return first(in_order(rows, "-total_ns", "name", *(GRID if grid else [])), top)


def size_of(w: Work) -> tuple[int | None, ...]:
    return (*w.columns["grid"], *w.columns["block"])


def cuda_gpu_kern_sum(traces: Some, names: str | None = "demangled", top: int | None = 20) -> list[Row]:
    return kernels(traces, names, top, grid=False)


def cuda_gpu_kern_gb_sum(traces: Some, names: str | None = "demangled", top: int | None = 20) -> list[Row]:
    return kernels(traces, names, top, grid=True)


def cuda_api_sum(traces: Some, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in by_run(read(traces)).items():
        calls = [c for t in some for c in t.calls]
        whole = sum(c.dur for c in calls)
        for name, same in keyed(calls, lambda c: c.name).items():
            rows.append({**summed(run, [c.dur for c in same], whole, "num_calls", {"name": printed(name)}), "_": name})
    return first(in_order(rows, "-total_ns", "_"), top)


def cuda_gpu_mem_time_sum(traces: Some) -> list[Row]:
    rows = []
    for run, some in by_run(read(traces)).items():
        work = [w for t in some for w in t.work if w.kind in ("memcpy", "memset")]
        whole = sum(w.dur for w in work) if all(t.is_whole for t in some) else None
        for operation, same in keyed(work, lambda w: w.operation).items():
            rows.append(summed(run, [w.dur for w in same], whole, "count", {"operation": operation}))
    return first(in_order(rows, "-total_ns", "operation"), None)


def cuda_gpu_mem_size_sum(traces: Some) -> list[Row]:
    rows = []
    for run, some in by_run(read(traces)).items():
        work = [w for t in some for w in t.work if w.kind in ("memcpy", "memset")]
        for operation, same in keyed(work, lambda w: w.operation).items():
            sizes = [w.bytes for w in same if w.bytes is not None]
            total = {"total_bytes": sum(sizes) if sizes else None, "count": len(sizes) or None}
            rows.append({"run": run, **total, **spread(sizes, "bytes"), "operation": operation})
    return first(in_order(rows, "-total_bytes", "operation"), None)


# Kernels and their launches -------------------------------------------------------------------------------------


def queued(w: Work) -> int | None:
    return w.start - w.launch.end if w.start >= w.launch.end else None


def in_all(w: Work) -> int:
    return max(w.launch.end, w.end) - w.launch.start


def cuda_kern_exec_sum(traces: Some, top: int | None = 20) -> list[Row]:
    rows = []
    for t in read(traces):
        launched = [w for w in t.work if w.kind == "kernel" and w.launch]
        key = lambda w: (w.launch.pid, w.launch.tid, w.device, w.launch.name, w.names[0])  # noqa: E731
        for (pid, tid, device, call, name), same in keyed(launched, key).items():
            rows.append(
                {
                    "run": t.run,
                    "rank": t.rank,
                    "pid": pid,
                    "tid": tid,
                    "device": device,
                    "count": len(same),
                    "q_count": sum(queued(w) is not None for w in same),
                    **spread([in_all(w) for w in same], before="t_"),
                    **spread([w.launch.dur for w in same], before="a_"),
                    **spread([queued(w) for w in same], before="q_"),
                    **spread([w.dur for w in same], before="k_"),
                    "api_name": printed(call),
                    "kernel_name": name,
                    "_": call,
                }
            )
    return first(in_order(rows, "-t_avg_ns", "rank", "pid", "tid", "device", "_", "kernel_name"), top)


def cuda_kern_exec_trace(traces: Some, top: int | None = 100) -> list[Row]:
    rows = []
    for t in read(traces):
        for number, w in enumerate(t.work):
            if w.kind == "kernel" and w.launch:
                rows.append(exec_row(t, w) | {"_call": t.calls.index(w.launch), "_number": number})
    return first(in_order(rows, "api_start_ns", "rank", "_call", "_number"), top)


def exec_row(t: Recording, w: Work) -> Row:
    columns = w.columns
    return {
        "run": t.run,
        "rank": t.rank,
        "api_start_ns": w.launch.start,
        "api_dur_ns": w.launch.dur,
        "queue_start_ns": None if queued(w) is None else w.launch.end,
        "queue_dur_ns": queued(w),
        "kernel_start_ns": w.start,
        "kernel_dur_ns": w.dur,
        "total_dur_ns": in_all(w),
        "pid": w.launch.pid,
        "tid": w.launch.tid,
        "device": w.device,
        "api_name": printed(w.launch.name),
        **{f"{c}_xyz": None if columns[c][0] is None else ",".join(map(str, columns[c])) for c in ("grid", "block")},
        "kernel_name": w.names[0],
    }


def cuda_gpu_trace(traces: Some, top: int | None = 100) -> list[Row]:
    rows = []
    for t in read(traces):
        for number, w in enumerate(t.work):
            columns = {k: v for k, v in w.columns.items() if k not in ("grid", "block", "ends", "corr_id")}
            after = {k: columns.pop(k) for k in ("src_kind", "dst_kind", "context", "green_context", "stream")}
            kinds = {k: after.pop(k) for k in ("src_kind", "dst_kind")}
            rows.append(
                {
                    "run": t.run,
                    "rank": t.rank,
                    "start_ns": w.start,
                    "dur_ns": w.dur,
                    "corr_id": w.columns["corr_id"],
                    **dict(zip(GRID, size_of(w), strict=True)),
                    **columns,
                    "bytes": w.bytes,
                    "bytes_per_s": Fraction(w.bytes * 10**9, w.dur) if w.dur and w.bytes is not None else None,
                    **kinds,
                    "device": t.device(w.device),
                    **after,
                    "name": w.operation if w.kind in ("memcpy", "memset") else w.names[0],
                    "_": number,
                }
            )
    return first(in_order(rows, "start_ns", "rank", "_"), top)


# NVTX -----------------------------------------------------------------------------------------------------------


def nvtx_sum(traces: Some, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in by_run(read(traces)).items():
        timed = [(s.name, s.style, dur) for t in some for s, dur in lengths(t.spans)]
        whole = sum(dur for _, _, dur in timed)
        for (name, style), same in keyed(timed, lambda r: r[:2]).items():
            names = {"style": style, "range": name}
            rows.append(summed(run, [dur for _, _, dur in same], whole, "instances", names))
    return first(in_order(rows, "-total_ns", "range", "style"), top)


def lengths(spans: list[Span]) -> list[tuple[Span, int]]:
    """Ranges with their lengths; one that was never closed ends with the last range or mark."""
    last = max((s.start if s.end is None else s.end for s in spans), default=0)
    return [(s, (last if s.end is None else s.end) - s.start) for s in spans if s.style != "mark"]


def holding(t: Recording) -> dict[int, list[Span]]:
    """For each call that launched something, or a hidden replay, the ranges that it is in, by id(call)."""
    lanes = keyed(closed(t), lambda s: (s.pid, s.tid))
    return {
        id(c): [s for s in lanes[c.pid, c.tid] if s.start <= c.start and s.end >= c.end]
        for c in t.calls
        if c.work or c.is_hidden_replay
    }


def closed(t: Recording) -> list[Span]:
    return [s for s in t.spans if s.style != "mark" and s.end is not None and not s.ends_elsewhere]


def tree(t: Recording) -> tuple[dict[int, int], dict[int, int]]:
    """By id(range): how many ranges of its thread are open when it starts, and how many are directly in it."""
    levels, children = {}, defaultdict(int)
    for spans in keyed(closed(t), lambda s: (s.pid, s.tid)).values():
        opened, last = [], {}
        for s in spans:
            opened = [end for end in opened if end > s.start]
            levels[id(s)] = level = len(opened)
            if level:
                children[last[level - 1]] += 1
            last[level] = id(s)
            opened += [s.end] if s.end > s.start else []
    return levels, children


def nvtx_gpu_proj_sum(traces: Some, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in by_run(read(traces)).items():
        found = [(s, row) for t in some for s, row in projected(t)]
        for (name, style), same in keyed(found, lambda f: (f[0].name, f[0].style)).items():
            mean = lambda column: Fraction(sum(row[column] for _, row in same), len(same))  # noqa: B023, E731
            rows.append(
                {
                    "run": run,
                    "range": name,
                    "style": style,
                    "total_proj_ns": sum(row["proj"] for _, row in same),
                    "total_range_ns": sum(s.end - s.start for s, _ in same),
                    "range_instances": len(same),
                    **spread([row["proj"] for _, row in same], before="proj_"),
                    "total_gpu_ops": sum(row["ops"] for _, row in same),
                    "avg_gpu_ops": mean("ops"),
                    "avg_range_lvl": mean("level"),
                    "avg_num_child": mean("children"),
                    "hidden_replays": sum(row["hidden"] for _, row in same),
                }
            )
    return first(in_order(rows, "-total_proj_ns", "range", "style"), top)


def projected(t: Recording) -> list[tuple[Span, Row]]:
    """Ranges that launched something, with what it was."""
    held, (levels, children) = holding(t), tree(t)
    calls = defaultdict(list)
    for c in t.calls:
        for s in held.get(id(c), []):
            calls[id(s)].append(c)
    found = []
    for s in closed(t):
        if work := [w for c in calls[id(s)] for w in c.work]:
            row = {"proj": max(w.end for w in work) - min(w.start for w in work), "level": levels[id(s)]}
            row |= {"ops": sum(bool(c.work) for c in calls[id(s)]), "children": children[id(s)]}
            found.append((s, row | {"hidden": sum(not c.work for c in calls[id(s)])}))
    return found


def nvtx_kern_sum(traces: Some, top: int | None = 50) -> list[Row]:
    rows = []
    for t in read(traces):
        held, groups = holding(t), defaultdict(list)
        for w in t.work:
            if w.kind == "kernel":
                lane = (w.launch.pid, w.launch.tid) if w.launch else (None, None)
                for s in (held[id(w.launch)] if w.launch else []) or [None]:
                    groups[s and s.name, s and s.style, *lane, w.names[0]].append((s, w.dur))
        for (name, style, pid, tid, kernel), same in groups.items():
            durs = [dur for _, dur in same]
            rows.append(
                {
                    "run": t.run,
                    "rank": t.rank,
                    "range": name,
                    "style": style,
                    "pid": pid,
                    "tid": tid,
                    "nvtx_inst": len({id(s) for s, _ in same if s}),
                    "kern_inst": len(same),
                    "total_ns": sum(durs),
                    **spread(durs),
                    "kernel_name": kernel,
                }
            )
    return first(in_order(rows, "-total_ns", "range", "style", "rank", "pid", "tid", "kernel_name"), top)


# Rules ----------------------------------------------------------------------------------------------------------


def lanes(t: Recording) -> list[tuple[int | None, int, list[tuple[int, int]]]]:
    """For each process and device, when it was busy; the profiler's own work counts strictly inside."""
    found = []
    for (pid, device), work in keyed(t.work if t.is_whole else [], lambda w: (w.pid, w.device)).items():
        busy = [(w.start, w.end) for w in work]
        low, high = min(start for start, _ in busy), max(end for _, end in busy)
        own = [o for o in t.overheads if o["type"] in PROFILER and o["pid"] == pid]
        busy += [(o["start"], o["end"]) for o in own if low < o["start"] and o["end"] < high]
        found.append((pid, device, sorted(busy)))
    return found


def gpu_gaps(traces: Some, gap_ns: int | None = 500_000_000, top: int | None = 50) -> list[Row]:
    rows = []
    for t in read(traces):
        for pid, device, busy in lanes(t):
            reached = busy[0][1]
            for start, end in busy:
                if start - reached > (gap_ns or 0):
                    row = {"run": t.run, "rank": t.rank, "dur_ns": start - reached, "start_ns": reached}
                    rows.append(row | {"pid": pid, "device": device})
                reached = max(reached, end)
    return first(in_order(rows, "-dur_ns", "rank", "start_ns", "pid", "device"), top)


def gpu_time_util(traces: Some, chunks: int | None = 30, threshold_pct: float | None = 50) -> list[Row]:
    rows = []
    for t in read(traces):
        for pid, device, busy in lanes(t):
            low, high = busy[0][0], max(end for _, end in busy)
            width = -((low - high) // (chunks or 30))
            stretch: list[tuple[int, int, int]] = []
            for start in [*range(low, high, width or 1), None]:
                end = start is not None and min(start + width, high)
                used = start is not None and sum(max(min(b, end) - max(a, start), 0) for a, b in busy)
                if start is not None and (threshold_pct is None or percent(used, end - start) < threshold_pct):
                    stretch.append((start, end, used))
                elif stretch:
                    dur = stretch[-1][1] - stretch[0][0]
                    row = {"run": t.run, "rank": t.rank, "in_use_pct": percent(sum(s[2] for s in stretch), dur)}
                    row |= {"dur_ns": dur, "start_ns": stretch[0][0], "pid": pid, "device": device}
                    rows.append(row)
                    stretch = []
    return first(in_order(rows, "rank", "in_use_pct", "start_ns", "pid", "device"), None)


def cuda_api_sync(traces: Some, top: int | None = 50) -> list[Row]:
    rows = []
    for t in read(traces):
        for number, c in enumerate(t.calls):
            if re.match("(cuda|hip)(Device|Stream)Synchronize", c.name):
                row = {"run": t.run, "rank": t.rank, "dur_ns": c.dur, "start_ns": c.start, "pid": c.pid, "tid": c.tid}
                rows.append(row | {"api_name": printed(c.name), "_": number})
    return first(in_order(rows, "-dur_ns", "rank", "start_ns", "_"), top)


def copies(traces: Some, top: int | None, wanted: Callable[[Work], Any]) -> list[Row]:
    rows = []
    for t in read(traces):
        for number, w in enumerate(t.work):
            if w.kind == "memcpy" and w.launch and re.match("(cuda|hip)Memcpy", w.launch.name) and wanted(w):
                row = {"run": t.run, "rank": t.rank, "dur_ns": w.dur, "start_ns": w.start}
                row |= {k: w.columns[k] for k in ("src_kind", "dst_kind")} | {"bytes": w.bytes}
                row |= {"pid": w.pid, "device": w.device}
                row |= {k: w.columns[k] for k in ("context", "green_context", "stream")}
                rows.append(row | {"api_name": printed(w.launch.name), "_": number})
    return first(in_order(rows, "-dur_ns", "rank", "start_ns", "_"), top)


def cuda_memcpy_async(traces: Some, top: int | None = 50) -> list[Row]:
    kinds = ("src_kind", "dst_kind")
    return copies(traces, top, lambda w: "Async" in w.launch.name and "Pageable" in [w.columns[k] for k in kinds])


def cuda_memcpy_sync(traces: Some, top: int | None = 50) -> list[Row]:
    def wanted(w: Work) -> bool:
        is_small = w.direction == "Host-to-Device" and w.bytes is not None and w.bytes <= 64000
        source, target = w.columns["ends"]
        return "Async" not in w.launch.name and not is_small and (source is None or source != target)

    return copies(traces, top, wanted)


CALLS = {
    cuda_gpu_kern_sum: [{"top": 4}, {"run": "eager", "names": "base", "top": None}],
    cuda_gpu_kern_gb_sum: [{"top": 4}, {"run": "shapes", "names": "mangled", "top": None}],
    cuda_api_sum: [{}],
    cuda_gpu_mem_time_sum: [{}],
    cuda_gpu_mem_size_sum: [{}],
    cuda_kern_exec_sum: [{"top": 3}, {"run": "streams", "top": None}],
    cuda_kern_exec_trace: [{"top": 5}, {"run": "streams"}],
    cuda_gpu_trace: [{"top": 5}, {"run": "streams"}, {"run": "copies", "top": None}],
    nvtx_sum: [{}],
    nvtx_gpu_proj_sum: [{}],
    nvtx_kern_sum: [{"top": 5}, {"run": "model", "top": None}],
    gpu_gaps: [{}, {"gap_ns": 100_000, "top": 5}, {"run": "pair", "gap_ns": None, "top": None}],
    gpu_time_util: [{}, {"chunks": 7, "threshold_pct": 30.5}, {"run": "pair", "chunks": 4, "threshold_pct": None}],
    cuda_api_sync: [{}],
    cuda_memcpy_async: [{}],
    cuda_memcpy_sync: [{}],
}
