-- title: Captured runs side by side
-- what: Each run that traceq capture made with its un-profiled step time, the speed-up over the eager run of its label, and what the compiler did.
-- value: A mode is worth its compile time if the low end of its speed-up is above 1; many graph breaks or recompilations say what holds it back.
-- needs: captures, runs, steps, graph_breaks, recompiles, compile_phases
-- layout: record
-- param: label VARCHAR = NULL -- label of the capture, what stands before the last / of its runs; NULL means all
-- column: run VARCHAR -- run label
-- column: mode VARCHAR -- mode of the capture; NULL if not recorded
-- column: step_ns BIGINT ns -- un-profiled step time without synchronisation between steps, the median of the blocks; NULL if not measured
-- column: step_low_ns BIGINT ns -- lower end of its 95 % interval
-- column: step_high_ns BIGINT ns -- upper end of its 95 % interval
-- column: speedup DOUBLE ratio -- step_ns of the eager run of the label (without one, of its first run) over this one
-- column: speedup_low DOUBLE ratio -- the least that both intervals allow: wider than the interval of the ratio itself; NULL for the run compared with
-- column: speedup_high DOUBLE ratio -- the most that both intervals allow
-- column: synced_ns BIGINT ns -- un-profiled step time where the host waits for the GPU after each step
-- column: synced_low_ns BIGINT ns -- lower end of its 95 % interval
-- column: synced_high_ns BIGINT ns -- upper end of its 95 % interval
-- column: gpu_busy_ns DOUBLE ns -- median over the profiled steps that count of the time that the GPU was busy; NULL without GPU rows
-- column: kernels DOUBLE count -- median over these steps of their kernels
-- column: compile_ns BIGINT ns -- time in torch.compile, all compilations (traceq query compile_time); of several ranks the longest
-- column: graph_breaks BIGINT count -- places and reasons for which graphs broke (traceq query graph_breaks), over all ranks
-- column: recompiles BIGINT count -- compilations for failed guards (traceq query recompiles); of several ranks the most
-- column: peak_bytes BIGINT bytes -- most GPU memory allocated without the profiler, and what CUDA graphs keep; of several ranks the most
-- chart: bar x=run y=step_ns
-- order: label, run_id
-- example: traceq query captures
-- example: traceq query captures -p label=train

WITH captured AS (
    SELECT
        r.*,
        regexp_replace(r.label, '/[^/]*$', '') AS capture,
        contains(r.label, '/') AS is_compared,
        c.has_facts
    FROM runs AS r
    JOIN (SELECT run_id, bool_or(has_facts) AS has_facts FROM captures GROUP BY run_id) AS c USING (run_id)
),

-- What the others are compared with. A run that is called as a comparison is none of it.
base AS (
    SELECT
        capture,
        is_compared,
        arg_min(run_id, (CASE WHEN mode = 'eager' THEN 0 ELSE 1 END, run_id)) AS run_id
    FROM captured
    GROUP BY capture, is_compared
),

profiled AS (
    SELECT t.run_id, median(s.gpu_busy_ns) AS gpu_busy_ns, median(s.kernels) AS kernels
    FROM steps AS s
    JOIN traces AS t USING (trace_id)
    WHERE len(s.flags) = 0 AND s.gpu_busy_ns IS NOT NULL
    GROUP BY t.run_id
),

broken AS (
    SELECT run_id, count(*) AS graph_breaks
    FROM (SELECT DISTINCT run_id, reason, file, line, function FROM graph_breaks)
    GROUP BY run_id
),

again AS (
    SELECT run_id, max(recompiles) AS recompiles
    FROM (SELECT run_id, rank, sum(count) AS recompiles FROM recompiles GROUP BY run_id, rank)
    GROUP BY run_id
),

compiled AS (
    SELECT run_id, max(ns) AS compile_ns
    FROM (SELECT run_id, rank, sum(ns) AS ns FROM compile_phases GROUP BY run_id, rank)
    GROUP BY run_id
)

SELECT
    c.label AS run,
    c.mode,
    c.step_pipelined_ns AS step_ns,
    c.step_pipelined_low_ns AS step_low_ns,
    c.step_pipelined_high_ns AS step_high_ns,
    e.step_pipelined_ns / nullif(c.step_pipelined_ns, 0) AS speedup,
    CASE WHEN e.run_id <> c.run_id THEN e.step_pipelined_low_ns / nullif(c.step_pipelined_high_ns, 0) END AS speedup_low,
    CASE WHEN e.run_id <> c.run_id THEN e.step_pipelined_high_ns / nullif(c.step_pipelined_low_ns, 0) END AS speedup_high,
    c.step_synced_ns AS synced_ns,
    c.step_synced_low_ns AS synced_low_ns,
    c.step_synced_high_ns AS synced_high_ns,
    p.gpu_busy_ns,
    p.kernels,
    CASE WHEN c.has_facts THEN coalesce(m.compile_ns, 0) END::BIGINT AS compile_ns,
    CASE WHEN c.has_facts THEN coalesce(b.graph_breaks, 0) END AS graph_breaks,
    CASE WHEN c.has_facts THEN coalesce(a.recompiles, 0) END::BIGINT AS recompiles,
    c.peak_memory_bytes AS peak_bytes
FROM captured AS c
JOIN base AS f ON f.capture = c.capture AND f.is_compared = c.is_compared
JOIN runs AS e ON e.run_id = f.run_id
LEFT JOIN profiled AS p ON p.run_id = c.run_id
LEFT JOIN broken AS b ON b.run_id = c.run_id
LEFT JOIN again AS a ON a.run_id = c.run_id
LEFT JOIN compiled AS m ON m.run_id = c.run_id
WHERE c.capture = coalesce($label::VARCHAR, c.capture)
ORDER BY c.capture, c.run_id
