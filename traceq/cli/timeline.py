"""`traceq timeline`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import duckdb

from traceq import query
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import Status, TraceqError
from traceq.store import files

EPILOG = """
\b
Examples:
  traceq timeline --run eager
  traceq timeline --run eager --step 4
  traceq timeline --run eager --step 4 --json

\b
A line is a stream, the idle time of a GPU, or a thread; a letter is what fills most of that moment, a capital if at
least half of the moment is filled. The line above each group says what its letters mean.
"""


@click.command("timeline", epilog=EPILOG)
@click.option("--run", "run_label", metavar="LABEL", help="The run; else the only one.")
@click.option("--step", type=int, metavar="N", help="The step; else the first that is not flagged.")
@click.option("--rank", type=int, metavar="N", help="The rank; else the first.")
@store_option
@output_options
def command(run_label: str | None, step: int | None, rank: int | None, store: Path | None, output: Output) -> int:
    """Draw a step: streams, what the GPU waited for, threads."""
    from traceq.show import timeline

    is_drawn = output.format == "table"
    buckets = timeline.buckets_for(sys.stdout, output.is_wide)
    with files.open_store(files.store_path(store)) as con:
        run = run_label or _only_run(con)
        asked = query.load("timeline")
        given = {"run": run, "step": step, "rank": rank, "buckets": buckets}
        result = query.run(con, asked, given, None if is_drawn else output.limit)
        if not result.rows:
            raise _nothing(con, run, step, rank)
    output.write(result, draw=lambda out: timeline.draw(result, out, output.is_wide, buckets))
    return Status.OK


def _only_run(con: duckdb.DuckDBPyConnection) -> str:
    runs = list(dict.fromkeys(str(row[0]) for row in query.run(con, query.load("runs"), {}).rows))
    if len(runs) != 1:
        what = f"which run? there are {', '.join(runs)}" if runs else "there is no run in the store"
        raise TraceqError(what, "traceq timeline --run LABEL", Status.USAGE)
    return runs[0]


def _nothing(con: duckdb.DuckDBPyConnection, run: str, step: int | None, rank: int | None) -> TraceqError:
    found = query.run(con, query.load("steps"), {"run": run})
    at = [c.name for c in found.columns].index("step")
    steps = ", ".join(str(number) for number in dict.fromkeys(row[at] for row in found.rows)) or "none"
    asked = "".join(f" {name} {value}" for name, value in (("step", step), ("rank", rank)) if value is not None)
    what = f"{run}: nothing to draw{' for' if asked else ''}{asked}"
    return TraceqError(what, f"its steps are {steps}", Status.FAILED)
