"""Adding derived traces to a store: which run a trace belongs to, and copying its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from traceq.store import captures
from traceq.store.build import trace_tables
from traceq.store.files import quoted

NAME_GPUS = """
UPDATE runs SET gpu = coalesce((
    SELECT string_agg(DISTINCT d.name, ', ' ORDER BY d.name) FROM devices AS d JOIN traces AS t USING (trace_id)
    WHERE t.run_id = runs.run_id
), gpu) WHERE run_id = ?
"""

# How many files of a run leave no place in it for those of the scratch store.
IN_THE_WAY = """
WITH held AS (
    SELECT rank, world_size FROM traces WHERE run_id = $run
    UNION ALL SELECT rank, world_size FROM captures WHERE run_id = $run
), coming AS (
    SELECT rank, world_size FROM scratch.traces UNION ALL SELECT rank, world_size FROM scratch.captures
)
SELECT count(*) FROM held AS h, coming AS c
WHERE h.rank = c.rank OR h.rank IS NULL OR c.rank IS NULL OR h.world_size IS DISTINCT FROM c.world_size
"""
SAME_RANK = """
SELECT count(*) FROM captures AS h, scratch.captures AS c WHERE h.run_id = $run AND h.rank IS NOT DISTINCT FROM c.rank
"""


@dataclass(frozen=True)
class Held:
    """The files that a store holds: the run of each by its sha256, the sizes that occur, the damaged runs.

    `captures` are the runs of records of captures, by the sha256 of the record.
    """

    runs: dict[str, str]
    sizes: set[int]
    salvaged: set[str]
    captures: dict[str, str]


def held(con: duckdb.DuckDBPyConnection) -> Held:
    """The files that the store on `con` holds."""
    found = con.execute(
        "SELECT t.sha256, r.label, t.size_bytes, t.status FROM traces AS t JOIN runs AS r USING (run_id)"
    ).fetchall()
    records = con.execute("SELECT c.sha256, r.label FROM captures AS c JOIN runs AS r USING (run_id)").fetchall()
    return Held(
        {sha256: run for sha256, run, _, _ in found},
        {size for _, _, size, _ in found},
        {run for _, run, _, status in found if status == "salvaged"},
        dict(records),
    )


def add_trace(con: duckdb.DuckDBPyConnection, scratch: Path, label: str) -> str:
    """Copy what `scratch` holds (one trace, a capture, or both) into the store under the run `label`; the label it got.

    A run holds one trace a rank. If that place is taken by another file, the trace becomes a run of its own with a
    number behind the label: two files are never merged into one rank, and none replaces the other. A scratch store that
    has become the store itself only needs its label.
    """
    if not scratch.exists():
        con.execute("UPDATE runs SET label = ?", [label])
        return label
    with _attached(con, scratch):
        run_id, label = _run_for(con, label)
        trace_id = _scalar(con, "SELECT coalesce(max(trace_id), 0) + 1 FROM traces")
        con.execute(
            "INSERT INTO traces BY NAME SELECT * REPLACE (? AS trace_id, ? AS run_id) FROM scratch.traces",
            [trace_id, run_id],
        )
        for table in trace_tables(con):
            con.execute(
                f"INSERT INTO {table} BY NAME SELECT * REPLACE (? AS trace_id) FROM scratch.{table}", [trace_id]
            )
        captures.add(con, run_id)
        con.execute(NAME_GPUS, [run_id])
    return label


def add_capture(con: duckdb.DuckDBPyConnection, scratch: Path, label: str) -> bool:
    """Copy the capture of `scratch` to the run `label`, which has its trace; False if it has one of that rank."""
    with _attached(con, scratch):
        run_id = _scalar(con, "SELECT run_id FROM runs WHERE label = $label", label=label)
        if _scalar(con, SAME_RANK, run=run_id):
            return False
        captures.add(con, run_id)
    return True


@contextlib.contextmanager
def _attached(con: duckdb.DuckDBPyConnection, scratch: Path) -> Iterator[None]:
    con.execute(f"ATTACH {quoted(scratch)} AS scratch (READ_ONLY)")
    try:
        yield
    finally:
        con.execute("DETACH scratch")


def set_step(con: duckdb.DuckDBPyConnection, label: str, kind: str, step_ns: int) -> None:
    """Record an un-profiled step time (`pipelined` or `synced`) as measured elsewhere, so without an interval."""
    con.execute(
        f"UPDATE runs SET step_{kind}_ns = ?, step_{kind}_low_ns = NULL, step_{kind}_high_ns = NULL WHERE label = ?",
        [step_ns, label],
    )


def _run_for(con: duckdb.DuckDBPyConnection, wanted: str) -> tuple[int, str]:
    number, label = 1, wanted
    while True:
        found = con.execute("SELECT run_id FROM runs WHERE label = ?", [label]).fetchone()
        if not found:
            return _new_run(con, label), label
        if not _scalar(con, IN_THE_WAY, run=found[0]):
            return int(found[0]), label
        number += 1
        label = f"{wanted}-{number}"


def _new_run(con: duckdb.DuckDBPyConnection, label: str) -> int:
    run_id = _scalar(con, "SELECT coalesce(max(run_id), 0) + 1 FROM runs")
    con.execute(
        "INSERT INTO runs BY NAME "
        "SELECT * REPLACE (? AS run_id, ? AS label, make_timestamp(epoch_us(now())) AS created_at) FROM scratch.runs",
        [run_id, label],
    )
    return run_id


def write_trace(con: duckdb.DuckDBPyConnection, trace: dict[str, object], step_ns: int | None) -> None:
    """The rows of `traces` and `runs` in a scratch store; their ids and the label are given when it is published."""
    row = {
        **trace,
        "warnings": captures.as_json(trace["warnings"]),
        "metadata": captures.as_json(trace["metadata"]),
    }
    names = ", ".join(f"? AS {name}" for name in row)
    con.execute(
        f"""
        INSERT INTO traces BY NAME
        SELECT 1 AS trace_id, 1 AS run_id, {names},
            (SELECT invisible_replays FROM stage.blind) AS invisible_replays,
            (SELECT count(*) FILTER (disagrees) FROM stage.explained) AS op_disagreements,
            (
                SELECT CASE WHEN bool_and((a.start_ns + o.ns) % 1000 = 0 AND a.dur_ns % 1000 = 0) THEN 1000 ELSE 1 END
                FROM gpu_activities AS a, stage.origin AS o HAVING count(*) > 0
            ) AS resolution_ns,
            greatest(
                (SELECT max(start_ns + dur_ns) FROM gpu_activities), (SELECT max(start_ns + dur_ns) FROM api_calls),
                (SELECT max(start_ns + dur_ns) FROM ops), (SELECT max(start_ns + dur_ns) FROM ranges),
                (SELECT max(start_ns + dur_ns) FROM python_calls)
            ) AS duration_ns
        """,
        list(row.values()),
    )
    con.execute("UPDATE processes SET rank = ?", [trace["rank"]])
    con.execute(
        """
        INSERT INTO runs BY NAME
        SELECT 1 AS run_id, '' AS label, make_timestamp(epoch_us(now())) AS created_at, ? AS step_pipelined_ns,
            (SELECT string_agg(DISTINCT name, ', ' ORDER BY name) FROM devices) AS gpu
        """,
        [step_ns],
    )


def _scalar(con: duckdb.DuckDBPyConnection, sql: str, **values: object) -> int:
    found = con.execute(sql, values or None).fetchone()
    return int(found[0]) if found else 0
