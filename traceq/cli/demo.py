"""`traceq demo`."""

from __future__ import annotations

import json
import shlex
import tempfile
from pathlib import Path

import click

from traceq import query
from traceq.cli.options import Output
from traceq.ingest.pipeline import Options, ingest
from traceq.resources import folder
from traceq.show import narrate
from traceq.store import files
from traceq.units import parse_duration_ns

SHOWN = ("runs", "gemm_share", "launch_gaps", "kernel_histogram", "diff_categories")


@click.command("demo", epilog="\b\nExample:\n  traceq demo")
def command() -> None:
    """Ingest a bundled pair of H200 traces, eager and compiled, into a temporary store, and ask the first questions."""
    path = Path(tempfile.mkdtemp(prefix="traceq-demo-")) / "demo.duckdb"
    source = folder("demo")
    for trace in json.loads((source / "demo.json").read_text("utf-8")):
        options = Options(label=trace["run"], step_ns=parse_duration_ns(trace["step"]))
        outcomes, _ = ingest([str(source / trace["file"])], path, options)
        if outcomes[0].error:
            raise outcomes[0].error
    output = Output(is_quiet=True)
    with files.open_store(path) as con:
        for name in SHOWN:
            asked = query.load(name)
            click.secho(f"\n{asked.title}", bold=True)
            click.echo(asked.what)
            result = query.run(con, asked, {})
            output.write(result)
        narrate.trust(result.trust)
    click.echo(f"\nThe store: {path}")
    click.echo(f"Next:      traceq query top_kernels --run eager --store {shlex.quote(str(path))}")
