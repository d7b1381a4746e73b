"""The Python interface: a store whose questions are answered with Polars frames."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from traceq import query as queries
from traceq.errors import Status, TraceqError
from traceq.store import files
from traceq.store.lockdown import check_statement, locked_down


class Store:
    """A store, read-only. Use it as a context manager or call `close`.

    `path` as for `traceq.open`. Frames have base units (ns, bytes) and the columns that the query's header declares.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = files.store_path(path)
        self._stack = contextlib.ExitStack()
        self._con: duckdb.DuckDBPyConnection | None = self._stack.enter_context(locked_down(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"traceq.open({str(self.path)!r})"

    def query(self, name: str, **params: queries.Value) -> pl.DataFrame:
        """The rows of a canned query, e.g. `query("gemm_share", run="eager")`; raises as the command fails."""
        query = queries.load(name)
        result = queries.run(self._open(), query, params)
        schema = {c.name: POLARS[c.type] for c in query.columns}
        return pl.DataFrame(result.rows, schema=schema, orient="row")

    def sql(self, statement: str) -> pl.DataFrame:
        """The rows of a statement, which can read this store and nothing else; raises with DuckDB's reason."""
        con = self._open()
        try:
            check_statement(con, statement)
            found = con.sql(statement)
            if len(set(found.columns)) == len(found.columns) and not any("INTERVAL" in str(t) for t in found.types):
                return pl.DataFrame(found)
        except duckdb.Error as error:
            raise TraceqError(*queries.explain(error)) from error
        columns, rows, _ = queries.fetch(con, statement, {}, None)
        return pl.DataFrame(rows, schema=queries.unique([c.name for c in columns]), orient="row")

    def trust(self, *runs: str) -> dict[str, dict[str, object]]:
        """What the numbers of `runs` (none given: of all) cannot see, by run."""
        queries.check_runs(self._open(), runs)
        return queries.trust(self._open(), runs)

    def close(self) -> None:
        """Let go of the file."""
        self._con = None
        self._stack.close()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._con is None:
            raise TraceqError(f"{self.path}: this store has been closed", "traceq.open(…) opens it again", Status.STORE)
        return self._con


POLARS = {"BIGINT": pl.Int64, "INTEGER": pl.Int32, "DOUBLE": pl.Float64, "VARCHAR": pl.String, "BOOLEAN": pl.Boolean}
