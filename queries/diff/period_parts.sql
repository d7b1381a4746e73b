-- title: What a step's period is made of
-- what: The time from each step's first GPU activity to the next step's, divided into kernels by category, copies, memsets and idle time by cause; overlap counts against them, so that the parts of a device sum to its periods exactly.
-- value: The difference of two runs, part by part, says where time was won or lost under the profiler; traceq diff does it.
-- needs: gpu_activities, gpu_busy, gap_parts, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: skip VARCHAR = NULL -- numbers of steps to leave out, e.g. 3,4
-- param: by_name BOOLEAN = false -- categories by the kernels' names alone
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: part VARCHAR -- period (the whole), heavy, fusible, comm, memops, graph (replays recorded as a whole), carried_over, overlap (negative), idle
-- column: what VARCHAR -- category of the kernels, memcpy or memset, or cause of idle time
-- column: steps BIGINT count -- periods of steps that count and are followed by one that counts
-- column: activities BIGINT count -- activities that start in these periods, or parts of gaps
-- column: total_ns BIGINT ns -- their time inside these periods
-- column: mean_ns DOUBLE ns -- of a period
-- order: run, rank, device, part, greatest first
-- example: traceq query period_parts --run eager

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

-- A process's periods are taken on every device that it works on in a step.
lanes AS (
    SELECT DISTINCT a.trace_id, a.pid, a.device
    FROM gpu_activities AS a
    JOIN (SELECT DISTINCT trace_id, pid FROM windows) AS w ON w.trace_id = a.trace_id AND w.pid = a.pid
    WHERE a.step IS NOT NULL
),

spans AS (
    SELECT
        a.trace_id,
        a.device,
        CASE
            WHEN a.launch_id IS NULL THEN 'carried_over'
            WHEN a.kind IN ('memcpy', 'memset') THEN 'memops'
            WHEN a.kind = 'graph' THEN 'graph'
            WHEN c.category IN ('gemm', 'conv', 'attention', 'rnn') THEN 'heavy'
            WHEN c.category = 'comm' THEN 'comm'
            ELSE 'fusible'
        END AS part,
        CASE WHEN a.kind = 'kernel' THEN c.category ELSE a.kind END AS what,
        a.start_ns,
        a.start_ns + a.dur_ns AS end_ns
    FROM gpu_activities AS a
    CROSS JOIN LATERAL (SELECT CASE WHEN $by_name::BOOLEAN THEN a.category_by_name ELSE a.category END AS category) AS c
    JOIN picked AS p ON p.trace_id = a.trace_id
    UNION ALL
    SELECT b.trace_id, b.device, 'busy' AS part, NULL AS what, b.start_ns, b.start_ns + b.dur_ns AS end_ns
    FROM gpu_busy AS b
    JOIN picked AS p ON p.trace_id = b.trace_id
    UNION ALL
    SELECT
        g.trace_id,
        g.device,
        'idle' AS part,
        i.cause AS what,
        g.start_ns + CASE WHEN i.part = 'launch' THEN g.dur_ns - i.ns ELSE 0 END AS start_ns,
        g.start_ns + CASE WHEN i.part = 'launch' THEN g.dur_ns ELSE i.ns END AS end_ns
    FROM gap_parts AS i
    JOIN gaps AS g ON g.trace_id = i.trace_id AND g.gap_id = i.gap_id
    JOIN picked AS p ON p.trace_id = i.trace_id
),

placed AS (
    SELECT
        l.trace_id,
        l.pid,
        l.device,
        s.part,
        s.what,
        s.start_ns,
        s.end_ns,
        CASE WHEN s.start_ns < g.first_ns THEN -1 ELSE least((s.start_ns - g.first_ns) // nullif(g.cell_ns, 0), g.cells) END AS cell
    FROM spans AS s
    JOIN lanes AS l ON l.trace_id = s.trace_id AND l.device = s.device
    JOIN grids AS g ON g.trace_id = l.trace_id AND g.pid = l.pid
),

-- Spans together, but each that reaches an edge for itself.
tallied AS (
    SELECT
        s.trace_id,
        s.pid,
        s.device,
        s.part,
        s.what,
        c.window_ns IS NOT NULL AS is_within,
        CASE WHEN s.end_ns >= c.edge_ns THEN s.start_ns END AS start_ns,
        CASE WHEN s.end_ns >= c.edge_ns THEN s.end_ns END AS end_ns,
        count(*) AS activities,
        sum(s.end_ns - s.start_ns) AS ns
    FROM placed AS s
    JOIN cells AS c ON c.trace_id = s.trace_id AND c.pid = s.pid AND c.cell = s.cell
    GROUP BY ALL
),

-- The time of a span inside the windows is the time of all windows before its end less that before its start.
begun AS (
    SELECT
        s.*,
        CASE WHEN s.start_ns IS NULL THEN s.is_within ELSE coalesce(s.start_ns < w.end_ns, false) END AS is_inside,
        coalesce(w.before_ns + least(s.start_ns, w.end_ns) - w.start_ns, 0) AS from_ns
    FROM tallied AS s
    ASOF LEFT JOIN windows AS w ON s.trace_id = w.trace_id AND s.pid = w.pid AND s.start_ns >= w.start_ns
),

clipped AS (
    SELECT
        s.trace_id,
        s.device,
        s.part,
        s.what,
        CASE WHEN s.is_inside THEN s.activities ELSE 0 END AS activities,
        CASE
            WHEN s.start_ns IS NOT NULL THEN s.activities * (coalesce(w.before_ns + least(s.end_ns, w.end_ns) - w.start_ns, 0) - s.from_ns)
            WHEN s.is_within THEN s.ns
            ELSE 0
        END AS ns
    FROM begun AS s
    ASOF LEFT JOIN windows AS w ON s.trace_id = w.trace_id AND s.pid = w.pid AND s.end_ns >= w.start_ns
),

summed AS (
    SELECT trace_id, device, part, what, sum(activities)::BIGINT AS activities, sum(ns)::BIGINT AS ns
    FROM clipped
    GROUP BY ALL
),

whole AS (
    SELECT l.trace_id, l.device, count(*) AS steps, sum(w.end_ns - w.start_ns)::BIGINT AS ns
    FROM lanes AS l
    JOIN windows AS w ON w.trace_id = l.trace_id AND w.pid = l.pid
    GROUP BY l.trace_id, l.device
),

totals AS (
    SELECT
        w.trace_id,
        w.device,
        w.ns,
        coalesce(sum(s.ns) FILTER (s.part = 'busy'), 0) AS busy_ns,
        coalesce(sum(s.ns) FILTER (s.part = 'idle'), 0) AS idle_ns,
        coalesce(sum(s.ns) FILTER (s.part NOT IN ('busy', 'idle')), 0) AS work_ns
    FROM whole AS w
    LEFT JOIN summed AS s ON s.trace_id = w.trace_id AND s.device = w.device
    GROUP BY w.trace_id, w.device, w.ns
),

-- Beside several devices one may be out of its own window, which has no gaps.
parts AS (
    SELECT trace_id, device, 1 AS place, 'period' AS part, 'all' AS what, NULL AS activities, ns FROM totals
    UNION ALL
    SELECT trace_id, device, 2, part, what, activities, ns FROM summed WHERE part <> 'busy' AND (ns > 0 OR activities > 0)
    UNION ALL
    SELECT trace_id, device, 2, 'overlap', 'overlap', NULL, busy_ns - work_ns FROM totals WHERE busy_ns <> work_ns
    UNION ALL
    SELECT trace_id, device, 2, 'idle', 'outside', NULL, ns - busy_ns - idle_ns FROM totals WHERE ns <> busy_ns + idle_ns
)

SELECT
    p.run,
    p.rank,
    s.device,
    s.part,
    s.what,
    w.steps,
    s.activities,
    s.ns::BIGINT AS total_ns,
    s.ns / nullif(w.steps, 0) AS mean_ns
FROM parts AS s
JOIN whole AS w ON w.trace_id = s.trace_id AND w.device = s.device
JOIN picked AS p ON p.trace_id = s.trace_id
ORDER BY p.run, p.rank, s.device, s.place, s.part, s.ns DESC, s.what, s.trace_id
