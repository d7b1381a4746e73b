-- title: Triton kernels
-- what: Each Triton kernel, made by Inductor or written by hand, with its kind, calls, time and launch configuration; kernels of one name and different code are listed apart, ranks are summed.
-- value: A few long ones are worth a look at num_warps and the source; hundreds of short ones mean that fusion stops somewhere.
-- needs: gpu_activities, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- kernels to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded; of Inductor's, fused_ is followed by the operators inside
-- column: kind VARCHAR -- pointwise, reduction (looped), persistent (reduction), split scan, template, foreach, other (of Inductor), or handwritten (by a user or a library)
-- column: kernels BIGINT count -- kernels of that name and code
-- column: total_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; NULL if graph replays were not recorded
-- column: mean_ns DOUBLE ns -- mean duration
-- column: grid VARCHAR -- blocks as x,y,z, or how many different grids; NULL if not recorded
-- column: warps BIGINT -- num_warps as the launch records it (with record_shapes); NULL in graph replays, if not recorded or if it differs
-- column: stages BIGINT -- num_stages, likewise
-- column: config VARCHAR -- other launch arguments, e.g. XBLOCK=1024, likewise
-- column: registers BIGINT -- registers per thread; NULL if not recorded or if it differs
-- column: kernel_file VARCHAR -- source file as recorded at the launch; NULL in graph replays and for handwritten kernels
-- column: kernel_hash VARCHAR -- hash of the source, likewise
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query triton_kernels --run default -p top=5

WITH picked AS (
    SELECT trace_id, run, max(invisible_replays) OVER (PARTITION BY run) = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

whole AS (
    SELECT p.run, sum(a.dur_ns) AS kernel_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY p.run
),

-- Alike in all that is looked at below: few rows, so that JSON is read seldom.
alike AS (
    SELECT
        p.run,
        p.is_whole,
        a.name,
        a.origin,
        a.grid_x,
        a.grid_y,
        a.grid_z,
        a.registers,
        o.kernel_file,
        o.kernel_hash,
        o.details,
        count(*) AS kernels,
        sum(a.dur_ns) AS total_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
    WHERE a.kind = 'kernel' AND a.origin IN ('inductor', 'triton')
    GROUP BY ALL
),

told AS (
    SELECT
        *,
        CASE WHEN grid_x IS NOT NULL THEN concat_ws(',', grid_x, grid_y, grid_z) END AS grid,
        CASE WHEN details->>'$.kernel_backend' = 'triton' THEN TRY_CAST(details->>'$.num_warps' AS BIGINT) END AS warps,
        CASE WHEN details->>'$.kernel_backend' = 'triton' THEN TRY_CAST(details->>'$.num_stages' AS BIGINT) END AS stages,
        CASE WHEN details->>'$.kernel_backend' = 'triton' THEN details->>'$.kernel_kwargs' END AS config
    FROM alike
),

named AS (
    SELECT
        run,
        is_whole,
        name,
        kernel_file,
        kernel_hash,
        CASE
            WHEN any_value(origin) = 'triton' THEN 'handwritten'
            ELSE CASE regexp_extract(name, '^triton_([a-z]+)_', 1)
                WHEN 'poi' THEN 'pointwise'
                WHEN 'red' THEN 'reduction'
                WHEN 'per' THEN 'persistent'
                WHEN 'spl' THEN 'split scan'
                WHEN 'tem' THEN 'template'
                WHEN 'for' THEN 'foreach'
                ELSE 'other'
            END
        END AS kind,
        sum(kernels)::BIGINT AS kernels,
        sum(total_ns)::BIGINT AS total_ns,
        CASE WHEN count(DISTINCT grid) > 1 THEN count(DISTINCT grid) || ' grids' ELSE min(grid) END AS grid,
        CASE WHEN count(DISTINCT warps) = 1 THEN min(warps) END AS warps,
        CASE WHEN count(DISTINCT stages) = 1 THEN min(stages) END AS stages,
        CASE WHEN count(DISTINCT config) = 1 THEN min(config) END AS config,
        CASE WHEN count(DISTINCT registers) = 1 THEN min(registers) END AS registers
    FROM told
    GROUP BY run, is_whole, name, kernel_file, kernel_hash
),

ranked AS (
    SELECT
        n.*,
        CASE WHEN n.is_whole THEN 100.0 * n.total_ns / nullif(w.kernel_ns, 0) END AS pct_of_kernel,
        row_number() OVER (PARTITION BY n.run ORDER BY n.total_ns DESC, n.name, n.kernel_hash, n.kernel_file) AS place
    FROM named AS n
    JOIN whole AS w USING (run)
)

SELECT
    run,
    name,
    kind,
    kernels,
    total_ns,
    pct_of_kernel,
    total_ns / nullif(kernels, 0) AS mean_ns,
    grid,
    warps,
    stages,
    config,
    registers,
    kernel_file,
    kernel_hash
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
