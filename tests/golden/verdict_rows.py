"""Golden rows of the queries that advice rests on, by plain Python and not by traceq."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compile_rows import step_of
from definitions import Row, Step, Trace, by_run, in_order, keyed, ratio
from diff_rows import total, work_of
from explain import Work
from op_rows import short_name

KEPT = {"gemm", "conv", "attention", "rnn", "comm", "sort"}


def step_structure(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        for s in t.good_steps if not t.invisible else []:
            if work := work_of(t, s):
                rows.append({"pid": str(s.pid), **structure(t, s, work)})
    rows = in_order(rows, "run", "rank", "step", "pid")
    return [{k: v for k, v in row.items() if k != "pid"} for row in rows]


def structure(t: Trace, s: Step, work: list[Work]) -> Row:
    origins = {k.place: k.origin for k in t.kernels}
    parts = {w: part(w, origins) for w in work}
    if set(parts.values()) == {"optimizer"}:
        parts = dict.fromkeys(work, "fusible")
    groups = [group for lane in keyed(work, lambda w: (w.device, w.stream)).values() for group in grouped(lane, parts)]
    optimizer = [w for w in work if parts[w] == "optimizer"]
    return {
        "run": t.run,
        "rank": t.rank,
        "step": s.number,
        "launched": len(work),
        "kept": sum(p == "kept" for p in parts.values()),
        "optimizer": len(optimizer),
        "optimizer_ns": total(optimizer),
        "fusible": sum(map(len, groups)),
        "fusible_ns": sum(map(total, groups)),
        "fusible_groups": len(groups),
        "longest_ns": sum(max(w.dur for w in group) for group in groups),
        "has_backward": any(w.phase == "backward" for w in work),
    }


def part(w: Work, origins: dict[int, Any]) -> str:
    if w.kind != "kernel" or w.category in KEPT or origins[w.place] in ("triton", "custom"):
        return "kept"
    return "optimizer" if w.phase == "optimizer" else "fusible"


def grouped(lane: list[Work], parts: dict[Work, str]) -> list[list[Work]]:
    """Neighbours that are fusible."""
    found: list[list[Work]] = [[]]
    for w in sorted(lane, key=lambda w: w.rank):
        if parts[w] == "fusible":
            found[-1].append(w)
        else:
            found.append([])
    return [group for group in found if group]


DATA_DEPENDENT = {"nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive"}
RNNS = {"_cudnn_rnn", "miopen_rnn", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell"}
SOFTMAX = {"aten::_softmax", "aten::softmax"}


def compile_signs(traces: list[Trace]) -> list[Row]:
    rows = []
    for run, some in by_run(traces).items():
        number = sum(len(t.good_steps) for t in some)
        found = [sign for t in some for sign in op_signs(t)] + kernel_signs(some)
        for (sign, kind, what, module), same in keyed(found, lambda found: found[:4]).items():
            times = [ns for *_, ns in same if ns is not None]
            rows.append({
                "run": run,
                "sign": sign,
                "kind": kind,
                "what": what,
                "module": module,
                "occurrences": len(same),
                "per_step": ratio(len(same), number),
                "gpu_ns": sum(times) if times else None,
            })  # fmt: skip
    return in_order(rows, "run", "sign", "kind", "-occurrences", "what", "module")


def op_signs(t: Trace) -> list[tuple[Any, ...]]:
    found = []
    for op in t.explained.ops:
        bare = op.name.removeprefix("aten::")
        kind = None
        if op.name.startswith("aten::"):
            kind = "data_dependent" if bare in DATA_DEPENDENT else "rnn" if bare in RNNS else None
        elif re.fullmatch(r"[A-Za-z_]\w*Backward", op.name) and not op.name.startswith("Compiled"):
            kind = "custom_autograd"
        if kind and step_of(t, op) in t.good_steps:
            found.append(("blocker", kind, op.name, op.module, None))
    return found


def kernel_signs(traces: list[Trace]) -> list[tuple[Any, ...]]:
    kernels = [w for t in traces for s in t.good_steps for w in work_of(t, s) if w.kind == "kernel"]
    ops = {w.op.name for w in kernels if w.op}
    is_naive = ops & SOFTMAX and ops & {"aten::bmm", "aten::baddbmm"}
    is_naive = is_naive and not any(w.category == "attention" for w in kernels)
    found: list[tuple[Any, ...]] = []
    for w in kernels:
        module = w.op.module if w.op else None
        if re.search("(?i)nchwToNhwc|nhwcToNchw|_nchw_|nchwkcrs", w.name):
            found.append(("chance", "nchw_conv", short_name(w.name), module, w.dur))
        if is_naive and w.op and w.op.name in SOFTMAX:
            found.append(("chance", "naive_attention", w.op.name, module, w.dur))
    return found


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    step_structure: [{}, {"run": "default"}],
    compile_signs: [{}, {"run": "model"}],
}
