"""The questions named after nsys' reports against what `nsys stats` says, and every question on an export.

`nsys stats` rounds and prints MB: that is done here, to our numbers, and nowhere else. Where nsys is wrong, or cannot
know, a test says what is right. golden/nsys_rows.py computes every row of these questions without traceq.
"""

import csv
import math
import re
from collections import defaultdict
from contextlib import closing
from decimal import ROUND_HALF_UP, Decimal
from statistics import median, stdev

import pytest
from cases import Case
from clirun import fill, shared
from exports import DOMAIN, MARK, START_END, Export, gpid, gtid
from recorded import FIXTURES, RECORDED, needs_recorded
from test_queries import differences

from traceq import query
from traceq.store.files import open_store

import nsys_rows  # isort: skip
import recordings  # isort: skip

FIXTURE = FIXTURES / "nsys" / "reduce-overhead-node.sqlite"
CAPTURED = sorted(FIXTURES.glob("captures-nsys/*.sqlite"))
EXPORTS = sorted([*CAPTURED, *RECORDED.glob("nsys-h200/*.sqlite"), *RECORDED.glob("public/nsys-ai/*.sqlite")])
REPORTS = sorted([*FIXTURES.glob("**/stats/*.csv"), *RECORDED.glob("**/stats/*.csv")])
NAMES = [asked.__name__ for asked in nsys_rows.CALLS]
MEGABYTE = 10**6
NAMELESS = re.compile(r"^\[domain \d+\]:")
OF_GPU = {"cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """All exports at hand, a run each; the fixture is called node."""

    def make(folder):
        fill(folder / "store.duckdb", (FIXTURE, "node"), *((p, p.stem) for p in EXPORTS))

    with closing(open_store(shared(tmp_path_factory, "exports", make) / "store.duckdb")) as con:
        yield con


@pytest.fixture
def opened(tmp_path):
    """A function that ingests a made export and gives its `Case`."""
    cases = []

    def make(made):
        cases.append(Case([made.write(tmp_path / f"x{len(cases)}.sqlite")], tmp_path / f"{len(cases)}.duckdb"))
        return cases[-1]

    yield make
    for case in cases:
        case.__exit__()


def ask(con, name, **params):
    """All rows of a question, as objects."""
    asked = query.load(name)
    every = {p.name: None for p in asked.params if p.name == "top"}
    columns, rows, _ = query.fetch(con, asked.sql, query.bind(asked, every | params), None)
    return [dict(zip([c.name for c in columns], row, strict=True)) for row in rows]


# Against nsys stats ---------------------------------------------------------------------------------------------------


def file_of(report):
    """The export that a report is of."""
    (found,) = report.parent.parent.glob(f"*{report.name.split('.')[0]}.sqlite")
    return found


def as_nsys_prints(value, heading):
    """A value of ours as it stands in a CSV of nsys."""
    if value is None:
        return ""
    digits = {"(MB)": "0.001"}.get(heading[-4:], "0.1")
    if heading.endswith("(MB)"):
        value = value / MEGABYTE
    elif not isinstance(value, float):
        return str(value)
    return str(Decimal(repr(value)).quantize(Decimal(digits), ROUND_HALF_UP))


def shown(rows, headings):
    """Rows of ours as those of nsys: without run and rank, and without what nsys does not have, which comes last."""
    return [
        [as_nsys_prints(v, heading) for v, heading in zip(row.values(), headings, strict=True)]
        for row in ({k: v for k, v in row.items() if k not in ("run", "rank", "hidden_replays")} for row in rows)
    ]


def reports(pattern):
    found = [p for p in REPORTS if re.search(pattern, str(p))]
    return [pytest.param(p, id=p.name) for p in found] or [pytest.param(None, marks=pytest.mark.skip("not here"))]


def read(path):
    with path.open(newline="") as file:
        headings, *rows = [row for row in csv.reader(file) if row]
    return headings, rows


@pytest.mark.parametrize("report", reports(r"^(?!.*mfu.*nvtx_sum)"))
def test_every_column_is_that_of_nsys(store, report):
    """But for two things. Where graph replays were not recorded, shares are NULL: nsys divides by the little that it
    saw. And the deviation of no queue time at all is NULL, not 0."""
    name = report.name.split(".")[1]
    headings, rows = read(report)
    found = shown(ask(store, name, run=file_of(report).stem), headings)
    if report.name.startswith("reducegraph") and name in OF_GPU:
        assert {row[0] for row in found} == {""}
        rows = [["", *row[1:]] for row in rows]
    if name == "cuda_kern_exec_sum":
        column = headings.index("QStdDev (ns)")
        rows = [[*row[:column], row[column] if row[4] != "0" else "", *row[column + 1 :]] for row in rows]
    assert sorted(found) == sorted(rows)
    assert [row[1:3] for row in found] == [row[1:3] for row in rows] or name not in OF_GPU


@pytest.mark.parametrize("report", reports("mfu.*nvtx_sum"))
def test_ranges_of_emit_nvtx_are_summed_by_name(store, report):
    """To nsys each operator is a range of its own, called "aten::mm, op_id = 345": its rows merged are ours. Where the
    name of a domain was cut off, nsys shows none; ours keeps its ranges apart."""
    _, rows = read(report)
    merged = defaultdict(list)
    for row in rows:
        name, count = re.sub(r"(, seq = \d+)?(, op_id = \d+)?$", "", row[-1]), int(row[2])
        known = [int(row[5]), int(row[6])] if count == 2 else [int(row[1])] * (count == 1)
        merged[name] += known or [None] * (count - 2) + [int(row[5]), int(row[6])]
        if not known:
            merged[name, "total"] = int(row[1])
    whole = sum(int(row[1]) for row in rows)
    found = {NAMELESS.sub("", row["range"]): row for row in ask(store, "nvtx_sum", run=file_of(report).stem)}
    assert set(found) == {name for name in merged if isinstance(name, str)}
    for name, row in found.items():
        durs = merged[name]
        total = merged.get((name, "total")) or sum(durs)
        assert (row["instances"], row["total_ns"]) == (len(durs), total), name
        known = [dur for dur in durs if dur is not None]
        assert (row["min_ns"], row["max_ns"]) == (min(known), max(known))
        assert math.isclose(row["time_pct"], 100 * total / whole)
        assert math.isclose(row["avg_ns"], total / len(durs))
        if len(known) == len(durs):
            assert row["med_ns"] == median(durs)
            assert math.isclose(row["stddev_ns"], stdev(durs) if len(durs) > 1 else 0, rel_tol=1e-9)


# Against the same by plain Python -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", [FIXTURE, *EXPORTS], ids=lambda p: p.stem)
def test_rows_of_exports(store, path, name):
    run = "node" if path == FIXTURE else path.stem
    recorded = recording(run, path)
    params = {p.name: None for p in query.load(name).params if p.name == "top"}
    for more in ({}, {"gap_ns": 20_000}) if name == "gpu_gaps" else ({},):
        wanted = getattr(nsys_rows, name)([recorded], **params, **more)
        assert not differences(ask(store, name, run=run, **more), wanted)


READ = {}


def recording(run, path):
    if run not in READ:
        READ[run] = recordings.of_export(run, path)
    return READ[run]


# By hand --------------------------------------------------------------------------------------------------------------


def pair():
    """Two processes with a GPU each that use the same correlation ids: in each an asynchronous copy from pageable
    memory, and a synchronous one back; to process 200 only the second copy is as in process 100."""
    made = Export()
    for pid, device, call, kinds in ((100, 0, "cudaMemcpyAsync_v3020", (0, 2)), (200, 1, "cudaMemcpy_v3020", (1, 2))):
        made.call(call, 1000, 1500, 1, pid=pid)
        src, dst = kinds
        made.copy(1600, 1700 + pid, 1, pid=pid, device=device, size=100_000, srcKind=src, dstKind=dst)
    return made


def test_copies_belong_to_calls_of_their_own_process(opened):
    """nsys joins the rules of copies on the correlation id alone: it lists the copy of process 100 under the call of
    200 as well, and the other way round. Right is one copy in each list."""
    case = opened(pair())
    (waiting,) = case.ask("cuda_memcpy_async")
    assert (waiting["pid"], waiting["dur_ns"], waiting["src_kind"], waiting["device"]) == (100, 200, "Pageable", 0)
    (held,) = case.ask("cuda_memcpy_sync")
    assert (held["pid"], held["dur_ns"], held["api_name"], held["device"]) == (200, 300, "cudaMemcpy", 1)


def test_synchronous_copies_leave_out_the_small_and_those_within_a_device(opened):
    made = Export()
    sizes = {1: (1, 64_000, None), 2: (1, 64_001, None), 3: (2, 8, None), 4: (8, 10**6, 0), 5: (10, 10**6, 1)}
    for corr, (kind, size, target) in sizes.items():
        made.call("cudaMemcpy_v3020", corr * 1000, corr * 1000 + 500, corr)
        ends = {} if target is None else {"srcDeviceId": 0, "dstDeviceId": target}
        made.copy(corr * 1000 + 100, corr * 1000 + 200 + corr, corr, kind, size, srcKind=2, dstKind=2, **ends)
    assert [row["dur_ns"] for row in opened(made).ask("cuda_memcpy_sync")] == [105, 103, 102]


def test_calls_are_called_as_nsys_calls_them(opened):
    """Versions of a function are rows of their own, and only a suffix of _v and four characters goes."""
    made = Export()
    for n, name in enumerate(["cudaLaunchKernel_v7000", "cudaLaunchKernel_v9000", "cudaLaunchKernelExC_v11060"]):
        made.call(name, 1000 * n, 1000 * n + 10 - n, n + 1)
    rows = opened(made).ask("cuda_api_sum")
    assert [(row["name"], row["total_ns"]) for row in rows] == [
        ("cudaLaunchKernel", 10),
        ("cudaLaunchKernel", 9),
        ("cudaLaunchKernelExC_v11060", 8),
    ]


def test_unified_memory_and_unknown_directions(opened):
    made = Export().copy(0, 30, 0, 11, stream=0).copy(100, 120, 0, 77).copy(200, 210, 0, 1, size=None)
    case = opened(made)
    assert [(r["operation"], r["total_ns"]) for r in case.ask("cuda_gpu_mem_time_sum")] == [
        ("[CUDA memcpy Unified Host-to-Device]", 30),
        ("[CUDA memcpy Unknown]", 20),
        ("[CUDA memcpy Host-to-Device]", 10),
    ]
    last = case.ask("cuda_gpu_mem_size_sum")[-1]
    assert (last["operation"], last["total_bytes"], last["count"], last["stddev_bytes"]) == (
        "[CUDA memcpy Host-to-Device]",
        *[None] * 3,
    )


def test_ranges_that_cross_stay_open_or_end_elsewhere(opened):
    made = Export()
    for n, at in enumerate((1000, 2000, 3000, 4000), 1):
        made.launched("k", at, n)
    made.nvtx("NCCL", 0, None, DOMAIN, domainId=3)
    made.nvtx("io", 900, 2500, START_END, domainId=3)
    made.nvtx("late", 1500, 3020, START_END)
    made.nvtx("exact", 2000, 2020)
    made.nvtx("cut", 2000, 2019)
    made.nvtx("elsewhere", 900, 9000, START_END, endGlobalTid=gtid(100, 101))
    made.nvtx("open", 3900, None)
    made.nvtx("now", 10_000, None, MARK)
    case = opened(made)
    lengths = {row["range"]: (row["style"], row["total_ns"]) for row in case.ask("nvtx_sum")}
    assert lengths["open"] == ("PushPop", 6100)
    assert lengths["NCCL:io"] == ("StartEnd", 1600)
    assert len(lengths) == 6
    held = {row["range"]: (row["nvtx_inst"], row["kern_inst"]) for row in case.ask("nvtx_kern_sum")}
    assert held == {"NCCL:io": (1, 2), "late": (1, 2), "exact": (1, 1), None: (0, 1)}
    times = {row["range"]: (row["total_proj_ns"], row["total_gpu_ops"]) for row in case.ask("nvtx_gpu_proj_sum")}
    assert times == {"NCCL:io": (1050, 2), "late": (1050, 2), "exact": (50, 1)}


def test_levels_and_children_of_ranges(opened):
    made = Export().launched("k", 1000, 1).launched("k", 2000, 2)
    made.nvtx("step", 900, 5000).nvtx("forward", 990, 2500).nvtx("aten::mm, seq = 1, op_id = 7", 1995, 2100)
    made.nvtx("aten::add, op_id = 8", 2200, 2300).nvtx("idle", 3000, 4000)
    found = {
        row["range"]: (row["avg_range_lvl"], row["avg_num_child"]) for row in opened(made).ask("nvtx_gpu_proj_sum")
    }
    assert found == {"step": (0, 2), "forward": (1, 2), "aten::mm": (2, 0)}


def test_a_kernel_without_a_launch_is_in_no_range(opened):
    made = Export().launched("k", 1000, 1).kernel("k", 2000, 2100, 99).nvtx("all", 0, 9000)
    rows = opened(made).ask("nvtx_kern_sum")
    assert [(row["range"], row["pid"], row["tid"], row["total_ns"]) for row in rows] == [
        (None, None, None, 100),
        ("all", 100, "100", 50),
    ]


def test_gaps_are_those_of_the_union_for_each_process_and_device(opened):
    made = Export()
    made.kernel("long", 1000, 9000, 1).kernel("short", 2000, 3000, 2, stream=8)
    made.kernel("next", 9500, 9600, 3).kernel("last", 20_000, 21_000, 4)
    made.kernel("other", 9000, 9500, 5, pid=200)
    made.gpu("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 12_000, 13_000, 6, graphId=1)
    flush = made.text("CUDA profiling data flush overhead")
    for start, end in ((500, 1500), (14_000, 19_000)):
        made.put("PROFILER_OVERHEAD", start=start, end=end, globalTid=gtid(100), nameId=flush)
    case = opened(made)
    gaps = [(row["dur_ns"], row["start_ns"] + 500, row["pid"]) for row in case.ask("gpu_gaps", gap_ns=499)]
    assert gaps == [(2400, 9600, 100), (1000, 13_000, 100), (1000, 19_000, 100), (500, 9000, 100)]
    assert len(case.ask("gpu_gaps", gap_ns=500)) == 3
    assert case.ask("gpu_gaps") == []


def test_use_is_a_sum_and_neighbours_are_merged(opened):
    made = (
        Export()
        .kernel("a", 0, 100, 1)
        .kernel("b", 0, 100, 2, stream=8)
        .kernel("c", 205, 215, 3)
        .kernel("d", 390, 399, 4)
    )
    rows = opened(made).ask("gpu_time_util", chunks=4, threshold_pct=None)
    assert [(row["dur_ns"], round(row["in_use_pct"], 3)) for row in rows] == [(399, round(100 * 219 / 399, 3))]
    rows = opened(made).ask("gpu_time_util", chunks=4)
    assert [(row["start_ns"], row["dur_ns"], round(row["in_use_pct"], 3)) for row in rows] == [
        (100, 299, round(100 * 19 / 299, 3))
    ]


def test_kernels_and_their_queue(opened):
    made = Export().call("cudaGraphLaunch_v10000", 1000, 1100, 1)
    for start in (1050, 1100, 1300):
        made.kernel("k", start, start + 20, 1, graphNodeId=start)
    case = opened(made)
    (row,) = case.ask("cuda_kern_exec_sum")
    assert (row["count"], row["q_count"], row["q_min_ns"], row["q_max_ns"], row["t_min_ns"]) == (3, 2, 0, 200, 100)
    assert (row["a_avg_ns"], row["a_stddev_ns"], row["api_name"]) == (100, 0, "cudaGraphLaunch_v10000")
    trace = case.ask("cuda_kern_exec_trace")
    assert [(r["queue_start_ns"], r["queue_dur_ns"], r["total_dur_ns"]) for r in trace] == [
        (None, None, 100),
        (100, 0, 120),
        (100, 200, 320),
    ]


# Every question on an export ------------------------------------------------------------------------------------------


def everything():
    """An export with a row of every kind that another fixture lacks."""
    made = Export().version()
    for n in range(3):
        made.nvtx(f"step{n}", n * 10_000, n * 10_000 + 9000)
        made.nvtx("aten::mm, seq = 1, op_id = 7, sizes = [[2, 3], [3, 4]]", n * 10_000 + 900, n * 10_000 + 1900)
        made.launched("gemm", n * 10_000 + 1000, n + 1, gridX=8, gridY=1, gridZ=1, blockX=128, blockY=1, blockZ=1)
        made.call("cudaMemcpyAsync_v3020", n * 10_000 + 2000, n * 10_000 + 2100, n + 11)
        made.copy(n * 10_000 + 2200, n * 10_000 + 2300, n + 11, srcKind=0, dstKind=2)
        made.call("cudaGraphLaunch_v10000", n * 10_000 + 3000, n * 10_000 + 3100, n + 21)
        made.gpu(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", n * 10_000 + 3200, n * 10_000 + 3900, n + 21, graphId=1, graphExecId=2
        )
        made.call("cudaDeviceSynchronize_v3020", n * 10_000 + 4000, n * 10_000 + 4500, n + 31)
        for at, kind in ((5000, 0), (6000, 1)):
            usage = {"deviceId": 0, "address": 64 + n, "memKind": 2, "bytes": 512, "memoryOperationType": kind}
            made.put("CUDA_GPU_MEMORY_USAGE_EVENTS", start=n * 10_000 + at, globalPid=gpid(100), **usage)
    made.copy(50_000, 50_100, 0, 11, stream=0)
    made.nvtx("open", 60_000, None).nvtx("now", 61_000, None, MARK)
    made.put("TARGET_INFO_GPU", id=0, name="GPU", smCount=132)
    return made


def bare():
    """Kernels and nothing else."""
    return Export().kernel("k", 0, 10, 1).kernel("k", 20, 40, 2)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A store of exports: the fixture (node), all kinds of rows (made), and next to nothing (bare)."""

    def make(folder):
        made = everything().write(folder / "made.sqlite"), bare().write(folder / "bare.sqlite")
        fill(folder / "store.duckdb", (FIXTURE, "node"), *zip(made, ("made", "bare"), strict=True))

    with closing(open_store(shared(tmp_path_factory, "every", make) / "store.duckdb")) as con:
        yield con


# What an export of this fixture has no data for: operators, the allocator, shapes, stacks, a record of a capture.
NOT_IN_NODE = {
    "captures", "compile_signs", "compile_time", "graph_breaks", "kernel_source", "kernel_sources", "recompiles",
    "timings", "unfused_kernels",
    "allocator_calls", "compile_regions", "cuda_memcpy_async", "cuda_memcpy_sync", "dataloader_wait",
    "first_use_loads", "gpu_gaps", "graph_pieces", "memory_at_peak", "memory_peak", "memory_steps", "memory_timeline",
    "op_shapes", "recompiles_seen", "step_kernels",
}  # fmt: skip
SIGNED = re.compile("delta|allocated|reserved")
MORE_THAN_ALL = {"in_use_pct", "pct_of_peak", "cv_pct", "same_cv_pct", "peak_pct", "delta_pct"}


@pytest.mark.parametrize("run", ["node", "made", "bare"])
@pytest.mark.parametrize("name", query.names())
def test_every_question_on_an_export(exported, name, run):
    asked = query.load(name)
    params = {p.name: run for p in asked.params if p.name in query.RUNS}
    rows = ask(exported, name, **params)
    for column in asked.columns:
        values = [row[column.name] for row in rows if row[column.name] is not None]
        if column.unit in ("ns", "bytes", "count") and not SIGNED.search(column.name):
            assert all(v >= 0 for v in values), column.name
        if column.unit == "percent" and column.name not in MORE_THAN_ALL:
            assert all(0 <= v <= 100 + 1e-9 for v in values), column.name
        assert not any(isinstance(v, float) and not math.isfinite(v) for v in values), column.name
        if column.name == "run" and params:
            assert set(values) <= {run}
    if run == "node":
        assert bool(rows) == (name not in NOT_IN_NODE)


def test_what_the_fixture_says(exported):
    """As nsys has it: 632 kernels, 8 graph launches, 4 steps; and a step is no range around a call that waits."""
    (summary,) = ask(exported, "summary", run="node")
    assert (summary["kernels"], summary["kernel_ns"], summary["graph_launches"]) == (632, 3_343_104, 8)
    assert [(s["step"], s["kernels"], s["flags"]) for s in ask(exported, "steps", run="node")] == [
        (n, 158, None) for n in range(4)
    ]
    waits = ask(exported, "sync_points", run="node")
    assert [(w["name"], w["step"], w["range"]) for w in waits] == [
        ("cudaStreamSynchronize", 1, None),
        ("cudaDeviceSynchronize", None, None),
        ("cudaStreamSynchronize", 3, None),
    ]
    assert {row["range"] for row in ask(exported, "sync_sites", run="node")} == {None}
    assert {row["op"] for row in ask(exported, "top_ops", run="node")} == {"(no operator)"}


def test_memory_of_an_export_is_what_the_driver_gave(exported):
    (peak,) = ask(exported, "memory_peak", run="made")
    assert (peak["events"], peak["grown_bytes"], peak["left_bytes"], peak["peak_step"]) == (6, 512, 0, 0)
    assert (peak["peak_bytes"], peak["reserved_bytes"]) == (None, None)
    assert [row["allocations"] for row in ask(exported, "memory_steps", run="made")] == [1] * 3


def test_a_step_is_no_module(exported):
    assert [row["module"] for row in ask(exported, "module_time", run="made")] == [None]


@needs_recorded
def test_the_exports_are_here():
    assert len(EXPORTS) >= 9
    assert len(REPORTS) >= 50
