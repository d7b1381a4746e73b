-- title: Kernel time by module
-- what: Each module with the kernel time launched in it alone and with all modules inside it, by forward and backward; ranks are summed.
-- value: Says which part of the model to work on; a module's total is its own time and its children's totals, exactly.
-- needs: gpu_activities, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: levels BIGINT = NULL -- levels to show: 1 is the outermost modules alone; NULL means all
-- param: min_ns BIGINT = 0 -- leave out modules of less kernel time in total
-- column: run VARCHAR -- run label
-- column: module VARCHAR -- path of the module (nn.Module calls, else the user's ranges); NULL for kernels of no module
-- column: depth BIGINT count -- modules around it; NULL for kernels of no module
-- column: kernels BIGINT count -- kernels launched in it and all inside it, its backward included
-- column: self_ns BIGINT ns -- kernel time launched in it outside of modules inside it; over all rows, all kernel time
-- column: total_ns BIGINT ns -- kernel time launched in it and all inside it
-- column: pct_of_kernel DOUBLE percent -- total_ns, of all kernel time of the run; NULL if graph replays were not recorded
-- column: forward_ns BIGINT ns -- of total_ns, in the forward pass
-- column: backward_ns BIGINT ns -- of total_ns, in the backward pass, which belongs to the module whose forward it follows
-- column: name VARCHAR -- name of the module itself, the end of its path
-- chart: bar x=module y=self_ns
-- order: run, a module before those inside it, of those side by side the most total_ns first
-- example: traceq query module_time --run eager -p levels=2

WITH picked AS (
    SELECT trace_id, run, max(invisible_replays) OVER (PARTITION BY run) = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

launched AS (
    SELECT
        p.run,
        p.is_whole,
        o.module,
        count(*) AS kernels,
        sum(a.dur_ns) AS self_ns,
        coalesce(sum(a.dur_ns) FILTER (a.phase = 'forward'), 0) AS forward_ns,
        coalesce(sum(a.dur_ns) FILTER (a.phase = 'backward'), 0) AS backward_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
    WHERE a.kind = 'kernel'
    GROUP BY p.run, p.is_whole, o.module
),

-- Each module that launches, under the path of every module around it and its own.
spread AS (
    SELECT l.*, string_split(l.module, '/') AS names, unnest(range(1, len(string_split(l.module, '/')) + 1)) AS level
    FROM launched AS l
    WHERE l.module IS NOT NULL
),

summed AS (
    SELECT
        run,
        is_whole,
        array_to_string(names[:level], '/') AS module,
        level,
        sum(kernels) AS kernels,
        coalesce(sum(self_ns) FILTER (level = len(names)), 0) AS self_ns,
        sum(self_ns) AS total_ns,
        sum(forward_ns) AS forward_ns,
        sum(backward_ns) AS backward_ns
    FROM spread
    GROUP BY run, is_whole, array_to_string(names[:level], '/'), level
    UNION ALL
    SELECT run, is_whole, NULL, 1, kernels, self_ns, self_ns, forward_ns, backward_ns
    FROM launched
    WHERE module IS NULL
),

-- The order of a tree: by total time and name of the outermost module, then of the next, …
placed AS (
    SELECT m.run, m.module, list({'ns': -around.total_ns, 'module': around.module} ORDER BY around.level) AS place
    FROM (SELECT run, module, unnest(range(1, level + 1)) AS up, string_split(module, '/') AS names FROM summed) AS m
    JOIN summed AS around
        ON around.run = m.run AND around.level = m.up
        AND around.module IS NOT DISTINCT FROM array_to_string(m.names[:m.up], '/')
    GROUP BY m.run, m.module
)

SELECT
    s.run,
    s.module,
    CASE WHEN s.module IS NOT NULL THEN s.level - 1 END::BIGINT AS depth,
    s.kernels::BIGINT AS kernels,
    s.self_ns::BIGINT AS self_ns,
    s.total_ns::BIGINT AS total_ns,
    CASE WHEN s.is_whole THEN 100.0 * s.total_ns / nullif(sum(s.self_ns) OVER (PARTITION BY s.run), 0) END AS pct_of_kernel,
    s.forward_ns::BIGINT AS forward_ns,
    s.backward_ns::BIGINT AS backward_ns,
    coalesce(string_split(s.module, '/')[-1], '(no module)') AS name
FROM summed AS s
JOIN placed AS p ON p.run = s.run AND p.module IS NOT DISTINCT FROM s.module
QUALIFY s.level <= coalesce($levels::BIGINT, s.level) AND s.total_ns >= coalesce($min_ns::BIGINT, 0)
ORDER BY s.run, p.place
