"""The store as a file: where it is, opening it, locking it down, and publishing a new one in its place."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import duckdb

from traceq.errors import Status, TraceqError
from traceq.store.build import CONFIG, SCHEMA_VERSION, complete, create, create_tables

MEMORY = Path(":memory:")
STORAGE_VERSION = "v1.5.0"
DEFAULT = "traceq.duckdb"
MEMORY_LIMIT = "2GB"
STAGE_ROWS = 16_384
LOCK_PATIENCE_S = 30.0


def store_path(given: str | os.PathLike[str] | None = None) -> Path:
    """`given`, else `$TRACEQ_STORE`, else `./traceq.duckdb`."""
    return Path(given or os.environ.get("TRACEQ_STORE") or DEFAULT)


def open_store(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection. Raises TraceqError (store) when it is missing, locked, no store, or of a newer traceq."""
    if not path.exists():
        raise TraceqError(f"no store at {path}", _hint_make(path), Status.STORE)
    con = _connect(path, read_only=True)
    try:
        check_version(con, path)
    except BaseException:
        con.close()
        raise
    return con


def empty_store() -> duckdb.DuckDBPyConnection:
    """A store without a trace, in memory: for schema, lint and documentation."""
    con = _connect(MEMORY)
    create(con)
    return con


def check_version(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise TraceqError (store) unless `con` is a store of this schema version."""
    try:
        found = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        version = int(found[0]) if found else 0
    except (duckdb.Error, ValueError) as error:
        raise TraceqError(
            f"{path}: a DuckDB file, but not a traceq store", "name another with --store", Status.STORE
        ) from error
    if version > SCHEMA_VERSION:
        raise TraceqError(
            f"{path}: written by a newer traceq (schema {version}; this one knows {SCHEMA_VERSION})",
            "upgrade traceq-gpu, or ingest the traces again into another --store",
            Status.STORE,
        )
    if version < SCHEMA_VERSION:
        raise TraceqError(
            f"{path}: written by an older traceq (schema {version}; this one needs {SCHEMA_VERSION})",
            "ingest the traces again into another --store",
            Status.STORE,
        )


@contextlib.contextmanager
def locked_down(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for a stranger's SQL: reads the store and nothing else, writes nowhere but to a private folder.

    The store is attached read-only first; then external access goes off and the configuration is locked. The folder for
    spilled data disappears with the connection.
    """
    open_store(path).close()
    spill = tempfile.mkdtemp(prefix="traceq-")
    con = _connect(MEMORY, temp_directory=spill, memory_limit=MEMORY_LIMIT)
    try:
        con.execute(f"ATTACH {quoted(path)} AS store (READ_ONLY)")
        con.execute("USE store")
        con.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield con
    finally:
        con.close()
        shutil.rmtree(spill, ignore_errors=True)


@contextlib.contextmanager
def publishing(path: Path, seed: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private copy of the store to change; on success it takes the store's place, on any failure nothing changed.

    Where there is no store yet, the scratch store `seed` (moved, not copied) becomes it. Readers keep what they have
    open and are never waited for; another publisher is waited for, for half a minute. Raises TraceqError (store) when
    that one does not end, or when a client holds the store for writing.
    """
    with _lock(path):
        new = path.with_name(f"{path.name}.new")
        leftovers = (new, new.with_name(f"{new.name}.wal"))
        _remove(*leftovers)
        is_first = not path.exists()
        if not is_first:
            with contextlib.closing(open_store(path)):
                shutil.copyfile(path, new)
        elif seed:
            os.replace(seed, new)
        con = _connect(new)
        try:
            con.execute("BEGIN")
            if is_first:
                complete(con) if seed else create(con)
            yield con
            con.execute("COMMIT")
            con.execute("CHECKPOINT")
            con.close()
            _sync(new)
            os.replace(new, path)
        finally:
            con.close()
            _remove(*leftovers)


@contextlib.contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder beside the store that only this process uses; those that killed runs left behind are removed first."""
    for old in path.parent.glob(f"{path.name}.scratch-*"):
        with contextlib.suppress(OSError), open(old / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{path.name}.scratch-", dir=path.parent))
    except OSError as error:
        raise TraceqError(
            f"{path.parent}: cannot write there: {error.strerror}", "name another place with --store", Status.STORE
        ) from error
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def scratch_store(path: Path, store: Path, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """The tables of a store in a scratch file, with a `stage` database beside it for what is only needed on the way.

    The rules are those of `store`, to which users may have added, or the built-in ones where there is none yet. Row
    groups of the stage are small so that all threads have some to read in a small trace too.
    """
    con = _connect(path, memory_limit=memory_limit, temp_directory=str(path.with_suffix(".spill")))
    con.execute("BEGIN")
    create_tables(con)
    con.execute("COMMIT")
    if store.exists():
        con.execute(f"ATTACH {quoted(store)} AS published (READ_ONLY)")
        con.execute("DELETE FROM rules")
        con.execute("INSERT INTO rules FROM published.rules")
        con.execute("DETACH published")
    con.execute(f"ATTACH {quoted(path.with_suffix('.stage'))} AS stage (ROW_GROUP_SIZE {STAGE_ROWS})")
    return con


def quoted(path: Path) -> str:
    """A path as an SQL string."""
    return f"""'{str(path).replace("'", "''")}'"""


def _connect(path: Path, read_only: bool = False, **config: str) -> duckdb.DuckDBPyConnection:
    settings = {**CONFIG, "storage_compatibility_version": STORAGE_VERSION, **config}
    try:
        con = duckdb.connect(path, read_only=read_only, config=settings)
        con.execute("SET enable_progress_bar = false")  # DuckDB would draw it on standard output
        return con
    except duckdb.IOException as error:
        if holder := re.search(r"PID (\d+)", str(error)):
            raise TraceqError(
                f"{path}: held for writing by process {holder[1]}",
                "close it there, or name another --store",
                Status.STORE,
            ) from error
        raise TraceqError(
            f"{path}: not a store: {str(error).splitlines()[0]}", _hint_make(path), Status.STORE
        ) from error


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold STORE.lock; it names the holder, and is gone when nobody holds it."""
    name = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        lock = _open_lock(name)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read().strip() or "another process"
            lock.close()
            if time.monotonic() > deadline:
                raise TraceqError(
                    f"{path}: being written by {holder}", "wait for it, or name another --store", Status.STORE
                ) from None
            time.sleep(0.05)
            continue
        if _is_still(lock, name):
            break
        lock.close()
    with lock:
        lock.truncate(0)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        try:
            yield
        finally:
            _remove(name)


def _open_lock(name: Path) -> IO[str]:
    try:
        return open(name, "a+")
    except OSError as error:
        raise TraceqError(
            f"{name.parent}: cannot write there: {error.strerror}", "name another place with --store", Status.STORE
        ) from error


def _is_still(lock: IO[str], name: Path) -> bool:
    """Whether `name` is the file that was locked, and not a later one."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), name.stat())
    except FileNotFoundError:
        return False


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _hint_make(path: Path) -> str:
    where = "" if path.name == DEFAULT else f" --store {path}"
    return f"make one: traceq ingest TRACE.json.gz{where}, or try: traceq demo"
