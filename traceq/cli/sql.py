"""`traceq sql`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import duckdb

from traceq import query
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import TraceqError
from traceq.query import Result
from traceq.store import files
from traceq.store.lockdown import check_statement, locked_down

EPILOG = """
\b
Examples:
  traceq sql "SELECT category, sum(dur_ns) FROM kernels GROUP BY 1 ORDER BY 2 DESC"
  traceq sql "SELECT * FROM gaps WHERE dur_ns > 100000" --format csv > gaps.csv
  traceq sql - < question.sql

\b
Only the store can be read: no files, no network, no extensions, and nothing can be written.
"""


class Sql(click.Command):
    """A command whose argument may begin with an SQL comment."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        texts = [arg for arg in args if arg.startswith("--") and any(c.isspace() for c in arg)]
        return super().parse_args(ctx, [arg for arg in args if arg not in texts] + (["--", *texts] if texts else []))


@click.command("sql", cls=Sql, epilog=EPILOG)
@click.argument("statement", metavar="STATEMENT|-")
@store_option
@output_options
def command(statement: str, store: Path | None, output: Output) -> None:
    """Run one SQL statement on the store, read-only. `traceq schema` shows the tables."""
    text = sys.stdin.read() if statement == "-" else statement
    with locked_down(files.store_path(store)) as con:
        try:
            check_statement(con, text)
        except duckdb.Error as error:
            raise TraceqError(*query.explain(error)) from error
        columns, rows, truncated = query.fetch(con, text, {}, output.limit)
        trust = query.trust(con, [])
    output.write(Result("sql", {"statement": text}, columns, rows, truncated, "raw", trust))
