-- title: What asks to wait for the GPU
-- what: Synchronising calls by what makes them: operator (innermost, and the outermost around it), range and Python function; over all ranks of a run.
-- value: Mend the first rows: .item(), .cpu(), nonzero, printing a loss, a copy from pageable memory. Each stops the host and then the GPU, and breaks CUDA graphs.
-- needs: api_calls, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- places to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: outer_op VARCHAR -- outermost operator around the call, e.g. aten::item; NULL if none is
-- column: op VARCHAR -- innermost operator around it
-- column: name VARCHAR -- name of the call
-- column: calls BIGINT count -- calls
-- column: total_ns BIGINT ns -- sum of their lengths
-- column: idle_ns BIGINT ns -- idle time of the GPUs that has them as its cause; NULL if idle time is not known
-- column: pct_of_idle DOUBLE percent -- of all idle time of the run
-- column: calls_per_step DOUBLE count -- in steps that count, over their number; NULL without such steps
-- column: ns_per_step DOUBLE ns -- likewise, their length
-- column: range VARCHAR -- innermost range around it, unless that is a step; NULL if none is
-- column: python VARCHAR -- innermost Python function outside PyTorch around it, with the file and the line where it is defined; NULL without stacks
-- chart: bar x=op y=idle_ns
-- order: run, idle_ns DESC, total_ns DESC
-- example: traceq query sync_sites --run overlap

WITH RECURSIVE waits AS (
    SELECT
        c.trace_id,
        l.run,
        c.call_id,
        c.name,
        c.pid,
        c.dur_ns,
        c.op_id,
        c.range_id,
        c.python_call_id,
        c.step
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    WHERE
        (c.role = 'sync' OR (c.role = 'memcpy' AND NOT contains(c.name, 'Async')))
        AND l.run = coalesce($run::VARCHAR, l.run)
),

blamed AS (
    SELECT trace_id, call_id, sum(ns) AS idle_ns
    FROM gap_parts
    WHERE cause = 'sync'
    GROUP BY trace_id, call_id
),

-- Ids follow the nesting: the outermost operator around one is the last of depth 0 on its thread up to it.
waiting_ops AS (
    SELECT trace_id, op_id, coalesce(pid, '') AS pid, coalesce(tid, '') AS tid, name
    FROM ops
    WHERE (trace_id, op_id) IN (SELECT (trace_id, op_id) FROM waits)
),

outer_ops AS (
    SELECT trace_id, op_id, coalesce(pid, '') AS pid, coalesce(tid, '') AS tid, name
    FROM ops
    WHERE depth = 0
),

op_names AS (
    SELECT o.trace_id, o.op_id, o.name AS op, u.name AS outer_op
    FROM waiting_ops AS o
    ASOF JOIN outer_ops AS u ON u.trace_id = o.trace_id AND u.pid = o.pid AND u.tid = o.tid AND o.op_id >= u.op_id
),

-- Up the Python stack of each call, as far as the first function that is neither built in nor PyTorch's own.
frames AS (
    SELECT
        f.trace_id,
        f.call_id AS inner_id,
        f.parent_id,
        f.name,
        0 AS up,
        regexp_matches(f.name, '^(<|nn\.Module: |torch/|.*/(site|dist)-packages/)') AS is_library
    FROM python_calls AS f
    WHERE (f.trace_id, f.call_id) IN (SELECT (trace_id, python_call_id) FROM waits)
    UNION ALL
    SELECT
        f.trace_id,
        f.inner_id,
        p.parent_id,
        p.name,
        f.up + 1,
        regexp_matches(p.name, '^(<|nn\.Module: |torch/|.*/(site|dist)-packages/)')
    FROM frames AS f
    JOIN python_calls AS p ON p.trace_id = f.trace_id AND p.call_id = f.parent_id
    WHERE f.is_library
),

functions AS (
    SELECT trace_id, inner_id, first(name ORDER BY is_library, CASE WHEN contains(name, '): ') THEN 0 ELSE 1 END, up) AS python
    FROM frames
    GROUP BY trace_id, inner_id
),

known AS (
    SELECT l.run, min(CASE WHEN b.trace_id IS NOT NULL THEN 1 ELSE 0 END) = 1 AS is_known
    FROM labels AS l
    LEFT JOIN (SELECT DISTINCT trace_id FROM gpu_busy) AS b USING (trace_id)
    GROUP BY l.run
),

idle_times AS (
    SELECT l.run, sum(g.dur_ns) AS idle_ns
    FROM gaps AS g
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run
),

counted AS (
    SELECT l.run, count(*) AS steps
    FROM good_steps AS g
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run
),

sites AS (
    SELECT
        w.run,
        o.outer_op,
        o.op,
        w.name,
        CASE
            WHEN r.kind <> 'step' AND NOT EXISTS (FROM steps AS s WHERE s.trace_id = r.trace_id AND s.start_ns = r.start_ns AND s.name = r.name)
                THEN r.name
        END AS range,
        f.python,
        count(*) AS calls,
        sum(w.dur_ns)::BIGINT AS total_ns,
        count(g.step) AS stepped,
        coalesce(sum(w.dur_ns) FILTER (g.step IS NOT NULL), 0) AS stepped_ns,
        coalesce(sum(b.idle_ns), 0)::BIGINT AS idle_ns
    FROM waits AS w
    LEFT JOIN op_names AS o ON o.trace_id = w.trace_id AND o.op_id = w.op_id
    LEFT JOIN ranges AS r ON r.trace_id = w.trace_id AND r.range_id = w.range_id
    LEFT JOIN functions AS f ON f.trace_id = w.trace_id AND f.inner_id = w.python_call_id
    LEFT JOIN blamed AS b ON b.trace_id = w.trace_id AND b.call_id = w.call_id
    LEFT JOIN good_steps AS g ON g.trace_id = w.trace_id AND g.pid = w.pid AND g.step = w.step
    GROUP BY ALL
),

ranked AS (
    SELECT
        s.*,
        row_number() OVER (
            PARTITION BY s.run ORDER BY s.idle_ns DESC, s.total_ns DESC, s.outer_op, s.op, s.name, s.range, s.python
        ) AS place
    FROM sites AS s
)

SELECT
    s.run,
    s.outer_op,
    s.op,
    s.name,
    s.calls,
    s.total_ns,
    CASE WHEN k.is_known THEN s.idle_ns END AS idle_ns,
    CASE WHEN k.is_known THEN 100.0 * s.idle_ns / nullif(i.idle_ns, 0) END AS pct_of_idle,
    s.stepped / nullif(c.steps, 0) AS calls_per_step,
    s.stepped_ns / nullif(c.steps, 0) AS ns_per_step,
    s.range,
    s.python
FROM ranked AS s
JOIN known AS k ON k.run = s.run
LEFT JOIN idle_times AS i ON i.run = s.run
LEFT JOIN counted AS c ON c.run = s.run
WHERE s.place <= coalesce($top::BIGINT, s.place)
ORDER BY s.run, s.place
