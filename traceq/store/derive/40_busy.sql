-- When each device was busy, and the gaps between, of each device and of each stream.
-- Reads stage.linked, stage.calls, stage.roles; fills stage.blind, stage.in_order, stage.gaps, gpu_busy, gaps, stream_gaps.

-- A graph launch that no activity answers is a replay that was not recorded: what looks idle may be busy, so such a trace
-- gets neither busy intervals nor gaps.
CREATE OR REPLACE TABLE stage.blind AS
SELECT count(*) AS invisible_replays
FROM stage.calls AS c JOIN stage.roles AS r USING (recorded_name)
WHERE r.role = 'graph_launch' AND c.correlation_id <> 0 AND c.call_id NOT IN (SELECT launch_id FROM stage.linked WHERE launch_id IS NOT NULL);

-- The gaps of a device's only stream are the device's: they are derived once.
CREATE OR REPLACE TABLE stage.streams AS
SELECT device, stream, count(*) OVER (PARTITION BY device) = 1 AS is_only FROM (SELECT DISTINCT device, stream FROM stage.linked);

CREATE OR REPLACE TABLE stage.in_order AS
WITH lanes AS (
    SELECT false AS is_stream, device, stream AS own_stream, activity_id, start_ns, start_ns + dur_ns AS end_ns, NULL::BIGINT AS stream
    FROM stage.linked WHERE dur_ns > 0
    UNION ALL
    SELECT true, l.device, l.stream, l.activity_id, l.start_ns, l.start_ns + l.dur_ns, l.stream
    FROM stage.linked AS l JOIN stage.streams AS s ON s.device = l.device AND s.stream IS NOT DISTINCT FROM l.stream
    WHERE l.dur_ns > 0 AND NOT s.is_only
)
SELECT
    *,
    max(end_ns) OVER (
        PARTITION BY is_stream, device, stream ORDER BY start_ns, end_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
FROM lanes
WHERE (SELECT invisible_replays FROM stage.blind) = 0;

-- A busy interval starts where nothing before reaches, and ends where all work before the next such start has ended.
INSERT INTO gpu_busy
WITH works AS (FROM stage.in_order WHERE NOT is_stream)
SELECT 1, device, start_ns, coalesce(lead(before_ns) OVER (PARTITION BY device ORDER BY start_ns), last_ns) - start_ns
FROM works JOIN (SELECT device, max(end_ns) AS last_ns FROM works GROUP BY device) USING (device)
WHERE before_ns IS NULL OR start_ns > before_ns
ORDER BY 2, 3;

-- Rows of length zero split no gap, but the window reaches from the first start to the last end of any row: before the
-- first work and after the last there may be a gap too.
CREATE OR REPLACE TABLE stage.gaps AS
WITH windows AS (
    SELECT false AS is_stream, device, NULL::BIGINT AS stream, min(start_ns) AS first_ns, max(start_ns + dur_ns) AS last_ns
    FROM stage.linked GROUP BY device
    UNION ALL
    SELECT true, device, stream, min(start_ns), max(start_ns + dur_ns) FROM stage.linked GROUP BY device, stream
), bounded AS (
    SELECT o.is_stream, o.device, o.stream, o.activity_id, o.start_ns AS end_ns, coalesce(o.before_ns, w.first_ns) AS start_ns
    FROM stage.in_order AS o
    JOIN windows AS w ON w.is_stream = o.is_stream AND w.device = o.device AND w.stream IS NOT DISTINCT FROM o.stream
    UNION ALL
    SELECT o.is_stream, o.device, o.stream, NULL, w.last_ns, max(o.end_ns)
    FROM stage.in_order AS o
    JOIN windows AS w ON w.is_stream = o.is_stream AND w.device = o.device AND w.stream IS NOT DISTINCT FROM o.stream
    GROUP BY ALL
), ends AS (
    SELECT is_stream, device, stream, end_ns, max(activity_id) AS before_id FROM stage.in_order GROUP BY ALL
), idle AS (
    SELECT
        b.*, b.end_ns - b.start_ns AS dur_ns, e.before_id, l.launch_id, l.step, l.launch_lane, l.launch_start_ns, l.launch_end_ns,
        CASE WHEN l.launch_id IS NOT NULL THEN least(greatest(l.launch_start_ns - b.start_ns, 0), b.end_ns - b.start_ns) END AS host_ns
    FROM bounded AS b
    LEFT JOIN ends AS e ON e.is_stream = b.is_stream AND e.device = b.device AND e.stream IS NOT DISTINCT FROM b.stream AND e.end_ns = b.start_ns
    LEFT JOIN stage.linked AS l ON l.activity_id = b.activity_id
    WHERE b.end_ns > b.start_ns
)
SELECT
    row_number() OVER (PARTITION BY is_stream ORDER BY device, stream, start_ns) AS gap_id, is_stream, device, stream, start_ns, end_ns, dur_ns,
    before_id, activity_id AS after_id, step, launch_id, launch_lane, launch_start_ns, launch_end_ns, host_ns, dur_ns - host_ns AS after_launch_ns,
    CASE
        WHEN launch_id IS NULL THEN 'unknown'
        WHEN launch_start_ns >= start_ns THEN 'host'
        WHEN launch_end_ns > start_ns THEN 'launching'
        ELSE 'queued'
    END AS launch_state
FROM idle;

INSERT INTO gaps BY NAME
SELECT 1 AS trace_id, device, gap_id, start_ns, dur_ns, before_id, after_id, step, launch_state, host_ns, after_launch_ns
FROM stage.gaps WHERE NOT is_stream ORDER BY gap_id;

-- Numbered anew, since the gaps of only streams stand among the device's.
CREATE OR REPLACE TABLE stage.stream_gap_ids AS
SELECT g.is_stream, g.gap_id AS old_id, row_number() OVER (ORDER BY g.device, s.stream, g.start_ns) AS gap_id, s.stream
FROM stage.gaps AS g JOIN stage.streams AS s ON s.device = g.device AND CASE WHEN g.is_stream THEN s.stream IS NOT DISTINCT FROM g.stream ELSE s.is_only END;

INSERT INTO stream_gaps BY NAME
SELECT 1 AS trace_id, g.device, i.stream, i.gap_id, g.start_ns, g.dur_ns, g.before_id, g.after_id, g.step, g.launch_state, g.host_ns, g.after_launch_ns
FROM stage.gaps AS g JOIN stage.stream_gap_ids AS i ON i.is_stream = g.is_stream AND i.old_id = g.gap_id ORDER BY i.gap_id;
