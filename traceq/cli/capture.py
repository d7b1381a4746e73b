"""`traceq capture`."""

from __future__ import annotations

import contextlib
import shlex
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from traceq import query
from traceq.analysis import blocks, outputs
from traceq.capture import compiling, distributed, interrupts, launch, modes, nsys
from traceq.capture.distributed import World
from traceq.capture.launch import Ended, Target
from traceq.capture.modes import Campaign
from traceq.capture.record import NO_TRACER, NOT_WRITTEN, TWO_PROFILERS, Spec
from traceq.errors import Status, TraceqError
from traceq.query import Column, Result
from traceq.show import narrate
from traceq.store import files as stores
from traceq.store.path import is_text
from traceq.units import show_ns

EPILOG = """
\b
Examples:
  traceq capture train.py --epochs 1
  traceq capture --label small -m package.train --batch 8
  traceq capture --compare eager,default,reduce-overhead train.py
  traceq capture --compare eager,default --check-outputs --submodules model.py
  traceq capture -c "import torch; torch.mm(torch.ones(4, 4), torch.ones(4, 4))"

\b
Options of traceq stand before the script; all that follows the script is the script's own. Its standard output,
standard error and exit status are what they are without traceq; notes of traceq begin with "traceq:" or "hint:".
With --compare the exit status is 6 if some modes failed and the others are in. Ctrl-C or SIGTERM ends the whole
comparison: the mode that runs is saved but not compared, and those before it are shown; status 130 or 143.
"""
DISTANCES = (
    Column("run", "VARCHAR"),
    Column("what", "VARCHAR"),
    Column("values", "BIGINT", "count"),
    Column("largest_difference", "DOUBLE"),
    Column("of_largest_value", "DOUBLE"),
    Column("remark", "VARCHAR"),
)
NO_GPU_ROWS = (
    "a GPU was used, but none of its activity was recorded: another tool holds the device tracer (nsys around traceq, "
    "CUDA_INJECTION64_PATH), the driver keeps it from ordinary users (NVreg_RestrictProfilingToAdminUsers), or nothing "
    "ran in the steps that were profiled"
)
COMPILES_ITSELF = "{} is not eager: the script itself compiles, so the modes differ by less than their names say"
NO_REASON = "Generated:"  # nsys ends with it where all went well for it
NO_BLOCKS = "--submodules: no block was compiled alone and timed, so there is nothing to rank"
NO_OUTPUTS = "--check-outputs: no two modes gave outputs or losses, so there is nothing to compare"
FROM_SIGNAL = 128
NO_STACKS = "--stack asked for Python stacks, and the trace has none"
BLOCKS = (
    Column("block", "VARCHAR"),
    *(Column(name, "DOUBLE", "ns") for name in ("step_ns", "gain_ns", "gain_low_ns", "gain_high_ns")),
    Column("verdict", "VARCHAR"),
    Column("compile_ns", "BIGINT", "ns"),
    Column("gain_per_compile_s", "DOUBLE", "ns"),
)


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
@click.option("--compare", metavar="MODES", help="Run once a mode: eager,default,reduce-overhead,max-autotune.")
@click.option("--compile-optimizer", is_flag=True, help="With --compare: compile the optimizer's step as well.")
@click.option(
    "--check-outputs", "keep_outputs", is_flag=True, help="With --compare: how far outputs and losses differ."
)
@click.option("--submodules", is_flag=True, help="With --compare: compile each child block alone, and rank them.")
@click.option("--label", help="Name of the run; else the script's name.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="The trace; else in traces/.")
@click.option(
    "--step",
    type=click.Choice(["auto", "optimizer", "forward", "manual"]),
    default="auto",
    help="What ends a step: the optimizer's step, a call of the outermost module, or traceq.capture.step().",
)
@click.option("--profiler", type=click.Choice(["torch", "nsys"]), default="torch", help="Whose recording of the steps.")
@click.option("--wait", type=click.IntRange(min=0), default=1, help="Steps to let pass before the profiler warms up.")
@click.option("--warmup", type=click.IntRange(min=0), help="Steps before timing; else until alike, at most 20.")
@click.option("--active", type=click.IntRange(min=1), default=5, help="Steps to record.")
@click.option("--timing/--no-timing", "is_timed", default=True, help="Time steps without the profiler first.")
@click.option("--shapes/--no-shapes", default=True, help="Record shapes of inputs.")
@click.option("--stack", is_flag=True, help="Record Python stacks and modules.")
@click.option("--memory", is_flag=True, help="Record allocations.")
@click.option("--flops", is_flag=True, help="Record estimated operations.")
@click.option("--measure-peaks/--no-measure-peaks", default=True, help="Measure what the GPU reaches, once a GPU.")
@click.option("--store", metavar="FILE", type=click.Path(path_type=Path), help="The store; else as everywhere.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No notes on standard error.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS...]")
def command(
    module: str | None, code: str | None, compare: str | None, submodules: bool, label: str | None,
    output: Path | None, measure_peaks: bool, store: Path | None, is_quiet: bool, words: tuple[str, ...], **how: Any,
) -> int:  # fmt: skip
    """Run SCRIPT as Python would, time it, profile a few steps, and read the trace into the store."""
    target = _target(module, code, words)
    chosen = modes.parse(compare) if compare is not None else ()
    if not chosen and (submodules or how["keep_outputs"] or how["compile_optimizer"]):
        raise TraceqError("that is for --compare", "traceq capture --compare eager,default …", Status.USAGE)
    if submodules and compiling.EAGER not in chosen:
        hint = f"--compare {compiling.EAGER},{','.join(chosen)}"
        raise TraceqError("--submodules ranks the blocks against the eager mode", hint, Status.USAGE)
    path = stores.store_path(store)
    try:
        launch.check(target)
    except (SyntaxError, ValueError) as error:
        traceback.print_exception(error.with_traceback(None))
        return Status.FAILED
    if how["profiler"] == "nsys":
        nsys.find()
        if output and output.suffix not in ("", ".sqlite"):
            raise TraceqError(f"{output}: an export of nsys is an SQLite file", "-o FILE.sqlite", Status.USAGE)
    elif output and output.suffix == ".sqlite":
        raise TraceqError(f"{output}: a trace of torch is JSON", "-o FILE.json.gz, or --profiler nsys", Status.USAGE)
    world = distributed.world()
    if output and not world and (not output.name or output.is_dir()):
        raise TraceqError(f"-o {output}: that is a folder", "-o FILE", Status.USAGE)
    if world and how["profiler"] == "nsys":
        raise TraceqError("--profiler nsys runs one process", "leave it out under torchrun", Status.USAGE)
    if world and chosen:
        raise TraceqError("--compare runs one process", "start torchrun once a mode, or without it", Status.USAGE)
    if path.exists():
        stores.open_store(path).close()  # what it cannot be read for is not found out after hours
    elif not path.absolute().parent.is_dir():
        raise TraceqError(f"{path}: there is no such folder", "name another with --store", Status.STORE)
    if label is not None and not is_text(label):
        raise TraceqError("--label: a label is text, in UTF-8", "traceq capture --label NAME …", Status.USAGE)
    label = _fresh(label or target.label, path, is_quiet) if chosen else label or target.label
    spec = Spec(target.kind, target.name, list(target.argv), "", "", label, target.command, **how)
    spec.is_quiet = is_quiet or bool(world and world.rank)
    if world:
        spec.rank, spec.world_size = world.rank, world.size
    campaign = Campaign(spec, chosen, submodules, output, measure_peaks and not world, world)
    with distributed.undisturbed() if world else contextlib.nullcontext():
        return Session(path, store, spec.is_quiet).run(campaign)


class Session:
    """One command: its children, what became of each, and what is said of it."""

    def __init__(self, store: Path, given: Path | None, is_quiet: bool) -> None:
        self._store = store
        self._where = f" --store {shlex.quote(str(given))}" if given else ""
        self._is_quiet = is_quiet

    def run(self, campaign: Campaign) -> int:
        """Run all children, read each in as it ends, and finish with the tables and the next commands."""
        heard: list[int] = []
        with interrupts.heeded(heard) if campaign.modes else contextlib.nullcontext():
            status = self._run(campaign, heard)
        return FROM_SIGNAL + heard[0] if campaign.modes and heard else status

    def _run(self, campaign: Campaign, heard: list[int]) -> int:
        said: set[str] = set()
        ended: dict[str, Ended] = {}
        failed: dict[str, int] = {}
        total = 0
        for label, child in modes.run(campaign, lambda _, trace: self._note(f"writing {trace}"), heard):
            if campaign.modes and heard and child.status:
                self._note(_cut_short(label, child))
                continue
            if campaign.world and campaign.world.rank:
                return child.status
            total += 1
            run, placed, fault = self._ingest(child, label, campaign.world)
            blind = [*self._blind(run, child), *self._stackless(run, campaign.spec.stack)]
            mixed = [COMPILES_ITSELF.format(label)] if campaign.modes and _compiles_itself(child) else []
            for note in [n for n in [*_notes(child), *blind, *mixed] if n not in said]:
                said.add(note)
                self._note(note)
            if fault:
                narrate.fail(fault)
            if status := child.status or (fault.status if fault else Status.OK):
                failed[label] = status
                if campaign.modes:
                    self._note(f"{label} failed with status {status}; the others go on")
            if run:
                ended[run] = child
                self._note(f"ingested as run {run!r}{f': {placed}' if placed and run != label else ''}")
        if campaign.modes:
            self._compare(campaign, ended)
        for step in filter(None, map(_step, () if campaign.modes else ended.values())):
            self._note(step)
        self._next({run: child for run, child in ended.items() if run not in failed} or ended, bool(campaign.modes))
        if not failed:
            return Status.OK
        return Status.PARTIAL if len(failed) < total else next(iter(failed.values()))

    def _ingest(
        self, ended: Ended, label: str, world: World | None
    ) -> tuple[str | None, str | None, TraceqError | None]:
        """The run that the trace became, of several ranks all, and why it is that one; what went wrong in traceq."""
        traces = [ended.trace] if ended.trace else []
        if world:
            traces, late = distributed.gather(world, ended.files.trace)
            if late:
                self._note(f"no file came of the ranks {', '.join(map(str, late))}")
            if elsewhere := world.size - world.local_size:
                folder = ended.files.trace.parent
                self._note(f"{elsewhere} ranks are on other machines: traceq ingest --label {label} takes in {folder}")
        fault = None if traces else TraceqError("no trace was written", _why_not(ended), Status.FAILED)
        if not traces and ended.record and ended.record.timings and ended.files.record.exists():
            traces = [str(ended.files.record)]  # its steps were timed all the same
        if not traces:
            return None, None, fault
        from traceq.ingest.pipeline import Options, ingest

        step_range = nsys.STEP_RANGE if traces[0].endswith(".sqlite") else None
        try:
            outcomes, _ = ingest(traces, self._store, Options(label=label, step_range=step_range))
        except TraceqError as error:  # of the store
            again = f"traceq ingest --label {shlex.quote(label)}{self._where} {shlex.join(traces)}"
            hint = "; then ".join(filter(None, [error.hint, again]))
            return None, None, TraceqError(f"not ingested: {error.message}", hint, error.status)
        return outcomes[0].run, outcomes[0].placed, next((o.error for o in outcomes if o.error), fault)

    def _blind(self, run: str | None, ended: Ended) -> list[str]:
        """Why there may be no GPU rows although the script used a GPU."""
        if not run or not ended.record or not ended.record.gpu:
            return []
        with stores.open_store(self._store) as con:
            asked = query.load("runs")
            rows = query.run(con, asked, {}).rows
        at = [c.name for c in asked.columns].index("kernels")
        return [NO_GPU_ROWS] if any(row[0] == run and not row[at] for row in rows) else []

    def _stackless(self, run: str | None, wants_stacks: bool) -> list[str]:
        """That there are no Python stacks, where they were asked for."""
        if not run or not wants_stacks:
            return []
        with stores.open_store(self._store) as con:
            asked = query.load("event_counts")
            rows = query.run(con, asked, {"run": run}).rows
        at = [c.name for c in asked.columns].index("stored_in")
        return [] if any(row[at] == "python_calls" for row in rows) else [NO_STACKS]

    def _note(self, text: str) -> None:
        if not self._is_quiet:
            narrate.note(text)

    def _next(self, ended: dict[str, Ended], is_compared: bool) -> None:
        """What to ask next; of a comparison its first two modes, of a run without a trace what was measured."""
        names = [shlex.quote(run) for run in list(ended)[:2]]
        if not names:
            return
        first = next(iter(ended))
        commands = [f"query summary --run {names[0]}"] if ended[first].trace else []
        if len(names) > 1:
            commands += [f"diff {names[0]} {names[1]}", f"query graph_breaks --run {names[1]}"]
        else:
            if ended[first].trace:
                found = ended[first].record
                commands += [f"advise {names[0]}" if found and found.gpu else f"query top_ops --run {names[0]}"]
            label = first.rpartition("/")[0] if is_compared else first
            commands += [f"query captures -p label={shlex.quote(label)}"]
        for command in commands:
            self._note(f"next: traceq {command}{self._where}")

    def _compare(self, campaign: Campaign, ended: dict[str, Ended]) -> None:
        label = campaign.spec.label
        if ended:
            with stores.open_store(self._store) as con:
                self._draw(query.run(con, query.load("captures"), {"label": label}))
                if campaign.has_blocks:
                    self._draw(Result("blocks", {}, BLOCKS, _block_rows(con, label, ended)), NO_BLOCKS)
        if campaign.spec.keep_outputs:
            self._draw(Result("outputs", {}, DISTANCES, _distance_rows(ended)), NO_OUTPUTS)

    def _draw(self, result: Result, if_empty: str = "") -> None:
        """A table on standard error: standard output is the script's."""
        from traceq.show import table

        if not result.rows and if_empty:
            self._note(if_empty)
        elif result.rows and not self._is_quiet:
            table.show(result, sys.stderr, False)


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


def _fresh(label: str, store: Path, is_quiet: bool) -> str:
    """A label that no run of the store begins with, so that runs of two comparisons do not mix."""
    if not store.exists():
        return label
    with stores.open_store(store) as con:
        taken = {str(row[0]).partition("/")[0] for row in query.run(con, query.load("runs"), {}).rows}
    number, wanted = 1, label
    while label in taken:
        number += 1
        label = f"{wanted}-{number}"
    if label != wanted and not is_quiet:
        narrate.note(f"the store has runs of {wanted!r}: this comparison is called {label!r}")
    return label


def _cut_short(label: str, ended: Ended) -> str:
    """What is left of the mode that ran when the end of all was asked for."""
    kept = f"{ended.trace} keeps what was recorded" if ended.trace else "nothing of it was recorded"
    return f"{label} was interrupted, and is not compared: {kept}"


def _step(ended: Ended) -> str:
    """What a step took without the profiler, if that was measured."""
    found = ended.record
    kinds = {"pipelined": found.step_pipelined_ns, "synced": found.step_synced_ns} if found else {}
    times = [f"{show_ns(step['median'])} {kind}" for kind, step in kinds.items() if step]
    return f"a step takes {', '.join(times)} (median, without the profiler)" if times else ""


def _why_not(ended: Ended) -> str:
    if ended.record is None and ended.nsys_said not in (None, NO_REASON):
        return f"the script did not come to its end under nsys, which said: {ended.nsys_said}"
    if ended.record is None:
        return "the script ended by os._exit or was killed: nothing can be saved then; let it end, or stop it by Ctrl-C"
    if ended.record.torch_version is None:
        return "the script failed before it imported torch" if ended.status else "import torch, and run something"
    if NO_TRACER in ended.record.notes:
        return "install a torch that has its tracer, as those of pytorch.org and PyPI do"
    if any(note.startswith(NOT_WRITTEN) for note in ended.record.notes):
        return "-o FILE writes it elsewhere"
    if TWO_PROFILERS in ended.record.notes:
        return "leave --profiler nsys out, or the script's own profiler"
    if ended.files.trace.suffix == ".sqlite" and not ended.record.gpu:
        return "nsys records steps on a GPU only: without one leave --profiler out"
    return f"it ended after {ended.record.steps} steps: let it take more, or profile at once with --no-timing"


def _compiles_itself(ended: Ended) -> bool:
    found = ended.record
    return bool(found and found.mode == compiling.EAGER and found.facts and found.facts["compile_phases"])


def _notes(ended: Ended) -> list[str]:
    found = ended.record
    if found is None:
        return []
    blind = found.torch_version is not None and not found.gpu and ended.trace is not None
    notes = [note for note in found.notes if note != NO_TRACER]  # that was said before the script began
    return [*notes, *(["no GPU was used: only the CPU side is recorded"] if blind else [])]


def _block_rows(con: Any, label: str, ended: dict[str, Ended]) -> list[tuple[object, ...]]:
    """The blocks that were compiled alone, ranked."""
    steps: dict[str, list[float]] = {}
    for run, _, kind, _, _, _, step_ns in query.run(con, query.load("timings"), {}).rows:
        if kind == "pipelined":
            steps.setdefault(run, []).append(step_ns)
    captured = query.run(con, query.load("captures"), {"label": label})
    at = [c.name for c in captured.columns].index("compile_ns")
    only = f"{label}/only-"
    alone = {run.removeprefix(only): steps[run] for run in ended if run.startswith(only) and run in steps}
    costs = {row[0].removeprefix(only): row[at] for row in captured.rows}
    eager = steps.get(f"{label}/eager", [])
    if not eager:
        return []
    return [
        (b.name, b.step_ns, b.gain_ns, b.gain_low_ns, b.gain_high_ns, b.verdict, b.compile_ns, b.gain_per_s)
        for b in blocks.ranked(eager, alone, costs)
    ]


def _distance_rows(ended: dict[str, Ended]) -> list[tuple[object, ...]]:
    """How far each mode's outputs lie from those of the first."""
    kept = {run: child.record.outputs for run, child in ended.items() if child.record}
    first = next(iter(kept.values()), None)
    return [
        (run, d.what, d.values, d.absolute, d.relative, d.fault)
        for run, found in list(kept.items())[1:]
        for d in outputs.distances(first, found)
    ]
