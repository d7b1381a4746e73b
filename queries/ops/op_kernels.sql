-- title: Which kernels each operator launches
-- what: Kernels by the innermost operator open at their launch, with category, number and durations; ranks are summed.
-- value: One operator with many small kernels is what fusion helps; one with a single long kernel needs another kernel.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: op VARCHAR = NULL -- part of the operator's name, or a pattern with * and ?; NULL means all
-- param: top BIGINT = 30 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- operator that launches it directly; of a replayed graph, the one around the graph launch; (no operator) where none was open
-- column: kernel VARCHAR -- short name of the kernel
-- column: category VARCHAR -- what the kernel computes
-- column: kernels BIGINT count -- kernels
-- column: total_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; NULL if graph replays were not recorded
-- column: pct_of_op DOUBLE percent -- of the kernel time that the operator launches directly
-- column: mean_ns DOUBLE ns -- mean duration
-- chart: bar x=kernel y=total_ns
-- order: run, total_ns DESC
-- example: traceq query op_kernels --run eager -p op=aten::addmm

WITH picked AS (
    SELECT trace_id, run, max(invisible_replays) OVER (PARTITION BY run) = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

grouped AS (
    SELECT
        p.run,
        p.is_whole,
        CASE WHEN o.op_id IS NULL THEN '(no operator)' ELSE o.name END AS op,
        a.short_name AS kernel,
        a.category,
        count(*) AS kernels,
        sum(a.dur_ns)::BIGINT AS total_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
    WHERE a.kind = 'kernel'
    GROUP BY ALL
),

shared AS (
    SELECT
        *,
        CASE WHEN is_whole THEN 100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run), 0) END AS pct_of_kernel,
        100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run, op), 0) AS pct_of_op
    FROM grouped
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, op, kernel, category) AS place
    FROM shared
    WHERE $op::VARCHAR IS NULL OR op GLOB $op::VARCHAR OR contains(op, $op::VARCHAR)
)

SELECT
    run,
    op,
    kernel,
    category,
    kernels,
    total_ns,
    pct_of_kernel,
    pct_of_op,
    total_ns / nullif(kernels, 0) AS mean_ns
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
