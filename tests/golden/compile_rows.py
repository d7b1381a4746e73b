"""Golden rows of the queries on torch.compile, by plain Python and not by traceq: every call asks what is around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from definitions import Row, Trace, by_run, in_order, keyed, percent, ratio, time
from explain import Call, Nested, Work
from op_rows import first_time, is_blind, kernels_of, step_at

# Triton kernels ---------------------------------------------------------------------------------------------

KINDS = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent",
    "spl": "split scan",
    "tem": "template",
    "for": "foreach",
}


def triton_work(traces: list[Trace], origins: set[str]) -> list[Work]:
    """Kernels that Triton made."""
    found = []
    for t in traces:
        origin = {a.place: a.origin for a in t.kernels}
        found += [w for w in t.explained.kernels if origin[w.place] in origins]
    return found


def kind_of(name: str) -> str:
    """By the name: Inductor's begin with triton_."""
    if not name.startswith("triton_"):
        return "handwritten"
    return KINDS.get(name.split("_")[1], "other")


def launch_args(w: Work) -> Row:
    """What the operator that launches a Triton kernel says of it."""
    return w.op.args if w.op and w.op.args.get("kernel_backend") == "triton" else {}


def only(values: list[Any]) -> Any:
    """The one value that there is, if there is one."""
    found = {v for v in values if v is not None}
    return found.pop() if len(found) == 1 else None


def triton_kernels(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        every = time(w for t in some for w in t.explained.kernels)
        kernels = triton_work(some, {"inductor", "triton"})
        code = keyed(kernels, lambda w: (w.name, launch_args(w).get("kernel_file"), launch_args(w).get("kernel_hash")))
        found = [triton_row(run, *key, same, every, is_blind(some)) for key, same in code.items()]
        rows += in_order(found, "-total_ns", "name", "kernel_hash", "kernel_file")[:top]
    return rows


def triton_row(run: str, name: str, file: Any, code: Any, same: list[Work], every: int, blind: bool) -> Row:
    grids = {",".join(map(str, g)) for w in same if (g := w.args.get("grid"))}
    args = [launch_args(w) for w in same]
    return {
        "run": run,
        "name": name,
        "kind": kind_of(name),
        "kernels": len(same),
        "total_ns": time(same),
        "pct_of_kernel": None if blind else percent(time(same), every),
        "mean_ns": ratio(time(same), len(same)),
        "grid": f"{len(grids)} grids" if len(grids) > 1 else only(list(grids)),
        "warps": only([a.get("num_warps") for a in args]),
        "stages": only([a.get("num_stages") for a in args]),
        "config": only([a.get("kernel_kwargs") for a in args]),
        "registers": only([w.args.get("registers per thread") for w in same]),
        "kernel_file": file,
        "kernel_hash": code,
    }


# Operators in the names that the fixtures have, told by reading them.
OPS = re.findall(
    r"\w+",
    """_softmax _softmax_backward_data _to_copy _unsafe_view add addmm arange clone copy_ div embedding
    embedding_dense_backward exp expand gelu gelu_backward log2 mul native_layer_norm native_layer_norm_backward
    permute prepare_softmax_online relu select select_backward slice slice_backward sub sum t tanh
    threshold_backward transpose view""",
)


def split(text: str) -> list[tuple[str, bool]]:
    """Parts and whether each is known: of all ways to cut the name, one with the fewest unknown words, then parts."""
    best: dict[int, tuple[tuple[int, int], list[tuple[str, bool]]]] = {len(text) + 1: ((0, 0), [])}
    for start in range(len(text), -1, -1):
        word = re.match("_?[^_]+", text[start:])
        fits = [(op, True) for op in OPS if text.startswith(op, start)] + ([(word[0], False)] if word else [])
        ways = []
        for part, is_known in fits:
            end = start + len(part) + 1
            if end in best and text[end - 1 : end] in ("", "_"):
                (unknown, parts), rest = best[end]
                ways.append(((unknown + (not is_known), parts + 1), [(part, is_known), *rest]))
        if ways:
            best[start] = min(ways)
    return joined(best[0][1])


def joined(parts: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Unknown neighbours are one."""
    found: list[tuple[str, bool]] = []
    for part, is_known in parts:
        if found and not is_known and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}_{part}", False)
        else:
            found.append((part, is_known))
    return found


def fused_name(w: Work) -> str:
    """The kernel's name, or the one that its launch knows where the kernel has none of its own."""
    return w.name if "_fused_" in w.name else launch_args(w).get("kernel_name", w.name)


def fused_ops(traces: list[Trace], top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        every = time(w for t in some for w in t.explained.kernels)
        found = []
        for name, same in keyed(triton_work(some, {"inductor"}), fused_name).items():
            text = re.fullmatch(r"triton_(?:\w{3}_)?fused_(.+)_\d+", name)
            parts = split(text[1]) if text else []
            found.append({
                "run": run,
                "name": name,
                "op_count": len(parts) or None,
                "ops": ", ".join(part for part, _ in parts) or None,
                "is_known": all(known for _, known in parts) if parts else None,
                "is_cut": len(parts) >= 10 if parts else None,
                "kernels": len(same),
                "total_ns": time(same),
                "pct_of_kernel": None if is_blind(some) else percent(time(same), every),
            })  # fmt: skip
        rows += in_order(found, "-total_ns", "name")[:top]
    return rows


# Regions, graphs and functions ------------------------------------------------------------------------------

MARKS = [
    ("region", "Torch-Compiled Region"),
    ("graph", "## Call CompiledFxGraph"),
    ("backward", "CompiledFunctionBackward"),
    ("forward", "CompiledFunction"),
]
PLACES = ["region", "graph", "forward", "backward"]


def kind_of_mark(row: Nested) -> str | None:
    return next((kind for kind, head in MARKS if row.name.startswith(head)), None)


def marks_of(t: Trace) -> list[Nested]:
    return [row for row in t.explained.ops + t.explained.ranges if kind_of_mark(row)]


def holds(mark: Nested, call: Call) -> bool:
    return mark.lane == call.lane and mark.start <= call.start < mark.start + mark.dur


def compile_id(name: str) -> tuple[int | None, int | None]:
    found = re.search(r"(?:Region: |compile_id=)(\d+)/(\d+)", name)
    return (int(found[1]), int(found[2])) if found else (None, None)


def step_of(t: Trace, row: Any) -> Any:
    return step_at(t, row.pid, row.start + first_time(t))


def by_step(t: Trace, rows: list[Any]) -> dict[Any, list[Any]]:
    return keyed(rows, lambda row: step_of(t, row))


def pieces_among(kinds: set[str]) -> set[str]:
    """What counts as a piece, by what the trace records."""
    functions = {"forward", "backward"}
    return next((wanted for wanted in ({"graph"}, functions) if wanted & kinds), {"region"})


def unless_blind(t: Trace, value: Any) -> Any:
    return None if t.invisible else value


def compile_regions(traces: list[Trace], top: int | None = 40) -> list[Row]:
    rows = []
    for t in traces:
        calls = [c for c in t.explained.calls if c.work]
        found = []
        for (kind, name), some in keyed(marks_of(t), lambda m: (kind_of_mark(m), m.name)).items():
            inside = {m: [c for c in calls if holds(m, c)] for m in some}
            good = [m for m in some if step_of(t, m) in t.good_steps]
            frame, variant = compile_id(name)
            kernels = {m: kernels_of(w for c in inside[m] for w in c.work) for m in some}
            found.append({
                "run": t.run,
                "rank": t.rank,
                "kind": kind,
                "name": name,
                "frame": frame,
                "variant": variant,
                "calls": len(some),
                "host_ns": sum(m.dur for m in some),
                "kernels": unless_blind(t, sum(len(kernels[m]) for m in some)),
                "kernel_ns": unless_blind(t, sum(time(kernels[m]) for m in some)),
                "graph_launches": sum(holds(m, c) for m in some for c in t.explained.calls if c.role == "graph_launch"),
                "calls_per_step": ratio(len(good), len(t.good_steps)),
                "host_ns_per_step": ratio(sum(m.dur for m in good), len(t.good_steps)),
                "kernels_per_step": unless_blind(t, ratio(sum(len(kernels[m]) for m in good), len(t.good_steps))),
                "kernel_ns_per_step": unless_blind(t, ratio(sum(time(kernels[m]) for m in good), len(t.good_steps))),
            })  # fmt: skip
        rows += in_order(found, "-host_ns", "kind", "name")[:top]
    return in_order(rows, "run", "rank", lambda r: PLACES.index(r["kind"]), "-host_ns", "name")


def graph_pieces(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        marks = marks_of(t)
        kinds = {kind_of_mark(m) for m in marks}
        pieces = pieces_among(kinds)
        calls = [c for c in t.explained.calls if kernels_of(c.work) or c.role == "graph_launch"]
        where, worked = by_step(t, marks), by_step(t, calls)
        for step in [*t.steps, None] if marks else []:
            if step or None in where or None in worked:
                row = piece_row(t, step, where.get(step, []), worked.get(step, []), kinds, pieces)
                rows.append({"start": step.start if step else None, **row})
    rows = in_order(rows, "run", "rank", "start", "step")
    return [{k: v for k, v in row.items() if k != "start"} for row in rows]


def unfused_kernels(traces: list[Trace], by_name: bool | None = False, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        some = [t for t in some if not t.invisible]
        if not any(marks_of(t) for t in some):
            continue
        found = [kind for t in some for kind in left_kernels(t, by_name)]
        number = sum(len(t.good_steps) for t in some)
        mine = [
            {
                "run": run,
                "name": name,
                "category": category,
                "origin": origin,
                "op": op,
                "reason": reason,
                "kernels": len(same),
                "total_ns": sum(dur for *_, dur in same),
                "ns_per_step": ratio(sum(dur for *_, dur in same), number),
            }
            for (name, category, origin, op, reason), same in keyed(found, lambda kind: kind[:5]).items()
        ]
        rows += in_order(mine, "-total_ns", "name", "op", "reason", "category")[:top]
    return rows


TORCHS = {"aten", "autograd", "torch", "prim", "prims", "rngprims", "inductor", "quantized", "mkldnn", "profiler"}


def is_custom(name: str) -> bool:
    """Whether an operator is a library's or the user's, by its namespace."""
    space, colons, _ = name.partition("::")
    return bool(colons) and space.isidentifier() and space not in TORCHS and not space.lstrip("_").startswith("c10d")


def left_kernels(t: Trace, by_name: bool | None) -> list[tuple[Any, ...]]:
    """Kernels of steps that count which a compiler could have fused and did not: what they are, why, and how long."""
    marks = marks_of(t)
    pieces = pieces_among({kind_of_mark(m) for m in marks})
    graphs = [m for m in marks if kind_of_mark(m) in pieces]
    customs = [o for o in t.explained.ops if is_custom(o.name)]
    origins, found = {k.place: k.origin for k in t.kernels}, []
    for w in kernels_of(t.explained.work):
        category = w.category_by_name if by_name else w.category
        is_left = origins[w.place] != "inductor" and category not in {"gemm", "conv", "attention", "rnn", "comm"}
        if is_left and w.launch and step_of(t, w.launch) in t.good_steps:
            op = w.op.name if w.op and w.launch.role != "graph_launch" else None
            is_in_graph = any(holds(m, w.launch) for m in graphs)
            reasons = {
                "custom kernel": origins[w.place] in ("triton", "custom"),
                "custom operator": is_in_graph and any(holds(o, w.launch) for o in customs),
                "input copy": is_in_graph and op == "aten::_foreach_copy_",
                "library call": is_in_graph,
                "wrapper": any(holds(m, w.launch) for m in marks if m.name.startswith("CompiledFunction")),
                "graph break": any(holds(m, w.launch) for m in marks),
                "optimizer": w.phase == "optimizer",
                "outside": True,
            }
            reason = next(reason for reason, holds_true in reasons.items() if holds_true)
            found.append((w.name, category, origins[w.place], op, reason, w.dur))
    return found


def piece_row(t: Trace, step: Any, here: list[Nested], calls: list[Call], kinds: set[str], pieces: set[str]) -> Row:
    marks = marks_of(t)
    counted = [m for m in here if kind_of_mark(m) in pieces]
    in_backward = [m for m in counted if any(b.start <= m.start < b.end and b.lane == m.lane for b in backwards(marks))]
    regions = [m for m in here if kind_of_mark(m) == "region"]
    in_piece = [c for c in calls if any(holds(m, c) for m in marks if kind_of_mark(m) in pieces)]
    in_any = [c for c in calls if any(holds(m, c) for m in marks)]
    eager = [c for c in calls if c not in in_any]
    around = [c for c in in_any if c not in in_piece]

    def number(some: list[Call]) -> int | None:
        return unless_blind(t, sum(len(kernels_of(c.work)) for c in some))

    return {
        "run": t.run,
        "rank": t.rank,
        "step": step.number if step else None,
        "flags": (", ".join(step.flags) or None) if step else None,
        "pieces": len(counted) - len(in_backward),
        "backward_pieces": len(in_backward) if kinds != {"region"} else None,
        "regions": len(regions) if "region" in kinds else None,
        "frames": len({compile_id(m.name)[0] for m in regions}) if "region" in kinds else None,
        "kernels": number(calls),
        "piece_kernels": number(in_piece),
        "around_kernels": number(around),
        "eager_kernels": number(eager),
        "eager_ns": unless_blind(t, time(w for c in around + eager for w in kernels_of(c.work))),
        "graph_launches": sum(c.role == "graph_launch" for c in calls),
    }


def backwards(marks: list[Nested]) -> list[Nested]:
    return [m for m in marks if kind_of_mark(m) == "backward"]


# Compilation ------------------------------------------------------------------------------------------------


def outermost(rows: list[Nested]) -> list[Nested]:
    """Those that begin inside no other of them."""
    return [m for m in rows if not any(o is not m and o.lane == m.lane and is_inside(m, o) for o in rows)]


def is_inside(row: Nested, other: Nested) -> bool:
    return other.start <= row.start < other.start + other.dur


def compilations(t: Trace, everything: list[Nested]) -> list[tuple[str, Nested, int | None, int | None]]:
    """The outermost of each, with the first compile id noted inside."""
    notes = [m for m in everything if "_data: " in m.name and "compile_id=" in m.name]
    found = []
    for m in outermost([m for m in everything if "(dynamo_timed)" in m.name]):
        inside = [n for n in notes if n.lane == m.lane and is_inside(n, m)]
        first = min(inside, key=lambda n: n.start, default=None)
        found.append(("compilation", m, *(compile_id(first.name) if first else (None, None))))
    return found


def recompiles_seen(traces: list[Trace], top: int | None = 50) -> list[Row]:
    rows = []
    for t in traces:
        everything = t.explained.ops + t.explained.ranges
        seen = [("lookup", m, None, None) for m in everything if m.name.startswith("TorchDynamo Cache Lookup")]
        regions = [m for m in everything if m.name.startswith("Torch-Compiled Region")]
        seen += [("variant", m, *compile_id(m.name)) for m in regions if compile_id(m.name)[1]]
        seen += compilations(t, everything)
        groups = keyed(
            [(step_of(t, m), kind, m, *ids) for kind, m, *ids in seen], lambda e: (*e[:2], e[2].name, *e[3:])
        )
        listed = [seen_row(t, *key, [m for _, _, m, *_ in some]) for key, some in groups.items()]
        rows += in_order(listed, "first_ns", "kind", "name")[:top]
    return in_order(rows, "run", "rank", "first_ns", "kind", "name")


def seen_row(t: Trace, step: Any, kind: str, name: str, frame: Any, variant: Any, some: list[Nested]) -> Row:
    host = sum(m.dur for m in some)
    return {
        "run": t.run,
        "rank": t.rank,
        "step": step.number if step else None,
        "kind": kind,
        "name": name,
        "frame": frame,
        "variant": variant,
        "calls": len(some),
        "first_ns": min(m.start for m in some),
        "host_ns": host,
        "pct_of_step": percent(host, step.end - step.start) if step else None,
    }


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    triton_kernels: [{}, {"run": "compiled", "top": None}, {"run": "breaks", "top": 3}],
    fused_ops: [{"top": None}, {"run": "compiled"}, {"run": "default", "top": 5}],
    compile_regions: [{}, {"run": "breaks", "top": 4}],
    graph_pieces: [{}, {"run": "compiled"}],
    unfused_kernels: [{}, {"run": "compiled", "by_name": True, "top": None}, {"run": "default", "top": None}],
    recompiles_seen: [{}, {"run": "compiled", "top": 3}],
}
