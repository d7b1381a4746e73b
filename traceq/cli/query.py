"""`traceq query`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from traceq import lint, query
from traceq.cli.options import Output, output_options, store_option
from traceq.errors import Status, TraceqError
from traceq.query import Column, Query, Result
from traceq.show import narrate
from traceq.store import files

EPILOG = """
\b
Examples:
  traceq query --list
  traceq query gemm_share --run eager
  traceq query top_kernels --run eager -p top=5 --json
  traceq query gemm_share --help
"""
LISTED = (Column("query", "VARCHAR"), Column("area", "VARCHAR"), Column("title", "VARCHAR"))


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in query.names() if name.startswith(incomplete)]


@click.command("query", epilog=EPILOG, add_help_option=False)
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--run", "run_label", metavar="LABEL", help="The run to ask about; else all.")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the query.")
@click.option("--list", "is_list", is_flag=True, help="List the questions.")
@click.option("--check", "is_check", is_flag=True, help="Check every query file; exit 1 if one has a fault.")
@click.option("-h", "--help", "is_help", is_flag=True, help="Show this, or what NAME asks, takes and gives.")
@store_option
@output_options
@click.pass_context
def command(
    ctx: click.Context, name: str | None, run_label: str | None, params: tuple[str, ...], is_list: bool, is_check: bool,
    is_help: bool, store: Path | None, output: Output,
) -> int:  # fmt: skip
    """Answer the canned question NAME from the store."""
    if is_help:
        click.echo(_describe(query.load(name)) if name else ctx.get_help())
        return Status.OK
    if is_check:
        return _check()
    if is_list:
        output.write(Result("list", {}, LISTED, [(q.name, q.area, q.title) for q in query.all_queries()]))
        return Status.OK
    if not name:
        raise TraceqError("which question?", "traceq query --list shows them", Status.USAGE)
    given: dict[str, query.Value | str] = dict(_pair(text) for text in params)
    if run_label is not None:
        given["run"] = run_label
    asked = query.load(name)
    with files.open_store(files.store_path(store)) as con:
        result = query.run(con, asked, given, output.limit)
    output.write(result)
    return Status.OK


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise TraceqError(
            f"-p takes NAME=VALUE, not {text!r}", "traceq query NAME --help lists parameters", Status.USAGE
        )
    return name, value


def _check() -> int:
    faults = lint.check_all()
    for fault in faults:
        print(fault, file=sys.stdout)
    narrate.note(f"{len(query.names())} queries checked, {len(faults)} faults")
    return Status.FAILED if faults else Status.OK


def _describe(asked: Query) -> str:
    lines = [asked.title, "", asked.what, asked.value, "", "Parameters:"]
    lines += [
        f"  {p.name} ({p.type}, default {'NULL' if p.default is None else p.default}): {p.meaning}"
        for p in asked.params
    ]
    lines += ["  none"] if not asked.params else []
    lines += ["", "Columns:"]
    lines += [f"  {c.name} ({', '.join(filter(None, [c.type, c.unit]))}): {c.meaning}" for c in asked.columns]
    return "\n".join([*lines, "", f"Order: {asked.order}", "", "Examples:", *(f"  {e}" for e in asked.examples)])
