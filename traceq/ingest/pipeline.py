"""From paths to a published store: find the files, read and derive each in a scratch file, publish all at once."""

from __future__ import annotations

import contextlib
import glob
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

import duckdb

from traceq.errors import Status, TraceqError
from traceq.ingest import captured, kineto, nest, nsys
from traceq.ingest.captured import Record
from traceq.ingest.cut import NotATraceError
from traceq.ingest.source import Progress, Source, digest, path_as_text
from traceq.store import files, publish, rules
from traceq.store.build import derive_links, derive_rest, derive_steps
from traceq.store.rules import Rule

TRACE_NAME = re.compile(r"\.json(\.gz|\.zst|\.zstd)?$", re.I)
DATABASE_NAME = re.compile(r"\.sqlite3?$", re.I)
SUFFIXES = re.compile(r"(\.sqlite3?|\.nsys-rep|\.qdrep|_pqtdir|(\.pt)?(\.trace)?(\.json)?(\.gz|\.zst|\.zstd)?)$", re.I)
MEMORY_BYTES = 400_000_000
LARGE_MEMORY_BYTES = 4_000_000_000
BYTES_A_ROW = 100  # deriving sorts all rows of a trace, narrow ones, on all threads at once: with less it cannot always
BYTES_A_THREAD = 80_000_000  # spill its way out


@dataclass(frozen=True)
class Options:
    """What a user may say about the files of one command; `rules` replace the user's that the store has."""

    label: str | None = None
    step_ns: int | None = None
    step_range: str | None = None
    strict: bool = False
    rules: list[Rule] | None = None
    synced_ns: int | None = None

    @property
    def step_times(self) -> dict[str, int]:
        """The un-profiled step times that were given, by kind."""
        given = {"pipelined": self.step_ns, "synced": self.synced_ns}
        return {kind: ns for kind, ns in given.items() if ns}


@dataclass(frozen=True)
class Outcome:
    """What became of a path: `ingested`, `known` (the store had it), `ignored` (no trace, in a folder) or `failed`.

    Counts are None for what was not read now. `notes` are what reading found and the store keeps; `placed` says why the
    run is not the one that was asked for.
    """

    path: str
    result: str
    run: str | None = None
    rank: int | None = None
    sha256: str = ""
    size_bytes: int | None = None
    events: int | None = None
    kept: int | None = None
    skipped: int | None = None
    lost: int | None = None
    read_ns: int | None = None
    derive_ns: int | None = None
    notes: list[str] = field(default_factory=list)
    placed: str | None = None
    error: TraceqError | None = None


@dataclass(frozen=True)
class Counts:
    """Events of a file by what became of them; `timed` are those kept that are no metadata."""

    kept: int
    skipped: int
    lost: int
    timed: int

    @property
    def events(self) -> int:
        """All of them."""
        return self.kept + self.skipped + self.lost


@dataclass(frozen=True)
class Facts:
    """What a reader knows of a file besides its rows, for `traces`; `rank_of` is the rank and the world size."""

    name: str
    format: str
    sha256: str
    size_bytes: int
    origin_ns: int | None
    notes: list[str]
    metadata: dict[str, Any]
    rank_of: tuple[int, int] | None = None
    is_whole: bool = True


@dataclass(frozen=True)
class Target:
    """The store that a command writes to, and what it held when the command began."""

    store: Path
    held: publish.Held


Report = Callable[[str], Progress | None]


def ingest(
    paths: Sequence[str], store: Path, options: Options, report: Report = lambda _: None
) -> tuple[list[Outcome], int]:
    """Read `paths` into `store`; a file that fails costs only itself. Returns the outcomes and the ns of publishing.

    Nothing is published unless a file brought something new. `report` gives a progress callback for each file.
    """
    if options.label is not None and not (options.label and files.is_text(options.label)):
        raise TraceqError("a label is text, in UTF-8, and not empty", status=Status.USAGE)
    store = store.resolve() if store.is_symlink() else store
    found = expand(paths)
    in_folders = set(found) - set(paths)
    found = list(dict.fromkeys(captured.trace_of(path) or path for path in found))
    with files.scratch_folder(store) as folder:
        target = Target(store, _held(store))
        outcomes = []
        for number, path in enumerate(found):
            outcome = _one(path, folder / f"{number}.duckdb", target, options, report(path))
            if isinstance(outcome.error, NotATraceError) and path in in_folders:
                outcome = replace(outcome, result="ignored", error=None)
            outcomes.append(outcome)
        if outcomes and all(o.result == "ignored" for o in outcomes):
            raise TraceqError(f"{', '.join(paths)}: there is no trace in it", status=Status.INPUT)
        started = time.monotonic_ns()
        outcomes = _publish(store, folder, outcomes, options)
        return outcomes, time.monotonic_ns() - started


def expand(paths: Sequence[str]) -> list[str]:
    """Files for paths, folders (their traces, also in folders inside), globs and `-`. Raises TraceqError (input)."""
    found: list[str] = []
    for path in paths:
        is_pattern = path != "-" and not Path(path).exists()
        for match in (sorted(glob.glob(path, recursive=True)) if is_pattern else []) or [path]:
            found += _inside(match) if Path(match).is_dir() else [match]
    return list(dict.fromkeys(found))


def _inside(folder: str) -> list[str]:
    if nsys.is_export(folder):
        return [folder]
    found = sorted(str(p) for p in Path(folder).rglob("*") if _is_wanted(p))
    if not found:
        raise TraceqError(
            f"{folder}: no .json, .json.gz or .json.zst file and no nsys export in this folder", status=Status.INPUT
        )
    return found


def _is_wanted(path: Path) -> bool:
    """Whether a path in a folder may be a trace; a report only where its export does not lie beside it."""
    if path.is_dir():
        return nsys.is_export(str(path))
    if nsys.REPORT.search(path.name):
        return not any(path.with_name(path.stem + end).exists() for end in (".sqlite", ".sqlite3", "_pqtdir"))
    return path.is_file() and bool(TRACE_NAME.search(path.name) or DATABASE_NAME.search(path.name))


def default_label(path: str, rank_of: tuple[int, int] | None = None) -> str:
    """The run a file belongs to when the user does not say: its folder for one of several ranks, else its own name."""
    if path == "-":
        return "stdin"
    full = Path(path_as_text(str(Path(path).resolve())))
    if rank_of and rank_of[1] > 1 and full.parent.name:
        return full.parent.name
    return SUFFIXES.sub("", full.name) or full.name


def _held(store: Path) -> publish.Held:
    if not store.exists():
        return publish.Held({}, set(), set(), {})
    with contextlib.closing(files.open_store(store)) as con:
        return publish.held(con)


def _one(path: str, scratch: Path, target: Target, options: Options, progress: Progress | None) -> Outcome:
    try:
        record = captured.find(path)
        if run := _run_with(path, record, target.held):
            return _known(path, scratch, run, record, target, options)
        if record and captured.is_record(path):
            return _read_record(record, scratch, target.store, options)
        try:
            return _read(path, record, scratch, target.store, options, progress)
        except duckdb.OutOfMemoryException:  # a single value of tens of MB needs more than any number of events
            if path == "-":
                raise
            scratch.unlink(missing_ok=True)
            return _read(path, record, scratch, target.store, options, progress, LARGE_MEMORY_BYTES)
    except TraceqError as error:
        return Outcome(path, "failed", error=error)
    except (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.TransactionException, OSError) as error:
        what = str(error).splitlines()[0]
        hint = "is there room beside the store?"
        return Outcome(path, "failed", error=TraceqError(f"{path}: no room for it: {what}", hint, Status.STORE))


def _known(path: str, scratch: Path, run: str, record: Record | None, target: Target, options: Options) -> Outcome:
    """The outcome for a file that is in the store; what was asked of it and is not done is said.

    Its record may be new: that goes to the scratch store, and with it to the run.
    """
    if options.strict and run in target.held.salvaged:
        raise TraceqError(f"{path}: in the store as run {run!r}, but damaged", "leave --strict out", Status.INPUT)
    placed = [f"already in the store as the run {run!r}"]
    if options.label not in (None, run):
        placed.append(f"which keeps its label ({options.label!r} is not applied)")
    if options.step_times:
        placed.append("whose step time is now the given one")
    if record and record.sha256 not in target.held.captures:
        with _scratch(scratch, target.store, MEMORY_BYTES, options.rules) as con:
            captured.write(con, record, record.rank_of)
            con.execute("CHECKPOINT")
    return Outcome(path, "known", run=run, sha256=record.sha256 if record else "", placed=", ".join(placed))


def _run_with(path: str, record: Record | None, held: publish.Held) -> str | None:
    """The run that holds this very file; only a file of a size that occurs is read to see."""
    if record and captured.is_record(path):
        return held.captures.get(record.sha256)
    if path == "-" or not (Path(path).is_file() or nsys.is_export(path)):
        return None
    found = nsys.files_of(path)
    return held.runs.get(digest(found)) if _size(found) in held.sizes else None


def _size(found: Sequence[Path]) -> int:
    return sum(file.stat().st_size for file in found)


def _read_record(record: Record, scratch: Path, store: Path, options: Options) -> Outcome:
    """A record whose trace was not recorded, or is not beside it: a run without a trace."""
    with _scratch(scratch, store, MEMORY_BYTES, options.rules) as con:
        started = time.monotonic_ns()
        captured.write(con, record, record.rank_of)
        con.execute("CHECKPOINT")
    return Outcome(
        str(record.path),
        "ingested",
        run=options.label or record.label or default_label(str(record.path), record.rank_of),
        rank=record.rank_of[0] if record.rank_of else None,
        sha256=record.sha256,
        size_bytes=record.size_bytes,
        read_ns=time.monotonic_ns() - started,
        placed="a run without a trace: there is none beside this record",
    )


def _read(
    path: str, record: Record | None, scratch: Path, store: Path, options: Options, progress: Progress | None,
    memory: int = MEMORY_BYTES,
) -> Outcome:  # fmt: skip
    with _scratch(scratch, store, memory, options.rules) as con:
        started = time.monotonic_ns()
        if nsys.is_export(path):
            facts = _read_nsys(con, path, scratch.with_suffix(".sqlite"), options, progress)
        else:
            facts = _read_kineto(con, path, options, progress)
        read = time.monotonic_ns()
        counts = _counts(con)
        _make_room(con, memory, counts.kept)
        clipped = derive(con)
        _check_steps(con, facts.name, options.step_range)
        if record and not facts.rank_of:
            facts = replace(facts, rank_of=record.rank_of)
        publish.write_trace(con, _trace(facts) | {"clipped_rows": clipped}, options.step_ns)
        if record:
            captured.write(con, record, facts.rank_of)
        con.execute("CHECKPOINT")
    return Outcome(
        path,
        "ingested",
        run=options.label or (record and record.label) or default_label(path, facts.rank_of),
        rank=facts.rank_of[0] if facts.rank_of else None,
        sha256=facts.sha256,
        size_bytes=facts.size_bytes,
        events=counts.events,
        kept=counts.kept,
        skipped=counts.skipped,
        lost=counts.lost,
        read_ns=read - started,
        derive_ns=time.monotonic_ns() - read,
        notes=facts.notes,
    )


def _read_kineto(con: duckdb.DuckDBPyConnection, path: str, options: Options, progress: Progress | None) -> Facts:
    with Source(path, progress) as source:
        reading = kineto.read(con, source)
        if options.strict and (reading.cut or reading.lost):
            raise TraceqError(
                f"{source.name}: {_damage(reading, _count(con))}",
                "leave --strict out to keep the whole events",
                Status.INPUT,
            )
        kineto.sort(con, reading, options.step_range)
        return Facts(
            name=source.name,
            format="kineto",
            sha256=source.sha256(),
            size_bytes=source.raw_bytes,
            origin_ns=_origin_ns(con, reading.metadata.get("baseTimeNanoseconds")),
            notes=_notes(reading, _counts(con)),
            metadata=reading.metadata,
            rank_of=_rank_of(reading),
            is_whole=not (reading.cut or reading.lost),
        )


def _read_nsys(
    con: duckdb.DuckDBPyConnection, path: str, scratch: Path, options: Options, progress: Progress | None
) -> Facts:
    found = nsys.files_of(path)
    reading = nsys.read(con, path, scratch, options.step_range, progress)
    return Facts(
        name=path,
        format="nsys",
        sha256=digest(found),
        size_bytes=_size(found),
        origin_ns=_origin_ns(con, reading.session_ns),
        notes=[*reading.notes, *_emptiness(_counts(con))],
        metadata=reading.metadata,
    )


def _make_room(con: duckdb.DuckDBPyConnection, least: int, rows: int) -> None:
    """Let DuckDB hold what deriving so many rows takes before it spills."""
    ((threads,),) = con.execute("SELECT current_setting('threads')").fetchall()
    con.execute(f"SET memory_limit = '{max(least, rows * BYTES_A_ROW + threads * BYTES_A_THREAD)}B'")


def derive(con: duckdb.DuckDBPyConnection) -> int:
    """From the staged rows of one trace everything that the store's tables hold; how many rows nesting clipped."""
    clipped = nest.nest_ranges(con)
    derive_steps(con)
    with ThreadPoolExecutor(1) as beside:  # Python nests while DuckDB links and finds the gaps
        nested = beside.submit(nest.nest_rest, con.cursor())
        derive_links(con)
        clipped += nested.result()
    derive_rest(con)
    return clipped


@contextlib.contextmanager
def _scratch(path: Path, store: Path, memory: int, users: list[Rule] | None) -> Iterator[duckdb.DuckDBPyConnection]:
    con = files.scratch_store(path, store, f"{memory}B")
    try:
        if users is not None:
            rules.replace_users(con, users)
        yield con
        con.execute("DETACH stage")
    finally:
        con.close()
        path.with_suffix(".stage").unlink(missing_ok=True)
        shutil.rmtree(path.with_suffix(".spill"), ignore_errors=True)


def _publish(store: Path, folder: Path, outcomes: list[Outcome], options: Options) -> list[Outcome]:
    scratches = [folder / f"{number}.duckdb" for number, _ in enumerate(outcomes)]
    has_new = any(_brings(scratch, o) for scratch, o in zip(scratches, outcomes, strict=True))
    is_told_more = options.step_times or options.rules is not None
    if not has_new and not (is_told_more and any(o.result == "known" for o in outcomes)):
        return outcomes
    published = []
    seed = next((scratch for scratch, o in zip(scratches, outcomes, strict=True) if o.result == "ingested"), None)
    with files.publishing(store, seed) as con:
        for scratch, outcome in zip(scratches, outcomes, strict=True):
            if outcome.result == "ingested":
                outcome = _add(con, scratch, outcome)
            elif _brings(scratch, outcome):
                outcome = _add_record(con, scratch, outcome)
            for kind, ns in options.step_times.items() if outcome.run else ():
                publish.set_step(con, outcome.run or "", kind, ns)
            published.append(outcome)
        if options.rules is not None and options.rules != rules.users(con):
            rules.replace_users(con, options.rules)
            rules.reclassify(con)
    return published


def _brings(scratch: Path, outcome: Outcome) -> bool:
    """Whether a scratch store has something for the store: a trace or a record, also of a trace that is known."""
    return outcome.result == "ingested" or (outcome.result == "known" and scratch.exists())


def _add(con: duckdb.DuckDBPyConnection, scratch: Path, outcome: Outcome) -> Outcome:
    """Add one trace, unless a file with the same content came in meanwhile."""
    held = publish.held(con)
    if scratch.exists() and (run := (held.runs | held.captures).get(outcome.sha256)):
        return replace(outcome, result="known", run=run)
    wanted = outcome.run or "run"
    label = publish.add_trace(con, scratch, wanted)
    if label == wanted:
        return outcome
    which, paths = _in_the_way(con, wanted, outcome.rank)
    note = f"the run {wanted!r} already holds {which} ({paths}); this file became the run {label!r}"
    return replace(outcome, run=label, placed=note)


def _add_record(con: duckdb.DuckDBPyConnection, scratch: Path, outcome: Outcome) -> Outcome:
    """Add the record of a trace that the store has, unless it came in meanwhile or the run has another one."""
    if outcome.sha256 in publish.held(con).captures:
        return outcome
    is_added = publish.add_capture(con, scratch, outcome.run or "run")
    what = "what its capture measured is new" if is_added else "the record beside it is not taken in: the run has one"
    return replace(outcome, placed=f"{outcome.placed}, {what}")


def _in_the_way(con: duckdb.DuckDBPyConnection, label: str, rank: int | None) -> tuple[str, str]:
    """What the run `label` holds that keeps a trace of `rank` out, and the names of its files."""
    found = con.execute(
        "WITH f AS (SELECT run_id, path, rank FROM traces UNION SELECT run_id, path, rank FROM captures) "
        "SELECT f.path, f.rank FROM f JOIN runs AS r USING (run_id) WHERE r.label = ? ORDER BY ALL",
        [label],
    ).fetchall()
    what = "a trace" if rank is None else f"rank {rank}" if rank in {r for _, r in found} else "another job"
    return what, ", ".join(Path(path).name for path, _ in found)


def _trace(facts: Facts) -> dict[str, object]:
    return {
        "rank": facts.rank_of[0] if facts.rank_of else None,
        "world_size": facts.rank_of[1] if facts.rank_of else None,
        "path": "-" if facts.name == "standard input" else path_as_text(facts.name),
        "format": facts.format,
        "sha256": facts.sha256,
        "size_bytes": facts.size_bytes,
        "origin_ns": facts.origin_ns,
        "status": "complete" if facts.is_whole else "salvaged",
        "warnings": facts.notes,
        "metadata": facts.metadata,
    }


def _origin_ns(con: duckdb.DuckDBPyConnection, base: object) -> int | None:
    """Epoch ns of the trace's zero: what the file counts from, where it says so, else the time itself if it is one."""
    ((first,),) = con.execute("SELECT ns FROM stage.origin").fetchall()
    if base is None:
        return int(first) if first >= nsys.EPOCH_NS else None
    return base + int(first) if isinstance(base, int) and 0 <= base + int(first) < 2**63 else None


def _rank_of(reading: kineto.Reading) -> tuple[int, int] | None:
    info = reading.metadata.get("distributedInfo")
    rank, size = (info.get("rank"), info.get("world_size")) if isinstance(info, dict) else (None, None)
    if not _is_count(rank):
        return None
    return rank, size if _is_count(size) else rank + 1


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value < 2**31


def _counts(con: duckdb.DuckDBPyConnection) -> Counts:
    found = con.execute(
        "SELECT sum(kept), sum(skipped), sum(lost), sum(kept) FILTER (ph <> 'M') FROM event_counts"
    ).fetchall()
    return Counts(*(int(n or 0) for n in found[0]))


def _count(con: duckdb.DuckDBPyConnection) -> int:
    ((count,),) = con.execute("SELECT count(*) FROM stage.events").fetchall()
    return int(count)


def _notes(reading: kineto.Reading, counts: Counts) -> list[str]:
    notes = []
    if reading.cut or reading.lost:
        notes.append(_damage(reading, counts.events - len(reading.lost)))
    if reading.repaired:
        notes.append(f"{reading.repaired:,} strings or numbers that are no valid JSON were repaired")
    return notes + _emptiness(counts)


def _emptiness(counts: Counts) -> list[str]:
    if not counts.events:
        return ["there are no events in it"]
    return [] if counts.timed else ["there are no timed events in it"]


def _damage(reading: kineto.Reading, kept: int) -> str:
    places = ", ".join(f"{at:,}" for at in reading.lost[:5]) + (", …" if len(reading.lost) > 5 else "")
    lost = f"{len(reading.lost):,} unreadable event{'s' if len(reading.lost) != 1 else ''} dropped near byte {places}"
    what = f"{reading.cut}; " if reading.cut else ""
    return f"{what}{kept:,} whole events kept{f', {lost}' if reading.lost else ''}"


def _check_steps(con: duckdb.DuckDBPyConnection, name: str, step_range: str | None) -> None:
    if step_range is None or con.execute("SELECT count(*) FROM steps").fetchall() != [(0,)]:
        return
    found = con.execute(
        "SELECT name FROM ranges WHERE dur_ns IS NOT NULL AND kind <> 'window' "
        "GROUP BY name ORDER BY count(*) DESC, name LIMIT 5"
    )
    names = ", ".join(repr(n) for (n,) in found.fetchall()) or "none"
    raise TraceqError(f"{name}: no range matches --step-range {step_range!r}", f"its ranges are: {names}", Status.INPUT)
