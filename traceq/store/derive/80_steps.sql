-- The steps with what the GPU did for each; a period needs the step that follows on, not one after a pause.
-- Reads stage.step_ranges, stage.blind, gpu_activities, api_calls, ops, ranges; fills steps.

INSERT INTO steps BY NAME
WITH mine AS (
    SELECT pid, step, device, kind, launch_id, activity_id, start_ns, dur_ns, start_ns + dur_ns AS end_ns
    FROM gpu_activities WHERE step IS NOT NULL
), marked AS (
    SELECT *, max(end_ns) OVER (
        PARTITION BY pid, step, device ORDER BY start_ns, end_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
    FROM mine
), gpu AS (
    SELECT
        pid, step, min(start_ns) AS gpu_start_ns, max(end_ns) AS gpu_end_ns,
        TRY_CAST(sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS BIGINT) AS gpu_busy_ns,
        count(*) FILTER (kind = 'kernel') AS kernels,
        TRY_CAST(coalesce(sum(dur_ns) FILTER (kind = 'kernel'), 0) AS BIGINT) AS kernel_ns,
        TRY_CAST(coalesce(sum(dur_ns) FILTER (kind IN ('memcpy', 'memset')), 0) AS BIGINT) AS memop_ns
    FROM marked GROUP BY ALL
), host AS (
    SELECT
        pid, step, count(*) AS launches,
        count(*) FILTER (call_id NOT IN (SELECT launch_id FROM mine WHERE launch_id IS NOT NULL)) AS unanswered
    FROM api_calls WHERE step IS NOT NULL AND role IN ('launch', 'graph_launch') GROUP BY ALL
), compiling AS (
    SELECT DISTINCT pid, start_ns FROM ops WHERE name LIKE '%(dynamo_timed)%'
    UNION SELECT DISTINCT pid, start_ns FROM ranges WHERE name LIKE '%(dynamo_timed)%'
), compiled AS (
    SELECT DISTINCT s.pid, s.step
    FROM compiling AS c ASOF JOIN stage.step_times AS s ON c.pid = s.pid AND c.start_ns >= s.start_ns
    WHERE c.start_ns < s.end_ns
)
SELECT
    1 AS trace_id, s.step, s.name, s.pid, s.start_ns, s.dur_ns, g.gpu_start_ns, g.gpu_end_ns,
    CASE
        WHEN lead(s.step) OVER followers = s.step + 1 THEN lead(g.gpu_start_ns) OVER followers - g.gpu_start_ns
    END AS period_ns,
    CASE WHEN b.invisible_replays = 0 THEN g.gpu_busy_ns END AS gpu_busy_ns,
    coalesce(g.kernels, 0) AS kernels, g.kernel_ns, g.memop_ns, coalesce(h.launches, 0) AS launches,
    list_filter([
        CASE WHEN g.step IS NULL THEN 'no_gpu' END,
        CASE WHEN c.step IS NOT NULL THEN 'compiles' END,
        CASE WHEN g.step IS NOT NULL AND h.unanswered > 0 THEN 'partial' END
    ], lambda f: f IS NOT NULL) AS flags
FROM stage.step_ranges AS s
CROSS JOIN stage.blind AS b
LEFT JOIN gpu AS g ON g.pid = s.pid AND g.step = s.step
LEFT JOIN host AS h ON h.pid = s.pid AND h.step = s.step
LEFT JOIN compiled AS c ON c.pid = s.pid AND c.step = s.step
WINDOW followers AS (PARTITION BY s.pid ORDER BY s.start_ns, s.step)
ORDER BY s.start_ns, s.step, s.pid;
