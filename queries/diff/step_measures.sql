-- title: Each step in figures that can be compared
-- what: For each step that counts its period, busy and idle time, kernel time by kind, kernels and launches; the samples that medians and intervals come from.
-- value: Steps that scatter widely make a small difference between two runs meaningless.
-- needs: gpu_activities, collectives, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: skip VARCHAR = NULL -- numbers of steps to leave out, e.g. 3,4
-- param: by_name BOOLEAN = false -- categories by the kernels' names alone
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: period_ns BIGINT ns -- from its first GPU activity to the next step's; NULL unless that step counts too
-- column: busy_ns BIGINT ns -- union of its GPU work, summed over devices; NULL if graph replays were not recorded
-- column: heavy_busy_ns BIGINT ns -- union of its heavy kernels and of copies between host and device, likewise
-- column: kernel_ns BIGINT ns -- sum of the kernels' durations, likewise
-- column: heavy_ns BIGINT ns -- of that, gemm, conv, attention and rnn
-- column: gemm_ns BIGINT ns -- of that, matrix products
-- column: comm_ns BIGINT ns -- of the kernel time, communication
-- column: comm_alone_ns BIGINT ns -- of the busy time, what communication alone fills
-- column: peer_wait_ns BIGINT ns -- of that, what goes beyond the least that each of its kernels takes in any step of any rank: about how long it waits for other ranks
-- column: fusible_ns BIGINT ns -- of the kernel time, the rest
-- column: memop_ns BIGINT ns -- sum of copies and memsets
-- column: kernels BIGINT count -- kernels; NULL if graph replays were not recorded
-- column: launches BIGINT count -- launch calls, graph launches included
-- order: run, rank, step
-- example: traceq query step_measures --run eager

WITH picked AS (
    SELECT trace_id, run, rank, invisible_replays = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

good AS (
    SELECT s.*, p.run, p.rank, p.is_whole
    FROM steps AS s
    JOIN good_steps AS g ON g.trace_id = s.trace_id AND g.pid = s.pid AND g.step = s.step
    JOIN picked AS p ON p.trace_id = s.trace_id
    WHERE NOT list_contains(string_split(coalesce($skip::VARCHAR, ''), ','), s.step::VARCHAR)
),

work AS (
    SELECT
        g.run,
        a.trace_id,
        a.pid,
        a.step,
        a.device,
        a.activity_id,
        a.kind,
        a.name,
        a.dur_ns,
        a.start_ns,
        a.start_ns + a.dur_ns AS end_ns,
        c.category,
        coalesce(c.category IN ('gemm', 'conv', 'attention', 'rnn'), false) AS is_heavy,
        a.kind = 'memcpy' AND coalesce(a.copy_kind IN ('HtoD', 'DtoH'), false) AS is_host_copy
    FROM gpu_activities AS a
    CROSS JOIN LATERAL (SELECT CASE WHEN $by_name::BOOLEAN THEN a.category_by_name ELSE a.category END AS category) AS c
    JOIN good AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
),

marked AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY trace_id, pid, step, device ORDER BY start_ns, end_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM work
    WHERE is_heavy OR is_host_copy
),

heavy AS (
    SELECT trace_id, pid, step, sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS ns
    FROM marked
    GROUP BY trace_id, pid, step
),

messages AS (
    SELECT *, row_number() OVER (PARTITION BY trace_id, pid, step, device, name ORDER BY start_ns, activity_id) AS turn
    FROM work
    WHERE category = 'comm'
),

-- The last rank to come waits for none. A message is told by its kernel's name, its turn, and its size where that is recorded.
needed AS (
    SELECT trace_id, pid, step, sum(least_ns) AS ns
    FROM (
        SELECT m.*, min(m.dur_ns) OVER (PARTITION BY m.run, m.name, m.turn, c.in_elems, c.out_elems) AS least_ns
        FROM messages AS m
        LEFT JOIN collectives AS c ON c.trace_id = m.trace_id AND c.activity_id = m.activity_id
    )
    GROUP BY trace_id, pid, step
),

others AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY trace_id, pid, step, device ORDER BY start_ns, end_ns, activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM work
    SEMI JOIN needed USING (trace_id, pid, step)
    WHERE category IS DISTINCT FROM 'comm'
),

beside AS (
    SELECT trace_id, pid, step, sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS ns
    FROM others
    GROUP BY trace_id, pid, step
),

alone AS (
    SELECT n.trace_id, n.pid, n.step, g.gpu_busy_ns - coalesce(b.ns, 0) AS ns, n.ns AS needed_ns
    FROM needed AS n
    JOIN good AS g ON g.trace_id = n.trace_id AND g.pid = n.pid AND g.step = n.step
    LEFT JOIN beside AS b ON b.trace_id = n.trace_id AND b.pid = n.pid AND b.step = n.step
),

summed AS (
    SELECT
        trace_id,
        pid,
        step,
        coalesce(sum(dur_ns) FILTER (is_heavy), 0) AS heavy_ns,
        coalesce(sum(dur_ns) FILTER (category = 'gemm'), 0) AS gemm_ns,
        coalesce(sum(dur_ns) FILTER (category = 'comm'), 0) AS comm_ns,
        coalesce(sum(dur_ns) FILTER (kind = 'kernel' AND NOT is_heavy AND category <> 'comm'), 0) AS fusible_ns
    FROM work
    GROUP BY trace_id, pid, step
)

SELECT
    g.run,
    g.rank,
    g.step,
    CASE WHEN w.step IS NOT NULL THEN g.period_ns END AS period_ns,
    g.gpu_busy_ns AS busy_ns,
    CASE WHEN g.is_whole THEN coalesce(h.ns, 0) END::BIGINT AS heavy_busy_ns,
    CASE WHEN g.is_whole THEN g.kernel_ns END AS kernel_ns,
    CASE WHEN g.is_whole THEN s.heavy_ns END::BIGINT AS heavy_ns,
    CASE WHEN g.is_whole THEN s.gemm_ns END::BIGINT AS gemm_ns,
    CASE WHEN g.is_whole THEN s.comm_ns END::BIGINT AS comm_ns,
    CASE WHEN g.is_whole THEN coalesce(a.ns, 0) END::BIGINT AS comm_alone_ns,
    CASE WHEN g.is_whole THEN coalesce(greatest(a.ns - a.needed_ns, 0), 0) END::BIGINT AS peer_wait_ns,
    CASE WHEN g.is_whole THEN s.fusible_ns END::BIGINT AS fusible_ns,
    CASE WHEN g.is_whole THEN g.memop_ns END AS memop_ns,
    CASE WHEN g.is_whole THEN g.kernels END AS kernels,
    g.launches
FROM good AS g
LEFT JOIN step_windows AS w
    ON w.trace_id = g.trace_id AND w.pid = g.pid AND w.step = g.step
    AND NOT list_contains(string_split(coalesce($skip::VARCHAR, ''), ','), (w.step + 1)::VARCHAR)
LEFT JOIN summed AS s ON s.trace_id = g.trace_id AND s.pid = g.pid AND s.step = g.step
LEFT JOIN heavy AS h ON h.trace_id = g.trace_id AND h.pid = g.pid AND h.step = g.step
LEFT JOIN alone AS a ON a.trace_id = g.trace_id AND a.pid = g.pid AND a.step = g.step
ORDER BY g.run, g.rank, g.start_ns, g.step, g.pid, g.trace_id
