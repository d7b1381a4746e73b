-- title: A step as a picture: streams, idle time by cause, threads
-- what: One step (or the whole trace, if it has none) cut into equal buckets; for each lane and bucket what fills most of it. Rows of other steps that reach in count too.
-- value: Shows at a glance whether the GPU waits, for what, and what the host does meanwhile; traceq timeline draws it.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means the first run
-- param: step BIGINT = NULL -- number of the step; NULL means the first that is not flagged
-- param: rank BIGINT = NULL -- rank; NULL means the first
-- param: buckets BIGINT = 100 -- parts that the time is cut into, at most 1000
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step; NULL for a trace without steps
-- column: kind VARCHAR -- stream (GPU work by category), idle (of a device, by cause), ops (operators by phase) or calls (API calls by role)
-- column: lane VARCHAR -- the device and stream, or the thread
-- column: bucket BIGINT -- number of the bucket, from 0
-- column: start_ns BIGINT ns -- its start, from the start of the step
-- column: dur_ns BIGINT ns -- its length
-- column: what VARCHAR -- what fills most of it: a category, cause, phase or role
-- column: what_ns BIGINT ns -- how much that fills
-- column: covered_ns BIGINT ns -- how much everything on the lane fills
-- column: covered_pct DOUBLE percent -- that, of the bucket
-- column: window_ns BIGINT ns -- length of all buckets
-- order: kind, lane, bucket
-- example: traceq query timeline --run eager -p step=4

WITH picked AS (
    SELECT l.trace_id, l.run, l.rank
    FROM labels AS l
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND coalesce(l.rank = $rank::BIGINT, $rank::BIGINT IS NULL)
    ORDER BY l.run_id, l.rank NULLS FIRST, l.trace_id
    LIMIT 1
),

wanted AS (
    SELECT s.trace_id, s.step, least(s.start_ns, s.gpu_start_ns) AS start_ns, greatest(s.start_ns + s.dur_ns, s.gpu_end_ns) AS end_ns
    FROM steps AS s
    JOIN picked AS p USING (trace_id)
    WHERE s.step = coalesce($step::BIGINT, s.step)
    ORDER BY len(s.flags) > 0, s.start_ns, s.pid
    LIMIT 1
),

whole AS (
    SELECT t.trace_id, NULL::BIGINT AS step, 0::BIGINT AS start_ns, t.duration_ns AS end_ns
    FROM traces AS t
    JOIN picked AS p USING (trace_id)
    WHERE $step::BIGINT IS NULL AND NOT EXISTS (SELECT 1 FROM wanted) AND t.duration_ns > 0
),

frame AS (
    SELECT p.run, p.rank, f.*, least(greatest(coalesce($buckets::BIGINT, 100), 1), 1000) AS buckets
    FROM (SELECT * FROM wanted UNION ALL SELECT * FROM whole) AS f
    JOIN picked AS p USING (trace_id)
),

lanes AS (
    SELECT a.trace_id, 'stream' AS kind, format('GPU {} stream {}', a.device, coalesce(a.stream::VARCHAR, '?')) AS lane, a.start_ns, a.dur_ns, coalesce(a.category, a.kind) AS what
    FROM gpu_activities AS a
    UNION ALL
    SELECT
        g.trace_id, 'idle', format('GPU {} idle', g.device),
        g.start_ns + CASE WHEN p.part = 'launch' THEN g.dur_ns - p.ns ELSE 0 END, p.ns, p.cause
    FROM gap_parts AS p
    JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
    UNION ALL
    SELECT o.trace_id, 'ops', coalesce(t.name, format('thread {}', coalesce(o.tid, '?'))), o.start_ns, o.dur_ns, o.phase
    FROM ops AS o
    LEFT JOIN threads AS t ON t.trace_id = o.trace_id AND t.pid = o.pid AND t.tid = o.tid
    WHERE o.depth = 0
    UNION ALL
    SELECT c.trace_id, 'calls', coalesce(t.name, format('thread {}', coalesce(c.tid, '?'))), c.start_ns, c.dur_ns, c.role
    FROM api_calls AS c
    LEFT JOIN threads AS t ON t.trace_id = c.trace_id AND t.pid = c.pid AND t.tid = c.tid
),

cut AS (
    SELECT
        f.run,
        f.rank,
        f.step,
        f.buckets,
        f.end_ns - f.start_ns AS window_ns,
        l.kind,
        l.lane,
        l.what,
        greatest(l.start_ns, f.start_ns) - f.start_ns AS start_ns,
        least(l.start_ns + l.dur_ns, f.end_ns) - f.start_ns AS end_ns
    FROM lanes AS l
    JOIN frame AS f USING (trace_id)
),

pieces AS (
    SELECT *, unnest(range((start_ns::HUGEINT * buckets // nullif(window_ns, 0))::BIGINT, ((end_ns::HUGEINT * buckets - 1) // nullif(window_ns, 0))::BIGINT + 1)) AS bucket
    FROM cut
    WHERE end_ns > start_ns
),

filled AS (
    SELECT
        run,
        rank,
        step,
        kind,
        lane,
        bucket,
        window_ns,
        what,
        -- ceil(bucket * window / buckets): the first ns of a bucket
        ((bucket::HUGEINT * window_ns + buckets - 1) // nullif(buckets, 0))::BIGINT AS bucket_ns,
        (((bucket + 1)::HUGEINT * window_ns + buckets - 1) // nullif(buckets, 0))::BIGINT AS next_ns,
        sum(greatest(least(end_ns, (((bucket + 1)::HUGEINT * window_ns + buckets - 1) // nullif(buckets, 0))::BIGINT) - greatest(start_ns, ((bucket::HUGEINT * window_ns + buckets - 1) // nullif(buckets, 0))::BIGINT), 0))::BIGINT AS ns
    FROM pieces
    GROUP BY ALL
)

SELECT
    run,
    rank,
    step,
    kind,
    lane,
    bucket,
    bucket_ns AS start_ns,
    next_ns - bucket_ns AS dur_ns,
    arg_max(what, (ns, what)) AS what,
    max(ns) AS what_ns,
    sum(ns)::BIGINT AS covered_ns,
    100.0 * sum(ns) / nullif(next_ns - bucket_ns, 0) AS covered_pct,
    window_ns
FROM filled
WHERE ns > 0
GROUP BY run, rank, step, kind, lane, bucket, bucket_ns, next_ns, window_ns
ORDER BY kind, lane, bucket
