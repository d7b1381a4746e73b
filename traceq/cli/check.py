"""`traceq check`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import duckdb

from traceq import query
from traceq.analysis import check, tables
from traceq.analysis.ask import ask
from traceq.analysis.check import Judgement, Snapshot, Threshold
from traceq.analysis.stats import NOISE_UNKNOWN
from traceq.cli.options import Draw, Output, output_options_with, store_option
from traceq.errors import Status, TraceqError
from traceq.show import narrate, reports
from traceq.store import files

EPILOG = f"""
\b
Examples:
  traceq check new --against base --max step=+3% --max kernels=+0 --min gemm_tflops=-5%
  traceq check base --save baseline.json
  traceq check new --against baseline.json --thresholds limits.toml --format junit -o report.xml

\b
Measures: {", ".join(check.MEASURES[:8])},
  {", ".join(check.MEASURES[8:])}.
BASE is a label, another store (its run of the same label, or its only one) or a file that --save wrote. A change is in
percent (+3%) or in the measure's unit (+1.5ms, +100MiB, +0); --max step=-3% asks for a gain. A threshold is crossed
only if the difference is real; the exit status is 5 then. A measure that one side lacks is an error, and the other
thresholds are judged all the same: 1 if none of them is crossed. What one measurement a side (traceq ingest --step)
cannot tell is not judged, so it is never crossed. In limits.toml: [max] and [min], and below them step = "+3%".
"""


@click.command("check", epilog=EPILOG)
@click.argument("run", metavar="NEW")
@click.option("--against", metavar="BASE", help="What to compare with: a label, a store, or a file of --save.")
@click.option("--max", "most", multiple=True, metavar="MEASURE=CHANGE", help="It may rise by so much, e.g. step=+3%.")
@click.option("--min", "least", multiple=True, metavar="MEASURE=CHANGE", help="It may fall by so much.")
@click.option(
    "--thresholds", "limits", metavar="FILE", type=click.Path(path_type=Path), help="TOML with [max] and [min]."
)
@click.option("--save", metavar="FILE", type=click.Path(path_type=Path), help="Write NEW as a baseline.")
@store_option
@output_options_with("junit", "github")
def command(
    run: str, against: str | None, most: tuple[str, ...], least: tuple[str, ...], limits: Path | None,
    save: Path | None, store: Path | None, output: Output,
) -> int:  # fmt: skip
    """Compare run NEW with a baseline, for a pipeline: exit 5 if a threshold is crossed."""
    from traceq.show import page, verdicts

    thresholds = [*_from_file(limits), *(check.threshold("max", t) for t in most)]
    thresholds += [check.threshold("min", t) for t in least]
    if not save and not (against and thresholds):
        missing = "--max, --min or --thresholds: within which limits?" if against else "--against: compared with what?"
        raise TraceqError(f"no {missing}", "--against BASE --max step=+3%", Status.USAGE)
    with files.open_store(files.store_path(store)) as con:
        query.check_runs(con, [run])
        new = check.snapshot(con, run)
        trust = query.trust(con, [run])
        base = _baseline(con, against, run) if against else None
    if save:
        check.save(new, save)
        narrate.note(f"{run} is saved as a baseline in {save}")
    if base is None or not thresholds:
        return Status.OK
    judged = check.judge(base, new, thresholds)
    crossed = [reports.sentence(j) for j in judged if j.status == "crossed"]
    compared = reports.pair(base.label, run)
    draw, whole = page.drawn(lambda on: verdicts.check(compared, judged, on), output.is_wide)
    own: dict[str, Draw] = {name: functools.partial(w, compared, judged) for name, w in reports.WRITERS.items()}
    output.write(
        replace(tables.judgements(base.label, run, judged), trust=trust),
        draw, {**whole, **own},
        crossed=crossed, notes=check.notes(base, new),
    )  # fmt: skip
    _narrate(check.notes(base, new), judged, output)
    if crossed:
        return Status.THRESHOLD
    return Status.FAILED if any(j.status == check.NOT_RECORDED for j in judged) else Status.OK


def _narrate(notes: Sequence[str], judged: Sequence[Judgement], output: Output) -> None:
    """On standard error what explains a difference, and each threshold that is crossed or cannot be judged."""
    for line in notes if not output.is_quiet else ():
        narrate.note(f"unlike: {line}")
    for j in judged:
        if j.status == "crossed" or (j.status == "not judged" and not output.is_quiet):
            narrate.note(reports.sentence(j))
    unsure = [j.difference.verdict for j in judged if j.status == "not judged" and j.difference]
    if NOISE_UNKNOWN in unsure and not output.is_quiet:
        narrate.note("one measurement tells nothing of the noise: traceq capture takes several")
    missing = [j for j in judged if j.status == check.NOT_RECORDED]
    for left, j in enumerate(missing, 1 - len(missing)):
        narrate.fail(TraceqError(reports.sentence(j), None if left else check.remedy(missing)))


def _from_file(path: Path | None) -> list[Threshold]:
    if path is None:
        return []
    try:
        tables_of = tomllib.loads(path.read_text("utf-8"))
        found = [_limit(path, kind, *told) for kind, limits in tables_of.items() for told in _limits(kind, limits)]
        if not found:
            raise ValueError("it has none")
    except UnicodeDecodeError as error:
        raise _no_limits(path, f"byte {error.start} is no UTF-8") from error
    except (OSError, ValueError, RecursionError) as error:
        raise _no_limits(path, error.strerror or "" if isinstance(error, OSError) else str(error)) from error
    return found


def _no_limits(path: Path, why: str) -> TraceqError:
    return TraceqError(f"{path}: no thresholds: {why}", 'for example: [max] and below it step = "+3%"', Status.INPUT)


def _limits(kind: str, limits: object) -> list[tuple[str, object]]:
    if kind not in ("max", "min") or not isinstance(limits, dict):
        raise ValueError(f"{kind} is neither [max] nor [min]")
    return list(limits.items())


def _limit(path: Path, kind: str, measure: str, limit: object) -> Threshold:
    if not isinstance(limit, str):
        raise ValueError(f"[{kind}] {measure}: {limit!r} is no text in quotation marks")
    return check.threshold(kind, f"{measure}={limit}", f"{path}: [{kind}] {measure}", Status.INPUT)


def _baseline(con: duckdb.DuckDBPyConnection, against: str, run: str) -> Snapshot:
    """A label of this store, else a file: of `--save`, or another store."""
    path = Path(against)
    if against in [r["run"] for r in ask(con, "runs")]:
        return check.snapshot(con, against)
    if not path.exists():
        if path.suffix or len(path.parts) > 1:
            fault = f"--against {against}: there is no such file, and no run is called so"
            raise TraceqError(fault, "traceq check RUN --save FILE writes a baseline; traceq runs", Status.USAGE)
        query.check_runs(con, [against])
    if not files.is_database(path):
        return check.saved(path)
    with files.open_store(path) as other:
        labels = [r["run"] for r in ask(other, "runs")]
        label = run if run in labels else labels[0] if len(labels) == 1 else None
        if label is None:
            raise TraceqError(
                f"{path}: which of its runs? {', '.join(labels)}", f"it has none called {run!r}", Status.USAGE
            )
        return check.snapshot(other, label)
