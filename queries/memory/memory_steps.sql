-- title: Memory by step
-- what: For each step and GPU the most memory allocated and reserved while the step ran on the host, and what it took and left behind.
-- value: Equal steps should leave nothing behind: change_bytes above 0 again and again is a leak, often a loss that is kept with its graph.
-- needs: memory_events, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: device BIGINT -- GPU as its process numbers it
-- column: peak_bytes BIGINT bytes -- most memory in use by tensors during the step; NULL if the totals are not recorded, as in old traces
-- column: peak_after_ns BIGINT ns -- first moment of that, from the start of the step
-- column: reserved_bytes BIGINT bytes -- most memory held by the allocator, likewise
-- column: end_bytes BIGINT bytes -- memory in use at its end
-- column: change_bytes BIGINT bytes -- allocated less released during the step
-- column: allocations BIGINT count -- allocations
-- column: taken_bytes BIGINT bytes -- their sizes: what the step asked the allocator for
-- column: releases BIGINT count -- releases
-- chart: bar x=step y=peak_bytes
-- order: run, rank, start, device
-- example: traceq query memory_steps --run memory

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

-- What happens at one moment is taken together: its order is not recorded.
moments AS (
    SELECT
        m.trace_id,
        m.pid,
        m.device,
        m.at_ns,
        sum(m.bytes) AS bytes,
        max(m.allocated_bytes) AS allocated_bytes,
        max(m.reserved_bytes) AS reserved_bytes,
        count(*) FILTER (m.bytes > 0) AS allocations,
        coalesce(sum(m.bytes) FILTER (m.bytes > 0), 0) AS taken_bytes,
        count(*) FILTER (m.bytes < 0) AS releases
    FROM memory_events AS m
    JOIN picked USING (trace_id)
    WHERE m.device IS NOT NULL AND m.device_type IS DISTINCT FROM 0 AND m.name IS DISTINCT FROM '[OutOfMemory]'
    GROUP BY m.trace_id, m.pid, m.device, m.at_ns
),

-- Where steps overlap, the one that began last counts.
stepped AS (
    SELECT m.*, s.step
    FROM moments AS m
    ASOF JOIN steps AS s ON m.trace_id = s.trace_id AND m.pid = s.pid AND m.at_ns >= s.start_ns
    WHERE m.at_ns < s.start_ns + s.dur_ns
),

summed AS (
    SELECT
        trace_id,
        pid,
        step,
        device,
        max(allocated_bytes) AS peak_bytes,
        arg_min(at_ns, (-allocated_bytes, at_ns)) FILTER (allocated_bytes IS NOT NULL) AS peak_at_ns,
        max(reserved_bytes) AS reserved_bytes,
        sum(bytes) AS change_bytes,
        sum(allocations) AS allocations,
        sum(taken_bytes) AS taken_bytes,
        sum(releases) AS releases
    FROM stepped
    GROUP BY trace_id, pid, step, device
),

-- Every step for every GPU of its process, with the memory in use when it begins and when it ends.
listed AS (
    SELECT
        s.trace_id,
        s.pid,
        s.step,
        d.device,
        s.start_ns,
        s.start_ns + s.dur_ns AS end_ns
    FROM steps AS s
    JOIN (SELECT DISTINCT trace_id, pid, device FROM moments) AS d ON d.trace_id = s.trace_id AND d.pid = s.pid
),

carried AS (
    SELECT
        n.*,
        b.allocated_bytes AS before_bytes,
        b.reserved_bytes AS before_reserved_bytes,
        e.allocated_bytes AS end_bytes
    FROM listed AS n
    ASOF LEFT JOIN moments AS b ON n.trace_id = b.trace_id AND n.pid = b.pid AND n.device = b.device AND n.start_ns > b.at_ns
    ASOF LEFT JOIN moments AS e ON n.trace_id = e.trace_id AND n.pid = e.pid AND n.device = e.device AND n.end_ns > e.at_ns
)

SELECT
    p.run,
    p.rank,
    c.step,
    c.device,
    greatest(c.before_bytes, s.peak_bytes) AS peak_bytes,
    CASE WHEN c.before_bytes >= coalesce(s.peak_bytes, 0) THEN 0 ELSE s.peak_at_ns - c.start_ns END AS peak_after_ns,
    greatest(c.before_reserved_bytes, s.reserved_bytes) AS reserved_bytes,
    c.end_bytes,
    coalesce(s.change_bytes, 0)::BIGINT AS change_bytes,
    coalesce(s.allocations, 0)::BIGINT AS allocations,
    coalesce(s.taken_bytes, 0)::BIGINT AS taken_bytes,
    coalesce(s.releases, 0)::BIGINT AS releases
FROM carried AS c
JOIN picked AS p USING (trace_id)
LEFT JOIN summed AS s ON s.trace_id = c.trace_id AND s.pid = c.pid AND s.step = c.step AND s.device = c.device
ORDER BY p.run, p.rank, c.start_ns, c.step, c.pid, c.device, c.trace_id
