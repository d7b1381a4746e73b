-- title: The operators that cost most
-- what: Operators by name with their calls, host time and the time of the kernels they launch, alone and with all inside; ranks are summed.
-- value: Self says who launches the work, total says for whom; host time per kernel above the kernels' own length means launch-bound.
-- needs: ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- operators to show for each run; NULL means all
-- param: sort VARCHAR = 'gpu' -- gpu (kernels launched directly), total (with all inside) or cpu (own host time)
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- name of the operator; (no operator) is for kernels launched outside of any
-- column: calls BIGINT count -- calls
-- column: gpu_self_ns BIGINT ns -- kernels that it launches directly; over all rows, all kernel time; NULL if no GPU work was recorded
-- column: gpu_self_pct DOUBLE percent -- that, of all kernel time of the run; NULL if graph replays were not recorded
-- column: gpu_total_ns BIGINT ns -- kernels launched by it and all inside it, each counted once
-- column: gpu_total_pct DOUBLE percent -- that, of all kernel time of the run; likewise
-- column: cpu_self_ns BIGINT ns -- host time in it less operators inside it
-- column: cpu_self_pct DOUBLE percent -- that, of the host time in operators on all threads
-- column: cpu_total_ns BIGINT ns -- host time in it, with operators inside it, each counted once
-- column: kernels BIGINT count -- kernels launched by it and all inside it
-- column: host_ns_per_kernel DOUBLE ns -- cpu_total_ns over kernels
-- column: memop_ns BIGINT ns -- copies and memsets launched by it and all inside it
-- chart: bar x=op y=gpu_self_ns
-- order: run, as sort says, then cpu_self_ns DESC, op
-- example: traceq query top_ops --run eager -p top=10
-- example: traceq query top_ops --run eager -p sort=cpu

WITH RECURSIVE asked AS (
    SELECT
        CASE
            WHEN coalesce($sort::VARCHAR, 'gpu') IN ('gpu', 'total', 'cpu') THEN coalesce($sort::VARCHAR, 'gpu')
            ELSE error('sort is gpu, total or cpu, not ' || $sort::VARCHAR)
        END AS sort
),

picked AS (
    SELECT trace_id, run, invisible_replays
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

work AS (
    SELECT
        p.run,
        a.trace_id,
        a.op_id,
        count(*) FILTER (a.kind = 'kernel') AS kernels,
        coalesce(sum(a.dur_ns) FILTER (a.kind = 'kernel'), 0)::BIGINT AS kernel_ns,
        coalesce(sum(a.dur_ns) FILTER (a.kind IN ('memcpy', 'memset')), 0)::BIGINT AS memop_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run, a.trace_id, a.op_id
),

-- Each operator with its context: a number for the names around it and its own.
walked AS (
    SELECT p.run, o.trace_id, o.op_id, o.name, o.self_ns, NULL::UBIGINT AS around, hash(o.name) AS context
    FROM ops AS o
    JOIN picked AS p USING (trace_id)
    WHERE o.parent_id IS NULL
    UNION ALL
    SELECT w.run, o.trace_id, o.op_id, o.name, o.self_ns, w.context, hash(w.context, o.name)
    FROM walked AS w
    JOIN ops AS o ON o.trace_id = w.trace_id AND o.parent_id = w.op_id
),

contexts AS (
    SELECT
        w.run,
        w.context,
        any_value(w.around) AS around,
        any_value(w.name) AS name,
        count(*) AS calls,
        sum(w.self_ns) AS self_ns,
        coalesce(sum(k.kernels), 0) AS kernels,
        coalesce(sum(k.kernel_ns), 0) AS kernel_ns,
        coalesce(sum(k.memop_ns), 0) AS memop_ns
    FROM walked AS w
    LEFT JOIN work AS k ON k.trace_id = w.trace_id AND k.op_id = w.op_id
    GROUP BY w.run, w.context
),

climbed AS (
    SELECT run, context, name, around FROM contexts
    UNION ALL
    SELECT c.run, c.context, up.name, up.around
    FROM climbed AS c
    JOIN contexts AS up ON up.run = c.run AND up.context = c.around
),

-- Each context once under each name in it, so that an operator inside one of its own name does not count twice.
named AS (
    SELECT
        i.run,
        i.name AS op,
        sum(c.calls) FILTER (c.name IS NOT DISTINCT FROM i.name) AS calls,
        sum(c.kernel_ns) FILTER (c.name IS NOT DISTINCT FROM i.name) AS gpu_self_ns,
        sum(c.kernel_ns) AS gpu_total_ns,
        sum(c.self_ns) FILTER (c.name IS NOT DISTINCT FROM i.name) AS cpu_self_ns,
        sum(c.self_ns) AS cpu_total_ns,
        sum(c.kernels) AS kernels,
        sum(c.memop_ns) AS memop_ns
    FROM (SELECT DISTINCT run, context, name FROM climbed) AS i
    JOIN contexts AS c ON c.run = i.run AND c.context = i.context
    GROUP BY i.run, i.name
    UNION ALL
    SELECT run, '(no operator)', NULL, sum(kernel_ns), sum(kernel_ns), NULL, NULL, sum(kernels), sum(memop_ns)
    FROM work
    WHERE op_id IS NULL
    GROUP BY run
),

seen AS (
    SELECT p.run, max(p.invisible_replays) = 0 AS is_whole, sum(w.kernel_ns) AS kernel_ns
    FROM picked AS p
    LEFT JOIN (SELECT trace_id, sum(kernel_ns) AS kernel_ns FROM work GROUP BY trace_id) AS w USING (trace_id)
    GROUP BY p.run
),

ranked AS (
    SELECT
        n.*,
        s.kernel_ns,
        s.is_whole,
        sum(n.cpu_self_ns) OVER (PARTITION BY n.run) AS cpu_ns,
        row_number() OVER (
            PARTITION BY n.run
            ORDER BY
                CASE q.sort WHEN 'gpu' THEN n.gpu_self_ns WHEN 'total' THEN n.gpu_total_ns ELSE n.cpu_self_ns END DESC,
                n.cpu_self_ns DESC, n.op
        ) AS place
    FROM named AS n
    JOIN seen AS s USING (run)
    CROSS JOIN asked AS q
)

SELECT
    run,
    op,
    calls::BIGINT AS calls,
    CASE WHEN kernel_ns IS NOT NULL THEN gpu_self_ns END::BIGINT AS gpu_self_ns,
    CASE WHEN is_whole THEN 100.0 * gpu_self_ns / nullif(kernel_ns, 0) END AS gpu_self_pct,
    CASE WHEN kernel_ns IS NOT NULL THEN gpu_total_ns END::BIGINT AS gpu_total_ns,
    CASE WHEN is_whole THEN 100.0 * gpu_total_ns / nullif(kernel_ns, 0) END AS gpu_total_pct,
    cpu_self_ns::BIGINT AS cpu_self_ns,
    100.0 * cpu_self_ns / nullif(cpu_ns, 0) AS cpu_self_pct,
    cpu_total_ns::BIGINT AS cpu_total_ns,
    CASE WHEN kernel_ns IS NOT NULL THEN kernels END::BIGINT AS kernels,
    cpu_total_ns / nullif(kernels, 0) AS host_ns_per_kernel,
    CASE WHEN kernel_ns IS NOT NULL THEN memop_ns END::BIGINT AS memop_ns
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
