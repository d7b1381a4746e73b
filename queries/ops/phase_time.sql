-- title: Time by phase of training
-- what: Kernel time, copies and the operators' host time in forward, backward, optimizer, data loading and the rest.
-- value: Backward is usually about twice forward; a large optimizer asks for a fused one, a large data for more workers.
-- needs: gpu_activities, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: phase VARCHAR -- optimizer, data (loading), backward, forward, or other (GPU work of no operator)
-- column: kernels BIGINT count -- kernels; NULL, as all figures of the GPU, if no GPU work was recorded
-- column: kernel_ns BIGINT ns -- sum of their durations; over the phases, all kernel time
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the trace; NULL if graph replays were not recorded
-- column: memop_ns BIGINT ns -- sum of the durations of copies and memsets
-- column: kernels_per_step DOUBLE count -- in steps that count, over their number
-- column: ns_per_step DOUBLE ns -- likewise, kernel time
-- column: cpu_self_ns BIGINT ns -- host time in operators, on all threads; NULL if no operators were recorded
-- column: cpu_self_pct DOUBLE percent -- that, of the host time in all operators
-- column: threads BIGINT count -- threads with operators of the phase; likewise
-- chart: bar x=phase y=kernel_ns
-- order: run, rank, kernel_ns DESC, cpu_self_ns DESC
-- example: traceq query phase_time --run eager

WITH counted AS (
    SELECT trace_id, count(*) AS steps
    FROM good_steps
    GROUP BY trace_id
),

work AS (
    SELECT
        a.trace_id,
        a.phase,
        count(*) FILTER (a.kind = 'kernel') AS kernels,
        coalesce(sum(a.dur_ns) FILTER (a.kind = 'kernel'), 0) AS kernel_ns,
        coalesce(sum(a.dur_ns) FILTER (a.kind IN ('memcpy', 'memset')), 0) AS memop_ns,
        count(*) FILTER (a.kind = 'kernel' AND g.step IS NOT NULL) AS stepped,
        coalesce(sum(a.dur_ns) FILTER (a.kind = 'kernel' AND g.step IS NOT NULL), 0) AS stepped_ns
    FROM gpu_activities AS a
    LEFT JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    GROUP BY a.trace_id, a.phase
),

host AS (
    SELECT trace_id, phase, sum(self_ns) AS self_ns, count(DISTINCT (pid, tid)) AS threads
    FROM ops
    GROUP BY trace_id, phase
),

-- Where a trace has GPU work or operators at all, a phase without any has 0 of it.
joined AS (
    SELECT
        trace_id,
        phase,
        w.kernels,
        w.kernel_ns,
        w.memop_ns,
        w.stepped,
        w.stepped_ns,
        h.self_ns,
        h.threads,
        count(w.kernels) OVER (PARTITION BY trace_id) > 0 AS has_gpu,
        count(h.threads) OVER (PARTITION BY trace_id) > 0 AS has_ops,
        sum(w.kernel_ns) OVER (PARTITION BY trace_id) AS all_kernel_ns,
        sum(h.self_ns) OVER (PARTITION BY trace_id) AS all_self_ns
    FROM work AS w
    FULL JOIN host AS h USING (trace_id, phase)
)

SELECT
    l.run,
    l.rank,
    j.phase,
    CASE WHEN j.has_gpu THEN coalesce(j.kernels, 0) END AS kernels,
    CASE WHEN j.has_gpu THEN coalesce(j.kernel_ns, 0) END::BIGINT AS kernel_ns,
    CASE WHEN l.invisible_replays = 0 THEN 100.0 * coalesce(j.kernel_ns, 0) / nullif(j.all_kernel_ns, 0) END AS pct_of_kernel,
    CASE WHEN j.has_gpu THEN coalesce(j.memop_ns, 0) END::BIGINT AS memop_ns,
    CASE WHEN j.has_gpu THEN coalesce(j.stepped, 0) END / nullif(c.steps, 0) AS kernels_per_step,
    CASE WHEN j.has_gpu THEN coalesce(j.stepped_ns, 0) END / nullif(c.steps, 0) AS ns_per_step,
    CASE WHEN j.has_ops THEN coalesce(j.self_ns, 0) END::BIGINT AS cpu_self_ns,
    CASE WHEN j.has_ops THEN 100.0 * coalesce(j.self_ns, 0) / nullif(j.all_self_ns, 0) END AS cpu_self_pct,
    CASE WHEN j.has_ops THEN coalesce(j.threads, 0) END AS threads
FROM joined AS j
JOIN labels AS l USING (trace_id)
LEFT JOIN counted AS c ON c.trace_id = j.trace_id
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, kernel_ns DESC, cpu_self_ns DESC, j.phase, j.trace_id
