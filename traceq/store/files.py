"""The store as a file: where it is, opening it, locking it down, and publishing a new one in its place."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import duckdb

from traceq.errors import Status, TraceqError
from traceq.store.build import CONFIG, SCHEMA_VERSION, complete, create, create_tables
from traceq.store.path import DEFAULT as DEFAULT
from traceq.store.path import is_text as is_text
from traceq.store.path import store_path as store_path

MEMORY = Path(":memory:")
STORAGE_VERSION = "v1.5.0"
STAGE_ROWS = 16_384
LOCK_PATIENCE_S = 30.0
EARLY_S = 600.0  # a folder that got no lock for so long has no owner


def open_store(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection. Raises TraceqError (store) when it is missing, locked, no store, or of a newer traceq."""
    if not path.exists():
        raise TraceqError(f"no store at {path}", _hint_make(path), Status.STORE)
    con = connect(path, read_only=True)
    try:
        check_version(con, path)
    except BaseException:
        con.close()
        raise
    return con


def is_database(path: Path) -> bool:
    """Whether a file begins as DuckDB's do, a store's among them."""
    try:
        with open(path, "rb") as file:
            return path.is_file() and file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def empty_store() -> duckdb.DuckDBPyConnection:
    """A store without a trace, in memory: for schema, lint and documentation."""
    con = connect(MEMORY)
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
def publishing(path: Path, seed: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A private copy of the store to change; on success it takes the store's place, on any failure nothing changed.

    Where there is no store yet, the scratch store `seed` (moved, not copied) becomes it. Readers keep what they have
    open and are never waited for; another publisher is waited for, for half a minute. Raises TraceqError (store) when
    that one does not end, or when a client holds the store for writing.
    """
    with _lock(path):
        new = _unfinished(path)[0]
        _remove(*_unfinished(path))
        is_first = not path.exists()
        try:
            if not is_first:
                with contextlib.closing(open_store(path)):
                    shutil.copyfile(path, new)
                    shutil.copymode(path, new)
            elif seed:
                os.replace(seed, new)
            with contextlib.closing(connect(new)) as con:
                con.execute("BEGIN")
                if is_first:
                    complete(con) if seed else create(con)
                yield con
                con.execute("COMMIT")
                con.execute("CHECKPOINT")
            _sync(new)
            os.replace(new, path)
        finally:
            _remove(*_unfinished(path))


@contextlib.contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder beside the store that only this process uses; what killed runs left behind is removed first.

    It gets its name when its lock is held, so a folder of that name whose lock is free belongs to nobody.
    """
    _clean(path)
    try:
        early = Path(tempfile.mkdtemp(prefix=f"{path.name}.early-", dir=path.parent))
    except OSError as error:
        raise _cannot_write(path, error) from error
    folder = early.with_name(early.name.replace(".early-", ".scratch-"))
    with open(early / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        early.rename(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _clean(path: Path) -> None:
    """Remove what ingests of this store that were killed have left."""
    name = glob.escape(path.name)
    for old in path.parent.glob(f"{name}.scratch-*"):
        with contextlib.suppress(OSError), open(old / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
    unlocked = [old for old in path.parent.glob(f"{name}.scratch-*") if not (old / "lock").exists()]
    for old in [*unlocked, *path.parent.glob(f"{name}.early-*")]:
        if time.time() - old.stat().st_mtime > EARLY_S:
            shutil.rmtree(old, ignore_errors=True)
    lock_name = _lock_name(path)
    if any(left.exists() for left in (*_unfinished(path), lock_name)):
        with contextlib.suppress(BlockingIOError), _open_lock(lock_name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(lock, lock_name):
                _remove(*_unfinished(path), lock_name)


def _unfinished(path: Path) -> tuple[Path, Path]:
    """The store that is being made, and its write-ahead log."""
    return path.with_name(f"{path.name}.new"), path.with_name(f"{path.name}.new.wal")


def scratch_store(path: Path, store: Path, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """The tables of a store in a scratch file, with a `stage` database beside it for what is only needed on the way.

    The rules are those of `store`, to which users may have added, or the built-in ones where there is none yet. Row
    groups of the stage are small so that all threads have some to read in a small trace too.
    """
    con = connect(path, memory_limit=memory_limit, temp_directory=str(path.with_suffix(".spill")))
    con.execute("BEGIN")
    create_tables(con)
    con.execute("COMMIT")
    if store.exists():
        con.execute(f"ATTACH {quoted(store)} AS published (READ_ONLY)")
        con.execute("DELETE FROM rules")
        con.execute("INSERT INTO rules FROM published.rules")
        con.execute("DETACH published")
        _check_rules(con, store)
    con.execute(f"ATTACH {quoted(path.with_suffix('.stage'))} AS stage (ROW_GROUP_SIZE {STAGE_ROWS})")
    return con


def _check_rules(con: duckdb.DuckDBPyConnection, store: Path) -> None:
    try:
        con.execute("SELECT count(*) FILTER (regexp_matches('', pattern)) FROM rules").fetchall()
    except duckdb.Error as error:
        for priority, pattern in con.execute("SELECT priority, pattern FROM rules ORDER BY priority").fetchall():
            try:
                con.execute("SELECT regexp_matches('', ?)", [pattern]).fetchall()
            except duckdb.Error:
                what = f"{store}: the rule of priority {priority} is no regular expression: {pattern!r}"
                raise TraceqError(what, "correct or delete it in the table rules", Status.STORE) from error


def quoted(path: Path) -> str:
    """A path as an SQL string."""
    return f"""'{str(path).replace("'", "''")}'"""


def connect(path: Path, read_only: bool = False, **config: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection as every part of traceq wants it; TraceqError (store) when the file cannot be opened."""
    settings = {**CONFIG, "storage_compatibility_version": STORAGE_VERSION, **config}
    try:
        con = duckdb.connect(path, read_only=read_only, config=settings)
        con.execute("SET enable_progress_bar = false")  # DuckDB would draw it on standard output
        return con
    except duckdb.Error as error:
        if holder := re.search(r"PID (\d+)", str(error)):
            what, hint = f"held for writing by process {holder[1]}", "close it there, or name another --store"
        elif isinstance(error, duckdb.ConnectionException):
            what, hint = "open in this process with other settings", "close that DuckDB connection first"
        else:
            what, hint = f"not a store: {str(error).splitlines()[0]}", "name another with --store"
        raise TraceqError(f"{path}: {what}", hint, Status.STORE) from error


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold STORE.lock; it names the holder, and is gone when nobody holds it."""
    name = _lock_name(path)
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


def _lock_name(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _open_lock(name: Path) -> IO[str]:
    try:
        return open(name, "a+")
    except OSError as error:
        raise _cannot_write(name, error) from error


def _cannot_write(path: Path, error: OSError) -> TraceqError:
    what = f"{path.parent}: cannot write there: {error.strerror}"
    return TraceqError(what, "name another place with --store", Status.STORE)


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
    where = "" if path.name == DEFAULT else f" --store {shlex.quote(str(path))}"
    return f"make one: traceq ingest TRACE.json.gz{where}, or try: traceq demo"
