-- title: First uses that load code
-- what: Loading of modules and libraries, and of single functions at their first use (lazy loading), by what was loaded and the first kernel launched after or around it, with the GPU idle time blamed on it; over all ranks of a run.
-- value: It happens once for each kernel, so it belongs in warm-up: in the middle of a run it means new shapes or a cold path. CUDA_MODULE_LOADING=EAGER moves it to the start.
-- needs: api_calls, overheads, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- name of the loading call, or of the overhead that the profiler recorded
-- column: loads BIGINT count -- such rows; 0 where only idle time says that this kernel waited
-- column: total_ns BIGINT ns -- sum of their lengths; NULL without such rows
-- column: max_ns BIGINT ns -- longest
-- column: idle_ns BIGINT ns -- idle time of the GPUs with the cause module_load, this evidence, and this kernel after it; NULL if idle time is not known
-- column: first_start_ns BIGINT ns -- start of the first, from the first event of its trace
-- column: step BIGINT -- first step in which the kernel was launched; NULL if in none
-- column: kernel VARCHAR -- first work whose launch call ends after the load began, on its thread (an overhead has none: on any); NULL if none follows
-- order: run, idle_ns DESC, total_ns DESC
-- example: traceq query first_use_loads --run causes

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

loads AS (
    SELECT c.trace_id, c.name, c.start_ns, c.dur_ns, coalesce(c.pid, '') AS pid, coalesce(c.tid, '') AS tid
    FROM api_calls AS c
    JOIN picked USING (trace_id)
    WHERE c.role = 'load'
),

first_uses AS (
    SELECT o.trace_id, o.type AS name, o.start_ns, o.dur_ns
    FROM overheads AS o
    JOIN picked USING (trace_id)
    WHERE regexp_matches(o.type, '(?i)lazy|module')
),

launched AS (
    SELECT trace_id, launch_id, arg_min(activity_id, (start_ns, activity_id)) AS activity_id
    FROM gpu_activities
    WHERE
        launch_id IS NOT NULL
        AND (trace_id IN (SELECT trace_id FROM loads) OR trace_id IN (SELECT trace_id FROM first_uses))
    GROUP BY trace_id, launch_id
),

ends AS (
    SELECT
        c.trace_id,
        coalesce(c.pid, '') AS pid,
        coalesce(c.tid, '') AS tid,
        c.start_ns + c.dur_ns AS end_ns,
        arg_min(a.activity_id, (c.start_ns, c.call_id)) AS activity_id,
        arg_min(c.start_ns, (c.start_ns, c.call_id)) AS start_ns
    FROM launched AS a
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    GROUP BY ALL
),

ends_anywhere AS (
    SELECT trace_id, end_ns, arg_min(activity_id, (start_ns, activity_id)) AS activity_id
    FROM ends
    GROUP BY trace_id, end_ns
),

delayed AS (
    SELECT l.trace_id, l.name, l.start_ns, l.dur_ns, e.activity_id
    FROM loads AS l
    ASOF LEFT JOIN ends AS e ON e.trace_id = l.trace_id AND e.pid = l.pid AND e.tid = l.tid AND l.start_ns < e.end_ns
    UNION ALL
    SELECT f.trace_id, f.name, f.start_ns, f.dur_ns, e.activity_id
    FROM first_uses AS f
    ASOF LEFT JOIN ends_anywhere AS e ON e.trace_id = f.trace_id AND f.start_ns < e.end_ns
),

-- Idle time has its evidence and its kernel; it joins the loads of that name before that kernel.
both_sides AS (
    SELECT trace_id, name, activity_id, start_ns, dur_ns, 1 AS loads, 0 AS idle_ns
    FROM delayed
    UNION ALL
    SELECT p.trace_id, replace(p.evidence, ' on another thread', ''), g.after_id, NULL, NULL, 0, p.ns
    FROM gap_parts AS p
    JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
    JOIN picked AS l ON l.trace_id = p.trace_id
    WHERE p.cause = 'module_load'
),

known AS (
    SELECT DISTINCT trace_id
    FROM gpu_busy
),

named AS (
    SELECT
        l.run,
        b.name,
        k.name AS kernel,
        sum(b.loads)::BIGINT AS loads,
        sum(b.dur_ns)::BIGINT AS total_ns,
        max(b.dur_ns) AS max_ns,
        CASE WHEN bool_and(n.trace_id IS NOT NULL) THEN sum(b.idle_ns)::BIGINT END AS idle_ns,
        min(b.start_ns) AS first_start_ns,
        min(k.step) AS step
    FROM both_sides AS b
    JOIN picked AS l USING (trace_id)
    LEFT JOIN known AS n USING (trace_id)
    LEFT JOIN gpu_activities AS k ON k.trace_id = b.trace_id AND k.activity_id = b.activity_id
    GROUP BY l.run, b.name, k.name
)

SELECT
    run,
    name,
    loads,
    total_ns,
    max_ns,
    idle_ns,
    first_start_ns,
    step,
    kernel
FROM named
QUALIFY
    row_number() OVER (PARTITION BY run ORDER BY idle_ns DESC NULLS LAST, total_ns DESC NULLS LAST, name, kernel)
    <= coalesce($top::BIGINT, 9223372036854775807)
ORDER BY run, idle_ns DESC NULLS LAST, total_ns DESC NULLS LAST, name, kernel
