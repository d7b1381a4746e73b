-- title: Streams that are busy at the same time
-- what: For each device and each of its streams the time that it is busy, by how many streams are busy then: one, two, or more.
-- value: Work on several streams helps only where they are busy together; a second stream that is always alone gains nothing.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: stream VARCHAR -- stream; all is the whole device; NULL if the trace does not record streams
-- column: activities BIGINT count -- kernels, copies and memsets
-- column: busy_ns BIGINT ns -- union of their intervals; NULL, as all times, if graph replays were not recorded
-- column: pct_of_busy DOUBLE percent -- of the busy time of the device; over the streams these add up to more than 100 where they overlap
-- column: alone_ns BIGINT ns -- of busy_ns, while no other stream is busy
-- column: two_ns BIGINT ns -- of busy_ns, while exactly two streams are
-- column: more_ns BIGINT ns -- of busy_ns, while three or more are
-- column: shared_pct DOUBLE percent -- two_ns and more_ns, of busy_ns
-- chart: bar x=stream y=busy_ns
-- order: run, rank, device, all first, stream
-- example: traceq query stream_overlap --run overlap

WITH picked AS (
    SELECT trace_id, run, rank, invisible_replays = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

work AS (
    SELECT
        a.trace_id,
        a.device,
        a.stream,
        p.is_whole,
        a.start_ns,
        a.start_ns + a.dur_ns AS end_ns,
        max(a.start_ns + a.dur_ns) OVER (
            PARTITION BY a.trace_id, a.device, a.stream ORDER BY a.start_ns, a.activity_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
),

-- What each activity adds to the union of its stream: intervals that do not overlap.
added AS (
    SELECT trace_id, device, stream, is_whole, greatest(start_ns, coalesce(before_ns, start_ns)) AS from_ns, end_ns
    FROM work
),

counted AS (
    SELECT
        trace_id,
        device,
        stream,
        count(*) AS activities,
        CASE WHEN any_value(is_whole) THEN sum(greatest(end_ns - from_ns, 0)) END AS busy_ns
    FROM added
    GROUP BY trace_id, device, stream
),

-- Only devices with several streams need the sweep below.
several AS (
    SELECT trace_id, device
    FROM counted
    GROUP BY trace_id, device
    HAVING count(*) > 1 AND count(busy_ns) > 0
),

edges AS (
    SELECT a.trace_id, a.device, a.stream, a.from_ns AS at_ns, 1 AS change
    FROM added AS a
    JOIN several USING (trace_id, device)
    WHERE a.end_ns > a.from_ns
    UNION ALL
    SELECT a.trace_id, a.device, a.stream, a.end_ns AS at_ns, -1 AS change
    FROM added AS a
    JOIN several USING (trace_id, device)
    WHERE a.end_ns > a.from_ns
),

-- After each edge, how many streams are busy and for how long. Edges of one moment are no time apart.
levels AS (
    SELECT
        *,
        sum(change) OVER (PARTITION BY trace_id, device ORDER BY at_ns, stream, change) AS streams,
        lead(at_ns) OVER (PARTITION BY trace_id, device ORDER BY at_ns, stream, change) - at_ns AS ns
    FROM edges
),

-- Until each edge, how long one, two or more streams have been busy.
elapsed AS (
    SELECT
        trace_id,
        device,
        stream,
        change,
        coalesce(sum(CASE WHEN streams = 1 THEN ns ELSE 0 END) OVER before, 0) AS one_ns,
        coalesce(sum(CASE WHEN streams = 2 THEN ns ELSE 0 END) OVER before, 0) AS two_ns,
        coalesce(sum(CASE WHEN streams > 2 THEN ns ELSE 0 END) OVER before, 0) AS more_ns
    FROM levels
    WINDOW before AS (
        PARTITION BY trace_id, device ORDER BY at_ns, stream, change ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

-- A stream's share is what elapses between the edges of its intervals, the device's is all.
spent AS (
    SELECT
        trace_id,
        device,
        stream,
        sum(-change * one_ns) AS alone_ns,
        sum(-change * two_ns) AS two_ns,
        sum(-change * more_ns) AS more_ns
    FROM elapsed
    GROUP BY trace_id, device, stream
),

whole AS (
    SELECT trace_id, device, max(one_ns) AS alone_ns, max(two_ns) AS two_ns, max(more_ns) AS more_ns
    FROM elapsed
    GROUP BY trace_id, device
),

listed AS (
    SELECT
        c.trace_id,
        c.device,
        c.stream::VARCHAR AS stream,
        c.stream AS number,
        1 AS place,
        c.activities,
        c.busy_ns,
        coalesce(s.alone_ns, c.busy_ns) AS alone_ns,
        CASE WHEN c.busy_ns IS NOT NULL THEN coalesce(s.two_ns, 0) END AS two_ns,
        CASE WHEN c.busy_ns IS NOT NULL THEN coalesce(s.more_ns, 0) END AS more_ns
    FROM counted AS c
    LEFT JOIN spent AS s ON s.trace_id = c.trace_id AND s.device = c.device AND s.stream IS NOT DISTINCT FROM c.stream
    UNION ALL
    SELECT
        c.trace_id,
        c.device,
        'all' AS stream,
        NULL AS number,
        0 AS place,
        c.activities,
        CASE WHEN w.alone_ns IS NULL THEN c.busy_ns ELSE w.alone_ns + w.two_ns + w.more_ns END AS busy_ns,
        coalesce(w.alone_ns, c.busy_ns) AS alone_ns,
        CASE WHEN c.busy_ns IS NOT NULL THEN coalesce(w.two_ns, 0) END AS two_ns,
        CASE WHEN c.busy_ns IS NOT NULL THEN coalesce(w.more_ns, 0) END AS more_ns
    FROM (
        SELECT trace_id, device, sum(activities) AS activities, sum(busy_ns) AS busy_ns
        FROM counted
        GROUP BY trace_id, device
    ) AS c
    LEFT JOIN whole AS w ON w.trace_id = c.trace_id AND w.device = c.device
)

SELECT
    p.run,
    p.rank,
    n.device,
    n.stream,
    n.activities::BIGINT AS activities,
    n.busy_ns::BIGINT AS busy_ns,
    100.0 * n.busy_ns / nullif(max(CASE WHEN n.place = 0 THEN n.busy_ns END) OVER (PARTITION BY n.trace_id, n.device), 0) AS pct_of_busy,
    n.alone_ns::BIGINT AS alone_ns,
    n.two_ns::BIGINT AS two_ns,
    n.more_ns::BIGINT AS more_ns,
    100.0 * (n.two_ns + n.more_ns) / nullif(n.busy_ns, 0) AS shared_pct
FROM listed AS n
JOIN picked AS p USING (trace_id)
ORDER BY p.run, p.rank, n.device, n.place, n.number, n.trace_id
