-- title: The steps and what the GPU did for each
-- what: Each step with its host time, GPU span, period, busy time, kernels and flags; work belongs to the step that launched it.
-- value: Steps that differ point at warm-up, compilation or changing shapes; flagged ones are left out of medians.
-- needs: steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: flags VARCHAR -- no_gpu, compiles, partial; NULL if none
-- column: host_ns BIGINT ns -- length of the step on the host
-- column: gpu_span_ns BIGINT ns -- from its first GPU start to its last GPU end; neighbours may overlap
-- column: period_ns BIGINT ns -- to the next step's first GPU start; NULL for the last
-- column: gpu_busy_ns BIGINT ns -- union of its GPU work, summed over devices
-- column: kernels BIGINT count -- kernels it launched
-- column: kernel_ns BIGINT ns -- sum of their durations
-- column: gemm_ns BIGINT ns -- of that, matrix products
-- column: memop_ns BIGINT ns -- sum of copy and memset durations
-- column: launches BIGINT count -- launch calls, graph launches included
-- chart: bar x=step y=gpu_busy_ns
-- order: run, rank, start
-- example: traceq query steps --run eager

WITH gemm AS (
    SELECT a.trace_id, a.pid, a.step, sum(a.dur_ns) AS gemm_ns
    FROM gpu_activities AS a
    WHERE a.category = 'gemm' AND a.step IS NOT NULL
    GROUP BY a.trace_id, a.pid, a.step
)

SELECT
    l.run,
    l.rank,
    s.step,
    nullif(array_to_string(s.flags, ', '), '') AS flags,
    s.dur_ns AS host_ns,
    s.gpu_end_ns - s.gpu_start_ns AS gpu_span_ns,
    s.period_ns,
    s.gpu_busy_ns,
    s.kernels,
    s.kernel_ns,
    CASE WHEN s.kernel_ns IS NOT NULL THEN coalesce(g.gemm_ns, 0) END::BIGINT AS gemm_ns,
    s.memop_ns,
    s.launches
FROM steps AS s
JOIN labels AS l USING (trace_id)
LEFT JOIN gemm AS g ON g.trace_id = s.trace_id AND g.pid = s.pid AND g.step = s.step
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, s.start_ns, s.step, s.pid, s.trace_id
