"""The golden rows of every query, computed from the traces by plain Python and not by traceq.

    python tests/golden/make.py           # write tests/golden/<query>.json
    python tests/golden/make.py --check   # recompute; exit 1 and name the files that differ

`store.json` lists the runs; each area of queries has a module with its CALLS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import capture_rows
import compile_rows
import definitions
import diff_rows
import explain
import kernel_rows
import lane_rows
import launch_rows
import memory_rows
import nsys_rows
import op_rows
import overview_rows
import screen_rows
import stream_rows
import timeline_rows
import verdict_rows
from capture_rows import Captured
from definitions import FIXTURES, Row, Trace

HERE = Path(__file__).parent
CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    **definitions.CALLS,
    **compile_rows.CALLS,
    **memory_rows.CALLS,
    **stream_rows.CALLS,
    **timeline_rows.CALLS,
    **lane_rows.CALLS,
    **launch_rows.CALLS,
    **kernel_rows.CALLS,
    **op_rows.CALLS,
    **overview_rows.CALLS,
    **nsys_rows.CALLS,
    **screen_rows.CALLS,
    **diff_rows.CALLS,
    **verdict_rows.CALLS,
    **capture_rows.CALLS,
}
WITH_CAPTURES = {*capture_rows.CALLS, diff_rows.run_facts, screen_rows.ncu_command, screen_rows.runs_at_a_glance}


def load(run: Row, path: Path) -> Trace:
    """A trace with what explain.py finds, whose categories of kernels (by operator, too) count."""
    trace = definitions.load(run, path)
    trace.explained = explain.explain(path)
    categories = {work.place: work.category for work in trace.explained.kernels}
    for kernel in trace.kernels:
        kernel.category = categories[kernel.place]
    return trace


def answer(traces: list[Trace | Captured], query: Callable[..., list[Row]], params: Row) -> list[Row]:
    """The rows of one call; `run` picks traces, the rest is the query's own business."""
    picked = [t for t in traces if params.get("run") in (None, t.run)]
    return query(picked, **{k: v for k, v in params.items() if k != "run"})


def written(row: Row) -> str:
    plain = {k: float(v) if isinstance(v, Fraction) else v for k, v in row.items()}
    return json.dumps(plain, ensure_ascii=False)


def text(traces: list[Trace | Captured], query: Callable[..., list[Row]], calls: list[Row]) -> str:
    """A golden file: the rows, one a line, or for each of several calls its parameters and rows."""
    answers = [",\n".join(written(row) for row in answer(traces, query, params)) for params in calls]
    if len(calls) == 1:
        return f"[\n{answers[0]}\n]\n"
    heads = [f'{{"params": {json.dumps(params)}, "rows": [\n' for params in calls]
    blocks = [f"{head}{rows}\n]}}" for head, rows in zip(heads, answers, strict=True)]
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def main() -> int:
    plan = json.loads((HERE / "store.json").read_text("utf-8"))
    paths = [(run, FIXTURES / path) for run in plan for path in run["files"]]
    traces = [load(run, path) for run, path in paths if not path.name.endswith(capture_rows.ENDING)]
    captured = capture_rows.load(paths, traces)
    differ = []
    for query, calls in CALLS.items():
        asked = [*traces, *captured] if query in WITH_CAPTURES else traces
        path, new = HERE / f"{query.__name__}.json", text(asked, query, calls)
        if "--check" not in sys.argv:
            path.write_text(new, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != new:
            differ.append(path.name)
    print(f"differ: {', '.join(differ)}" if differ else "golden rows are up to date")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
