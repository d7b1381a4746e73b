-- title: Why the GPU was idle
-- what: Idle time of each device, or of each stream, by cause; a gap that waited for the host and then for its launch has two parts, and the parts of all causes add up to the idle time exactly.
-- value: The first row is what to mend; launch-bound idle (fewer or cheaper launches) is what torch.compile and CUDA graphs can remove.
-- needs: gaps, gap_parts, stream_gaps, stream_gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: scope VARCHAR = 'device' -- device (nothing runs on the GPU) or stream (nothing runs on that stream)
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: stream BIGINT -- stream; NULL in scope device
-- column: cause VARCHAR -- why nothing ran, e.g. sync, dataloader, cpu_ops, python, launch_latency, in_graph; docs/meaning.md explains each
-- column: is_launch_bound BOOLEAN -- whether the host was too slow in launching: cpu_ops, python, cuda_api, compiled_runtime, launch_latency
-- column: parts BIGINT count -- parts of gaps with that cause
-- column: idle_ns BIGINT ns -- their total length
-- column: pct_of_idle DOUBLE percent -- of all idle time of the device or stream
-- column: pct_of_window DOUBLE percent -- of the time from its first start to its last end
-- column: median_ns DOUBLE ns -- median length of a part
-- column: max_ns BIGINT ns -- longest part
-- chart: bar x=cause y=idle_ns
-- order: run, rank, device, stream, idle_ns DESC
-- example: traceq query gap_causes --run eager
-- example: traceq query gap_causes --run overlap -p scope=stream

WITH asked AS (
    SELECT
        CASE
            WHEN coalesce($scope::VARCHAR, 'device') IN ('device', 'stream') THEN coalesce($scope::VARCHAR, 'device')
            ELSE error('scope is device or stream, not ' || $scope::VARCHAR)
        END AS scope
),

parts AS (
    SELECT i.trace_id, i.run, i.rank, i.device, NULL::BIGINT AS stream, i.cause, i.ns
    FROM idle AS i
    JOIN asked AS q ON q.scope = 'device'
    WHERE i.run = coalesce($run::VARCHAR, i.run)
    UNION ALL
    SELECT i.trace_id, i.run, i.rank, i.device, i.stream, i.cause, i.ns
    FROM stream_idle AS i
    JOIN asked AS q ON q.scope = 'stream'
    WHERE i.run = coalesce($run::VARCHAR, i.run)
),

causes AS (
    SELECT
        trace_id,
        run,
        rank,
        device,
        stream,
        cause,
        count(*) AS parts,
        sum(ns)::BIGINT AS idle_ns,
        median(ns) AS median_ns,
        max(ns) AS max_ns
    FROM parts
    GROUP BY trace_id, run, rank, device, stream, cause
),

spans AS (
    SELECT
        a.trace_id,
        a.device,
        CASE WHEN q.scope = 'stream' THEN a.stream END AS stream,
        max(a.start_ns + a.dur_ns) - min(a.start_ns) AS window_ns
    FROM gpu_activities AS a
    CROSS JOIN asked AS q
    GROUP BY ALL
)

SELECT
    c.run,
    c.rank,
    c.device,
    c.stream,
    c.cause,
    c.cause IN ('cpu_ops', 'python', 'cuda_api', 'compiled_runtime', 'launch_latency') AS is_launch_bound,
    c.parts,
    c.idle_ns,
    100.0 * c.idle_ns / nullif(sum(c.idle_ns) OVER (PARTITION BY c.trace_id, c.device, c.stream), 0) AS pct_of_idle,
    100.0 * c.idle_ns / nullif(s.window_ns, 0) AS pct_of_window,
    c.median_ns,
    c.max_ns
FROM causes AS c
JOIN spans AS s ON s.trace_id = c.trace_id AND s.device = c.device AND s.stream IS NOT DISTINCT FROM c.stream
ORDER BY c.run, c.rank, c.device, c.stream, c.idle_ns DESC, c.cause, c.trace_id
