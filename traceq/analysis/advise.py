"""Will torch.compile help, and by how much at most? From one run, before compiling anything.

The bound (`both`) follows from what cannot vanish. The expected range is a model of the step with the few constants of
constants.py: the GPU's time with groups of fusible kernels merged, and the host's with fewer launches of the same cost;
the longer of the two decides. docs/verdict.md has the model, and how it fares on recorded pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb

from traceq.analysis import stats
from traceq.analysis.ask import Row, ask
from traceq.analysis.constants import (
    AUTOGRAD_NS,
    BEST,
    BUSY_LIMIT,
    COMPILED_CALL_NS,
    GRAPH_CALL_NS,
    HEAVY_LIMIT,
    HOST_FIRST,
    LARGE_FROM,
    LAUNCH_BOUND,
    LAUNCH_NS,
    LEAST_STEP_NS,
    LIKELY,
    MISALIGNED,
    MISALIGNED_PCT,
    NO_GAIN_RATIO,
    NONE_BELOW,
    QUEUE_NS,
    ROOF_PCT,
    TINY_STEP_NS,
    WIDE_RATIO,
    WORST,
    Case,
)
from traceq.analysis.side import Side, side_of, unprofiled
from traceq.errors import Status, TraceqError
from traceq.units import show_ns

MODES = ("default", "reduce-overhead")
SPLIT = ("data", "launch", "sync", "other_idle", "heavy", "fusible", "memops", "comm", "other_busy", "residual")
BLOCKING = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::to", "aten::copy_")


@dataclass(frozen=True)
class Expected:
    """Times as fast as now that a mode may make the step."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True)
class Blocker:
    """What caps the expectation: `where` is its line, module or operator."""

    kind: str
    what: str
    where: str | None
    per_step: float | None
    cost_ns: int | None


@dataclass(frozen=True)
class Ceilings:
    """`both` bounds the step in any mode, `graphs` the replay of eager kernels, `fusion_busy` GPU busy time alone."""

    both: float | None
    graphs: float | None
    fusion_busy: float
    conditional: tuple[str, ...]


@dataclass(frozen=True)
class Reached:
    """What a compiled run of the same program reached of the ceiling."""

    run: str
    speedup: float
    left: float | None


@dataclass(frozen=True)
class Advice:
    """Everything that `traceq advise` says; times are per step."""

    run: str
    step_ns: int
    is_profiled: bool
    is_compiled: bool
    split_ns: dict[str, int]
    fusible_floor_ns: int | None
    fusible_known_pct: float | None
    ceilings: Ceilings
    expected: dict[str, Expected]
    blockers: tuple[Blocker, ...]
    recommendation: str
    because: str
    gain_class: str
    confidence: str
    evidence: tuple[str, ...]
    not_visible: tuple[str, ...]
    reached: Reached | None

    @property
    def prospects(self) -> dict[str, Expected]:
        """What people are told to expect."""
        return _prospects(self.expected, self.is_compiled)


@dataclass(frozen=True)
class Program:
    """What the model of a step knows of the program: numbers per step, times in ns.

    `busy` is without the time that ranks wait for one another, `busy_alone` without all that communication fills alone.
    """

    step: float
    data: float
    model_python: float
    optimizer_python: float
    busy: float
    peer_wait: float
    busy_alone: float
    heavy_busy: float
    launched: float
    kept: float
    optimizer: float
    fusible: float
    fusible_ns: float
    groups: float
    longest_ns: float
    syncs: float
    has_rnn: bool
    has_backward: bool

    @property
    def is_host_bound(self) -> bool:
        return _is_host_bound(self.busy, self.step - self.data)

    @property
    def per_launch(self) -> float:
        """What a launch costs the host: from its time for the step where the host is the limit, else what is usual."""
        if not self.launched:
            return 0.0
        python = self.model_python + self.optimizer_python
        each = max(self.step - self.data - python, 0) / self.launched
        return each if self.is_host_bound else min(each, LAUNCH_NS)

    @property
    def optimizer_host(self) -> float:
        """The host's time for an optimizer that stays eager."""
        return self.optimizer * self.per_launch + self.optimizer_python

    @property
    def pieces(self) -> float:
        """Compiled pieces to enter: each wait for a value parts the program; a backward pass doubles them."""
        return (1 + self.syncs) * (2 if self.has_backward else 1)


def advise(con: duckdb.DuckDBPyConnection, run: str, reached: str | None = None) -> Advice:
    """What compiling `run` may bring; `reached` is a compiled run of the same program. Raises TraceqError (failed)."""
    facts = ask(con, "run_facts", run=run)[0]
    side = side_of(con, facts, False, None)
    rows = list(side.parts.items())
    ns = unprofiled(side, rows) if side.step else [*(n for _, n in rows), 0]
    split = _split([place for place, _ in rows], [n or 0 for n in ns])
    signs = ask(con, "compile_signs", run=run)
    program = _program(con, side, signs)
    sites = ask(con, "sync_sites", run=run, top=None)
    ceilings = _ceilings(con, side, program, signs)
    blockers = _blockers(con, program, signs, sites, side)
    is_compiled = bool(facts["inductor_kernels"] or facts["graph_launches"])
    if is_compiled:
        expected = _expected_of_compiled(program, bool(facts["graph_launches"]), ceilings)
    else:
        expected = {mode: _expected(program, mode, ceilings) for mode in MODES}
    best = max(e.likely for e in expected.values())
    gain = "none" if best < NONE_BELOW else "large" if best > LARGE_FROM else "some"
    choice, because = _recommendation(con, side, program, split, expected, is_compiled, sites)
    hidden = _not_visible(side, program)
    floor_ns, known_pct = _floor(con, run, split["fusible"])
    return Advice(
        run=run,
        step_ns=round(program.step),
        is_profiled=side.step is None,
        is_compiled=is_compiled,
        split_ns=split,
        fusible_floor_ns=floor_ns,
        fusible_known_pct=known_pct,
        ceilings=ceilings,
        expected=expected,
        blockers=blockers,
        recommendation=choice,
        because=because,
        gain_class=gain,
        confidence=_confidence(side, program, expected, blockers),
        evidence=_evidence(program, split, ceilings, _prospects(expected, is_compiled)),
        not_visible=hidden,
        reached=_reached(con, reached, program, side) if reached else None,
    )


# The program --------------------------------------------------------------------------------------------------------


def _program(con: duckdb.DuckDBPyConnection, side: Side, signs: Sequence[Row]) -> Program:
    structure = [r for r in ask(con, "step_structure", run=side.label) if r["step"] not in side.skipped]
    if not side.parts or not structure or side.period_ns is None:
        why, hint = _why_not(side)
        raise TraceqError(f"{side.label}: nothing to advise on: {why}", hint, Status.FAILED)
    step = side.step.value if side.step else float(side.period_ns)
    if step < 1:
        hint = "traceq ingest TRACE --step 12.3ms tells it"
        raise TraceqError(f"{side.label}: nothing to advise on: its step takes no time", hint, Status.FAILED)
    devices = max(len((side.facts["lanes"] or "").split()) // max(len({r["rank"] for r in side.steps}), 1), 1)
    idle = {what: ns for (part, what), ns in side.parts.items() if part == "idle"}
    all_idle = sum(idle.values())

    def taken(*columns: str) -> float:
        """The first column of the steps less the others."""
        first, *others = columns
        return stats.median([r[first] - sum(r[c] for c in others) for r in side.steps]) / devices

    busy = taken("busy_ns", "peer_wait_ns")
    left = max(step - busy, 0)
    bound = sum(idle.get(cause, 0) for cause in LAUNCH_BOUND)
    data = left * idle.get("dataloader", 0) / all_idle if all_idle else 0.0

    def middle(column: str) -> float:
        return stats.median([r[column] for r in structure]) / devices

    # Idle time that Python causes, scaled to the un-profiled step. The model's goes when it is compiled, and between
    # steps the trace has mostly the profiler's own; the optimizer's stays.
    is_told = bound and side.facts["linked_pct"] and _is_host_bound(busy, step - data)
    scale = (step - data) / bound if is_told else 0.0
    optimizer_python = scale * middle("optimizer_python_ns")

    return Program(
        step=step,
        data=data,
        model_python=max(scale * idle.get("python", 0) - optimizer_python, 0.0),
        optimizer_python=optimizer_python,
        busy=busy,
        peer_wait=taken("busy_ns") - busy,
        busy_alone=taken("busy_ns", "comm_alone_ns"),
        heavy_busy=taken("heavy_busy_ns"),
        launched=middle("launched"),
        kept=middle("kept"),
        optimizer=middle("optimizer"),
        fusible=middle("fusible"),
        fusible_ns=middle("fusible_ns"),
        groups=middle("fusible_groups"),
        longest_ns=middle("longest_ns"),
        syncs=sum(
            r["calls_per_step"] or 0
            for r in ask(con, "sync_sites", run=side.label, top=None)
            if r["outer_op"] in BLOCKING or r["op"] in BLOCKING
        ),
        has_rnn=any(r["kind"] == "rnn" for r in signs),
        has_backward=any(r["has_backward"] for r in structure),
    )


def _is_host_bound(busy: float, free: float) -> bool:
    """Whether the host, not the GPU, decides how long a step takes that waits for no data."""
    return busy < BUSY_LIMIT * free


def _why_not(side: Side) -> tuple[str, str]:
    """What is missing, and how to record it."""
    f = side.facts
    again = "record at least three steps: torch.profiler with prof.step() after each, or traceq capture"
    if f["invisible_replays"]:
        node = "nsys profile --cuda-graph-trace=node records them" if f["format"] == "nsys" else "record it again"
        return f"{f['invisible_replays']} CUDA graph replays were not recorded", f"{node}; or advise on the eager run"
    if f["kernel_ns"] is None:
        return "no kernels were recorded", "torch.profiler records them with ProfilerActivity.CUDA; traceq query trust"
    if not f["steps"]:
        return "no steps are marked", f"{again}; traceq ingest --step-range GLOB names ranges that are steps"
    if f["steps"] == 1:
        return "only one step was recorded", again
    return f"of {f['steps']} steps no two that count follow on one another", again


def _split(places: Sequence[tuple[str, str]], ns: Sequence[int]) -> dict[str, int]:
    """The step by what one should look at; it sums to the step."""
    found: dict[str, int] = dict.fromkeys(SPLIT, 0)
    for (part, what), value in zip(places, ns, strict=False):
        if part == "idle":
            kind = {"dataloader": "data", "sync": "sync"}.get(what, "launch" if what in LAUNCH_BOUND else "other_idle")
            found[kind] += value
        else:
            found[part if part in SPLIT else "other_busy"] += value
    found["residual"] = ns[-1]
    return found


def _floor(con: duckdb.DuckDBPyConnection, run: str, fusible_ns: int) -> tuple[int | None, float | None]:
    """What the fusible kernels' bytes need at the memory's peak, and of how much of their time the bytes are known.

    Kernels of unknown bytes count as needing nothing.
    """
    rows = [r for r in ask(con, "bandwidth", run=run, top=None) if r["category"] not in ("memcpy", "memset")]
    known = [r for r in rows if r["lost_ns"] is not None]
    whole: int = sum(r["gpu_ns"] for r in rows)
    if not known or not whole:
        return None, None
    floor = float(fusible_ns * sum(r["gpu_ns"] - r["lost_ns"] for r in known) / whole)
    return round(floor), 100 * sum(r["gpu_ns"] for r in known) / whole


# Ceilings and expectation -------------------------------------------------------------------------------------------


def _ceilings(con: duckdb.DuckDBPyConnection, side: Side, program: Program, signs: Sequence[Row]) -> Ceilings:
    """Bounds; those on the step need its un-profiled time."""
    step = side.step.value if side.step else None
    heavy = program.heavy_busy
    return Ceilings(
        both=step / max(heavy, LEAST_STEP_NS) if step else None,
        graphs=step / max(program.busy_alone, LEAST_STEP_NS) if step else None,
        fusion_busy=max(program.busy + program.peer_wait, LEAST_STEP_NS) / max(heavy, LEAST_STEP_NS),
        conditional=tuple(_chances(con, side.label, signs)),
    )


def _chances(con: duckdb.DuckDBPyConnection, run: str, signs: Sequence[Row]) -> list[str]:
    """Why even heavy kernels may get faster, so that the bound is conditional."""
    found = []
    off = [
        r
        for r in ask(con, "gemm_shapes", run=run, top=None)
        if r["dtype"] in MISALIGNED
        and (r["pct_of_gemm"] or 0) >= MISALIGNED_PCT
        and any((r[side] or 0) % MISALIGNED[r["dtype"]] for side in ("n", "k"))
    ]
    if off:
        worst = off[0]
        shape = f"{worst['m']}×{worst['n']}×{worst['k']} in {worst['dtype']}"
        found.append(f"misaligned matrix products may be padded (e.g. {shape})")
    words = {
        "nchw_conv": "convolutions in NCHW may be laid out anew",
        "naive_attention": "attention written out with bmm and softmax may become one kernel",
    }
    return found + [words[kind] for kind in dict.fromkeys(r["kind"] for r in signs) if kind in words]


def _expected(program: Program, mode: str, ceilings: Ceilings) -> Expected:
    """The range, not beyond the bound where that is one.

    A wait for a value parts the program; inside a loop the compiler leaves the whole of it as it is. So with waits it
    may stay as fast as now, and no gain is likely.
    """
    bound = ceilings.both if ceilings.both and not ceilings.conditional else float("inf")
    worst, likely, best = (
        program.step / max(predicted_ns(program, mode, c), LEAST_STEP_NS) for c in (WORST, LIKELY, BEST)
    )
    if program.syncs >= 1:
        worst, likely, best = min(worst, 1 / NO_GAIN_RATIO), min(likely, 1.0), max(best, NO_GAIN_RATIO)
    return Expected(*(min(speedup, bound) for speedup in (worst, likely, best)))


def _expected_of_compiled(p: Program, has_graphs: bool, ceilings: Ceilings) -> dict[str, Expected]:
    """Of a run that is compiled already: replaying its kernels as they are may be left."""
    nothing = Expected(1.0, 1.0, 1.0)
    if has_graphs:
        return dict.fromkeys(MODES, nothing)
    as_it_is = replace(p, kept=p.launched - p.optimizer, fusible=0.0, fusible_ns=0.0, groups=0.0, longest_ns=0.0)
    return {"default": nothing, "reduce-overhead": _expected(as_it_is, "reduce-overhead", ceilings)}


def _prospects(expected: dict[str, Expected], is_compiled: bool) -> dict[str, Expected]:
    """Of a run that is compiled already only what is left."""
    return {mode: e for mode, e in expected.items() if not is_compiled or e.high > 1}


def predicted_ns(p: Program, mode: str, case: Case) -> float:
    """The step in `mode`: data, then the longer of the GPU's time and the host's, or both where they cannot overlap.

    A library's RNN parts the program and is not taken into CUDA graphs: both modes then launch as `default` does.
    """
    made = min(p.fusible, p.groups * (case.made_training if p.has_backward else case.made))
    fused = case.longest * p.longest_ns + case.rest * (p.fusible_ns - p.longest_ns)
    gpu = case.gpu * (p.busy - p.fusible_ns + fused) + QUEUE_NS * (p.kept + p.optimizer + made)
    is_launching = mode == "default" or p.has_rnn
    fixed = p.pieces * (COMPILED_CALL_NS if is_launching else GRAPH_CALL_NS) + AUTOGRAD_NS * p.has_backward
    host = p.optimizer_host + case.fixed * fixed
    if is_launching:
        return p.data + max(gpu, host + (p.kept + made) * p.per_launch * case.launch)
    is_apart = p.syncs >= 1 or not case.is_overlapped
    return p.data + (gpu + host if is_apart else max(gpu, host))


# What stands in the way ---------------------------------------------------------------------------------------------


def _blockers(
    con: duckdb.DuckDBPyConnection, p: Program, signs: Sequence[Row], sites: Sequence[Row], side: Side
) -> tuple[Blocker, ...]:
    found = []
    for r in sites:
        if (r["calls_per_step"] or 0) >= 1 and (r["outer_op"] or r["python"] or r["range"]):
            what = f"{r['outer_op'] or r['name']} waits for the GPU"
            where = r["python"] or r["range"] or r["op"]
            found.append(Blocker("sync", what, where, r["calls_per_step"], _per_step(r["idle_ns"], side)))
    for r in signs:
        if r["sign"] == "blocker":
            found.append(Blocker(r["kind"], f"{r['what']} {SIGNS[r['kind']]}", r["module"], r["per_step"], None))
    if p.data > 0.05 * p.step:
        found.append(Blocker("data", "the step waits for its data", "DataLoader", None, round(p.data)))
    if p.step < TINY_STEP_NS:
        cost = show_ns(COMPILED_CALL_NS)
        found.append(
            Blocker("tiny_step", f"entering compiled code costs about {cost} of so short a step", None, None, None)
        )
    return tuple(found)


SIGNS = {
    "data_dependent": "has a result whose shape depends on data: the graph breaks there",
    "rnn": "is a library's RNN: it stays as it is, and CUDA graphs may not take it",
    "custom_autograd": "is an autograd function of your own: the graph may break there",
}


def _per_step(ns: int | None, side: Side) -> int | None:
    steps = side.facts["good_steps"]
    return round(ns / steps) if ns is not None and steps else None


# What to do ---------------------------------------------------------------------------------------------------------


def _recommendation(
    con: duckdb.DuckDBPyConnection, side: Side, p: Program, split: dict[str, int],
    expected: dict[str, Expected], is_compiled: bool, sites: Sequence[Row],
) -> tuple[str, str]:  # fmt: skip
    """What to do, and why in one sentence: data first, then the host, then kernels."""
    data, sync = split["data"] / p.step, split["sync"] / p.step
    if data >= HOST_FIRST:
        return (
            "fix the host first",
            f"{100 * data:.0f} % of the step waits for data: more workers, pinned memory, prefetching",
        )
    if sync >= HOST_FIRST or (p.syncs >= 1 and (sync >= HOST_FIRST / 4 or _would_gain(p))):
        site = next((r for r in sites if r["outer_op"] or r["op"]), None)
        what = (site["outer_op"] or site["op"]) if site else "a call that waits"
        where = f" in {site['python']}" if site and site["python"] else ""
        stops = ", and a compiler stops there" if p.syncs >= 1 else ""
        return "fix the host first", f"{what}{where} makes the host wait for the GPU, {p.syncs:.3g} times a step{stops}"
    copies = p.heavy_busy - split["heavy"]
    if copies >= HOST_FIRST * p.step:
        return (
            "fix the host first",
            f"{_share(copies, p.step)} of the step is copies between host and device beside no heavy kernel: "
            "fewer of them, from pinned memory, or while kernels run",
        )
    best = max(expected, key=lambda mode: expected[mode].likely)
    if expected[best].likely < NONE_BELOW:
        if is_compiled:
            return "leave it", "this run is compiled, or replays CUDA graphs, already"
        if p.heavy_busy >= HEAVY_LIMIT * p.step and (slow := _slow_gemms(con, side.label)):
            return "max-autotune for these GEMMs", slow
        if p.has_rnn:
            return "leave it", "a library's RNN stays as it is, and parts what is compiled around it"
        return "leave it", f"{_share(p.heavy_busy, p.step)} of the step is in heavy kernels, and little else can go"
    default, graphs = (expected[mode] for mode in MODES)
    # What is likely counts, and what is risked; graphs must be clearly better, since they ask more of the program.
    if default.low * default.likely * NONE_BELOW > graphs.low * graphs.likely:
        return "default", _gain(default, p)
    so_far = "; so far it is compiled without CUDA graphs" if is_compiled else ""
    return "reduce-overhead", _gain(graphs, p) + so_far


def _would_gain(p: Program) -> bool:
    """Whether compiling would bring something if the step waited for no value."""
    free = replace(p, syncs=0.0)
    return any(p.step > NONE_BELOW * predicted_ns(free, mode, LIKELY) for mode in MODES)


def _gain(e: Expected, p: Program) -> str:
    limit = (
        "the host, not the GPU, is the limit" if p.is_host_bound else "the GPU is the limit, and fusion saves it work"
    )
    return f"likely {e.likely:.2f}× as fast ({e.low:.2f} to {e.high:.2f}×); {limit}"


def _slow_gemms(con: duckdb.DuckDBPyConnection, run: str) -> str | None:
    """The longest matrix product that stays far below what the device allows."""
    slow = [r for r in ask(con, "gemm_shapes", run=run, top=5) if (r["pct_of_roof"] or ROOF_PCT) < ROOF_PCT]
    if not slow:
        return None
    r = slow[0]
    return (
        f"{r['op']} {r['m']}×{r['n']}×{r['k']} in {r['dtype']} reaches {r['pct_of_roof']:.0f} % of what the GPU allows"
    )


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %"


def _evidence(p: Program, split: dict[str, int], c: Ceilings, expected: dict[str, Expected]) -> tuple[str, ...]:
    idle = sum(split[kind] for kind in ("data", "launch", "sync", "other_idle"))
    bounds = [
        f"{name} {value:.2f}×"
        for name, value in (("both", c.both), ("graphs", c.graphs), ("fusion, of busy", c.fusion_busy))
        if value is not None
    ]
    ranges = [f"{mode} {e.low:.2f} to {e.high:.2f}×, likely {e.likely:.2f}×" for mode, e in expected.items()]
    return (
        f"the GPU is busy for {show_ns(p.busy)} of {show_ns(p.step)} ({_share(p.busy, p.step)}), "
        f"{show_ns(p.heavy_busy)} of it with heavy kernels and copies from or to the host"
        + (f"; beside that about {show_ns(p.peer_wait)} of waiting for other ranks, as traced" if p.peer_wait else ""),
        f"it is idle for {show_ns(idle)}: {show_ns(split['launch'])} for launches, {show_ns(split['sync'])} for "
        f"synchronisation, {show_ns(split['data'])} for data",
        f"fusible kernels{' outside of the optimizer' if p.optimizer else ''}: {p.fusible:.4g}, "
        f"of {show_ns(p.fusible_ns)}; groups of them: "
        f"{p.groups:.4g}, whose longest kernels take {show_ns(p.longest_ns)}",
        f"{'beside Python ' if p.model_python or p.optimizer_python else ''}the host takes "
        f"{show_ns(round(p.per_launch))} for each of {p.launched:.4g} kernels, copies and memsets"
        + ("" if p.is_host_bound else " (assumed: the GPU is the limit)"),
        "; ".join(
            [
                f"bounds: {', '.join(bounds) or 'none without an un-profiled step'}",
                *([f"expected: {'; '.join(ranges)}"] if ranges else []),
            ]
        ),
    )


def _not_visible(side: Side, p: Program) -> tuple[str, ...]:
    """What a better recording, or none, could have told."""
    said = []
    if side.step and p.heavy_busy > side.step.value:
        said.append(
            f"a step of {show_ns(side.step.value)}: its heavy kernels and copies alone take {show_ns(p.heavy_busy)}; "
            "is that time of this program?"
        )
    said.append("how much a CUDA graph must copy: its inputs go to fixed places first")
    if p.peer_wait:
        said.append("how long ranks wait for one another without the profiler: the model takes them not to")
    if side.step is None:
        said.append("the un-profiled step time: all is on the profiler's clock, which flatters compiling (--step)")
    if side.is_disturbed:
        said.append("how long a step takes: the machine was disturbed while timing (capture it again)")
    if not side.facts["linked_pct"]:
        said.append("operators: neither blockers nor categories by operator")
    if "shapes" not in (side.facts["recorded_with"] or ""):
        said.append("shapes: neither misaligned products nor a floor for fusible kernels (record_shapes=True)")
    if "stacks" not in (side.facts["recorded_with"] or "") and p.syncs:
        said.append("lines of Python: where the waiting comes from (with_stack=True)")
    if p.optimizer:
        said.append("a compiled optimizer: it is taken to stay eager")
    return tuple(said)


def _confidence(side: Side, p: Program, expected: dict[str, Expected], blockers: Sequence[Blocker]) -> str:
    """low without an undisturbed step time; medium where blockers, ranks, no operators or a wide range leave doubt."""
    if side.step is None or side.is_disturbed:
        return "low"
    best = max(expected.values(), key=lambda e: e.likely)
    is_wide = best.high > WIDE_RATIO * best.low or any(best.low < n < best.likely for n in (NONE_BELOW, LARGE_FROM))
    doubts = [bool(blockers), p.peer_wait > 0, not side.facts["linked_pct"], is_wide, side.periods < 2]
    return "medium" if any(doubts) else "high"


def _reached(con: duckdb.DuckDBPyConnection, label: str, p: Program, side: Side) -> Reached:
    """What `label` reached, and how many times as fast as it the bound would be."""
    other = side_of(con, ask(con, "run_facts", run=label)[0], False, None)
    missing = next((s.label for s in (side, other) if s.step is None), None)
    if missing is not None or side.step is None or other.step is None:
        raise TraceqError(
            f"{missing}: what was reached needs its un-profiled step time",
            "traceq ingest TRACE --step 12.3ms",
            Status.FAILED,
        )
    least = max(p.heavy_busy, LEAST_STEP_NS)
    return Reached(label, side.step.value / other.step.value, other.step.value / least)
