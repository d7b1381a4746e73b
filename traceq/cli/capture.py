"""`traceq capture`."""

from __future__ import annotations

import shlex
import traceback
from pathlib import Path

import click

from traceq.capture import launch
from traceq.capture.launch import Ended, Target
from traceq.capture.record import Spec
from traceq.errors import Status, TraceqError
from traceq.show import narrate
from traceq.store import files as stores

EPILOG = """
\b
Examples:
  traceq capture train.py --epochs 1
  traceq capture --label small -m package.train --batch 8
  traceq capture -c "import torch; torch.mm(torch.ones(4, 4), torch.ones(4, 4))"

\b
Options of traceq stand before the script; all that follows the script is the script's own. Its standard output,
standard error and exit status are what they are without traceq; notes of traceq begin with "traceq:".
"""
FOLDER = Path("traces")


class ScriptCommand(click.Command):
    """A command whose options end at the script, or at what `-m` or `-c` names: the rest is the script's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {o for p in self.params if isinstance(p, click.Option) and not p.is_flag for o in p.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            if args[at][:2] in ("-m", "-c"):
                end = at + 1 if len(args[at]) > 2 else at + 2
                args = [*args[:end], "--", *args[end:]]
                break
            at += 2 if args[at] in takes_value else 1
        return super().parse_args(ctx, args)


@click.command("capture", cls=ScriptCommand, epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("-c", "code", metavar="CODE", help="Run this code, as python -c does.")
@click.option("--label", help="Name of the run; else the script's name.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="The trace; else in traces/.")
@click.option(
    "--step", type=click.Choice(["auto", "optimizer", "forward", "manual"]), default="auto",
    help="What ends a step: the optimizer's step, a call of the outermost module, or traceq.capture.step().",
)  # fmt: skip
@click.option("--wait", type=click.IntRange(min=0), default=1, help="Steps to let pass before the profiler warms up.")
@click.option(
    "--warmup", type=click.IntRange(min=0), help="Steps before timing; else until they are alike, at most 20."
)
@click.option("--active", type=click.IntRange(min=1), default=5, help="Steps to record.")
@click.option("--timing/--no-timing", "is_timed", default=True, help="Time steps without the profiler first.")
@click.option("--shapes/--no-shapes", default=True, help="Record shapes of inputs.")
@click.option("--stack", is_flag=True, help="Record Python stacks and modules.")
@click.option("--memory", is_flag=True, help="Record allocations.")
@click.option("--flops", is_flag=True, help="Record estimated operations.")
@click.option("--store", metavar="FILE", type=click.Path(path_type=Path), help="The store; else as everywhere.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No notes on standard error.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS...]")
def command(
    module: str | None, code: str | None, label: str | None, output: Path | None, store: Path | None, is_quiet: bool,
    words: tuple[str, ...], **how: object,
) -> int:  # fmt: skip
    """Run SCRIPT as Python would, time it, profile a few steps, and read the trace into the store."""
    target = _target(module, code, words)
    try:
        launch.check(target)
    except (SyntaxError, ValueError) as error:
        traceback.print_exception(error.with_traceback(None))
        return Status.FAILED
    path = stores.store_path(store)
    label = label or target.label
    files = launch.reserve(output or FOLDER / f"{label.replace('/', '-')}.json.gz")
    if not is_quiet:
        narrate.note(f"writing {files.trace}")
    spec = Spec(target.kind, target.name, list(target.argv), "", "", label, target.command, **how)  # type: ignore[arg-type]
    ended = launch.run(spec, files)
    run, fault = _ingest(ended, label, path)
    _tell(ended, run, store, is_quiet)
    if fault:
        narrate.fail(fault)
    return ended.status or (fault.status if fault else Status.OK)


def _ingest(ended: Ended, label: str, store: Path) -> tuple[str | None, TraceqError | None]:
    """The run that the traces became; what went wrong, if the script itself did not."""
    if not ended.traces:
        return None, TraceqError("no trace was written", _why_not(ended), Status.FAILED)
    from traceq.ingest.pipeline import Options, ingest

    outcomes, _ = ingest(ended.traces, store, Options(label=label))
    failed = [o.error for o in outcomes if o.error]
    return next((o.run for o in outcomes if o.run and not o.error), None), failed[0] if failed else None


def _why_not(ended: Ended) -> str:
    if ended.record is None:
        return "the script ended by os._exit or was killed: nothing can be saved then; let it end, or stop it by Ctrl-C"
    return "import torch, and run something" if ended.record.torch_version is None else "let the script run longer"


def _tell(ended: Ended, run: str | None, store: Path | None, is_quiet: bool) -> None:
    """What was recorded, and what to type next."""
    if is_quiet:
        return
    found = ended.record
    for note in found.notes if found else []:
        narrate.note(note)
    if found and found.torch_version and not found.gpu:
        narrate.note("no GPU was used: only the CPU side is recorded")
    if run:
        where = f" --store {shlex.quote(str(store))}" if store else ""
        narrate.note(f"ingested as run {run!r}")
        narrate.note(f"next: traceq query summary --run {shlex.quote(run)}{where}")
        narrate.note(f"next: traceq query top_ops --run {shlex.quote(run)}{where}")


def _target(module: str | None, code: str | None, words: tuple[str, ...]) -> Target:
    if module is not None and code is not None:
        raise TraceqError("-m and -c exclude each other", "traceq capture --help", Status.USAGE)
    if module is not None:
        return Target("module", module, words)
    if code is not None:
        return Target("code", code, words)
    if not words:
        raise TraceqError("which script?", "traceq capture SCRIPT [ARGS…]", Status.USAGE)
    return Target("script", words[0], words[1:])
