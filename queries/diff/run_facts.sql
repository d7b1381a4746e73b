-- title: What two runs must agree in
-- what: Each run with what decides whether it can be compared with another: content, GPU, ranks, recording options, steps, links from kernels to operators; and its un-profiled measurements.
-- value: Where these differ, a difference in time may come from them.
-- needs: runs, traces, gpu_activities
-- layout: record
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: mode VARCHAR -- eager, default, reduce-overhead, max-autotune, if capture recorded it
-- column: format VARCHAR -- kineto or nsys
-- column: gpu VARCHAR -- name of the GPU
-- column: torch_version VARCHAR -- version of torch, if recorded
-- column: content VARCHAR -- digest of the files: equal only if all are the same
-- column: recorded_with VARCHAR -- recording options that slow the host down
-- column: world_size BIGINT count -- ranks of the job, if recorded
-- column: lanes VARCHAR -- rank:device of each GPU that worked
-- column: steps BIGINT count -- steps marked
-- column: good_steps BIGINT count -- of these, steps that count
-- column: flags VARCHAR -- flags of the others
-- column: invisible_replays BIGINT count -- graph launches without GPU activity
-- column: kernel_ns BIGINT ns -- sum of all kernel durations; NULL if none were recorded
-- column: linked_pct DOUBLE percent -- of the kernel time, kernels whose operator is known (not those in graph replays)
-- column: inductor_kernels BIGINT count -- kernels made by Inductor
-- column: graph_launches BIGINT count -- CUDA graph launches
-- column: step_ns BIGINT ns -- un-profiled pipelined step time
-- column: step_low_ns BIGINT ns -- lower end of its interval
-- column: step_high_ns BIGINT ns -- upper end
-- column: synced_ns BIGINT ns -- un-profiled step time with synchronisation after each step
-- column: synced_low_ns BIGINT ns -- lower end of its interval
-- column: synced_high_ns BIGINT ns -- upper end
-- column: is_disturbed BOOLEAN -- whether the step times contradict each other, so that none is judged: pipelined steps, which wait for nothing, over twice the synced ones; NULL without both
-- column: peak_memory_bytes BIGINT bytes -- most memory allocated, if measured or recorded
-- column: compile_ns BIGINT ns -- time spent compiling, as capture measured it, 0 if nothing was compiled; of the slowest rank; NULL without a capture
-- column: graph_breaks BIGINT count -- graph breaks that capture counted; NULL without a capture
-- order: run_id
-- example: traceq query run_facts --run eager

-- The factor is far from what noise makes of real programs: up to 1.5 was seen where the host decides.
WITH limits AS (
    SELECT 2 AS disturbed_ratio
),

picked AS (
    SELECT l.trace_id, l.run_id, l.rank, l.invisible_replays, t.format, t.sha256, t.world_size, t.metadata
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
),

files AS (
    SELECT
        run_id,
        string_agg(DISTINCT format, ', ' ORDER BY format) AS format,
        md5(string_agg(sha256, ',' ORDER BY sha256)) AS content,
        max(world_size) AS world_size,
        sum(invisible_replays)::BIGINT AS invisible_replays,
        max(CASE WHEN metadata->>'$.with_stack' = '1' THEN 1 ELSE 0 END) AS with_stack,
        max(CASE WHEN metadata->>'$.record_shapes' = '1' THEN 1 ELSE 0 END) AS with_shapes,
        max(CASE WHEN metadata->>'$.profile_memory' = '1' THEN 1 ELSE 0 END) AS with_memory
    FROM picked
    GROUP BY run_id
),

work AS (
    SELECT
        p.run_id,
        p.rank,
        a.device,
        count(*) FILTER (a.origin = 'inductor') AS inductor_kernels,
        sum(a.dur_ns) FILTER (a.kind = 'kernel') AS kernel_ns,
        sum(a.dur_ns) FILTER (a.kind = 'kernel' AND a.op_id IS NOT NULL AND c.role IS DISTINCT FROM 'graph_launch') AS linked_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    GROUP BY p.run_id, p.rank, a.device
),

devices_of AS (
    SELECT
        run_id,
        string_agg(concat(coalesce(rank::VARCHAR, '-'), ':', coalesce(device::VARCHAR, '-')), ' ' ORDER BY rank, device) AS lanes,
        sum(inductor_kernels)::BIGINT AS inductor_kernels,
        sum(kernel_ns)::BIGINT AS kernel_ns,
        100.0 * coalesce(sum(linked_ns), 0) / nullif(sum(kernel_ns), 0) AS linked_pct
    FROM work
    GROUP BY run_id
),

stepped AS (
    SELECT
        p.run_id,
        count(*) AS steps,
        count(*) FILTER (len(s.flags) = 0) AS good_steps,
        string_agg(DISTINCT array_to_string(s.flags, ' '), ', ' ORDER BY array_to_string(s.flags, ' ')) FILTER (len(s.flags) > 0) AS flags
    FROM steps AS s
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run_id
),

-- What the profiler recorded of memory serves where nothing was measured.
memory AS (
    SELECT p.run_id, max(m.allocated_bytes) AS peak_bytes
    FROM memory_events AS m
    JOIN picked AS p USING (trace_id)
    WHERE m.device IS NOT NULL AND m.device_type IS DISTINCT FROM 0
    GROUP BY p.run_id
),

with_facts AS (
    SELECT DISTINCT run_id
    FROM captures
    WHERE has_facts
),

compiling AS (
    SELECT c.run_id, coalesce(max(p.ns), 0)::BIGINT AS compile_ns
    FROM with_facts AS c
    LEFT JOIN (SELECT run_id, rank, sum(ns) AS ns FROM compile_phases GROUP BY run_id, rank) AS p USING (run_id)
    GROUP BY c.run_id
),

breaking AS (
    SELECT c.run_id, coalesce(sum(b.count), 0)::BIGINT AS graph_breaks
    FROM with_facts AS c
    LEFT JOIN graph_breaks AS b USING (run_id)
    GROUP BY c.run_id
),

graphs AS (
    SELECT p.run_id, count(*) AS graph_launches
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    WHERE c.role = 'graph_launch'
    GROUP BY p.run_id
)

SELECT
    r.label AS run,
    r.mode,
    f.format,
    r.gpu,
    r.torch_version,
    f.content,
    nullif(concat_ws(
        ', ',
        CASE WHEN f.with_stack = 1 THEN 'stacks' END,
        CASE WHEN f.with_shapes = 1 THEN 'shapes' END,
        CASE WHEN f.with_memory = 1 THEN 'memory' END
    ), '') AS recorded_with,
    f.world_size,
    d.lanes,
    coalesce(s.steps, 0) AS steps,
    coalesce(s.good_steps, 0) AS good_steps,
    s.flags,
    coalesce(f.invisible_replays, 0) AS invisible_replays,
    d.kernel_ns,
    d.linked_pct,
    coalesce(d.inductor_kernels, 0) AS inductor_kernels,
    coalesce(g.graph_launches, 0) AS graph_launches,
    r.step_pipelined_ns AS step_ns,
    r.step_pipelined_low_ns AS step_low_ns,
    r.step_pipelined_high_ns AS step_high_ns,
    r.step_synced_ns AS synced_ns,
    r.step_synced_low_ns AS synced_low_ns,
    r.step_synced_high_ns AS synced_high_ns,
    r.step_pipelined_ns > i.disturbed_ratio * r.step_synced_ns AS is_disturbed,
    coalesce(r.peak_memory_bytes, m.peak_bytes) AS peak_memory_bytes,
    c.compile_ns,
    b.graph_breaks
FROM runs AS r
CROSS JOIN limits AS i
LEFT JOIN files AS f USING (run_id)
LEFT JOIN memory AS m USING (run_id)
LEFT JOIN compiling AS c USING (run_id)
LEFT JOIN breaking AS b USING (run_id)
LEFT JOIN devices_of AS d USING (run_id)
LEFT JOIN stepped AS s USING (run_id)
LEFT JOIN graphs AS g USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.run_id
