"""Reference figures of a Chrome trace, in plain Python and exact integers.

Deliberately naive: it shares nothing with traceq, so that agreement means something. Times in ns.
"""

from __future__ import annotations

import gzip
import heapq
import json
import re
from collections import Counter, defaultdict
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset", "memcpy": "memcpy", "memset": "memset"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
STEPPED = {"user_annotation", "cpu_op", "operator"}
STATES = ("host", "launching", "queued", "unknown")
DAY_NS = 86_400 * 10**9
OPS = {"cpu_op", "operator"}
PRODUCT_OP = re.compile(
    r"aten::(mm|bmm|addmm|addbmm|baddbmm|mv|addmv|dot|_scaled_mm|_grouped_mm|_int_mm)(\..*)?|aten::_?cublas.*"
    r"|aten::_addmm_activation.*"
)
PRODUCT_NAME = re.compile(
    r"(?<!fb)gemm|gemv|nvjet|cublas|^Cijk_|cutlass.*gemm|splitKreduce|dot_kernel|triton_tem_fused.*mm", re.I
)
NO_PRODUCT_NAME = re.compile(r"conv|wgrad|dgrad|fprop|winograd|sdpa|flash|fmha", re.I)
PLAIN_NAME = re.compile(r"at::native::.*(elementwise|copy|reduce|CatArray|index)", re.I)


def load(path):
    """The events of a trace that plain json can read, compressed or not, an object or a bare list."""
    raw = Path(path).read_bytes()
    text = (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode("utf-8", "replace")
    trace = json.loads(text, strict=False, parse_float=Decimal)
    return trace if isinstance(trace, list) else trace["traceEvents"]


def count_events(events):
    """How many events the file has of each phase and category."""
    return Counter((e.get("ph"), e.get("cat")) for e in events)


def figures(events):
    """Everything that `product` in test_oracle.py asks the store for."""
    rows = _usable(events)
    work = sorted(filter(None, map(_activity, rows)), key=lambda a: (a["start"], a["end"]))
    calls = [_call(*row) for row in rows if _category(row[0]) in CALLS]
    _link(work, calls)
    kernels = [a for a in work if a["kind"] == "kernel"]
    first = {}
    for a in reversed([a for a in work if a["call"]]):
        first[id(a["call"])] = a
    return {
        "events": len(events),
        "kernels": len(kernels),
        "memcpys": sum(a["kind"] == "memcpy" for a in work),
        "memsets": sum(a["kind"] == "memset" for a in work),
        "calls": len(calls),
        "kernel_ns": sum(a["end"] - a["start"] for a in kernels),
        "latency_first_ns": _median([_latency(a) for a in first.values()]),
        "latency_all_ns": _median([_latency(a) for a in work if a["call"]]),
        "devices": {} if _has_invisible_replay(work, calls) else _devices(work),
        "steps": _steps(rows, kernels, one_caller=len({c["pid"] for c in calls}) == 1),
    }


def gemm(events):
    """Kernel time in matrix products: told by the operator, by the name alone, and by name where there is an operator.

    An operator also launches plain copies and additions; those are no products.
    """
    rows = _usable(events)
    work = [a for a in filter(None, map(_activity, rows)) if a["kind"] == "kernel"]
    calls = [_call(*row) for row in rows if _category(row[0]) in CALLS]
    _link(work, calls)
    ops = _innermost(rows, calls)
    found = dict.fromkeys(("by_op_ns", "by_name_ns", "by_name_with_op_ns", "without_op_ns"), 0)
    for kernel in work:
        op, ns, name = ops.get(id(kernel["call"])), kernel["end"] - kernel["start"], kernel["name"]
        is_plain = bool(PLAIN_NAME.search(name))
        is_product = bool(PRODUCT_NAME.search(name)) and not NO_PRODUCT_NAME.search(name) and not is_plain
        found["by_op_ns"] += ns if op and PRODUCT_OP.fullmatch(op) and not is_plain else 0
        found["by_name_ns"] += ns if is_product else 0
        found["by_name_with_op_ns"] += ns if op and is_product else 0
        found["without_op_ns"] += 0 if op else ns
    return found


def _innermost(rows, calls):
    """{id of a call: the name of the operator that is open at its start and started last; of equal ones the later}."""
    by_thread = defaultdict(list)
    for place, (event, start, end) in enumerate(rows):
        if _category(event) in OPS:
            by_thread[_thread(event)].append((start, -end, place, event["name"]))
    found, opened, queues = {}, defaultdict(list), {thread: sorted(ops) for thread, ops in by_thread.items()}
    reached = Counter()
    for call in sorted(calls, key=lambda c: c["start"]):
        thread = call["thread"]
        ops = queues.get(thread, [])
        while reached[thread] < len(ops) and ops[reached[thread]][0] <= call["start"]:
            start, negative_end, place, name = ops[reached[thread]]
            heapq.heappush(opened[thread], (-start, -negative_end, -place, name))
            reached[thread] += 1
        while opened[thread] and opened[thread][0][1] <= call["start"]:
            heapq.heappop(opened[thread])
        if opened[thread]:
            found[id(call)] = opened[thread][0][3]
    return found


def _thread(event):
    return str(event.get("pid")), str(event.get("tid"))


def _ns(value):
    try:
        return int((Decimal(str(value)) * 1000).quantize(Decimal(1), ROUND_HALF_UP))
    except InvalidOperation:
        return None


def _usable(events):
    """(event, start, end) of the complete events with a time, a length, and no zero among epoch times."""
    timed = [(e, _ns(e.get("ts")), _ns(e.get("dur"))) for e in events if e.get("ph") == "X"]
    positive = [start for _, start, _ in timed if start is not None and start > 0]
    zero_is_bad = min(positive, default=0) > DAY_NS
    return [
        (e, start, start + dur)
        for e, start, dur in timed
        if start is not None and dur is not None and dur >= 0 and not (start == 0 and zero_is_bad)
    ]


def _category(event):
    return (event.get("cat") or "").lower()


def _args(event):
    return event["args"] if isinstance(event.get("args"), dict) else {}


def _label(event):
    """What stands in brackets before the process id where ranks were merged into one file."""
    pid = str(event.get("pid"))
    return pid[: pid.find("]") + 1] if pid.startswith("[") else ""


def _key(event):
    number = _args(event).get("correlation")
    return (_label(event), int(number)) if number else None


def _activity(row):
    event, start, end = row
    if not (kind := KINDS.get(_category(event))):
        return None
    device = _args(event).get("device", event.get("pid"))
    found = {"kind": kind, "name": event.get("name"), "start": start, "end": end, "device": int(device)}
    return found | {"key": _key(event), "call": None}


def _call(event, start, end):
    found = {"start": start, "end": end, "pid": str(event.get("pid")), "thread": _thread(event)}
    return found | {"key": _key(event), "is_graph": "GraphLaunch" in event["name"]}


def _link(work, calls):
    """An activity's call is the only one with its correlation id."""
    owners = Counter(c["key"] for c in calls)
    by_key = {c["key"]: c for c in calls if c["key"] and owners[c["key"]] == 1}
    for activity in work:
        activity["call"] = by_key.get(activity["key"])


def _has_invisible_replay(work, calls):
    seen = {id(a["call"]) for a in work}
    return any(c["is_graph"] and c["key"] and id(c) not in seen for c in calls)


def _latency(activity):
    return activity["start"] - activity["call"]["start"]


def _median(values):
    ordered, n = sorted(values), len(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2 if n else None


def _devices(work):
    found = {}
    for device in {a["device"] for a in work}:
        mine = [a for a in work if a["device"] == device]
        if any(a["end"] > a["start"] for a in mine):
            found[device] = _device(mine)
    return found


def _device(work):
    """Window, busy and idle time of one device, its gaps, and who is to blame for them.

    A row of length zero belongs to the window, but neither is it busy nor does it split a gap.
    """
    first, last = min(a["start"] for a in work), max(a["end"] for a in work)
    busy, reached, gaps = 0, first, []
    for a in (a for a in work if a["end"] > a["start"]):
        if a["start"] > reached:
            gaps.append((a["start"] - reached, _state(a["call"], reached)))
        busy += max(0, a["end"] - max(a["start"], reached))
        reached = max(reached, a["end"])
    if last > reached:
        gaps.append((last - reached, "unknown"))
    long = [ns for ns, _ in gaps if ns >= 1000]
    return {
        "window_ns": last - first,
        "busy_ns": busy,
        "idle_ns": last - first - busy,
        "gaps": len(gaps),
        "gaps_1us": len(long),
        "gaps_1us_ns": sum(long),
        **{state: sum(ns for ns, s in gaps if s == state) for state in STATES},
    }


def _state(call, gap_start):
    """What the launch call of the activity behind a gap was doing when the gap began."""
    if call is None:
        return "unknown"
    if call["start"] >= gap_start:
        return "host"
    return "launching" if call["end"] > gap_start else "queued"


def _steps(rows, kernels, one_caller):
    """[kernels, kernel time] of each step; a kernel is in the step in which its call starts."""
    marks = {
        (start, end, str(e.get("pid")), e["name"])
        for e, start, end in rows
        if _category(e) in STEPPED and e["name"].startswith("ProfilerStep#") and e["name"][13:].isdigit()
    }
    found = []
    for start, end, pid, _ in sorted(marks):
        mine = [
            k["end"] - k["start"]
            for k in kernels
            if (c := k["call"]) and start <= c["start"] < end and (one_caller or c["pid"] == pid)
        ]
        found.append([len(mine), sum(mine)])
    return found
