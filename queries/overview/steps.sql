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
-- column: period_ns BIGINT ns -- to the next step's first GPU start; NULL for the last, and before a pause
-- column: gpu_busy_ns BIGINT ns -- union of its GPU work, summed over devices
-- column: kernels BIGINT count -- kernels it launched
-- column: late BIGINT count -- of its GPU activities, those that start after the step has ended on the host
-- column: kernel_ns BIGINT ns -- sum of the kernels' durations
-- column: gemm_ns BIGINT ns -- of that, matrix products
-- column: memop_ns BIGINT ns -- sum of copy and memset durations
-- column: launches BIGINT count -- launch calls, graph launches included
-- chart: bar x=step y=gpu_busy_ns
-- order: run, rank, start
-- example: traceq query steps --run eager

WITH work AS (
    SELECT
        a.trace_id,
        a.pid,
        a.step,
        coalesce(sum(a.dur_ns) FILTER (a.category = 'gemm'), 0) AS gemm_ns,
        count(*) FILTER (a.start_ns >= s.start_ns + s.dur_ns) AS late
    FROM gpu_activities AS a
    JOIN steps AS s ON s.trace_id = a.trace_id AND s.pid = a.pid AND s.step = a.step
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
    coalesce(w.late, 0) AS late,
    s.kernel_ns,
    w.gemm_ns::BIGINT AS gemm_ns,
    s.memop_ns,
    s.launches
FROM steps AS s
JOIN labels AS l USING (trace_id)
LEFT JOIN work AS w ON w.trace_id = s.trace_id AND w.pid = s.pid AND w.step = s.step
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, s.start_ns, s.step, s.pid, s.trace_id
