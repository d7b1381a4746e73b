-- title: Waiting for input data
-- what: Time in each step that the training loop spends in the DataLoader (enumerate(DataLoader) ranges), and the GPU idle time blamed on it; a range belongs to the step in which it starts.
-- value: More than a few percent means that the input pipeline is the limit: more workers, pinned memory, prefetching; a faster model would not help.
-- needs: ranges, steps, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label; a trace without DataLoader ranges has no rows
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step; NULL for what is in none
-- column: flags VARCHAR -- why medians leave the step out; NULL if nothing does
-- column: step_ns BIGINT ns -- length of the step on the host; NULL for what is in no step
-- column: batches BIGINT count -- DataLoader ranges that start in it
-- column: wait_ns BIGINT ns -- time in them
-- column: wait_pct_of_step DOUBLE percent -- of step_ns
-- column: idle_ns BIGINT ns -- idle time of the GPUs with the cause dataloader before work of the step; NULL if idle time is not known
-- column: idle_pct_of_step DOUBLE percent -- of step_ns; with several GPUs it can exceed 100
-- column: loader VARCHAR -- what was iterated over for longest, e.g. _SingleProcessDataLoaderIter: no workers
-- chart: bar x=step y=wait_ns
-- order: run, rank, start of the step
-- example: traceq query dataloader_wait --run causes

WITH marks AS (
    SELECT trace_id, pid, tid, name, start_ns, dur_ns, range_id AS id
    FROM ranges
    WHERE starts_with(name, 'enumerate(DataLoader)#') AND dur_ns IS NOT NULL
    UNION ALL
    SELECT trace_id, pid, tid, name, start_ns, dur_ns, op_id
    FROM ops
    WHERE starts_with(name, 'enumerate(DataLoader)#')
),

-- A loader inside another is part of its time.
outer_marks AS (
    SELECT m.*, coalesce(m.pid, '') AS process
    FROM marks AS m
    QUALIFY
        coalesce(
            m.start_ns >= max(m.start_ns + m.dur_ns) OVER (
                PARTITION BY m.trace_id, m.pid, m.tid ORDER BY m.start_ns, m.dur_ns DESC, m.name, m.id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            true
        )
),

-- The steps of the only process with API calls take the ranges of all.
callers AS (
    SELECT trace_id, count(DISTINCT pid) = 1 AS is_one
    FROM api_calls
    GROUP BY trace_id
),

step_times AS (
    SELECT
        s.trace_id,
        s.step,
        s.pid,
        s.start_ns,
        s.start_ns + s.dur_ns AS end_ns,
        CASE WHEN c.is_one THEN '' ELSE coalesce(s.pid, '') END AS process
    FROM steps AS s
    LEFT JOIN callers AS c USING (trace_id)
    WHERE s.trace_id IN (SELECT trace_id FROM outer_marks)
),

waits AS (
    SELECT
        m.trace_id,
        CASE WHEN m.start_ns < s.end_ns THEN s.step END AS step,
        CASE WHEN m.start_ns < s.end_ns THEN s.pid END AS pid,
        m.name,
        m.dur_ns
    FROM (
        SELECT o.trace_id, o.name, o.start_ns, o.dur_ns, CASE WHEN c.is_one THEN '' ELSE o.process END AS process
        FROM outer_marks AS o
        LEFT JOIN callers AS c USING (trace_id)
    ) AS m
    ASOF LEFT JOIN step_times AS s ON s.trace_id = m.trace_id AND s.process = m.process AND m.start_ns >= s.start_ns
),

names AS (
    SELECT trace_id, pid, step, split_part(name, '#', 2) AS loader, count(*) AS batches, sum(dur_ns) AS wait_ns
    FROM waits
    GROUP BY ALL
),

waited AS (
    SELECT
        trace_id,
        pid,
        step,
        sum(batches)::BIGINT AS batches,
        sum(wait_ns)::BIGINT AS wait_ns,
        first(loader ORDER BY wait_ns DESC, loader) AS loader
    FROM names
    GROUP BY trace_id, pid, step
),

blamed AS (
    SELECT p.trace_id, CASE WHEN k.step IS NOT NULL THEN k.pid END AS pid, k.step, sum(p.ns)::BIGINT AS idle_ns
    FROM gap_parts AS p
    JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
    JOIN gpu_activities AS k ON k.trace_id = g.trace_id AND k.activity_id = g.after_id
    WHERE p.cause = 'dataloader'
    GROUP BY ALL
),

listed AS (
    SELECT trace_id, pid, step FROM step_times
    UNION
    SELECT trace_id, pid, step FROM waited
    UNION
    SELECT trace_id, pid, step FROM blamed
),

known AS (
    SELECT DISTINCT trace_id
    FROM gpu_busy
)

SELECT
    l.run,
    l.rank,
    n.step,
    nullif(array_to_string(s.flags, ', '), '') AS flags,
    s.dur_ns AS step_ns,
    coalesce(w.batches, 0) AS batches,
    coalesce(w.wait_ns, 0) AS wait_ns,
    100.0 * coalesce(w.wait_ns, 0) / nullif(s.dur_ns, 0) AS wait_pct_of_step,
    CASE WHEN k.trace_id IS NOT NULL THEN coalesce(b.idle_ns, 0) END AS idle_ns,
    CASE WHEN k.trace_id IS NOT NULL THEN 100.0 * coalesce(b.idle_ns, 0) / nullif(s.dur_ns, 0) END AS idle_pct_of_step,
    w.loader
FROM listed AS n
JOIN labels AS l ON l.trace_id = n.trace_id
LEFT JOIN known AS k ON k.trace_id = n.trace_id
LEFT JOIN steps AS s ON s.trace_id = n.trace_id AND s.pid IS NOT DISTINCT FROM n.pid AND s.step = n.step
LEFT JOIN waited AS w ON w.trace_id = n.trace_id AND w.pid IS NOT DISTINCT FROM n.pid AND w.step IS NOT DISTINCT FROM n.step
LEFT JOIN blamed AS b ON b.trace_id = n.trace_id AND b.pid IS NOT DISTINCT FROM n.pid AND b.step IS NOT DISTINCT FROM n.step
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, s.start_ns, n.step, n.pid, n.trace_id
