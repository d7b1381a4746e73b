"""Random small traces through the whole reader: golden/explain.py agrees, and everything sums to what it is part of.

Times are few and coarse, so that rows nest, cross, touch, repeat and last for no time; names are those that mean
something to the reader.
"""

import json
import os
from collections import defaultdict

from cases import Case
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_explained import Compared

HERE = settings(
    max_examples=int(os.environ.get("TRACEQ_EXAMPLES", "25")),
    phases=[Phase.explicit, Phase.generate],  # a failure is shown as found, since shrinking it takes minutes
    deadline=None,
    database=None,
    derandomize="TRACEQ_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
OPS = [
    *(
        "aten::mm",
        "aten::mm",
        "aten::add",
        "aten::cudnn_convolution",
        "autograd::engine::evaluate_function: MmBackward0",
    ),
    *("MmBackward0", "CompiledFunction", "Torch-Compiled Region: 0/0", "Optimizer.zero_grad#SGD.zero_grad"),
    *("enumerate(DataLoader)#Iter.__next__", "compile_inner (dynamo_timed)", "mine"),
]
RANGES = [
    *("Optimizer.step#SGD.step", "enumerate(DataLoader)#Iter.__next__", "ProfilerStep#1", "ProfilerStep#2", "block/1"),
    *("head", "## Call CompiledFxGraph abc ##", "TorchDynamo Cache Lookup", "frame_compile (dynamo_timed)"),
]
FRAMES = ["nn.Module: Net_0", "nn.Module: Linear_0", "nn.Module: a/b", "train.py(3): step"]
CALLS = [
    *("cudaLaunchKernel", "cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpy"),
    *("cudaDeviceSynchronize", "cudaStreamWaitEvent", "cudaMalloc", "cudaHostAlloc", "cuModuleLoadData"),
    *("cudaEventRecord", "cudaStreamSynchronize"),
]
KERNELS = [
    *("ampere_sgemm_128x64_tn", "triton_poi_fused_add_0", "mine", "triton_red_fused_sum_1"),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
]
OVERHEADS = ["Lazy Function Loading", "Instrumentation", "Buffer Flush"]

lane = st.sampled_from([(1, 1), (1, 1), (1, 1), (1, 2), (2, 1)])
start = st.integers(1, 60).map(lambda n: n * 5)
length = st.sampled_from([0, 1, 5, 5, 10, 20, 50, 120])
correlation = st.integers(0, 9)
number = st.none() | st.integers(1, 6)


def host(category, names, **args):
    return st.builds(
        lambda name, where, at, dur, args: (
            {"ph": "X", "cat": category, "name": name, "pid": where[0], "tid": where[1]}
            | {"ts": at, "dur": dur, "args": {key: value for key, value in args.items() if value is not None}}
        ),
        st.sampled_from(names),
        lane,
        start,
        length,
        st.fixed_dictionaries(args),
    )


ops = host("cpu_op", OPS, **{"External id": number, "Sequence number": number, "Fwd thread id": st.integers(0, 2)})
ranges = host("user_annotation", RANGES)
frames = host("python_function", FRAMES)
calls = host("cuda_runtime", CALLS, correlation=correlation, **{"External id": number})
overheads = host("overhead", OVERHEADS)
gpu = st.builds(
    lambda kind, name, device, stream, at, dur, args: (
        {"ph": "X", "cat": kind, "name": name, "pid": device}
        | {"tid": stream, "ts": at, "dur": dur, "args": {"device": device, "stream": stream, **args}}
    ),
    st.sampled_from(["kernel", "kernel", "kernel", "gpu_memcpy"]),
    st.sampled_from(KERNELS),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([7, 7, 20]),
    start,
    length,
    st.fixed_dictionaries({}, optional={"correlation": correlation, "External id": st.integers(1, 6)}),
)
waits = st.builds(
    lambda stream, at: (
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": stream}
        | {"ts": at, "dur": 1, "args": {"device": 0, "stream": stream, "cuda_sync_kind": "Stream Wait Event"}}
    ),
    st.sampled_from([7, 20]),
    start,
)
memory = st.builds(
    lambda where, at: (
        {"ph": "i", "s": "t", "name": "[memory]", "pid": where[0], "tid": where[1], "ts": at}
        | {"args": {"Bytes": 8, "Addr": at, "Device Type": 1, "Device Id": 0}}
    ),
    lane,
    start,
)
AUTOGRAD = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 0, "args": {"name": "pt_autograd_0"}}


def some(rows, most):
    return st.lists(rows, max_size=most)


traces = st.builds(
    lambda *groups: [row for group in groups for row in group],
    some(ops, 14),
    some(ranges, 5),
    some(frames, 5) | st.just([]),
    st.lists(calls, min_size=2, max_size=12),
    st.lists(gpu, min_size=2, max_size=12),
    some(overheads, 2),
    some(waits, 2),
    some(memory, 2),
    st.sampled_from([[], [], [AUTOGRAD]]),
)


@given(traces)
@HERE
def test_a_random_trace(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("random")
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    with Case([path], folder / "s.duckdb") as case:
        assert [o.error for o in case.outcomes] == [None]
        compared = Compared(case.con, path)
        compared.check()
        check_sums(case, compared.trace)


def check_sums(case, trace):
    """What is divided sums to the whole."""
    kernels = [w for w in trace.work if w.kind == "kernel"]
    kernel_ns = sum(w.dur for w in kernels)
    for column in ("category", "category_by_name", "phase"):
        divided = rows(case, f"SELECT {column}, sum(dur_ns)::BIGINT FROM kernels GROUP BY ALL")
        assert None not in dict(divided)
        assert sum(ns for _, ns in divided) == kernel_ns
    check_steps(case)
    check_modules(case, kernel_ns)
    assert {"device": idle(trace, False), "stream": idle(trace, True)} == {
        scope: divided_idle(case, scope) for scope in ("device", "stream")
    }
    assert covered(trace.ops) == dict(
        rows(case, "SELECT pid || '/' || tid, sum(self_ns)::BIGINT FROM ops GROUP BY ALL")
    )
    assert covered(trace.frames) == dict(
        rows(case, "SELECT pid || '/' || tid, sum(self_ns)::BIGINT FROM python_calls GROUP BY ALL")
    )


def rows(case, statement):
    return case.con.execute(statement).fetchall()


def check_steps(case):
    """The phases of a step sum to its kernel time."""
    steps = rows(case, "SELECT pid, step, coalesce(kernel_ns, 0) FROM steps")
    found = rows(
        case,
        "SELECT pid, step, sum(ns)::BIGINT FROM (SELECT pid, step, phase, sum(dur_ns) AS ns FROM kernels GROUP BY ALL) "
        "WHERE step IS NOT NULL GROUP BY ALL",
    )
    phases = {(pid, step): ns for pid, step, ns in found}
    assert {(pid, step): phases.pop((pid, step), 0) for pid, step, _ in steps} == {
        (pid, step): ns for pid, step, ns in steps
    }
    assert phases == {}


def check_modules(case, kernel_ns):
    """A module's total is its own time and its children's totals; all own times are all kernel time."""
    found = {row["module"]: row for row in case.ask("module_time")}
    inside = defaultdict(int)
    for module, row in found.items():
        if module is not None:
            inside[module.rpartition("/")[0]] += row["total_ns"]
    for module, row in found.items():
        assert row["total_ns"] == row["self_ns"] + inside.pop(module, 0), module
    assert sum(row["self_ns"] for row in found.values()) == kernel_ns
    assert set(inside) <= {""}


def idle(trace, is_stream):
    """Idle time of each device or stream that was ever busy: what of its window no activity covers."""
    if trace.is_blind:
        return {}
    found = defaultdict(list)
    for work in trace.work:
        found[work.device, work.stream if is_stream else None].append((work.start, work.end))
    return {
        where: ns
        for where, spans in found.items()
        if any(start < end for start, end in spans) and (ns := uncovered(spans))
    }


def uncovered(spans):
    ns, reached = 0, min(start for start, _ in spans)
    for start, end in sorted(spans):
        ns += max(0, start - reached)
        reached = max(reached, end)
    return ns


def divided_idle(case, scope):
    """The same as the sum of the causes."""
    found = defaultdict(int)
    for row in case.ask("gap_causes", scope=scope):
        found[row["device"], row["stream"]] += row["idle_ns"]
    return dict(found)


def covered(nested):
    """Time of each thread in which any of the rows is open; what would outlive its parent ends with it."""
    found, reached = defaultdict(int), {}
    for row in sorted(nested, key=lambda r: (r.start, -r.dur)):
        lane = f"{row.pid}/{row.tid}"
        found[lane] += 0
        if row.start >= reached.get(lane, row.start):
            found[lane] += row.dur
            reached[lane] = row.start + row.dur
    return dict(found)
