-- title: Time in CUDA calls
-- what: Each call of the CUDA (or HIP) API by name: how often, how long, what it is for, and its share of the time of the threads that make it; over all ranks of a run.
-- value: Launches cost a few µs each and add up; a long median of a synchronising call is waiting, of an allocating one a cost of its own.
-- needs: api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- names to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- name of the call
-- column: role VARCHAR -- launch, graph_launch, memcpy, memset, sync, wait, alloc, load or other
-- column: threads BIGINT count -- threads that make it
-- column: calls BIGINT count -- calls
-- column: total_ns BIGINT ns -- sum of their lengths
-- column: pct_of_thread DOUBLE percent -- of the time of these threads, each from the first start to the last end of its calls, operators and ranges
-- column: median_ns DOUBLE ns -- median length
-- column: max_ns BIGINT ns -- longest
-- column: calls_per_step DOUBLE count -- in steps that count, over their number; NULL without such steps
-- column: ns_per_step DOUBLE ns -- likewise, their length
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query api_time --run eager

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

ends AS (
    SELECT trace_id, pid, tid, min(start_ns) AS first_ns, max(start_ns + dur_ns) AS last_ns
    FROM api_calls
    GROUP BY trace_id, pid, tid
    UNION ALL
    SELECT trace_id, pid, tid, min(start_ns), max(start_ns + dur_ns)
    FROM ops
    GROUP BY trace_id, pid, tid
    UNION ALL
    SELECT trace_id, pid, tid, min(start_ns), max(start_ns + dur_ns)
    FROM ranges
    WHERE kind <> 'window' AND dur_ns IS NOT NULL
    GROUP BY trace_id, pid, tid
),

threads_seen AS (
    SELECT trace_id, pid, tid, max(last_ns) - min(first_ns) AS span_ns
    FROM ends
    GROUP BY trace_id, pid, tid
),

callers AS (
    SELECT c.trace_id, c.pid, c.tid, c.name, c.role, p.run
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    GROUP BY ALL
),

callers_summed AS (
    SELECT c.run, c.name, c.role, count(*) AS threads, sum(t.span_ns) AS span_ns
    FROM callers AS c
    JOIN threads_seen AS t
        ON t.trace_id = c.trace_id AND t.pid IS NOT DISTINCT FROM c.pid AND t.tid IS NOT DISTINCT FROM c.tid
    GROUP BY c.run, c.name, c.role
),

steps_counted AS (
    SELECT p.run, count(*) AS steps
    FROM good_steps AS g
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

named AS (
    SELECT
        p.run,
        c.name,
        c.role,
        count(*) AS calls,
        sum(c.dur_ns)::BIGINT AS total_ns,
        median(c.dur_ns) AS median_ns,
        max(c.dur_ns) AS max_ns,
        count(g.step) AS stepped,
        coalesce(sum(c.dur_ns) FILTER (g.step IS NOT NULL), 0) AS stepped_ns
    FROM api_calls AS c
    JOIN picked AS p USING (trace_id)
    LEFT JOIN good_steps AS g ON g.trace_id = c.trace_id AND g.pid = c.pid AND g.step = c.step
    GROUP BY p.run, c.name, c.role
    QUALIFY row_number() OVER (PARTITION BY p.run ORDER BY total_ns DESC, c.name, c.role) <= coalesce($top::BIGINT, 9223372036854775807)
)

SELECT
    n.run,
    n.name,
    n.role,
    t.threads,
    n.calls,
    n.total_ns,
    100.0 * n.total_ns / nullif(t.span_ns, 0) AS pct_of_thread,
    n.median_ns,
    n.max_ns,
    n.stepped / nullif(s.steps, 0) AS calls_per_step,
    n.stepped_ns / nullif(s.steps, 0) AS ns_per_step
FROM named AS n
JOIN callers_summed AS t ON t.run = n.run AND t.name IS NOT DISTINCT FROM n.name AND t.role = n.role
LEFT JOIN steps_counted AS s ON s.run = n.run
ORDER BY n.run, n.total_ns DESC, n.name, n.role
