-- title: The moment of most memory
-- what: For each GPU the most memory that PyTorch had allocated and reserved in the recording, when, in which step, and which operator asked for it; of an nsys export, what the process took from the driver (--cuda-memory-usage).
-- value: Reserved far above allocated is fragmentation; a peak in backward can be lowered by checkpointing, one in the optimizer by its fused form.
-- needs: memory_events
-- layout: record
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU as its process numbers it
-- column: events BIGINT count -- allocations and releases recorded
-- column: peak_bytes BIGINT bytes -- most memory in use by tensors; NULL if the totals are not recorded, as in old traces
-- column: peak_at_ns BIGINT ns -- first moment of that, from the start of the trace; where the totals are not recorded, of grown_bytes
-- column: peak_step BIGINT -- step running then on the host; NULL if none
-- column: peak_phase VARCHAR -- what the operator served: forward, backward, optimizer, data; NULL if none was open
-- column: peak_op VARCHAR -- operator that asked for it, the innermost that is not aten::empty or its like; NULL if none was open
-- column: peak_module VARCHAR -- module of that operator; NULL if not known
-- column: reserved_bytes BIGINT bytes -- most memory held by the allocator; NULL if not recorded
-- column: reserved_at_ns BIGINT ns -- first moment of that
-- column: reserved_step BIGINT -- step running then on the host; NULL if none
-- column: unused_bytes BIGINT bytes -- reserved_bytes less peak_bytes
-- column: grown_bytes BIGINT bytes -- most by which memory in use exceeded that at the start of the recording
-- column: left_bytes BIGINT bytes -- memory in use at the end less that at the start
-- column: gpu_bytes BIGINT bytes -- memory of the GPU; NULL if the file does not say
-- column: failures BIGINT count -- allocations that failed for lack of memory
-- order: run, rank, device
-- example: traceq query memory_peak --run memory

WITH RECURSIVE picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

happened AS (
    SELECT m.*
    FROM memory_events AS m
    JOIN picked USING (trace_id)
    WHERE m.device IS NOT NULL AND m.device_type IS DISTINCT FROM 0
),

-- Memory in use less that at the start. What happens at one moment is taken together: its order is not recorded.
moments AS (
    SELECT trace_id, pid, device, at_ns, sum(bytes) AS bytes
    FROM happened
    WHERE name IS DISTINCT FROM '[OutOfMemory]'
    GROUP BY trace_id, pid, device, at_ns
),

growth AS (
    SELECT trace_id, pid, device, at_ns, sum(bytes) OVER (PARTITION BY trace_id, pid, device ORDER BY at_ns) AS grown_bytes
    FROM moments
),

placed AS (
    SELECT
        h.*,
        g.grown_bytes,
        row_number() OVER (
            PARTITION BY h.trace_id, h.pid, h.device
            ORDER BY
                h.allocated_bytes DESC NULLS LAST,
                CASE WHEN h.allocated_bytes IS NULL THEN g.grown_bytes END DESC,
                h.at_ns,
                h.bytes DESC,
                h.op_id,
                h.addr
        ) AS peak_place,
        row_number() OVER (
            PARTITION BY h.trace_id, h.pid, h.device
            ORDER BY h.reserved_bytes DESC NULLS LAST, h.at_ns, h.bytes DESC, h.op_id, h.addr
        ) AS reserved_place
    FROM happened AS h
    JOIN growth AS g ON g.trace_id = h.trace_id AND g.pid IS NOT DISTINCT FROM h.pid AND g.device = h.device AND g.at_ns = h.at_ns
    WHERE h.name IS DISTINCT FROM '[OutOfMemory]'
),

summed AS (
    SELECT
        trace_id,
        pid,
        device,
        count(*) AS events,
        max(allocated_bytes) AS peak_bytes,
        max(reserved_bytes) AS reserved_bytes,
        greatest(max(grown_bytes), 0) AS grown_bytes,
        arg_max(grown_bytes, at_ns) AS left_bytes,
        max(at_ns) FILTER (peak_place = 1) AS peak_at_ns,
        max(op_id) FILTER (peak_place = 1) AS op_id,
        max(at_ns) FILTER (reserved_place = 1 AND reserved_bytes IS NOT NULL) AS reserved_at_ns
    FROM placed
    GROUP BY trace_id, pid, device
),

failed AS (
    SELECT trace_id, pid, device, count(*) AS failures
    FROM happened
    WHERE name = '[OutOfMemory]'
    GROUP BY trace_id, pid, device
),

-- From the operator around the allocation outwards, as long as it only allocates.
askers AS (
    SELECT s.trace_id, s.op_id AS inner_id, o.op_id, o.name, o.phase, o.module, o.parent_id, 0 AS level
    FROM summed AS s
    JOIN ops AS o ON o.trace_id = s.trace_id AND o.op_id = s.op_id
    UNION
    SELECT a.trace_id, a.inner_id, o.op_id, o.name, o.phase, o.module, o.parent_id, a.level + 1 AS level
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

-- Steps of the same process; where they overlap, the one that began last counts.
stepped AS (
    SELECT
        m.*,
        CASE WHEN m.peak_at_ns < p.start_ns + p.dur_ns THEN p.step END AS peak_step,
        CASE WHEN m.reserved_at_ns < r.start_ns + r.dur_ns THEN r.step END AS reserved_step
    FROM summed AS m
    ASOF LEFT JOIN steps AS p ON m.trace_id = p.trace_id AND m.pid = p.pid AND m.peak_at_ns >= p.start_ns
    ASOF LEFT JOIN steps AS r ON m.trace_id = r.trace_id AND m.pid = r.pid AND m.reserved_at_ns >= r.start_ns
)

SELECT
    p.run,
    p.rank,
    s.device,
    s.events,
    s.peak_bytes,
    s.peak_at_ns,
    s.peak_step,
    a.phase AS peak_phase,
    a.name AS peak_op,
    a.module AS peak_module,
    s.reserved_bytes,
    s.reserved_at_ns,
    s.reserved_step,
    s.reserved_bytes - s.peak_bytes AS unused_bytes,
    s.grown_bytes::BIGINT AS grown_bytes,
    s.left_bytes::BIGINT AS left_bytes,
    d.memory_bytes AS gpu_bytes,
    coalesce(f.failures, 0) AS failures
FROM stepped AS s
JOIN picked AS p USING (trace_id)
LEFT JOIN asked AS a ON a.trace_id = s.trace_id AND a.inner_id = s.op_id
LEFT JOIN device_ordinals AS n ON n.trace_id = s.trace_id AND n.pid = s.pid AND n.ordinal = s.device
LEFT JOIN devices AS d ON d.trace_id = n.trace_id AND d.device = n.device
LEFT JOIN failed AS f ON f.trace_id = s.trace_id AND f.pid IS NOT DISTINCT FROM s.pid AND f.device = s.device
ORDER BY p.run, p.rank, s.device, s.pid, s.trace_id
