-- title: The lanes of a timeline
-- what: Every lane of one trace in the order in which the timeline draws them: steps, each GPU with its streams and idle time, each thread.
-- value: What there is to look at, which threads do most, and how long the longest thing on a lane lasts.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means the first run
-- param: rank BIGINT = NULL -- rank; NULL means the first
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: kind VARCHAR -- steps, stream (GPU work), idle (of a device), ranges, ops or calls
-- column: lane VARCHAR -- the device and stream, or the thread
-- column: depth BIGINT -- how many of the same kind are around it; 0 where nothing nests
-- column: items BIGINT count -- what is on it, but for what lasts no time
-- column: start_ns BIGINT ns -- start of the first
-- column: end_ns BIGINT ns -- end of the last
-- column: longest_ns BIGINT ns -- the longest
-- column: duration_ns BIGINT ns -- length of the trace
-- order: steps, devices, threads with the most calls first
-- example: traceq query timeline_lanes --run eager

WITH picked AS (
    SELECT l.trace_id, l.run, l.rank, t.duration_ns
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND coalesce(l.rank = $rank::BIGINT, $rank::BIGINT IS NULL)
    ORDER BY l.run_id, l.rank NULLS FIRST, l.trace_id
    LIMIT 1
),

streams AS (
    SELECT trace_id, device, stream, count(*) AS items, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns, max(dur_ns) AS longest_ns
    FROM gpu_activities
    WHERE dur_ns > 0
    GROUP BY trace_id, device, stream
),

on_thread AS (
    SELECT trace_id, 'ops' AS kind, pid, tid, depth, count(*) AS items, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns, max(dur_ns) AS longest_ns
    FROM ops
    WHERE dur_ns > 0
    GROUP BY trace_id, pid, tid, depth
    UNION ALL
    SELECT trace_id, 'calls', pid, tid, 0, count(*), min(start_ns), max(start_ns + dur_ns), max(dur_ns)
    FROM api_calls
    WHERE dur_ns > 0
    GROUP BY trace_id, pid, tid
    UNION ALL
    SELECT trace_id, 'ranges', pid, tid, coalesce(depth, 0), count(*), min(start_ns), max(start_ns + dur_ns), max(dur_ns)
    FROM ranges
    WHERE kind NOT IN ('step', 'window') AND dur_ns > 0
    GROUP BY trace_id, pid, tid, coalesce(depth, 0)
),

threads_of AS (
    SELECT
        t.trace_id, t.kind, coalesce(n.name, format('thread {}', coalesce(t.tid, '?'))) AS lane, t.depth,
        sum(t.items)::BIGINT AS items, min(t.start_ns) AS start_ns, max(t.end_ns) AS end_ns, max(t.longest_ns) AS longest_ns
    FROM on_thread AS t
    LEFT JOIN thread_names AS n ON n.trace_id = t.trace_id AND n.pid = t.pid AND n.tid = t.tid
    WHERE t.trace_id = (SELECT trace_id FROM picked)
    GROUP BY ALL
),

ranked AS (
    SELECT *, -(sum(CASE WHEN kind = 'calls' THEN items ELSE 0 END) OVER (PARTITION BY lane))::BIGINT AS place
    FROM threads_of
),

lanes AS (
    SELECT trace_id, 0 AS area, 0::BIGINT AS place, 0::BIGINT AS part, 'steps' AS kind, 'steps' AS lane, 0::BIGINT AS depth, count(*) AS items, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns, max(dur_ns) AS longest_ns
    FROM steps
    WHERE dur_ns > 0
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 1, device, coalesce(stream, 9223372036854775806), 'stream', format('GPU {} stream {}', device, coalesce(stream::VARCHAR, '?')), 0, items, start_ns, end_ns, longest_ns
    FROM streams
    UNION ALL
    SELECT trace_id, 1, device, 9223372036854775807, 'idle', format('GPU {} idle', device), 0, count(*), min(start_ns), max(start_ns + dur_ns), max(dur_ns)
    FROM gaps
    GROUP BY trace_id, device
    UNION ALL
    SELECT trace_id, 2, place, CASE kind WHEN 'ranges' THEN 0 WHEN 'ops' THEN 1 ELSE 2 END, kind, lane, depth, items, start_ns, end_ns, longest_ns
    FROM ranked
)

SELECT
    p.run,
    p.rank,
    l.kind,
    l.lane,
    l.depth,
    l.items,
    l.start_ns,
    l.end_ns,
    l.longest_ns,
    p.duration_ns
FROM lanes AS l
JOIN picked AS p USING (trace_id)
ORDER BY l.area, l.place, CASE WHEN l.area = 2 THEN l.lane END, l.part, l.depth
