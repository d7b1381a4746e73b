-- title: How far the host runs ahead of the GPU
-- what: Launches in flight (the call has begun, the GPU has not started its work) over the time from a device's first work to its last, in equal stretches.
-- value: A deep queue hides a slow host; where it drains and the GPU idles, the GPU waits for the host: fewer or cheaper launches, or no synchronisation there.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: buckets INTEGER = 40 -- stretches of equal length; no more than 1000
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: bucket BIGINT -- number of the stretch, from 0
-- column: start_ns BIGINT ns -- its start, from the first event of the trace
-- column: dur_ns BIGINT ns -- its length; the last may be shorter
-- column: launches BIGINT count -- calls that began in it, the first stretch also those before; only calls whose work was recorded
-- column: mean_depth DOUBLE count -- launches in flight, mean over time
-- column: max_depth BIGINT count -- most launches in flight at one time
-- column: drained_ns BIGINT ns -- time with no launch in flight; NULL if graph replays were not recorded
-- column: idle_ns BIGINT ns -- time in which the GPU was idle; likewise
-- column: starved_ns BIGINT ns -- time in which both holds: the GPU waits for the host; likewise
-- chart: line x=start_ns y=mean_depth
-- order: run, rank, device, bucket
-- example: traceq query launch_queue --run eager -p buckets=10

WITH spans AS (
    SELECT
        a.trace_id,
        a.device,
        min(a.start_ns) AS first_ns,
        max(a.start_ns + a.dur_ns) AS last_ns,
        least(greatest(coalesce($buckets::INTEGER, 40), 1), 1000)::BIGINT AS asked
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
    GROUP BY a.trace_id, a.device
),

widths AS (
    SELECT trace_id, device, first_ns, last_ns, (last_ns - first_ns + asked - 1) // nullif(asked, 0) AS width_ns
    FROM spans
    WHERE last_ns > first_ns
),

started AS (
    SELECT trace_id, device, launch_id, min(start_ns) AS start_ns
    FROM gpu_activities
    WHERE launch_id IS NOT NULL
    GROUP BY trace_id, device, launch_id
),

-- Where clocks disagree, work may start before its call: that launch is never in flight.
flights AS (
    SELECT
        a.trace_id,
        a.device,
        greatest(least(c.start_ns, w.last_ns), w.first_ns) AS from_ns,
        least(greatest(a.start_ns, c.start_ns), w.last_ns) AS until_ns
    FROM started AS a
    JOIN widths AS w ON w.trace_id = a.trace_id AND w.device = a.device
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
),

edges AS (
    SELECT trace_id, device, unnest(range(first_ns, last_ns, width_ns)) AS at_ns, 0 AS launched, 0 AS flying, 0 AS busy
    FROM widths
    UNION ALL
    SELECT trace_id, device, last_ns, 0, 0, 0
    FROM widths
    UNION ALL
    SELECT trace_id, device, from_ns, 1, 1, 0
    FROM flights
    UNION ALL
    SELECT trace_id, device, until_ns, 0, -1, 0
    FROM flights
    UNION ALL
    SELECT trace_id, device, start_ns, 0, 0, 1
    FROM gpu_busy
    UNION ALL
    SELECT trace_id, device, start_ns + dur_ns, 0, 0, -1
    FROM gpu_busy
),

-- From each edge to the next. Of edges at one time only the last, whose sums are whole, has a length.
stretches AS (
    SELECT
        e.trace_id,
        e.device,
        w.first_ns,
        w.last_ns,
        w.width_ns,
        e.at_ns,
        e.launched,
        sum(e.flying) OVER so_far AS depth,
        sum(e.busy) OVER so_far AS busy,
        lead(e.at_ns, 1, e.at_ns) OVER so_far - e.at_ns AS ns
    FROM edges AS e
    JOIN widths AS w ON w.trace_id = e.trace_id AND w.device = e.device
    WINDOW so_far AS (PARTITION BY e.trace_id, e.device ORDER BY e.at_ns ROWS UNBOUNDED PRECEDING)
),

buckets AS (
    SELECT
        trace_id,
        device,
        least(at_ns - first_ns, last_ns - first_ns - 1) // nullif(width_ns, 0) AS bucket,
        min(at_ns) AS start_ns,
        sum(ns)::BIGINT AS dur_ns,
        sum(launched)::BIGINT AS launches,
        sum(depth * ns) / nullif(sum(ns), 0) AS mean_depth,
        max(CASE WHEN ns > 0 THEN depth END)::BIGINT AS max_depth,
        sum(CASE WHEN depth = 0 THEN ns ELSE 0 END)::BIGINT AS drained_ns,
        sum(CASE WHEN busy = 0 THEN ns ELSE 0 END)::BIGINT AS idle_ns,
        sum(CASE WHEN depth = 0 AND busy = 0 THEN ns ELSE 0 END)::BIGINT AS starved_ns
    FROM stretches
    GROUP BY ALL
)

SELECT
    l.run,
    l.rank,
    b.device,
    b.bucket,
    b.start_ns,
    b.dur_ns,
    b.launches,
    b.mean_depth,
    b.max_depth,
    CASE WHEN l.invisible_replays = 0 THEN b.drained_ns END AS drained_ns,
    CASE WHEN l.invisible_replays = 0 THEN b.idle_ns END AS idle_ns,
    CASE WHEN l.invisible_replays = 0 THEN b.starved_ns END AS starved_ns
FROM buckets AS b
JOIN labels AS l USING (trace_id)
ORDER BY l.run, l.rank, b.device, b.bucket, b.trace_id
