-- title: Copies hidden behind kernels
-- what: For each device and direction the time in copies, and how much of it passes while a kernel runs on the same device.
-- value: Exposed copies lengthen the step; issue them earlier on a stream of their own, from pinned memory, and they vanish behind kernels.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: direction VARCHAR -- HtoD (host to device), DtoH, DtoD, PtoP; all is every copy together; NULL if not recorded
-- column: copies BIGINT count -- copies
-- column: copy_ns BIGINT ns -- union of their intervals; NULL, as all times, if graph replays were not recorded
-- column: overlapped_ns BIGINT ns -- of copy_ns, while a kernel runs on the device
-- column: exposed_ns BIGINT ns -- the rest: while no kernel runs
-- column: overlapped_pct DOUBLE percent -- overlapped_ns of copy_ns
-- column: exposed_pct_of_busy DOUBLE percent -- exposed_ns of the busy time of the device
-- chart: bar x=direction y=exposed_ns
-- order: run, rank, device, all first, copy_ns DESC
-- example: traceq query copy_compute_overlap --run overlap

WITH picked AS (
    SELECT trace_id, run, rank, invisible_replays = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

copies AS (
    SELECT a.trace_id, a.device, a.copy_kind AS direction, false AS is_all, a.activity_id, a.start_ns, a.start_ns + a.dur_ns AS end_ns
    FROM gpu_activities AS a
    JOIN picked USING (trace_id)
    WHERE a.kind = 'memcpy'
    UNION ALL
    SELECT a.trace_id, a.device, 'all' AS direction, true AS is_all, a.activity_id, a.start_ns, a.start_ns + a.dur_ns AS end_ns
    FROM gpu_activities AS a
    JOIN picked USING (trace_id)
    WHERE a.kind = 'memcpy'
),

-- What each copy adds to the union of its direction: intervals that do not overlap.
copied AS (
    SELECT
        *,
        greatest(start_ns, coalesce(max(end_ns) OVER (
            PARTITION BY trace_id, device, is_all, direction ORDER BY start_ns, activity_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns)) AS from_ns
    FROM copies
),

kernels_of AS (
    SELECT
        trace_id,
        device,
        activity_id,
        start_ns + dur_ns AS end_ns,
        greatest(start_ns, coalesce(max(start_ns + dur_ns) OVER (
            PARTITION BY trace_id, device ORDER BY start_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns)) AS from_ns
    FROM gpu_activities
    WHERE kind = 'kernel' AND (trace_id, device) IN (SELECT (trace_id, device) FROM copies)
),

-- The union of kernels, each interval with the kernel time before it.
computed AS (
    SELECT
        trace_id,
        device,
        from_ns,
        end_ns,
        sum(end_ns - from_ns) OVER (PARTITION BY trace_id, device ORDER BY from_ns) - (end_ns - from_ns) AS before_ns
    FROM kernels_of
    WHERE end_ns > from_ns
),

edges AS (
    SELECT trace_id, device, is_all, direction, from_ns AS at_ns, -1 AS sign FROM copied WHERE end_ns > from_ns
    UNION ALL
    SELECT trace_id, device, is_all, direction, end_ns AS at_ns, 1 AS sign FROM copied WHERE end_ns > from_ns
),

-- Kernel time within an interval is that before its end less that before its start.
overlapped AS (
    SELECT
        e.trace_id,
        e.device,
        e.is_all,
        e.direction,
        sum(e.sign * e.at_ns) AS copy_ns,
        sum(e.sign * coalesce(k.before_ns + least(e.at_ns, k.end_ns) - k.from_ns, 0)) AS overlapped_ns
    FROM edges AS e
    ASOF LEFT JOIN computed AS k ON e.trace_id = k.trace_id AND e.device = k.device AND e.at_ns >= k.from_ns
    GROUP BY e.trace_id, e.device, e.is_all, e.direction
),

counted AS (
    SELECT trace_id, device, is_all, direction, count(*) AS copies
    FROM copies
    GROUP BY trace_id, device, is_all, direction
),

busy AS (
    SELECT trace_id, device, sum(dur_ns) AS busy_ns
    FROM gpu_busy
    GROUP BY trace_id, device
),

listed AS (
    SELECT
        c.*,
        CASE WHEN p.is_whole THEN coalesce(o.copy_ns, 0) END::BIGINT AS copy_ns,
        CASE WHEN p.is_whole THEN coalesce(o.overlapped_ns, 0) END::BIGINT AS overlapped_ns,
        p.run,
        p.rank,
        b.busy_ns
    FROM counted AS c
    JOIN picked AS p USING (trace_id)
    LEFT JOIN overlapped AS o
        ON o.trace_id = c.trace_id AND o.device = c.device AND o.is_all = c.is_all AND o.direction IS NOT DISTINCT FROM c.direction
    LEFT JOIN busy AS b ON b.trace_id = c.trace_id AND b.device = c.device
)

SELECT
    run,
    rank,
    device,
    direction,
    copies,
    copy_ns,
    overlapped_ns,
    copy_ns - overlapped_ns AS exposed_ns,
    100.0 * overlapped_ns / nullif(copy_ns, 0) AS overlapped_pct,
    100.0 * (copy_ns - overlapped_ns) / nullif(busy_ns, 0) AS exposed_pct_of_busy
FROM listed
ORDER BY run, rank, device, is_all DESC, copy_ns DESC, direction, trace_id
