-- title: Steps with kernels of their own
-- what: For each step that counts, how much of its kernel time is in kernels that no other step has, by name.
-- value: Warm-up and the search for the fastest kernel look like that; traceq diff leaves such steps at the beginning out.
-- needs: gpu_activities, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: kernels BIGINT count -- kernels of the step
-- column: own_kernels BIGINT count -- of these, kernels whose name occurs in no other step that counts
-- column: kernel_ns BIGINT ns -- sum of the kernels' durations
-- column: own_ns BIGINT ns -- of that, kernels of its own
-- column: own_pct DOUBLE percent -- of the step's kernel time
-- order: run, rank, step
-- example: traceq query unlike_steps --run default

WITH kernel AS (
    SELECT a.trace_id, a.pid, a.step, a.name, count(*) AS kernels, sum(a.dur_ns) AS ns
    FROM gpu_activities AS a
    JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    JOIN labels AS l ON l.trace_id = a.trace_id
    WHERE a.kind = 'kernel' AND l.run = coalesce($run::VARCHAR, l.run)
    GROUP BY a.trace_id, a.pid, a.step, a.name
),

shared AS (
    SELECT *, count(*) OVER (PARTITION BY trace_id, pid, name) AS steps
    FROM kernel
)

SELECT
    l.run,
    l.rank,
    s.step,
    sum(s.kernels)::BIGINT AS kernels,
    coalesce(sum(s.kernels) FILTER (s.steps = 1), 0)::BIGINT AS own_kernels,
    sum(s.ns)::BIGINT AS kernel_ns,
    coalesce(sum(s.ns) FILTER (s.steps = 1), 0)::BIGINT AS own_ns,
    100.0 * coalesce(sum(s.ns) FILTER (s.steps = 1), 0) / nullif(sum(s.ns), 0) AS own_pct
FROM shared AS s
JOIN labels AS l USING (trace_id)
GROUP BY l.run, l.rank, s.step, s.trace_id, s.pid
ORDER BY l.run, l.rank, s.step, s.pid, s.trace_id
