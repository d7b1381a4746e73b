-- title: Calls that wait for the GPU
-- what: Each synchronising call (cudaStreamSynchronize and its like, and copies that return only when done) with where it stands and the GPU idle time blamed on it, the costliest first.
-- value: While it waits the host launches nothing, so the GPU runs dry: idle time follows each. In a training step most can go (sync_sites says which line asks).
-- needs: api_calls, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- calls to show for each run; NULL means all
-- param: min_ns BIGINT = 0 -- leave shorter calls out
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: name VARCHAR -- name of the call
-- column: thread VARCHAR -- thread that waits
-- column: step BIGINT -- step in which it begins; NULL if in none
-- column: start_ns BIGINT ns -- its start, from the first event of the trace
-- column: dur_ns BIGINT ns -- its length
-- column: idle_ns BIGINT ns -- idle time of the GPUs that has it as its cause; NULL if idle time is not known
-- column: op VARCHAR -- innermost operator around it; NULL if none is
-- column: range VARCHAR -- innermost range around it, unless that is a step; NULL if none is
-- order: run, idle_ns DESC, dur_ns DESC
-- example: traceq query sync_points --run overlap -p top=5

WITH waits AS (
    SELECT
        c.trace_id,
        l.run,
        l.rank,
        c.call_id,
        c.name,
        c.pid,
        c.tid,
        c.start_ns,
        c.dur_ns,
        c.op_id,
        c.range_id,
        c.step
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    WHERE
        (c.role = 'sync' OR (c.role = 'memcpy' AND NOT contains(c.name, 'Async')))
        AND l.run = coalesce($run::VARCHAR, l.run)
),

blamed AS (
    SELECT trace_id, call_id, sum(ns) AS idle_ns
    FROM gap_parts
    WHERE cause = 'sync'
    GROUP BY trace_id, call_id
),

known AS (
    SELECT DISTINCT trace_id
    FROM gpu_busy
),

points AS (
    SELECT w.*, CASE WHEN k.trace_id IS NOT NULL THEN coalesce(b.idle_ns, 0) END::BIGINT AS idle_ns
    FROM waits AS w
    LEFT JOIN known AS k USING (trace_id)
    LEFT JOIN blamed AS b ON b.trace_id = w.trace_id AND b.call_id = w.call_id
    WHERE w.dur_ns >= coalesce($min_ns::BIGINT, 0)
    QUALIFY
        row_number() OVER (
            PARTITION BY w.run ORDER BY idle_ns DESC NULLS LAST, w.dur_ns DESC, w.rank NULLS LAST, w.start_ns, w.trace_id, w.call_id
        ) <= coalesce($top::BIGINT, 9223372036854775807)
)

SELECT
    w.run,
    w.rank,
    w.name,
    coalesce(t.name, w.tid) AS thread,
    w.step,
    w.start_ns,
    w.dur_ns,
    w.idle_ns,
    o.name AS op,
    CASE
        WHEN r.kind <> 'step' AND NOT EXISTS (FROM steps AS s WHERE s.trace_id = r.trace_id AND s.start_ns = r.start_ns AND s.name = r.name)
            THEN r.name
    END AS range
FROM points AS w
LEFT JOIN threads AS t ON t.trace_id = w.trace_id AND t.pid IS NOT DISTINCT FROM w.pid AND t.tid = w.tid
LEFT JOIN ops AS o ON o.trace_id = w.trace_id AND o.op_id = w.op_id
LEFT JOIN ranges AS r ON r.trace_id = w.trace_id AND r.range_id = w.range_id
ORDER BY w.run, w.idle_ns DESC NULLS LAST, w.dur_ns DESC, w.rank NULLS LAST, w.start_ns, w.trace_id, w.call_id
