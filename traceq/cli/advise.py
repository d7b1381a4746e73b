"""`traceq advise`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from traceq import query
from traceq.analysis import advise, tables
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import Status
from traceq.store import files

EPILOG = """
\b
Examples:
  traceq advise eager
  traceq advise eager --reached default
  traceq advise eager --json

\b
Bounds need the un-profiled step time (traceq capture measures it, traceq ingest --step TIME tells it). Recorded with
record_shapes=True and with_stack=True a trace tells more: docs/verdict.md.

\b
Markdown has all that the table has, JSON more; csv, jsonl and parquet have one table: where the step goes.
"""


@click.command("advise", epilog=EPILOG)
@click.argument("run", metavar="RUN")
@click.option("--reached", metavar="LABEL", help="A compiled run of the same program: what it reached of the bound.")
@store_option
@output_options
def command(run: str, reached: str | None, store: Path | None, output: Output) -> int:
    """Say whether torch.compile will help the eager run RUN, by how much at most, and what to do first."""
    from traceq.show import page, verdicts

    labels = [run] if reached is None else [run, reached]
    with files.open_store(files.store_path(store)) as con:
        query.check_runs(con, labels)
        found = advise.advise(con, run, reached)
        trust = query.trust(con, labels)
    output.write(
        replace(tables.split(found), trust=trust),
        *page.drawn(lambda on: verdicts.advise(found, on), output.is_wide),
        **_more(found),
    )
    return Status.OK


def _more(found: advise.Advice) -> dict[str, Any]:
    """What `--json` has beside the rows: every field of the advice."""
    return asdict(found)
