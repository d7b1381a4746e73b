-- title: Compiled regions and graphs
-- what: Each region, graph and autograd function that torch.compile runs, with its calls, host time, and the kernels launched within, in total and per step.
-- value: Host time far above GPU time means that the wrapper, not the GPU, decides: fewer pieces or CUDA graphs (reduce-overhead) help.
-- needs: ops, ranges, api_calls, gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 40 -- rows to show for each trace; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: kind VARCHAR -- region (code as Dynamo rewrote it), graph (one of Inductor), forward or backward (autograd function of AOTAutograd)
-- column: name VARCHAR -- as recorded; those inside one another all count the time and kernels within
-- column: frame BIGINT -- of region i/j, i: the number of the function or, after a graph break, of its rest; NULL for others
-- column: variant BIGINT -- of region i/j, j: how often it had been compiled before
-- column: calls BIGINT count -- calls
-- column: host_ns BIGINT ns -- their length on the host
-- column: kernels BIGINT count -- kernels launched within, those of CUDA graphs included; NULL if graph replays were not recorded
-- column: kernel_ns BIGINT ns -- sum of their durations, likewise
-- column: graph_launches BIGINT count -- CUDA graph launches within
-- column: calls_per_step DOUBLE count -- in steps that count, over their number
-- column: host_ns_per_step DOUBLE ns -- likewise, host time
-- column: kernels_per_step DOUBLE count -- likewise, kernels
-- column: kernel_ns_per_step DOUBLE ns -- likewise, kernel time
-- chart: bar x=name y=host_ns
-- order: run, rank, kind, host_ns DESC
-- example: traceq query compile_regions --run default

WITH picked AS (
    SELECT trace_id, run, rank, invisible_replays = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

steps_counted AS (
    SELECT trace_id, count(*) AS steps
    FROM good_steps
    GROUP BY trace_id
),

marks AS (
    SELECT s.*
    FROM host_spans AS s
    JOIN picked USING (trace_id)
    WHERE starts_with(s.name, 'Torch-Compiled Region') OR starts_with(s.name, '## Call CompiledFxGraph') OR starts_with(s.name, 'CompiledFunction')
),

called AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY trace_id ORDER BY start_ns, end_ns DESC, pid, tid, name) AS id,
        CASE
            WHEN starts_with(name, 'Torch') THEN 'region'
            WHEN starts_with(name, '##') THEN 'graph'
            WHEN contains(name, 'Backward') THEN 'backward'
            ELSE 'forward'
        END AS kind
    FROM marks
),

-- Kernels of each launch call, and how many its thread had launched by then.
launched AS (
    SELECT a.trace_id, a.launch_id, count(*) AS kernels, sum(a.dur_ns) AS kernel_ns
    FROM gpu_activities AS a
    WHERE a.kind = 'kernel' AND a.trace_id IN (SELECT trace_id FROM called)
    GROUP BY a.trace_id, a.launch_id
),

calls AS (
    SELECT
        c.trace_id,
        c.pid,
        c.tid,
        c.start_ns,
        sum(coalesce(l.kernels, 0)) AS kernels,
        sum(coalesce(l.kernel_ns, 0)) AS kernel_ns,
        count(*) FILTER (c.role = 'graph_launch') AS graph_launches
    FROM api_calls AS c
    LEFT JOIN launched AS l ON l.trace_id = c.trace_id AND l.launch_id = c.call_id
    WHERE c.trace_id IN (SELECT trace_id FROM called) AND (l.launch_id IS NOT NULL OR c.role = 'graph_launch')
    GROUP BY c.trace_id, c.pid, c.tid, c.start_ns
),

sums AS (
    SELECT
        trace_id,
        pid,
        tid,
        start_ns,
        sum(kernels) OVER thread AS kernels,
        sum(kernel_ns) OVER thread AS kernel_ns,
        sum(graph_launches) OVER thread AS graph_launches
    FROM calls
    WINDOW thread AS (PARTITION BY trace_id, pid, tid ORDER BY start_ns)
),

edges AS (
    SELECT trace_id, id, pid, tid, start_ns AS at_ns, -1 AS sign FROM called
    UNION ALL
    SELECT trace_id, id, pid, tid, end_ns AS at_ns, 1 AS sign FROM called
),

-- What is launched within a call is what was launched before its end less what was before its start.
inside AS (
    SELECT
        e.trace_id,
        e.id,
        sum(e.sign * coalesce(s.kernels, 0)) AS kernels,
        sum(e.sign * coalesce(s.kernel_ns, 0)) AS kernel_ns,
        sum(e.sign * coalesce(s.graph_launches, 0)) AS graph_launches
    FROM edges AS e
    ASOF LEFT JOIN sums AS s ON e.trace_id = s.trace_id AND e.pid = s.pid AND e.tid = s.tid AND e.at_ns > s.start_ns
    GROUP BY e.trace_id, e.id
),

-- Where steps overlap, the one that began last counts.
placed AS (
    SELECT c.*, CASE WHEN c.start_ns < s.start_ns + s.dur_ns AND len(s.flags) = 0 THEN s.step END AS good_step
    FROM called AS c
    ASOF LEFT JOIN steps AS s ON c.trace_id = s.trace_id AND c.pid = s.pid AND c.start_ns >= s.start_ns
),

grouped AS (
    SELECT
        c.trace_id,
        c.kind,
        c.name,
        count(*) AS calls,
        sum(c.end_ns - c.start_ns) AS host_ns,
        sum(i.kernels) AS kernels,
        sum(i.kernel_ns) AS kernel_ns,
        sum(i.graph_launches) AS graph_launches,
        count(c.good_step) AS stepped,
        coalesce(sum(c.end_ns - c.start_ns) FILTER (c.good_step IS NOT NULL), 0) AS stepped_host_ns,
        coalesce(sum(i.kernels) FILTER (c.good_step IS NOT NULL), 0) AS stepped_kernels,
        coalesce(sum(i.kernel_ns) FILTER (c.good_step IS NOT NULL), 0) AS stepped_kernel_ns
    FROM placed AS c
    JOIN inside AS i ON i.trace_id = c.trace_id AND i.id = c.id
    GROUP BY c.trace_id, c.kind, c.name
),

ranked AS (
    SELECT
        *,
        list_position(['region', 'graph', 'forward', 'backward'], kind) AS kind_place,
        row_number() OVER (PARTITION BY trace_id ORDER BY host_ns DESC, kind, name) AS place
    FROM grouped
)

SELECT
    p.run,
    p.rank,
    g.kind,
    g.name,
    TRY_CAST(regexp_extract(g.name, '^Torch-Compiled Region: (?:!\d+/)?(\d+)/(\d+)', 1) AS BIGINT) AS frame,
    TRY_CAST(regexp_extract(g.name, '^Torch-Compiled Region: (?:!\d+/)?(\d+)/(\d+)', 2) AS BIGINT) AS variant,
    g.calls,
    g.host_ns::BIGINT AS host_ns,
    CASE WHEN p.is_whole THEN g.kernels END::BIGINT AS kernels,
    CASE WHEN p.is_whole THEN g.kernel_ns END::BIGINT AS kernel_ns,
    g.graph_launches::BIGINT AS graph_launches,
    g.stepped / nullif(s.steps, 0) AS calls_per_step,
    g.stepped_host_ns / nullif(s.steps, 0) AS host_ns_per_step,
    CASE WHEN p.is_whole THEN g.stepped_kernels / nullif(s.steps, 0) END AS kernels_per_step,
    CASE WHEN p.is_whole THEN g.stepped_kernel_ns / nullif(s.steps, 0) END AS kernel_ns_per_step
FROM ranked AS g
JOIN picked AS p USING (trace_id)
LEFT JOIN steps_counted AS s ON s.trace_id = g.trace_id
WHERE g.place <= coalesce($top::BIGINT, g.place)
ORDER BY p.run, p.rank, g.kind_place, g.host_ns DESC, g.name, g.trace_id
