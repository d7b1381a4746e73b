"""Random small traces through the whole reader: golden/explain.py agrees, and everything sums to what it is part of.

Times are few and coarse, so that rows nest, cross, touch, repeat and last for no time; names are those that mean
something to the reader.
"""

import json
import os
from collections import defaultdict

import pytest
from cases import Case
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from recorded import SLOW
from test_explained import Compared

HERE = settings(
    max_examples=int(os.environ.get("TRACEQ_EXAMPLES", "25" if SLOW else "12")),
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
LAUNCHES = [
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemcpy",
]
CALLS = [
    *("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaMalloc", "cudaHostAlloc"),
    *("cuModuleLoadData", "cudaEventRecord"),
]
KERNELS = [
    *("ampere_sgemm_128x64_tn", "triton_poi_fused_add_0", "mine", "triton_red_fused_sum_1"),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
]
OVERHEADS = ["Lazy Function Loading", "Instrumentation", "Buffer Flush"]
AUTOGRAD = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 0, "args": {"name": "pt_autograd_0"}}

lanes = st.sampled_from([(1, 1), (1, 1), (1, 1), (1, 1), (1, 2), (1, 2), (2, 1)])
starts = st.integers(1, 80).map(lambda n: n * 5)
lengths = st.sampled_from([0, 1, 5, 5, 10, 20, 50, 120, 200])
ids = st.none() | st.integers(0, 6)


@st.composite
def host(draw, category, names, **args):
    """A row of a host thread."""
    pid, tid = draw(lanes)
    found = {key: draw(value) for key, value in args.items()}
    return {"ph": "X", "cat": category, "name": draw(st.sampled_from(names)), "pid": pid, "tid": tid} | {
        "ts": draw(starts),
        "dur": draw(lengths),
        "args": {key: value for key, value in found.items() if value is not None},
    }


@st.composite
def work(draw, call):
    """What a launch starts on the GPU: soon, late, or (by clock noise) a little too early."""
    several = st.integers(1, 3) if "Graph" in call["name"] else st.sampled_from([0, 1, 1, 1, 1])
    device, stream = draw(st.sampled_from([(0, 7), (0, 7), (0, 7), (0, 20), (1, 7)]))
    found, at = [], call["ts"]
    for _ in range(draw(several)):
        at += draw(st.sampled_from([-5, 0, 5, 5, 10, 20, 20, 150]))
        args = {"device": device, "stream": stream, "correlation": call["args"]["correlation"]}
        if (external := draw(ids)) is not None:
            args["External id"] = external
        kind = "gpu_memcpy" if "Memcpy" in call["name"] else "kernel"
        found.append(
            {"ph": "X", "cat": kind, "name": draw(st.sampled_from(KERNELS)), "pid": device, "tid": stream}
            | {"ts": max(at, 0), "dur": draw(st.sampled_from([0, 1, 5, 5, 10, 30])), "args": args}
        )
        at = found[-1]["ts"] + found[-1]["dur"]
    return found


@st.composite
def launches(draw):
    """Calls that launch, with what they start; an id seldom occurs twice."""
    found = []
    for number in range(draw(st.integers(2, 9))):
        call = draw(host("cuda_runtime", LAUNCHES, **{"External id": ids}))
        call["args"]["correlation"] = draw(st.sampled_from([number + 1] * 9 + [1, 0]))
        found += [call, *draw(work(call))]
    return found


@st.composite
def carried_over(draw):
    """Work whose launch was not recorded."""
    call = {
        "name": draw(st.sampled_from(LAUNCHES)),
        "ts": draw(starts),
        "args": {"correlation": draw(st.integers(0, 99))},
    }
    return draw(work(call))


@st.composite
def waits(draw):
    """A recorded wait of a stream."""
    stream = draw(st.sampled_from([7, 20]))
    kind = draw(st.sampled_from(["Stream Wait Event", "Stream Wait Event", "Context Sync"]))
    return {"ph": "X", "cat": "cuda_sync", "name": kind, "pid": 0, "tid": stream, "ts": draw(starts), "dur": 1} | {
        "args": {"device": 0, "stream": stream, "cuda_sync_kind": kind}
    }


@st.composite
def allocations(draw):
    """An event of the allocator."""
    (pid, tid), at = draw(lanes), draw(starts)
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": pid, "tid": tid, "ts": at} | {
        "args": {"Bytes": 8, "Addr": at, "Device Type": 1, "Device Id": 0}
    }


@st.composite
def traces(draw):
    numbers = {"External id": ids, "Sequence number": st.none() | st.integers(1, 3), "Fwd thread id": st.integers(0, 2)}
    found = draw(launches())
    found += draw(st.lists(host("cpu_op", OPS, **numbers), max_size=16))
    found += draw(st.lists(host("user_annotation", RANGES), max_size=5))
    found += draw(st.lists(host("cuda_runtime", CALLS, correlation=st.just(0)), max_size=5))
    found += draw(st.just([]) | st.lists(host("python_function", FRAMES), max_size=5))
    found += draw(st.lists(host("overhead", OVERHEADS), max_size=2))
    found += draw(st.lists(waits(), max_size=2))
    found += draw(st.lists(allocations(), max_size=2))
    found += draw(st.just([]) | carried_over())
    return found + draw(st.sampled_from([[], [], [AUTOGRAD]]))


def row(category, name, at, dur, thread=1, **args):
    """A row of process 1."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": at, "dur": dur, "args": args}


def kernel(at, dur, correlation):
    where = {"device": 0, "stream": 7, "correlation": correlation}
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": where}


# The GPU runs dry at 20 µs; what the host does then, and the launch that ends the gap.
FOUND = {
    "operators in one that is only a mark": [
        row("cpu_op", "Optimizer.zero_grad#SGD.zero_grad", 10, 300),
        row("cpu_op", "aten::zero_", 30, 90),
        row("cpu_op", "aten::zero_", 140, 100),
        row("cuda_runtime", "cudaLaunchKernel", 200, 5, correlation=1),
        kernel(210, 5, 1),
    ],
    "the last row lasts for no time": [
        row("overhead", "Buffer Flush", 0, 10),
        row("overhead", "Buffer Flush", 190, 0),
        row("cuda_runtime", "cudaLaunchKernel", 200, 5, correlation=1),
        kernel(210, 5, 1),
    ],
    "an operator that outlives the one around it": [
        row("cpu_op", "enumerate(DataLoader)#Iter.__next__", 10, 50),
        row("cpu_op", "aten::add", 30, 150),
        row("cuda_runtime", "cudaLaunchKernel", 200, 5, correlation=1),
        kernel(210, 5, 1),
    ],
    "an allocation inside a long launch": [
        row("cuda_runtime", "cudaLaunchKernel", 50, 150, correlation=1),
        row("cuda_runtime", "cudaMalloc", 60, 120, correlation=0),
        kernel(210, 5, 1),
    ],
    "an allocation of another thread during a long launch": [
        row("cuda_runtime", "cudaLaunchKernel", 50, 150, correlation=1),
        row("cuda_runtime", "cudaMalloc", 60, 120, 2, correlation=0),
        kernel(210, 5, 1),
    ],
    "a replay without an id": [
        row("cuda_runtime", "cudaGraphLaunch", 50, 10, correlation=0),
        row("cuda_runtime", "cudaLaunchKernel", 200, 5, correlation=1),
        kernel(210, 5, 1),
    ],
    "rows of no length alone": [kernel(210, 0, 1), kernel(220, 0, 2)],
}


def check(events, folder):
    """Everything about a trace."""
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    with Case([path], folder / "s.duckdb") as case:
        assert [o.error for o in case.outcomes] == [None]
        compared = Compared(case.con, path)
        compared.check()
        check_sums(case, compared.trace)


@given(traces())
@HERE
def test_a_random_trace(tmp_path_factory, events):
    check(events, tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize("name", FOUND)
def test_what_random_traces_found(name, tmp_path):
    check([kernel(10, 10, 100), *FOUND[name]], tmp_path)


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
