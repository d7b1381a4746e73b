"""The golden rows of the queries about launches, idle time and waiting, by plain Python and not by traceq.

Operators, steps and causes are those of explain.py and definitions.py; what shows a cause (its evidence) is found here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import definitions
import explain
from definitions import Row, Trace, by_run, in_order, keyed, median, percent, ratio, total
from explain import Call, Gap, Nested, Part, Work, covered

LAUNCH_BOUND = {"cpu_ops", "python", "cuda_api", "compiled_runtime", "launch_latency"}
Named = tuple[int, int, str]


def name_of(row: Any) -> str | None:
    return row.name if row else None


def step_of(t: Trace, row: explain.Row | None) -> definitions.Step | None:
    """The step in which a row of the host starts."""
    return row and next((s for s in t.steps if s.has(t.events[row.place])), None)


def number(step: definitions.Step | None) -> int | None:
    return step.number if step else None


def is_idle_known(traces: Iterable[Trace]) -> bool:
    """Whether every trace has GPU work, and all its replays were recorded."""
    return all(any(w.dur for w in t.explained.work) and not t.invisible for t in traces)


def most(weights: Iterable[tuple[Any, int]]) -> Any:
    """The key of the greatest sum; of equal ones the first in order, what has no name last."""
    sums = Counter()
    for key, ns in weights:
        sums[key] += ns
    return max(sorted(sums, key=none_last), key=lambda key: sums[key], default=None)


def none_last(key: Any) -> list[tuple[bool, str]]:
    """To sort names, and tuples of names."""
    return [(name is None, name or "") for name in (key if isinstance(key, tuple) else (key,))]


def outermost(op: Nested | None) -> Nested | None:
    return [*op.chain()][-1] if op else None


# Evidence ---------------------------------------------------------------------------------------------------


def stretches(rows: Iterable[Named]) -> list[Named]:
    """Rows that overlap or touch as one, with the name of the longest."""
    found: list[list[Any]] = []
    for start, end, name in sorted(r for r in rows if r[1] > r[0]):
        if not found or start > found[-1][1]:
            found.append([start, end, []])
        found[-1][1] = max(found[-1][1], end)
        found[-1][2].append((end - start, name))
    return [(start, end, max(names)[1]) for start, end, names in found]


class Evidence:
    """Finds what shows the cause of a part: what the host did last before the launch, of what it did most."""

    def __init__(self, trace: explain.Trace) -> None:
        doing = [((c.lane, explain.class_of_call(c)), c) for c in trace.calls]
        doing += [((r.lane, explain.class_of_mark(r)), r) for r in trace.ops + trace.ranges]
        doing += [(("any", explain.class_of_overhead(o)), o) for o in trace.overheads]
        spans = [(key, (row.start, row.start + row.dur, row.name)) for key, row in doing]
        self.done = {key: stretches(span for _, span in some) for key, some in keyed(spans, lambda s: s[0]).items()}
        self.launching = {c.lane for c in trace.calls if c.work}
        self.looks: dict[explain.Lane, list[tuple[str, str, list[Named]]]] = {}
        self.trace = trace

    def look(self, lane: explain.Lane) -> list[tuple[str, str, list[Named]]]:
        """(cause, where, stretches): the thread and what is on none, then the process's other launching threads."""
        if lane not in self.looks:
            others = [other for other in self.launching if other[0] == lane[0] and other != lane]
            places = [("", ["any", lane]), (" on another thread", others)]
            self.looks[lane] = [
                (cause, where, stretches(s for place in some for s in self.done.get((place, cause), [])))
                for where, some in places
                for cause in explain.ORDER
            ]
        return self.looks[lane]

    def of(self, gap: Gap, part: Part) -> str | None:
        """What shows the cause of a part of a gap."""
        if part.part == "whole":
            return self.of_whole(gap, part)
        launch = gap.after.launch
        if part.part == "launch":
            return self.of_launch(launch, part.cause)
        if part.cause == "sync":
            return part.evidence
        if part.cause == "python":
            return name_of(launch.frame or launch.range)
        return self.of_host(launch.lane, gap.start, gap.start + part.ns, part.cause)

    def of_whole(self, gap: Gap, part: Part) -> str | None:
        if gap.after is None:
            return "no work follows within the window"
        if part.cause != "dependency":
            return None
        launch = gap.after.launch
        feeding = [w.launch.start for w in self.trace.work if w.launch and is_for(gap.after, w.device, w.stream)]
        since = max((start for start in feeding if start < launch.start), default=float("-inf"))
        rows = [
            s.start
            for s in self.trace.syncs
            if "Wait" in s.name and is_for(gap.after, s.args.get("device", gap.device), s.args.get("stream"))
        ]
        calls = [c.start for c in self.trace.calls if c.role == "wait" and c.lane == launch.lane]
        if any(since < start <= launch.start for start in rows):
            return "the stream was told to wait for an event"
        if any(since < start <= launch.start for start in calls):
            return "a stream wait call came before the launch"
        return "work on another stream ended just before"

    def of_launch(self, launch: Call, cause: str) -> str | None:
        if cause == "launch_latency":
            return None
        held = stretches(s for (_, known), some in self.done.items() if known == cause for s in some)
        return [s[2] for s in held if s[0] < launch.end][-1]

    def of_host(self, lane: explain.Lane, start: int, end: int, cause: str) -> str | None:
        """The last stretch that began before the launch, in the first place where the cause explains anything."""
        before, spans = 0, []
        for its_cause, where, rows in self.look(lane):
            first = bisect_right(rows, start, key=lambda s: s[1])
            inside = rows[first : bisect_left(rows, end, key=lambda s: s[0])]
            spans += [(max(s[0], start), min(s[1], end)) for s in inside]
            after = covered(spans)
            if its_cause == cause and after > before:
                return inside[-1][2] + where
            before = after
        raise AssertionError(f"nothing shows {cause}")


def is_for(work: Work, device: int, stream: int | None) -> bool:
    return (work.device, work.stream) == (device, stream)


# Idle time --------------------------------------------------------------------------------------------------


def gap_causes(traces: list[Trace], scope: str | None = "device") -> list[Row]:
    rows = []
    for t in traces:
        gaps = t.explained.stream_gaps if scope == "stream" else t.explained.device_gaps
        for (device, stream), some in keyed(gaps, lambda g: (g.device, g.stream)).items():
            work = [w for w in t.explained.work if w.device == device and (scope != "stream" or w.stream == stream)]
            window = max(w.end for w in work) - min(w.start for w in work)
            parts = [p for g in some for p in g.parts]
            for cause, same in keyed(parts, lambda p: p.cause).items():
                idle = sum(p.ns for p in same)
                rows.append({
                    "run": t.run,
                    "rank": t.rank,
                    "device": device,
                    "stream": stream,
                    "cause": cause,
                    "is_launch_bound": cause in LAUNCH_BOUND,
                    "parts": len(same),
                    "idle_ns": idle,
                    "pct_of_idle": percent(idle, sum(g.dur for g in some)),
                    "pct_of_window": percent(idle, window),
                    "median_ns": median(p.ns for p in same),
                    "max_ns": max(p.ns for p in same),
                })  # fmt: skip
    return in_order(rows, "run", "rank", "device", "stream", "-idle_ns", "cause")


def launch_gaps(traces: list[Trace], min_ns: int | None = 0) -> list[Row]:
    rows = []
    for t in traces:
        for device, all_gaps in keyed(t.explained.device_gaps, lambda g: g.device).items():
            long = [g for g in all_gaps if g.dur >= (min_ns or 0)]
            for state, some in keyed(long, lambda g: g.state).items():
                idle = sum(g.dur for g in some)
                host = None if state == "unknown" else sum(g.host_ns for g in some)
                parts = [p for g in some for p in g.parts]
                cause = most((p.cause, p.ns) for p in parts)
                rows.append({
                    "run": t.run,
                    "rank": t.rank,
                    "device": device,
                    "launch_state": state,
                    "gaps": len(some),
                    "idle_ns": idle,
                    "pct_of_idle": percent(idle, sum(g.dur for g in all_gaps)),
                    "median_ns": median(g.dur for g in some),
                    "max_ns": max(g.dur for g in some),
                    "host_ns": host,
                    "after_launch_ns": None if host is None else idle - host,
                    "main_cause": cause,
                    "main_pct": percent(sum(p.ns for p in parts if p.cause == cause), idle),
                    "main_op": most((name_of(p.op), p.ns) for p in parts if p.cause == cause),
                })  # fmt: skip
    return in_order(rows, "run", "rank", "device", "-idle_ns", "launch_state")


def longest_gaps(traces: list[Trace], top: int | None = 20, min_ns: int | None = 0) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        found = [
            {"rank": t.rank, "device": g.device, "start_ns": g.start, "dur_ns": g.dur, "gap": g, "trace": t}
            for t in some
            for g in t.explained.device_gaps
            if g.dur >= (min_ns or 0)
        ]
        evidence = {id(t): Evidence(t.explained) for t in some}
        for row in in_order(found, "-dur_ns", "rank", "device", "start_ns")[:top]:
            t, gap = row["trace"], row["gap"]
            part = max(gap.parts, key=lambda p: p.ns)
            rows.append({
                "run": run,
                "rank": t.rank,
                "device": gap.device,
                "step": number(step_of(t, gap.after and gap.after.launch)),
                "start_ns": gap.start,
                "dur_ns": gap.dur,
                "cause": part.cause,
                "evidence": evidence[id(t)].of(gap, part),
                "op": name_of(part.op),
                "host_ns": gap.host_ns if gap.after and gap.after.launch else None,
                "next_work": name_of(gap.after),
            })  # fmt: skip
    return rows


# Launches ---------------------------------------------------------------------------------------------------


def launch_queue(traces: list[Trace], buckets: int | None = 40) -> list[Row]:
    rows = [
        row
        for t in traces
        for device in t.devices
        for row in queue_rows(t, device, max(40 if buckets is None else buckets, 1))
    ]
    return in_order(rows, "run", "rank", "device", "bucket")


def queue_rows(t: Trace, device: int, buckets: int) -> Iterator[Row]:
    work = [w for w in t.explained.work if w.device == device]
    first, last = min(w.start for w in work), max(w.end for w in work)
    width = -((first - last) // buckets)
    flights = []
    for call, some in keyed((w for w in work if w.launch), lambda w: w.launch).items():
        until = max(call.start, min(w.start for w in some))
        flights.append((min(max(call.start, first), last), min(until, last)))
    begins, ends = sorted(f[0] for f in flights), sorted(f[1] for f in flights)
    starts = range(first, last, max(width, 1))
    for bucket, start in enumerate(starts):
        end = min(start + width, last)
        inside = partial(clipped, start=start, end=end)
        flying, busy = inside(flights), inside((w.start, w.end) for w in work)
        moments = {start, *(m for span in flying for m in span if m < end)}
        last_one = last if end == last else last - 1
        yield {
            "run": t.run,
            "rank": t.rank,
            "device": device,
            "bucket": bucket,
            "start_ns": start,
            "dur_ns": end - start,
            "launches": sum(start <= begin < end or begin == end == last_one for begin in begins),
            "mean_depth": ratio(sum(b - a for a, b in flying), end - start),
            "max_depth": max(bisect_right(begins, m) - bisect_right(ends, m) for m in moments),
            "drained_ns": None if t.invisible else end - start - covered(flying),
            "idle_ns": None if t.invisible else end - start - covered(busy),
            "starved_ns": None if t.invisible else end - start - covered(flying + busy),
        }


def clipped(spans: Iterable[explain.Span], start: int, end: int) -> list[explain.Span]:
    """What of them lies in an interval."""
    return [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]


def api_time(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        steps = sum(len(t.good_steps) for t in some)
        calls = [(t, c) for t in some for c in t.explained.calls]
        lanes = {(id(t), lane): span for t in some for lane, span in lane_spans(t).items()}
        named = []
        for (name, role), same in keyed(calls, lambda tc: (tc[1].name, tc[1].role)).items():
            callers = {(id(t), c.lane) for t, c in same}
            stepped = [c for t, c in same if step_of(t, c) in t.good_steps]
            spent = sum(c.dur for _, c in same)
            named.append({
                "run": run,
                "name": name,
                "role": role,
                "threads": len(callers),
                "calls": len(same),
                "total_ns": spent,
                "pct_of_thread": percent(spent, sum(lanes[caller] for caller in callers)),
                "median_ns": median(c.dur for _, c in same),
                "max_ns": max(c.dur for _, c in same),
                "calls_per_step": ratio(len(stepped), steps),
                "ns_per_step": ratio(sum(c.dur for c in stepped), steps),
            })  # fmt: skip
        rows += in_order(named, "-total_ns", "name")[:top]
    return rows


def lane_spans(t: Trace) -> dict[explain.Lane, int]:
    """From the first start to the last end of calls, operators and ranges on each thread."""
    rows = [*t.explained.calls, *t.explained.ops, *t.explained.ranges]
    lanes = keyed(rows, lambda r: r.lane)
    return {lane: max(r.start + r.dur for r in some) - min(r.start for r in some) for lane, some in lanes.items()}


def graph_launches(traces: list[Trace]) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        calls = [(t, c) for t in some for c in t.explained.calls if c.role == "graph_launch"]
        idle = replay_idle(some)
        steps = sum(len(t.good_steps) for t in some)
        graphs = []
        for (op, graph, kernels, memops, first), same in keyed(calls, lambda tc: graph_key(tc[1])).items():
            works = [(c, sorted(c.work, key=lambda w: w.rank)) for _, c in same if c.work]
            times = [sum(w.dur for w in work if w.kind == "kernel") for _, work in works]
            is_seen = not any(t.invisible for t, _ in same)
            graphs.append({
                "run": run,
                "op": op,
                "graph_id": graph,
                "launches": len(same),
                "kernels": kernels,
                "memops": memops,
                "host_ns": median(c.dur for _, c in same),
                "latency_ns": median(work[0].start - c.start for c, work in works),
                "span_ns": median(max(w.end for w in work) - work[0].start for _, work in works),
                "kernel_ns": median(times),
                "idle_ns": ratio(sum(idle[c] for _, c in same), len(same)) if is_seen else None,
                "launches_per_step": ratio(sum(step_of(t, c) in t.good_steps for t, c in same), steps),
                "first_kernel": first,
                "total": total(times),
            })  # fmt: skip
        graphs = in_order(graphs, "-total", "-kernels", "op", "graph_id", "memops", "first_kernel")
        rows += [{k: v for k, v in row.items() if k != "total"} for row in graphs]
    return rows


def graph_key(call: Call) -> tuple[Any, ...]:
    """What tells a graph from another: replays that were not recorded tell nothing."""
    if not call.work:
        return name_of(call.op), None, None, None, None
    kernels = sorted((w for w in call.work if w.kind == "kernel"), key=lambda w: w.rank)
    first, graph = next(iter(kernels), None), call.work[0].args.get("graph id")
    return name_of(call.op), graph, len(kernels), len(call.work) - len(kernels), name_of(first)


def replay_idle(traces: list[Trace]) -> Counter[Call]:
    """Idle time inside the replay of each launch."""
    found = Counter()
    for t in traces:
        for gap in t.explained.device_gaps:
            found[gap.after and gap.after.launch] += sum(p.ns for p in gap.parts if p.cause == "in_graph")
    return found


# Waiting ----------------------------------------------------------------------------------------------------


def waits(t: Trace) -> list[tuple[Call, int]]:
    """The synchronising calls, each with the idle time of which it is the cause."""
    calls, blamed = [c for c in t.explained.calls if explain.is_synchronising(c)], Counter()
    for gap in t.explained.device_gaps:
        for part in gap.parts:
            if part.cause == "sync":
                launch = gap.after.launch
                before = [c for c in calls if c.lane == launch.lane and c.start < launch.start]
                blamed[max(before, key=lambda c: c.end)] += part.ns
    return [(c, blamed[c]) for c in calls]


def range_of(call: Call) -> str | None:
    return call.range.name if call.range and call.range.kind != "step" else None


def sync_points(traces: list[Trace], top: int | None = 20, min_ns: int | None = 0) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        found = [
            {
                "run": run,
                "rank": t.rank,
                "name": call.name,
                "thread": t.explained.threads.get(call.lane, str(call.tid)),
                "step": number(step_of(t, call)),
                "start_ns": call.start,
                "dur_ns": call.dur,
                "idle_ns": idle if is_idle_known([t]) else None,
                "op": name_of(call.op),
                "range": range_of(call),
            }
            for t in some
            for call, idle in waits(t)
            if call.dur >= (min_ns or 0)
        ]
        rows += in_order(found, "-idle_ns", "-dur_ns", "rank", "start_ns")[:top]
    return rows


def sync_sites(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        steps, is_known = sum(len(t.good_steps) for t in some), is_idle_known(some)
        all_idle = sum(g.dur for t in some for g in t.explained.device_gaps)
        calls = [(t, call, idle) for t in some for call, idle in waits(t)]
        found = []
        for (outer, op, name, around, python), same in keyed(calls, lambda found: site(found[1])).items():
            stepped = [c for t, c, _ in same if step_of(t, c) in t.good_steps]
            idle = sum(ns for *_, ns in same)
            found.append({
                "run": run,
                "outer_op": outer,
                "op": op,
                "name": name,
                "calls": len(same),
                "total_ns": sum(c.dur for _, c, _ in same),
                "idle_ns": idle if is_known else None,
                "pct_of_idle": percent(idle, all_idle) if is_known else None,
                "calls_per_step": ratio(len(stepped), steps),
                "ns_per_step": ratio(sum(c.dur for c in stepped), steps),
                "range": around,
                "python": python,
            })  # fmt: skip
        rows += in_order(found, "-idle_ns", "-total_ns", "outer_op", "op", "name", "range", "python")[:top]
    return rows


def site(call: Call) -> tuple[str | None, ...]:
    frames = [frame.name for frame in call.frame.chain()] if call.frame else []
    own = [f for f in frames if not re.match(r"<|nn\.Module: |torch/|.*/(site|dist)-packages/", f)]
    python = next(iter([*own, *(f for f in frames if "): " in f), *frames]), None)
    return name_of(outermost(call.op)), name_of(call.op), call.name, range_of(call), python


def allocator_calls(traces: list[Trace]) -> list[Row]:
    rows = []
    for run, some in by_run(traces).items():
        calls = [(t, c) for t in some for c in t.explained.calls if c.role == "alloc"]
        idle = idle_by_evidence(some, "allocator", lambda _, name: name)
        for name, same in keyed(calls, lambda tc: tc[1].name).items():
            steps = [step_of(t, c) for t, c in same]
            op, outer = most(((name_of(c.op), name_of(outermost(c.op))), c.dur) for _, c in same)
            rows.append({
                "run": run,
                "name": name,
                "calls": len(same),
                "total_ns": sum(c.dur for _, c in same),
                "max_ns": max(c.dur for _, c in same),
                "bytes": total(c.args["bytes"] for _, c in same if "bytes" in c.args),
                "idle_ns": idle[name] if is_idle_known(some) else None,
                "steps": len({id(s) for s in steps if s}),
                "first_step": min((s.number for s in steps if s), default=None),
                "last_step": max((s.number for s in steps if s), default=None),
                "outside": sum(s is None for s in steps),
                "op": op,
                "outer_op": outer,
            })  # fmt: skip
    return in_order(rows, "run", "-total_ns", "name")


def idle_by_evidence(traces: list[Trace], cause: str, key: Callable[[Gap, str], Any]) -> Counter[Any]:
    """Idle time of one cause by what shows it, on whatever thread."""
    found = Counter()
    for t in traces:
        evidence = Evidence(t.explained)
        for gap in t.explained.device_gaps:
            for part in gap.parts:
                if part.cause == cause:
                    found[key(gap, evidence.of(gap, part).removesuffix(" on another thread"))] += part.ns
    return found


@dataclass
class Load:
    """A load of code, and the work that it delays."""

    name: str
    start: int
    dur: int
    kernel: str | None
    step: int | None


def first_use_loads(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        idle = idle_by_evidence(some, "module_load", lambda gap, name: (name, gap.after.name))
        loads = keyed([load for t in some for load in loads_of(t)], lambda load: (load.name, load.kernel))
        found = []
        for name, kernel in {**loads, **idle}:
            same = loads.get((name, kernel), [])
            found.append({
                "run": run,
                "name": name,
                "loads": len(same),
                "total_ns": total(load.dur for load in same),
                "max_ns": max((load.dur for load in same), default=None),
                "idle_ns": idle[name, kernel] if is_idle_known(some) else None,
                "first_start_ns": min((load.start for load in same), default=None),
                "step": min((load.step for load in same if load.step is not None), default=None),
                "kernel": kernel,
            })  # fmt: skip
        rows += in_order(found, "-idle_ns", "-total_ns", "name", "kernel")[:top]
    return rows


def loads_of(t: Trace) -> Iterator[Load]:
    launches = [c for c in t.explained.calls if c.work]
    own = [(r, [c for c in launches if c.lane == r.lane]) for r in t.explained.calls if r.role == "load"]
    anywhere = [(r, launches) for r in t.explained.overheads if explain.class_of_overhead(r) == "module_load"]
    for row, some in own + anywhere:
        call = min((c for c in some if c.end > row.start), key=lambda c: (c.end, c.order), default=None)
        work = min(call.work, key=lambda w: w.rank) if call else None
        yield Load(row.name, row.start, row.dur, name_of(work), number(step_of(t, call)))


LOADER = "enumerate(DataLoader)#"


def dataloader_wait(traces: list[Trace]) -> list[Row]:
    rows = [row for t in traces for row in loader_rows(t)]
    rows = in_order(rows, "run", "rank", "start", "step")
    return [{k: v for k, v in row.items() if k != "start"} for row in rows]


def loader_rows(t: Trace) -> Iterator[Row]:
    marks = [r for r in t.explained.ops + t.explained.ranges if r.name.startswith(LOADER)]
    outer = [m for m in marks if not any(o is not m and is_around(o, m) for o in marks)]
    waited = keyed(outer, lambda m: step_of(t, m))
    idle = Counter()
    for gap in t.explained.device_gaps:
        for part in gap.parts:
            if part.cause == "dataloader":
                idle[step_of(t, gap.after.launch)] += part.ns
    for step in dict.fromkeys([*t.steps, *waited, *idle]) if marks else []:
        same = waited.get(step, [])
        wait, length = sum(m.dur for m in same), step.end - step.start if step else None
        blamed = idle[step] if is_idle_known([t]) else None
        yield {
            "run": t.run,
            "rank": t.rank,
            "step": number(step),
            "flags": (", ".join(step.flags) or None) if step else None,
            "step_ns": length,
            "batches": len(same),
            "wait_ns": wait,
            "wait_pct_of_step": percent(wait, length),
            "idle_ns": blamed,
            "idle_pct_of_step": percent(blamed, length),
            "loader": most((m.name.removeprefix(LOADER), m.dur) for m in same),
            "start": step.start if step else None,
        }


def is_around(outer: Nested, inner: Nested) -> bool:
    return outer.lane == inner.lane and outer.start <= inner.start < outer.end and outer.dur > inner.dur


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    gap_causes: [{}, {"scope": "stream"}, {"run": "causes"}, {"run": "nogpu", "scope": None}],
    launch_gaps: [{}, {"min_ns": 10000}, {"run": "replay", "min_ns": None}],
    longest_gaps: [{}, {"run": "causes", "top": None}, {"run": "default", "top": 60, "min_ns": 20000}],
    launch_queue: [{"buckets": 4}, {"run": "syncs"}, {"run": "pair", "buckets": 7}],
    api_time: [{}, {"run": "causes", "top": None}, {"run": "eager", "top": 3}],
    graph_launches: [{}, {"run": "causes"}],
    sync_points: [{}, {"run": "overlap", "top": None, "min_ns": 10000}, {"run": "causes", "top": 1}],
    sync_sites: [{}, {"run": "causes", "top": 1}],
    allocator_calls: [{}, {"run": "causes"}],
    first_use_loads: [{}, {"run": "causes", "top": 2}],
    dataloader_wait: [{}, {"run": "causes"}],
}
