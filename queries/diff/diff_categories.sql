-- title: Two runs compared by category
-- what: Kernel time and kernels of each category per step in two runs, and the difference, second less first.
-- value: Heavy categories should agree; what the compiler fused moves from elementwise, norm and copy to fused_*.
-- needs: gpu_activities, steps
-- param: a VARCHAR = NULL -- label of the first run; NULL means the oldest other than b
-- param: b VARCHAR = NULL -- label of the second run; NULL means the oldest other than a
-- column: category VARCHAR -- what the kernels compute, by name on both sides; all is every kernel
-- column: a_ns DOUBLE ns -- kernel time in a; NULL if it has no kernels at all
-- column: b_ns DOUBLE ns -- kernel time in b; likewise
-- column: delta_ns DOUBLE ns -- b less a
-- column: delta_pct DOUBLE percent -- of a; NULL where a has none
-- column: a_kernels DOUBLE count -- kernels in a
-- column: b_kernels DOUBLE count -- kernels in b
-- column: per VARCHAR -- step (of any rank), or trace where one side has no steps that count
-- column: a_steps BIGINT count -- steps of a that count
-- column: b_steps BIGINT count -- steps of b that count
-- column: a_run VARCHAR -- label of the first run
-- column: b_run VARCHAR -- label of the second run
-- chart: bar x=category y=delta_ns
-- order: all first, greatest |delta_ns| first
-- example: traceq query diff_categories -p a=eager -p b=default

WITH asked AS (
    SELECT
        a.label AS a,
        coalesce($b::VARCHAR, (SELECT label FROM runs WHERE label <> a.label ORDER BY run_id LIMIT 1)) AS b
    FROM (
        SELECT coalesce($a::VARCHAR, (SELECT label FROM runs WHERE label IS DISTINCT FROM $b::VARCHAR ORDER BY run_id LIMIT 1)) AS label
    ) AS a
),

sides AS (
    SELECT 'a' AS side, l.trace_id FROM labels AS l JOIN asked AS q ON l.run = q.a
    UNION ALL
    SELECT 'b' AS side, l.trace_id FROM labels AS l JOIN asked AS q ON l.run = q.b
),

good AS (
    SELECT i.side, s.trace_id, s.pid, s.step
    FROM good_steps AS s
    JOIN sides AS i USING (trace_id)
),

counted AS (
    SELECT
        count(*) FILTER (side = 'a') AS a_steps,
        count(*) FILTER (side = 'b') AS b_steps,
        count(*) FILTER (side = 'a') > 0 AND count(*) FILTER (side = 'b') > 0 AS is_per_step
    FROM good
),

kernel AS (
    SELECT i.side, k.category_by_name AS category, k.dur_ns
    FROM gpu_activities AS k
    JOIN sides AS i USING (trace_id)
    CROSS JOIN counted AS c
    LEFT JOIN good AS g ON g.side = i.side AND g.trace_id = k.trace_id AND g.pid = k.pid AND g.step = k.step
    WHERE k.kind = 'kernel' AND (NOT c.is_per_step OR g.step IS NOT NULL)
),

summed AS (
    SELECT
        coalesce(category, 'all') AS category,
        coalesce(sum(dur_ns) FILTER (side = 'a'), 0) AS a_ns,
        coalesce(sum(dur_ns) FILTER (side = 'b'), 0) AS b_ns,
        count(*) FILTER (side = 'a') AS a_kernels,
        count(*) FILTER (side = 'b') AS b_kernels
    FROM kernel
    GROUP BY GROUPING SETS ((), (category))
),

-- What the sums are divided by: steps, or traces. A side without any kernel has no kernel time: not recorded is not zero.
parts AS (
    SELECT
        c.*,
        CASE WHEN c.is_per_step THEN c.a_steps ELSE (SELECT count(*) FROM sides WHERE side = 'a') END AS a_parts,
        CASE WHEN c.is_per_step THEN c.b_steps ELSE (SELECT count(*) FROM sides WHERE side = 'b') END AS b_parts,
        h.a_has,
        h.b_has
    FROM counted AS c
    CROSS JOIN (
        SELECT count(*) FILTER (i.side = 'a') > 0 AS a_has, count(*) FILTER (i.side = 'b') > 0 AS b_has
        FROM gpu_activities AS k
        JOIN sides AS i USING (trace_id)
        WHERE k.kind = 'kernel'
    ) AS h
),

scaled AS (
    SELECT
        s.category,
        p.is_per_step,
        p.a_steps,
        p.b_steps,
        CASE WHEN p.a_has THEN s.a_ns / nullif(p.a_parts, 0) END AS a_ns,
        CASE WHEN p.b_has THEN s.b_ns / nullif(p.b_parts, 0) END AS b_ns,
        s.a_kernels / nullif(p.a_parts, 0) AS a_kernels,
        s.b_kernels / nullif(p.b_parts, 0) AS b_kernels
    FROM summed AS s
    CROSS JOIN parts AS p
)

SELECT
    s.category,
    s.a_ns,
    s.b_ns,
    s.b_ns - s.a_ns AS delta_ns,
    100.0 * (s.b_ns - s.a_ns) / nullif(s.a_ns, 0) AS delta_pct,
    s.a_kernels,
    s.b_kernels,
    CASE WHEN s.is_per_step THEN 'step' ELSE 'trace' END AS per,
    s.a_steps,
    s.b_steps,
    q.a AS a_run,
    q.b AS b_run
FROM scaled AS s
CROSS JOIN asked AS q
WHERE q.a IS NOT NULL AND q.b IS NOT NULL
ORDER BY s.category <> 'all', abs(s.b_ns - s.a_ns) DESC, s.category
