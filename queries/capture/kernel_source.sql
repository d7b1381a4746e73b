-- title: The source of a kernel
-- what: The generated source of the kernels of a captured run, line by line.
-- value: What was fused, in which order memory is read, and with which configuration: what a name such as triton_per_fused_add_0 only hints at.
-- needs: kernel_sources
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: kernel VARCHAR = NULL -- name or hash of the kernel; NULL means all
-- column: line BIGINT -- number of the line
-- column: source VARCHAR -- its text
-- column: kernel VARCHAR -- name of the kernel
-- column: hash VARCHAR -- name of its file, as traces have it; NULL if not known
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled; NULL if it is not one of several
-- order: run, rank, kernel, hash, line
-- example: traceq query kernel_source --run train/default -p kernel=triton_poi_fused_add_0 --wide

WITH split AS (
    SELECT
        r.label AS run,
        k.rank,
        k.kernel,
        k.hash,
        k.source AS whole,
        string_split(rtrim(k.source, chr(10)), chr(10)) AS lines
    FROM kernel_sources AS k
    JOIN runs AS r USING (run_id)
    WHERE r.label = coalesce($run::VARCHAR, r.label) AND ($kernel::VARCHAR IS NULL OR $kernel::VARCHAR IN (k.kernel, k.hash))
),

numbered AS (
    SELECT run, rank, kernel, hash, whole, unnest(range(1, len(lines) + 1)) AS line, unnest(lines) AS source
    FROM split
)

SELECT line, source, kernel, hash, run, rank
FROM numbered
ORDER BY run, rank, kernel, hash, whole, line
