"""Golden rows of the queries about kernels, by plain Python and not by traceq.

What a kernel's operator, category and idle time before it are, explain.py found.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from definitions import Row, Trace, by_run, in_order, keyed, median, percent, quantile, ratio
from explain import Work

Number = Fraction | float
HEAVY = {"gemm", "conv", "attention", "rnn"}

# From the data sheets, dense: bytes and operations in a second.
PEAKS: dict[str, tuple[int, dict[str, int]]] = {
    "NVIDIA H200": (
        4_800 * 10**9,
        {"float32": 67 * 10**12, "tf32": 4947 * 10**11, "float16": 9894 * 10**11, "bfloat16": 9894 * 10**11},
    ),
    "NVIDIA A100-SXM4-80GB": (
        2_039 * 10**9,
        {
            "float64": 195 * 10**11, "float32": 195 * 10**11, "tf32": 156 * 10**12, "float16": 312 * 10**12,
            "bfloat16": 312 * 10**12, "int8": 624 * 10**12,
        },
    ),
}  # fmt: skip


@dataclass(eq=False)
class Kernel:
    """A kernel or copy with its trace."""

    trace: Trace
    work: Work

    @property
    def dur(self) -> int:
        return self.work.dur

    @property
    def args(self) -> Row:
        return self.work.args

    @property
    def category(self) -> str | None:
        return self.work.category

    @property
    def op(self) -> Any:
        """The operator that launched it alone: that around a graph launch says nothing of it."""
        is_replayed = self.work.launch and self.work.launch.role == "graph_launch"
        return None if is_replayed else self.work.op

    @property
    def dims(self) -> list[Any] | None:
        return self.op.args.get("Input Dims") if self.op else None

    @property
    def listed(self) -> Row:
        """The device as the file lists it."""
        devices = self.trace.metadata.get("deviceProperties", [])
        return next((d for d in devices if d["id"] == self.work.device), {})

    @property
    def peak(self) -> tuple[int | None, dict[str, int]]:
        return PEAKS.get(self.listed.get("name"), (None, {}))


def all_work(traces: Iterable[Trace]) -> list[Kernel]:
    return [Kernel(t, w) for t in traces for w in t.explained.work]


def all_kernels(traces: Iterable[Trace]) -> list[Kernel]:
    return [k for k in all_work(traces) if k.work.kind == "kernel"]


def time(kernels: Iterable[Kernel]) -> int:
    return sum(k.dur for k in kernels)


def is_whole(traces: Iterable[Trace]) -> bool:
    """Whether all that the GPU did is there."""
    return not any(t.invisible for t in traces)


def per_run(traces: list[Trace]) -> Iterator[tuple[str, list[Trace], list[Kernel]]]:
    """Runs with kernels."""
    for run, some in sorted(by_run(traces).items()):
        if kernels := all_kernels(some):
            yield run, some, kernels


# Small ones -------------------------------------------------------------------------------------------------

LAUNCHING = {"cpu_ops", "python", "cuda_api", "compiled_runtime", "launch_latency"}


def small_kernels(traces: list[Trace], below_ns: int | None = 10000, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some, kernels in per_run(traces):
        small = [k for k in kernels if below_ns is None or k.dur < below_ns]
        waits = waited(some)
        named = [
            {"run": run, "name": name, "category": category, **small_row(some, kernels, same, waits)}
            for (name, category), same in keyed(small, lambda k: (k.work.name, k.category)).items()
        ]
        rows.append({"run": run, "name": "all", "category": None, **small_row(some, kernels, small, waits)})
        rows += in_order(named, "-kernels", "-kernel_ns", "name", "category")[:top]
    return rows


def waited(traces: list[Trace]) -> dict[int, int]:
    """Idle time before an activity that launching explains."""
    found: dict[int, int] = defaultdict(int)
    for gap in (g for t in traces for g in t.explained.device_gaps if g.after):
        found[id(gap.after)] += sum(part.ns for part in gap.parts if part.cause in LAUNCHING)
    return found


def small_row(traces: list[Trace], kernels: list[Kernel], same: list[Kernel], waits: dict[int, int]) -> Row:
    stepped = {(id(t), a.place) for t in traces for s in t.good_steps for a in s.work}
    late = sum(waits[id(k.work)] for k in same)
    whole = is_whole(traces)
    return {
        "kernels": len(same),
        "pct_of_kernels": percent(len(same), len(kernels)) if whole else None,
        "kernel_ns": time(same),
        "pct_of_kernel": percent(time(same), time(kernels)) if whole else None,
        "median_ns": median(k.dur for k in same),
        "late_ns": late if whole else None,
        "launch_bound": late > time(same) if whole else None,
        "per_step": ratio(
            sum((id(k.trace), k.work.place) in stepped for k in same), sum(len(t.good_steps) for t in traces)
        ),
        "in_graph": sum(bool(k.work.launch) and k.work.launch.role == "graph_launch" for k in same),
    }


# Varying ones -----------------------------------------------------------------------------------------------


def mean(values: list[int]) -> Fraction:
    return Fraction(sum(values), len(values))


def squares(values: list[int]) -> Fraction:
    """Sum of the squared distances from their mean."""
    return sum(((v - mean(values)) ** 2 for v in values), Fraction(0))


def root(value: Fraction | None) -> float | None:
    return None if value is None else math.sqrt(value)


def kernel_variance(
    traces: list[Trace], min_kernels: int | None = 10, min_cv_pct: float | None = 10, top: int | None = 20
) -> list[Row]:
    rows = []
    for run, _, kernels in per_run(traces):
        found = []
        for (name, category), same in keyed(kernels, lambda k: (k.work.name, k.category)).items():
            durs = sorted(k.dur for k in same)
            if len(same) < max(min_kernels or 2, 2) or durs[0] == durs[-1]:
                continue
            deviation = root(squares(durs) / (len(durs) - 1))
            if 100 * deviation / mean(durs) >= (min_cv_pct or 0):
                found.append({"run": run, "name": name, "category": category, **variance_row(same, durs, deviation)})
        rows += in_order(found, "-above_p10_ns", "-total_ns", "name", "category")[:top]
    return rows


def variance_row(same: list[Kernel], durs: list[int], deviation: float) -> Row:
    low = quantile(durs, Fraction(1, 10))
    sizes = keyed(same, lambda k: (repr(size(k)), shape(k)))
    free = len(same) - len(sizes)
    within = sum(squares([k.dur for k in some]) for some in sizes.values())
    groups = modes(durs)
    return {
        "kernels": len(durs),
        "total_ns": sum(durs),
        "median_ns": median(durs),
        "cv_pct": 100 * deviation / mean(durs),
        "same_cv_pct": 100 * root(within / free) / mean(durs) if free else None,
        **{key: groups[key] for key in ("modes", "fast_kernels", "fast_ns", "slow_kernels", "slow_ns")},
        "above_p10_ns": sum((d - low for d in durs if d > low), Fraction(0)),
        "grids": len({repr(size(k)) for k in same}) if all(size(k) for k in same) else None,
        "shapes": len({shape(k) for k in same}) if all(k.dims is not None for k in same) else None,
        "mean_ns": mean(durs),
        "std_ns": deviation,
        "min_ns": durs[0],
        "p10_ns": low,
        "p90_ns": quantile(durs, Fraction(9, 10)),
        "max_ns": durs[-1],
        "separation": groups["separation"],
    }


def size(k: Kernel) -> tuple[Any, Any] | None:
    return (k.args["grid"], k.args["block"]) if "grid" in k.args else None


def shape(k: Kernel) -> tuple[str | None, str | None]:
    """Operator and shapes of its inputs."""
    return (k.op.name, repr(k.dims)) if k.op else (None, None)


def modes(durs: list[int]) -> Row:
    """Two groups, where the next duration is relatively farthest away; a tenth of all on each side."""
    nothing = dict.fromkeys(["fast_kernels", "fast_ns", "slow_kernels", "slow_ns"])
    n = len(durs)
    places = [i for i in range(1, n) if durs[i] > durs[i - 1] > 0 and 10 * i >= n and 10 * (n - i) >= n]
    if n < 20 or not places:
        return {"modes": 1 if n >= 20 else None, "separation": None, **nothing}
    at = max(places, key=lambda i: (Fraction(durs[i], durs[i - 1]), -i))
    fast, slow = durs[:at], durs[at:]
    variance = sum(squares(side) / (len(side) - 1) for side in (fast, slow))
    apart = math.sqrt(2) * float(mean(slow) - mean(fast)) / math.sqrt(variance) if variance else None
    if (apart is None or apart >= 5) and median(slow) >= Fraction(11, 10) * median(fast):
        return {
            "modes": 2,
            "separation": apart,
            "fast_kernels": len(fast),
            "fast_ns": median(fast),
            "slow_kernels": len(slow),
            "slow_ns": median(slow),
        }
    return {"modes": 1, "separation": apart, **nothing}


# Matrix products --------------------------------------------------------------------------------------------

FORMATS = {  # as recorded: name, bytes of an element
    "double": ("float64", 8),
    "float": ("float32", 4),
    "c10::Half": ("float16", 2),
    "c10::BFloat16": ("bfloat16", 2),
    "c10::Float8_e4m3fn": ("float8", 1),
    "signed char": ("int8", 1),
}
SECOND_AND_THIRD = {"aten::addmm", "aten::_addmm_activation", "aten::baddbmm", "aten::addbmm", "aten::addmv"}
FIRST_AND_SECOND = {f"aten::{op}" for op in ("mm", "bmm", "mv", "dot", "matmul", "linear", "_int_mm", "_scaled_mm")}
NOTHING = dict.fromkeys(["m", "n", "k", "batch", "dtype", "flop", "peak", "peak_flop", "math", "memory"])


KEYS = ("op", "m", "n", "k", "batch", "dtype", "peak", "bound")


def gemm_shapes(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some, kernels in per_run(traces):
        gemms = [k for k in kernels if k.category == "gemm"]
        share = percent_of(gemms, some)
        calls = [(same, product(same)) for same in calls_of(gemms)]
        groups = keyed(calls, lambda call: tuple(call[1][key] for key in KEYS))
        found = [gemm_shape(dict(zip(KEYS, key, strict=True)), same, share) for key, same in groups.items()]
        rows += [{"run": run, **row} for row in in_order(found, "-kernel_ns", *KEYS)[:top]]
    return rows


def percent_of(kernels: list[Kernel], traces: list[Trace]) -> Callable[[list[Kernel]], Fraction | None]:
    """How to tell a share of the time of all kernels given."""
    return lambda part: percent(time(part), time(kernels)) if is_whole(traces) else None


def calls_of(kernels: list[Kernel]) -> list[list[Kernel]]:
    """Kernels of one operator and device; those without one each alone."""
    return list(keyed(kernels, lambda k: (id(k.op or k.work), k.work.device)).values())


def product(same: list[Kernel]) -> Row:
    """What the operator of a call multiplies, and how long that takes at best."""
    op = same[0].op
    row = {**NOTHING, "op": op.name if op else None, "bound": None}
    found = extents(op.name, same[0].dims) if op and same[0].dims else None
    if not found:
        return row
    batch, m, n, k = found
    recorded = op.args["Input type"][op.name in SECOND_AND_THIRD]
    dtype, width = FORMATS.get(recorded, (recorded, None))
    row |= {"m": m, "n": n, "k": k, "batch": batch, "dtype": dtype}
    if width is None:
        return row
    uses_tensor_cores = any(re.search("tf32|tensorop|nvjet|1688", k.work.name) for k in same)
    row["peak"] = "tf32" if dtype == "float32" and uses_tensor_cores else dtype
    row["flop"] = 2 * m * n * k * batch
    memory, flops = same[0].peak
    row["peak_flop"] = flops.get(row["peak"])
    row["math"] = ratio(row["flop"] * 10**9, row["peak_flop"])
    row["memory"] = ratio((m * k + k * n + m * n) * batch * width * 10**9, memory)
    if row["math"] is not None and row["memory"] is not None:
        row["bound"] = "math" if row["math"] >= row["memory"] else "memory"
    return row


def extents(op: str, dims: list[Any]) -> tuple[int, int, int, int] | None:
    """Batch, m, n, k."""
    if op in FIRST_AND_SECOND:
        a, b = dims[:2]
    elif op in SECOND_AND_THIRD:
        a, b = dims[1:3]
    else:
        return None
    if op == "aten::linear":
        return (1, math.prod(a[:-1]), *b) if len(b) == 2 and a[-1] == b[1] else None
    match a, b:
        case [batch, m, k], [same, also, n] if batch == same and k == also:
            return batch, m, n, k
        case [m, k], [also, n] if k == also:
            return 1, m, n, k
        case [m, k], [also] if k == also:
            return 1, m, 1, k
        case [k], [also] if k == also:
            return 1, 1, 1, k
    return None


def gemm_shape(key: Row, calls: list[tuple[list[Kernel], Row]], share: Any) -> Row:
    kernels = [k for same, _ in calls for k in same]
    ns, made = time(kernels), [found for _, found in calls]
    flop = sum(found["flop"] for found in made) if made[0]["flop"] is not None else None
    is_known = all(found["peak_flop"] is not None for found in made)
    possible = sum(time(same) * found["peak_flop"] for same, found in calls) if is_known else None
    least = sum(max(found["math"], found["memory"]) for found in made) if key["bound"] else None
    head = {name: key[name] for name in ("op", "m", "n", "k", "batch", "dtype")}
    return {
        **head,
        "calls": len(calls) if key["op"] else None,
        "kernel_ns": ns,
        "pct_of_gemm": share(kernels),
        "tflop_per_s": ratio(flop, ns * 1000),
        "pct_of_peak": percent(None if flop is None else flop * 10**9, possible),
        "bound": key["bound"],
        "pct_of_roof": percent(least, ns),
        "ns_per_call": ratio(ns, len(calls)) if key["op"] else None,
        "kernels": len(kernels),
        "peak": key["peak"],
    }


# Bandwidth --------------------------------------------------------------------------------------------------
# Bytes of the element types in the traces, and their order where two meet: the later is the wider.

BYTES = {"bool": 1, "int": 4, "long int": 8, "c10::Half": 2, "c10::BFloat16": 2, "float": 4, "double": 8}
WIDER = list(BYTES)
NOT_TENSORS = {"", "Scalar", "ScalarList"}


@dataclass
class Tensor:
    """An input: its extents, strides if recorded, and type."""

    dims: list[int]
    strides: list[int] | None
    type: str

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        return self.elements * BYTES[self.type]

    @property
    def bytes_read(self) -> int:
        """An expanded dimension has stride 0 and is in memory once."""
        strides = self.strides or [1] * len(self.dims)
        return math.prod(n for n, step in zip(self.dims, strides, strict=True) if step) * BYTES[self.type]


Tensors = list[Tensor | None]


def read_only(*places: int) -> Callable[[Tensors], int]:
    return lambda inputs: sum(t.bytes_read for t in chosen(inputs, places))


def like(place: int, *places: int, also: int = 0) -> Callable[[Tensors], int]:
    """Reads some inputs and writes what is like one of the inputs."""
    return lambda inputs: read_only(*places)(inputs) + inputs[place].bytes + also * inputs[place].elements


def pointwise(arity: int, type_of_result: str | None = None) -> Callable[[Tensors], int]:
    """Reads the first inputs and writes a result of their common shape and type."""

    def moved(inputs: Tensors) -> int:
        read = chosen(inputs, range(arity))
        columns = zip_longest(*(reversed(t.dims) for t in read), fillvalue=1)
        elements = math.prod(max(column) for column in columns)
        types = {t.type for t in read if t.dims} or {t.type for t in read}
        result = type_of_result or max(types, key=WIDER.index)
        return sum(t.bytes_read for t in read) + elements * BYTES[result]

    return moved


def chosen(inputs: Tensors, places: Iterable[int]) -> list[Tensor]:
    return [t for n in places if n < len(inputs) and (t := inputs[n]) is not None]


MOVES: dict[str, Callable[[Tensors], int]] = {
    **dict.fromkeys(["sqrt", "gelu", "relu", "tanh", "sigmoid", "neg", "_softmax", "_log_softmax"], pointwise(1)),
    **dict.fromkeys(["add", "sub", "mul", "div", "clamp_min", "gelu_backward", "threshold_backward"], pointwise(2)),
    **dict.fromkeys(["native_dropout_backward", "_softmax_backward_data", "_log_softmax_backward_data"], pointwise(2)),
    **dict.fromkeys(["addcmul", "addcdiv", "lerp", "where"], pointwise(3)),
    **dict.fromkeys(["eq", "ne", "lt", "gt"], pointwise(2, "bool")),
    **dict.fromkeys(["sum", "mean", "max", "norm"], read_only(0)),
    **dict.fromkeys(["add_", "mul_", "div_", "masked_fill_"], like(0, 0, 1)),
    **dict.fromkeys(["fill_", "zero_", "normal_", "random_"], like(0)),
    **dict.fromkeys(["addcmul_", "addcdiv_", "lerp_"], like(0, 0, 1, 2)),
    **dict.fromkeys(["clamp_min_", "relu_", "sqrt_", "neg_"], like(0, 0)),
    "copy_": like(0, 1),
    "native_dropout": like(0, 0, also=1),
    "native_layer_norm": like(0, 0, 2, 3),
    "native_layer_norm_backward": like(1, 0, 1, 3, 4, 5),
}


def bandwidth(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        work = all_work(some)
        light = [k for k in work if k.work.kind == "kernel" and k.category not in HEAVY | {"comm"}]
        moves = [kernel_move(same) for same in calls_of(light)]
        moves += [copy_move(k) for k in work if k.work.kind in ("memcpy", "memset")]
        groups = keyed(moves, lambda m: (m["op"], m["category"], m["basis"]))
        found = in_order([bandwidth_row(same) for same in groups.values()], "-gpu_ns", "op", "category", "basis")
        rows += [{"run": run, **row} for row in found[:top]]
    return rows


def kernel_move(same: list[Kernel]) -> Row:
    """A call of an operator, or a kernel without one."""
    op, categories = same[0].op, {k.category for k in same}
    moved, basis = needed(op) if op else (None, None)
    return {
        "op": op.name if op else None,
        "category": categories.pop() if len(categories) == 1 else "mixed",
        "basis": basis,
        "calls": 1 if op else None,
        "kernels": len(same),
        "gpu_ns": time(same),
        "bytes": moved,
        "peak": same[0].peak[0],
    }


def copy_move(k: Kernel) -> Row:
    recorded, is_inside = k.args.get("bytes"), "DtoD" in k.work.name or k.work.kind == "memset"
    return {
        "op": k.work.name,
        "category": k.work.kind,
        "basis": None if recorded is None else "recorded",
        "calls": 1,
        "kernels": 1,
        "gpu_ns": k.dur,
        "bytes": None if recorded is None else recorded * (2 if "DtoD" in k.work.name else 1),
        "peak": k.peak[0] if is_inside else None,
    }


def needed(op: Any) -> tuple[int | None, str | None]:
    """Bytes that a call moves at least, and how that is known."""
    if "Input Dims" not in op.args:
        return None, None
    is_triton = "kernel_file" in op.args
    rule = MOVES.get(op.name.removeprefix("aten::"))
    if not rule and not is_triton:
        return None, None
    inputs = tensors(op)
    if inputs is None:
        return None, None
    return (sum(t.bytes_read for t in inputs if t), "arguments") if is_triton else (rule(inputs), "shapes")


def tensors(op: Any) -> Tensors | None:
    """The inputs, None for what is no tensor; None for all where a type is not known."""
    dims, types = op.args["Input Dims"], op.args["Input type"]
    strides = op.args.get("Input Strides") or [None] * len(dims)
    if set(types) - set(BYTES) - NOT_TENSORS:
        return None
    return [
        None if name in NOT_TENSORS else Tensor(n, step, name)
        for n, step, name in zip(dims, strides, types, strict=True)
    ]


def bandwidth_row(moves: list[Row]) -> Row:
    first = moves[0]
    ns, calls = sum(m["gpu_ns"] for m in moves), sum(m["calls"] or 0 for m in moves)
    moved = sum(m["bytes"] for m in moves) if first["basis"] else None
    is_known = all(m["peak"] for m in moves) and moved is not None
    possible = sum(Fraction(m["gpu_ns"] * m["peak"], 10**9) for m in moves) if is_known else None
    least = sum(Fraction(m["bytes"] * 10**9, m["peak"]) for m in moves) if is_known else None
    return {
        "op": first["op"],
        "category": first["category"],
        "gpu_ns": ns,
        "bytes": moved,
        "gb_per_s": ratio(moved, ns),
        "pct_of_peak": percent(moved, possible),
        "lost_ns": max(ns - least, Fraction(0)) if is_known else None,
        "calls": calls if first["calls"] else None,
        "bytes_per_call": ratio(moved, calls),
        "kernels": sum(m["kernels"] for m in moves),
        "basis": first["basis"],
    }


# Occupancy --------------------------------------------------------------------------------------------------
# What an SM holds by compute capability: warps, blocks, bytes of shared memory; a block takes 1 KiB more.

SMS = {(8, 0): (64, 32, 164 * 1024), (9, 0): (64, 32, 228 * 1024)}


@dataclass
class Fill:
    """How a kernel fills the GPU."""

    occupancy: Number | None = None
    limit: str | None = None
    per_sm: Fraction | None = None
    waves: Fraction | None = None
    threads: int | None = None


def fill(k: Kernel) -> Fill:
    found, recorded = Fill(), k.args.get("est. achieved occupancy %")
    shared = k.args.get("shared memory") or 0
    if recorded is not None and (recorded > 0 or shared <= 48 * 1024):
        found.occupancy = Fraction(recorded)
    if "grid" not in k.args:
        return found
    found.threads = math.prod(k.args["block"])
    if sms := k.listed.get("numSms"):
        found.per_sm = Fraction(math.prod(k.args["grid"]), sms)
    sm = SMS.get((k.listed.get("computeMajor"), k.listed.get("computeMinor")))
    if not sm or not k.args.get("registers per thread"):
        return found
    warps = -(-found.threads // 32)
    held = {
        "block size": min(sm[0] // warps, sm[1]),
        "registers": 65536 // round_up(k.args["registers per thread"] * 32, 256) // 4 * 4 // warps,
        "shared memory": sm[2] // round_up(shared + 1024, 128),
    }
    blocks = min(held.values())
    found.waves = found.per_sm / blocks
    possible = 100 * min(Fraction(blocks), found.per_sm) * warps / sm[0]
    found.occupancy = possible if found.occupancy is None else found.occupancy
    if possible < 100:
        found.limit = "grid" if found.per_sm < blocks else min(held, key=lambda name: held[name])
    return found


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def occupancy(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some, kernels in per_run(traces):
        share = percent_of(kernels, some)
        groups = keyed(kernels, lambda k: (k.work.name, k.category))
        found = [occupancy_row(name, category, same, share) for (name, category), same in groups.items()]
        rows += [{"run": run, **row} for row in in_order(found, "-kernel_ns", "name", "category")[:top]]
    return rows


def occupancy_row(name: str, category: str, same: list[Kernel], share: Any) -> Row:
    fills = [(k.dur, fill(k)) for k in same]
    limits: dict[str | None, int] = defaultdict(int)
    for ns, found in fills:
        limits[found.limit] += ns
    most = max(limits.values())
    full = weighted((ns, found.occupancy) for ns, found in fills)
    empty = weighted((ns, None if f.per_sm is None else 100 * max(1 - f.per_sm, 0)) for ns, f in fills)
    low = None
    if category != "comm" and empty is not None and empty > 25:
        low = "SMs"
    elif category not in HEAVY | {"comm"} and full is not None and full < 50:
        low = "occupancy"
    return {
        "name": name,
        "category": category,
        "kernels": len(same),
        "kernel_ns": time(same),
        "pct_of_kernel": share(same),
        "occupancy_pct": full,
        "limited_by": min((limit for limit, ns in limits.items() if ns == most), key=lambda x: (x is None, x or "")),
        "low": low,
        "empty_sms_pct": empty,
        "waves": weighted((ns, found.waves) for ns, found in fills),
        "blocks_per_sm": weighted((ns, found.per_sm) for ns, found in fills),
        "threads": most_of(found.threads for _, found in fills),
        "registers": most_of(k.args.get("registers per thread") for k in same),
        "shared_bytes": most_of(k.args.get("shared memory") for k in same),
    }


def weighted(values: Iterable[tuple[int, Number | None]]) -> Fraction | None:
    """Mean weighted by time, of what is known."""
    known = [(ns, value) for ns, value in values if value is not None]
    return ratio(sum(ns * value for ns, value in known), sum(ns for ns, _ in known)) if known else None


def most_of(values: Iterable[int | None]) -> int | None:
    return max((v for v in values if v is not None), default=None)


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    small_kernels: [
        {}, {"run": "flagged", "below_ns": 5000}, {"run": "graph", "below_ns": None, "top": None},
        {"below_ns": 1000, "top": 2},
    ],
    kernel_variance: [
        {}, {"run": "shapes", "min_kernels": None, "min_cv_pct": None, "top": None}, {"run": "eager", "top": 3},
    ],
    gemm_shapes: [{}, {"run": "eager", "top": 5}, {"run": "shapes", "top": None}],
    bandwidth: [{"top": 12}, {"run": "shapes", "top": None}],
    occupancy: [{"top": 8}, {"run": "shapes", "top": None}],
}  # fmt: skip
