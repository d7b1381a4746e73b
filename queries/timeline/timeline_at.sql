-- title: What is at a place of the timeline
-- what: What lies in a stretch of time on one lane, what fills most of it first, with what is known of each.
-- value: Names what the cursor of the timeline stands on.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means the first run
-- param: rank BIGINT = NULL -- rank; NULL means the first
-- param: kind VARCHAR = 'stream' -- steps, stream, idle, ranges, ops or calls
-- param: lane VARCHAR = NULL -- the lane, as timeline_lanes calls it; NULL means all
-- param: depth BIGINT = 0 -- how many of the same kind are around it; NULL means any
-- param: start_ns BIGINT = 0 -- where the stretch begins, from the start of the trace
-- param: dur_ns BIGINT = NULL -- its length; NULL means the rest of the trace
-- param: reach_ns BIGINT = NULL -- the longest that an operator, call, gap or activity lasts, if known: then less is read
-- param: top BIGINT = 10 -- rows to show; NULL means 1000
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: kind VARCHAR -- as asked
-- column: lane VARCHAR -- the device and stream, or the thread
-- column: depth BIGINT -- how many of the same kind are around it
-- column: item BIGINT -- its id; of a part of a gap, twice the gap's, and one more for a part after the launch
-- column: name VARCHAR -- its name; of idle time its cause
-- column: what VARCHAR -- category, cause, phase, role or kind
-- column: start_ns BIGINT ns -- its start
-- column: dur_ns BIGINT ns -- its length
-- column: inside_ns BIGINT ns -- how much of it lies in the stretch
-- column: items BIGINT count -- how many there are in the stretch
-- column: step BIGINT -- its step; NULL if it is in none
-- column: op VARCHAR -- operator that asked for the work or the call, or that the GPU waited for; NULL if none did
-- column: launch VARCHAR -- call that started the work; NULL if not known
-- column: latency_ns BIGINT ns -- from the start of that call to the start of the work
-- column: evidence VARCHAR -- of idle time, what shows the cause
-- column: next_work VARCHAR -- of idle time, the work that ended it
-- column: module VARCHAR -- of an operator, the module that it runs in
-- order: inside_ns DESC, start_ns, item
-- example: traceq query timeline_at --run eager -p kind=idle -p start_ns=1000000 -p dur_ns=1000000

WITH picked AS (
    SELECT l.trace_id, l.run, l.rank, t.duration_ns
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND coalesce(l.rank = $rank::BIGINT, $rank::BIGINT IS NULL)
    ORDER BY l.run_id, l.rank NULLS FIRST, l.trace_id
    LIMIT 1
),

items AS (
    SELECT *
    FROM timeline_items
    WHERE
        kind = $kind
        AND from_ns < coalesce($start_ns::BIGINT, 0) + coalesce($dur_ns::BIGINT, 4000000000000000000)
        AND till_ns > coalesce($start_ns::BIGINT, 0)
        AND (kind IN ('steps', 'ranges') OR from_ns >= coalesce($start_ns::BIGINT, 0) - coalesce($reach_ns::BIGINT, 4000000000000000000))
),

cut AS (
    SELECT
        p.run,
        p.rank,
        i.* EXCLUDE (from_ns, till_ns),
        least(i.start_ns + i.dur_ns, coalesce($start_ns::BIGINT, 0) + coalesce($dur_ns::BIGINT, 4000000000000000000)) - greatest(i.start_ns, coalesce($start_ns::BIGINT, 0)) AS inside_ns
    FROM items AS i
    JOIN picked AS p USING (trace_id)
    WHERE i.lane = coalesce($lane::VARCHAR, i.lane) AND i.depth = coalesce($depth::BIGINT, i.depth)
),

found AS MATERIALIZED (
    SELECT *, count(*) OVER () AS items
    FROM cut
    WHERE inside_ns > 0
    ORDER BY inside_ns DESC, start_ns, item
    LIMIT coalesce($top::BIGINT, 1000)
),

-- Inner joins from the few rows found: DuckDB then reads only where their ids are.
work AS (
    SELECT f.item, a.trace_id, a.step, a.start_ns, a.launch_id, a.op_id
    FROM found AS f
    JOIN gpu_activities AS a ON a.trace_id = f.trace_id AND a.activity_id = f.item
    WHERE f.kind = 'stream'
),

launched AS (
    SELECT w.item, l.name, w.start_ns - l.start_ns AS latency_ns
    FROM work AS w
    JOIN api_calls AS l ON l.trace_id = w.trace_id AND l.call_id = w.launch_id
),

calls AS (
    SELECT f.item, c.trace_id, c.step, c.op_id
    FROM found AS f
    JOIN api_calls AS c ON c.trace_id = f.trace_id AND c.call_id = f.item
    WHERE f.kind = 'calls'
),

idle_parts AS (
    SELECT f.item, g.trace_id, g.step, g.after_id, p.op_id, p.evidence
    FROM found AS f
    JOIN gaps AS g ON g.trace_id = f.trace_id AND g.gap_id = f.item // 2
    JOIN gap_parts AS p ON p.trace_id = f.trace_id AND p.gap_id = f.item // 2 AND (p.part = 'launch') = (f.item % 2 = 1)
    WHERE f.kind = 'idle'
),

followed AS (
    SELECT i.item, a.name
    FROM idle_parts AS i
    JOIN gpu_activities AS a ON a.trace_id = i.trace_id AND a.activity_id = i.after_id
),

operators AS (
    SELECT f.item, o.step, o.module
    FROM found AS f
    JOIN ops AS o ON o.trace_id = f.trace_id AND o.op_id = f.item
    WHERE f.kind = 'ops'
),

asked_by AS (
    SELECT w.item, o.name
    FROM (
        SELECT item, trace_id, op_id FROM work
        UNION ALL
        SELECT item, trace_id, op_id FROM calls
        UNION ALL
        SELECT item, trace_id, op_id FROM idle_parts
    ) AS w
    JOIN ops AS o ON o.trace_id = w.trace_id AND o.op_id = w.op_id
)

SELECT
    f.run,
    f.rank,
    f.kind,
    f.lane,
    f.depth,
    f.item,
    f.name,
    f.what,
    f.start_ns,
    f.dur_ns,
    f.inside_ns,
    f.items,
    coalesce(w.step, c.step, o.step, i.step, CASE WHEN f.kind = 'steps' THEN f.item END) AS step,
    b.name AS op,
    l.name AS launch,
    l.latency_ns,
    i.evidence,
    n.name AS next_work,
    o.module
FROM found AS f
LEFT JOIN work AS w USING (item)
LEFT JOIN launched AS l USING (item)
LEFT JOIN calls AS c USING (item)
LEFT JOIN idle_parts AS i USING (item)
LEFT JOIN followed AS n USING (item)
LEFT JOIN operators AS o USING (item)
LEFT JOIN asked_by AS b USING (item)
ORDER BY f.inside_ns DESC, f.start_ns, f.item
