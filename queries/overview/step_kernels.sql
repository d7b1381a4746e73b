-- title: Kernels that differ between steps
-- what: Kernels of which the steps that count do not all launch the same number, with that number in each step.
-- value: A steady program has none; a changing shape, a logging step or a recompilation shows here.
-- needs: gpu_activities, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 50 -- kernels to show for each trace; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: min_per_step BIGINT count -- fewest in a step that counts
-- column: max_per_step BIGINT count -- most in a step that counts
-- column: steps VARCHAR -- how many in which steps, e.g. 0 in step 3; 2 in 6 steps
-- column: name VARCHAR -- kernel name as recorded
-- column: category VARCHAR -- what the kernel computes, by its name
-- column: kernels BIGINT count -- in all steps that count
-- column: kernel_ns BIGINT ns -- sum of their durations
-- order: run, rank, kernel_ns DESC, name
-- example: traceq query step_kernels --run eager

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

good AS (
    SELECT g.trace_id, g.pid, g.step, count(*) OVER (PARTITION BY g.trace_id, g.pid) AS steps
    FROM good_steps AS g
    JOIN picked AS p USING (trace_id)
),

counted AS (
    SELECT
        a.trace_id,
        a.pid,
        a.name,
        a.step,
        g.steps,
        any_value(a.category_by_name) AS category,
        count(*) AS kernels,
        sum(a.dur_ns) AS kernel_ns
    FROM gpu_activities AS a
    JOIN good AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    WHERE a.kind = 'kernel'
    GROUP BY a.trace_id, a.pid, a.name, a.step, g.steps
),

differing AS (
    SELECT
        trace_id,
        pid,
        name,
        any_value(category) AS category,
        CASE WHEN count(*) < steps THEN 0 ELSE min(kernels) END AS min_per_step,
        max(kernels) AS max_per_step,
        sum(kernels) AS kernels,
        sum(kernel_ns) AS kernel_ns
    FROM counted
    GROUP BY trace_id, pid, name, steps
    HAVING count(*) < steps OR min(kernels) < max(kernels)
),

ranked AS (
    SELECT d.*, p.run, p.rank, row_number() OVER (PARTITION BY trace_id ORDER BY d.kernel_ns DESC, d.name, d.pid) AS place
    FROM differing AS d
    JOIN picked AS p USING (trace_id)
    QUALIFY place <= coalesce($top::BIGINT, place)
),

-- Every step that counts for each of them; one without the kernel has 0 of it.
per_count AS (
    SELECT r.trace_id, r.pid, r.name, coalesce(c.kernels, 0) AS kernels, count(*) AS steps, list(g.step ORDER BY g.step)[:4] AS first_steps
    FROM ranked AS r
    JOIN good AS g ON g.trace_id = r.trace_id AND g.pid = r.pid
    LEFT JOIN counted AS c ON c.trace_id = r.trace_id AND c.pid = r.pid AND c.step = g.step AND c.name IS NOT DISTINCT FROM r.name
    GROUP BY ALL
),

listed AS (
    SELECT
        trace_id,
        pid,
        name,
        string_agg(
            CASE
                WHEN steps > 4 THEN format('{} in {} steps', kernels, steps)
                ELSE format('{} in step {}', kernels, array_to_string(first_steps, ', '))
            END, '; ' ORDER BY kernels
        ) AS steps
    FROM per_count
    GROUP BY trace_id, pid, name
)

SELECT
    r.run,
    r.rank,
    r.min_per_step,
    r.max_per_step,
    l.steps,
    r.name,
    r.category,
    r.kernels::BIGINT AS kernels,
    r.kernel_ns::BIGINT AS kernel_ns
FROM ranked AS r
JOIN listed AS l ON l.trace_id = r.trace_id AND l.pid = r.pid AND l.name IS NOT DISTINCT FROM r.name
ORDER BY r.run, r.rank, r.trace_id, r.place
