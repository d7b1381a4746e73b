"""`traceq sql`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import duckdb

from traceq import query
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import Status, TraceqError
from traceq.query import Result
from traceq.store import files

EPILOG = """
\b
Examples:
  traceq sql "SELECT category, sum(dur_ns) FROM kernels GROUP BY 1 ORDER BY 2 DESC"
  traceq sql "SELECT * FROM gaps WHERE dur_ns > 100000" --format csv > gaps.csv
  traceq sql - < question.sql

\b
Only the store can be read: no files, no network, no extensions, and nothing can be written.
"""


@click.command("sql", epilog=EPILOG)
@click.argument("statement", metavar="STATEMENT|-")
@store_option
@output_options
def command(statement: str, store: Path | None, output: Output) -> None:
    """Run one SQL statement on the store, read-only. `traceq schema` shows the tables."""
    text = sys.stdin.read() if statement == "-" else statement
    with files.locked_down(files.store_path(store)) as con:
        _check_one(con, text)
        columns, rows, truncated = query.fetch(con, text, {}, output.limit)
        trust = query.trust(con, [])
    output.write(Result("sql", {"statement": text}, columns, rows, truncated, trust=trust))


def _check_one(con: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        count = len(con.extract_statements(text))
    except duckdb.Error as error:
        raise TraceqError(*query.explain(error)) from error
    if count != 1:
        raise TraceqError(f"one statement at a time, not {count}", 'traceq sql "SELECT …"', Status.USAGE)
