"""traceq: where does the GPU's time go, and what would make it faster?

`traceq.open(path)` gives a store whose `query` and `sql` return Polars frames. Nothing heavy is imported before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceq.version import __version__

if TYPE_CHECKING:
    from os import PathLike

    from traceq.api import Store

__all__ = ["__version__", "open"]


def open(path: str | PathLike[str] | None = None) -> Store:
    """The store at `path` (else `$TRACEQ_STORE`, else `./traceq.duckdb`), read-only.

    Raises TraceqError when there is no store, when it is locked or written by a newer traceq.
    """
    from traceq.api import Store

    return Store(path)
