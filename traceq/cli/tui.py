"""`traceq tui`."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from traceq.errors import Status, TraceqError
from traceq.store.path import store_path

EPILOG = """
\b
Examples:
  traceq tui
  traceq tui other.duckdb --run eager
  traceq tui trace.json.gz
  traceq tui --serve

\b
The store is the argument (or --store), else $TRACEQ_STORE, else the newest .duckdb file of this folder. A trace is
read into a temporary store first. --serve shows the same in a browser; without a login, so to this machine only,
unless --host says otherwise (from afar: ssh -L 8000:localhost:8000 HOST).
"""
MAGIC = b"DUCK"
STORE_SUFFIX = ".duckdb"


@click.command("tui", epilog=EPILOG)
@click.argument("path", required=False, metavar="[STORE|TRACE]", type=click.Path(path_type=Path))
@click.option("--store", metavar="FILE", type=click.Path(path_type=Path), help="The store, as everywhere.")
@click.option("--run", "run_label", metavar="LABEL", help="The run to look at; else the newest.")
@click.option("--serve", "is_served", is_flag=True, help="Show it in a browser; needs traceq-gpu[web].")
@click.option("--host", default="localhost", show_default=True, help="With --serve: where to listen.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="With --serve.")
def command(
    path: Path | None, store: Path | None, run_label: str | None, is_served: bool, host: str, port: int
) -> None:
    """Look at a store with keys and mouse."""
    if path and store:
        raise TraceqError(f"{path} or {store}: one of them is to be looked at", "traceq tui --help", Status.USAGE)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not (is_terminal or is_served or os.environ.get("TEXTUAL_DRIVER")):
        raise TraceqError("traceq tui needs a terminal", "traceq query answers in a pipe", Status.USAGE)
    with _opened(path or store, store is not None) as (shown, trace):
        if is_served:
            from traceq.tui.serve import serve

            serve(shown, run_label, host, port)
        else:
            from traceq.tui.app import TraceqApp

            TraceqApp(shown, run_label, trace).run()


@contextlib.contextmanager
def _opened(path: Path | None, is_store: bool) -> Iterator[tuple[Path, Path | None]]:
    """The store to look at; of a trace, one that is gone afterwards, and the trace."""
    if path is None and not os.environ.get("TRACEQ_STORE"):
        from traceq.tui.access import newest_store

        path = newest_store(Path())
    if path is None or is_store or _is_store(path):
        yield store_path(path), None
        return
    with tempfile.TemporaryDirectory(prefix="traceq-tui-") as folder:
        store = Path(folder) / "trace.duckdb"
        _ingest(path, store)
        yield store, path


def _is_store(path: Path) -> bool:
    """By what it begins with; by its name where it is not there or empty."""
    if path.suffix == STORE_SUFFIX:
        return True
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(12)[8:] == MAGIC


def _ingest(path: Path, store: Path) -> None:
    from traceq.ingest.pipeline import Options, ingest
    from traceq.show import narrate

    with narrate.progress() as report:
        outcomes, _ = ingest([str(path)], store, Options(), report)
    errors = [outcome.error for outcome in outcomes if outcome.error]
    if len(errors) == len(outcomes):
        for error in errors[:-1]:
            narrate.fail(error)
        raise errors[-1] if errors else TraceqError(f"{path}: no trace in it", "traceq ingest --help", Status.INPUT)
    for error in errors:
        narrate.fail(error)
