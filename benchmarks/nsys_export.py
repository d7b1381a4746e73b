"""Write a synthetic export of Nsight Systems: KERNELS kernels, two API calls for each, in annotated steps.

    python benchmarks/nsys_export.py 2000000 BIG.sqlite

Only what a reader cares for: the tables and columns of a real export (nsys 2024), names by id, several streams, a copy
for every hundred kernels, a step of a thousand kernels with the operators of emit_nvtx in it.
"""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_GPU (
    vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER,
    smCount INTEGER, uuid TEXT, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
    cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
    staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
    localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER,
    sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
    copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
    nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
    text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
"""
PID = (1 << 48) | (4242 << 24)
TID = PID | 4242
STEP_KERNELS = 1000
KERNEL_NAMES = 200
FIRST_NAME = 10

# A launch every 10 µs, its kernel 6 µs later and 8 µs long, a second call between. `:n` is the number of kernels.
ROWS = f"""
WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < :n)
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
SELECT i * 10000 + 6000, i * 10000 + 14000 - i % 977, 0, 1, NULL, 7 + i % 3, 2 * i + 1, {PID},
    {FIRST_NAME} + i % {KERNEL_NAMES}, {FIRST_NAME} + i % {KERNEL_NAMES}, {FIRST_NAME} + i % {KERNEL_NAMES}, 1, 0, 32,
    i % 1024 + 1, 1, 1, 256, 1, 1, 0, i % 7 * 1024, 0, 0, i, 32768, NULL, 0 FROM k;
WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < 2 * :n)
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
SELECT i * 5000, i * 5000 + 3000 + i % 1009, 0, {TID}, i + 1, i % 2 + 1, 0, NULL FROM k;
WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < :n / 100)
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY
SELECT i * 1000000 + 500, i * 1000000 + 2500, 0, 1, NULL, 7, 200 * i + 2, {PID}, 4096 + i, 1, 0, 2 FROM k;
WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < max(:n / {STEP_KERNELS}, 1))
INSERT INTO NVTX_EVENTS
SELECT i * {STEP_KERNELS}0000, i * {STEP_KERNELS}0000 + {STEP_KERNELS}0000 - 1000, 59, NULL, NULL, NULL,
    'step' || i, {TID}, NULL, NULL, 0 FROM k;
WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i + 1 < :n / 4)
INSERT INTO NVTX_EVENTS
SELECT i * 40000 + 100, i * 40000 + 39000, 59, NULL, NULL, NULL,
    'aten::mm, seq = ' || i || ', op_id = ' || (i * 3 + 1), {TID}, NULL, NULL, 0 FROM k;
"""


def write(path: Path, kernels: int) -> None:
    """Make the export `path` of `kernels` kernels; a file that is there is replaced."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as con:
        con.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
        names = [(1, "cudaLaunchKernel_v7000"), (2, "cudaMemcpyAsync_v3020")]
        names += [
            (FIRST_NAME + n, f"void at::native::vectorized_elementwise_kernel<4, Op{n}<float>>(int, T2, T3)")
            for n in range(KERNEL_NAMES)
        ]
        con.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        con.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.13.2')")
        con.execute("INSERT INTO PROCESSES VALUES (?, 4242, 'python3')", [PID])
        con.execute("INSERT INTO TARGET_INFO_GPU VALUES (?, 0, 'GPU', 1, 1, 132, 'u', 9, 0)", [1 << 48])
        for statement in ROWS.split(";")[:-1]:
            con.execute(statement, {"n": kernels})
        con.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic nsys export.")
    parser.add_argument("kernels", type=int, metavar="KERNELS")
    parser.add_argument("out", type=Path, metavar="OUT.sqlite")
    options = parser.parse_args()
    write(options.out, options.kernels)


if __name__ == "__main__":
    main()
