-- title: Busy and idle time of each GPU, split
-- what: For each device its window, what ran while it was busy, what it waited for while idle, and kernel time that fusion could reach.
-- value: Idle is for the host to win back, exposed communication for overlap, fusible kernels for torch.compile; heavy ones stay.
-- needs: gpu_activities
-- layout: record
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: window_ns BIGINT ns -- from the first start to the last end on the device; NULL, as busy and idle, if graph replays were not recorded
-- column: busy_ns BIGINT ns -- union of kernels, copies and memsets; the next five sum to it
-- column: busy_pct DOUBLE percent -- busy of the window
-- column: compute_only_ns BIGINT ns -- kernels other than communication ran, and nothing else
-- column: memory_only_ns BIGINT ns -- copies or memsets ran, and nothing else
-- column: compute_and_memory_ns BIGINT ns -- both ran, and no communication
-- column: comm_exposed_ns BIGINT ns -- communication kernels ran without a compute kernel beside them
-- column: comm_hidden_ns BIGINT ns -- communication kernels ran beside compute kernels
-- column: comm_hidden_pct DOUBLE percent -- of the time in which communication kernels ran; NULL if none did
-- column: heavy_busy_ns BIGINT ns -- union of heavy kernels (gemm, conv, attention, rnn) and copies between host and device: a floor for any compiler
-- column: heavy_busy_pct DOUBLE percent -- that, of busy
-- column: idle_ns BIGINT ns -- window less busy; the next four sum to it
-- column: idle_host_ns BIGINT ns -- gaps whose next work the host launched late, in the gap
-- column: idle_launching_ns BIGINT ns -- gaps in which the launch call was running
-- column: idle_queued_ns BIGINT ns -- gaps whose next work had been launched before
-- column: idle_unknown_ns BIGINT ns -- gaps whose next work has no launch in the trace
-- column: idle_causes VARCHAR -- the causes that hold most idle time, with their shares of it; none if there is no idle time
-- column: launch_bound_ns BIGINT ns -- idle time by cpu_ops, python, cuda_api, compiled_runtime and launch_latency: what fewer launches win back
-- column: launch_bound_pct DOUBLE percent -- that, of the window
-- column: kernels BIGINT count -- kernels
-- column: kernel_ns BIGINT ns -- sum of kernel durations, overlap counted twice; the next three sum to it
-- column: heavy_kernel_ns BIGINT ns -- heavy kernels
-- column: comm_kernel_ns BIGINT ns -- communication kernels, their waiting for peers included
-- column: fusible_kernel_ns BIGINT ns -- all other kernels
-- column: fusible_pct_of_kernel DOUBLE percent -- that, of kernel time; NULL if graph replays were not recorded
-- column: fusible_kernels BIGINT count -- their number
-- column: memop_ns BIGINT ns -- sum of copy and memset durations
-- order: run, rank, device
-- example: traceq query gpu_time --run eager

WITH picked AS (
    SELECT *
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

work AS (
    SELECT
        a.trace_id,
        a.device,
        a.start_ns,
        a.dur_ns,
        a.kind = 'kernel' AS is_kernel,
        a.kind IN ('memcpy', 'memset') AS is_memory,
        coalesce(a.category = 'comm', false) AS is_comm,
        coalesce(a.category IN ('gemm', 'conv', 'attention', 'rnn'), false) AS is_heavy,
        coalesce(a.copy_kind IN ('HtoD', 'DtoH', 'HtoA', 'AtoH'), false) AS is_to_or_from_host
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
),

summed AS (
    SELECT
        trace_id,
        device,
        max(start_ns + dur_ns) - min(start_ns) AS window_ns,
        count(*) FILTER (is_kernel) AS kernels,
        coalesce(sum(dur_ns) FILTER (is_kernel), 0) AS kernel_ns,
        coalesce(sum(dur_ns) FILTER (is_heavy), 0) AS heavy_kernel_ns,
        coalesce(sum(dur_ns) FILTER (is_comm), 0) AS comm_kernel_ns,
        coalesce(sum(dur_ns) FILTER (is_kernel AND NOT is_heavy AND NOT is_comm), 0) AS fusible_kernel_ns,
        count(*) FILTER (is_kernel AND NOT is_heavy AND NOT is_comm) AS fusible_kernels,
        coalesce(sum(dur_ns) FILTER (is_memory), 0) AS memop_ns
    FROM work
    GROUP BY trace_id, device
),

-- What starts (1) or ends (-1) at a moment, and after it how many of each are running until the next moment.
turns AS (
    SELECT
        trace_id,
        device,
        turn,
        start_ns + CASE WHEN turn = 1 THEN 0 ELSE dur_ns END AS at_ns,
        turn * (NOT is_memory AND NOT is_comm)::TINYINT AS compute,
        turn * is_memory::TINYINT AS memory,
        turn * is_comm::TINYINT AS comm,
        turn * (is_heavy OR is_to_or_from_host)::TINYINT AS heavy
    FROM work
    CROSS JOIN (VALUES (1::TINYINT), ((-1)::TINYINT)) AS t (turn)
    WHERE dur_ns > 0
),

running AS (
    SELECT
        trace_id,
        device,
        lead(at_ns) OVER timely - at_ns AS ns,
        sum(compute) OVER timely > 0 AS computes,
        sum(memory) OVER timely > 0 AS moves,
        sum(comm) OVER timely > 0 AS communicates,
        sum(heavy) OVER timely > 0 AS is_heavy
    FROM turns
    WINDOW timely AS (PARTITION BY trace_id, device ORDER BY at_ns)
),

busy AS (
    SELECT
        trace_id,
        device,
        coalesce(sum(ns) FILTER (computes AND NOT moves AND NOT communicates), 0) AS compute_only_ns,
        coalesce(sum(ns) FILTER (moves AND NOT computes AND NOT communicates), 0) AS memory_only_ns,
        coalesce(sum(ns) FILTER (computes AND moves AND NOT communicates), 0) AS compute_and_memory_ns,
        coalesce(sum(ns) FILTER (communicates AND NOT computes), 0) AS comm_exposed_ns,
        coalesce(sum(ns) FILTER (communicates AND computes), 0) AS comm_hidden_ns,
        coalesce(sum(ns) FILTER (is_heavy), 0) AS heavy_busy_ns,
        coalesce(sum(ns) FILTER (computes OR moves OR communicates), 0) AS busy_ns
    FROM running
    GROUP BY trace_id, device
),

idle AS (
    SELECT
        trace_id,
        device,
        sum(dur_ns) AS idle_ns,
        coalesce(sum(dur_ns) FILTER (launch_state = 'host'), 0) AS host_ns,
        coalesce(sum(dur_ns) FILTER (launch_state = 'launching'), 0) AS launching_ns,
        coalesce(sum(dur_ns) FILTER (launch_state = 'queued'), 0) AS queued_ns,
        coalesce(sum(dur_ns) FILTER (launch_state = 'unknown'), 0) AS unknown_ns
    FROM gaps
    GROUP BY trace_id, device
),

caused AS (
    SELECT
        g.trace_id,
        g.device,
        c.cause,
        sum(c.ns) AS ns,
        row_number() OVER (PARTITION BY g.trace_id, g.device ORDER BY sum(c.ns) DESC, c.cause) AS place,
        sum(sum(c.ns)) OVER (PARTITION BY g.trace_id, g.device) AS idle_ns
    FROM gap_parts AS c
    JOIN gaps AS g ON g.trace_id = c.trace_id AND g.gap_id = c.gap_id
    GROUP BY g.trace_id, g.device, c.cause
),

causes AS (
    SELECT
        trace_id,
        device,
        string_agg(format('{}: {:.1f} %', cause, 100.0 * ns / nullif(idle_ns, 0)), ', ' ORDER BY place) FILTER (place <= 4) AS causes,
        coalesce(
            sum(ns) FILTER (cause IN ('cpu_ops', 'python', 'cuda_api', 'compiled_runtime', 'launch_latency')), 0
        ) AS launch_bound_ns
    FROM caused
    GROUP BY trace_id, device
),

-- What was not recorded may lie anywhere: it takes busy and idle with it.
seen AS (
    SELECT p.trace_id, p.run, p.rank, s.device, p.invisible_replays = 0 AS is_whole
    FROM picked AS p
    JOIN summed AS s USING (trace_id)
)

SELECT
    v.run,
    v.rank,
    v.device,
    CASE WHEN v.is_whole THEN s.window_ns END AS window_ns,
    CASE WHEN v.is_whole THEN coalesce(b.busy_ns, 0) END::BIGINT AS busy_ns,
    CASE WHEN v.is_whole THEN 100.0 * coalesce(b.busy_ns, 0) / nullif(s.window_ns, 0) END AS busy_pct,
    CASE WHEN v.is_whole THEN coalesce(b.compute_only_ns, 0) END::BIGINT AS compute_only_ns,
    CASE WHEN v.is_whole THEN coalesce(b.memory_only_ns, 0) END::BIGINT AS memory_only_ns,
    CASE WHEN v.is_whole THEN coalesce(b.compute_and_memory_ns, 0) END::BIGINT AS compute_and_memory_ns,
    CASE WHEN v.is_whole THEN coalesce(b.comm_exposed_ns, 0) END::BIGINT AS comm_exposed_ns,
    CASE WHEN v.is_whole THEN coalesce(b.comm_hidden_ns, 0) END::BIGINT AS comm_hidden_ns,
    CASE WHEN v.is_whole THEN 100.0 * b.comm_hidden_ns / nullif(b.comm_hidden_ns + b.comm_exposed_ns, 0) END AS comm_hidden_pct,
    CASE WHEN v.is_whole THEN coalesce(b.heavy_busy_ns, 0) END::BIGINT AS heavy_busy_ns,
    CASE WHEN v.is_whole THEN 100.0 * b.heavy_busy_ns / nullif(b.busy_ns, 0) END AS heavy_busy_pct,
    CASE WHEN v.is_whole THEN s.window_ns - coalesce(b.busy_ns, 0) END::BIGINT AS idle_ns,
    CASE WHEN v.is_whole THEN coalesce(i.host_ns, 0) END::BIGINT AS idle_host_ns,
    CASE WHEN v.is_whole THEN coalesce(i.launching_ns, 0) END::BIGINT AS idle_launching_ns,
    CASE WHEN v.is_whole THEN coalesce(i.queued_ns, 0) END::BIGINT AS idle_queued_ns,
    CASE WHEN v.is_whole THEN coalesce(i.unknown_ns, 0) END::BIGINT AS idle_unknown_ns,
    CASE WHEN v.is_whole THEN coalesce(c.causes, 'none') END AS idle_causes,
    CASE WHEN v.is_whole THEN coalesce(c.launch_bound_ns, 0) END::BIGINT AS launch_bound_ns,
    CASE WHEN v.is_whole THEN 100.0 * coalesce(c.launch_bound_ns, 0) / nullif(s.window_ns, 0) END AS launch_bound_pct,
    s.kernels,
    s.kernel_ns::BIGINT AS kernel_ns,
    s.heavy_kernel_ns::BIGINT AS heavy_kernel_ns,
    s.comm_kernel_ns::BIGINT AS comm_kernel_ns,
    s.fusible_kernel_ns::BIGINT AS fusible_kernel_ns,
    CASE WHEN v.is_whole THEN 100.0 * s.fusible_kernel_ns / nullif(s.kernel_ns, 0) END AS fusible_pct_of_kernel,
    s.fusible_kernels,
    s.memop_ns::BIGINT AS memop_ns
FROM seen AS v
JOIN summed AS s ON s.trace_id = v.trace_id AND s.device = v.device
LEFT JOIN busy AS b ON b.trace_id = v.trace_id AND b.device = v.device
LEFT JOIN idle AS i ON i.trace_id = v.trace_id AND i.device = v.device
LEFT JOIN causes AS c ON c.trace_id = v.trace_id AND c.device = v.device
ORDER BY v.run, v.rank, v.device, v.trace_id
