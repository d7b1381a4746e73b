-- Views for people: the run's label and the rank beside every row. A view may join but not sort.

CREATE VIEW labels AS
SELECT t.trace_id, r.run_id, r.label AS run, t.rank, t.invisible_replays
FROM traces AS t JOIN runs AS r USING (run_id);

CREATE VIEW good_steps AS SELECT trace_id, pid, step FROM steps WHERE len(flags) = 0;

CREATE VIEW step_windows AS
SELECT s.trace_id, s.pid, s.step, s.gpu_start_ns AS start_ns, s.gpu_start_ns + s.period_ns AS end_ns
FROM steps AS s JOIN steps AS n ON n.trace_id = s.trace_id AND n.pid = s.pid AND n.step = s.step + 1
WHERE s.period_ns > 0 AND len(s.flags) = 0 AND len(n.flags) = 0;

CREATE VIEW device_windows AS
SELECT a.trace_id, a.device, a.start_ns, a.end_ns, a.end_ns - a.start_ns AS window_ns, b.busy_ns
FROM (
    SELECT trace_id, device, min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns FROM gpu_activities GROUP BY trace_id, device
) AS a
LEFT JOIN (SELECT trace_id, device, sum(dur_ns)::BIGINT AS busy_ns FROM gpu_busy GROUP BY trace_id, device) AS b
    ON b.trace_id = a.trace_id AND b.device = a.device;

CREATE VIEW host_spans AS
SELECT trace_id, name, pid, tid, start_ns, start_ns + dur_ns AS end_ns FROM ops
UNION ALL
SELECT trace_id, name, pid, tid, start_ns, start_ns + dur_ns AS end_ns FROM ranges WHERE kind <> 'window' AND kind <> 'mark';

CREATE VIEW nvtx_ranges AS
SELECT
    l.run, l.rank, r.trace_id, 2 * r.range_id AS id, r.kind, concat(r.domain || ':', r.name) AS name,
    CASE WHEN r.kind = 'start_end' THEN 'StartEnd' ELSE 'PushPop' END AS style,
    r.pid, r.tid, r.end_tid, r.start_ns, r.dur_ns
FROM ranges AS r JOIN labels AS l USING (trace_id)
WHERE r.kind <> 'window'
UNION ALL
SELECT l.run, l.rank, o.trace_id, 2 * o.op_id + 1, 'push_pop', o.name, 'PushPop', o.pid, o.tid, NULL, o.start_ns, o.dur_ns
FROM ops AS o JOIN traces AS t USING (trace_id) JOIN labels AS l USING (trace_id)
WHERE t.format = 'nsys';

CREATE VIEW kernels AS
SELECT l.run, l.rank, a.* FROM gpu_activities AS a JOIN labels AS l USING (trace_id) WHERE a.kind = 'kernel';

CREATE VIEW memops AS
SELECT l.run, l.rank, a.* FROM gpu_activities AS a JOIN labels AS l USING (trace_id) WHERE a.kind IN ('memcpy', 'memset');

CREATE VIEW launches AS
SELECT
    l.run, l.rank, a.trace_id, a.activity_id, a.kind, a.name, a.category, a.device, a.stream, a.step, a.start_ns, a.dur_ns,
    c.call_id, c.name AS api_name, c.role, c.pid, c.tid, c.start_ns AS launch_start_ns, c.dur_ns AS launch_dur_ns,
    a.start_ns - c.start_ns AS latency_ns,
    CASE WHEN a.start_ns >= c.start_ns + c.dur_ns THEN a.start_ns - c.start_ns - c.dur_ns END AS queue_ns
FROM gpu_activities AS a
JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
JOIN labels AS l ON l.trace_id = a.trace_id;

CREATE VIEW idle AS
SELECT
    l.run, l.rank, g.trace_id, g.device, g.gap_id, g.start_ns, g.dur_ns, g.step, g.launch_state, g.before_id, g.after_id,
    p.part, p.cause, p.ns, p.evidence, p.call_id, p.op_id
FROM gap_parts AS p JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id JOIN labels AS l ON l.trace_id = p.trace_id;

CREATE VIEW stream_idle AS
SELECT
    l.run, l.rank, g.trace_id, g.device, g.stream, g.gap_id, g.start_ns, g.dur_ns, g.step, g.launch_state, g.before_id, g.after_id,
    p.part, p.cause, p.ns, p.evidence, p.call_id, p.op_id
FROM stream_gap_parts AS p
JOIN stream_gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
JOIN labels AS l ON l.trace_id = p.trace_id;

CREATE VIEW thread_names AS
SELECT
    trace_id, pid, tid, CASE WHEN count(*) OVER (PARTITION BY trace_id, name) = 1 THEN name ELSE format('{} {}/{}', name, pid, tid) END AS name
FROM threads
WHERE name IS NOT NULL;

CREATE VIEW timeline_items AS
SELECT
    trace_id, 'stream' AS kind, format('GPU {} stream {}', device, coalesce(stream::VARCHAR, '?')) AS lane, 0::BIGINT AS depth,
    activity_id AS item, name, coalesce(category, kind) AS what, start_ns, dur_ns, start_ns AS from_ns, start_ns + dur_ns AS till_ns
FROM gpu_activities
UNION ALL
-- A gap is one part or two; it is found by where the whole of it lies.
SELECT
    g.trace_id, 'idle', format('GPU {} idle', g.device), 0, g.gap_id * 2 + CASE WHEN p.part = 'launch' THEN 1 ELSE 0 END, p.cause, p.cause,
    g.start_ns + CASE WHEN p.part = 'launch' THEN g.dur_ns - p.ns ELSE 0 END, p.ns, g.start_ns, g.start_ns + g.dur_ns
FROM gap_parts AS p JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
UNION ALL
SELECT trace_id, 'steps', 'steps', 0, step, coalesce(name, format('step {}', step)), 'step', start_ns, dur_ns, start_ns, start_ns + dur_ns FROM steps
UNION ALL
SELECT
    t.trace_id, t.kind, coalesce(n.name, format('thread {}', coalesce(t.tid, '?'))), t.depth, t.item, t.name, t.what, t.start_ns, t.dur_ns, t.start_ns,
    t.start_ns + t.dur_ns
FROM (
    SELECT trace_id, 'ops' AS kind, pid, tid, depth, op_id AS item, name, phase AS what, start_ns, dur_ns FROM ops
    UNION ALL
    SELECT trace_id, 'calls', pid, tid, 0, call_id, name, role, start_ns, dur_ns FROM api_calls
    UNION ALL
    SELECT trace_id, 'ranges', pid, tid, coalesce(depth, 0), range_id, name, kind, start_ns, dur_ns FROM ranges WHERE kind NOT IN ('step', 'window')
) AS t
LEFT JOIN thread_names AS n ON n.trace_id = t.trace_id AND n.pid = t.pid AND n.tid = t.tid;
