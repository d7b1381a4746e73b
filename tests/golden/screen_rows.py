"""Golden rows of the queries that screens open one kernel with, by plain Python and not by traceq."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate, pairwise

import capture_rows
from capture_rows import Captured, only
from definitions import Row, Trace, by_run, gpu_names, in_order, keyed, median, percent, ratio, run_busy, total
from explain import Work
from op_rows import kernels_of, recorded, short_name, steps_of


def named(t: Trace, name: str | None) -> list[Work]:
    return [w for w in kernels_of(t.explained.work) if name is None or w.name == name]


def kernel_launches(traces: list[Trace], name: str | None = None, top: int | None = 100) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        found = [
            {"run": run, **launch_row(t, w, steps)}
            for t, steps in ((t, steps_of(t)) for t in some)
            for w in named(t, name)
        ]
        ordered = in_order(found, "start_ns", "rank", lambda row: row["order"])[:top]
        rows += [{k: v for k, v in row.items() if k != "order"} for row in ordered]
    return rows


def launch_row(t: Trace, w: Work, steps: Row) -> Row:
    step = steps[w.place]
    latency = w.start - w.launch.start if w.launch else None
    return {
        "rank": t.rank,
        "step": step.number if step else None,
        "start_ns": w.start,
        "dur_ns": w.dur,
        "device": w.device,
        "stream": w.stream,
        "op": w.op.name if w.op else None,
        "latency_ns": latency,
        "queue_ns": w.start - w.launch.end if w.launch and w.start >= w.launch.end else None,
        "grid": times(w.args.get("grid")),
        "block": times(w.args.get("block")),
        "registers": w.args.get("registers per thread"),
        "shared_bytes": w.args.get("shared memory"),
        "occupancy_pct": w.args.get("est. achieved occupancy %"),
        "order": (w.end, w.args.get("correlation") or 0),
    }


def times(sizes: list[int] | None) -> str | None:
    return "×".join(map(str, sizes)) if sizes else None


def kernel_callers(traces: list[Trace], name: str | None = None, top: int | None = 20) -> list[Row]:
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = [w for t in some for w in named(t, name)]
        whole = sum(w.dur for w in kernels)
        found = [
            {
                "run": run,
                "op": op,
                "phase": phase,
                "module": module,
                "shapes": shapes,
                "dtypes": ", ".join(json.loads(types)).replace("c10::", "") if types else None,
                "kernels": len(same),
                "total_ns": sum(w.dur for w in same),
                "pct_of_name": percent(sum(w.dur for w in same), whole),
                "mean_ns": ratio(sum(w.dur for w in same), len(same)),
                "types": types,
            }
            for (op, phase, module, shapes, types), same in keyed(kernels, caller).items()
        ]
        ordered = in_order(found, "-total_ns", "op", "phase", "module", "shapes", "types")[:top]
        rows += [{k: v for k, v in row.items() if k != "types"} for row in ordered]
    return rows


def caller(w: Work) -> tuple[str | None, ...]:
    if not w.op:
        return (None, w.phase, None, None, None)
    return (w.op.name, w.phase, w.op.module, recorded(w.op, "Input Dims"), recorded(w.op, "Input type"))


def ncu_command(things: list[Trace | Captured], name: str | None = None, top: int | None = 20) -> list[Row]:
    traces = [t for t in things if isinstance(t, Trace)]
    commands = {c.run: c.record["command"] for c in only(things)}
    rows = []
    for run, some in sorted(by_run(traces).items()):
        kernels = [(t, w) for t in some for w in kernels_of(t.explained.work)]
        groups = keyed(kernels, lambda k: short_name(k[1].name))
        first = min((s.number for t in some for s in t.steps), default=None)
        found = [
            {"run": run, **ncu_row(function, same, first, commands.get(run) or "python YOUR_PROGRAM.py")}
            for function, same in groups.items()
            if name is None or any(w.name == name for _, w in same)
        ]
        rows += in_order(found, "-total_ns", "function")[:top]
    return rows


def ncu_row(function: str, same: list[tuple[Trace, Work]], first: int | None, program: str) -> Row:
    inside = sum(1 for t, w in same if (s := steps_of(t)[w.place]) and s.number == first)
    skip = inside // len({id(t) for t, _ in same}) * (first or 0)
    graph = " --graph-profiling node" if any(w.args.get("graph node id") for _, w in same) else ""
    word = function if re.fullmatch(r"\w+", function, re.A) else "'" + function.replace("'", "'\\''") + "'"
    return {
        "function": function,
        "total_ns": total(w.dur for _, w in same),
        "names": len({w.name for _, w in same}),
        "skip": skip,
        "command": f"ncu --set full --target-processes all{graph} --kernel-name {word} --launch-skip {skip} "
        f"--launch-count 1 -o kernel {program}",
    }


def runs_at_a_glance(things: list[Trace | Captured]) -> list[Row]:
    """Runs with traces, then those without: they came in that order."""
    rows = [glance(run, some) for run, some in by_run([t for t in things if isinstance(t, Trace)]).items()]
    known = {row["run"]: row for row in capture_rows.runs(things)}
    return rows + [{**dict.fromkeys(rows[0]), **kept(row)} for run, row in known.items() if not row["traces"]]


def kept(row: Row) -> Row:
    return {name: row[name] for name in ("run", "step_ns", "gpu", "traces")}


def glance(run: str, some: list[Trace]) -> Row:
    kernels = [(w, steps.get(w.place)) for t, steps in ((t, steps_of(t)) for t in some) for w in named(t, None)]
    gemms = [w for w, _ in kernels if w.category == "gemm"]
    is_whole = not any(t.invisible for t in some)
    by_step = keyed([(w, s.number) for w, s in kernels if s], lambda pair: pair[1])
    steps = [[w for w, _ in by_step[number]] for number in sorted(by_step)]
    whole = sum(w.dur for w, _ in kernels)
    return {
        "run": run,
        "step_ns": some[0].step_ns,
        "period_ns": median(p for t in some for p in t.good_periods),
        "busy_pct": run_busy(some),
        "gemm_pct_of_kernel": percent(sum(w.dur for w in gemms), whole) if is_whole and kernels else None,
        "gemm_by_step": "".join(map(eighth, stretches(steps))) or None if is_whole else None,
        "steps": sum(len(t.steps) for t in some),
        "kernels": len(kernels),
        "kernel_ns": whole if kernels else None,
        "gpu": gpu_names(some),
        "traces": len(some),
        "format": "kineto",
        "status": "salvaged" if any(t.unreadable for t in some) else "complete",
    }


def stretches(steps: list[list[Work]], most: int = 24) -> list[list[Work]]:
    """The kernels of neighbouring steps together, so that there are at most 24; the first ones get one more."""
    count = min(most, len(steps))
    sizes = [len(steps) // count + (n < len(steps) % count) for n in range(count)] if count else []
    ends = list(accumulate(sizes, initial=0))
    return [[w for step in steps[a:b] for w in step] for a, b in pairwise(ends)]


def eighth(work: list[Work]) -> str:
    whole, gemm = sum(w.dur for w in work), sum(w.dur for w in work if w.category == "gemm")
    return "▁▂▃▄▅▆▇█"[min(8 * gemm // whole, 7)] if whole else ""


EXACT = "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT"
CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    kernel_launches: [{"top": 12}, {"run": "eager", "name": EXACT, "top": 5}, {"run": "shapes", "top": None}],
    kernel_callers: [{"top": 8}, {"run": "eager", "name": EXACT, "top": None}, {"run": "shapes", "top": None}],
    runs_at_a_glance: [{}],
    ncu_command: [{"top": 4}, {"run": "eager", "name": EXACT}, {"run": "odd", "top": None}],
}
