"""Where the store is. Nothing here needs DuckDB, so that a screen can be painted before it is imported."""

from __future__ import annotations

import os
from pathlib import Path

from traceq.errors import Status, TraceqError

DEFAULT = "traceq.duckdb"


def store_path(given: str | os.PathLike[str] | None = None) -> Path:
    """`given`, else `$TRACEQ_STORE`, else `./traceq.duckdb`; TraceqError (store) for a name that DuckDB cannot open."""
    path = Path(given or os.environ.get("TRACEQ_STORE") or DEFAULT)
    if "?" in str(path.absolute()) or not is_text(str(path)):
        raise TraceqError(f"{path}: a store's path has no ? and is UTF-8", "name another with --store", Status.STORE)
    if path.exists() and not path.is_file():
        raise TraceqError(f"{path}: a store is a file, and this is none", "name another with --store", Status.STORE)
    return path


def is_text(text: str) -> bool:
    """Whether `text` is Unicode; bytes of the command line that are no UTF-8 are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
