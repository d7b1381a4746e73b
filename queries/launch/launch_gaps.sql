-- title: Idle time by what the launch was doing
-- what: Gaps on each device by whether the next work was launched late, was being launched, or had been launched before, with the cause that took most of it.
-- value: Host gaps are what fewer or faster launches (torch.compile, CUDA graphs) can remove; queued ones they cannot.
-- needs: gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: min_ns BIGINT = 0 -- leave shorter gaps out
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: launch_state VARCHAR -- host (launched during the gap), launching (the call was running), queued (launched before), unknown
-- column: gaps BIGINT count -- gaps
-- column: idle_ns BIGINT ns -- their total length
-- column: pct_of_idle DOUBLE percent -- of all idle time of the device, shorter gaps included
-- column: median_ns DOUBLE ns -- median length
-- column: max_ns BIGINT ns -- longest
-- column: host_ns BIGINT ns -- of idle_ns, until the launch call began; NULL if unknown
-- column: after_launch_ns BIGINT ns -- of idle_ns, after it began
-- column: main_cause VARCHAR -- cause of the greatest part of idle_ns (gap_causes has them all)
-- column: main_pct DOUBLE percent -- of idle_ns, that cause
-- column: main_op VARCHAR -- operator being dispatched for most of that cause; NULL if none was
-- chart: bar x=launch_state y=idle_ns
-- order: run, rank, device, idle_ns DESC
-- example: traceq query launch_gaps --run eager -p min_ns=1000

WITH whole AS (
    SELECT trace_id, device, sum(dur_ns) AS idle_ns
    FROM gaps
    GROUP BY trace_id, device
),

stated AS (
    SELECT
        trace_id,
        device,
        launch_state,
        count(*) AS gaps,
        sum(dur_ns) AS idle_ns,
        median(dur_ns) AS median_ns,
        max(dur_ns) AS max_ns,
        sum(host_ns) AS host_ns,
        sum(after_launch_ns) AS after_launch_ns
    FROM gaps
    WHERE dur_ns >= coalesce($min_ns::BIGINT, 0)
    GROUP BY trace_id, device, launch_state
),

parts AS (
    SELECT g.trace_id, g.device, g.launch_state, p.cause, p.op_id, p.ns
    FROM gap_parts AS p
    JOIN gaps AS g ON g.trace_id = p.trace_id AND g.gap_id = p.gap_id
    WHERE g.dur_ns >= coalesce($min_ns::BIGINT, 0)
),

main_causes AS (
    SELECT trace_id, device, launch_state, cause, sum(ns) AS ns
    FROM parts
    GROUP BY trace_id, device, launch_state, cause
    QUALIFY row_number() OVER (PARTITION BY trace_id, device, launch_state ORDER BY sum(ns) DESC, cause) = 1
),

main_ops AS (
    SELECT p.trace_id, p.device, p.launch_state, o.name
    FROM parts AS p
    JOIN main_causes AS c
        ON c.trace_id = p.trace_id AND c.device = p.device AND c.launch_state = p.launch_state AND c.cause = p.cause
    LEFT JOIN ops AS o ON o.trace_id = p.trace_id AND o.op_id = p.op_id
    GROUP BY p.trace_id, p.device, p.launch_state, o.name
    QUALIFY
        row_number() OVER (PARTITION BY p.trace_id, p.device, p.launch_state ORDER BY sum(p.ns) DESC, o.name NULLS LAST) = 1
)

SELECT
    l.run,
    l.rank,
    g.device,
    g.launch_state,
    g.gaps,
    g.idle_ns::BIGINT AS idle_ns,
    100.0 * g.idle_ns / nullif(w.idle_ns, 0) AS pct_of_idle,
    g.median_ns,
    g.max_ns,
    g.host_ns::BIGINT AS host_ns,
    g.after_launch_ns::BIGINT AS after_launch_ns,
    c.cause AS main_cause,
    100.0 * c.ns / nullif(g.idle_ns, 0) AS main_pct,
    o.name AS main_op
FROM stated AS g
JOIN labels AS l USING (trace_id)
JOIN whole AS w ON w.trace_id = g.trace_id AND w.device = g.device
LEFT JOIN main_causes AS c ON c.trace_id = g.trace_id AND c.device = g.device AND c.launch_state = g.launch_state
LEFT JOIN main_ops AS o ON o.trace_id = g.trace_id AND o.device = g.device AND o.launch_state = g.launch_state
WHERE l.run = coalesce($run::VARCHAR, l.run)
ORDER BY l.run, l.rank, g.device, g.idle_ns DESC, g.launch_state, g.trace_id
