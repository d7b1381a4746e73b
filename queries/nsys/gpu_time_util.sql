-- title: Stretches in which a GPU does little, as nsys finds them
-- what: The time from the first to the last work of a process on a device, cut into equal chunks; those used below a limit, neighbours together, as nsys analyze has it.
-- value: Shows when a GPU is under-used over the length of a recording. Use is a sum of durations: streams that overlap count twice, and it can pass 100.
-- needs: gpu_activities, overheads
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: chunks BIGINT = 30 -- chunks of equal length
-- param: threshold_pct DOUBLE = 50 -- chunks used as much or more are left out; NULL means none
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: in_use_pct DOUBLE percent -- sum of the durations of work in the chunks, over their length
-- column: dur_ns BIGINT ns -- length of the chunks together; the last chunk of a device may be shorter
-- column: start_ns BIGINT ns -- their start, from the first event of the trace
-- column: pid BIGINT -- process that uses the device, as the system numbers it; NULL if not recorded
-- column: device BIGINT -- GPU
-- chart: bar x=start_ns y=in_use_pct
-- order: run, rank, in_use_pct
-- example: traceq query gpu_time_util --run eager -p chunks=10 -p threshold_pct=90

WITH works AS (
    SELECT a.trace_id, a.pid, a.device, a.start_ns, a.start_ns + a.dur_ns AS end_ns
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND l.invisible_replays = 0
),

spans AS (
    SELECT trace_id, pid, device, min(start_ns) AS first_ns, max(end_ns) AS last_ns
    FROM works
    GROUP BY trace_id, pid, device
),

-- While the profiler flushes, nothing is recorded: that is no idle time.
profiler AS (
    SELECT s.trace_id, s.pid, s.device, s.first_ns, s.last_ns, o.start_ns, o.start_ns + o.dur_ns AS end_ns
    FROM spans AS s
    JOIN overheads AS o ON o.trace_id = s.trace_id AND o.pid = s.pid
    WHERE o.type IN ('CUDA profiling data flush overhead', 'CUDA profiling stop overhead', 'CUDA profiling overhead')
),

busy AS (
    SELECT trace_id, pid, device, start_ns, end_ns
    FROM works
    UNION ALL
    SELECT trace_id, pid, device, start_ns, end_ns
    FROM profiler
    WHERE start_ns > first_ns AND end_ns < last_ns
),

widths AS (
    SELECT
        *,
        row_number() OVER (ORDER BY trace_id, pid, device) AS lane,
        (last_ns - first_ns + greatest(coalesce($chunks::BIGINT, 30), 1) - 1) // nullif(greatest(coalesce($chunks::BIGINT, 30), 1), 0) AS width_ns
    FROM spans
    WHERE last_ns > first_ns
),

pieces AS (
    SELECT
        w.lane,
        w.width_ns,
        b.start_ns - w.first_ns AS start_ns,
        b.end_ns - w.first_ns AS end_ns,
        unnest(range((b.start_ns - w.first_ns) // nullif(w.width_ns, 0), (b.end_ns - 1 - w.first_ns) // nullif(w.width_ns, 0) + 1)) AS chunk
    FROM busy AS b
    JOIN widths AS w ON w.trace_id = b.trace_id AND w.pid IS NOT DISTINCT FROM b.pid AND w.device = b.device
    WHERE b.end_ns > b.start_ns
),

used AS (
    SELECT lane, chunk, sum(least(end_ns, (chunk + 1) * width_ns) - greatest(start_ns, chunk * width_ns)) AS used_ns
    FROM pieces
    GROUP BY lane, chunk
),

cut AS (
    SELECT lane, first_ns, last_ns, width_ns, unnest(range((last_ns - first_ns + width_ns - 1) // nullif(width_ns, 0))) AS chunk
    FROM widths
),

low AS (
    SELECT
        c.lane,
        c.chunk,
        c.chunk - row_number() OVER (PARTITION BY c.lane ORDER BY c.chunk) AS stretch,
        c.first_ns + c.chunk * c.width_ns AS start_ns,
        least(c.width_ns, c.last_ns - c.first_ns - c.chunk * c.width_ns) AS dur_ns,
        coalesce(u.used_ns, 0) AS used_ns
    FROM cut AS c
    LEFT JOIN used AS u ON u.lane = c.lane AND u.chunk = c.chunk
    WHERE
        $threshold_pct::DOUBLE IS NULL
        OR 100.0 * coalesce(u.used_ns, 0) < $threshold_pct::DOUBLE * least(c.width_ns, c.last_ns - c.first_ns - c.chunk * c.width_ns)
),

merged AS (
    SELECT lane, min(start_ns) AS start_ns, sum(dur_ns)::BIGINT AS dur_ns, 100.0 * sum(used_ns) / nullif(sum(dur_ns), 0) AS in_use_pct
    FROM low
    GROUP BY lane, stretch
)

SELECT
    l.run,
    l.rank,
    m.in_use_pct,
    m.dur_ns,
    m.start_ns,
    coalesce(p.os_pid, try_cast(w.pid AS BIGINT)) AS pid,
    w.device
FROM merged AS m
JOIN widths AS w USING (lane)
JOIN labels AS l ON l.trace_id = w.trace_id
LEFT JOIN processes AS p ON p.trace_id = w.trace_id AND p.pid = w.pid
ORDER BY l.run, l.rank, m.in_use_pct, m.start_ns, w.pid, w.device, w.trace_id
