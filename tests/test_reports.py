"""Faults that users of such tools met, by the number of the public report: the smallest input and the right answer.

K, L, O, A, P and C write one event as JSON text: a kernel, a launch call, an operator, a range, a Python frame, a copy.
Times are in microseconds as the file has them, answers in nanoseconds.
"""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import cases
import duckdb
import pytest
from cases import Case, Raw, dump

from traceq import query as queries
from traceq.ingest import kineto
from traceq.ingest.source import Source


def event(ph, cat, name, **fields):
    return dump({"ph": ph, "cat": cat, "name": name} | fields)


def correlated(c, args):
    return ({} if c is None else {"correlation": c}) | args


def K(name, t, d, c=None, dev=0, stream=7, pid=None, cat="kernel", **args):  # noqa: N802
    where = {"pid": dev if pid is None else pid, "tid": stream, "ts": t, "dur": d}
    return event("X", cat, name, **where, args={"device": dev, "stream": stream} | correlated(c, args))


def C(t, d, c=None, name="Memcpy HtoD (Pageable -> Device)", **args):  # noqa: N802
    return K(name, t, d, c, cat="gpu_memcpy", **args)


def host(cat, name, t, d, pid=1000, tid=1000, **args):
    return event("X", cat, name, pid=pid, tid=tid, ts=t, dur=d, args=args)


def L(t, d, c, name="cudaLaunchKernel", cat="cuda_runtime", pid=1000):  # noqa: N802
    return host(cat, name, t, d, pid=pid, correlation=c)


def O(name, t, d, **more):  # noqa: E743, N802
    return host("cpu_op", name, t, d, **more)


def A(name, t, d):  # noqa: N802
    return host("user_annotation", name, t, d)


def P(name, t, d):  # noqa: N802
    return host("python_function", name, t, d)


def trace(*events, **top):
    head = "".join(f"{json.dumps(key)}: {dump(value)},\n" for key, value in top.items())
    listed = ",\n".join(events)
    return f'{{{head}"traceEvents": [\n{listed}\n]}}\n'


def raw(data):
    return data.encode() if isinstance(data, str) else data


def members(data, count):
    size = -(-len(data) // count)
    return b"".join(gzip.compress(data[at : at + size]) for at in range(0, len(data), size))


def in_turns(a, b, size=100):
    return b"".join(a[at : at + size] + b[at : at + size] for at in range(0, max(len(a), len(b)), size))


def row(number, data, answers=None, said=(), refused=None, clean=False, name="x.json"):
    """A report: `answers` has quantities of the example cases, or statements, with the right value; `said` what the
    notes must contain; `refused` what the error says instead; `clean` that the reader has nothing to remark."""
    files = data if isinstance(data, dict) else {name: data}
    return pytest.param(files, answers or {}, said, refused, clean, id=number)


US = 1000  # ns
LOST = "SELECT sum(lost)::BIGINT FROM event_counts"
SPAN = "SELECT duration_ns FROM traces"
RANGES = "SELECT list(name ORDER BY start_ns) FROM ranges"
OPS = "SELECT list(dur_ns ORDER BY start_ns) FROM ops"
STARTS = "SELECT origin_ns + start_ns FROM kernels JOIN traces USING (trace_id) ORDER BY start_ns LIMIT 1"
STREAMS = "SELECT list([device, stream, dur_ns] ORDER BY device, stream) FROM kernels"
STEPS = "SELECT list([step, launches, kernels, coalesce(kernel_ns, 0)] ORDER BY start_ns) FROM steps"
FLAGS = "SELECT list(array_to_string(flags, ' ') ORDER BY start_ns) FROM steps"
KINDS = "SELECT list([kind, dur_ns::VARCHAR] ORDER BY start_ns) FROM gpu_activities"
WAY = "SELECT [copy_kind, src_kind, dst_kind] FROM memops"
OUTSIDE = "SELECT list([dur_ns] ORDER BY start_ns) FROM kernels WHERE step IS NULL"

ONE = {"kernels": 1, "kernel_time_ns": 4 * US}
TWO = {"kernels": 2, "kernel_time_ns": 8 * US}
HALF = (
    '{"traceEvents":['
    + K("a", 0, 4)
    + ","
    + K("b", 6, 4)
    + ',{"ph":"X","cat":"kernel","name":"c'
    + random.Random(4).randbytes(200).hex()
)
DOCUMENTS = [f'{{"traceEvents":[{K(name, 0, d)}]}}' for name, d in (("a", 4), ("b", 9))]
CONTROL = r'{"ph":"X","cat":"python_function","name":"f' + "\x01\x02\t\n" + r'g","pid":1000,"tid":1000,"ts":0,"dur":1}'


def frame(name):
    return f'{{"ph":"X","cat":"python_function","name":"{name}","pid":1000,"tid":1000,"ts":0,"dur":1}}'


def turns():
    texts = [trace(*(K(f"{name}{n}", n * 10, 4) for n in range(12))) for name in "ab"]
    return in_turns(*map(raw, texts))


MALFORMED = [
    row("R-001", trace(K("a", 10, 5), frame('{"k": 1}(3): f'), K("b", 20, 5)),
        {"kernels": 2, "kernel_time_ns": 10 * US, LOST: 1}, said=["1 unreadable event"]),
    row("R-002", trace(L(0, 2, 1), K("a", 5, 4, 1) + ","), ONE | {LOST: 0}, clean=True),
    row("R-003", f"[\n{K('a', 5, 4)},", ONE, clean=True),
    row("R-004", HALF, TWO, said=[r"truncated.*\b2 whole events"]),
    row("R-005", gzip.compress(raw(HALF))[:-20], TWO, said=[r"truncated.*\b2 whole events"]),
    row("R-006", "".join(DOCUMENTS), refused="more than one document"),
    row("R-007", trace(K("a", 0, 4), K("b", 6, 4).replace('"pid"', 'pid"'), K("c", 12, 4)),
        TWO | {LOST: 1}, said=["1 unreadable event"]),
    row("R-008", trace(K("a", 0, 4), "{}", K("b", 6, 4)), TWO | {"gaps_ns": [2 * US], LOST: 0}, clean=True),
    row("R-009", trace(K("a", 0, 4), K("nccl", 6, 4, ranks=Raw('"["[0, 1, ...]"]"')), K("b", 12, 4)),
        TWO | {LOST: 1}, said=["1 unreadable event"]),
    row("R-010", turns(), refused=r"(byte|position|line) *[\d,]+|several processes"),
]  # fmt: skip
ENCODING = [
    row("R-011", trace(CONTROL, K("a", 5, 4)), ONE | {"python_function_events": 1}, said=["1 .*repaired"]),
    row("R-012", trace(K("a", 0, 4).replace('"a"', '"a\x01b"')), ONE | {"SELECT name FROM kernels": "a\x01b"}),
    row("R-013", trace(frame(r"torch\cuda\__init__.py(219): x"), K("a", 5, 4)),
        ONE | {"SELECT name FROM python_calls": r"torch\cuda\__init__.py(219): x"}),
    row("R-014", trace(frame(r"C:\users\x"), K("a", 5, 4)), ONE | {"SELECT name FROM python_calls": r"C:\users\x"}),
    row("R-015", raw(trace(K("k_?", 0, 4), K("k_?", 6, 4))).replace(b"k_?", b"k_\xc3"),
        TWO | {"SELECT list(DISTINCT name) FROM kernels": ["k_\ufffd"]}),
    row("R-018", trace(A("unknown", 0, 100), A("unknown", 10, 20), A("unknown", 40, 20)), {RANGES: ["unknown"] * 3}),
]  # fmt: skip
NUMBERS = [
    row("R-019", trace(C(0, 0, bytes=64, **{"memory bandwidth (GB/s)": Raw("inf")})),
        {"memcpy": 1, "memcpy_bytes": 64, "memcpy_time_ns": 0, "SELECT details FROM memops": None}),
    row("R-020", trace(K("a", 0, 4, queued=Raw("N/A"))), ONE | {"SELECT details FROM kernels": None}),
    row("R-021", trace(event("C", None, "x", pid=1, ts=0, args={"v": Raw("NaN")}), K("a", 0, 4)),
        ONE | {"SELECT details::VARCHAR FROM counters": '{"v":null}'}),
    row("R-022", trace(K("a", "10.5", "2", c="9007199254740995"), L("1", "1", 9007199254740995),
        L("2", "1", 9007199254740996)),
        {"kernels": 1, "kernel_time_ns": 2 * US, "launch_latency_ns": [9500]}),
    row("R-023", trace(K("a", 0, 4, **{"Comms Id": 36893488147419103233})),
        ONE | {"SELECT details::VARCHAR FROM kernels": '{"Comms Id":36893488147419103233}'}),
    row("R-024", trace(O("x", 0, 4, pid=5000000000)),
        {"SELECT pid FROM ops": "5000000000", "SELECT os_pid FROM processes": 5000000000}),
    row("R-025", trace(O("x", 0, 4, tid=140737353975616)), {"SELECT tid FROM ops": "140737353975616"}),
]  # fmt: skip
CONTAINER = [
    row(
        "R-026", b"".join(gzip.compress(raw(d)) for d in DOCUMENTS), refused="more than one document", name="x.json.gz"
    ),
    row("R-026-control", members(raw(DOCUMENTS[0]), 2), ONE, clean=True, name="x.json.gz"),
    row("R-027", gzip.compress(raw(DOCUMENTS[0])), ONE, clean=True),
    row("R-027-plain", DOCUMENTS[0], ONE, clean=True, name="x.json.gz"),
    row("R-029", b"", refused=r"x\.json\.gz.*empty", name="x.json.gz"),
    row("R-029-gzip", gzip.compress(b""), refused=r"x\.json\.gz.*empty", name="x.json.gz"),
    row("R-030", f'{{"traceEvents":{DOCUMENTS[0]}}}', ONE),
    row("R-031", b"\xef\xbb\xbf\n\n\n" + raw(DOCUMENTS[0]), ONE, clean=True),
    # One line, longer than the 16 MiB that DuckDB itself takes for one object.
    row("R-039", trace(K("a", 0, 4, text="x" * 17_000_000)).replace("\n", ""), ONE, clean=True),
]
EPOCH = [Decimal("1700000000000000.001"), Decimal("1700000000000001.010")]
EXACT = trace(K("a", EPOCH[0], Decimal("1.002")), K("b", EPOCH[1], 1))
EXACT_ANSWER = {"gaps_ns": [7], STARTS: 1700000000000000001}


def rank(number, base, start):
    info = {"rank": number, "world_size": 2}
    return trace(K("allreduce", start, 100), distributedInfo=info, baseTimeNanoseconds=base)


PRECISION = [
    row("R-043", trace(K("a", 10, 0), K("b", 10, 1), K("c", 11, 1)), {"kernels": 3, "kernel_time_ns": 2 * US}),
    row("R-044", trace(K("a", 0, 13.5), displayTimeUnit="ns"), {"kernel_time_ns": 13500}),
    row("R-045", trace(K("a", 0, 13.5), displayTimeUnit="ms"), {"kernel_time_ns": 13500}),
    row("R-046", EXACT, EXACT_ANSWER),
    row("R-047", trace(K("a", Decimal("8796093022208.003"), Decimal("0.002")), baseTimeNanoseconds=1700000000000000000),
        {"kernel_time_ns": 2, STARTS: 1700000000000000000 + 8796093022208003}),
    row("R-048", {"r0.json": rank(0, 1700000000000000000, 5000), "r1.json": rank(1, 1700000000001000000, 4000)},
        {STARTS.replace(" LIMIT 1", " LIMIT 1 OFFSET 1"): 1700000000005000000, STARTS: 1700000000005000000}),
    row("R-049", EXACT, EXACT_ANSWER),
    row("R-050", trace(K("a", 10, 2.5), K("b", 12.5, 1)), {"gaps_ns": [], "gpu_busy_ns": 3500, "kernel_time_ns": 3500}),
]  # fmt: skip
OVERLAP = trace(K("a", 0, 4), K("b", 3, 3))
CLOCK = [
    row("R-051", trace(K("a", 1700000000000000, 5), K("b", 0, 0)),
        {"kernels": 1, "gpu_span_ns": 5 * US, SPAN: 5 * US, LOST: 1},
        said=[r"\b1 row.* without a usable time"]),
    row("R-052", trace(K("a", 0, 5), K("b", 10, -4)), {"kernels": 1, "gpu_busy_ns": 5 * US, LOST: 1},
        said=[r"\b1 row"]),
    row("R-053", trace(O("x", 0, -1), K("a", 5, 4)), ONE | {"cpu_ops": 0, LOST: 1}, said=["1 of category cpu_op"]),
    row("R-054", trace(K("a", 0, 5), event("i", None, "Record Window End", s="g", pid="", tid="", ts=90000000000)),
        {"gpu_span_ns": 5 * US, SPAN: 5 * US}),
    row("R-060", trace(K("b", 20, 5), K("a", 10, 5)), {"gaps_ns": [5 * US]}),
    row("R-061", OVERLAP, {"kernels": 2, "kernel_time_ns": 7 * US, "gpu_busy_ns": 6 * US, "gaps_ns": []}),
    row("R-062", OVERLAP, {"kernels": 2}, clean=True),
    row("R-063", trace(O("outer", 0, 10), O("inner", 6, 8)), {OPS: [10 * US, 8 * US]}, clean=True),
    row("R-064", trace(A("ProfilerStep#0", 0, 10), O("x", 8, 6), A("ProfilerStep#1", 10, 10)),
        {"steps": 2, "cpu_ops": 1}),
    row("R-065", trace(K("a", 0, 10, stream=7), K("b", 0, 10, stream=8)),
        {"gpu_busy_ns": 10 * US, "utilisation": 100.0, "kernel_time_ns": 20 * US}),
    row("R-066", trace(K("a", 0, 10, dev=0), K("b", 0, 10, dev=1)), {STREAMS: [[0, 7, 10 * US], [1, 7, 10 * US]]}),
    row("R-067", trace(K("a", 0, 5), K("b", 5, 10, stream=8), K("c", 15, 5)), {"gaps_ns": [], "gap_sum_ns": 0}),
    row("R-068", trace(K("a", 0, 10), K("z", 4, 0), K("z", 10, 0), K("z", 12, 0), K("b", 15, 5)),
        {"kernels": 5, "gpu_busy_ns": 15 * US, "gaps_ns": [5 * US]}),
    row("R-069", trace(K("z", 5, 0), K("a", 5, 3)), {"kernels": 2, "gpu_busy_ns": 3 * US, "gaps_ns": []}),
]  # fmt: skip


def driver(name):
    return L(0, 2, 1, name, "cuda_driver")


def flow(ph, name, t):
    return event(ph, name, name, id=7, pid=1000, tid=1000, ts=t)


LINKED = {"linked_kernels": 1, "launch_latency_ns": [10 * US]}
CORRELATION = [
    row("R-070", trace(driver("cuLaunchKernel"), K("triton_x", 10, 5, 1)), LINKED, clean=True),
    row("R-070-without", trace(K("triton_x", 10, 5, 1)), {"linked_kernels": 0},
        said=["1 of 1 GPU activities.*no launch"]),
    row("R-071", trace(L(0, 2, 1, "cudaLaunchKernelExC"), K("a", 10, 5, 1)), LINKED),
    row("R-072", trace(driver("cuLaunchKernelEx"), K("a", 10, 5, 1)), LINKED),
    row("R-073", trace(K("ncclDevKernel_AllReduce", 0, 5, 9)),
        {"kernels": 1, "kernel_time_ns": 5 * US, "unlinked_kernels": 1}),
    row("R-074", trace(L(0, 1, 0, "hipGetDevice"), K("nccl_a", 0, 5, 0), K("nccl_b", 6, 5, 0)),
        {"kernels": 2, "unlinked_kernels": 2}),
    row("R-076", trace(O("x", 0, 4), L(1, 2, 1), K("a", 5, 4, 1)), ONE, clean=True),
    row("R-077", trace(L(0, 2, 7), K("k", 5, 5, 7), flow("s", "ac2g", 0), flow("f", "ac2g", 5), flow("s", "fwdbwd", 1)),
        {"linked_kernels": 1, "launch_latency_ns": [5 * US]}, clean=True),
    row("R-078", trace(L(0, 2, 1), K("a", 5, 4, 1)), {"memset": 0, "memset_time_ns": 0}),
    row("R-079", trace(O("aten::x", 0, 20, **{"External id": 1}), host("overhead", "Activity Buffer Request", 2, 1),
        L(5, 2, 1), K("k", 30, 10, 1, **{"External id": 1})), {"gpu_rows": 1, "kernel_time_ns": 10 * US}),
    row("R-085", trace(L(0, 20, 1, "cudaGraphLaunch"), *(K("k", 30 + 6 * n, 5, 1) for n in range(10))),
        {"gaps_ns": [US] * 9, "SELECT count(*) FROM gaps WHERE launch_state = 'host'": 0}),
]  # fmt: skip
NAMED = event("M", None, "process_name", pid=1, tid=0, ts=0, args={"name": "python"})
LOST_GPU = trace(O("aten::mm", 0, 9), L(2, 3, 1), O("aten::add", 10, 5), L(11, 2, 2))
NO_GPU = {"kernels": 0, "launch_calls": 2, "gemm_share": None, "kernel_time_ns": None, "gpu_busy_ns": None}
SAYS_NO_GPU = ["no GPU rows were recorded.*2 launch calls.*permission.*profiler.*library"]
EMPTY = [
    *(row(number, LOST_GPU, NO_GPU, said=SAYS_NO_GPU) for number in ("R-088", "R-089", "R-090", "R-091")),
    row("R-092", trace(A("ProfilerStep#0", 0, 20), L(5, 2, 1), A("ProfilerStep#1", 30, 20), L(35, 2, 2),
        K("a", 40, 5, 2)),
        {STEPS: [[0, 1, 0, 0], [1, 1, 1, 5 * US]], FLAGS: ["no_gpu", ""]}),
    row("R-093", trace(NAMED), {"kernels": 0}),
    row("R-094", '{"traceEvents":[]}', {"kernels": 0}, said=["no events"]),
    row("R-096", trace(L(0, 2, 1), L(5, 2, 2), K("a", 10, 5, 1)), {"kernels": 1, "launch_calls": 2}),
    row("R-097", trace(*(A(f"ProfilerStep#{n}", n * 10, 10) for n in range(3))), {"steps": 3, FLAGS: ["no_gpu"] * 3},
        said=["no GPU rows"]),
]  # fmt: skip


def sync(name, t, d, tid=7):
    return host("cuda_sync", name, t, d, pid=0, tid=tid, stream=7, device=0)


def projected(name, t, d):
    return host("gpu_user_annotation", name, t, d, pid=0, tid=7)


NOISE = [
    row("R-098", trace(K("a", 0, 4), K("b", 6, 4), projected("x", 0, 10)),
        TWO | {"gpu_busy_ns": 8 * US, "gaps_ns": [2 * US], "gpu_rows": 2}),
    row("R-099", trace(K("a", 0, 4), sync("Event Sync", 0, 20)), {"gpu_busy_ns": 4 * US, "gpu_span_ns": 4 * US}),
    row("R-100", trace(K("a", 0, 4), sync("Stream Sync", 4, 5), sync("Stream Sync", 4, 5, 1000007)),
        {"gpu_busy_ns": 4 * US, STREAMS: [[0, 7, 4 * US]]}),
    row("R-101", trace(K("a", 0, 4), host("Trace", "PyTorch Profiler (0)", 0, 9, pid="Spans", tid="PyTorch Profiler"),
        event("i", None, "Iteration Start: PyTorch Profiler", s="g", pid="Traces", tid="Trace PyTorch Profiler", ts=0),
        event("i", None, "Record Window End", s="g", pid="", tid="", ts=9)),
        ONE | {"gpu_rows": 1, "SELECT list(pid ORDER BY pid) FROM ranges": ["", "Spans", "Traces"]}),
    row("R-102", trace(A("ProfilerStep#0", 0, 30), L(5, 2, 1), L(8, 2, 2), K("a", 10, 5, 1), K("b", 40, 5, 2),
        projected("ProfilerStep#0", 10, 5)), {STEPS: [[0, 2, 2, 10 * US]]}),
    row("R-103", trace(O("x", 0, 5, pid=0, tid=7), K("a", 10, 5)), {"cpu_ops": 1, "kernels": 1, "gpu_rows": 1}),
    row("R-105", trace(K("a", 0, 10), C(10, 80, bytes=4096), K("b", 90, 10)),
        {"gpu_busy_ns": 100 * US, "gaps_ns": [], "kernel_gaps_ns": [80 * US]}),
    row("R-106", trace(K("__amd_rocclr_copyBuffer", 0, 10), K("__amd_rocclr_fillBufferAligned", 12, 3),
        K("gemm", 20, 50)),
        {KINDS: [["memcpy", "10000"], ["memset", "3000"], ["kernel", "50000"]]}),
    row("R-107", trace(event("X", "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", pid=0, ts=0, dur=4, args={})),
        {"memcpy": 1, "memcpy_bytes": None, WAY: ["DtoH", "Device", "Pageable"]}),
]  # fmt: skip
WARM_UP = [A("ProfilerStep#3", 10, 30), L(12, 2, 2), K("a", 20, 5, 2)]
STEP_3 = {STEPS: [[3, 1, 1, 5 * US]], OUTSIDE: [[5 * US]], "kernels": 2, "kernel_time_ns": 10 * US}
CARRIED = [r"\b1 of 2 GPU activities.*in no step"]
STEPPED = [
    row("R-111", trace(K("old", 0, 5, 1), *WARM_UP), STEP_3, said=CARRIED),
    row("R-112", trace(K("old", 0, 5, 1), *WARM_UP), STEP_3, said=CARRIED),
    row("R-113", trace(*(K("old", Decimal(n) / 10, Decimal("0.1"), 100 + n) for n in range(50)), *WARM_UP),
        STEP_3 | {"kernels": 51, OUTSIDE: [[100]] * 50}, said=[r"\b50 of 51 GPU activities"]),
    row("R-114", trace(A("ProfilerStep#0", 0, 20), L(18, 2, 1), A("ProfilerStep#1", 20, 20), K("a", 25, 5, 1)),
        {STEPS: [[0, 1, 1, 5 * US], [1, 0, 0, 0]]}),
    row("R-118", trace(A("ProfilerStep#3", 0, 100), A("my_ProfilerStep#3_inner", 10, 1), A("step", 20, 1)),
        {"SELECT list([step, dur_ns]) FROM steps": [[3, 100 * US]]}),
]  # fmt: skip
CLAIM = {"distributedInfo": {"rank": 0, "world_size": 2}}
MERGED = [
    L(0, 2, 5, pid="[A] 1"),
    K("x", 10, 5, 5, pid="[A] 0"),
    L(3, 2, 5, pid="[B] 1"),
    K("x", 20, 5, 5, pid="[B] 0"),
]
RANKS = [
    row("R-119", trace(K("a", 0, 4)), ONE | {"rank": None}, clean=True),
    row("R-120", trace(K("a", 0, 4)), ONE | {"rank": None}, clean=True),
    row("R-121", {"x.json": trace(K("a", 0, 4), **CLAIM), "y.json": trace(K("b", 0, 9), **CLAIM)},
        {"SELECT list([rank, dur_ns] ORDER BY dur_ns) FROM kernels": [[0, 4 * US], [0, 9 * US]]},
        said=[r"holds rank 0 \(x\.json\)", r"1 of 2 ranks"]),
    row("R-178", trace(L(0, 2, 1), K("a", 10, 5, 1)),
        {"linked_kernels": 1, "SELECT count(*) FROM kernels WHERE op_id IS NOT NULL": 0}),
    row("R-122", trace(*MERGED), {"linked_kernels": 2, "launch_latency_ns": [10 * US, 17 * US]}),
    row("R-123", trace(K("a", 0, 5, pid="[A] 0"), K("b", 0, 5, pid="[B] 0")),
        {"devices": 2, "SELECT list(dur_ns) FROM gpu_busy": [5 * US, 5 * US]}),
]  # fmt: skip
FIGURES = [
    *MALFORMED, *ENCODING, *NUMBERS, *CONTAINER, *PRECISION, *CLOCK, *CORRELATION, *EMPTY, *NOISE, *STEPPED, *RANKS
]  # fmt: skip
# What the notes on such a trace have to say, where that is a demand of its own.
REMARKS = [
    row("R-018-note", trace(A("unknown", 0, 100), A("unknown", 10, 20), A("unknown", 40, 20)), said=["unknown"]),
    row("R-043-note", trace(K("a", 10, 0), K("b", 10, 1), K("c", 11, 1)), said=["whole µs|microsecond"]),
    row("R-093-note", trace(NAMED), said=["no timed events"]),
    row("R-096-note", trace(L(0, 2, 1), L(5, 2, 2), K("a", 10, 5, 1)), said=[r"\b1 of 2 launch"]),
]  # fmt: skip


def ingest(files, folder):
    for name, data in files.items():
        (folder / name).write_bytes(raw(data))
    return Case([folder / name for name in files], folder / "s.duckdb")


def answer(case, what):
    if what.startswith("SELECT "):
        return case.con.execute(what).fetchall()[0][0]
    if what == "utilisation":
        return case.query("summary")[0]["busy_pct"]
    return cases.ANSWERS[what](case, None)


@pytest.mark.parametrize(("files", "answers", "said", "refused", "clean"), [*FIGURES, *REMARKS])
def test_report(files, answers, said, refused, clean, tmp_path):
    with ingest(files, tmp_path) as case:
        errors = [o.error for o in case.outcomes if o.error]
        if refused:
            assert [re.search(refused, e.message) is not None for e in errors] == [True], errors
            return
        assert errors == []
        assert {what: answer(case, what) for what in answers} == answers
        notes = "\n".join(case.notes) if said else ""
        assert [words for words in said if not re.search(words, notes)] == [], notes
        if clean:
            assert [note for o in case.outcomes for note in cases.remarks(o)] == []


SPARSE = [row for row in FIGURES if row.id in {"R-076", "R-078", "R-088", "R-093", "R-094", "R-097"}]


@pytest.mark.parametrize("files", [pytest.param(row.values[0], id=row.id) for row in SPARSE])
def test_every_question_is_answered(files, tmp_path):
    with ingest(files, tmp_path) as case:
        for name in queries.names():
            case.ask(name)


def rows(path, piece_bytes):
    """What the reader makes of a file that it reads in pieces of that size."""
    with duckdb.connect() as con, Source(str(path)) as source:
        con.execute("ATTACH ':memory:' AS stage")
        kineto.read(con, source, piece_bytes)
        return con.execute("SELECT * EXCLUDE (pos) FROM stage.events ORDER BY ALL").fetchall()


PADDING = [K(f"pad{n}", n, 1) for n in range(40)]
HARD = {
    "utf8": raw(trace(K("k_?", 0, 4), *PADDING)).replace(b"k_?", b"k_\xc3"),
    "quotes": trace(K("a", 0, 4), K("b", 1, 4).replace('"b"', '"b "x" c"'), *PADDING),
    "number": trace(K("a", 0, 4, huge=2**70), *PADDING),
}


@pytest.mark.parametrize("name", [pytest.param(name, id=f"R-016-{name}") for name in HARD])
def test_every_way_of_reading_gives_the_same_rows(name, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(raw(HARD[name]))
    whole = rows(path, 1 << 20)
    assert len(whole) in (41, 42)
    for piece_bytes in (300, 700, 1500):
        assert rows(path, piece_bytes) == whole


@pytest.mark.parametrize("count", [pytest.param(40, id="R-006-place")])
def test_a_second_document_is_where_the_message_says(count, tmp_path):
    first = trace(*(K("a", n, 1) for n in range(count)))
    with ingest({"x.json": first + DOCUMENTS[1]}, tmp_path) as case:
        place = int(re.search(r"byte ([\d,]+)", case.outcomes[0].error.message)[1].replace(",", ""))
    assert abs(place - len(first)) < 100


@pytest.mark.parametrize("count", [pytest.param(n, id=f"R-028-{n}") for n in (1, 3)])
def test_compressed_and_plain_are_the_same(count, tmp_path):
    plain, packed = tmp_path / "x.json", tmp_path / "x.json.gz"
    data = raw(trace(*PADDING))
    plain.write_bytes(data)
    packed.write_bytes(members(data, count))
    assert rows(packed, 1 << 20) == rows(plain, 1 << 20)


@pytest.mark.parametrize("kernel", [pytest.param("核_kernel", id="R-017")])
def test_the_locale_does_not_matter(kernel, tmp_path):
    path, store = tmp_path / "x.json", tmp_path / "s.duckdb"
    path.write_bytes(raw(trace(K(kernel, 0, 4))))
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env["PYTHONPATH"] = str(Path(__file__).parents[1])
    for words in (["ingest", str(path)], ["query", "top_kernels"]):
        command = [sys.executable, "-m", "traceq", *words, "--store", str(store)]
        done = subprocess.run(command, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr
    with duckdb.connect(store, read_only=True) as con:
        assert con.execute("SELECT name FROM kernels").fetchall() == [(kernel,)]


def test_work_that_runs_after_its_step_is_told_apart(tmp_path):
    """R-114: it counts for the step that launched it, and the steps say how much of their work is late."""
    events = trace(A("ProfilerStep#0", 0, 20), L(18, 2, 1), A("ProfilerStep#1", 20, 20), K("a", 25, 5, 1))
    with ingest({"x.json": events}, tmp_path) as case:
        found = queries.run(case.con, queries.load("steps"), {})
    names = [c.name for c in found.columns]
    assert [[row[names.index(n)] for n in ("step", "kernels", "late")] for row in found.rows] == [[0, 1, 1], [1, 0, 0]]
