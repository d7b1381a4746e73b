-- title: Kernels by name, grid and block, as nsys sums them
-- what: Kernels by name and launch size with number and durations, all processes, devices and streams of a run together, as nsys stats has it.
-- value: Tells small calls of a kernel from large ones: a name whose time lies in tiny grids leaves most of the GPU empty.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: names VARCHAR = 'demangled' -- demangled: the full name; base: without types and arguments; mangled: as compiled, where recorded
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: time_pct DOUBLE percent -- of the time of all kernels of the run; NULL if graph replays were not recorded
-- column: total_ns BIGINT ns -- sum of their durations, overlapping or not
-- column: instances BIGINT count -- kernels
-- column: avg_ns DOUBLE ns -- mean
-- column: med_ns DOUBLE ns -- median; of an even number the mean of the two in the middle
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- column: stddev_ns DOUBLE ns -- standard deviation of a sample (n - 1); 0 for one
-- column: grid_x BIGINT count -- blocks of the grid in x; NULL if not recorded
-- column: grid_y BIGINT count -- blocks of the grid in y; NULL if not recorded
-- column: grid_z BIGINT count -- blocks of the grid in z; NULL if not recorded
-- column: block_x BIGINT count -- threads of a block in x; NULL if not recorded
-- column: block_y BIGINT count -- threads of a block in y; NULL if not recorded
-- column: block_z BIGINT count -- threads of a block in z; NULL if not recorded
-- column: name VARCHAR -- name of the kernel
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query cuda_gpu_kern_gb_sum --run eager -p top=5

WITH named AS (
    SELECT
        run,
        CASE $names::VARCHAR WHEN 'base' THEN short_name WHEN 'mangled' THEN coalesce(mangled_name, name) ELSE name END AS kernel,
        grid_x,
        grid_y,
        grid_z,
        block_x,
        block_y,
        block_z,
        count(*) AS instances,
        sum(dur_ns)::BIGINT AS total_ns,
        sum(dur_ns) / nullif(count(dur_ns), 0) AS avg_ns,
        median(dur_ns) AS med_ns,
        min(dur_ns) AS min_ns,
        max(dur_ns) AS max_ns,
        coalesce(sqrt((count(dur_ns) * sum(dur_ns::HUGEINT * dur_ns) - sum(dur_ns) * sum(dur_ns))::DOUBLE / nullif(count(dur_ns) * (count(dur_ns) - 1), 0)), 0) AS stddev_ns
    FROM kernels
    WHERE run = coalesce($run::VARCHAR, run)
    GROUP BY run, kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z
),

seen AS (
    SELECT run, max(invisible_replays) = 0 AS is_whole
    FROM labels
    GROUP BY run
),

ranked AS (
    SELECT
        n.*,
        CASE WHEN s.is_whole THEN 100.0 * n.total_ns / nullif(sum(n.total_ns) OVER (PARTITION BY n.run), 0) END AS time_pct,
        row_number() OVER (PARTITION BY n.run ORDER BY n.total_ns DESC, n.kernel, n.grid_x, n.grid_y, n.grid_z, n.block_x, n.block_y, n.block_z) AS place
    FROM named AS n
    JOIN seen AS s USING (run)
)

SELECT
    run,
    time_pct,
    total_ns,
    instances,
    avg_ns,
    med_ns,
    min_ns,
    max_ns,
    stddev_ns,
    grid_x,
    grid_y,
    grid_z,
    block_x,
    block_y,
    block_z,
    kernel AS name
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
