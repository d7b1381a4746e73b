"""`traceq diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traceq import query
from traceq.analysis import diff, tables
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import Status
from traceq.query import Result
from traceq.store import files

EPILOG = """
\b
Examples:
  traceq diff eager default
  traceq diff eager default --json
  traceq diff monday tuesday

\b
Un-profiled step times decide which is faster (traceq capture measures them, traceq ingest --step TIME tells them);
without them there is no verdict on speed, only where time goes under the profiler.

\b
Markdown has all that the table has, JSON more; csv, jsonl and parquet have one table: where the difference comes from.
"""


@click.command("diff", epilog=EPILOG)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@store_option
@output_options
def command(first: str, second: str, store: Path | None, output: Output) -> int:
    """Say what changed from run A to run B, where it comes from, and whether it is real."""
    from traceq.show import page, verdicts

    with files.open_store(files.store_path(store)) as con:
        query.check_runs(con, [first, second])
        found = diff.diff(con, first, second)
        trust = query.trust(con, list(dict.fromkeys([first, second])))
    result = tables.parts(found)
    whole = Result(result.query, result.params, result.columns, result.rows, trust=trust)
    output.write(whole, *page.drawn(lambda on: verdicts.diff(found, on), output.is_wide), **_more(found))
    return Status.OK


def _more(found: diff.Diff) -> dict[str, Any]:
    """What `--json` has beside the parts."""
    anchor = found.anchor
    return {
        "sentence": found.sentence,
        "direction": found.direction,
        "also": found.also,
        "caveats": found.caveats,
        "measures": tables.measures(found),
        "anchor": anchor
        and {"a_ns": anchor.first_ns, "b_ns": anchor.second_ns, "holds": anchor.holds, "changes": anchor.changes},
        "graph_breaks": found.breaks,
        "pays_after_steps": found.pays_after_steps,
        "periods": {"a": found.first.periods, "b": found.second.periods},
        "period_ns": {"a": found.first.period_ns, "b": found.second.period_ns},
        "categories_by_name": found.by_name,
        **{name: tables.records(make(found)) for name, make in LISTS.items()},
    }


LISTS = {
    "gpus": tables.gpus,
    "categories": tables.categories,
    "kernels": tables.kernels,
    "fused": tables.fused,
    "unfused": tables.unfused,
}
