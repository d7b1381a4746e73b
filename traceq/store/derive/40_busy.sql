-- When each device was busy, and the gaps between, of each device and of each stream.
-- Reads stage.linked, stage.calls, stage.roles; fills stage.blind, stage.streams, stage.series, stage.in_order, stage.gaps, gpu_busy, gaps, stream_gaps.

-- A graph launch that no activity answers is a replay that was not recorded: what looks idle may be busy, so such a trace
-- gets neither busy intervals nor gaps.
CREATE OR REPLACE TABLE stage.blind AS
SELECT count(*) AS invisible_replays
FROM stage.calls AS c JOIN stage.roles AS r USING (recorded_name)
WHERE r.role = 'graph_launch' AND c.correlation_id <> 0 AND c.call_id NOT IN (SELECT launch_id FROM stage.linked WHERE launch_id IS NOT NULL);

-- The gaps of a device's only stream are the device's: they are derived once.
CREATE OR REPLACE TABLE stage.streams AS
SELECT device, stream, count(*) OVER (PARTITION BY device) = 1 AS is_only FROM (SELECT DISTINCT device, stream FROM stage.linked);

-- What is busy or idle by itself: each device, and each stream of a device with several. A number for each keeps the rows of
-- the large sorts below narrow.
CREATE OR REPLACE TABLE stage.series AS
WITH windows AS (
    SELECT false AS is_stream, device, NULL::BIGINT AS stream, min(start_ns) AS first_ns, max(start_ns + dur_ns) AS last_ns
    FROM stage.linked GROUP BY device
    UNION ALL
    SELECT true, l.device, l.stream, min(l.start_ns), max(l.start_ns + l.dur_ns)
    FROM stage.linked AS l JOIN stage.streams AS s ON s.device = l.device AND s.stream IS NOT DISTINCT FROM l.stream
    WHERE NOT s.is_only GROUP BY ALL
)
SELECT (row_number() OVER (ORDER BY is_stream, device, stream))::INTEGER AS series, * FROM windows;

CREATE OR REPLACE TABLE stage.in_order AS
WITH works AS (
    SELECT s.series, l.activity_id, l.start_ns, l.start_ns + l.dur_ns AS end_ns
    FROM stage.linked AS l JOIN stage.series AS s
        ON s.device = l.device AND (NOT s.is_stream OR s.stream IS NOT DISTINCT FROM l.stream)
    WHERE l.dur_ns > 0
)
SELECT
    *,
    max(end_ns) OVER (
        PARTITION BY series ORDER BY start_ns, end_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
FROM works
WHERE (SELECT invisible_replays FROM stage.blind) = 0;

-- A busy interval starts where nothing before reaches, and ends where all work before the next such start has ended.
INSERT INTO gpu_busy
WITH works AS (
    SELECT s.device, o.start_ns, o.end_ns, o.before_ns FROM stage.in_order AS o JOIN stage.series AS s USING (series) WHERE NOT s.is_stream
)
SELECT 1, device, start_ns, coalesce(lead(before_ns) OVER (PARTITION BY device ORDER BY start_ns), last_ns) - start_ns
FROM works JOIN (SELECT device, max(end_ns) AS last_ns FROM works GROUP BY device) USING (device)
WHERE before_ns IS NULL OR start_ns > before_ns
ORDER BY 2, 3;

-- Rows of length zero split no gap, but the window reaches from the first start to the last end of any row: before the
-- first work and after the last there may be a gap too.
CREATE OR REPLACE TABLE stage.idle_times AS
WITH bounded AS (
    SELECT o.series, o.activity_id AS after_id, coalesce(o.before_ns, s.first_ns) AS start_ns, o.start_ns AS end_ns
    FROM stage.in_order AS o JOIN stage.series AS s USING (series)
    UNION ALL
    SELECT o.series, NULL, max(o.end_ns), s.last_ns FROM stage.in_order AS o JOIN stage.series AS s USING (series) GROUP BY o.series, s.last_ns
)
SELECT b.*, s.is_stream, row_number() OVER (PARTITION BY s.is_stream ORDER BY b.series, b.start_ns) AS gap_id
FROM bounded AS b JOIN stage.series AS s USING (series) WHERE b.end_ns > b.start_ns;

CREATE OR REPLACE TABLE stage.before_gaps AS
SELECT i.series, i.start_ns, max(o.activity_id) AS before_id
FROM stage.in_order AS o JOIN stage.idle_times AS i ON i.series = o.series AND i.start_ns = o.end_ns GROUP BY ALL;

CREATE OR REPLACE TABLE stage.gaps AS
WITH idle AS (
    SELECT
        i.gap_id, i.is_stream, s.device, s.stream, i.start_ns, i.end_ns, i.end_ns - i.start_ns AS dur_ns, b.before_id, i.after_id,
        l.step, l.launch_id, l.launch_lane, l.launch_start_ns, l.launch_end_ns,
        CASE WHEN l.launch_id IS NOT NULL THEN least(greatest(l.launch_start_ns - i.start_ns, 0), i.end_ns - i.start_ns) END AS host_ns
    FROM stage.idle_times AS i
    JOIN stage.series AS s USING (series)
    LEFT JOIN stage.before_gaps AS b ON b.series = i.series AND b.start_ns = i.start_ns
    LEFT JOIN stage.linked AS l ON l.activity_id = i.after_id
)
SELECT
    *, dur_ns - host_ns AS after_launch_ns,
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
