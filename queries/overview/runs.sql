-- title: The runs in the store
-- what: Each run with its files, GPU, steps, un-profiled step time, kernels and the share of the window the GPU was busy.
-- value: What there is to ask about, and the labels that --run takes.
-- needs: runs, traces
-- column: run VARCHAR -- run label
-- column: traces BIGINT count -- files in the run, one a rank
-- column: format VARCHAR -- where they come from
-- column: status VARCHAR -- complete, or salvaged if any of its files was broken
-- column: gpu VARCHAR -- name of the GPU
-- column: steps BIGINT count -- steps marked, over all files; NULL for a run without a trace
-- column: step_ns BIGINT ns -- un-profiled pipelined step time, if it was measured
-- column: kernels BIGINT count -- kernels, over all files; NULL for a run without a trace
-- column: kernel_ns BIGINT ns -- sum of kernel durations
-- column: busy_pct DOUBLE percent -- busy of the window, over all devices
-- column: size_bytes BIGINT bytes -- size of the files
-- column: created VARCHAR -- when the run came into the store (UTC)
-- order: run_id
-- example: traceq runs

WITH files AS (
    SELECT
        run_id,
        count(*) AS traces,
        string_agg(DISTINCT format, ', ' ORDER BY format) AS format,
        max(status) AS status,
        sum(size_bytes)::BIGINT AS size_bytes
    FROM traces
    GROUP BY run_id
),

kernel AS (
    SELECT l.run_id, count(*) AS kernels, sum(a.dur_ns)::BIGINT AS kernel_ns
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY l.run_id
),

busy AS (
    SELECT l.run_id, 100.0 * sum(d.busy_ns) / nullif(sum(d.window_ns) FILTER (d.busy_ns IS NOT NULL), 0) AS busy_pct
    FROM device_windows AS d
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run_id
),

stepped AS (
    SELECT l.run_id, count(*) AS steps
    FROM steps AS s
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run_id
)

SELECT
    r.label AS run,
    coalesce(f.traces, 0) AS traces,
    f.format,
    f.status,
    r.gpu,
    CASE WHEN f.traces > 0 THEN coalesce(s.steps, 0) END AS steps,
    r.step_pipelined_ns AS step_ns,
    CASE WHEN f.traces > 0 THEN coalesce(k.kernels, 0) END AS kernels,
    k.kernel_ns,
    b.busy_pct,
    f.size_bytes,
    strftime(r.created_at, '%Y-%m-%d %H:%M:%S') AS created
FROM runs AS r
LEFT JOIN files AS f USING (run_id)
LEFT JOIN kernel AS k USING (run_id)
LEFT JOIN busy AS b USING (run_id)
LEFT JOIN stepped AS s USING (run_id)
ORDER BY r.run_id
