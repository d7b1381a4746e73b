-- title: From launch call to GPU start
-- what: Time from the start of a launch call to the start of its first activity, and to the start of every one.
-- value: A few µs is the floor of the hardware; much more means a full queue, which is good, or clock skew where negative.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: basis VARCHAR -- launch (first activity of each call) or activity (every one, so each kernel of a graph)
-- column: launched BIGINT count -- calls that started work (kernels, copies, memsets, graphs), or activities
-- column: min_ns BIGINT ns -- shortest; negative means the GPU's clock is ahead of the host's
-- column: median_ns DOUBLE ns -- median
-- column: mean_ns DOUBLE ns -- mean
-- column: p90_ns DOUBLE ns -- 90th percentile, interpolated
-- column: max_ns BIGINT ns -- longest
-- column: before_launch BIGINT count -- activities that start before their call
-- order: run, rank, basis DESC
-- example: traceq query launch_latency --run eager

WITH firsts AS (
    SELECT trace_id, run, rank, call_id, min(latency_ns) AS latency_ns
    FROM launches
    WHERE run = coalesce($run::VARCHAR, run)
    GROUP BY trace_id, run, rank, call_id
),

both_ways AS (
    SELECT trace_id, run, rank, 'launch' AS basis, latency_ns FROM firsts
    UNION ALL
    SELECT trace_id, run, rank, 'activity' AS basis, latency_ns FROM launches WHERE run = coalesce($run::VARCHAR, run)
)

SELECT
    run,
    rank,
    basis,
    count(*) AS launched,
    min(latency_ns) AS min_ns,
    median(latency_ns) AS median_ns,
    avg(latency_ns) AS mean_ns,
    quantile_cont(latency_ns, 0.9) AS p90_ns,
    max(latency_ns) AS max_ns,
    count(*) FILTER (latency_ns < 0) AS before_launch
FROM both_ways
GROUP BY trace_id, run, rank, basis
ORDER BY run, rank, basis DESC, trace_id
