"""The command line: one module a verb, loaded when it is used, and one place that turns errors into exit statuses."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

import click

from traceq.errors import Status, TraceqError
from traceq.resources import folder
from traceq.version import __version__

VERBS = {
    "capture": "Run a script, time it, profile it, and read the trace in.",
    "ingest": "Read traces into the store.",
    "runs": "List the runs in the store.",
    "query": "Answer a canned question, list them, or check them.",
    "timeline": "Draw a step: streams, idle time by cause, threads.",
    "tui": "Look at a store with keys and mouse.",
    "advise": "Say whether torch.compile will help, and by how much at most.",
    "check": "Compare a run with a baseline, for a pipeline.",
    "diff": "Say what changed between two runs, and whether it is real.",
    "sql": "Run any SQL on the store, read-only.",
    "reclassify": "Apply kernel rules again, your own too.",
    "schema": "Show the tables and columns, with what they mean.",
    "demo": "Try traceq on a bundled pair of H200 traces.",
}
EPILOG = """
\b
Examples:
  traceq ingest trace.json.gz --label eager
  traceq query gemm_share --run eager
  traceq sql "SELECT category, sum(dur_ns) FROM kernels GROUP BY 1"

\b
The store is --store, else $TRACEQ_STORE, else ./traceq.duckdb.
Exit status: 0 fine, 1 the query failed, 2 usage, 3 input unreadable, 4 store missing, locked or newer,
5 a threshold of check was crossed, 6 some inputs failed and the others are in, 70 internal error, 130 interrupted,
141 nobody reads the output.
"""
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class Verbs(click.Group):
    """A group that knows its verbs' names and one line about each without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            if list(folder("queries").glob(f"*/{name}.sql")) and name.isidentifier():
                ctx.fail(f"{name} is no verb but a question: traceq query {name}")
            return None
        command: click.Command = importlib.import_module(f"traceq.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings=SETTINGS, epilog=EPILOG, invoke_without_command=True)
@click.version_option(__version__, prog_name="traceq", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Where does the GPU's time go, and what would make it faster?

    traceq reads torch.profiler traces into one DuckDB file and answers from it with open SQL.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a documented status."""
    sys.exit(run(argv))


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line; every error becomes one line on standard error and a status."""
    _never_fail_to_print()
    out = sys.stdout
    try:
        status = cli.main(argv, prog_name="traceq", standalone_mode=False)
        sys.stdout.flush()
        return int(status or 0)
    except TraceqError as error:
        return _report(error)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "traceq"
        return _report(TraceqError(error.format_message().rstrip("."), f"{command} --help", Status.USAGE))
    except (KeyboardInterrupt, click.Abort):
        print("traceq: interrupted", file=sys.stderr)
        return Status.INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except SystemExit:
        if sys.stdout is not out:  # click swaps it for one that keeps quiet when it met a broken pipe
            return _nobody_reads()
        raise
    except Exception as error:
        if "interrupted" in str(error).lower() and type(error).__name__ in ("RuntimeError", "InterruptException"):
            print("traceq: interrupted", file=sys.stderr)  # DuckDB's word for a signal that it saw itself
            return Status.INTERRUPTED
        if os.environ.get("TRACEQ_DEBUG") == "1":
            raise
        reason = str(error).splitlines()[0] if str(error) else ""
        what = f"internal error: {type(error).__name__}: {reason}"
        return _report(TraceqError(what, "TRACEQ_DEBUG=1 shows where; please report it", Status.INTERNAL))


def _report(error: TraceqError) -> int:
    from traceq.show.narrate import fail

    if os.environ.get("TRACEQ_DEBUG") == "1":
        raise error
    fail(error)
    return error.status


def _nobody_reads() -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE


def _never_fail_to_print() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
