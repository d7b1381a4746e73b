"""`traceq schema`."""

from __future__ import annotations

import difflib

import click

from traceq import query
from traceq.cli.options import Output, output_options
from traceq.errors import Status, TraceqError
from traceq.store import files


@click.command(
    "schema", epilog="\b\nExamples:\n  traceq schema\n  traceq schema kernels\n  traceq schema gaps --format markdown"
)
@click.argument("table", required=False)
@output_options
def command(table: str | None, output: Output) -> None:
    """Show the tables and views of a store, or the columns of one, with what they mean."""
    asked = query.load("schema" if table else "tables")
    with files.empty_store() as con:
        result = query.run(con, asked, {"table": table} if table else {}, None)
    if not result.rows:
        near = difflib.get_close_matches(str(table), _tables(), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise TraceqError(f"no table or view is called {table!r}{meant}", "traceq schema lists them", Status.USAGE)
    output.write(result)


def _tables() -> list[str]:
    with files.empty_store() as con:
        return [str(row[0]) for row in query.run(con, query.load("tables"), {}).rows]
