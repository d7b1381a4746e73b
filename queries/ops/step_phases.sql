-- title: Phases of each step
-- what: Kernel time, copies and the operators' host time by phase of each step; over its phases they sum to the step's.
-- value: Shows in which phase a slow step was slow.
-- needs: steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: phase VARCHAR -- optimizer, data (loading), backward, forward, or other (GPU work of no operator)
-- column: kernels BIGINT count -- kernels that the step launched in it
-- column: kernel_ns BIGINT ns -- sum of their durations; NULL if the step launched no GPU work
-- column: pct_of_step DOUBLE percent -- that, of the kernel time of the step; NULL if graph replays were not recorded
-- column: memop_ns BIGINT ns -- sum of the durations of copies and memsets; NULL as kernel_ns
-- column: cpu_self_ns BIGINT ns -- host time in operators that start in the step; NULL if no operators were recorded
-- chart: bar x=phase y=kernel_ns
-- order: run, rank, start of the step, kernel_ns DESC, cpu_self_ns DESC
-- example: traceq query step_phases --run eager

WITH work AS (
    SELECT
        trace_id,
        pid,
        step,
        phase,
        count(*) FILTER (kind = 'kernel') AS kernels,
        coalesce(sum(dur_ns) FILTER (kind = 'kernel'), 0) AS kernel_ns,
        coalesce(sum(dur_ns) FILTER (kind IN ('memcpy', 'memset')), 0) AS memop_ns
    FROM gpu_activities
    WHERE step IS NOT NULL
    GROUP BY trace_id, pid, step, phase
),

host AS (
    SELECT trace_id, pid, step, phase, sum(self_ns) AS self_ns
    FROM ops
    WHERE step IS NOT NULL
    GROUP BY trace_id, pid, step, phase
),

operating AS (
    SELECT DISTINCT trace_id
    FROM ops
)

SELECT
    l.run,
    l.rank,
    step,
    phase,
    coalesce(w.kernels, 0) AS kernels,
    CASE WHEN s.kernel_ns IS NOT NULL THEN coalesce(w.kernel_ns, 0) END::BIGINT AS kernel_ns,
    CASE WHEN l.invisible_replays = 0 THEN 100.0 * coalesce(w.kernel_ns, 0) / nullif(s.kernel_ns, 0) END AS pct_of_step,
    CASE WHEN s.kernel_ns IS NOT NULL THEN coalesce(w.memop_ns, 0) END::BIGINT AS memop_ns,
    CASE WHEN o.trace_id IS NOT NULL THEN coalesce(h.self_ns, 0) END::BIGINT AS cpu_self_ns
FROM work AS w
FULL JOIN host AS h USING (trace_id, pid, step, phase)
JOIN steps AS s USING (trace_id, pid, step)
JOIN labels AS l USING (trace_id)
LEFT JOIN operating AS o USING (trace_id)
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, s.start_ns, step, pid, kernel_ns DESC, cpu_self_ns DESC, phase, trace_id
