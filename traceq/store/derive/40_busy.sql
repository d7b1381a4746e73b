-- When each device was busy, and the gaps between. Reads stage.linked, api_calls; fills stage.blind, gpu_busy, gaps.

-- A graph launch that no activity answers is a replay that was not recorded: what looks idle may be busy, so such a trace
-- gets neither busy intervals nor gaps.
CREATE OR REPLACE TABLE stage.blind AS
SELECT count(*) AS invisible_replays FROM api_calls AS c
WHERE c.role = 'graph_launch' AND c.correlation_id <> 0 AND c.call_id NOT IN (SELECT launch_id FROM stage.linked WHERE launch_id IS NOT NULL);

CREATE OR REPLACE TABLE stage.in_order AS
SELECT
    device, activity_id, step, launch_id, launch_start_ns, launch_end_ns, start_ns, start_ns + dur_ns AS end_ns,
    max(start_ns + dur_ns) OVER (
        PARTITION BY device ORDER BY start_ns, start_ns + dur_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
FROM stage.linked
WHERE dur_ns > 0 AND (SELECT invisible_replays FROM stage.blind) = 0;

-- A busy interval starts where nothing before reaches, and ends where all work before the next such start has ended.
INSERT INTO gpu_busy
SELECT 1, device, start_ns, coalesce(lead(before_ns) OVER (PARTITION BY device ORDER BY start_ns), last_ns) - start_ns
FROM stage.in_order JOIN (SELECT device, max(end_ns) AS last_ns FROM stage.in_order GROUP BY device) USING (device)
WHERE before_ns IS NULL OR start_ns > before_ns
ORDER BY 2, 3;

-- Rows of length zero split no gap, but the window reaches from the first start to the last end of any row: before the
-- first work and after the last there may be a gap too.
INSERT INTO gaps
WITH windows AS (
    SELECT device, min(start_ns) AS first_ns, max(start_ns + dur_ns) AS last_ns FROM stage.linked GROUP BY device
), bounded AS (
    SELECT
        o.device, o.activity_id, o.step, o.launch_id, o.launch_start_ns, o.launch_end_ns, o.start_ns,
        coalesce(o.before_ns, w.first_ns) AS gap_ns
    FROM stage.in_order AS o JOIN windows AS w USING (device)
    UNION ALL BY NAME
    SELECT o.device, w.last_ns AS start_ns, max(o.end_ns) AS gap_ns
    FROM stage.in_order AS o JOIN windows AS w USING (device) GROUP BY ALL
), idle AS (
    SELECT
        *, start_ns - gap_ns AS gap_dur_ns,
        CASE WHEN launch_id IS NOT NULL THEN least(greatest(launch_start_ns - gap_ns, 0), start_ns - gap_ns) END AS host_ns
    FROM bounded WHERE start_ns > gap_ns
), ends AS (
    SELECT device, end_ns, max(activity_id) AS before_id FROM stage.in_order GROUP BY ALL
)
SELECT
    1, i.device, row_number() OVER (ORDER BY i.device, i.gap_ns), i.gap_ns, i.gap_dur_ns, e.before_id, i.activity_id, i.step,
    CASE
        WHEN i.launch_id IS NULL THEN 'unknown'
        WHEN i.launch_start_ns >= i.gap_ns THEN 'host'
        WHEN i.launch_end_ns > i.gap_ns THEN 'launching'
        ELSE 'queued'
    END,
    i.host_ns, i.gap_dur_ns - i.host_ns
FROM idle AS i LEFT JOIN ends AS e ON e.device = i.device AND e.end_ns = i.gap_ns
ORDER BY 2, 4;
