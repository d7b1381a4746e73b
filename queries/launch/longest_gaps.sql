-- title: The longest idle times and why
-- what: Each gap of a device, the longest first, with its cause (that of its larger part), what shows it, the operator that was being dispatched and the work that ended it.
-- value: A few long gaps want a look at the host code around them; thousands of short ones want fewer launches (gap_causes).
-- needs: gaps, gap_parts
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- gaps to show for each run; NULL means all
-- param: min_ns BIGINT = 0 -- leave shorter gaps out
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: device BIGINT -- GPU
-- column: step BIGINT -- step of the work that ended the gap; NULL if it is in none
-- column: start_ns BIGINT ns -- start of the gap, from the first event of the trace
-- column: dur_ns BIGINT ns -- its length
-- column: cause VARCHAR -- why: cause of the larger part, of equal parts the host's
-- column: evidence VARCHAR -- what shows the cause: a call, operator, range or Python function; NULL where the cause says all
-- column: op VARCHAR -- operator that was being dispatched, or that waited; NULL if none was
-- column: host_ns BIGINT ns -- of dur_ns, until the launch call of the next work began; NULL if the call is not known
-- column: next_work VARCHAR -- kernel, copy or memset that ended the gap; NULL if none followed
-- order: run, dur_ns DESC
-- example: traceq query longest_gaps --run eager -p top=5

WITH listed AS NOT MATERIALIZED (
    SELECT l.run, l.rank, g.trace_id, g.gap_id, g.device, g.step, g.start_ns, g.dur_ns, g.host_ns, g.after_id
    FROM gaps AS g
    JOIN labels AS l USING (trace_id)
    WHERE
        l.run = coalesce($run::VARCHAR, l.run)
        AND g.dur_ns >= coalesce($min_ns::BIGINT, 0)
),

-- The length of the last gap that is shown: gaps are sorted only from there on. There are fewer lengths than gaps.
lengths AS (
    SELECT run, dur_ns, sum(count(*)) OVER (PARTITION BY run ORDER BY dur_ns DESC) AS gaps
    FROM listed
    GROUP BY run, dur_ns
),

least AS (
    SELECT run, coalesce(max(dur_ns) FILTER (gaps >= $top::BIGINT), 0) AS dur_ns
    FROM lengths
    GROUP BY run
),

long AS (
    SELECT *
    FROM listed
    WHERE $top::BIGINT IS NULL
    UNION ALL
    (
        SELECT g.*
        FROM listed AS g
        JOIN least AS t ON t.run = g.run AND g.dur_ns >= t.dur_ns
        WHERE $top::BIGINT IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY g.run ORDER BY g.dur_ns DESC, g.rank, g.device, g.start_ns, g.trace_id) <= $top::BIGINT
    )
),

-- The larger part of each; of two that are equal that before the launch.
larger AS (
    SELECT g.*, p.cause, p.evidence, p.op_id
    FROM long AS g
    LEFT JOIN gap_parts AS p
        ON p.trace_id = g.trace_id AND p.gap_id = g.gap_id AND (2 * p.ns > g.dur_ns OR (2 * p.ns = g.dur_ns AND p.part <> 'launch'))
)

SELECT
    g.run,
    g.rank,
    g.device,
    g.step,
    g.start_ns,
    g.dur_ns,
    g.cause,
    g.evidence,
    o.name AS op,
    g.host_ns,
    k.name AS next_work
FROM larger AS g
LEFT JOIN ops AS o ON o.trace_id = g.trace_id AND o.op_id = g.op_id
LEFT JOIN gpu_activities AS k ON k.trace_id = g.trace_id AND k.activity_id = g.after_id
ORDER BY g.run, g.dur_ns DESC, g.rank, g.device, g.start_ns, g.trace_id
