-- title: The kernels in a step's period
-- what: Kernels alike in name, operator, shapes, types, module and phase, with their number and time in the periods of steps that count; sums by category agree with period_parts.
-- value: What two runs have in common and what differs, kernel by kernel; traceq diff matches them.
-- needs: gpu_activities, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: skip VARCHAR = NULL -- numbers of steps to leave out, e.g. 3,4
-- param: by_name BOOLEAN = false -- categories by the kernels' names alone
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: category VARCHAR -- what the kernel computes
-- column: origin VARCHAR -- who made it
-- column: name VARCHAR -- as recorded
-- column: short_name VARCHAR -- without namespaces and arguments
-- column: phase VARCHAR -- forward, backward, optimizer, data, other
-- column: op VARCHAR -- operator that launched it; NULL in graph replays and if not recorded
-- column: module VARCHAR -- module or range around the operator
-- column: shapes VARCHAR -- shapes of the operator's inputs, if recorded
-- column: types VARCHAR -- their types
-- column: kernels BIGINT count -- that start in these periods
-- column: total_ns BIGINT ns -- their time inside these periods
-- order: run, rank, device, total_ns DESC
-- example: traceq query period_kernels --run eager

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run) AND invisible_replays = 0
),

windows AS (
    SELECT
        w.trace_id,
        w.pid,
        w.start_ns,
        w.end_ns,
        sum(w.end_ns - w.start_ns) OVER (PARTITION BY w.trace_id, w.pid ORDER BY w.start_ns, w.step) - (w.end_ns - w.start_ns) AS before_ns
    FROM step_windows AS w
    JOIN picked AS p ON p.trace_id = w.trace_id
    WHERE NOT list_has_any(string_split(coalesce($skip::VARCHAR, ''), ','), [w.step::VARCHAR, (w.step + 1)::VARCHAR])
),

lanes AS (
    SELECT DISTINCT a.trace_id, a.pid, a.device
    FROM gpu_activities AS a
    JOIN (SELECT DISTINCT trace_id, pid FROM windows) AS w ON w.trace_id = a.trace_id AND w.pid = a.pid
    WHERE a.step IS NOT NULL
),

kernel AS (
    SELECT a.trace_id, a.activity_id, l.pid, a.start_ns, a.start_ns + a.dur_ns AS end_ns
    FROM gpu_activities AS a
    JOIN lanes AS l ON l.trace_id = a.trace_id AND l.device = a.device
    WHERE a.kind = 'kernel' AND a.launch_id IS NOT NULL
),

-- The time of a kernel inside the windows is the time of all windows before its end less that before its start.
begun AS (
    SELECT
        k.*,
        coalesce(k.start_ns < w.end_ns, false) AS is_inside,
        coalesce(w.before_ns + least(k.start_ns, w.end_ns) - w.start_ns, 0) AS from_ns
    FROM kernel AS k
    ASOF LEFT JOIN windows AS w ON k.trace_id = w.trace_id AND k.pid = w.pid AND k.start_ns >= w.start_ns
),

clipped AS (
    SELECT
        k.trace_id,
        k.activity_id,
        k.is_inside,
        coalesce(w.before_ns + least(k.end_ns, w.end_ns) - w.start_ns, 0) - k.from_ns AS ns
    FROM begun AS k
    ASOF LEFT JOIN windows AS w ON k.trace_id = w.trace_id AND k.pid = w.pid AND k.end_ns >= w.start_ns
),

known AS (
    SELECT
        a.trace_id,
        a.device,
        CASE WHEN $by_name::BOOLEAN THEN a.category_by_name ELSE a.category END AS category,
        a.origin,
        a.name,
        a.short_name,
        a.phase,
        CASE WHEN l.role IS DISTINCT FROM 'graph_launch' THEN a.op_id END AS op_id,
        count(*) FILTER (c.is_inside) AS kernels,
        sum(c.ns) AS ns
    FROM clipped AS c
    JOIN gpu_activities AS a ON a.trace_id = c.trace_id AND a.activity_id = c.activity_id
    LEFT JOIN api_calls AS l ON l.trace_id = a.trace_id AND l.call_id = a.launch_id
    WHERE c.is_inside OR c.ns > 0
    GROUP BY ALL
)

SELECT
    p.run,
    p.rank,
    k.device,
    k.category,
    k.origin,
    k.name,
    k.short_name,
    k.phase,
    o.name AS op,
    o.module,
    o.input_dims::VARCHAR AS shapes,
    o.input_types::VARCHAR AS types,
    sum(k.kernels)::BIGINT AS kernels,
    sum(k.ns)::BIGINT AS total_ns
FROM known AS k
JOIN picked AS p USING (trace_id)
LEFT JOIN ops AS o ON o.trace_id = k.trace_id AND o.op_id = k.op_id
GROUP BY ALL
ORDER BY p.run, p.rank, k.device, total_ns DESC, k.name, op, o.module, shapes, types, k.phase
