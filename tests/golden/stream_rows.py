"""Golden rows of the queries on streams and copies, by plain Python and not by traceq: every moment is walked over."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from definitions import Row, Trace, in_order, keyed, median, percent, ratio, time
from explain import Call, Work
from op_rows import copies_of, kernels_of, steps_of

ALL = "all"


def running(work: list[Work], kind: Callable[[Work], Any]) -> Iterator[tuple[frozenset[Any], int]]:
    """Stretches of time between two moments at which something starts or ends, with the kinds that run in each."""
    changes: dict[int, list[tuple[Any, int]]] = defaultdict(list)
    for w in work:
        changes[w.start].append((kind(w), 1))
        changes[w.end].append((kind(w), -1))
    opened: Counter[Any] = Counter()
    for here, after in pairwise(sorted(changes)):
        for key, change in changes[here]:
            opened[key] += change
        yield frozenset(key for key, count in opened.items() if count), after - here


# Streams ----------------------------------------------------------------------------------------------------


def stream_overlap(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        for device, work in sorted(keyed(t.explained.work, lambda w: w.device).items()):
            busy: dict[Any, Counter[int]] = defaultdict(Counter)
            for streams, ns in running(work, lambda w: w.stream):
                for stream in {*streams, ALL} if streams else ():
                    busy[stream][min(len(streams), 3)] += ns
            streams = sorted({w.stream for w in work})
            for stream in [ALL, *streams]:
                some = work if stream == ALL else [w for w in work if w.stream == stream]
                rows.append(stream_row(t, device, stream, len(some), busy))
    return in_order(rows, "run", "rank", "device")


def stream_row(t: Trace, device: int, stream: Any, activities: int, busy: dict[Any, Counter[int]]) -> Row:
    spent = busy[stream]
    total = spent.total()
    row = {
        "run": t.run,
        "rank": t.rank,
        "device": device,
        "stream": str(stream),
        "activities": activities,
        "busy_ns": total,
        "pct_of_busy": percent(total, busy[ALL].total()),
        "alone_ns": spent[1],
        "two_ns": spent[2],
        "more_ns": spent[3],
        "shared_pct": percent(total - spent[1], total),
    }
    return blinded(t, row)


def blinded(t: Trace, row: Row) -> Row:
    """Without times and shares where replays were not recorded."""
    return {k: None if t.invisible and re.search("_ns$|pct", k) else v for k, v in row.items()}


# Copies -----------------------------------------------------------------------------------------------------


def kinds(copy: Work) -> tuple[str | None, str | None, str | None]:
    """Direction and memory on both sides, from a name such as `Memcpy HtoD (Pinned -> Device)`."""
    found = re.fullmatch(r"Memcpy (\w+) \((\w+) -> (\w+)\)", copy.name)
    return found.groups() if found else (None, None, None)


def is_pageable(copy: Work) -> bool | None:
    _, src, dst = kinds(copy)
    return True if "Pageable" in (src, dst) else None if src is None or "Host" in (src, dst) else False


def next_calls(t: Trace) -> dict[Call, Call]:
    """The call that its thread makes after each."""
    lanes = keyed(t.explained.calls, lambda c: c.lane).values()
    return {call: after for lane in lanes for call, after in pairwise(sorted(lane, key=lambda c: (c.start, c.order)))}


def is_blocking(copy: Work, after: dict[Call, Call]) -> bool | None:
    call = copy.launch
    if is_pageable(copy):
        return True
    if call is None:
        return None
    if call.role != "memcpy":
        return False
    return "Async" not in call.name or (call in after and after[call].role == "sync")


def memcpys(traces: list[Trace], small_bytes: int | None = 65536) -> list[Row]:
    rows = []
    for t in traces:
        after, step = next_calls(t), steps_of(t)
        copies = [w for w in copies_of(t.explained.work) if w.kind == "memcpy"]
        for (direction, src, dst), some in keyed(copies, kinds).items():
            sized = [w for w in some if w.args.get("bytes") is not None]
            sizes = [w.args["bytes"] for w in sized]
            blocking = [b for w in some if (b := is_blocking(w, after)) is not None]
            calls = {w.launch for w in some if w.launch and w.launch.role == "memcpy"}
            rows.append({
                "run": t.run,
                "rank": t.rank,
                "direction": direction,
                "src": src,
                "dst": dst,
                "pageable": is_pageable(some[0]),
                "copies": len(some),
                "bytes": sum(sizes) if sizes else None,
                "copy_ns": time(some),
                "gb_per_s": ratio(sum(sizes), time(sized)) if sizes else None,
                "median_bytes": median(sizes),
                "small": sum(size < (small_bytes or 65536) for size in sizes) if sizes else None,
                "blocking": sum(blocking) if blocking else None,
                "call_ns": sum(c.dur for c in calls) if calls else None,
                "copies_per_step": ratio(sum(step[w.place] in t.good_steps for w in some), len(t.good_steps)),
            })  # fmt: skip
    return in_order(rows, "run", "rank", "-copy_ns", "direction", "src", "dst")


def copy_compute_overlap(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        for device, work in sorted(keyed(t.explained.work, lambda w: w.device).items()):
            copies = [w for w in work if w.kind == "memcpy"]
            found = [(ALL, copies), *keyed(copies, lambda w: kinds(w)[0]).items()] if copies else []
            busy = sum(ns for kinds_, ns in running(work, lambda w: w.kind) if kinds_)
            for direction, some in found:
                spent = list(running(some + kernels_of(work), lambda w: w.kind))
                copy = sum(ns for kinds_, ns in spent if "memcpy" in kinds_)
                hidden = sum(ns for kinds_, ns in spent if kinds_ == {"memcpy", "kernel"})
                row = {
                    "run": t.run,
                    "rank": t.rank,
                    "device": device,
                    "direction": direction,
                    "copies": len(some),
                    "copy_ns": copy,
                    "overlapped_ns": hidden,
                    "exposed_ns": copy - hidden,
                    "overlapped_pct": percent(hidden, copy),
                    "exposed_pct_of_busy": percent(copy - hidden, busy),
                }
                rows.append(blinded(t, row))
    return in_order(rows, "run", "rank", "device", lambda r: r["direction"] != ALL, "-copy_ns", "direction")


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    stream_overlap: [{}, {"run": "streams"}],
    memcpys: [{}, {"run": "copies", "small_bytes": 2000}],
    copy_compute_overlap: [{}, {"run": "copies"}],
}
