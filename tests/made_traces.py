"""Small traces made for tests of comparisons and advice, and stores that hold them."""

import json
import shutil
from pathlib import Path

from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import open_store

GEMM = "ampere_sgemm_128x64_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, add>(int)"
MUL = ADD.replace("add", "mul")


def trace(steps, device_of=lambda _: 0, pause=0, ops=None, **header):
    """A trace of steps, each a list of (kernel, µs); kernels run one after the other, `pause` µs apart.

    `ops` has the operator that launches a kernel; each launch takes 1 µs, and each kernel starts 2 µs after it.
    """
    events, now, number = [], 10, 0
    for step, kernels in enumerate(steps):
        began = now
        for place, (name, dur) in enumerate(kernels):
            number += 1
            if ops and name in ops:
                events.append(row("cpu_op", ops[name], now - 0.5, 2, None))
            events += [
                row("cuda_runtime", "cudaLaunchKernel", now, 1, number),
                row("kernel", name, now + 2, dur, number, device=device_of(place)),
            ]
            now += dur + pause + 2
        events.append({
            "ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": began - 1,
            "dur": now - began,
        })  # fmt: skip
    return {"traceEvents": events, **header}


def row(category, name, start, dur, correlation, device=None):
    """An event: of the GPU with a device, of the host without."""
    args = {} if correlation is None else {"correlation": correlation}
    if device is not None:
        args |= {"device": device, "stream": 7}
    where = {"pid": 1, "tid": 1} if device is None else {"pid": device, "tid": 7}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": dur, "args": args, **where}


def store_of(folder, **runs):
    """A store with a run for each keyword: a file or a trace, or a pair of one and options of its ingest."""
    store = Path(folder) / "s.duckdb"
    for label, content in runs.items():
        content, options = content if isinstance(content, tuple) else (content, {})
        path = content if isinstance(content, Path) else Path(folder) / f"{label}.json"
        if not isinstance(content, Path):
            path.write_text(json.dumps(content | {"side": label}), "utf-8")
        outcomes, _ = ingest([str(path)], store, Options(label=label, **options))
        assert not outcomes[0].error
    return store


def opened(folder, **runs):
    """`store_of`, open for reading."""
    return open_store(store_of(folder, **runs))


def timed_again(record, folder, pipelined):
    """A copy of a capture's record, and of its trace, in which `pipelined` makes of a time what it is."""
    told = json.loads(record.read_text("utf-8"))
    told["step_pipelined_ns"] = {end: pipelined(ns) for end, ns in told["step_pipelined_ns"].items()}
    for timing in told["timings"]:
        timing["ns"] = int(pipelined(timing["ns"])) if timing["kind"] == "pipelined" else timing["ns"]
    made = folder / record.name
    made.write_text(json.dumps(told), "utf-8")
    if not told["trace"]:
        return made
    return Path(shutil.copy(record.with_name(told["trace"]), folder))


OPERATORS = {
    ADD: "aten::nonzero",
    GEMM: "aten::_cudnn_rnn",
    "mine": "MineBackward",
    "add2": "AddBackward0",
    "cublas_gemm_bmm": "aten::bmm",
    "cunn_SoftMaxForward": "aten::_softmax",
    "void nchwToNhwcKernel": "aten::cudnn_convolution",
}
SIGNS = trace([[(kernel, 5) for kernel in OPERATORS]] * 3, ops=OPERATORS)  # of everything a compiler minds, one a step
