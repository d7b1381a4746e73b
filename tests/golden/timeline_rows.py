"""The golden rows of the query timeline, by plain Python and not by traceq."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from definitions import Row, Trace, percent
from explain import Call, Nested

Piece = tuple[str, str, int, int, str]


def timeline(
    traces: list[Trace], step: int | None = None, rank: int | None = None, buckets: int | None = 100
) -> list[Row]:
    """What fills each bucket of a lane; a bucket holds the times t with floor(t * buckets / window) its number."""
    trace = next((t for t in first_run(traces) if rank in (None, t.rank)), None)
    if trace is None or (frame := frame_of(trace, step)) is None:
        return []
    number, start, end = frame
    window, count = end - start, min(max(buckets or 100, 1), 1000)
    filled: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for kind, lane, at, till, what in pieces(trace):
        at, till = max(at, start) - start, min(till, end) - start
        if till > at:
            for bucket in range(at * count // window, (till - 1) * count // window + 1):
                held = min(till, edge(bucket + 1, window, count)) - max(at, edge(bucket, window, count))
                filled[kind, lane, bucket][what] += held
    return [
        written(trace, number, window, count, key, Counter({w: n for w, n in ns.items() if n > 0}))
        for key, ns in sorted(filled.items())
        if any(ns.values())
    ]


def first_run(traces: list[Trace]) -> list[Trace]:
    """The traces of the run that came first, by rank."""
    mine = [t for t in traces if t.run == traces[0].run] if traces else []
    return sorted(mine, key=lambda t: -1 if t.rank is None else t.rank)


def frame_of(trace: Trace, wanted: int | None) -> tuple[int | None, int, int] | None:
    """Number, start and end of the step that is drawn, in ns from the start of the trace."""
    origin = next((trace.events[r.place].start - r.start for r in host(trace)), 0)
    steps = [s for s in trace.steps if wanted in (None, s.number)]
    if steps:
        chosen = min(steps, key=lambda s: (bool(s.flags), s.start))
        return (
            chosen.number,
            min([chosen.start, *(a.start for a in chosen.work)]) - origin,
            max([chosen.end, *(a.end for a in chosen.work)]) - origin,
        )
    rows = [*host(trace), *trace.explained.work]
    end = max((r.start + r.dur for r in rows), default=0)
    return (None, 0, end) if wanted is None and end else None


def host(trace: Trace) -> list[Nested | Call]:
    found = trace.explained
    return [*found.ops, *found.ranges, *found.frames, *found.calls]


def pieces(trace: Trace) -> Iterator[Piece]:
    """Everything that is drawn: kind, lane, start, end and what it is."""
    found = trace.explained
    for w in found.work:
        lane = f"GPU {w.device} stream {'?' if w.stream is None else w.stream}"
        yield "stream", lane, w.start, w.start + w.dur, w.category or w.kind
    for gap in found.device_gaps:
        for part in gap.parts:
            start = gap.end - part.ns if part.part == "launch" else gap.start
            yield "idle", f"GPU {gap.device} idle", start, start + part.ns, part.cause
    for op in (o for o in found.ops if o.depth == 0):
        yield "ops", thread(trace, op), op.start, op.start + op.dur, str(op.phase)
    for call in found.calls:
        yield "calls", thread(trace, call), call.start, call.start + call.dur, call.role


def thread(trace: Trace, row: Nested | Call) -> str:
    return trace.explained.threads.get(row.lane) or f"thread {row.tid}"


def edge(bucket: int, window: int, count: int) -> int:
    """The first ns of a bucket."""
    return -(-bucket * window // count)


def written(
    trace: Trace, step: int | None, window: int, count: int, key: tuple[str, str, int], ns: Counter[str]
) -> Row:
    kind, lane, bucket = key
    start, end = edge(bucket, window, count), edge(bucket + 1, window, count)
    what = max(ns, key=lambda w: (ns[w], w))
    return {
        "run": trace.run, "rank": trace.rank, "step": step, "kind": kind, "lane": lane, "bucket": bucket,
        "start_ns": start, "dur_ns": end - start, "what": what, "what_ns": ns[what], "covered_ns": ns.total(),
        "covered_pct": percent(ns.total(), end - start), "window_ns": window,
    }  # fmt: skip


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    timeline: [
        {"run": "eager", "buckets": 12}, {"run": "overlap", "step": 5, "buckets": 7}, {"run": "ranks", "rank": 1},
        {"run": "replay", "buckets": 9}, {"run": "causes", "buckets": 40}, {"run": "eager", "step": 99},
        {"run": "badtime", "buckets": 3}, {"run": "flagged", "buckets": 5}, {"buckets": 2},
    ],
}  # fmt: skip
