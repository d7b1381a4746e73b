"""What a capture recorded beside its trace: into the tables of a run, and from a scratch store to the store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from traceq.store.build import RUN_TABLES

TOLD = (
    *("command", "mode", "torch_version", "triton_version", "gpu", "details"),
    *("step_pipelined_ns", "step_pipelined_low_ns", "step_pipelined_high_ns"),
    *("step_synced_ns", "step_synced_low_ns", "step_synced_high_ns"),
)

# What a capture says of its whole run is told by its lowest rank, but the most memory by the rank that needs it.
TELL_MEMORY = """
UPDATE runs SET peak_memory_bytes = greatest(runs.peak_memory_bytes, s.peak_memory_bytes)
FROM scratch.runs AS s WHERE runs.run_id = $run
"""
TELL_RUN = f"""
UPDATE runs SET {", ".join(f"{name} = coalesce(s.{name}, runs.{name})" for name in TOLD)}
FROM scratch.runs AS s, scratch.captures AS c
WHERE runs.run_id = $run
    AND NOT EXISTS (FROM captures AS o WHERE o.run_id = $run AND (o.rank < c.rank OR c.rank IS NULL))
"""
# Measured once, on one GPU of the run: they hold for those of its model, or where the file names no model.
MEASURED_PEAKS = """
UPDATE devices SET
    peak_bytes_per_s = coalesce((p.peaks ->> 'bytes_per_s')::BIGINT, devices.peak_bytes_per_s),
    peak_flops = coalesce(p.peaks -> 'flops', devices.peak_flops),
    peak_source = 'measured'
FROM (
    SELECT t.trace_id, r.details -> 'peaks' AS peaks FROM traces AS t JOIN runs AS r USING (run_id) WHERE run_id = $run
) AS p
WHERE p.trace_id = devices.trace_id AND p.peaks ->> 'gpu' = coalesce(devices.name, p.peaks ->> 'gpu')
"""


def write(
    con: duckdb.DuckDBPyConnection, run: Mapping[str, Any], tables: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Put a capture into the scratch store of its trace, or into one without a trace: columns of `runs`, and rows."""
    if con.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]:
        con.execute(
            "INSERT INTO runs BY NAME SELECT 1 AS run_id, '' AS label, make_timestamp(epoch_us(now())) AS created_at"
        )
    known = {name: value for name, value in run.items() if value is not None}
    con.execute(f"UPDATE runs SET {', '.join(f'{name} = ${name}' for name in known)}", known)
    for table, rows in tables.items():
        for row in rows:
            values = {"run_id": 1, **row}
            names = ", ".join(f"${name} AS {name}" for name in values)
            con.execute(f"INSERT INTO {table} BY NAME SELECT {names}", values)
    con.execute(MEASURED_PEAKS, {"run": 1})


def add(con: duckdb.DuckDBPyConnection, run_id: int) -> None:
    """Copy the capture of the attached `scratch`, if it has one, to the run `run_id`."""
    con.execute(TELL_MEMORY, {"run": run_id})
    con.execute(TELL_RUN, {"run": run_id})
    for table in RUN_TABLES:
        con.execute(f"INSERT INTO {table} BY NAME SELECT * REPLACE (? AS run_id) FROM scratch.{table}", [run_id])
    con.execute(MEASURED_PEAKS, {"run": run_id})


def as_json(value: object) -> str:
    """JSON that DuckDB takes: half a surrogate pair is no text."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace").decode()
