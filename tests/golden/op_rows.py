"""Golden rows of the queries on operators, modules, phases and busy time, by plain Python and not by traceq.

What belongs to what is explain.py's; the sums are taken here, row by row.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

from definitions import Row, Step, Trace, by_run, in_order, keyed, percent, ratio, share, time
from explain import Nested, Work

NO_OPERATOR, NO_MODULE = "(no operator)", "(no module)"


def all_work(traces: list[Trace]) -> list[Work]:
    return [w for t in traces for w in t.explained.work]


def all_ops(traces: list[Trace]) -> list[Nested]:
    return [op for t in traces for op in t.explained.ops]


def is_blind(traces: list[Trace]) -> bool:
    return any(t.invisible for t in traces)


def kernels_of(work: Iterable[Work]) -> list[Work]:
    return [w for w in work if w.kind == "kernel"]


def copies_of(work: Iterable[Work]) -> list[Work]:
    return [w for w in work if w.kind != "kernel"]


def steps_of(t: Trace) -> dict[int, Step | None]:
    """The step of each activity, by its place in the file."""
    return {a.place: a.step for a in t.work}


def short_name(name: str) -> str:
    """Without return type, namespaces, template and call arguments."""
    head = re.split(r"[<(]", name.replace("(anonymous namespace)::", "").removeprefix("void "))[0]
    return head.split("::")[-1]


def is_asked(op: str | None, pattern: str | None) -> bool:
    """Part of the name, or a pattern."""
    return pattern is None or (op is not None and (pattern in op or fnmatchcase(op, pattern)))


# Operators --------------------------------------------------------------------------------------------------


def top_ops(traces: list[Trace], top: int | None = 20, sort: str | None = "gpu") -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        work, ops = all_work(some), all_ops(some)
        sums: dict[str, Counter[str]] = defaultdict(Counter)
        for op in ops:
            sums[op.name].update(calls=1, cpu_self_ns=op.self_ns)
            for name in {around.name for around in op.chain()}:
                sums[name]["cpu_total_ns"] += op.self_ns
        for w in work:
            sums[w.op.name if w.op else NO_OPERATOR]["gpu_self_ns"] += w.dur if w.kind == "kernel" else 0
            for name in {around.name for around in w.op.chain()} if w.op else {NO_OPERATOR}:
                add_inside(sums[name], w)
        found = [op_row(run, op, s, some, work, ops) for op, s in sums.items()]
        key = {"total": "-gpu_total_ns", "cpu": "-cpu_self_ns"}.get(sort or "gpu", "-gpu_self_ns")
        rows += in_order(found, key, "-cpu_self_ns", "op")[:top]
    return rows


def add_inside(sums: Counter[str], w: Work) -> None:
    """Work launched by an operator or what is inside."""
    if w.kind == "kernel":
        sums.update(gpu_total_ns=w.dur, kernels=1)
    else:
        sums["memop_ns"] += w.dur


def op_row(run: str, op: str, s: Counter[str], traces: list[Trace], work: list[Work], ops: list[Nested]) -> Row:
    kernel_ns, is_op = time(kernels_of(work)), op != NO_OPERATOR

    def gpu(name: str) -> int | None:
        return s[name] if work else None

    def pct(name: str) -> Any:
        return None if is_blind(traces) else percent(gpu(name), kernel_ns)

    return {
        "run": run,
        "op": op,
        "calls": s["calls"] if is_op else None,
        "gpu_self_ns": gpu("gpu_self_ns"),
        "gpu_self_pct": pct("gpu_self_ns"),
        "gpu_total_ns": gpu("gpu_total_ns"),
        "gpu_total_pct": pct("gpu_total_ns"),
        "cpu_self_ns": s["cpu_self_ns"] if is_op else None,
        "cpu_self_pct": percent(s["cpu_self_ns"], sum(o.self_ns for o in ops)) if is_op else None,
        "cpu_total_ns": s["cpu_total_ns"] if is_op else None,
        "kernels": gpu("kernels"),
        "host_ns_per_kernel": ratio(s["cpu_total_ns"], s["kernels"]) if is_op else None,
        "memop_ns": gpu("memop_ns"),
    }


def op_kernels(traces: list[Trace], op: str | None = None, top: int | None = 30) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = kernels_of(all_work(some))
        by_op = keyed(kernels, lambda w: w.op.name if w.op else NO_OPERATOR)
        found = [
            {
                "run": run,
                "op": name,
                "kernel": kernel,
                "category": category,
                "kernels": len(same),
                "total_ns": time(same),
                "pct_of_kernel": None if is_blind(some) else percent(time(same), time(kernels)),
                "pct_of_op": percent(time(same), time(launched)),
                "mean_ns": ratio(time(same), len(same)),
            }
            for name, launched in by_op.items()
            for (kernel, category), same in keyed(launched, lambda w: (short_name(w.name), w.category)).items()
            if is_asked(name, op)
        ]
        rows += in_order(found, "-total_ns", "op", "kernel", "category")[:top]
    return rows


def op_shapes(traces: list[Trace], op: str | None = None, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        launched = keyed(kernels_of(all_work(some)), lambda w: w.op)
        groups = keyed(all_ops(some), lambda o: (o.name, recorded(o, "Input Dims"), recorded(o, "Input type")))
        found = []
        for (name, dims, types), same in groups.items():
            kernels = [w for o in same for w in launched.get(o, [])]
            is_seen = bool(all_work(some))
            found.append({
                "run": run,
                "op": name,
                "calls": len(same),
                "gpu_self_ns": time(kernels) if is_seen else None,
                "cpu_self_ns": sum(o.self_ns for o in same),
                "shapes": dims,
                "dtypes": ", ".join(json.loads(types)).replace("c10::", "") if types else None,
                "kernels": len(kernels) if is_seen else None,
                "ns_per_call": ratio(time(kernels), len(same)) if is_seen else None,
                "types": types,
            })  # fmt: skip
        found = [row for row in found if is_asked(row["op"], op)]
        rows += in_order(found, "-gpu_self_ns", "-cpu_self_ns", "op", "shapes", "types")[:top]
    return [{k: v for k, v in row.items() if k != "types"} for row in rows]


def recorded(op: Nested, key: str) -> str | None:
    return json.dumps(op.args[key], separators=(",", ":")) if key in op.args else None


# Modules ----------------------------------------------------------------------------------------------------


def module_time(traces: list[Trace], levels: int | None = None, min_ns: int | None = 0) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = kernels_of(all_work(some))
        direct = keyed(kernels, module_of)
        paths = {path[:n] for path in direct for n in range(1, len(path) + 1)} | ({()} & set(direct))
        inside = {path: [w for own, ws in direct.items() for w in ws if is_inside(own, path)] for path in paths}
        for path in sorted(paths, key=lambda path: tree_place(path, inside)):
            shown = len(path) <= (levels or len(path)) and time(inside[path]) >= (min_ns or 0)
            if shown:
                rows.append(module_row(run, path, direct.get(path, []), inside[path], kernels, is_blind(some)))
    return rows


def module_of(w: Work) -> tuple[str, ...]:
    """Path of the module; empty for none."""
    return tuple(w.op.module.split("/")) if w.op and w.op.module else ()


def is_inside(own: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a module is the one of the path or inside; kernels of no module are with themselves."""
    return own[: len(path)] == path if path else not own


def tree_place(path: tuple[str, ...], inside: dict[tuple[str, ...], list[Work]]) -> list[tuple[int, bool, str]]:
    """A place in the tree: on each level what takes most time first."""
    around = [path[:n] for n in range(1, len(path) + 1)] or [()]
    return [(-time(inside[one]), not one, "/".join(one)) for one in around]


def module_row(
    run: str, path: tuple[str, ...], own: list[Work], inside: list[Work], kernels: list[Work], blind: bool
) -> Row:
    return {
        "run": run,
        "module": "/".join(path) or None,
        "depth": len(path) - 1 if path else None,
        "kernels": len(inside),
        "self_ns": time(own),
        "total_ns": time(inside),
        "pct_of_kernel": None if blind else percent(time(inside), time(kernels)),
        "forward_ns": time(w for w in inside if w.phase == "forward"),
        "backward_ns": time(w for w in inside if w.phase == "backward"),
        "name": path[-1] if path else NO_MODULE,
    }


# Phases -----------------------------------------------------------------------------------------------------


def phase_time(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        work, ops, step = t.explained.work, t.explained.ops, steps_of(t)
        good = t.good_steps
        for phase in {w.phase for w in work} | {op.phase for op in ops}:
            mine = [w for w in work if w.phase == phase]
            host = [op for op in ops if op.phase == phase]
            kernels = kernels_of(mine)
            stepped = [w for w in kernels if step[w.place] in good]
            rows.append({
                "run": t.run,
                "rank": t.rank,
                "phase": phase,
                "kernels": len(kernels) if work else None,
                "kernel_ns": time(kernels) if work else None,
                "pct_of_kernel": share(t, time(kernels), time(kernels_of(work))),
                "memop_ns": time(copies_of(mine)) if work else None,
                "kernels_per_step": ratio(len(stepped), len(good)) if work else None,
                "ns_per_step": ratio(time(stepped), len(good)) if work else None,
                "cpu_self_ns": sum(op.self_ns for op in host) if ops else None,
                "cpu_self_pct": percent(sum(op.self_ns for op in host), sum(op.self_ns for op in ops)) if ops else None,
                "threads": len({op.lane for op in host}) if ops else None,
            })  # fmt: skip
    return in_order(rows, "run", "rank", "-kernel_ns", "-cpu_self_ns", "phase")


def step_phases(traces: list[Trace]) -> list[Row]:
    rows = []
    for t in traces:
        step, origin = steps_of(t), first_time(t)
        for s in t.steps:
            work = [w for w in t.explained.work if step[w.place] is s]
            ops = [op for op in t.explained.ops if step_at(t, op.pid, op.start + origin) is s]
            for phase in {w.phase for w in work} | {op.phase for op in ops}:
                rows.append({"start": s.start, "pid": str(s.pid), **step_phase(t, s, phase, work, ops)})
    rows = in_order(rows, "run", "rank", "start", "step", "pid", "-kernel_ns", "-cpu_self_ns", "phase")
    return [{k: v for k, v in row.items() if k not in ("start", "pid")} for row in rows]


def step_phase(t: Trace, s: Step, phase: str, work: list[Work], ops: list[Nested]) -> Row:
    mine = [w for w in work if w.phase == phase]
    kernels = kernels_of(mine)
    return {
        "run": t.run,
        "rank": t.rank,
        "step": s.number,
        "phase": phase,
        "kernels": len(kernels),
        "kernel_ns": time(kernels) if work else None,
        "pct_of_step": share(t, time(kernels), time(kernels_of(work))),
        "memop_ns": time(copies_of(mine)) if work else None,
        "cpu_self_ns": sum(op.self_ns for op in ops if op.phase == phase) if t.explained.ops else None,
    }


def first_time(t: Trace) -> int:
    """What explain.py counts from."""
    return min((e.start for e in t.events if e.is_usable and e.stored_in and e.ph != "M"), default=0)


def step_at(t: Trace, pid: Any, moment: int) -> Step | None:
    """The step of its process at a moment: the last to start of those that hold it."""
    held = [s for s in t.steps if s.pid in (None, pid) and s.start <= moment < s.end]
    return max(held, key=lambda s: s.start, default=None)


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    top_ops: [{}, {"run": "eager", "top": None, "sort": "total"}, {"run": "model", "sort": "cpu"}],
    op_kernels: [{}, {"run": "eager", "op": "aten::*mm"}, {"run": "model", "op": "mul", "top": None}],
    op_shapes: [{}, {"run": "eager", "op": "aten::mm", "top": 5}, {"run": "model", "op": "aten::m?l"}],
    module_time: [{}, {"run": "model", "levels": 1}, {"min_ns": 1000000}],
    phase_time: [{}, {"run": "eager"}],
    step_phases: [{}, {"run": "model"}],
}
