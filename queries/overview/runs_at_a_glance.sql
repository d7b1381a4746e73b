-- title: The runs side by side
-- what: Each run with its step time, how busy its GPUs were and the share of matrix products, step by step.
-- value: Which run to look at, and whether its steps are alike; compiling leaves the matrix products and shrinks the rest.
-- needs: runs, traces, gpu_activities
-- column: run VARCHAR -- run label
-- column: step_ns BIGINT ns -- un-profiled pipelined step time, if it was measured
-- column: period_ns DOUBLE ns -- median period of a step under the profiler, flagged steps left out
-- column: busy_pct DOUBLE percent -- busy of the window, over all devices; NULL if graph replays were not recorded
-- column: gemm_pct_of_kernel DOUBLE percent -- kernel time in matrix products, of all kernel time; likewise
-- column: gemm_by_step VARCHAR -- that share step by step, in eighths from ▁ to █; over 24 steps are put together to 24 stretches
-- column: steps BIGINT count -- steps marked, over all files; NULL for a run without a trace
-- column: kernels BIGINT count -- kernels, over all files; NULL for a run without a trace
-- column: kernel_ns BIGINT ns -- sum of kernel durations
-- column: gpu VARCHAR -- name of the GPU
-- column: traces BIGINT count -- files in the run, one a rank
-- column: format VARCHAR -- where they come from
-- column: status VARCHAR -- complete, or salvaged if any of its files was broken
-- order: run_id
-- example: traceq query runs_at_a_glance

WITH files AS (
    SELECT
        run_id,
        count(*) AS traces,
        string_agg(DISTINCT format, ', ' ORDER BY format) AS format,
        max(status) AS status,
        max(invisible_replays) = 0 AS is_whole
    FROM traces
    GROUP BY run_id
),

kernel AS (
    SELECT
        l.run_id,
        a.step,
        count(*) AS kernels,
        sum(a.dur_ns) AS kernel_ns,
        coalesce(sum(a.dur_ns) FILTER (a.category = 'gemm'), 0) AS gemm_ns
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY l.run_id, a.step
),

summed AS (
    SELECT
        run_id,
        sum(kernels)::BIGINT AS kernels,
        sum(kernel_ns)::BIGINT AS kernel_ns,
        100.0 * sum(gemm_ns) / nullif(sum(kernel_ns), 0) AS gemm_pct
    FROM kernel
    GROUP BY run_id
),

stretched AS (
    SELECT run_id, kernel_ns, gemm_ns, ntile(24) OVER (PARTITION BY run_id ORDER BY step) AS stretch
    FROM kernel
    WHERE step IS NOT NULL
),

levels AS (
    SELECT run_id, stretch, (8 * sum(gemm_ns)) // nullif(sum(kernel_ns), 0) AS level
    FROM stretched
    GROUP BY run_id, stretch
),

drawn AS (
    SELECT run_id, string_agg(substr('▁▂▃▄▅▆▇█', 1 + least(level, 7)::INTEGER, 1), '' ORDER BY stretch) AS gemm_by_step
    FROM levels
    GROUP BY run_id
),

busy AS (
    SELECT l.run_id, 100.0 * sum(d.busy_ns) / nullif(sum(d.window_ns) FILTER (d.busy_ns IS NOT NULL), 0) AS busy_pct
    FROM device_windows AS d
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run_id
),

followed AS (
    SELECT s.*, lead(s.flags) OVER (PARTITION BY s.trace_id, s.pid ORDER BY s.step) AS next_flags
    FROM steps AS s
),

stepped AS (
    SELECT
        l.run_id,
        count(*) AS steps,
        median(s.period_ns) FILTER (len(s.flags) = 0 AND len(s.next_flags) = 0) AS period_ns
    FROM followed AS s
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run_id
)

SELECT
    r.label AS run,
    r.step_pipelined_ns AS step_ns,
    s.period_ns,
    CASE WHEN f.is_whole THEN b.busy_pct END AS busy_pct,
    CASE WHEN f.is_whole THEN k.gemm_pct END AS gemm_pct_of_kernel,
    CASE WHEN f.is_whole THEN d.gemm_by_step END AS gemm_by_step,
    CASE WHEN f.traces > 0 THEN coalesce(s.steps, 0) END AS steps,
    CASE WHEN f.traces > 0 THEN coalesce(k.kernels, 0) END AS kernels,
    k.kernel_ns,
    r.gpu,
    coalesce(f.traces, 0) AS traces,
    f.format,
    f.status
FROM runs AS r
LEFT JOIN files AS f USING (run_id)
LEFT JOIN summed AS k USING (run_id)
LEFT JOIN drawn AS d USING (run_id)
LEFT JOIN busy AS b USING (run_id)
LEFT JOIN stepped AS s USING (run_id)
ORDER BY r.run_id
