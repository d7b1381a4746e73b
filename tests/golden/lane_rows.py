"""The golden rows of the queries behind the timeline that one moves in, by plain Python and not by traceq."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from definitions import Row, Step, Trace, percent
from explain import Call, Gap, Nested, Part, Work
from launch_rows import Evidence
from op_rows import step_at, steps_of
from timeline_rows import first_run, frame_of, host


@dataclass(frozen=True)
class Item:
    """Something on a lane; `row` is what it is made of."""

    kind: str
    lane: str
    depth: int
    item: int
    name: str
    what: str
    start: int
    dur: int
    row: Any

    @property
    def end(self) -> int:
        return self.start + self.dur

    @property
    def place(self) -> tuple[str, str, int]:
        return self.kind, self.lane, self.depth

    def inside(self, start: int, end: int) -> int:
        return max(min(self.end, end) - max(self.start, start), 0)


def picked(traces: list[Trace], rank: int | None) -> Trace | None:
    return next((t for t in first_run(traces) if rank in (None, t.rank)), None)


def origin_of(t: Trace) -> int:
    return next((t.events[r.place].start - r.start for r in host(t)), 0)


def duration(t: Trace) -> int:
    return max((r.start + r.dur for r in [*host(t), *windows(t), *t.explained.work]), default=0)


def windows(t: Trace) -> list[Nested]:
    """The ranges that are the whole recording."""
    return [
        Nested(e.place, e.name, e.pid, None, e.start - origin_of(t), e.dur, e.args, kind="window")
        for e in t.events
        if e.is_usable and e.ph == "X" and e.stored_in == "ranges" and (e.category or "").lower() == "trace"
    ]


def items(t: Trace) -> list[Item]:
    """Everything that lasts, in no order."""
    found = t.explained
    name = lane_names(t)
    made = [
        Item("stream", f"GPU {w.device} stream {'?' if w.stream is None else w.stream}", 0, number, w.name,
             w.category or w.kind, w.start, w.dur, w)
        for number, w in enumerate(found.work, 1)
    ]  # fmt: skip
    for number, gap in enumerate(gaps(t), 1):
        for part in gap.parts:
            start = gap.end - part.ns if part.part == "launch" else gap.start
            of, lane = number * 2 + (part.part == "launch"), f"GPU {gap.device} idle"
            made.append(Item("idle", lane, 0, of, part.cause, part.cause, start, part.ns, (gap, part)))
    for s in t.steps:
        start = s.start - origin_of(t)
        made.append(Item("steps", "steps", 0, s.number, f"ProfilerStep#{s.number}", "step", start, s.end - s.start, s))
    for number, op in enumerate(found.ops, 1):
        made.append(Item("ops", name(op), op.depth, number, op.name, str(op.phase), op.start, op.dur, op))
    for number, call in enumerate(found.calls, 1):
        made.append(Item("calls", name(call), 0, number, call.name, call.role, call.start, call.dur, call))
    for number, r in ranges(t):
        if r.kind == "record_function":
            made.append(Item("ranges", name(r), r.depth, number, r.name, r.kind, r.start, r.dur, r))
    return [one for one in made if one.dur > 0]


def gaps(t: Trace) -> list[Gap]:
    return sorted(t.explained.device_gaps, key=lambda g: (g.device, g.start))


def ranges(t: Trace) -> Iterable[tuple[int, Nested]]:
    """Ranges with their ids, which marks and the range that is the whole recording have too."""
    rows = [*t.explained.ranges, *t.explained.marks, *windows(t)]
    return enumerate(sorted(rows, key=lambda r: r.order), 1)


def lane_names(t: Trace) -> Callable[[Nested | Call], str]:
    """What a row's thread is called; threads that share a name get their numbers behind it."""
    named = {lane: name for lane, name in t.explained.threads.items() if name}
    twins = Counter(named.values())

    def name(row: Nested | Call) -> str:
        found = named.get(row.lane)
        if found is None:
            return f"thread {row.tid}"
        return found if twins[found] == 1 else f"{found} {row.pid}/{row.tid}"

    return name


# What fills each cell ---------------------------------------------------------------------------------------


def timeline_cells(
    traces: list[Trace],
    rank: int | None = None,
    start_ns: int = 0,
    cell_ns: int | None = None,
    cells: int = 100,
    reach_ns: int | None = None,
) -> list[Row]:
    t = picked(traces, rank)
    if t is None:
        return []
    size = cell_ns or max(-(-(duration(t) - start_ns) // cells), 1)
    filled: dict[tuple[Any, ...], list[tuple[Item, int]]] = defaultdict(list)
    for one in items(t):
        for cell in range(max((one.start - start_ns) // size, 0), min((one.end - 1 - start_ns) // size + 1, cells)):
            ns = one.inside(start_ns + cell * size, start_ns + (cell + 1) * size)
            filled[*one.place, cell, one.what].append((one, ns))
    whole: Counter[tuple[Any, ...]] = Counter()
    for key, some in filled.items():
        whole[key[:4]] += sum(ns for _, ns in some)
    rows = []
    for key, some in sorted(filled.items(), key=lambda kv: (*kv[0][:4], -sum(ns for _, ns in kv[1]), kv[0][4])):
        kind, lane, depth, cell, what = key
        start = start_ns + cell * size
        only = some[0][0] if len({one.item for one, _ in some}) == 1 else None
        rows.append({
            "run": t.run, "rank": t.rank, "kind": kind, "lane": lane, "depth": depth, "cell": cell,
            "start_ns": start, "dur_ns": size, "what": what, "what_ns": sum(ns for _, ns in some),
            "covered_ns": whole[key[:4]], "covered_pct": percent(whole[key[:4]], size),
            "begins": sum(start <= one.start < start + size for one, _ in some),
            "item": only.item if only else None, "name": only.name if only else None,
        })  # fmt: skip
    return rows


# The lanes --------------------------------------------------------------------------------------------------


def timeline_lanes(traces: list[Trace], rank: int | None = None) -> list[Row]:
    t = picked(traces, rank)
    if t is None:
        return []
    lanes: dict[tuple[str, str, int], list[Item]] = defaultdict(list)
    for one in items(t):
        lanes[one.place].append(one)
    return [lane_row(t, place, lanes[place]) for place in sorted(lanes, key=lambda place: order(place, lanes))]


def order(place: tuple[str, str, int], lanes: dict[tuple[str, str, int], list[Item]]) -> tuple[Any, ...]:
    """Steps, then each GPU: its streams by number, its idle time; then threads, those with most calls first."""
    kind, lane, depth = place
    one = lanes[place][0].row
    if kind == "steps":
        return (0,)
    if kind == "stream":
        return 1, one.device, 0, one.stream is None, one.stream or 0
    if kind == "idle":
        return 1, one[0].device, 1
    return 2, -len(lanes.get(("calls", lane, 0), [])), lane, ("ranges", "ops", "calls").index(kind), depth


def lane_row(t: Trace, place: tuple[str, str, int], some: list[Item]) -> Row:
    kind, lane, depth = place
    count = len({one.item // 2 for one in some}) if kind == "idle" else len(some)
    lengths = [one.row[0].dur if kind == "idle" else one.dur for one in some]
    return {
        "run": t.run, "rank": t.rank, "kind": kind, "lane": lane, "depth": depth, "items": count,
        "start_ns": min(one.start for one in some), "end_ns": max(one.end for one in some),
        "longest_ns": max(lengths), "duration_ns": duration(t),
    }  # fmt: skip


# What is at a place -----------------------------------------------------------------------------------------


def timeline_at(
    traces: list[Trace],
    rank: int | None = None,
    kind: str = "stream",
    lane: str | None = None,
    depth: int | None = 0,
    start_ns: int = 0,
    dur_ns: int | None = None,
    top: int | None = 10,
) -> list[Row]:
    t = picked(traces, rank)
    if t is None:
        return []
    end = start_ns + (duration(t) + 1 if dur_ns is None else dur_ns)
    found = [
        one
        for one in items(t)
        if one.kind == kind and lane in (None, one.lane) and depth in (None, one.depth) and one.inside(start_ns, end)
    ]
    found.sort(key=lambda one: (-one.inside(start_ns, end), one.start, one.item))
    return [
        {
            "run": t.run, "rank": t.rank, "kind": kind, "lane": one.lane, "depth": one.depth, "item": one.item,
            "name": one.name, "what": one.what, "start_ns": one.start, "dur_ns": one.dur,
            "inside_ns": one.inside(start_ns, end), "items": len(found), **about(t, one.row),
        }
        for one in found[: 1000 if top is None else top]
    ]  # fmt: skip


def about(t: Trace, row: Any) -> Row:
    """What is known of one."""
    known: Row = dict.fromkeys(("step", "op", "launch", "latency_ns", "evidence", "next_work", "module"))
    if isinstance(row, Step):
        return {**known, "step": row.number}
    if isinstance(row, tuple):
        return {**known, **about_idle(t, *row)}
    if isinstance(row, Work):
        step = steps_of(t)[row.place]
        known |= {"step": step.number if step else None, "op": row.op.name if row.op else None}
        if row.launch:
            known |= {"launch": row.launch.name, "latency_ns": row.start - row.launch.start}
    elif isinstance(row, Call) or row.kind == "op":
        step = step_at(t, row.pid, row.start + origin_of(t))
        known["step"] = step.number if step else None
        if isinstance(row, Call):
            known["op"] = row.op.name if row.op else None
        else:
            known["module"] = row.module
    return known


def about_idle(t: Trace, gap: Gap, part: Part) -> Row:
    step = steps_of(t)[gap.after.place] if gap.after else None
    return {
        "step": step.number if step else None,
        "op": part.op.name if part.op else None,
        "evidence": Evidence(t.explained).of(gap, part),
        "next_work": gap.after.name if gap.after else None,
    }


# Where to go ------------------------------------------------------------------------------------------------


def timeline_places(
    traces: list[Trace],
    rank: int | None = None,
    place: str = "all",
    step: int | None = None,
    at_ns: int = 0,
    end_ns: int | None = None,
    least_ns: int = 0,
    reach_ns: int | None = None,
) -> list[Row]:
    t = picked(traces, rank)
    if t is None:
        return []
    steps = [step_place(t, s.number) for s in t.steps]
    after = [s for s in steps if s["start_ns"] > at_ns]
    before = [s for s in steps if s["start_ns"] < at_ns]
    found: Row | None = None
    if place == "all" and duration(t):
        found = place_row("all", None, None, None, 0, duration(t))
    elif place == "step" and steps and frame_of(t, step):
        found = step_place(t, step)
    elif place == "next_step":
        found = min(after, key=lambda s: s["start_ns"], default=None)
    elif place == "previous_step":
        found = max(before, key=lambda s: s["start_ns"], default=None)
    elif place == "next_gap":
        some = [g for g in gaps(t) if g.start > at_ns and g.dur >= least_ns]
        found = gap_place(t, min(some, key=lambda g: (g.start, g.device), default=None))
    elif place == "previous_gap":
        some = [g for g in gaps(t) if g.start < at_ns and g.dur >= least_ns]
        found = gap_place(t, min(some, key=lambda g: (-g.start, g.device), default=None))
    elif place == "longest_kernel":
        end = duration(t) if end_ns is None else end_ns
        some = [i for i in items(t) if i.kind == "stream" and i.row.kind == "kernel" and i.inside(at_ns, end)]
        found = kernel_place(t, min(some, key=lambda i: (-i.dur, i.start, i.item), default=None))
    ranks = sum(other.run == t.run for other in traces)
    return [{"run": t.run, "rank": t.rank, **found, "ranks": ranks}] if found else []


def place_row(kind: str, lane: str | None, name: str | None, step: int | None, start: int, dur: int) -> Row:
    return {"kind": kind, "lane": lane, "name": name, "step": step, "start_ns": start, "dur_ns": dur}


def step_place(t: Trace, wanted: int | None) -> Row:
    number, start, end = frame_of(t, wanted)
    return place_row("steps", "steps", f"ProfilerStep#{number}", number, start, end - start)


def gap_place(t: Trace, gap: Gap | None) -> Row | None:
    if gap is None:
        return None
    larger = min(gap.parts, key=lambda p: (-p.ns, p.part))
    step = about_idle(t, gap, larger)["step"]
    return place_row("idle", f"GPU {gap.device} idle", larger.cause, step, gap.start, gap.dur)


def kernel_place(t: Trace, one: Item | None) -> Row | None:
    return place_row("stream", one.lane, one.name, about(t, one.row)["step"], one.start, one.dur) if one else None


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    timeline_cells: [
        {"run": "eager", "cells": 8}, {"run": "causes", "start_ns": 20_000, "cell_ns": 7_000, "cells": 30},
        {"run": "ranks", "rank": 1, "cells": 20}, {"run": "nogpu", "cells": 5}, {"run": "badtime", "cells": 3},
        {"run": "model", "start_ns": 1, "cell_ns": 1_000, "cells": 40, "reach_ns": 10_000_000_000},
        {"run": "streams", "start_ns": 2_000_000, "cell_ns": 2_500, "cells": 12}, {"run": "twins", "cells": 9},
    ],
    timeline_lanes: [{"run": r} for r in ("eager", "causes", "streams", "nogpu", "model", "twins", "invisible", "odd")]
    + [{"run": "ranks", "rank": 1}],
    timeline_at: [
        {"run": "eager", "start_ns": 1_000_000, "dur_ns": 5_000_000, "top": 4},
        *({"run": "model", "kind": kind, "depth": None, "top": 7} for kind in
          ("steps", "stream", "idle", "ranges", "ops", "calls")),
        {"run": "causes", "kind": "idle", "top": None}, {"run": "causes", "kind": "calls", "start_ns": 50_000},
        {"run": "eager", "kind": "ops", "depth": 2, "start_ns": 40_000_000, "dur_ns": 100_000},
        {"run": "streams", "lane": "GPU 0 stream 7", "start_ns": 2_000_000, "top": 3},
    ],
    timeline_places: [
        *({"run": run, "place": place, "at_ns": 150_000} for run in ("eager", "causes", "flagged", "nogpu") for place in
          ("all", "step", "next_step", "previous_step", "next_gap", "previous_gap", "longest_kernel")),
        {"run": "eager", "place": "next_gap", "at_ns": 1_000_000, "least_ns": 100_000},
        {"run": "eager", "place": "previous_gap", "at_ns": 90_000_000, "least_ns": 100_000},
        {"run": "eager", "place": "step", "step": 5}, {"run": "eager", "place": "step", "step": 99},
        {"run": "eager", "place": "longest_kernel", "at_ns": 10_000_000, "end_ns": 20_000_000, "reach_ns": 9_000_000},
        {"run": "ranks", "rank": 1, "place": "next_step"}, {"run": "model", "place": "longest_kernel"},
    ],
}  # fmt: skip
