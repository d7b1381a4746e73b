"""Golden rows of the queries on memory, by plain Python and not by traceq: the events are played one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from definitions import Row, Trace, in_order, keyed, percent
from explain import Event, Nested
from op_rows import first_time, step_at

HOST = 0
BEFORE, NO_OPERATOR = "(before the recording)", "(no operator)"
Pool = tuple[Any, int]


def allocated(e: Event) -> int | None:
    return e.args.get("Total Allocated")


def reserved(e: Event) -> int | None:
    return e.args.get("Total Reserved")


def size(e: Event) -> int:
    return e.args["Bytes"]


def pools(t: Trace) -> dict[Pool, list[Event]]:
    """Events of each process and GPU in order of time."""
    events = [e for e in t.explained.memory if e.args.get("Device Type") != HOST]
    return keyed(sorted(events, key=lambda e: e.at), lambda e: (e.lane[0], e.args["Device Id"]))


def real(events: list[Event]) -> list[Event]:
    """Without the failures."""
    return [e for e in events if e.name == "[memory]"]


def levels(events: list[Event]) -> dict[int, int]:
    """Memory in use less that at the start, after all that happens at each moment."""
    found, level = {}, 0
    for e in events:
        level += size(e)
        found[e.at] = level
    return found


def peak_of(events: list[Event]) -> Event:
    """The first event of the most memory; of several at one moment, the largest allocation."""
    grown = levels(events)
    totals = [e for e in events if allocated(e) is not None]
    if totals:
        return min(totals, key=lambda e: (-allocated(e), e.at, -size(e)))
    return min(events, key=lambda e: (-grown[e.at], e.at, -size(e)))


def asker(e: Event) -> Nested | None:
    """The innermost operator around it that does more than allocate, else the outermost."""
    around = list(e.op.chain()) if e.op else []
    more = [op for op in around if not re.match(r"aten::(new_)?(empty|resize)", op.name)]
    return (more or around[-1:] or [None])[0]


def step_number(t: Trace, pid: Any, moment: int) -> int | None:
    step = step_at(t, pid, moment + first_time(t))
    return step.number if step else None


def memory_peak(traces: list[Trace]) -> list[Row]:
    rows = [peak_row(t, pool, events) for t in traces for pool, events in pools(t).items() if real(events)]
    return in_order(rows, "run", "rank", "device")


def peak_row(t: Trace, pool: Pool, every: list[Event]) -> Row:
    (pid, device), events = pool, real(every)
    peak, op, grown = peak_of(events), asker(peak_of(events)), levels(events)
    held = [e for e in events if reserved(e) is not None]
    most = max(held, key=lambda e: (reserved(e), -e.at), default=None)
    seen = {d["id"]: d.get("totalGlobalMem") for d in t.metadata.get("deviceProperties", []) if d["id"] in t.devices}
    known = allocated(peak) is not None and most is not None
    return {
        "run": t.run,
        "rank": t.rank,
        "device": device,
        "events": len(events),
        "peak_bytes": allocated(peak),
        "peak_at_ns": peak.at,
        "peak_step": step_number(t, pid, peak.at),
        "peak_phase": op.phase if op else None,
        "peak_op": op.name if op else None,
        "peak_module": op.module if op else None,
        "reserved_bytes": reserved(most) if most else None,
        "reserved_at_ns": most.at if most else None,
        "reserved_step": step_number(t, pid, most.at) if most else None,
        "unused_bytes": reserved(most) - allocated(peak) if known else None,
        "grown_bytes": max([0, *grown.values()]),
        "left_bytes": list(grown.values())[-1],
        "gpu_bytes": seen.get(device),
        "failures": len(every) - len(events),
    }


def memory_at_peak(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for t in traces:
        for (_, device), every in sorted(pools(t).items(), key=lambda found: found[0][1]):
            events = real(every)
            peak = peak_of(events)
            live = living(events, peak.at)
            groups = keyed(live, lambda e: told(asker(e)))
            found = [(*what, len(some), [size(e) for e in some]) for what, some in groups.items()]
            total, known = allocated(peak), sum(size(e) for e in live)
            has_addresses = any(e.args.get("Addr") is not None for e in events)
            if total is not None and total > known and has_addresses:
                found.append((BEFORE, None, None, None, [total - known]))
            listed = [
                {
                    "run": t.run,
                    "rank": t.rank,
                    "device": device,
                    "op": op,
                    "phase": phase,
                    "module": module,
                    "allocations": count,
                    "bytes": sum(sizes),
                    "pct_of_peak": percent(sum(sizes), total),
                    "largest_bytes": None if count is None else max(sizes),
                }
                for op, phase, module, count, sizes in found
            ]
            rows += in_order(listed, "-bytes", "op", "phase", "module")[:top]
    return in_order(rows, "run", "rank", "device")


def told(op: Nested | None) -> tuple[str, str | None, str | None]:
    return (op.name, op.phase, op.module) if op else (NO_OPERATOR, None, None)


def living(events: list[Event], until: int) -> list[Event]:
    """Allocations not released before a moment; what it releases itself is there still."""
    found = {}
    for e in events:
        address = e.args.get("Addr")
        if address is None or e.at > until:
            continue
        if size(e) > 0:
            found[address] = e
        elif e.at < until:
            found.pop(address, None)
    return list(found.values())


def most(values: list[int | None]) -> int | None:
    return max((v for v in values if v is not None), default=None)


def last(events: list[Event], before: int, what: Callable[[Event], int | None]) -> int | None:
    """What the latest moment before another left, the most of several."""
    earlier = [e for e in events if e.at < before]
    return most([what(e) for e in earlier if e.at == earlier[-1].at])


def counts(inside: list[Event]) -> Row:
    taken = [size(e) for e in inside if size(e) > 0]
    return {
        "allocations": len(taken),
        "taken_bytes": sum(taken),
        "releases": sum(size(e) < 0 for e in inside),
    }


def memory_timeline(traces: list[Trace], buckets: int | None = 40) -> list[Row]:
    rows = []
    for t in traces:
        for (pid, device), every in pools(t).items():
            events, grown = real(every), levels(real(every))
            first, end = events[0].at, events[-1].at
            width = (end - first) // max(buckets or 40, 1) + 1
            for bucket in range((end - first) // width + 1):
                start, stop = first + bucket * width, first + (bucket + 1) * width
                inside = [e for e in events if start <= e.at < stop]
                rows.append({
                    "run": t.run,
                    "rank": t.rank,
                    "device": device,
                    "bucket": bucket,
                    "start_ns": start,
                    "step": step_number(t, pid, start),
                    "allocated_bytes": most([last(events, start, allocated), *map(allocated, inside)]),
                    "reserved_bytes": most([last(events, start, reserved), *map(reserved, inside)]),
                    "grown_bytes": next(level for at, level in reversed(grown.items()) if at < stop),
                    **counts(inside),
                })  # fmt: skip
    return in_order(rows, "run", "rank", "device", "bucket")


def memory_steps(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        origin = first_time(t)
        for step in t.steps:
            for (pid, device), every in sorted(pools(t).items(), key=lambda found: found[0][1]):
                events = real(every)
                if step.pid not in (None, pid):
                    continue
                start, end = step.start - origin, step.end - origin
                inside = [e for e in events if start <= e.at < end]
                carried, peak = last(events, start, allocated), most([allocated(e) for e in inside])
                after = next((e.at - start for e in inside if peak is not None and allocated(e) == peak), None)
                rows.append({
                    "start": step.start,
                    "run": t.run,
                    "rank": t.rank,
                    "step": step.number,
                    "device": device,
                    "peak_bytes": most([carried, peak]),
                    "peak_after_ns": 0 if carried is not None and carried >= (peak or 0) else after,
                    "reserved_bytes": most([last(events, start, reserved), *map(reserved, inside)]),
                    "end_bytes": last(events, end, allocated),
                    "change_bytes": sum(map(size, inside)),
                    **counts(inside),
                })  # fmt: skip
    rows = in_order(rows, "run", "rank", "start", "step", "device")
    return [{k: v for k, v in row.items() if k != "start"} for row in rows]


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    memory_peak: [{}, {"run": "memory"}],
    memory_at_peak: [{}, {"run": "memory", "top": 2}],
    memory_timeline: [{"buckets": 5}, {"run": "memory"}],
    memory_steps: [{}, {"run": "memory"}],
}
