"""How nesting and deriving grow with the number of kernels: one and five million, in one run.

    python benchmarks/derive.py                    # 1 and 5 million kernels
    python benchmarks/derive.py 100000 1000000     # as many as you like

No trace is read: the staged tables are made by SQL, each kernel with its launch, two nested operators and, on two
streams, gaps of several causes. Printed are the seconds of each part and, as ratios, how the time grew. Linear growth
gives the ratio of the sizes; what is quadratic would give its square.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from traceq.ingest import kineto, nest
from traceq.store import files
from traceq.store.build import derive_links, derive_rest, derive_steps

SIZES = (1_000_000, 5_000_000)
KERNELS_A_STEP = 10_000
# Of each kernel n: an operator of 9 µs around another of 7 µs around its launch of 4 µs, every 10 µs, on one of two
# threads; the kernel runs 3 µs, on one of two streams, between 6 and 16 µs after its launch. Every 1000th launch
# comes after a synchronising call.
STAGED = """
CREATE OR REPLACE TABLE stage.ops AS
SELECT 2 * n + inner_one + 1 AS op_id, CASE inner_one WHEN 1 THEN 'aten::addmm' ELSE 'aten::linear' END AS name,
    '1' AS pid, (10 + n % 2)::VARCHAR AS tid, n * 10000 + inner_one * 1000 AS start_ns,
    9000 - inner_one * 2000 AS dur_ns,
    2 * n + inner_one + 1 AS external_id, NULL::BIGINT AS sequence, NULL::BIGINT AS forward_thread,
    NULL::JSON AS input_dims, NULL::JSON AS input_types, NULL::JSON AS input_strides, NULL::JSON AS concrete_inputs,
    NULL::VARCHAR AS module, NULL::VARCHAR AS kernel_file, NULL::VARCHAR AS kernel_hash, NULL::JSON AS details
FROM range($kernels::BIGINT) AS k (n), (VALUES (0), (1)) AS i (inner_one);

CREATE OR REPLACE TABLE stage.calls AS
SELECT n + 1 AS call_id, 'cudaLaunchKernel' AS recorded_name, 'runtime' AS api, '' AS scope, '1' AS pid,
    (10 + n % 2)::VARCHAR AS tid, n * 10000 + 2000 AS start_ns, 4000 AS dur_ns, n + 1 AS correlation_id,
    2 * n + 2 AS external_id, NULL::BIGINT AS result, NULL::JSON AS details
FROM range($kernels::BIGINT) AS k (n)
UNION ALL
SELECT $kernels + n // 1000 + 1, 'cudaStreamSynchronize', 'runtime', '', '1', (10 + n % 2)::VARCHAR, n * 10000 + 1100,
    800, 0, NULL, NULL, NULL
FROM range(0, $kernels::BIGINT, 1000) AS k (n);

CREATE OR REPLACE TABLE stage.activities AS
SELECT n + 1 AS activity_id, 'kernel' AS kind, 'kernel_' || n % 100 AS name, NULL::VARCHAR AS short_name, '' AS scope,
    NULL::VARCHAR AS pid, 0 AS device, 1 AS context,
    7 + n % 2 AS stream, n * 10000 + 8000 + (n * 7919) % 10000 AS start_ns, 3000 AS dur_ns, n + 1 AS correlation_id,
    2 * n + 2 AS external_id, NULL::BIGINT AS graph_id, NULL::BIGINT AS graph_node_id, 1 AS grid_x, 1 AS grid_y,
    1 AS grid_z, 128 AS block_x, 1 AS block_y, 1 AS block_z, 32 AS registers, 0 AS shared_bytes,
    50.0::DOUBLE AS occupancy_pct, NULL::BIGINT AS bytes, NULL::VARCHAR AS copy_kind, NULL::VARCHAR AS src_kind,
    NULL::VARCHAR AS dst_kind, NULL::BIGINT AS src_device, NULL::BIGINT AS dst_device, NULL::VARCHAR AS collective,
    NULL::JSON AS details
FROM range($kernels::BIGINT) AS k (n);

CREATE OR REPLACE TABLE stage.ranges AS
SELECT n + 1 AS range_id, 'step' AS kind, 'ProfilerStep#' || n AS name, '1' AS pid, '10' AS tid,
    n * $a_step::BIGINT * 10000 AS start_ns, $a_step::BIGINT * 10000 AS dur_ns, NULL::BIGINT AS external_id,
    NULL::JSON AS details
FROM range($kernels::BIGINT // $a_step::BIGINT) AS k (n);
"""


def main() -> None:
    """Time each size and print the table."""
    sizes = [int(a) for a in sys.argv[1:]] or list(SIZES)
    found = {size: measure(size) for size in sizes}
    parts = list(next(iter(found.values())))
    print(f"{'kernels':>10}  " + "  ".join(f"{part:>14}" for part in parts))
    for size, seconds in found.items():
        print(f"{size:>10,}  " + "  ".join(f"{seconds[part]:>12.2f} s" for part in parts))
    small, large = found[sizes[0]], found[sizes[-1]]
    print(f"{sizes[-1] / sizes[0]:>9.1f}x  " + "  ".join(f"{large[p] / small[p]:>13.2f}x" for p in parts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:,.0f} MB, all sizes in one process")


def measure(kernels: int) -> dict[str, float]:
    """Seconds of nesting, of linking with gaps and causes, of the rest, and of all."""
    with tempfile.TemporaryDirectory(prefix="traceq-bench-") as folder:
        path = Path(folder) / "scratch.duckdb"
        with files.scratch_store(path, Path(folder) / "none.duckdb", "4GB") as con:
            stage(con, kernels)
            seconds = {
                "nesting": timed(lambda: (nest.nest_ranges(con), derive_steps(con), nest.nest_rest(con.cursor()))),
                "links, gaps": timed(lambda: derive_links(con)),
                "the rest": timed(lambda: derive_rest(con)),
            }
            ((stored,),) = con.execute("SELECT count(*) FROM gpu_activities").fetchall()
            if stored != kernels:
                raise SystemExit(f"{stored:,} kernels came out, not {kernels:,}")
    return seconds | {"all": sum(seconds.values())}


def stage(con: duckdb.DuckDBPyConnection, kernels: int) -> None:
    """The staged tables of a made-up trace; those that it needs empty come from reading a trace without events."""
    con.execute(kineto.CREATE)
    kineto.sort(con, kineto.Reading(), None)
    con.execute("DROP VIEW stage.activities")
    for statement in STAGED.split(";\n\n"):
        names = {name for name in ("kernels", "a_step") if f"${name}" in statement}
        values = {"kernels": kernels, "a_step": KERNELS_A_STEP}
        con.execute(statement, {name: values[name] for name in names})


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
