-- title: What the compiler did not fuse
-- what: Kernels other than heavy ones, communication and those that Inductor made, in the steps that count of runs with compiled code, by where they were launched and so why they were left; ranks are summed.
-- value: The first rows are what a whole graph, a compiled optimizer or a custom operator with a fusible body could still win.
-- needs: gpu_activities, ops, ranges, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: by_name BOOLEAN = false -- categories by the kernels' names alone
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded
-- column: category VARCHAR -- what it computes
-- column: origin VARCHAR -- who made it
-- column: op VARCHAR -- operator that launched it; NULL in graph replays
-- column: reason VARCHAR -- custom kernel (written by hand), custom operator (a library's, in a compiled graph), input copy (for a CUDA graph), library call (in a compiled graph), wrapper (around a graph, as the zeros of a missing gradient), graph break (in compiled code, but in no graph), optimizer or outside (not compiled)
-- column: kernels BIGINT count -- kernels of that kind
-- column: total_ns BIGINT ns -- sum of their durations
-- column: ns_per_step DOUBLE ns -- of a step that counts
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query unfused_kernels --run default

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run) AND invisible_replays = 0
),

marks AS (
    SELECT s.*
    FROM host_spans AS s
    JOIN picked USING (trace_id)
    WHERE s.end_ns IS NOT NULL
),

compiled AS (
    SELECT *, CASE WHEN starts_with(name, '## Call') THEN 'graph' ELSE 'code' END AS what
    FROM marks
    WHERE
        starts_with(name, 'Torch-Compiled Region')
        OR starts_with(name, '## Call CompiledFxGraph')
        OR starts_with(name, 'CompiledFunction')
),

-- A trace that records no graphs shows them as autograd functions, or as nothing but code.
kinds AS (
    SELECT
        trace_id,
        CASE WHEN bool_or(what = 'graph') THEN 'graph' WHEN bool_or(starts_with(name, 'CompiledFunction')) THEN 'function' ELSE 'region' END AS kind
    FROM compiled
    GROUP BY trace_id
),

judged AS (
    SELECT *, 'code' AS part
    FROM compiled
    UNION ALL
    SELECT *, 'function' AS part
    FROM compiled
    WHERE starts_with(name, 'CompiledFunction')
    UNION ALL
    SELECT c.*, 'graph' AS part
    FROM compiled AS c
    JOIN kinds AS k USING (trace_id)
    WHERE
        (k.kind = 'graph' AND c.what = 'graph')
        OR (k.kind = 'function' AND starts_with(c.name, 'CompiledFunction'))
        OR k.kind = 'region'
    UNION ALL
    SELECT *, 'operator' AS what, 'custom' AS part
    FROM marks
    WHERE
        trace_id IN (SELECT trace_id FROM compiled)
        AND regexp_matches(name, '^[A-Za-z_]\w*::')
        AND NOT regexp_matches(name, '^(aten|autograd|torch|prims?|rngprims|inductor|quantized|mkldnn|profiler|_?c10d\w*)::')
),

merged AS (
    SELECT
        *,
        greatest(start_ns, coalesce(max(end_ns) OVER (
            PARTITION BY trace_id, part, pid, tid ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns)) AS from_ns
    FROM judged
),

intervals AS (
    SELECT trace_id, part, pid, tid, from_ns, end_ns
    FROM merged
    WHERE end_ns > from_ns
),

kernel AS (
    SELECT
        p.run,
        a.trace_id,
        a.name,
        k.category,
        a.origin,
        a.phase,
        CASE WHEN c.role <> 'graph_launch' THEN o.name END AS op,
        a.dur_ns,
        c.pid,
        c.tid,
        c.start_ns
    FROM gpu_activities AS a
    CROSS JOIN LATERAL (SELECT CASE WHEN $by_name::BOOLEAN THEN a.category_by_name ELSE a.category END AS category) AS k
    JOIN picked AS p ON p.trace_id = a.trace_id
    JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
    WHERE
        a.kind = 'kernel'
        AND a.origin <> 'inductor'
        AND k.category NOT IN ('gemm', 'conv', 'attention', 'rnn', 'comm')
        AND p.run IN (SELECT run FROM picked WHERE trace_id IN (SELECT trace_id FROM compiled))
),

placed AS (
    SELECT
        k.*,
        coalesce(k.start_ns < i.end_ns, false) AS is_in_graph,
        coalesce(k.start_ns < j.end_ns, false) AS is_in_code,
        coalesce(k.start_ns < f.end_ns, false) AS is_in_function,
        coalesce(k.start_ns < c.end_ns, false) AS is_in_custom
    FROM kernel AS k
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE part = 'graph') AS i
        ON k.trace_id = i.trace_id AND k.pid = i.pid AND k.tid = i.tid AND k.start_ns >= i.from_ns
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE part = 'code') AS j
        ON k.trace_id = j.trace_id AND k.pid = j.pid AND k.tid = j.tid AND k.start_ns >= j.from_ns
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE part = 'function') AS f
        ON k.trace_id = f.trace_id AND k.pid = f.pid AND k.tid = f.tid AND k.start_ns >= f.from_ns
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE part = 'custom') AS c
        ON k.trace_id = c.trace_id AND k.pid = c.pid AND k.tid = c.tid AND k.start_ns >= c.from_ns
),

summed AS (
    SELECT
        run,
        name,
        category,
        origin,
        op,
        CASE
            WHEN origin IN ('triton', 'custom') THEN 'custom kernel'
            WHEN is_in_graph AND is_in_custom THEN 'custom operator'
            WHEN is_in_graph AND op = 'aten::_foreach_copy_' THEN 'input copy'
            WHEN is_in_graph THEN 'library call'
            WHEN is_in_function THEN 'wrapper'
            WHEN is_in_code THEN 'graph break'
            WHEN phase = 'optimizer' THEN 'optimizer'
            ELSE 'outside'
        END AS reason,
        count(*) AS kernels,
        sum(dur_ns)::BIGINT AS total_ns
    FROM placed
    GROUP BY ALL
),

counted AS (
    SELECT p.run, count(*) AS steps
    FROM good_steps AS g
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

ranked AS (
    SELECT
        s.*,
        s.total_ns / nullif(c.steps, 0) AS ns_per_step,
        row_number() OVER (PARTITION BY s.run ORDER BY s.total_ns DESC, s.name, s.op, s.reason, s.category) AS place
    FROM summed AS s
    JOIN counted AS c USING (run)
)

SELECT run, name, category, origin, op, reason, kernels, total_ns, ns_per_step
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
