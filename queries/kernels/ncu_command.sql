-- title: How to profile one kernel with Nsight Compute
-- what: For each function the ncu command line that profiles one launch of it, within the first step recorded here.
-- value: Where a kernel costs most and should not, Nsight Compute says what limits it; without a filter it takes hours.
-- needs: gpu_activities, runs
-- layout: wrap
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: name VARCHAR = NULL -- kernel name, whole and as recorded; NULL means all kernels
-- param: top BIGINT = 20 -- functions to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: function VARCHAR -- name without namespaces, template and call arguments, as ncu matches it
-- column: total_ns BIGINT ns -- time of the kernels of that function
-- column: names BIGINT count -- different kernels that have this function's name: ncu cannot tell them apart by it
-- column: skip BIGINT count -- launches to let pass: those of a step, for each step before the first recorded one; 0 without steps
-- column: command VARCHAR -- the command line; the program is the one that was recorded, if that is known
-- order: run, total_ns DESC
-- example: traceq query ncu_command --run eager -p top=1

WITH picked AS (
    SELECT *, coalesce(short_name, name) AS function
    FROM kernels
    WHERE run = coalesce($run::VARCHAR, run)
),

wanted AS (
    SELECT DISTINCT run, function
    FROM picked
    WHERE $name::VARCHAR IS NULL OR name = $name::VARCHAR
),

early AS (
    SELECT l.run, min(s.step) AS step
    FROM steps AS s
    JOIN labels AS l USING (trace_id)
    GROUP BY l.run
),

counted AS (
    SELECT
        p.run,
        p.function,
        sum(p.dur_ns)::BIGINT AS total_ns,
        count(DISTINCT p.name) AS names,
        count(*) FILTER (p.step = e.step) // nullif(count(DISTINCT p.trace_id), 0) * any_value(e.step) AS skip,
        bool_or(p.graph_id IS NOT NULL) AS is_replayed
    FROM picked AS p
    JOIN wanted AS w ON w.run = p.run AND w.function = p.function
    LEFT JOIN early AS e ON e.run = p.run
    GROUP BY p.run, p.function
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, function) AS place
    FROM counted
)

SELECT
    k.run,
    k.function,
    k.total_ns,
    k.names,
    coalesce(k.skip, 0) AS skip,
    concat_ws(
        ' ',
        'ncu --set full --target-processes all',
        CASE WHEN k.is_replayed THEN '--graph-profiling node' END,
        '--kernel-name',
        CASE
            WHEN regexp_full_match(k.function, '[A-Za-z0-9_]+') THEN k.function
            ELSE '''' || replace(k.function, '''', '''\''''') || ''''
        END,
        '--launch-skip',
        coalesce(k.skip, 0),
        '--launch-count 1 -o kernel',
        coalesce(r.command, 'python YOUR_PROGRAM.py')
    ) AS command
FROM ranked AS k
JOIN runs AS r ON r.label = k.run
WHERE k.place <= coalesce($top::BIGINT, k.place)
ORDER BY k.run, k.place
