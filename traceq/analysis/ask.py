"""Rows of canned queries for the analyses, by column name."""

from __future__ import annotations

from typing import Any

import duckdb

from traceq import query

Row = dict[str, Any]


def ask(con: duckdb.DuckDBPyConnection, name: str, **params: query.Value) -> list[Row]:
    """Every row of the query `name`."""
    asked = query.load(name)
    columns, rows, _ = query.fetch(con, asked.sql, query.bind(asked, params), None)
    names = [c.name for c in columns]
    return [dict(zip(names, row, strict=True)) for row in rows]
