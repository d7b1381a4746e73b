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
-- column: largest BIGINT count -- elements of the largest of these inputs that has dimensions; of all of them, where they are put together
-- column: elements BIGINT count -- elements that a generated kernel goes through: the product of the sizes among its launch arguments; NULL if not recorded or if they differ
-- column: mean_start_ns DOUBLE ns -- from the start of their period to theirs, mean; NULL for those that only end in one
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
        sum(w.end_ns - w.start_ns) OVER (PARTITION BY w.trace_id, w.pid ORDER BY w.start_ns, w.step) - (w.end_ns - w.start_ns) AS before_ns,
        lead(w.start_ns) OVER (PARTITION BY w.trace_id, w.pid ORDER BY w.start_ns, w.step) AS next_ns
    FROM step_windows AS w
    JOIN picked AS p ON p.trace_id = w.trace_id
    WHERE NOT list_has_any(string_split(coalesce($skip::VARCHAR, ''), ','), [w.step::VARCHAR, (w.step + 1)::VARCHAR])
),

-- The time from the first window to the last in cells, 16 for each window, with one before and one after: the window that a cell begins
-- in, and until when that is so. It answers for nearly everything at once; only what reaches the edge must be looked up for itself.
grids AS (
    SELECT trace_id, pid, min(start_ns) AS first_ns, 16 * count(*) AS cells, (max(end_ns) - min(start_ns)) // nullif(16 * count(*), 0) + 1 AS cell_ns
    FROM windows
    GROUP BY trace_id, pid
),

cells AS (
    SELECT
        trace_id,
        pid,
        cell,
        CASE WHEN first_ns + cell * cell_ns < end_ns THEN start_ns END AS window_ns,
        coalesce(CASE WHEN first_ns + cell * cell_ns < end_ns THEN least(end_ns, next_ns) ELSE next_ns END, 9223372036854775807) AS edge_ns
    FROM (
        SELECT
            *,
            unnest(range(
                (start_ns - first_ns + cell_ns - 1) // nullif(cell_ns, 0), coalesce((next_ns - first_ns + cell_ns - 1) // nullif(cell_ns, 0), cells + 1)
            )) AS cell
        FROM windows
        JOIN grids USING (trace_id, pid)
    )
    UNION ALL
    SELECT trace_id, pid, -1, NULL, first_ns
    FROM grids
),

lanes AS (
    SELECT DISTINCT a.trace_id, a.pid, a.device
    FROM gpu_activities AS a
    JOIN (SELECT DISTINCT trace_id, pid FROM windows) AS w ON w.trace_id = a.trace_id AND w.pid = a.pid
    WHERE a.step IS NOT NULL
),

kernel AS (
    SELECT
        l.trace_id,
        l.pid,
        l.device,
        CASE WHEN $by_name::BOOLEAN THEN a.category_by_name ELSE a.category END AS category,
        a.origin,
        a.name,
        a.short_name,
        a.phase,
        CASE WHEN c.role IS DISTINCT FROM 'graph_launch' THEN a.op_id END AS op_id,
        a.start_ns,
        a.start_ns + a.dur_ns AS end_ns,
        CASE WHEN a.start_ns < g.first_ns THEN -1 ELSE least((a.start_ns - g.first_ns) // nullif(g.cell_ns, 0), g.cells) END AS cell
    FROM gpu_activities AS a
    JOIN lanes AS l ON l.trace_id = a.trace_id AND l.device = a.device
    JOIN grids AS g ON g.trace_id = l.trace_id AND g.pid = l.pid
    LEFT JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    WHERE a.kind = 'kernel' AND a.launch_id IS NOT NULL
),

-- Kernels together, but each that reaches an edge for itself.
tallied AS (
    SELECT
        k.trace_id,
        k.pid,
        k.device,
        k.category,
        k.origin,
        k.name,
        k.short_name,
        k.phase,
        k.op_id,
        c.window_ns IS NOT NULL AS is_within,
        CASE WHEN k.end_ns >= c.edge_ns THEN k.start_ns END AS start_ns,
        CASE WHEN k.end_ns >= c.edge_ns THEN k.end_ns END AS end_ns,
        count(*) AS kernels,
        sum(k.start_ns - c.window_ns) AS after_ns,
        sum(k.end_ns - k.start_ns) AS ns
    FROM kernel AS k
    JOIN cells AS c ON c.trace_id = k.trace_id AND c.pid = k.pid AND c.cell = k.cell
    GROUP BY ALL
),

-- The time of a kernel inside the windows is the time of all windows before its end less that before its start.
begun AS (
    SELECT
        k.* EXCLUDE (after_ns),
        CASE WHEN k.start_ns IS NULL THEN k.is_within ELSE coalesce(k.start_ns < w.end_ns, false) END AS is_inside,
        CASE WHEN k.start_ns IS NULL THEN k.after_ns ELSE k.kernels * (k.start_ns - w.start_ns) END AS after_ns,
        coalesce(w.before_ns + least(k.start_ns, w.end_ns) - w.start_ns, 0) AS from_ns
    FROM tallied AS k
    ASOF LEFT JOIN windows AS w ON k.trace_id = w.trace_id AND k.pid = w.pid AND k.start_ns >= w.start_ns
),

clipped AS (
    SELECT
        k.trace_id,
        k.device,
        k.category,
        k.origin,
        k.name,
        k.short_name,
        k.phase,
        k.op_id,
        CASE WHEN k.is_inside THEN k.kernels ELSE 0 END AS kernels,
        CASE WHEN k.is_inside THEN k.after_ns END AS after_ns,
        CASE
            WHEN k.start_ns IS NOT NULL THEN k.kernels * (coalesce(w.before_ns + least(k.end_ns, w.end_ns) - w.start_ns, 0) - k.from_ns)
            WHEN k.is_within THEN k.ns
            ELSE 0
        END AS ns
    FROM begun AS k
    ASOF LEFT JOIN windows AS w ON k.trace_id = w.trace_id AND k.pid = w.pid AND k.end_ns >= w.start_ns
),

known AS (
    SELECT
        trace_id, device, category, origin, name, short_name, phase, op_id, sum(kernels) AS kernels, sum(after_ns) AS after_ns, sum(ns) AS ns
    FROM clipped
    WHERE kernels > 0 OR ns > 0
    GROUP BY ALL
),

alike AS (
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
        CASE
            WHEN bool_and(o.details->>'$.kernel_backend' = 'triton') AND count(DISTINCT o.concrete_inputs) = 1 THEN min(o.concrete_inputs::VARCHAR)
        END AS arguments,
        sum(k.kernels)::BIGINT AS kernels,
        sum(k.after_ns) AS after_ns,
        sum(k.ns)::BIGINT AS total_ns
    FROM known AS k
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = k.trace_id AND o.op_id = k.op_id
    GROUP BY ALL
),

-- Tensors may be in lists. What has no dimensions is a number, or a list that was not recorded.
sized AS (
    SELECT
        *,
        list_transform(
            regexp_extract_all(shapes, '\[[0-9, ]+\]'), lambda dims: list_product(try_cast(dims AS BIGINT[]))
        ) AS tensors
    FROM alike
)

SELECT
    run,
    rank,
    device,
    category,
    origin,
    name,
    short_name,
    phase,
    op,
    module,
    shapes,
    types,
    try_cast(CASE WHEN op IN ('aten::cat', 'aten::stack') THEN list_sum(tensors) ELSE list_max(tensors) END AS BIGINT) AS largest,
    try_cast(list_product(list_transform(regexp_extract_all(arguments, '"([0-9]{1,18})"', 1), lambda size: size::BIGINT)) AS BIGINT) AS elements,
    after_ns / nullif(kernels, 0) AS mean_start_ns,
    kernels,
    total_ns
FROM sized
ORDER BY run, rank, device, total_ns DESC, name, op, module, shapes, types, phase
