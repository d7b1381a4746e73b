"""The Python interface: a store whose questions are answered with Polars frames."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from traceq import query as queries
from traceq.errors import TraceqError
from traceq.store import files


class Store:
    """A store, read-only. Use it as a context manager or call `close`.

    `path` as for `traceq.open`. Frames have base units (ns, bytes) and the columns that the query's header declares.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = files.store_path(path)
        self._con = files.open_store(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"traceq.open({str(self.path)!r})"

    def query(self, name: str, **params: queries.Value) -> pl.DataFrame:
        """The rows of a canned query, e.g. `query("gemm_share", run="eager")`; raises as the command fails."""
        query = queries.load(name)
        result = queries.run(self._con, query, params)
        schema = {c.name: POLARS[c.type] for c in query.columns}
        return pl.DataFrame(result.rows, schema=schema, orient="row")

    def sql(self, statement: str) -> pl.DataFrame:
        """The rows of any SQL, which can read this store and nothing else. Raises TraceqError with DuckDB's reason."""
        with files.locked_down(self.path) as con:
            try:
                found = con.sql(statement)
                return pl.DataFrame() if found is None else pl.DataFrame(found)
            except duckdb.Error as error:
                raise TraceqError(*queries.explain(error)) from error

    def trust(self, *runs: str) -> dict[str, dict[str, object]]:
        """What the numbers of `runs` (none given: of all) cannot see, by run."""
        return queries.trust(self._con, runs)

    def close(self) -> None:
        """Let go of the file."""
        self._con.close()


POLARS = {"BIGINT": pl.Int64, "INTEGER": pl.Int32, "DOUBLE": pl.Float64, "VARCHAR": pl.String, "BOOLEAN": pl.Boolean}
