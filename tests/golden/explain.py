"""Why the GPU was idle and what each row belongs to, by plain Python and not by traceq: the rules taken literally.

`explain(path)` reads one trace and fills, in this order: nesting of operators, ranges and Python frames; the operator
around each call and activity; phase, forward operator and module; category of kernels; causes of idle time. Times are
integer ns from the first usable time. Intervals are half open; a row of length zero holds nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import definitions

Lane = tuple[Any, Any]
Span = tuple[int, int]

# Rows -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Row:
    """A row with a length; `end` may be clipped to the parent's, `dur` stays as recorded."""

    place: int
    name: str
    pid: Any
    tid: Any
    start: int
    dur: int
    args: dict[str, Any]
    end: int = 0

    def __post_init__(self) -> None:
        self.end = self.start + self.dur

    @property
    def lane(self) -> Lane:
        return self.pid, self.tid

    @property
    def order(self) -> tuple[Any, ...]:
        """The order of ids; where all recorded times tie, that of the file."""
        return self.start, -self.dur, str(self.pid), str(self.tid), self.place

    def number(self, *keys: str) -> int | None:
        """An argument that is a whole number, by the first key that has one."""
        for key in keys:
            try:
                return int(self.args[key])
            except (KeyError, TypeError, ValueError):
                continue
        return None

    def link(self, *keys: str) -> int | None:
        """An id to join by: 0 joins nothing."""
        return self.number(*keys) or None

    @property
    def external(self) -> int | None:
        return self.link("External id", "external id")


@dataclass(eq=False)
class Nested(Row):
    """An operator, range or Python frame; the last four are for operators alone."""

    kind: str = ""
    parent: Nested | None = None
    depth: int = 0
    self_ns: int = 0
    forward: Nested | None = None
    phase: str | None = None
    module: str | None = None

    def chain(self) -> Iterator[Nested]:
        """The row and all that hold it, innermost first."""
        row: Nested | None = self
        while row:
            yield row
            row = row.parent

    @property
    def sequence(self) -> int | None:
        return self.number("Sequence number")

    @property
    def is_root(self) -> bool:
        """Whether autograd runs it for a forward operator."""
        return (self.number("Fwd thread id") or 0) > 0 and self.sequence is not None


@dataclass(eq=False)
class Call(Row):
    """A call of the CUDA API, and the activities it started."""

    role: str = "other"
    op: Nested | None = None
    range: Nested | None = None
    frame: Nested | None = None
    work: list[Work] = field(default_factory=list)


@dataclass(eq=False)
class Work(Row):
    """GPU activity; its pid is that of the process that launched it, None if unknown."""

    kind: str = "kernel"
    device: int = 0
    stream: int | None = None
    launch: Call | None = None
    op: Nested | None = None
    op_by: str | None = None
    phase: str | None = None
    category: str | None = None
    category_by_name: str | None = None
    category_by_op: str | None = None
    category_source: str | None = None

    @property
    def correlation(self) -> int | None:
        return self.link("correlation")

    @property
    def rank(self) -> tuple[Any, ...]:
        """First by start, end and id."""
        recorded = self.number("correlation")
        return self.start, self.end, recorded is None, recorded or 0, self.place


@dataclass(eq=False)
class Event:
    """An event of the allocator: a moment on a lane."""

    at: int
    lane: Lane
    args: dict[str, Any]
    name: str = ""
    op: Nested | None = None


@dataclass
class Part:
    """Why a gap, or a part of it, was idle; `call` is what was waited for."""

    part: str
    cause: str
    ns: int
    evidence: str | None = None
    call: Call | None = None

    @property
    def op(self) -> Nested | None:
        return self.call.op if self.call else None


@dataclass
class Gap:
    """Idle time of a device, or of a stream; `after` is the activity that ends it."""

    device: int
    stream: int | None
    start: int
    end: int
    after: Work | None
    state: str = "unknown"
    host_ns: int = 0
    parts: list[Part] = field(default_factory=list)

    @property
    def dur(self) -> int:
        return self.end - self.start


@dataclass
class Trace:
    """All rows of a file, and what was found."""

    ops: list[Nested] = field(default_factory=list)
    ranges: list[Nested] = field(default_factory=list)
    marks: list[Nested] = field(default_factory=list)
    frames: list[Nested] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    overheads: list[Row] = field(default_factory=list)
    syncs: list[Row] = field(default_factory=list)
    memory: list[Event] = field(default_factory=list)
    threads: dict[Lane, str] = field(default_factory=dict)
    clipped: int = 0
    disagreements: int = 0
    is_external_the_correlation: bool = False
    device_gaps: list[Gap] = field(default_factory=list)
    stream_gaps: list[Gap] = field(default_factory=list)

    @property
    def is_blind(self) -> bool:
        """Whether a graph replay was not recorded: idle time cannot be told."""
        return any(c.role == "graph_launch" and c.link("correlation") and not c.work for c in self.calls)

    @property
    def kernels(self) -> list[Work]:
        return [w for w in self.work if w.kind == "kernel"]


def groups(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Lists of the rows that have the same key."""
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(found)


# Reading ----------------------------------------------------------------------------------------------------


def load(path: Path) -> Trace:
    """The rows of a file, in the order of ids, not linked yet."""
    found, _ = definitions.read(path)
    raw = found["traceEvents"]
    times = [t for r in raw if r["ph"] == "X" and (t := definitions.ns(r["ts"])) is not None and t > 0]
    is_epoch = bool(times) and min(times) > definitions.DAY_NS
    rows = [(n, definitions.event(r, is_epoch), r.get("tid")) for n, r in enumerate(raw)]
    stored = [(n, e, tid) for n, e, tid in rows if e.is_usable and e.stored_in]
    origin = min((e.start for _, e, _ in stored if e.ph != "M"), default=0)
    trace = Trace()
    for n, e, tid in stored:
        keep(trace, n, e, tid, origin)
    for some in (trace.ops, trace.ranges, trace.marks, trace.frames, trace.calls, trace.work):
        some.sort(key=lambda row: row.order)
    return trace


def keep(trace: Trace, n: int, e: definitions.Event, tid: Any, origin: int) -> None:
    """Put an event where it belongs."""
    if e.stored_in == "threads":
        trace.threads[e.pid, tid] = e.args.get("name") or ""
    elif e.stored_in == "memory_events":
        trace.memory.append(Event(e.start - origin, (e.pid, tid), e.args, e.name))
    elif e.stored_in == "ranges" and e.ph == "i":
        trace.marks.append(Nested(n, e.name, e.pid, tid, e.start - origin, 0, e.args, kind="mark"))
    elif e.ph == "X":
        keep_row(trace, e, (n, e.name, e.pid, tid, e.start - origin, e.dur, e.args))


def keep_row(trace: Trace, e: definitions.Event, values: tuple[Any, ...]) -> None:
    """Put an event with a length where it belongs; the range that is the whole recording belongs nowhere."""
    if e.stored_in == "ops":
        trace.ops.append(Nested(*values, kind="op"))
    elif e.stored_in == "ranges" and e.category.lower() != "trace":
        kind = "step" if definitions.STEP.fullmatch(e.name) else "record_function"
        trace.ranges.append(Nested(*values, kind=kind))
    elif e.stored_in == "python_calls":
        trace.frames.append(Nested(*values, kind="frame"))
    elif e.stored_in == "api_calls":
        trace.calls.append(Call(*values, role=role(e.name)))
    elif e.stored_in == "gpu_activities":
        kind = "kernel" if "kernel" in e.category.lower() else e.category.lower().removeprefix("gpu_")
        trace.work.append(Work(*values, kind=kind, device=e.args["device"], stream=e.args.get("stream")))
    elif e.stored_in == "overheads":
        trace.overheads.append(Row(*values))
    elif e.stored_in == "syncs":
        trace.syncs.append(Row(*values))


API = "^(cuda|cu|hip)"
ROLES = [
    ("graph_launch", API + "GraphLaunch"),
    ("launch", API + r"(Ext)?(Module|Func)?Launch((Cooperative)?Kernel\w*|Grid\w*)?$"),
    ("wait", API + "StreamWait"),
    ("sync", API + r"\w+Synchronize"),
    ("memcpy", API + "Memcpy"),
    ("memset", API + "Memset"),
    ("load", API + "(Module|Library)Load"),
    ("alloc", API + "(Malloc|Free|Host(Alloc|Register|Unregister)|Mem(Host)?(Alloc|Free|Create|Release|Map|Unmap))"),
]


@cache
def role(name: str) -> str:
    """What a call does, by its name."""
    return next((role for role, pattern in ROLES if re.search(pattern, name)), "other")


# Nesting ----------------------------------------------------------------------------------------------------


def nest(rows: list[Nested]) -> int:
    """Parents, depths and own times on each lane; the number of rows clipped to their parent's end."""
    return sum(nest_lane(some) for some in groups(rows, lambda r: r.lane).values())


def nest_lane(rows: list[Nested]) -> int:
    clipped, stack = 0, []
    for row in sorted(rows, key=lambda r: r.order):
        while stack and stack[-1].end <= row.start:
            stack.pop()
        row.parent, row.depth = (stack[-1] if stack else None), len(stack)
        if row.parent and row.end > row.parent.end:
            row.end, clipped = row.parent.end, clipped + 1
        row.self_ns += row.end - row.start
        if row.parent:
            row.parent.self_ns -= row.end - row.start
        stack.append(row)
    return clipped


class Opened:
    """Which row of a nested set is open at a moment on a lane."""

    def __init__(self, rows: list[Nested]) -> None:
        self.lanes = groups(sorted(rows, key=lambda r: r.order), lambda r: r.lane)
        self.starts = {lane: [r.start for r in some] for lane, some in self.lanes.items()}

    def at(self, lane: Lane, moment: int) -> Nested | None:
        """The innermost: of the last to start, or of those that hold it, the first still open."""
        last = bisect_right(self.starts.get(lane, []), moment)
        chain = self.lanes[lane][last - 1].chain() if last else ()
        return next((r for r in chain if r.end > moment), None)

    def all_at(self, lane: Lane, moment: int) -> list[Nested]:
        innermost = self.at(lane, moment)
        return list(innermost.chain()) if innermost else []


# Operators of calls and activities --------------------------------------------------------------------------


def link_calls(trace: Trace) -> None:
    """What is open around each call, mark and event of the allocator."""
    ops, ranges, frames = Opened(trace.ops), Opened(trace.ranges), Opened(trace.frames)
    for call in trace.calls:
        call.op, call.range = ops.at(call.lane, call.start), ranges.at(call.lane, call.start)
        call.frame = frames.at(call.lane, call.start)
    for mark in trace.marks:
        mark.parent = ranges.at(mark.lane, mark.start)
        mark.depth = mark.parent.depth + 1 if mark.parent else 0
    for event in trace.memory:
        event.op = ops.at(event.lane, event.at)


def link_launches(trace: Trace) -> None:
    """The launch of an activity is the only call with its correlation id; its process is that of the calls."""
    by_id = groups(trace.calls, lambda c: c.link("correlation"))
    pids = {c.pid for c in trace.calls}
    for work in trace.work:
        same = by_id.get(work.correlation, []) if work.correlation else []
        work.launch = same[0] if len(same) == 1 else None
        work.pid = next(iter(pids)) if len(pids) == 1 else work.launch.pid if work.launch else None
        if work.launch:
            work.launch.work.append(work)


def link_ops(trace: Trace) -> None:
    """The operator of an activity: that of its launch, else the only one with the External id."""
    both = [w for w in trace.work if w.correlation and w.external]
    trace.is_external_the_correlation = 2 * sum(w.correlation == w.external for w in both) > len(both)
    by_external = groups(trace.ops, lambda op: op.external)
    for work in trace.work:
        work.op, work.op_by = (work.launch.op, "nesting") if work.launch else (None, None)
        if work.op is None:
            external = work.external or (work.launch and work.launch.external)
            named = by_external.get(external, []) if external and not trace.is_external_the_correlation else []
            work.op, work.op_by = (named[0], "external") if len(named) == 1 else (None, None)
    trace.disagreements = sum(disagrees(w) for w in trace.work if not trace.is_external_the_correlation)


def disagrees(work: Work) -> bool:
    """Whether nesting and External id name different operators."""
    known = work.op_by == "nesting" and work.op.external and work.external
    return bool(known) and work.op.external != work.external


# Phase ------------------------------------------------------------------------------------------------------

OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#")
DATALOADER = re.compile(r"^enumerate\(DataLoader\)#")
ENGINE = "autograd::engine::"
BACKWARD = re.compile(rf"^{ENGINE}|Backward\d*$")


def set_phases(trace: Trace) -> None:
    """Phase of each operator and activity."""
    ops, ranges, autograd = Opened(trace.ops), Opened(trace.ranges), autograd_lanes(trace)

    def found(lane: Lane, moment: int, around: Iterable[Nested]) -> str | None:
        inside = [r.name for r in around]
        marked = inside + [r.name for r in ranges.all_at(lane, moment)]
        if any(OPTIMIZER.search(name) for name in marked):
            return "optimizer"
        if any(DATALOADER.search(name) for name in marked):
            return "data"
        return "backward" if lane in autograd or any(BACKWARD.search(name) for name in inside) else None

    for op in trace.ops:
        op.phase = found(op.lane, op.start, op.chain()) or "forward"
    for work in trace.work:
        if work.launch:
            where = work.launch.lane, work.launch.start
            work.phase = found(*where, ops.all_at(*where)) or ("forward" if work.op else "other")
        else:
            work.phase = work.op.phase if work.op else "other"


def autograd_lanes(trace: Trace) -> set[Lane]:
    """Threads that are named so, or whose outermost operators are mostly the engine's."""
    named = {lane for lane, name in trace.threads.items() if name.startswith("pt_autograd")}
    outermost = groups((op for op in trace.ops if op.depth == 0), lambda op: op.lane)
    busy = {lane for lane, some in outermost.items() if 2 * sum(op.name.startswith(ENGINE) for op in some) > len(some)}
    return named | busy


# Forward operator -------------------------------------------------------------------------------------------


def set_forward(trace: Trace) -> None:
    """The forward operator of each operator of the backward pass."""
    roots = [op for op in trace.ops if op.is_root]
    candidates = [op for op in trace.ops if op.sequence is not None and is_candidate(op)]
    lanes = forward_lanes(roots, candidates)
    by_sequence = groups(candidates, lambda op: (op.pid, op.sequence))
    for root in roots:
        lane = lanes.get((root.pid, root.number("Fwd thread id")))
        same = [
            op
            for op in by_sequence.get((root.pid, root.sequence), [])
            if op.start <= root.start and lane in (None, op.lane)
        ]
        root.forward = max(same, key=lambda op: (op.start, op.order), default=None)
    for op in trace.ops:
        root = next((r for r in op.chain() if r.is_root), None)
        op.forward = root.forward if root else None


def is_candidate(op: Nested) -> bool:
    """Neither of the backward pass nor inside what is."""
    return op.phase != "backward" and not any(r.is_root for r in op.chain())


def forward_lanes(roots: list[Nested], candidates: list[Nested]) -> dict[tuple[Any, int], Lane]:
    """The lane of each Fwd thread id, for the processes where they can be told by their order."""
    found = {}
    for pid, some in groups(roots, lambda op: op.pid).items():
        numbers = sorted({op.number("Fwd thread id") for op in some})
        firsts = groups((op for op in candidates if op.pid == pid), lambda op: op.lane)
        lanes = sorted(firsts, key=lambda lane: min(op.order for op in firsts[lane]))
        if len(numbers) == len(lanes):
            found |= {(pid, number): lane for number, lane in zip(numbers, lanes, strict=True)}
    return found


# Module -----------------------------------------------------------------------------------------------------

NOT_A_MODULE = re.compile(
    r"^(Optimizer\..*#|enumerate\(DataLoader\)#|## Call CompiledFxGraph|Torch-Compiled Region|.*\(dynamo_timed\)|nccl:"
    r"|TorchDynamo|Pregraph|AOTDispatcher|ProfilerStep|DistributedDataParallel|dynamo|inductor)"
)


def set_modules(trace: Trace) -> None:
    """The path of modules around each operator, or around its forward operator."""
    frames = python_modules(trace)
    if not frames and any(op.args.get("Module Hierarchy") for op in trace.ops):
        for op in trace.ops:
            op.module = op.args.get("Module Hierarchy") or None
        return
    frames = frames or range_modules(trace)
    nest(frames)
    opened = Opened(frames)
    for op in trace.ops:
        innermost = opened.at(op.lane, op.start)
        op.module = path(innermost) if innermost else None
    for op in trace.ops:
        op.module = op.module or (op.forward.module if op.forward else None)


def python_modules(trace: Trace) -> list[Nested]:
    head = "nn.Module: "
    return [copied(f, f.name.removeprefix(head)) for f in trace.frames if f.name.startswith(head)]


def range_modules(trace: Trace) -> list[Nested]:
    named = [r for r in trace.ranges if r.kind == "record_function" and not NOT_A_MODULE.search(r.name)]
    return [copied(r, r.name) for r in named]


def copied(row: Nested, name: str) -> Nested:
    """The row as recorded, to be nested among others."""
    return Nested(row.place, name, row.pid, row.tid, row.start, row.dur, row.args)


def path(frame: Nested) -> str:
    return "/".join(reversed([f.name.replace("/", "|") for f in frame.chain()]))


# Category ---------------------------------------------------------------------------------------------------
# Names in order, the first found counts; a decisive one is believed before the operator.

DECISIVE, WEAK = True, False
NAMES = [
    ("nccl", "comm", DECISIVE),
    ("sdpa|flash|fmha|compute_dot_do_o|convert_dq", "attention", DECISIVE),
    ("^triton_tem_.*(attention|sdpa)", "attention", DECISIVE),
    ("^triton_tem_.*(mm|bmm|addmm|baddbmm)", "gemm", DECISIVE),
    ("^triton_tem_.*conv", "conv", DECISIVE),
    ("^triton_(red|per)_", "fused_reduction", DECISIVE),
    ("^triton_for_", "fused_foreach", DECISIVE),
    ("^triton_(poi|tem|mm|spl)_", "fused_pointwise", DECISIVE),
    ("RadixSort|bitonicSort|MergeSort|sort_kernel|gatherTopK", "sort", DECISIVE),
    ("nchwToNhwc|nhwcToNchw|convertTensor|copy_kernel|CatArrayBatchedCopy|direct_copy|native::Copy<", "copy", DECISIVE),
    ("UniqueByKey", "indexing", DECISIVE),
    ("DeviceScan|DeviceReduce|::scan::", "reduction", DECISIVE),
    ("distribution_elementwise|fused_dropout|philox", "rng", WEAK),
    ("(index|gather|scatter)[a-z_]*_elementwise_kernel", "indexing", WEAK),
    ("at::native::reduce_kernel|multi_tensor_apply.*LpNorm", "reduction", DECISIVE),
    ("elementwise_kernel|multi_tensor_apply|triu_tril", "elementwise", DECISIVE),
    ("wgrad|dgrad|fprop|convolve|implicit_convolve|winograd|conv2d", "conv", WEAK),
    ("^nvjet_|[sdhc]gemm|gemmk1|gemmSN_|xmma_gemm|cutlass.*gemm|gemv|splitKreduce|cublasLt", "gemm", WEAK),
    (r"Cijk_|^ampere_\w*gemm|dot_kernel", "gemm", WEAK),
    ("layer_norm|GammaBetaBackward|batch_norm|bn_fw|bn_bw|RMSNorm|rmsnorm", "norm", WEAK),
    ("[sS]oft[mM]ax", "softmax", WEAK),
    ("nll_loss", "loss", WEAK),
    ("embedding|partials?_(per_)?segment|compute_grad_weight|sum_and_scatter|EmbeddingBag", "embedding", WEAK),
    ("gather_kernel|indexSelect|index_put|indexing_backward|scatter", "indexing", WEAK),
    ("pool", "pool", WEAK),
    ("lstm|gru_cell|rnn", "rnn", WEAK),
    ("fft", "fft", WEAK),
]

OPS = {
    "gemm": "mm|bmm|addmm|baddbmm|addmv|addbmm|matmul|linear|_scaled_mm|_grouped_mm|mv|dot|_int_mm|_addmm_activation",
    "conv": r"\w*convolution\w*|conv\dd|_slow_conv\w*|slow_conv\w*|cudnn_convolution\w*",
    "attention": r"\w*attention\w*",
    "norm": r"\w*(layer_norm|batch_norm|group_norm|instance_norm|rms_norm)\w*",
    "softmax": r"\w*softmax\w*",
    "embedding": r"\w*embedding\w*",
    "indexing": r"index|index_\w+|_index_put_impl_|_unsafe_index\w*|gather|scatter\w*|masked_s\w+|nonzero|take\w*",
    "pool": r"\w*pool\dd\w*",
    "rnn": r"\w*(lstm|gru|rnn)\w*",
    "rng": r"\w*dropout\w*|normal_?|uniform_?|rand\w*|bernoulli_?|multinomial|exponential_|random_",
    "reduction": r"sum|mean|amax|amin|max|min|prod|all|any|norm|linalg_vector_norm|var\w*|std\w*|argmax|argmin|cumsum"
    r"|cumprod|logsumexp|_foreach_norm|_local_scalar_dense|equal|_amp_\w+",
    "elementwise": r"add_?|sub_?|rsub|mul_?|div_?|neg|pow|exp|log|sqrt|rsqrt|abs|tanh|sigmoid|relu|silu|gelu|erf"
    r"|clamp\w*|(gelu|silu|tanh|sigmoid|threshold)_backward|addcmul_?|addcdiv_?|lerp_?|fill_|zero_|eq|ne|lt|le|gt|ge|tril"
    r"|triu|arange|where|masked_fill_?|bitwise_\w+|logical_\w+|sin|cos|maximum|minimum|_foreach_(?!copy_)\w+|_fused_(adamw?|sgd)_",
    "sort": "sort|topk|argsort|msort",
    "copy": r"copy_|_to_copy|clone|cat|_cat|stack|contiguous|constant_pad_nd|repeat|_foreach_copy_|roll|flip",
    "loss": r"\w*(nll_loss|cross_entropy|mse_loss|l1_loss|kl_div|huber_loss)\w*",
    "fft": r"_?fft_\w+|_cufft\w*",
}
KNOWN_OPS = {category: re.compile(pattern) for category, pattern in OPS.items()}


@cache
def by_name(name: str) -> tuple[str, bool]:
    """Category by name, and whether that name is decisive."""
    return next(((c, decisive) for pattern, c, decisive in NAMES if re.search(pattern, name)), ("other", WEAK))


@cache
def by_op(name: str) -> str | None:
    """Category that an operator gives to what it launches."""
    bare = re.sub(r"^\w+::", "", name)
    return next((c for c, pattern in KNOWN_OPS.items() if pattern.fullmatch(bare)), None)


def set_categories(trace: Trace) -> None:
    for work in trace.kernels:
        named, is_decisive = by_name(work.name)
        is_replay = work.launch and work.launch.role == "graph_launch"
        work.category_by_name = named
        work.category_by_op = by_op(work.op.name) if work.op and not is_replay else None
        if not is_decisive and work.category_by_op:
            work.category, work.category_source = work.category_by_op, "op"
        else:
            work.category, work.category_source = named, "none" if named == "other" else "name"


# Idle time --------------------------------------------------------------------------------------------------


def idle(work: list[Work], device: int, stream: int | None) -> list[Gap]:
    """Maximal intervals without work between the first start and the last end; none if there never was any."""
    if all(w.dur == 0 for w in work):
        return []
    found, busy_until = [], min(w.start for w in work)
    for w in sorted((w for w in work if w.dur > 0), key=lambda w: w.rank):
        if w.start > busy_until:
            found.append(Gap(device, stream, busy_until, w.start, w))
        busy_until = max(busy_until, w.end)
    if (last := max(w.end for w in work)) > busy_until:
        found.append(Gap(device, stream, busy_until, last, None))
    return found


def set_state(gap: Gap) -> None:
    """What the launch was doing when the gap began, and how much of the gap lies before it."""
    launch = gap.after.launch if gap.after else None
    if launch is None:
        return
    gap.host_ns = min(max(launch.start - gap.start, 0), gap.dur)
    gap.state = "host" if launch.start >= gap.start else "launching" if launch.end > gap.start else "queued"


class Overlaps:
    """Intervals as recorded, to ask which of them overlap another."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.spans = sorted((r.start, r.start + r.dur) for r in rows if r.dur > 0)
        self.starts = [start for start, _ in self.spans]
        self.latest = list(accumulate((end for _, end in self.spans), max))

    def within(self, start: int, end: int) -> list[Span]:
        """Those that overlap, clipped to it: back from the last that starts before its end."""
        found, n = [], bisect_left(self.starts, end) - 1
        while n >= 0 and self.latest[n] > start:
            if self.spans[n][1] > start:
                found.append((max(self.spans[n][0], start), min(self.spans[n][1], end)))
            n -= 1
        return found


WRAPPER = re.compile(
    r"^(autograd::engine::evaluate_function: )?CompiledFunction(Backward)?\d*$|^Torch-Compiled Region"
    r"|^TorchDynamo Cache Lookup|^AOTDispatcher Runtime Wrapper|^Pregraph bytecode|^## Call CompiledFxGraph"
    r"|^_?[cC]ompiled_?[aA]utograd|^CompiledAutograd"
)
OPTIMIZER_MARK = re.compile(r"^Optimizer\..*#")
ORDER = ["module_load", "profiler", "dataloader", "allocator", "cuda_api", "compile", "cpu_ops", "compiled_runtime"]
LONG_LAUNCH_NS = 100_000
SHORT_WAIT_NS = 10_000


def class_of_call(call: Call) -> str:
    return {"load": "module_load", "alloc": "allocator"}.get(call.role, "cuda_api")


def class_of_mark(row: Nested) -> str | None:
    """What an operator or range says that the host is doing; most ranges say nothing."""
    if DATALOADER.search(row.name):
        return "dataloader"
    if "(dynamo_timed)" in row.name:
        return "compile"
    if WRAPPER.search(row.name):
        return "compiled_runtime"
    return "cpu_ops" if row.kind == "op" and not OPTIMIZER_MARK.search(row.name) else None


def class_of_overhead(row: Row) -> str:
    return "module_load" if re.search("(?i)lazy|module", row.name) else "profiler"


def is_synchronising(call: Call) -> bool:
    return call.role == "sync" or (call.role == "memcpy" and "Async" not in call.name)


class Causes:
    """Finds why gaps are idle."""

    def __init__(self, trace: Trace) -> None:
        self.calls = groups(trace.calls, lambda c: c.lane)
        self.syncing = groups(filter(is_synchronising, trace.calls), lambda c: c.lane)
        self.waiting = groups((c for c in trace.calls if c.role == "wait"), lambda c: c.lane)
        self.wait_rows = [s for s in trace.syncs if "Wait" in s.name]
        self.launching = {c.lane for c in trace.calls if c.work}
        self.feeding = {
            target: sorted({c.start for w in some if (c := w.launch)})
            for target, some in groups(trace.work, lambda w: (w.device, w.stream)).items()
        }
        self.firsts = first_of_each(trace.work)
        self.ends = groups((w for w in trace.work if w.dur > 0), lambda w: (w.device, w.end))
        doing = [((c.lane, class_of_call(c)), c) for c in trace.calls]
        doing += [((r.lane, class_of_mark(r)), r) for r in trace.ops + trace.ranges]
        doing += [(("any", class_of_overhead(o)), o) for o in trace.overheads]
        self.doing = {
            key: Overlaps(row for _, row in some) for key, some in groups(doing, lambda found: found[0]).items()
        }
        self.looks: dict[Lane, list[tuple[str, Overlaps]]] = {}

    def parts(self, gap: Gap) -> list[Part]:
        """The parts of a gap with their causes."""
        if gap.after is None:
            return [Part("whole", "unexplained", gap.dur)]
        launch = gap.after.launch
        if gap.state != "host":
            return [Part("whole", self.whole(gap), gap.dur, call=launch)]
        host, after = self.host(gap, launch), Part("launch", self.launch(launch), gap.dur - gap.host_ns, call=launch)
        return [part for part in (host, after) if part.ns > 0]

    def whole(self, gap: Gap) -> str:
        """The cause of a gap whose launch began before it, or is not known."""
        work, launch = gap.after, gap.after.launch
        if self.firsts.get(replay_of(work), work).rank < work.rank:
            return "in_graph"
        if launch is None:
            return "carried_over"
        if gap.state == "launching":
            return "launch_latency"
        if gap.dur <= SHORT_WAIT_NS:
            return "queue_latency"
        return "dependency" if self.depends(gap, work, launch) else "unexplained"

    def depends(self, gap: Gap, work: Work, launch: Call) -> bool:
        """Whether K waited for an event, or for what another stream did until the gap began."""
        before = self.feeding[work.device, work.stream]
        n = bisect_left(before, launch.start)
        since = before[n - 1] if n else float("-inf")
        rows = [s for s in self.wait_rows if is_for(s, work)] + self.waiting.get(launch.lane, [])
        if any(since < row.start <= launch.start for row in rows):
            return True
        ended = self.ends.get((gap.device, gap.start), [])
        return gap.stream is None and bool(ended) and all(w.stream != work.stream for w in ended)

    def host(self, gap: Gap, launch: Call) -> Part:
        """The part before the launch: a synchronising call, else what the host did for most of it."""
        waits = [c for c in self.syncing.get(launch.lane, []) if c.start < launch.start and c.end > gap.start]
        if waits:
            last = min(waits, key=lambda c: (-c.end, c.start, c.order))
            return Part("host", "sync", gap.host_ns, last.name, last)
        spent = self.spent(launch.lane, gap.start, gap.start + gap.host_ns)
        cause = max([*ORDER, "python"], key=lambda cause: spent[cause])
        return Part("host", cause, gap.host_ns, call=launch)

    def spent(self, lane: Lane, start: int, end: int) -> Counter[str]:
        """ns of [start, end) by class: each instant goes to the first class with a row open."""
        look, changes = self.look(lane), defaultdict(list, {start: [], end: []})
        for n, (_, rows) in enumerate(look):
            for opens, closes in rows.within(start, end):
                changes[opens].append((n, 1))
                changes[closes].append((n, -1))
        opened, spent = [0] * len(look), Counter()
        for here, after in pairwise(sorted(changes)):
            for n, change in changes[here]:
                opened[n] += change
            cause = next((cause for (cause, _), count in zip(look, opened, strict=True) if count), "python")
            spent[cause] += after - here
        return spent

    def look(self, lane: Lane) -> list[tuple[str, Overlaps]]:
        """Where to look, first place first: overheads and the lane, then the process's other launching lanes."""
        if lane not in self.looks:
            others = [other for other in self.launching if other[0] == lane[0] and other != lane]
            first = [(cause, place) for cause in ORDER for place in ("any", lane)]
            second = [(cause, place) for cause in ORDER for place in others]
            found = [(cause, self.doing.get((place, cause))) for cause, place in first + second]
            self.looks[lane] = [(cause, rows) for cause, rows in found if rows]
        return self.looks[lane]

    def launch(self, launch: Call) -> str:
        """The cause of the part after the launch began: a long call is held up by what any thread does."""
        if launch.dur <= LONG_LAUNCH_NS:
            return "launch_latency"
        for cause in ("module_load", "allocator"):
            rows = [rows for place in ("any", *self.calls) if (rows := self.doing.get((place, cause)))]
            spans = [span for some in rows for span in some.within(launch.start, launch.end)]
            if 2 * covered(spans) > launch.dur:
                return cause
        return "launch_latency"


def replay_of(work: Work) -> Any:
    """What activities of one graph launch have in common."""
    if work.launch:
        return work.launch
    return (work.pid, work.correlation) if work.pid is not None and work.correlation else work


def first_of_each(work: list[Work]) -> dict[Any, Work]:
    """The first activity of each launch, and of each process and correlation id."""
    found: dict[Any, Work] = {}
    for w in sorted(work, key=lambda w: w.rank):
        for key in {w.launch, (w.pid, w.correlation)} - {None}:
            found.setdefault(key, w)
    return found


def is_for(wait: Row, work: Work) -> bool:
    """Whether a recorded wait holds up the stream of an activity."""
    return wait.args.get("stream") == work.stream and wait.args.get("device") in (None, work.device)


def covered(spans: Iterable[Span]) -> int:
    """Length of the union."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def set_gaps(trace: Trace) -> None:
    """Idle time of each device and of each stream with its causes; none if replays were not recorded."""
    if trace.is_blind:
        return
    for device, work in sorted(groups(trace.work, lambda w: w.device).items()):
        trace.device_gaps += idle(work, device, None)
    for (device, stream), work in sorted(groups(trace.work, lambda w: (w.device, w.stream)).items()):
        trace.stream_gaps += idle(work, device, stream)
    causes = Causes(trace)
    for gap in trace.device_gaps + trace.stream_gaps:
        set_state(gap)
        gap.parts = causes.parts(gap)


# All of it --------------------------------------------------------------------------------------------------


def explain(path: Path) -> Trace:
    """A trace with all that follows from its rows."""
    return derive(load(path))


def derive(trace: Trace) -> Trace:
    """Fill in all that follows from the rows."""
    trace.clipped = nest(trace.ops) + nest(trace.ranges) + nest(trace.frames)
    link_calls(trace)
    link_launches(trace)
    link_ops(trace)
    set_phases(trace)
    set_forward(trace)
    set_modules(trace)
    set_categories(trace)
    set_gaps(trace)
    return trace
