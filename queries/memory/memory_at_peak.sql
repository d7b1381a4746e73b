-- title: What was allocated at the peak
-- what: The memory in use on each GPU at the moment of most, by the operator and module that allocated it; what was there before the recording is one row. No rows where addresses are not recorded.
-- value: Activations of the forward pass that live until backward are what checkpointing or a smaller batch frees; parameters and optimizer state are not.
-- needs: memory_events, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each GPU; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU as its process numbers it
-- column: op VARCHAR -- operator that allocated, the innermost that is not aten::empty or its like; (no operator) where none was open, (before the recording) for the rest
-- column: phase VARCHAR -- what the operator served: forward, backward, optimizer, data; NULL if none
-- column: module VARCHAR -- module of the operator; NULL if not known
-- column: allocations BIGINT count -- allocations in use; NULL for those before the recording
-- column: bytes BIGINT bytes -- their sizes
-- column: pct_of_peak DOUBLE percent -- of the memory in use; NULL if the totals are not recorded
-- column: largest_bytes BIGINT bytes -- size of the largest; NULL for those before the recording
-- chart: bar x=op y=bytes
-- order: run, rank, device, bytes DESC
-- example: traceq query memory_at_peak --run memory -p top=5

WITH RECURSIVE picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

happened AS (
    SELECT m.*
    FROM memory_events AS m
    JOIN picked USING (trace_id)
    WHERE m.device IS NOT NULL AND m.device_type IS DISTINCT FROM 0 AND m.name IS DISTINCT FROM '[OutOfMemory]'
),

moments AS (
    SELECT trace_id, pid, device, at_ns, sum(bytes) AS bytes, max(allocated_bytes) AS allocated_bytes
    FROM happened
    GROUP BY trace_id, pid, device, at_ns
),

growth AS (
    SELECT *, sum(bytes) OVER (PARTITION BY trace_id, pid, device ORDER BY at_ns) AS grown_bytes
    FROM moments
),

ordered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY trace_id, pid, device
            ORDER BY allocated_bytes DESC NULLS LAST, CASE WHEN allocated_bytes IS NULL THEN grown_bytes END DESC, at_ns
        ) AS place
    FROM growth
),

peaks AS (
    SELECT trace_id, pid, device, at_ns, allocated_bytes
    FROM ordered
    WHERE place = 1
),

-- What an address last saw until the peak: an allocation is still in use, a release is not. Releases of the peak's own
-- moment come after it.
latest AS (
    SELECT
        h.trace_id,
        h.pid,
        h.device,
        h.addr,
        arg_max(h.bytes, (h.at_ns, h.bytes)) AS bytes,
        arg_max_null(h.op_id, (h.at_ns, h.bytes)) AS op_id
    FROM happened AS h
    JOIN peaks AS p ON p.trace_id = h.trace_id AND p.pid IS NOT DISTINCT FROM h.pid AND p.device = h.device
    WHERE (h.at_ns < p.at_ns OR (h.at_ns = p.at_ns AND h.bytes > 0)) AND h.addr IS NOT NULL
    GROUP BY h.trace_id, h.pid, h.device, h.addr
),

live AS (
    SELECT trace_id, pid, device, bytes, op_id
    FROM latest
    WHERE bytes > 0
),

-- From the operator around the allocation outwards, as long as it only allocates.
askers AS (
    SELECT o.trace_id, o.op_id AS inner_id, o.name, o.phase, o.module, o.parent_id, 0 AS level
    FROM ops AS o
    JOIN (SELECT DISTINCT trace_id, op_id FROM live) AS l ON l.trace_id = o.trace_id AND l.op_id = o.op_id
    UNION
    SELECT a.trace_id, a.inner_id, o.name, o.phase, o.module, o.parent_id, a.level + 1 AS level
    FROM askers AS a
    JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.parent_id
    WHERE regexp_matches(a.name, '^aten::(new_)?(empty|resize)')
),

asked AS (
    SELECT
        trace_id,
        inner_id,
        arg_max(name, level) AS name,
        arg_max(phase, level) AS phase,
        arg_max(module, level) AS module
    FROM askers
    GROUP BY trace_id, inner_id
),

grouped AS (
    SELECT
        l.trace_id,
        l.pid,
        l.device,
        coalesce(a.name, '(no operator)') AS op,
        a.phase,
        a.module,
        count(*) AS allocations,
        sum(l.bytes) AS bytes,
        max(l.bytes) AS largest_bytes
    FROM live AS l
    LEFT JOIN asked AS a ON a.trace_id = l.trace_id AND a.inner_id = l.op_id
    GROUP BY l.trace_id, l.pid, l.device, coalesce(a.name, '(no operator)'), a.phase, a.module
),

listed AS (
    SELECT * FROM grouped
    UNION ALL
    SELECT
        p.trace_id,
        p.pid,
        p.device,
        '(before the recording)' AS op,
        NULL AS phase,
        NULL AS module,
        NULL AS allocations,
        p.allocated_bytes - coalesce(sum(g.bytes), 0) AS bytes,
        NULL AS largest_bytes
    FROM peaks AS p
    LEFT JOIN grouped AS g ON g.trace_id = p.trace_id AND g.pid IS NOT DISTINCT FROM p.pid AND g.device = p.device
    WHERE (p.trace_id, p.device) IN (SELECT (trace_id, device) FROM happened WHERE addr IS NOT NULL)
    GROUP BY p.trace_id, p.pid, p.device, p.allocated_bytes
    HAVING p.allocated_bytes > coalesce(sum(g.bytes), 0)
),

ranked AS (
    SELECT
        n.*,
        p.allocated_bytes,
        row_number() OVER (PARTITION BY n.trace_id, n.pid, n.device ORDER BY n.bytes DESC, n.op, n.phase, n.module) AS place
    FROM listed AS n
    JOIN peaks AS p ON p.trace_id = n.trace_id AND p.pid IS NOT DISTINCT FROM n.pid AND p.device = n.device
)

SELECT
    l.run,
    l.rank,
    r.device,
    r.op,
    r.phase,
    r.module,
    r.allocations,
    r.bytes::BIGINT AS bytes,
    100.0 * r.bytes / nullif(r.allocated_bytes, 0) AS pct_of_peak,
    r.largest_bytes
FROM ranked AS r
JOIN picked AS l USING (trace_id)
WHERE r.place <= coalesce($top::BIGINT, r.place)
ORDER BY l.run, l.rank, r.device, r.pid, r.place, r.trace_id
