-- title: Long gaps of a GPU, as nsys finds them
-- what: Times in which a process has neither kernel, copy, memset nor graph on a device, nor the profiler its own work, longer than a limit, as nsys analyze has it.
-- value: nsys takes half a second for a limit; gap_ns=10000 shows what a training step loses. longest_gaps and gap_causes say why.
-- needs: gpu_activities, overheads
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: gap_ns BIGINT = 500000000 -- gaps of this length or less are left out; NULL means none
-- param: top BIGINT = 50 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: dur_ns BIGINT ns -- length of the gap
-- column: start_ns BIGINT ns -- its start, from the first event of the trace
-- column: pid BIGINT -- process that uses the device, as the system numbers it; NULL if not recorded
-- column: device BIGINT -- GPU
-- chart: bar x=start_ns y=dur_ns
-- order: run, dur_ns DESC
-- example: traceq query gpu_gaps --run eager -p gap_ns=100000

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

-- A gap ends where work starts that nothing before reaches. Traces with graph replays that were not recorded have none.
reached AS (
    SELECT
        trace_id,
        pid,
        device,
        start_ns AS end_ns,
        max(end_ns) OVER (PARTITION BY trace_id, pid, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS start_ns
    FROM busy
)

SELECT
    l.run,
    l.rank,
    g.end_ns - g.start_ns AS dur_ns,
    g.start_ns,
    coalesce(p.os_pid, try_cast(g.pid AS BIGINT)) AS pid,
    g.device
FROM reached AS g
JOIN labels AS l ON l.trace_id = g.trace_id
LEFT JOIN processes AS p ON p.trace_id = g.trace_id AND p.pid = g.pid
WHERE g.end_ns - g.start_ns > coalesce($gap_ns::BIGINT, 0)
QUALIFY
    $top::BIGINT IS NULL
    OR row_number() OVER (PARTITION BY l.run ORDER BY g.end_ns - g.start_ns DESC, l.rank, g.start_ns, g.pid, g.device, g.trace_id) <= $top::BIGINT
ORDER BY l.run, g.end_ns - g.start_ns DESC, l.rank, g.start_ns, g.pid, g.device, g.trace_id
