-- title: Memory taken from and given back to the driver
-- what: Calls that allocate or free GPU or pinned host memory (cudaMalloc, cudaFree, cudaHostAlloc, …) by name, with the steps they fall in and the GPU idle time blamed on them; over all ranks of a run.
-- value: PyTorch keeps memory, so after warm-up there should be none: each takes long, and cudaFree and cudaHostAlloc hold up the launches of every thread.
-- needs: api_calls, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- name of the call
-- column: calls BIGINT count -- calls
-- column: total_ns BIGINT ns -- sum of their lengths
-- column: max_ns BIGINT ns -- longest
-- column: bytes BIGINT bytes -- sum of the sizes, where recorded; NULL if none is (CUDA traces of torch.profiler)
-- column: idle_ns BIGINT ns -- idle time of the GPUs with the cause allocator for which it is the evidence; NULL if idle time is not known
-- column: steps BIGINT count -- steps in which it is called
-- column: first_step BIGINT -- first of them; NULL if none
-- column: last_step BIGINT -- last of them; NULL if none
-- column: outside BIGINT count -- of the calls, those in no step
-- column: op VARCHAR -- innermost operator around most of its time; NULL if none is
-- column: outer_op VARCHAR -- outermost operator around that; NULL if none is
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query allocator_calls --run causes

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

calls AS (
    SELECT
        c.trace_id,
        p.run,
        c.name,
        c.dur_ns,
        c.op_id,
        c.pid,
        c.step,
        TRY_CAST(c.details->>'$.bytes' AS BIGINT) AS bytes
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    WHERE c.role = 'alloc'
),

-- Ids follow the nesting: the outermost operator around one is the last of depth 0 on its thread up to it.
inner_ops AS (
    SELECT trace_id, op_id, coalesce(pid, '') AS pid, coalesce(tid, '') AS tid, name
    FROM ops
    WHERE (trace_id, op_id) IN (SELECT (trace_id, op_id) FROM calls)
),

outer_ops AS (
    SELECT trace_id, op_id, coalesce(pid, '') AS pid, coalesce(tid, '') AS tid, name
    FROM ops
    WHERE depth = 0
),

op_names AS (
    SELECT o.trace_id, o.op_id, o.name AS op, u.name AS outer_op
    FROM inner_ops AS o
    ASOF JOIN outer_ops AS u ON u.trace_id = o.trace_id AND u.pid = o.pid AND u.tid = o.tid AND o.op_id >= u.op_id
),

places AS (
    SELECT c.run, c.name, o.op, o.outer_op
    FROM calls AS c
    LEFT JOIN op_names AS o ON o.trace_id = c.trace_id AND o.op_id = c.op_id
    GROUP BY c.run, c.name, o.op, o.outer_op
    QUALIFY row_number() OVER (PARTITION BY c.run, c.name ORDER BY sum(c.dur_ns) DESC, o.op NULLS LAST, o.outer_op) = 1
),

named AS (
    SELECT
        run,
        name,
        count(*) AS calls,
        sum(dur_ns)::BIGINT AS total_ns,
        max(dur_ns) AS max_ns,
        sum(bytes)::BIGINT AS bytes,
        count(DISTINCT (trace_id, pid, step)) FILTER (step IS NOT NULL) AS steps,
        min(step) AS first_step,
        max(step) AS last_step,
        count(*) FILTER (step IS NULL) AS outside
    FROM calls
    GROUP BY run, name
),

blamed AS (
    SELECT p.run, replace(i.evidence, ' on another thread', '') AS name, sum(i.ns) AS idle_ns
    FROM gap_parts AS i
    JOIN picked AS p USING (trace_id)
    WHERE i.cause = 'allocator'
    GROUP BY ALL
),

known AS (
    SELECT p.run, min(CASE WHEN b.trace_id IS NOT NULL THEN 1 ELSE 0 END) = 1 AS is_known
    FROM picked AS p
    LEFT JOIN (SELECT DISTINCT trace_id FROM gpu_busy) AS b USING (trace_id)
    GROUP BY p.run
)

SELECT
    n.run,
    n.name,
    n.calls,
    n.total_ns,
    n.max_ns,
    n.bytes,
    CASE WHEN k.is_known THEN coalesce(b.idle_ns, 0) END::BIGINT AS idle_ns,
    n.steps,
    n.first_step,
    n.last_step,
    n.outside,
    o.op,
    o.outer_op
FROM named AS n
JOIN known AS k ON k.run = n.run
LEFT JOIN places AS o ON o.run = n.run AND o.name = n.name
LEFT JOIN blamed AS b ON b.run = n.run AND b.name = n.name
ORDER BY n.run, n.total_ns DESC, n.name
