-- title: GPU time in matrix products
-- what: Shares of kernel time, busy time and step time spent in GEMM kernels, by who made them.
-- value: Above about half, fusion cannot help much: the heavy kernels stay as they are.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: origin VARCHAR -- library or compiler; all is every GEMM together
-- column: kernels BIGINT count -- GEMM kernels
-- column: gemm_ns BIGINT ns -- sum of their durations; NULL if no kernel was recorded
-- column: gemm_pct_of_kernel DOUBLE percent -- of all kernel time; NULL if no kernel was recorded
-- column: gemm_busy_ns BIGINT ns -- union of their intervals, summed over devices
-- column: gemm_pct_of_busy DOUBLE percent -- that union, of the device's busy time
-- column: gemm_ns_per_step DOUBLE ns -- in steps that count, over their number
-- column: gemm_pct_of_step DOUBLE percent -- that, of the un-profiled pipelined step; with several devices it can exceed 100; NULL if it was not measured
-- chart: bar x=origin y=gemm_ns
-- order: run, rank, all first, gemm_ns DESC
-- example: traceq query gemm_share --run eager

WITH counted AS (
    SELECT trace_id, count(*) AS steps
    FROM good_steps
    GROUP BY trace_id
),

gemm AS (
    SELECT
        trace_id,
        origin,
        pid,
        step,
        dur_ns,
        start_ns,
        start_ns + dur_ns AS end_ns,
        max(start_ns + dur_ns) OVER (
            PARTITION BY trace_id, device ORDER BY start_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns,
        max(start_ns + dur_ns) OVER (
            PARTITION BY trace_id, device, origin ORDER BY start_ns, activity_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_same_ns
    FROM gpu_activities
    WHERE category = 'gemm'
),

-- What each kernel adds to the union of all, and to that of its own origin.
added AS (
    SELECT
        *,
        greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0) AS new_ns,
        greatest(end_ns - greatest(start_ns, coalesce(before_same_ns, start_ns)), 0) AS new_same_ns
    FROM gemm
),

summed AS (
    SELECT
        g.trace_id,
        coalesce(g.origin, 'all') AS origin,
        count(*) AS kernels,
        sum(g.dur_ns) AS gemm_ns,
        CASE WHEN grouping(g.origin) = 1 THEN sum(g.new_ns) ELSE sum(g.new_same_ns) END AS gemm_busy_ns,
        coalesce(sum(g.dur_ns) FILTER (s.step IS NOT NULL), 0) AS stepped_ns
    FROM added AS g
    LEFT JOIN good_steps AS s ON s.trace_id = g.trace_id AND s.pid = g.pid AND s.step = g.step
    GROUP BY GROUPING SETS ((g.trace_id), (g.trace_id, g.origin))
),

whole AS (
    SELECT trace_id, sum(dur_ns) AS kernel_ns
    FROM gpu_activities
    WHERE kind = 'kernel'
    GROUP BY trace_id
),

busy AS (
    SELECT trace_id, sum(dur_ns) AS busy_ns
    FROM gpu_busy
    GROUP BY trace_id
),

listed AS (
    SELECT trace_id, 'all' AS origin FROM labels
    UNION
    SELECT trace_id, origin FROM summed
)

SELECT
    l.run,
    l.rank,
    o.origin,
    coalesce(g.kernels, 0) AS kernels,
    CASE WHEN w.kernel_ns IS NOT NULL THEN coalesce(g.gemm_ns, 0) END::BIGINT AS gemm_ns,
    CASE WHEN l.invisible_replays = 0 THEN 100.0 * coalesce(g.gemm_ns, 0) / nullif(w.kernel_ns, 0) END AS gemm_pct_of_kernel,
    CASE WHEN b.busy_ns IS NOT NULL THEN coalesce(g.gemm_busy_ns, 0) END::BIGINT AS gemm_busy_ns,
    100.0 * coalesce(g.gemm_busy_ns, 0) / nullif(b.busy_ns, 0) AS gemm_pct_of_busy,
    coalesce(g.stepped_ns, 0) / nullif(s.steps, 0) AS gemm_ns_per_step,
    100.0 * coalesce(g.stepped_ns, 0) / nullif(s.steps, 0) / nullif(r.step_pipelined_ns, 0) AS gemm_pct_of_step
FROM listed AS o
JOIN labels AS l USING (trace_id)
JOIN runs AS r ON r.run_id = l.run_id
LEFT JOIN summed AS g ON g.trace_id = o.trace_id AND g.origin = o.origin
LEFT JOIN whole AS w ON w.trace_id = o.trace_id
LEFT JOIN busy AS b ON b.trace_id = o.trace_id
LEFT JOIN counted AS s ON s.trace_id = o.trace_id
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, o.origin <> 'all', g.gemm_ns DESC, o.origin, o.trace_id
