"""What `explain.py` finds in one trace, as JSON that another program can match without ids.

    python tests/golden/dump_explained.py TRACE

A row's key is pid/tid/start_ns/dur_ns/name (of an activity device/stream/…), with "#2", "#3", … for repeats in the
order of ids. `fields` says what each list holds.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from explain import Gap, Trace, explain

FIELDS = {
    "ops": ["parent", "depth", "self_ns", "forward", "phase", "module"],
    "ranges": ["parent", "depth"],
    "marks": ["parent", "depth"],
    "python_calls": ["parent", "depth", "self_ns"],
    "calls": ["op", "range", "python_call", "role"],
    "activities": ["op", "phase", "category", "category_source", "category_by_name"],
    "memory_events": ["op"],
    "parts": ["cause", "ns", "evidence", "op"],
    "stream_parts": ["cause", "ns", "evidence", "op"],
}


def keyed(rows: Iterable[Any], key: Callable[[Any], str]) -> dict[Any, str]:
    """The key of each row; repeats are numbered."""
    seen, keys = Counter(), {None: None}
    for row in rows:
        plain = key(row)
        seen[plain] += 1
        keys[row] = plain if seen[plain] == 1 else f"{plain}#{seen[plain]}"
    return keys


def on_host(row: Any) -> str:
    return f"{row.pid}/{row.tid}/{row.start}/{row.dur}/{row.name}"


def on_gpu(work: Any) -> str:
    return f"{work.device}/{work.stream}/{work.start}/{work.dur}/{work.name}"


def in_memory(event: Any) -> str:
    return f"{event.lane[0]}/{event.lane[1]}/{event.at}/{event.args.get('Addr')}/{event.args.get('Bytes')}"


def dump(trace: Trace) -> dict[str, Any]:
    ops, ranges, frames = (keyed(rows, on_host) for rows in (trace.ops, trace.ranges, trace.frames))

    def table(keys: dict[Any, str], values: Callable[[Any], list[Any]]) -> dict[str, list[Any]]:
        return {key: values(row) for row, key in keys.items() if row}

    return {
        "fields": FIELDS,
        "ops": table(ops, lambda r: [ops[r.parent], r.depth, r.self_ns, ops[r.forward], r.phase, r.module]),
        "ranges": table(ranges, lambda r: [ranges[r.parent], r.depth]),
        "marks": table(keyed(trace.marks, on_host), lambda r: [ranges[r.parent], r.depth]),
        "python_calls": table(frames, lambda r: [frames[r.parent], r.depth, r.self_ns]),
        "calls": table(keyed(trace.calls, on_host), lambda c: [ops[c.op], ranges[c.range], frames[c.frame], c.role]),
        "activities": table(
            keyed(trace.work, on_gpu),
            lambda w: [ops[w.op], w.phase, w.category, w.category_source, w.category_by_name],
        ),
        "memory_events": table(keyed(trace.memory, in_memory), lambda e: [ops[e.op]]),
        "parts": parts(trace.device_gaps, ops),
        "stream_parts": parts(trace.stream_gaps, ops),
        "clipped_rows": trace.clipped,
        "op_disagreements": trace.disagreements,
        "totals": totals(trace),
    }


def scope(gap: Gap, is_stream: bool) -> str:
    return f"{gap.device}/{gap.stream}" if is_stream else f"{gap.device}"


def parts(gaps: list[Gap], ops: dict[Any, str]) -> dict[str, list[Any]]:
    """Parts by device (and stream), start and length of their gap, and part."""
    return {
        f"{scope(gap, gap.stream is not None)}/{gap.start}/{gap.dur}/{part.part}": [
            part.cause,
            part.ns,
            part.evidence,
            ops[part.op],
        ]
        for gap in gaps
        for part in gap.parts
    }


def totals(trace: Trace) -> dict[str, Any]:
    """Kernel time by phase, category and module; idle time by cause."""
    return {
        "kernel_ns_by_phase": summed((w.phase, w.dur) for w in trace.kernels),
        "kernel_ns_by_category": summed((w.category, w.dur) for w in trace.kernels),
        "kernel_ns_by_category_by_name": summed((w.category_by_name, w.dur) for w in trace.kernels),
        "kernel_ns_by_module": summed((w.op.module if w.op else None, w.dur) for w in trace.kernels),
        "idle_ns_by_device": causes(trace.device_gaps, is_stream=False),
        "idle_ns_by_stream": causes(trace.stream_gaps, is_stream=True),
    }


def summed(pairs: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    """Sums by name, greatest first; what has none is under ""."""
    found = Counter()
    for name, ns in pairs:
        found[name or ""] += ns
    return dict(found.most_common())


def causes(gaps: list[Gap], is_stream: bool) -> dict[str, dict[str, int]]:
    keys = dict.fromkeys(scope(gap, is_stream) for gap in gaps)
    return {
        key: summed((p.cause, p.ns) for gap in gaps if scope(gap, is_stream) == key for p in gap.parts) for key in keys
    }


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    json.dump(dump(explain(Path(sys.argv[1]))), sys.stdout, ensure_ascii=False, indent=0)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
