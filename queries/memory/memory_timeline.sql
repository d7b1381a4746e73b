-- title: Memory over time
-- what: Memory allocated and reserved on each GPU in equal stretches of time, from the first allocation or release to the last.
-- value: A saw that rises and falls with each step is healthy; one whose feet rise is a leak.
-- needs: memory_events
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: buckets BIGINT = 40 -- stretches of time, at most; no more than 1000
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU as its process numbers it
-- column: bucket BIGINT -- number of the stretch, from 0
-- column: start_ns BIGINT ns -- its start, from the start of the trace
-- column: step BIGINT -- step running then on the host; NULL if none
-- column: allocated_bytes BIGINT bytes -- most memory in use by tensors within it; NULL if the totals are not recorded, as in old traces
-- column: reserved_bytes BIGINT bytes -- most memory held by the allocator within it, likewise
-- column: grown_bytes BIGINT bytes -- memory in use at its end less that at the start of the recording
-- column: allocations BIGINT count -- allocations in it
-- column: taken_bytes BIGINT bytes -- their sizes
-- column: releases BIGINT count -- releases in it
-- chart: line x=start_ns y=allocated_bytes
-- order: run, rank, device, bucket
-- example: traceq query memory_timeline --run memory -p buckets=10

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

growth AS (
    SELECT *, sum(bytes) OVER (PARTITION BY trace_id, pid, device ORDER BY at_ns) AS grown_bytes
    FROM moments
),

spans AS (
    SELECT
        trace_id,
        pid,
        device,
        min(at_ns) AS first_ns,
        max(at_ns) AS last_ns,
        (max(at_ns) - min(at_ns)) // nullif(least(greatest(coalesce($buckets::BIGINT, 40), 1), 1000), 0) + 1 AS width_ns
    FROM moments
    GROUP BY trace_id, pid, device
),

buckets AS (
    SELECT *, unnest(range((last_ns - first_ns) // nullif(width_ns, 0) + 1)) AS bucket
    FROM spans
),

cut AS (
    SELECT trace_id, pid, device, bucket, first_ns + bucket * width_ns AS start_ns, first_ns + (bucket + 1) * width_ns AS end_ns
    FROM buckets
),

filled AS (
    SELECT
        g.trace_id,
        g.pid,
        g.device,
        (g.at_ns - s.first_ns) // nullif(s.width_ns, 0) AS bucket,
        max(g.allocated_bytes) AS allocated_bytes,
        max(g.reserved_bytes) AS reserved_bytes,
        sum(g.allocations) AS allocations,
        sum(g.taken_bytes) AS taken_bytes,
        sum(g.releases) AS releases
    FROM growth AS g
    JOIN spans AS s ON s.trace_id = g.trace_id AND s.pid IS NOT DISTINCT FROM g.pid AND s.device = g.device
    GROUP BY g.trace_id, g.pid, g.device, (g.at_ns - s.first_ns) // nullif(s.width_ns, 0)
),

-- The memory in use when a stretch begins, and when it ends.
carried AS (
    SELECT
        c.*,
        b.allocated_bytes AS before_allocated_bytes,
        b.reserved_bytes AS before_reserved_bytes,
        e.grown_bytes,
        CASE WHEN c.start_ns < s.start_ns + s.dur_ns THEN s.step END AS step
    FROM cut AS c
    ASOF LEFT JOIN growth AS b
        ON c.trace_id = b.trace_id AND coalesce(c.pid, '') = coalesce(b.pid, '') AND c.device = b.device AND c.start_ns > b.at_ns
    ASOF LEFT JOIN growth AS e
        ON c.trace_id = e.trace_id AND coalesce(c.pid, '') = coalesce(e.pid, '') AND c.device = e.device AND c.end_ns > e.at_ns
    ASOF LEFT JOIN steps AS s ON c.trace_id = s.trace_id AND c.pid = s.pid AND c.start_ns >= s.start_ns
)

SELECT
    p.run,
    p.rank,
    c.device,
    c.bucket,
    c.start_ns,
    c.step,
    greatest(c.before_allocated_bytes, f.allocated_bytes) AS allocated_bytes,
    greatest(c.before_reserved_bytes, f.reserved_bytes) AS reserved_bytes,
    c.grown_bytes::BIGINT AS grown_bytes,
    coalesce(f.allocations, 0)::BIGINT AS allocations,
    coalesce(f.taken_bytes, 0)::BIGINT AS taken_bytes,
    coalesce(f.releases, 0)::BIGINT AS releases
FROM carried AS c
JOIN picked AS p USING (trace_id)
LEFT JOIN filled AS f
    ON f.trace_id = c.trace_id AND f.pid IS NOT DISTINCT FROM c.pid AND f.device = c.device AND f.bucket = c.bucket
ORDER BY p.run, p.rank, c.device, c.pid, c.bucket, c.trace_id
