-- title: Kernels that do not always take the same time
-- what: Kernels of one name whose durations vary, with their spread, the two groups they fall into if they do, and what is left within one size.
-- value: Several grids or shapes under one name are harmless; a spread within one size is contention, the clock, or the cache, or depends on the data.
-- needs: gpu_activities, ops, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: min_kernels BIGINT = 10 -- names with fewer kernels are left out; NULL means 2
-- param: min_cv_pct DOUBLE = 10 -- names with a smaller coefficient of variation are left out; NULL means none
-- param: top BIGINT = 20 -- names to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded
-- column: category VARCHAR -- what the kernel computes
-- column: kernels BIGINT count -- kernels of that name and category
-- column: total_ns BIGINT ns -- sum of their durations
-- column: median_ns DOUBLE ns -- median
-- column: cv_pct DOUBLE percent -- coefficient of variation: std_ns of mean_ns
-- column: same_cv_pct DOUBLE percent -- cv_pct among kernels of one grid and block, and of one operator and shape where recorded; NULL if no two are alike
-- column: modes BIGINT count -- 2 if the durations fall into two groups far apart, else 1; NULL below 20 kernels, which may look so by chance
-- column: fast_kernels BIGINT count -- kernels in the faster group; NULL, as the next three, unless modes is 2
-- column: fast_ns DOUBLE ns -- their median
-- column: slow_kernels BIGINT count -- kernels in the slower group
-- column: slow_ns DOUBLE ns -- their median, at least a tenth above fast_ns
-- column: above_p10_ns DOUBLE ns -- time above p10_ns, summed: what would be gained if all were as fast as the fast tenth
-- column: grids BIGINT count -- sizes (grid and block) with which they were launched; NULL if not recorded of all
-- column: shapes BIGINT count -- operators and shapes of their inputs that launched them; NULL if not recorded of all
-- column: mean_ns DOUBLE ns -- mean duration
-- column: std_ns DOUBLE ns -- standard deviation of a sample (n - 1)
-- column: min_ns BIGINT ns -- shortest
-- column: p10_ns DOUBLE ns -- a tenth is shorter
-- column: p90_ns DOUBLE ns -- a tenth is longer
-- column: max_ns BIGINT ns -- longest
-- column: separation DOUBLE ratio -- how far: √2 · difference of means / √(sum of variances) (Ashman's D), 2 groups from 5 on; NULL if neither group varies
-- chart: bar x=name y=above_p10_ns
-- order: run, above_p10_ns DESC
-- example: traceq query kernel_variance --run eager

WITH kernel AS (
    SELECT *
    FROM kernels
    WHERE run = coalesce($run::VARCHAR, run)
),

-- spread is n² times the variance (of all, not of a sample): an exact integer.
named AS (
    SELECT
        run,
        name,
        category,
        count(*) AS kernels,
        sum(dur_ns) AS total_ns,
        count(*) * sum(dur_ns::HUGEINT * dur_ns) - sum(dur_ns) * sum(dur_ns) AS spread,
        min(dur_ns) AS min_ns,
        quantile_cont(dur_ns, [0.1, 0.5, 0.9]) AS quantiles,
        max(dur_ns) AS max_ns
    FROM kernel
    GROUP BY run, name, category
),

varied AS (
    SELECT
        *,
        row_number() OVER (ORDER BY run, name, category) AS id,
        total_ns / nullif(kernels, 0) AS mean_ns,
        sqrt(spread::DOUBLE / nullif(kernels * (kernels - 1), 0)) AS std_ns
    FROM named
    WHERE
        kernels >= greatest(coalesce($min_kernels::BIGINT, 2), 2)
        AND spread > 0
        AND 100.0 * sqrt(spread::DOUBLE / nullif(kernels * (kernels - 1), 0)) >= coalesce($min_cv_pct::DOUBLE, 0) * total_ns / nullif(kernels, 0)
),

-- Each duration and how often it occurs: far fewer rows than kernels.
counted AS (
    SELECT v.id, k.dur_ns, count(*) AS times
    FROM kernel AS k
    JOIN varied AS v ON v.run = k.run AND v.name IS NOT DISTINCT FROM k.name AND v.category = k.category
    GROUP BY v.id, k.dur_ns
),

above AS (
    SELECT v.id, sum(c.times * greatest(c.dur_ns - v.quantiles[1], 0)) AS above_p10_ns
    FROM counted AS c
    JOIN varied AS v USING (id)
    GROUP BY v.id
),

shown AS (
    SELECT v.*, a.above_p10_ns
    FROM varied AS v
    JOIN above AS a USING (id)
    QUALIFY
        $top::BIGINT IS NULL
        OR row_number() OVER (PARTITION BY v.run ORDER BY a.above_p10_ns DESC, v.total_ns DESC, v.id) <= $top::BIGINT
),

-- Two groups: parted where the ratio of neighbouring durations is largest, with at least a tenth of the kernels on either side.
neighbours AS (
    SELECT
        s.id,
        s.kernels,
        c.dur_ns,
        lead(c.dur_ns) OVER (PARTITION BY s.id ORDER BY c.dur_ns) / nullif(c.dur_ns, 0) AS ratio,
        sum(c.times) OVER (PARTITION BY s.id ORDER BY c.dur_ns) AS shorter
    FROM counted AS c
    JOIN shown AS s USING (id)
),

parted AS (
    SELECT id, dur_ns AS longest_fast_ns
    FROM neighbours
    WHERE kernels >= 20 AND ratio IS NOT NULL AND 10 * shorter >= kernels AND 10 * (kernels - shorter) >= kernels
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY ratio DESC, dur_ns) = 1
),

-- The operator around a graph launch says nothing of the kernels in it.
replays AS (
    SELECT trace_id, call_id
    FROM api_calls
    WHERE role = 'graph_launch'
),

chosen AS (
    SELECT
        s.id,
        k.trace_id,
        CASE WHEN (k.trace_id, k.launch_id) NOT IN (SELECT (trace_id, call_id) FROM replays) THEN k.op_id END AS op_id,
        k.dur_ns,
        k.dur_ns > p.longest_fast_ns AS is_slow,
        k.grid_x IS NOT NULL AS has_grid,
        {'grid': [k.grid_x, k.grid_y, k.grid_z], 'block': [k.block_x, k.block_y, k.block_z]} AS grid
    FROM kernel AS k
    JOIN shown AS s ON s.run = k.run AND s.name IS NOT DISTINCT FROM k.name AND s.category = k.category
    LEFT JOIN parted AS p ON p.id = s.id
),

sides AS (
    SELECT
        id,
        is_slow,
        count(*) AS kernels,
        median(dur_ns) AS median_ns,
        sum(dur_ns) / nullif(count(*), 0) AS mean_ns,
        (count(*) * sum(dur_ns::HUGEINT * dur_ns) - sum(dur_ns) * sum(dur_ns))::DOUBLE / nullif(count(*) * (count(*) - 1), 0) AS variance
    FROM chosen
    GROUP BY id, is_slow
),

split AS (
    SELECT
        f.id,
        f.kernels AS fast_kernels,
        f.median_ns AS fast_ns,
        s.kernels AS slow_kernels,
        s.median_ns AS slow_ns,
        sqrt(2) * (s.mean_ns - f.mean_ns) / nullif(sqrt(f.variance + s.variance), 0) AS separation
    FROM sides AS f
    JOIN sides AS s USING (id)
    WHERE NOT f.is_slow AND s.is_slow
),

-- Kernels of one size, and Σ (duration - their mean)².
alike AS (
    SELECT
        c.id,
        c.grid,
        {'op': o.name, 'dims': o.input_dims} AS shape,
        bool_and(c.has_grid) AS has_grid,
        o.input_dims IS NOT NULL AS has_shape,
        (count(*) * sum(c.dur_ns::HUGEINT * c.dur_ns) - sum(c.dur_ns) * sum(c.dur_ns))::DOUBLE / nullif(count(*), 0) AS squares
    FROM chosen AS c
    LEFT JOIN ops AS o ON o.trace_id = c.trace_id AND o.op_id = c.op_id
    GROUP BY c.id, c.grid, o.name, o.input_dims
),

sized AS (
    SELECT
        id,
        count(*) AS sizes,
        CASE WHEN bool_and(has_grid) THEN count(DISTINCT grid) END AS grids,
        CASE WHEN bool_and(has_shape) THEN count(DISTINCT shape) END AS shapes,
        sum(squares) AS squares
    FROM alike
    GROUP BY id
),

tested AS (
    SELECT
        s.*,
        z.* EXCLUDE (id),
        CASE WHEN p.slow_ns >= 1.1 * p.fast_ns AND coalesce(p.separation >= 5, true) THEN 2 WHEN s.kernels >= 20 THEN 1 END AS modes,
        p.* EXCLUDE (id)
    FROM shown AS s
    JOIN sized AS z USING (id)
    LEFT JOIN split AS p USING (id)
)

SELECT
    run,
    name,
    category,
    kernels,
    total_ns::BIGINT AS total_ns,
    quantiles[2] AS median_ns,
    100.0 * std_ns / nullif(mean_ns, 0) AS cv_pct,
    100.0 * sqrt(squares / nullif(kernels - sizes, 0)) / nullif(mean_ns, 0) AS same_cv_pct,
    modes::BIGINT AS modes,
    CASE WHEN modes = 2 THEN fast_kernels END AS fast_kernels,
    CASE WHEN modes = 2 THEN fast_ns END AS fast_ns,
    CASE WHEN modes = 2 THEN slow_kernels END AS slow_kernels,
    CASE WHEN modes = 2 THEN slow_ns END AS slow_ns,
    above_p10_ns,
    grids,
    shapes,
    mean_ns,
    std_ns,
    min_ns,
    quantiles[1] AS p10_ns,
    quantiles[3] AS p90_ns,
    max_ns,
    separation
FROM tested
ORDER BY run, above_p10_ns DESC, total_ns DESC, id
