"""Reading an export of Nsight Systems (a SQLite file, or a folder of Parquet files) into tables of the stage.

SQLite writes columns of rows as JSON lists itself and DuckDB parses them with the wanted types on all threads: no value
becomes a Python object, digits stored as text are numbers, and a value of the wrong type is NULL. Tables and columns
are found by name; what an export lacks is empty. nsys.sql says what each row becomes.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import duckdb

from traceq.errors import Status, TraceqError
from traceq.ingest import arrow
from traceq.ingest.cut import NotATraceError
from traceq.ingest.source import Progress
from traceq.store.files import quoted

SQL = Path(__file__).with_name("nsys.sql")
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
WRITE_AHEAD = 2  # the header's format version of a database in write-ahead mode
REPORT = re.compile(r"\.(nsys-rep|qdrep)$", re.I)
OF_NSYS = {"stringids", "meta_data_export", "export_meta_data"}
EVENTS = re.compile(r"CUPTI_ACTIVITY_KIND_|.*_EVENTS?$", re.I)
BATCH_ROWS = 2048  # a vector of DuckDB's
BATCHES = 32
PATIENCE_S = 5.0
EPOCH_NS = 10**18  # 2001: a time at or above it counts from 1970 (nsys export --ts-normalize)
OLDEST_NSYS = (2021, 1)
EXPORT = "nsys export --type sqlite --force-overwrite true"


@dataclass(frozen=True)
class Table:
    """A table of the stage: its name in an export (a version suffix aside) and the columns that are read.

    In `columns`, `:T` and `:R` mark text and real numbers, `!` what is missed when it is not there. Columns of an
    export that are not listed are left out: limits and settings of the hardware, ids of call chains, grid numbers.
    """

    recorded: str
    columns: str

    def types(self) -> dict[str, str]:
        """Column -> DuckDB type."""
        kinds = {"": "BIGINT", "T": "VARCHAR", "R": "DOUBLE"}
        words = (word.rstrip("!").partition(":") for word in self.columns.split())
        return {name: kinds[kind] for name, _, kind in words}

    def missed(self) -> list[str]:
        """The columns without which something cannot be told."""
        return [word.rstrip("!").partition(":")[0] for word in self.columns.split() if word.endswith("!")]


_GPU = "start! end! deviceId! contextId greenContextId streamId! correlationId! globalPid!"
TABLES = {
    "strings": Table("StringIds", "id! value:T!"),
    "kernel": Table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        f"{_GPU} demangledName! shortName mangledName launchType registersPerThread gridX gridY gridZ blockX blockY "
        "blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread graphNodeId graphId clusterX clusterY "
        "clusterZ",
    ),
    "memcpy": Table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        f"{_GPU} bytes! copyKind! srcKind dstKind srcDeviceId dstDeviceId migrationCause graphNodeId virtualAddress "
        "copyCount",
    ),
    "memset": Table("CUPTI_ACTIVITY_KIND_MEMSET", f"{_GPU} value bytes! graphNodeId memKind"),
    "graph": Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", f"{_GPU} graphId graphExecId"),
    "call": Table(
        "CUPTI_ACTIVITY_KIND_RUNTIME", "start! end! eventClass globalTid! correlationId! nameId! returnValue"
    ),
    "sync": Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", f"{_GPU} syncType"),
    "nvtx": Table(
        "NVTX_EVENTS",
        "start! end! eventType! rangeId category text:T globalTid! endGlobalTid textId domainId uint64Value int64Value "
        "doubleValue:R uint32Value int32Value floatValue:R jsonTextId jsonText:T",
    ),
    "overhead": Table("PROFILER_OVERHEAD", "start! end! globalTid nameId"),
    "cuda_overhead": Table("CUPTI_ACTIVITY_KIND_OVERHEAD", "start! end! globalTid correlationId nameId overheadType"),
    "os_call": Table("OSRT_API", "start! end! eventClass globalTid! nameId! returnValue nestingLevel"),
    "memory": Table(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        "start! globalPid! deviceId address bytes! memKind memoryOperationType! name:T correlationId",
    ),
    "metric": Table("GPU_METRICS", "timestamp! typeId metricId! value!"),
    "metric_name": Table("TARGET_INFO_GPU_METRICS", "typeId typeName:T metricId metricName:T"),
    "process": Table("PROCESSES", "globalPid name:T"),
    "thread": Table("ThreadNames", "nameId globalTid"),
    "gpu": Table("TARGET_INFO_GPU", "id name:T uuid:T smCount totalMemory memoryBandwidth computeMajor computeMinor"),
    "cuda_device": Table("TARGET_INFO_CUDA_DEVICE", "gpuId cudaId pid uuid:T"),
    "session": Table("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"),
    "export": Table("META_DATA_EXPORT", "name:T value:T"),
    "old_export": Table("EXPORT_META_DATA", "name:T value:T"),
    "capture": Table("META_DATA_CAPTURE", "name:T value:T"),
}
# What may be told of an export: all else about it can name a person, a machine, a path or a command.
METADATA = """
SELECT
    max(value) FILTER (upper(name) = 'EXPORT_PRODUCT_VERSION' AND regexp_full_match(value, '[0-9.]+')),
    max(value) FILTER (upper(name) = 'EXPORT_SCHEMA_VERSION' AND regexp_full_match(value, '[0-9.]+')),
    max(value) FILTER (upper(name) LIKE '%CUDA_GRAPH_TRACE_OPTIONS:MODE' AND regexp_full_match(value, '[A-Za-z]+'))
FROM (FROM stage.export UNION ALL FROM stage.old_export UNION ALL FROM stage.capture)
"""
SESSION = "SELECT max(utcEpochNs) FROM stage.session WHERE (SELECT ns FROM stage.origin) < ?"
MISSING_NAMES = """
SELECT count(DISTINCT u.id) FROM (
    SELECT demangledName AS id FROM stage.kernel UNION SELECT nameId FROM stage.call UNION SELECT textId FROM stage.nvtx
    UNION SELECT nameId FROM stage.os_call
) AS u ANTI JOIN stage.strings AS s ON s.id = u.id WHERE u.id IS NOT NULL
"""
SHARED_GPUS = """
SELECT count(DISTINCT a.pid) FROM stage.activities AS a JOIN stage.listed_ordinals AS o USING (pid)
WHERE NOT o.is_recorded AND a.device IN (
    SELECT device FROM stage.activities GROUP BY device HAVING count(DISTINCT pid) > 1
)
"""


@dataclass(frozen=True)
class Reading:
    """What reading an export found besides rows: sentences about it, what may be told of it, its zero in epoch ns."""

    notes: list[str]
    metadata: dict[str, object]
    session_ns: int | None


def is_export(path: str) -> bool:
    """Whether `path` is for this reader: a SQLite file, a report (told by its ending), a folder of Parquet files."""
    there = Path(path)
    if path == "-":
        return False
    if there.is_dir():
        return any(_is_of_nsys(p.stem) for p in there.glob("*.parquet"))
    if not there.is_file():
        return False
    if REPORT.search(there.name):
        return True
    with contextlib.suppress(OSError), there.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def files_of(path: str) -> list[Path]:
    """The files that an input is made of: a folder's Parquet files, a database and the log beside it, or itself."""
    there = Path(path)
    if there.is_dir():
        return sorted(there.glob("*.parquet"))
    return [there, *(_logs(there) if is_export(path) else [])]


def read(
    con: duckdb.DuckDBPyConnection, path: str, scratch: Path, step_range: str | None, progress: Progress | None
) -> Reading:
    """Fill the stage and the base tables from an export; `scratch` is the name of a file that is made where need be.

    Raises TraceqError (input) for what cannot be read, NotATraceError for a database that is no export.
    """
    con.execute("CREATE OR REPLACE TABLE stage.options AS SELECT ?::VARCHAR AS step_range", [step_range])
    try:
        return _read(con, path, scratch, progress)
    finally:
        for left in scratch.parent.glob(f"{scratch.name}*"):
            left.unlink()


def _read(con: duckdb.DuckDBPyConnection, path: str, scratch: Path, progress: Progress | None) -> Reading:
    with _open(con, path, scratch) as export:
        _check(export, path)
        picked = {stage: name for stage, table in TABLES.items() if (name := _pick(export, table.recorded))}
        shown = _Shown(progress, sum(f.stat().st_size for f in files_of(path)), sum(map(export.rows, picked.values())))
        for stage, table in TABLES.items():
            _load(con, export, stage, table, picked.get(stage), shown)
        _list_tables(con, export, picked)
        con.execute(SQL.read_text("utf-8"))
        ((version, schema, graph_mode),) = con.execute(METADATA).fetchall()
        metadata = {"nsys_version": version or "unknown", "schema_version": schema or "unknown"}
        notes = [*_missing_columns(export, picked, metadata["schema_version"]), *_doubts(con)]
    ((session_ns,),) = con.execute(SESSION, [EPOCH_NS]).fetchall()
    return Reading(notes, metadata | ({"cuda_graph_trace": graph_mode} if graph_mode else {}), session_ns)


class _Export(Protocol):
    """An export that is open: its tables with their columns, and reading one."""

    columns: dict[str, list[str]]

    def rows(self, name: str) -> int:
        """How many rows a table has."""

    def load(self, name: str, columns: dict[str, str], target: str, shown: _Shown) -> None:
        """Copy the `columns` (name -> type) of a table into the stage table `target`."""


@dataclass
class _Shown:
    """Turns rows read into the share of bytes that a progress bar shows."""

    progress: Progress | None
    size_bytes: int
    rows: int
    done: int = 0

    def add(self, rows: int) -> None:
        self.done += rows
        if self.progress:
            self.progress(min(self.size_bytes * self.done // max(self.rows, 1), self.size_bytes), self.size_bytes)


def _pick(export: _Export, recorded: str) -> str | None:
    """The table of that name; of several versions (`_V2`, `_V3`) the newest that has rows."""
    pattern = re.compile(rf"{recorded}(?:_V(\d+))?", re.I)
    found = [(int(m[1] or 1), name) for name in export.columns if (m := pattern.fullmatch(name))]
    found.sort(reverse=True)
    filled = [name for _, name in found if export.rows(name)]
    return next(iter(filled or [name for _, name in found]), None)


def _load(
    con: duckdb.DuckDBPyConnection, export: _Export, stage: str, table: Table, name: str | None, shown: _Shown
) -> None:
    types = table.types()
    listed = ", ".join(f"{_name(column)} {kind}" for column, kind in types.items())
    con.execute(f"CREATE OR REPLACE TABLE stage.{stage} ({listed})")
    if not name:
        return
    there = {column.lower(): column for column in export.columns[name]}
    if here := {there[c.lower()]: c for c in types if c.lower() in there}:
        target = f"stage.{stage} ({', '.join(map(_name, here.values()))})"
        export.load(name, {recorded: types[c] for recorded, c in here.items()}, target, shown)


def _list_tables(con: duckdb.DuckDBPyConnection, export: _Export, picked: dict[str, str]) -> None:
    """stage.found: the tables that were read; stage.unread: those that were not although they hold events."""
    con.execute("CREATE OR REPLACE TABLE stage.found (source VARCHAR, recorded VARCHAR)")
    con.execute("CREATE OR REPLACE TABLE stage.unread (recorded VARCHAR, rows BIGINT)")
    con.executemany("INSERT INTO stage.found VALUES (?, ?)", list(picked.items()) or [(None, None)])
    unread = [name for name in export.columns if name not in picked.values() and _has_events(name, export)]
    con.executemany("INSERT INTO stage.unread VALUES (?, ?)", [(n, export.rows(n)) for n in unread] or [(None, 0)])


def _has_events(name: str, export: _Export) -> bool:
    return bool(EVENTS.match(name)) or bool({"start", "timestamp"} & {c.lower() for c in export.columns[name]})


def _missing_columns(export: _Export, picked: dict[str, str], schema: str) -> list[str]:
    notes = []
    for stage, name in picked.items():
        there = {column.lower() for column in export.columns[name]}
        if missing := [c for c in TABLES[stage].missed() if c.lower() not in there]:
            notes.append(f"{name} has no column {', '.join(missing)} (schema {schema}): what needs it is not available")
    return notes


def _doubts(con: duckdb.DuckDBPyConnection) -> list[str]:
    notes = []
    ((names,),) = con.execute(MISSING_NAMES).fetchall()
    if names:
        are = "names are" if names > 1 else "name is"
        notes.append(f"{names:,} {are} missing from StringIds: [name ID] stands for each")
    ((processes,),) = con.execute(SHARED_GPUS).fetchall()
    if processes:
        notes.append(
            f"{processes:,} processes use a GPU of the same number, and the file does not say whether it is the same: "
            "it is taken as one GPU"
        )
    return notes


# SQLite --------------------------------------------------------------------------------------------------------------


class _Sqlite:
    """A SQLite file, read with Python's own module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, db: sqlite3.Connection) -> None:
        self.con = con
        self.db = db
        self.db.text_factory = bytes
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.columns = {name: self._columns(name) for name in (n.decode("utf-8", "replace") for (n,) in tables)}
        self.counted: dict[str, int] = {}

    def rows(self, name: str) -> int:
        """How many rows a table has, counted once: that reads it whole."""
        if name not in self.counted:
            (self.counted[name],) = self.db.execute(f"SELECT count(*) FROM {_name(name)}").fetchone()
        return self.counted[name]

    def load(self, name: str, columns: dict[str, str], target: str, shown: _Shown) -> None:
        """SQLite makes the next lists while DuckDB parses these."""
        lists = [f"unnest(from_json(c{n}, '[\"{kind}\"]'))" for n, kind in enumerate(columns.values())]
        batches = self._batches(name, list(columns))

        def several() -> list[tuple[bytes, ...]]:
            return list(islice(batches, BATCHES))

        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(several)
            while rows := ahead.result():
                ahead = reader.submit(several)
                self.con.register("batch", arrow.Stream([_lists(row) for row in rows]))
                self.con.execute(f"INSERT INTO {target} SELECT {', '.join(lists)} FROM batch")
                self.con.unregister("batch")
                shown.add(len(rows) * BATCH_ROWS)

    def _batches(self, name: str, columns: Sequence[str]) -> Iterator[tuple[bytes, ...]]:
        """For each batch of rows a JSON list of every column; SQLite has no JSON for a blob, which is NULL here."""
        table = _name(name)
        lists = ", ".join(
            f"json_group_array(CASE WHEN typeof({c}) <> 'blob' THEN {c} END)" for c in map(_name, columns)
        )
        last = f"SELECT max(n) FROM (SELECT rowid AS n FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {BATCH_ROWS})"
        at = -(2**63)
        while (end := self.db.execute(last, [at]).fetchone()[0]) is not None:
            yield self.db.execute(f"SELECT {lists} FROM {table} WHERE rowid > ? AND rowid <= ?", [at, end]).fetchone()
            at = end

    def _columns(self, name: str) -> list[str]:
        return [row[1].decode("utf-8", "replace") for row in self.db.execute(f"PRAGMA table_info({_name(name)})")]


def _lists(texts: Sequence[bytes]) -> Any:
    return arrow.row({f"c{n}": arrow.utf8(text) for n, text in enumerate(texts)})


def _name(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def _open(con: duckdb.DuckDBPyConnection, path: str, scratch: Path) -> Iterator[_Export]:
    if Path(path).is_dir():
        yield _Parquet(con, Path(path))
        return
    file = _export_report(path, scratch) if REPORT.search(path) else Path(path)
    try:
        with contextlib.closing(_connect(path, file, scratch)) as db:
            yield _Sqlite(con, db)
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from error


def _connect(path: str, file: Path, scratch: Path) -> sqlite3.Connection:
    """A read-only connection that leaves the file and its folder as they are.

    A log beside the file holds rows too, and SQLite would work it in and remove it: so it does that to a copy. Without
    a log, a file in write-ahead mode is opened as one that nobody writes, since SQLite would make a log otherwise.
    """
    with file.open("rb") as opened:
        header = opened.read(HEADER_BYTES)
    if logs := _logs(file):
        _copy(path, [file, *logs], scratch)
        return sqlite3.connect(scratch, check_same_thread=False)
    _check_length(path, file, header)
    mode = "immutable=1" if header[18:19] == bytes([WRITE_AHEAD]) else "mode=ro"
    db = sqlite3.connect(_uri(file, mode), uri=True, timeout=PATIENCE_S, check_same_thread=False)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise
        db.close()  # a file system without locks
        db = sqlite3.connect(_uri(file, "immutable=1"), uri=True, check_same_thread=False)
    return db


def _uri(file: Path, mode: str) -> str:
    return f"{file.absolute().as_uri()}?{mode}"


def _logs(file: Path) -> list[Path]:
    """The logs beside a database that are not empty: writes not in it yet, or the undo of one that broke off."""
    return [log for end in ("-wal", "-journal") if (log := Path(f"{file}{end}")).is_file() and log.stat().st_size]


def _copy(path: str, found: list[Path], scratch: Path) -> None:
    before = [(f.stat().st_size, f.stat().st_mtime_ns) for f in found]
    for file in found:
        shutil.copyfile(file, f"{scratch}{str(file).removeprefix(str(found[0]))}")
    if before != [(f.stat().st_size, f.stat().st_mtime_ns) for f in found]:
        raise TraceqError(f"{path}: it is being written", "wait until nsys has finished the export", Status.INPUT)


def _check_length(path: str, file: Path, header: bytes) -> None:
    """SQLite reads a file that was cut without a word until it misses a page; its header says how many there are."""
    if len(header) < HEADER_BYTES:
        raise TraceqError(f"{path}: truncated: not even its header is whole", f"{EXPORT} REPORT", Status.INPUT)
    page, changes, pages, valid_for = (
        struct.unpack(">H", header[16:18])[0],
        *struct.unpack(">II", header[24:32]),
        struct.unpack(">I", header[92:96])[0],
    )
    wanted = pages * (65536 if page == 1 else page)
    if changes == valid_for and (size := file.stat().st_size) < wanted:
        raise TraceqError(
            f"{path}: truncated: {size:,} of {wanted:,} bytes are there",
            f"export it again: {EXPORT} REPORT",
            Status.INPUT,
        )


def _unreadable(path: str, error: sqlite3.DatabaseError) -> TraceqError:
    what = str(error)
    if "locked" in what:
        return TraceqError(
            f"{path}: locked by another program", "wait until nsys has finished the export", Status.INPUT
        )
    if "not a database" in what:
        return NotATraceError(f"{path}: not a trace but an SQLite database that cannot be read ({what})")
    return TraceqError(f"{path}: damaged: {what}", f"export it again: {EXPORT} REPORT", Status.INPUT)


def _is_of_nsys(name: str) -> bool:
    return name.lower() in OF_NSYS or name.upper().startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS"))


def _check(export: _Export, path: str) -> None:
    if not OF_NSYS & {name.lower() for name in export.columns}:
        raise NotATraceError(
            f"{path}: not a trace but an SQLite database that Nsight Systems did not export",
            f"traceq reads what this makes: {EXPORT} REPORT.nsys-rep",
        )


# Parquet -------------------------------------------------------------------------------------------------------------


class _Parquet:
    """A folder with a Parquet file a table; ids are unsigned there, and become what SQLite makes of the same bits."""

    def __init__(self, con: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.con = con
        self.folder = folder
        self.types = {p.stem: self._types(p.stem) for p in sorted(folder.glob("*.parquet"))}
        self.columns = {name: list(types) for name, types in self.types.items()}

    def rows(self, name: str) -> int:
        """How many rows a table has."""
        ((rows,),) = self._ask(f"SELECT count(*) FROM {self._source(name)}")
        return int(rows)

    def load(self, name: str, columns: dict[str, str], target: str, shown: _Shown) -> None:
        """DuckDB reads the file itself."""
        values = ", ".join(self._value(self.types[name][c], c, kind) for c, kind in columns.items())
        self._ask(f"INSERT INTO {target} SELECT {values} FROM {self._source(name)}")
        shown.add(self.rows(name))

    def _value(self, recorded: str, column: str, kind: str) -> str:
        if recorded == "UBIGINT" and kind == "BIGINT":
            column = _name(column)
            return f"({column}::HUGEINT - CASE WHEN {column} >> 63 = 1 THEN 18446744073709551616 ELSE 0 END)::BIGINT"
        return f"TRY_CAST({_name(column)} AS {kind})"

    def _types(self, name: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self._ask(f"DESCRIBE SELECT * FROM {self._source(name)}")}

    def _source(self, name: str) -> str:
        escaped = re.sub(r"([*?[])", r"[\1]", str(self.folder / f"{name}.parquet"))
        return f"read_parquet({quoted(Path(escaped))})"

    def _ask(self, sql: str) -> list[Any]:
        try:
            found: list[Any] = self.con.execute(sql).fetchall()
            return found
        except (duckdb.InvalidInputException, duckdb.IOException) as error:
            what = f"{self.folder}: damaged: {str(error).splitlines()[0]}"
            raise TraceqError(what, "export it again: nsys export --type parquetdir REPORT", Status.INPUT) from error


# Reports -------------------------------------------------------------------------------------------------------------


def _export_report(path: str, target: Path) -> Path:
    """The export of a .nsys-rep file, made by the nsys that is on the path."""
    program = shutil.which("nsys")
    if not program:
        raise TraceqError(
            f"{path}: a report of Nsight Systems, and no nsys is on the path to export it",
            f"where nsys is: {EXPORT} {Path(path).name}; then ingest the .sqlite file",
            Status.INPUT,
        )
    version = _version(path, program)
    command = [program, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target), path]
    done = _run(command)
    if done.returncode or not target.exists():
        said = (done.stderr + done.stdout).strip().splitlines()
        raise TraceqError(
            f"{path}: nsys {version} cannot export it: {said[-1] if said else f'status {done.returncode}'}",
            "a report opens in the nsys that wrote it, or a newer one",
            Status.INPUT,
        )
    return target


def _version(path: str, program: str) -> str:
    done = _run([program, "--version"])
    found = re.search(r"(\d{4})\.(\d+)[\d.]*", done.stdout)
    if done.returncode or not found or (int(found[1]), int(found[2])) < OLDEST_NSYS:
        what = f"{path}: {program} is no nsys of {OLDEST_NSYS[0]} or later: {done.stdout.strip() or 'it says nothing'}"
        raise TraceqError(what, f"put a newer nsys on the path, or: {EXPORT} {Path(path).name}", Status.INPUT)
    return found[0]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
