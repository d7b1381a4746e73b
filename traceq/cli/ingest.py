"""`traceq ingest`."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import click

from traceq import query
from traceq.cli.options import Output, output_options, rules_option, store_option
from traceq.errors import Status, TraceqError
from traceq.ingest.pipeline import Options, Outcome, ingest
from traceq.query import Column, Result
from traceq.show import narrate
from traceq.store import files, rules
from traceq.units import parse_duration_ns

EPILOG = """
\b
Examples:
  traceq ingest trace.json.gz
  traceq ingest eager.json --label eager --step 12.3ms
  traceq ingest 'ranks/*.json.gz' --label job42
  traceq ingest report.sqlite --step-range 'step*'
  zcat trace.json.gz | traceq ingest - --label piped

\b
A file that is in the store already is not read again. Files that say they are one of several ranks form one run. Files
that are cut or damaged are read as far as they go, and marked salvaged.
"""
COLUMNS = (
    *(Column(name, "VARCHAR") for name in ("path", "result", "run")),
    *(Column(name, "BIGINT", "count") for name in ("events", "kept", "skipped", "lost")),
    Column("size_bytes", "BIGINT", "bytes"),
    *(Column(name, "BIGINT", "ns") for name in ("read_ns", "derive_ns")),
)


WHY = {"ignored": "not a trace"}


class Duration(click.ParamType[int]):
    """Text such as 12.3ms as ns."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            ns = parse_duration_ns(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return ns or self.fail("a step takes longer than nothing", param, ctx)


@click.command("ingest", epilog=EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--label", help="Name of the run; else the file's name, or the folder's for one of several ranks.")
@click.option(
    "--step", "step_ns", type=Duration(), metavar="TIME", help="Un-profiled pipelined step time, e.g. 12.3ms."
)
@click.option(
    "--step-synced", "synced_ns", type=Duration(), metavar="TIME", help="The same with the GPU waited for after each."
)
@click.option("--step-range", metavar="GLOB", help="The ranges that are steps, where no ProfilerStep marks are.")
@click.option("--strict", "is_strict", is_flag=True, help="Refuse files that are cut or damaged.")
@rules_option
@store_option
@output_options
def command(
    paths: tuple[str, ...], label: str | None, step_ns: int | None, synced_ns: int | None, step_range: str | None,
    is_strict: bool, rules_file: Path | None, store: Path | None, output: Output,
) -> int:  # fmt: skip
    """Read torch.profiler traces and Nsight Systems exports into the store.

    PATH is a trace (JSON, also .gz or .zst, told by content), an export of nsys (SQLite, or a folder of Parquet
    files), a folder, a glob, or - for standard input.
    """
    path = files.store_path(store)
    if output.path and any(Path(p).exists() and output.path.exists() and output.path.samefile(p) for p in paths):
        raise TraceqError(f"{output.path}: -o would overwrite an input", "name another file", Status.USAGE)
    users_rules = rules.read(rules_file) if rules_file else None
    options = Options(label, step_ns, step_range, is_strict, users_rules, synced_ns)
    with contextlib.nullcontext(lambda _: None) if output.is_quiet else narrate.progress() as report:
        outcomes, publish_ns = ingest(paths, path, options, report)
    runs = list(dict.fromkeys(o.run for o in outcomes if o.run and o.result != "failed"))
    rows = [_row(o) for o in outcomes]
    result = Result("ingest", {}, COLUMNS, rows, trust=_trust(path, runs))
    spent = {"read_ns": sum(o.read_ns or 0 for o in outcomes), "derive_ns": sum(o.derive_ns or 0 for o in outcomes)}
    output.write(result, store=str(path), timings={**spent, "publish_ns": publish_ns})
    _narrate(outcomes, output, runs, store)
    return _status(outcomes)


def _row(o: Outcome) -> tuple[object, ...]:
    return (o.path, o.result, o.run, o.events, o.kept, o.skipped, o.lost, o.size_bytes, o.read_ns, o.derive_ns)


def _trust(path: Path, runs: list[str]) -> dict[str, dict[str, object]]:
    if not runs:
        return {}
    with files.open_store(path) as con:
        return query.trust(con, runs)


def _narrate(outcomes: list[Outcome], output: Output, runs: list[str], store: Path | None) -> None:
    for o in outcomes:
        if o.error:
            narrate.fail(o.error)
        elif not output.is_quiet:
            for text in filter(None, [o.placed, WHY.get(o.result)]):
                narrate.note(f"{o.path}: {text}")
    if runs and not output.is_quiet:
        where = f" --store {shlex.quote(str(store))}" if store else ""
        narrate.note(f"next: traceq query summary --run {shlex.quote(runs[0])}{where}")


def _status(outcomes: list[Outcome]) -> int:
    errors: list[TraceqError] = [o.error for o in outcomes if o.error]
    if not errors:
        return Status.OK
    return errors[0].status if len(errors) == len(outcomes) else Status.PARTIAL
