-- title: Kernel sizes in decades
-- what: Kernels and kernel time by decade of duration, with the shares of both.
-- value: Many kernels of a few µs that hold little time mean a launch-bound program.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: size VARCHAR -- the decade in words
-- column: from_ns BIGINT ns -- shortest duration of the decade
-- column: below_ns BIGINT ns -- first duration above it
-- column: kernels BIGINT count -- kernels in it
-- column: pct_of_kernels DOUBLE percent -- of all kernels of the run; NULL if graph replays were not recorded
-- column: kernel_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; likewise
-- chart: bar x=size y=kernels
-- order: run, from_ns
-- example: traceq query kernel_histogram --run eager

WITH decades AS (
    SELECT *
    FROM (VALUES
        (0, 1000, '< 1 µs'), (1000, 10000, '1–10 µs'), (10000, 100000, '10–100 µs'), (100000, 1000000, '0.1–1 ms'),
        (1000000, 10000000, '1–10 ms'), (10000000, 100000000, '10–100 ms'), (100000000, 1000000000, '0.1–1 s'),
        (1000000000, 9223372036854775807, '≥ 1 s')
    ) AS t (from_ns, below_ns, size)
),

sized AS (
    SELECT
        run,
        dur_ns,
        CASE
            WHEN dur_ns < 1000 THEN 0
            WHEN dur_ns < 10000 THEN 1000
            WHEN dur_ns < 100000 THEN 10000
            WHEN dur_ns < 1000000 THEN 100000
            WHEN dur_ns < 10000000 THEN 1000000
            WHEN dur_ns < 100000000 THEN 10000000
            WHEN dur_ns < 1000000000 THEN 100000000
            ELSE 1000000000
        END AS from_ns
    FROM kernels
    WHERE run = coalesce($run::VARCHAR, run)
),

counted AS (
    SELECT run, from_ns, count(*) AS kernels, sum(dur_ns) AS kernel_ns
    FROM sized
    GROUP BY run, from_ns
),

spanned AS (
    SELECT c.run, s.is_whole, d.*
    FROM (SELECT run, max(from_ns) AS longest_ns FROM counted GROUP BY run) AS c
    JOIN decades AS d ON d.from_ns <= c.longest_ns
    JOIN (SELECT run, max(invisible_replays) = 0 AS is_whole FROM labels GROUP BY run) AS s ON s.run = c.run
)

SELECT
    s.run,
    s.size,
    s.from_ns::BIGINT AS from_ns,
    s.below_ns::BIGINT AS below_ns,
    coalesce(c.kernels, 0) AS kernels,
    CASE WHEN s.is_whole THEN 100.0 * coalesce(c.kernels, 0) / nullif(sum(c.kernels) OVER (PARTITION BY s.run), 0) END AS pct_of_kernels,
    coalesce(c.kernel_ns, 0)::BIGINT AS kernel_ns,
    CASE WHEN s.is_whole THEN 100.0 * coalesce(c.kernel_ns, 0) / nullif(sum(c.kernel_ns) OVER (PARTITION BY s.run), 0) END AS pct_of_kernel
FROM spanned AS s
LEFT JOIN counted AS c ON c.run = s.run AND c.from_ns = s.from_ns
ORDER BY s.run, s.from_ns
