-- title: The kernels that cost most
-- what: Kernels by name and category with their number and durations, the most kernel time first.
-- value: A few names usually hold most of the time; many calls of a small one mean launch overhead.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded
-- column: category VARCHAR -- what the kernel computes; one name can serve two, as an sgemm serves gemm and conv
-- column: origin VARCHAR -- library or compiler that made it
-- column: kernels BIGINT count -- kernels of that name and category
-- column: total_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; NULL if graph replays were not recorded
-- column: mean_ns DOUBLE ns -- mean duration
-- column: median_ns DOUBLE ns -- median duration
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query top_kernels --run eager -p top=5

WITH named AS (
    SELECT
        run,
        name,
        category,
        origin,
        count(*) AS kernels,
        sum(dur_ns)::BIGINT AS total_ns,
        avg(dur_ns) AS mean_ns,
        median(dur_ns) AS median_ns,
        min(dur_ns) AS min_ns,
        max(dur_ns) AS max_ns
    FROM kernels
    WHERE run = coalesce($run::VARCHAR, run)
    GROUP BY run, name, category, origin
),

seen AS (
    SELECT run, max(invisible_replays) = 0 AS is_whole
    FROM labels
    GROUP BY run
),

ranked AS (
    SELECT
        n.*,
        CASE WHEN s.is_whole THEN 100.0 * n.total_ns / nullif(sum(n.total_ns) OVER (PARTITION BY n.run), 0) END AS pct_of_kernel,
        row_number() OVER (PARTITION BY n.run ORDER BY n.total_ns DESC, n.name, n.category, n.origin) AS place
    FROM named AS n
    JOIN seen AS s USING (run)
)

SELECT
    run,
    name,
    category,
    origin,
    kernels,
    total_ns,
    pct_of_kernel,
    mean_ns,
    median_ns,
    min_ns,
    max_ns
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, total_ns DESC, name, category, origin
