"""Results as data: JSON, JSON lines, CSV, Markdown, Parquet. Numbers stay in base units except in Markdown."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
from typing import IO, Any

from traceq.query import Result, unique
from traceq.show.text import heading, printable
from traceq.store.build import SCHEMA_VERSION
from traceq.units import show_value

FORMATS = ("table", "json", "jsonl", "csv", "markdown", "parquet")


def to_json(result: Result, out: IO[str], **more: object) -> None:
    """One object; see DESIGN section 6. `more` are keys that a verb adds."""
    names = unique([c.name for c in result.columns])
    whole = {
        "query": result.query,
        "params": result.params,
        "columns": [{"name": n, "type": c.type, "unit": c.unit} for n, c in zip(names, result.columns, strict=True)],
        "rows": [dict(zip(names, map(plain, row), strict=True)) for row in result.rows],
        "row_count": len(result.rows),
        "truncated": result.truncated,
        "trust": plain(result.trust),
        "schema_version": SCHEMA_VERSION,
        **more,
    }
    json.dump(whole, out, ensure_ascii=False, allow_nan=False, indent=1)
    out.write("\n")


def to_jsonl(result: Result, out: IO[str]) -> None:
    """One row a line."""
    names = unique([c.name for c in result.columns])
    for row in result.rows:
        json.dump(dict(zip(names, map(plain, row), strict=True)), out, ensure_ascii=False, allow_nan=False)
        out.write("\n")


def to_csv(result: Result, out: IO[str]) -> None:
    """RFC 4180 with line feeds; NULL is an empty field."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(unique([c.name for c in result.columns]))
    for row in result.rows:
        writer.writerow("" if (v := plain(value)) is None else _csv_value(v) for value in row)


def to_markdown(result: Result, out: IO[str]) -> None:
    """A pipe table with values as people read them."""
    out.write(f"| {' | '.join(heading(c.name, c.unit) for c in result.columns)} |\n")
    out.write(f"|{'|'.join('---' if c.type == 'VARCHAR' else '---:' for c in result.columns)}|\n")
    for row in result.rows:
        cells = [printable(show_value(v, c.unit)).replace("|", "\\|") for v, c in zip(row, result.columns, strict=True)]
        out.write(f"| {' | '.join(cells)} |\n")


def to_parquet(result: Result, out: IO[bytes]) -> None:
    """A Parquet file with the columns' own types; what Parquet or Polars lack (UUID, MAP, STRUCT, …) becomes text."""
    import polars as pl

    types = {"BIGINT": pl.Int64, "INTEGER": pl.Int32, "DOUBLE": pl.Float64, "VARCHAR": pl.String, "BOOLEAN": pl.Boolean}
    dates = {"DATE": pl.Date, "TIMESTAMP": pl.Datetime, "TIME": pl.Time}
    known = types | dates
    names = unique([c.name for c in result.columns])
    schema = {n: known.get(c.type, pl.String) for n, c in zip(names, result.columns, strict=True)}
    rows = [
        [v if c.type in known else _text(v) for v, c in zip(row, result.columns, strict=True)] for row in result.rows
    ]
    whole = io.BytesIO()
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(whole)
    out.write(whole.getvalue())


def _text(value: Any) -> str | None:
    value = plain(value)
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value that JSON has: no NaN or infinity, decimals as numbers, times as ISO text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
