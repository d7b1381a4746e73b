"""`traceq runs`."""

from __future__ import annotations

from pathlib import Path

import click

from traceq import query
from traceq.cli.options import Output, output_options, store_option
from traceq.store import files


@click.command("runs", epilog="\b\nExamples:\n  traceq runs\n  traceq runs --json --store other.duckdb")
@store_option
@output_options
def command(store: Path | None, output: Output) -> None:
    """List the runs in the store."""
    with files.open_store(files.store_path(store)) as con:
        result = query.run(con, query.load("runs"), {}, output.limit)
    output.write(result)
