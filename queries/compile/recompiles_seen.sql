-- title: Compilation in the recording
-- what: For each step the compilations that run in it, the code that had been compiled more than once, and the search for compiled code that fits.
-- value: Compilation in a steady step means that a guard fails again and again: mark sizes dynamic or pad them. TORCH_LOGS=recompiles says which guard.
-- needs: ops, ranges, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 50 -- rows to show for each trace, in order of time; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step; NULL if in none
-- column: kind VARCHAR -- compilation, variant (code of a function that had been compiled before) or lookup (guards are tried)
-- column: name VARCHAR -- as recorded; of compilations inside one another the outermost
-- column: frame BIGINT -- of compile id i/j, i: the number of the function or, after a graph break, of its rest; NULL if not recorded
-- column: variant BIGINT -- of compile id i/j, j: how often it had been compiled before
-- column: calls BIGINT count -- times in the step
-- column: first_ns BIGINT ns -- start of the first, from the start of the trace
-- column: host_ns BIGINT ns -- their length on the host
-- column: pct_of_step DOUBLE percent -- of the length of the step on the host
-- chart: bar x=step y=host_ns
-- order: run, rank, first_ns
-- example: traceq query recompiles_seen --run default

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

marks AS (
    SELECT s.*
    FROM host_spans AS s
    JOIN picked USING (trace_id)
),

told AS (
    SELECT
        *,
        CASE
            WHEN contains(name, '(dynamo_timed)') THEN 'compilation'
            WHEN starts_with(name, 'Torch-Compiled Region') THEN 'variant'
            WHEN starts_with(name, 'TorchDynamo Cache Lookup') THEN 'lookup'
            WHEN contains(name, '_data: ') AND contains(name, 'compile_id=') THEN 'id'
        END AS kind,
        CASE WHEN starts_with(name, 'Torch-Compiled') OR contains(name, 'compile_id=')
            THEN regexp_extract(name, '(?:Region: |compile_id=)(?:!\d+/)?(\d+)/(\d+)', ['frame', 'variant'])
        END AS id
    FROM marks
    WHERE
        contains(name, '(dynamo_timed)')
        OR starts_with(name, 'Torch-Compiled Region')
        OR starts_with(name, 'TorchDynamo Cache Lookup')
        OR contains(name, 'compile_id=')
),

-- Compilation consists of steps inside one another: the outermost of each thread.
nested AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY trace_id, pid, tid, kind ORDER BY start_ns, end_ns DESC, name ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM told
),

seen AS (
    SELECT
        trace_id,
        pid,
        tid,
        kind,
        name,
        start_ns,
        end_ns,
        TRY_CAST(id.frame AS BIGINT) AS frame,
        TRY_CAST(id.variant AS BIGINT) AS variant
    FROM nested
    WHERE kind <> 'compilation' OR before_ns IS NULL OR start_ns >= before_ns
),

ids AS (
    SELECT trace_id, pid, tid, start_ns, min(frame) AS frame, min(variant) AS variant
    FROM seen
    WHERE kind = 'id'
    GROUP BY trace_id, pid, tid, start_ns
),

-- The first mark inside a compilation that has its id; and the step: where steps overlap, the one that began last counts.
placed AS (
    SELECT
        e.trace_id,
        e.pid,
        e.kind,
        e.name,
        e.start_ns,
        e.end_ns,
        CASE WHEN e.kind = 'compilation' THEN CASE WHEN i.start_ns < e.end_ns THEN i.frame END ELSE e.frame END AS frame,
        CASE WHEN e.kind = 'compilation' THEN CASE WHEN i.start_ns < e.end_ns THEN i.variant END ELSE e.variant END AS variant,
        CASE WHEN e.start_ns < s.start_ns + s.dur_ns THEN s.step END AS step,
        CASE WHEN e.start_ns < s.start_ns + s.dur_ns THEN s.dur_ns END AS step_ns
    FROM seen AS e
    ASOF LEFT JOIN ids AS i ON e.trace_id = i.trace_id AND e.pid = i.pid AND e.tid = i.tid AND e.start_ns <= i.start_ns
    ASOF LEFT JOIN steps AS s ON e.trace_id = s.trace_id AND e.pid = s.pid AND e.start_ns >= s.start_ns
    WHERE e.kind IN ('compilation', 'lookup') OR (e.kind = 'variant' AND e.variant > 0)
),

grouped AS (
    SELECT
        trace_id,
        pid,
        step,
        kind,
        name,
        frame,
        variant,
        count(*) AS calls,
        min(start_ns) AS first_ns,
        sum(end_ns - start_ns)::BIGINT AS host_ns,
        max(step_ns) AS step_ns
    FROM placed
    GROUP BY trace_id, pid, step, kind, name, frame, variant
),

ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY trace_id ORDER BY first_ns, kind, name, frame, variant, pid) AS place
    FROM grouped
)

SELECT
    p.run,
    p.rank,
    g.step,
    g.kind,
    g.name,
    g.frame,
    g.variant,
    g.calls,
    g.first_ns,
    g.host_ns,
    100.0 * g.host_ns / nullif(g.step_ns, 0) AS pct_of_step
FROM ranked AS g
JOIN picked AS p USING (trace_id)
WHERE g.place <= coalesce($top::BIGINT, g.place)
ORDER BY p.run, p.rank, g.place, g.trace_id
