-- title: Where the GPU's time went, in one look
-- what: For each device of each trace its window, busy and idle time, kernel and copy time, steps and launches.
-- value: Low busy means the host or a wait holds the GPU back; high busy means that the kernels themselves decide.
-- needs: traces, gpu_activities
-- layout: record
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU; NULL if the trace has no GPU rows
-- column: gpu VARCHAR -- name of the GPU
-- column: status VARCHAR -- complete, or salvaged from a broken file
-- column: recorded_with VARCHAR -- recording options that slow the host down
-- column: step_ns BIGINT ns -- un-profiled pipelined step time, if it was measured
-- column: steps BIGINT count -- steps marked in the trace
-- column: steps_left_out BIGINT count -- of these, flagged and left out of medians
-- column: period_ns DOUBLE ns -- median time from one step's first GPU activity to the next one's, under the profiler
-- column: window_ns BIGINT ns -- from the first start to the last end on the device
-- column: busy_ns BIGINT ns -- union of kernels, copies and memsets
-- column: idle_ns BIGINT ns -- window less busy
-- column: busy_pct DOUBLE percent -- busy of the window
-- column: busy_by_stream VARCHAR -- stream: union of its work, of the window; the busiest eight, NULL if graph replays were not recorded
-- column: kernels BIGINT count -- kernels
-- column: kernel_ns BIGINT ns -- sum of kernel durations; overlap counts twice
-- column: gemm_pct_of_kernel DOUBLE percent -- matrix products, of kernel time
-- column: memcpys BIGINT count -- copies; NULL if an nsys export has no table of them
-- column: memcpy_ns BIGINT ns -- sum of copy durations
-- column: memcpy_bytes BIGINT bytes -- bytes copied, where recorded
-- column: memsets BIGINT count -- memsets; NULL if an nsys export has no table of them
-- column: memset_ns BIGINT ns -- sum of memset durations
-- column: carried_over BIGINT count -- activities without a launch in the trace
-- column: launches BIGINT count -- launch calls of the trace, graph launches included
-- column: graph_launches BIGINT count -- CUDA graph launches of the trace
-- column: launch_call_ns BIGINT ns -- host time in launch calls, each counted once
-- column: differ_between_steps VARCHAR -- kernels that the steps that count do not all launch as often (traceq query step_kernels); none, or NULL with fewer than two such steps
-- order: run, rank, device
-- example: traceq query summary --run eager

WITH picked AS (
    SELECT l.*, t.format, t.status, t.metadata, r.step_pipelined_ns
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    JOIN runs AS r ON r.run_id = l.run_id
    WHERE l.run = coalesce($run::VARCHAR, l.run)
),

work AS (
    SELECT
        trace_id,
        device,
        count(*) FILTER (kind = 'kernel') AS kernels,
        coalesce(sum(dur_ns) FILTER (kind = 'kernel'), 0) AS kernel_ns,
        coalesce(sum(dur_ns) FILTER (category = 'gemm'), 0) AS gemm_ns,
        count(*) FILTER (kind = 'memcpy') AS memcpys,
        coalesce(sum(dur_ns) FILTER (kind = 'memcpy'), 0) AS memcpy_ns,
        CASE WHEN count(*) FILTER (kind = 'memcpy') = 0 THEN 0 ELSE sum(bytes) FILTER (kind = 'memcpy') END AS memcpy_bytes,
        count(*) FILTER (kind = 'memset') AS memsets,
        coalesce(sum(dur_ns) FILTER (kind = 'memset'), 0) AS memset_ns,
        count(*) FILTER (launch_id IS NULL) AS carried_over,
        max(start_ns + dur_ns) - min(start_ns) AS window_ns
    FROM gpu_activities
    GROUP BY trace_id, device
),

busy AS (
    SELECT trace_id, device, sum(dur_ns) AS busy_ns
    FROM gpu_busy
    GROUP BY trace_id, device
),

-- An nsys export has a table only for what occurred and was recorded; which of the two an absent one lacks is not told.
recorded AS (
    SELECT
        p.trace_id,
        any_value(p.format) <> 'nsys' OR coalesce(bool_or(contains(e.category, '_MEMCPY')), false) AS has_memcpys,
        any_value(p.format) <> 'nsys' OR coalesce(bool_or(contains(e.category, '_MEMSET')), false) AS has_memsets
    FROM picked AS p
    LEFT JOIN event_counts AS e ON e.trace_id = p.trace_id AND e.stored_in = 'gpu_activities'
    GROUP BY p.trace_id
),

-- A stream's work is its window less its gaps.
stream AS (
    SELECT
        a.trace_id,
        a.device,
        a.stream,
        a.window_ns - coalesce(g.idle_ns, 0) AS busy_ns,
        row_number() OVER (PARTITION BY a.trace_id, a.device ORDER BY a.window_ns - coalesce(g.idle_ns, 0) DESC, a.stream) AS place
    FROM (
        SELECT trace_id, device, stream, max(start_ns + dur_ns) - min(start_ns) AS window_ns
        FROM gpu_activities
        GROUP BY trace_id, device, stream
    ) AS a
    LEFT JOIN (
        SELECT trace_id, device, stream, sum(dur_ns) AS idle_ns
        FROM stream_gaps
        GROUP BY trace_id, device, stream
    ) AS g ON g.trace_id = a.trace_id AND g.device = a.device AND g.stream IS NOT DISTINCT FROM a.stream
),

streams AS (
    SELECT
        s.trace_id,
        s.device,
        concat_ws(
            ', ',
            string_agg(
                format('{}: {:.1f} %', coalesce(s.stream::VARCHAR, 'none'), 100.0 * s.busy_ns / nullif(w.window_ns, 0)), ', ' ORDER BY s.place
            ) FILTER (s.place <= 8),
            CASE WHEN count(*) > 8 THEN format('{} more', count(*) - 8) END
        ) AS busy_by_stream
    FROM stream AS s
    JOIN work AS w ON w.trace_id = s.trace_id AND w.device = s.device
    GROUP BY s.trace_id, s.device
),

good AS (
    SELECT trace_id, pid, step, count(*) OVER (PARTITION BY trace_id, pid) AS steps
    FROM good_steps
),

per_step AS (
    SELECT a.trace_id, a.pid, a.name, a.step, g.steps, any_value(a.short_name) AS short_name, count(*) AS kernels, sum(a.dur_ns) AS ns
    FROM gpu_activities AS a
    JOIN good AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    WHERE a.kind = 'kernel'
    GROUP BY a.trace_id, a.pid, a.name, a.step, g.steps
),

unlike AS (
    SELECT trace_id, any_value(short_name) AS short_name, sum(ns) AS ns
    FROM per_step
    GROUP BY trace_id, pid, name, steps
    HAVING count(*) < steps OR min(kernels) < max(kernels)
),

unlike_named AS (
    SELECT trace_id, short_name, row_number() OVER (PARTITION BY trace_id ORDER BY sum(ns) DESC, short_name) AS place
    FROM unlike
    GROUP BY trace_id, short_name
),

unlike_listed AS (
    SELECT
        trace_id,
        string_agg(short_name, ', ' ORDER BY place) FILTER (place <= 3)
        || CASE WHEN count(*) > 3 THEN format(' and {} more', count(*) - 3) ELSE '' END AS names
    FROM unlike_named
    GROUP BY trace_id
),

compared AS (
    SELECT trace_id, max(steps) AS steps
    FROM good
    GROUP BY trace_id
),

host AS (
    SELECT
        trace_id,
        count(*) AS launches,
        count(*) FILTER (role = 'graph_launch') AS graph_launches,
        sum(dur_ns) AS launch_call_ns
    FROM api_calls
    WHERE role IN ('launch', 'graph_launch')
    GROUP BY trace_id
),

followed AS (
    SELECT *, lead(flags) OVER (PARTITION BY trace_id, pid ORDER BY start_ns, step) AS next_flags
    FROM steps
),

-- A period ends with the next step's first work, so both count only if neither is flagged.
stepped AS (
    SELECT
        trace_id,
        count(*) AS steps,
        count(*) FILTER (len(flags) > 0) AS steps_left_out,
        median(period_ns) FILTER (len(flags) = 0 AND len(next_flags) = 0) AS period_ns
    FROM followed
    GROUP BY trace_id
)

SELECT
    p.run,
    p.rank,
    w.device,
    d.name AS gpu,
    p.status,
    nullif(concat_ws(
        ', ',
        CASE WHEN p.metadata->>'$.with_stack' = '1' THEN 'stacks' END,
        CASE WHEN p.metadata->>'$.record_shapes' = '1' THEN 'shapes' END,
        CASE WHEN p.metadata->>'$.profile_memory' = '1' THEN 'memory' END,
        CASE WHEN p.metadata->>'$.with_flops' = '1' THEN 'flops' END,
        CASE WHEN p.metadata->>'$.with_modules' = '1' THEN 'modules' END
    ), '') AS recorded_with,
    p.step_pipelined_ns AS step_ns,
    coalesce(s.steps, 0) AS steps,
    coalesce(s.steps_left_out, 0) AS steps_left_out,
    s.period_ns,
    CASE WHEN p.invisible_replays = 0 THEN w.window_ns END AS window_ns,
    b.busy_ns::BIGINT AS busy_ns,
    (w.window_ns - b.busy_ns)::BIGINT AS idle_ns,
    100.0 * b.busy_ns / nullif(w.window_ns, 0) AS busy_pct,
    CASE WHEN p.invisible_replays = 0 THEN m.busy_by_stream END AS busy_by_stream,
    coalesce(w.kernels, 0) AS kernels,
    w.kernel_ns::BIGINT AS kernel_ns,
    CASE WHEN p.invisible_replays = 0 THEN 100.0 * w.gemm_ns / nullif(w.kernel_ns, 0) END AS gemm_pct_of_kernel,
    CASE WHEN r.has_memcpys THEN coalesce(w.memcpys, 0) END AS memcpys,
    CASE WHEN r.has_memcpys THEN w.memcpy_ns::BIGINT END AS memcpy_ns,
    CASE WHEN r.has_memcpys THEN w.memcpy_bytes::BIGINT END AS memcpy_bytes,
    CASE WHEN r.has_memsets THEN coalesce(w.memsets, 0) END AS memsets,
    CASE WHEN r.has_memsets THEN w.memset_ns::BIGINT END AS memset_ns,
    coalesce(w.carried_over, 0) AS carried_over,
    coalesce(h.launches, 0) AS launches,
    coalesce(h.graph_launches, 0) AS graph_launches,
    h.launch_call_ns::BIGINT AS launch_call_ns,
    CASE WHEN c.steps > 1 THEN coalesce(u.names, 'none') END AS differ_between_steps
FROM picked AS p
JOIN recorded AS r USING (trace_id)
LEFT JOIN work AS w USING (trace_id)
LEFT JOIN busy AS b ON b.trace_id = p.trace_id AND b.device = w.device
LEFT JOIN devices AS d ON d.trace_id = p.trace_id AND d.device = w.device
LEFT JOIN streams AS m ON m.trace_id = p.trace_id AND m.device = w.device
LEFT JOIN compared AS c ON c.trace_id = p.trace_id
LEFT JOIN unlike_listed AS u ON u.trace_id = p.trace_id
LEFT JOIN host AS h ON h.trace_id = p.trace_id
LEFT JOIN stepped AS s ON s.trace_id = p.trace_id
ORDER BY p.run, p.rank, w.device, p.trace_id
