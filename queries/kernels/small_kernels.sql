-- title: Small kernels
-- what: Kernels shorter than a limit by name, with their shares of all kernels and of kernel time, and how long the GPU waited for their launches.
-- value: Many kernels, little time, and more waiting than running: the program is launch-bound, and fusing or CUDA graphs will help.
-- needs: gpu_activities, api_calls, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: below_ns BIGINT = 10000 -- a kernel is small if it is shorter than this; NULL means all kernels
-- param: top BIGINT = 20 -- names to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded; all is every small kernel together
-- column: category VARCHAR -- what the kernel computes; NULL for all
-- column: kernels BIGINT count -- small kernels
-- column: pct_of_kernels DOUBLE percent -- of the number of all kernels of the run; NULL if graph replays were not recorded
-- column: kernel_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of the kernel time of all kernels of the run; likewise
-- column: median_ns DOUBLE ns -- median duration
-- column: late_ns BIGINT ns -- idle time of the device just before them that launching explains (cpu_ops, python, cuda_api, compiled_runtime, launch_latency); NULL if graph replays were not recorded
-- column: launch_bound BOOLEAN -- whether late_ns exceeds kernel_ns: the GPU waits for these kernels longer than it runs them
-- column: per_step DOUBLE count -- small kernels in steps that count, over the number of those
-- column: in_graph BIGINT count -- of kernels, those launched by a CUDA graph, which cost the host no launch each
-- chart: bar x=name y=kernels
-- order: run, all first, kernels DESC
-- example: traceq query small_kernels --run eager -p below_ns=5000

WITH picked AS (
    SELECT trace_id, run, invisible_replays
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

seen AS (
    SELECT p.run, max(p.invisible_replays) = 0 AS is_whole, sum(s.steps) AS steps
    FROM picked AS p
    LEFT JOIN (SELECT trace_id, count(*) AS steps FROM good_steps GROUP BY trace_id) AS s USING (trace_id)
    GROUP BY p.run
),

whole AS (
    SELECT p.run, count(*) AS all_kernels, sum(a.dur_ns) AS all_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY p.run
),

-- Names as numbers: the joins below would copy the long names of millions of kernels.
named AS (
    SELECT p.run, a.name, a.category, row_number() OVER (ORDER BY p.run, a.name, a.category) AS id
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel' AND a.dur_ns < coalesce($below_ns::BIGINT, a.dur_ns + 1)
    GROUP BY p.run, a.name, a.category
),

kernel AS (
    SELECT n.run, n.id, a.trace_id, a.activity_id, a.launch_id, a.pid, a.step, a.dur_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    JOIN named AS n ON n.run = p.run AND n.name IS NOT DISTINCT FROM a.name AND n.category = a.category
    WHERE a.kind = 'kernel' AND a.dur_ns < coalesce($below_ns::BIGINT, a.dur_ns + 1)
),

summed AS (
    SELECT
        k.run,
        k.id,
        count(*) AS kernels,
        sum(k.dur_ns) AS kernel_ns,
        median(k.dur_ns) AS median_ns,
        count(g.step) AS stepped,
        count(*) FILTER ((k.trace_id, k.launch_id) IN (SELECT (trace_id, call_id) FROM api_calls WHERE role = 'graph_launch')) AS in_graph
    FROM kernel AS k
    LEFT JOIN good_steps AS g ON g.trace_id = k.trace_id AND g.pid = k.pid AND g.step = k.step
    GROUP BY GROUPING SETS ((k.run), (k.run, k.id))
),

late AS (
    SELECT k.run, k.id, sum(q.ns) AS late_ns
    FROM gap_parts AS q
    JOIN gaps AS g ON g.trace_id = q.trace_id AND g.gap_id = q.gap_id
    JOIN kernel AS k ON k.trace_id = g.trace_id AND k.activity_id = g.after_id
    WHERE q.cause IN ('cpu_ops', 'python', 'cuda_api', 'compiled_runtime', 'launch_latency')
    GROUP BY GROUPING SETS ((k.run), (k.run, k.id))
),

-- Of all small kernels together, id is NULL.
ranked AS (
    SELECT
        k.*,
        n.name,
        n.category,
        coalesce(w.late_ns, 0) AS late_ns,
        k.id IS NULL AS is_all,
        row_number() OVER (PARTITION BY k.run, k.id IS NULL ORDER BY k.kernels DESC, k.kernel_ns DESC, k.id) AS place
    FROM summed AS k
    LEFT JOIN named AS n ON n.id = k.id
    LEFT JOIN late AS w ON w.run = k.run AND w.id IS NOT DISTINCT FROM k.id
)

-- A run whose kernels are all longer has one row, too.
SELECT
    w.run,
    CASE WHEN coalesce(k.is_all, true) THEN 'all' ELSE k.name END AS name,
    k.category,
    coalesce(k.kernels, 0) AS kernels,
    CASE WHEN s.is_whole THEN 100.0 * coalesce(k.kernels, 0) / nullif(w.all_kernels, 0) END AS pct_of_kernels,
    coalesce(k.kernel_ns, 0)::BIGINT AS kernel_ns,
    CASE WHEN s.is_whole THEN 100.0 * coalesce(k.kernel_ns, 0) / nullif(w.all_ns, 0) END AS pct_of_kernel,
    k.median_ns,
    CASE WHEN s.is_whole THEN coalesce(k.late_ns, 0) END::BIGINT AS late_ns,
    CASE WHEN s.is_whole THEN coalesce(k.late_ns > k.kernel_ns, false) END AS launch_bound,
    coalesce(k.stepped, 0) / nullif(s.steps, 0) AS per_step,
    coalesce(k.in_graph, 0) AS in_graph
FROM whole AS w
JOIN seen AS s ON s.run = w.run
LEFT JOIN ranked AS k ON k.run = w.run
WHERE coalesce(k.is_all, true) OR k.place <= coalesce($top::BIGINT, k.place)
ORDER BY w.run, NOT coalesce(k.is_all, true), k.place
