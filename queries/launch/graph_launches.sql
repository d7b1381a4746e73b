-- title: Replays of CUDA graphs
-- what: Graph launches by the operator that makes them and the graph they replay, with kernels and GPU time for each replay, host time and latency; over all ranks of a run.
-- value: One call starts many kernels, so host time for each kernel nearly vanishes; what stays idle inside a replay is the graph's own.
-- needs: api_calls, gpu_activities, gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- operator around the launch; NULL if none is
-- column: graph_id BIGINT -- executable graph, else graph, as recorded; NULL if not recorded: then graphs are told apart by what they run
-- column: launches BIGINT count -- launch calls; a replay launched before the recording is in none
-- column: kernels BIGINT count -- kernels of each replay; NULL if the replays were not recorded, or as a whole
-- column: memops BIGINT count -- copies and memsets of each replay; likewise
-- column: host_ns DOUBLE ns -- median length of the call
-- column: latency_ns DOUBLE ns -- median time from the start of the call to the first work of the replay; NULL if not recorded
-- column: span_ns DOUBLE ns -- median time from the first start to the last end of a replay's work; likewise
-- column: kernel_ns DOUBLE ns -- median sum of the kernel durations of a replay; likewise
-- column: idle_ns DOUBLE ns -- GPU idle time between the works of a replay, mean; NULL if idle time is not known
-- column: launches_per_step DOUBLE count -- in steps that count, over their number; NULL without such steps
-- column: first_kernel VARCHAR -- first kernel of the replay
-- order: run, kernel_ns times launches DESC
-- example: traceq query graph_launches --run graph

WITH calls AS (
    SELECT c.trace_id, l.run, c.call_id, c.pid, c.step, c.start_ns, c.dur_ns, o.name AS op, l.invisible_replays
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = c.trace_id AND o.op_id = c.op_id
    WHERE
        c.role = 'graph_launch'
        AND l.run = coalesce($run::VARCHAR, l.run)
),

replays AS (
    SELECT
        a.trace_id,
        a.launch_id,
        max(coalesce(a.graph_exec_id, a.graph_id)) AS graph_id,
        count(*) FILTER (a.kind = 'graph') AS wholes,
        count(*) FILTER (a.kind = 'kernel') AS kernels,
        count(*) FILTER (a.kind IN ('memcpy', 'memset')) AS memops,
        sum(a.dur_ns) FILTER (a.kind = 'kernel') AS kernel_ns,
        min(a.start_ns) AS start_ns,
        max(a.start_ns + a.dur_ns) AS end_ns,
        arg_min(a.name, (a.start_ns, a.activity_id)) FILTER (a.kind = 'kernel') AS first_kernel
    FROM gpu_activities AS a
    WHERE (a.trace_id, a.launch_id) IN (SELECT (trace_id, call_id) FROM calls)
    GROUP BY a.trace_id, a.launch_id
),

idle_times AS (
    SELECT p.trace_id, k.launch_id, sum(p.ns) AS idle_ns
    FROM gap_parts AS p
    JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
    JOIN gpu_activities AS k ON k.trace_id = g.trace_id AND k.activity_id = g.after_id
    WHERE p.cause = 'in_graph'
    GROUP BY p.trace_id, k.launch_id
),

counted AS (
    SELECT l.run, count(*) AS steps
    FROM good_steps AS g
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run
),

graphs AS (
    SELECT
        c.run,
        c.op,
        r.graph_id,
        CASE WHEN r.wholes = 0 THEN r.kernels END AS kernels,
        CASE WHEN r.wholes = 0 THEN r.memops END AS memops,
        r.first_kernel,
        count(*) AS launches,
        median(c.dur_ns) AS host_ns,
        median(r.start_ns - c.start_ns) AS latency_ns,
        median(r.end_ns - r.start_ns) AS span_ns,
        median(r.kernel_ns) AS kernel_ns,
        sum(r.kernel_ns) AS total_ns,
        CASE WHEN max(c.invisible_replays) = 0 THEN avg(coalesce(i.idle_ns, 0)) END AS idle_ns,
        count(g.step) AS stepped
    FROM calls AS c
    LEFT JOIN replays AS r ON r.trace_id = c.trace_id AND r.launch_id = c.call_id
    LEFT JOIN idle_times AS i ON i.trace_id = c.trace_id AND i.launch_id = c.call_id
    LEFT JOIN good_steps AS g ON g.trace_id = c.trace_id AND g.pid = c.pid AND g.step = c.step
    GROUP BY ALL
)

SELECT
    s.run,
    s.op,
    s.graph_id,
    s.launches,
    s.kernels,
    s.memops,
    s.host_ns,
    s.latency_ns,
    s.span_ns,
    s.kernel_ns,
    s.idle_ns,
    s.stepped / nullif(n.steps, 0) AS launches_per_step,
    s.first_kernel
FROM graphs AS s
LEFT JOIN counted AS n ON n.run = s.run
ORDER BY s.run, s.total_ns DESC NULLS LAST, s.kernels DESC, s.op, s.graph_id, s.memops, s.first_kernel
