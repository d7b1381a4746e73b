"""SQL of strangers: what it may be, and a connection on which it can do no harm."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

from traceq.errors import Status, TraceqError
from traceq.store.files import MEMORY, connect, is_text, open_store, quoted

MEMORY_LIMIT = "2GB"
COMMENT = r"(?:--[^\n]*\n|/\*.*?\*/|\s)*"
EXPLAIN = re.compile(rf"{COMMENT}EXPLAIN{COMMENT}(?:ANALYZE\b|\([^)]*\))?", re.I | re.S)
SHOW = re.compile(rf"{COMMENT}SHOW\b", re.I | re.S)


@contextlib.contextmanager
def locked_down(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads the store and nothing else, and can write nowhere but to a private folder.

    The store is attached read-only first; then external access goes off and the configuration is locked. The folder for
    spilled data disappears with the connection.
    """
    open_store(path).close()
    spill = tempfile.mkdtemp(prefix="traceq-")
    con = connect(MEMORY, temp_directory=spill, memory_limit=MEMORY_LIMIT)
    try:
        con.execute(f"ATTACH {quoted(path)} AS store (READ_ONLY)")
        con.execute("USE store")
        con.execute("SET enable_external_access = false; SET lock_configuration = true")
        yield con
    finally:
        con.close()
        shutil.rmtree(spill, ignore_errors=True)


def check_statement(con: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raise TraceqError (usage) unless `text` is one statement that only reads: SELECT in any form, or EXPLAIN of one.

    Raises duckdb.Error where DuckDB cannot parse it.
    """
    if not is_text(text):
        raise TraceqError("the statement is not UTF-8", "traceq sql - < FILE reads one", Status.USAGE)
    found = con.extract_statements(text)
    if len(found) != 1:
        raise TraceqError(f"one statement at a time, not {len(found)}", 'traceq sql "SELECT …"', Status.USAGE)
    kind = _kind(found[0])
    if kind == "EXPLAIN":
        kind = _kind(con.extract_statements(EXPLAIN.sub("", text, count=1))[0])
    if kind not in ("SELECT", "MULTI"):  # PIVOT is MULTI
        raise TraceqError(f"only statements that read are run, not {kind}", 'traceq sql "SELECT …"', Status.USAGE)


def _kind(statement: duckdb.Statement) -> str:
    try:
        return statement.type.name
    except ValueError:  # DuckDB knows kinds that its own Python enumeration lacks
        return "this one"
