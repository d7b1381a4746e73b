-- title: Kernel time by category
-- what: Kernels and kernel time of each category, as shares of all kernel time and per step.
-- value: Heavy categories (gemm, conv, attention, rnn) stay when torch.compile fuses; the small ones are what it can remove.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: category VARCHAR -- what the kernels compute; other if no rule knows them
-- column: kernels BIGINT count -- kernels
-- column: kernel_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the trace
-- column: kernels_per_step DOUBLE count -- in steps that count, over their number
-- column: ns_per_step DOUBLE ns -- likewise, kernel time
-- chart: bar x=category y=kernel_ns
-- order: run, rank, kernel_ns DESC
-- example: traceq query categories --run eager

WITH counted AS (
    SELECT trace_id, count(*) AS steps
    FROM good_steps
    GROUP BY trace_id
),

kernel AS (
    SELECT
        a.trace_id,
        a.category,
        count(*) AS kernels,
        sum(a.dur_ns) AS kernel_ns,
        count(g.step) AS stepped,
        coalesce(sum(a.dur_ns) FILTER (g.step IS NOT NULL), 0) AS stepped_ns
    FROM gpu_activities AS a
    LEFT JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    WHERE a.kind = 'kernel'
    GROUP BY a.trace_id, a.category
),

-- `other` is always shown, also where it is nothing.
listed AS (
    SELECT * FROM kernel
    UNION ALL
    SELECT DISTINCT trace_id, 'other', 0, 0, 0, 0 FROM kernel
    WHERE trace_id NOT IN (SELECT trace_id FROM kernel WHERE category = 'other')
)

SELECT
    l.run,
    l.rank,
    k.category,
    k.kernels,
    k.kernel_ns::BIGINT AS kernel_ns,
    CASE
        WHEN l.invisible_replays = 0 THEN 100.0 * k.kernel_ns / nullif(sum(k.kernel_ns) OVER (PARTITION BY k.trace_id), 0)
    END AS pct_of_kernel,
    k.stepped / nullif(c.steps, 0) AS kernels_per_step,
    k.stepped_ns / nullif(c.steps, 0) AS ns_per_step
FROM listed AS k
JOIN labels AS l USING (trace_id)
LEFT JOIN counted AS c ON c.trace_id = k.trace_id
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, k.kernel_ns DESC, k.category, k.trace_id
