-- title: Where to go on a timeline
-- what: A place to look at: the whole trace, a step, the next or previous gap or step, the longest kernel of a stretch.
-- value: Answers the keys of the timeline that jump.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means the first run
-- param: rank BIGINT = NULL -- rank; NULL means the first
-- param: place VARCHAR = 'all' -- all, step, next_step, previous_step, next_gap, previous_gap or longest_kernel
-- param: step BIGINT = NULL -- for step: its number; NULL means the first that is not flagged
-- param: at_ns BIGINT = 0 -- next and previous are seen from here; a stretch begins here
-- param: end_ns BIGINT = NULL -- where the stretch ends; NULL means with the trace
-- param: least_ns BIGINT = 0 -- shorter gaps are passed over
-- param: reach_ns BIGINT = NULL -- the longest that a kernel lasts, if known: then less is read
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: kind VARCHAR -- all, or the kind of the lane that it is on
-- column: lane VARCHAR -- the lane that it is on
-- column: name VARCHAR -- name of the step or kernel, cause of the larger part of the gap
-- column: step BIGINT -- its step; NULL if it is in none
-- column: start_ns BIGINT ns -- its start; of a step that of its first call or work
-- column: dur_ns BIGINT ns -- its length; of a step until its last work has ended
-- column: ranks BIGINT count -- how many traces the run has
-- order: one row
-- example: traceq query timeline_places --run eager -p place=next_gap -p at_ns=1000000 -p least_ns=10000

WITH picked AS (
    SELECT l.trace_id, l.run, l.rank, t.duration_ns
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND coalesce(l.rank = $rank::BIGINT, $rank::BIGINT IS NULL)
    ORDER BY l.run_id, l.rank NULLS FIRST, l.trace_id
    LIMIT 1
),

spans AS (
    SELECT
        s.trace_id,
        s.step,
        s.pid,
        s.name,
        len(s.flags) > 0 AS is_flagged,
        least(s.start_ns, s.gpu_start_ns) AS start_ns,
        greatest(s.start_ns + s.dur_ns, s.gpu_end_ns) AS end_ns
    FROM steps AS s
    JOIN picked AS p USING (trace_id)
),

gap AS (
    SELECT g.*
    FROM gaps AS g
    JOIN picked AS p USING (trace_id)
    WHERE
        $place IN ('next_gap', 'previous_gap')
        AND g.dur_ns >= coalesce($least_ns::BIGINT, 0)
        AND CASE WHEN $place = 'next_gap' THEN g.start_ns > coalesce($at_ns::BIGINT, 0) ELSE g.start_ns < coalesce($at_ns::BIGINT, 0) END
    ORDER BY CASE WHEN $place = 'next_gap' THEN g.start_ns ELSE -g.start_ns END, g.device
    LIMIT 1
),

longest AS (
    SELECT a.*
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE
        $place = 'longest_kernel'
        AND a.kind = 'kernel'
        AND a.dur_ns > 0
        AND a.start_ns < coalesce($end_ns::BIGINT, 4000000000000000000)
        AND a.start_ns + a.dur_ns > coalesce($at_ns::BIGINT, 0)
        AND a.start_ns >= coalesce($at_ns::BIGINT, 0) - coalesce($reach_ns::BIGINT, 4000000000000000000)
    ORDER BY a.dur_ns DESC, a.start_ns, a.activity_id
    LIMIT 1
),

places AS (
    SELECT trace_id, 'all' AS kind, NULL AS lane, NULL AS name, NULL::BIGINT AS step, 0::BIGINT AS start_ns, duration_ns AS dur_ns
    FROM picked
    WHERE coalesce($place, 'all') = 'all' AND duration_ns > 0
    UNION ALL
    (
        SELECT trace_id, 'steps', 'steps', name, step, start_ns, end_ns - start_ns
        FROM spans
        WHERE $place = 'step' AND step = coalesce($step::BIGINT, step)
        ORDER BY is_flagged, start_ns, pid
        LIMIT 1
    )
    UNION ALL
    (
        SELECT trace_id, 'steps', 'steps', name, step, start_ns, end_ns - start_ns
        FROM spans
        WHERE $place = 'next_step' AND start_ns > coalesce($at_ns::BIGINT, 0)
        ORDER BY start_ns, pid
        LIMIT 1
    )
    UNION ALL
    (
        SELECT trace_id, 'steps', 'steps', name, step, start_ns, end_ns - start_ns
        FROM spans
        WHERE $place = 'previous_step' AND start_ns < coalesce($at_ns::BIGINT, 0)
        ORDER BY start_ns DESC, pid
        LIMIT 1
    )
    UNION ALL
    SELECT g.trace_id, 'idle', format('GPU {} idle', g.device), p.cause, g.step, g.start_ns, g.dur_ns
    FROM gap AS g
    JOIN gap_parts AS p ON p.trace_id = g.trace_id AND p.gap_id = g.gap_id
    QUALIFY row_number() OVER (ORDER BY p.ns DESC, p.part) = 1
    UNION ALL
    SELECT trace_id, 'stream', format('GPU {} stream {}', device, coalesce(stream::VARCHAR, '?')), name, step, start_ns, dur_ns
    FROM longest
)

SELECT
    p.run,
    p.rank,
    l.kind,
    l.lane,
    l.name,
    l.step,
    l.start_ns,
    l.dur_ns,
    (SELECT count(*) FROM labels AS o WHERE o.run = p.run) AS ranks
FROM places AS l
JOIN picked AS p USING (trace_id)
