-- title: How full kernels keep the GPU
-- what: Kernels by name with their occupancy and what limits it, the SMs they leave empty, and waves of blocks, all weighted by time.
-- value: Empty SMs mean too small a grid: batch or fuse. Low occupancy hurts what waits for memory; GEMM and attention kernels do well with little.
-- needs: gpu_activities, devices
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- names to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- kernel name as recorded
-- column: category VARCHAR -- what the kernel computes
-- column: kernels BIGINT count -- kernels of that name and category
-- column: kernel_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; NULL if graph replays were not recorded
-- column: occupancy_pct DOUBLE percent -- of the warps that an SM can hold, as the profiler estimates it; computed likewise where it records none or, with over 48 KiB of shared memory, 0
-- column: limited_by VARCHAR -- what keeps occupancy below 100 for most of the time: grid, registers, shared memory or block size; NULL if nothing does or the GPU's limits are not known
-- column: low VARCHAR -- what to look at: SMs if over a quarter have no block; occupancy if below 50 % (not for gemm, conv, attention, rnn); never for comm; else NULL
-- column: empty_sms_pct DOUBLE percent -- SMs that get no block; NULL if the file does not list its devices
-- column: waves DOUBLE count -- that, over the blocks that an SM holds at a time; just above a whole number the last wave is nearly empty
-- column: blocks_per_sm DOUBLE count -- blocks of the grid over the number of SMs
-- column: threads BIGINT count -- threads in a block, the most
-- column: registers BIGINT count -- registers of a thread, the most
-- column: shared_bytes BIGINT bytes -- shared memory of a block, the most
-- chart: bar x=name y=kernel_ns
-- order: run, kernel_ns DESC
-- example: traceq query occupancy --run eager

WITH picked AS (
    SELECT trace_id, run, invisible_replays
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

seen AS (
    SELECT run, max(invisible_replays) = 0 AS is_whole
    FROM picked
    GROUP BY run
),

launched AS (
    SELECT
        p.run,
        a.trace_id,
        a.device,
        a.name,
        a.category,
        a.grid_x * a.grid_y * a.grid_z AS blocks,
        a.block_x * a.block_y * a.block_z AS threads,
        a.registers,
        a.shared_bytes,
        a.occupancy_pct AS recorded_pct,
        count(*) AS kernels,
        sum(a.dur_ns) AS kernel_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY ALL
),

-- What an SM has, by compute capability, as CUDA's occupancy calculator knows it; every SM has 65536 registers.
limits AS (
    SELECT *
    FROM (VALUES
        ('6.0', 64, 32, 65536, 0), ('6.1', 64, 32, 98304, 0), ('7.0', 64, 32, 98304, 0), ('7.2', 64, 32, 98304, 0), ('7.5', 32, 16, 65536, 0),
        ('8.0', 64, 32, 167936, 1024), ('8.6', 48, 16, 102400, 1024), ('8.7', 48, 16, 167936, 1024), ('8.9', 48, 24, 102400, 1024),
        ('9.0', 64, 32, 233472, 1024), ('10.0', 64, 32, 233472, 1024), ('10.3', 64, 32, 233472, 1024), ('12.0', 48, 24, 102400, 1024)
    ) AS t (compute_capability, warps, blocks, shared_bytes, reserved_bytes)
),

-- Blocks that an SM can hold at a time by each of its limits. Registers are dealt out to a warp in portions of 256 and to warps in fours.
held AS (
    SELECT
        k.*,
        k.blocks / nullif(d.sm_count, 0) AS blocks_per_sm,
        l.warps AS sm_warps,
        (k.threads + 31) // 32 AS warps,
        65536 // nullif((k.registers * 32 + 255) // 256 * 256, 0) // 4 * 4 // nullif((k.threads + 31) // 32, 0) AS by_registers,
        l.shared_bytes // nullif((k.shared_bytes + l.reserved_bytes + 127) // 128 * 128, 0) AS by_shared,
        least(l.warps // nullif((k.threads + 31) // 32, 0), l.blocks) AS by_block
    FROM launched AS k
    LEFT JOIN devices AS d ON d.trace_id = k.trace_id AND d.device = k.device
    LEFT JOIN limits AS l ON l.compute_capability = d.compute_capability
),

filled AS (
    SELECT
        *,
        CASE
            WHEN sm_warps IS NOT NULL AND blocks_per_sm IS NOT NULL AND by_registers IS NOT NULL
                THEN least(by_registers, coalesce(by_shared, by_block), by_block)
        END AS held_blocks
    FROM held
),

limited AS (
    SELECT
        *,
        coalesce(
            CASE WHEN recorded_pct > 0 OR coalesce(shared_bytes, 0) <= 49152 THEN recorded_pct END,
            100.0 * least(held_blocks, blocks_per_sm) * warps / nullif(sm_warps, 0)
        ) AS occupancy_pct,
        CASE
            WHEN least(held_blocks, blocks_per_sm) * warps >= sm_warps THEN NULL
            WHEN blocks_per_sm < held_blocks THEN 'grid'
            WHEN held_blocks = by_block THEN 'block size'
            WHEN held_blocks = by_registers THEN 'registers'
            WHEN held_blocks = by_shared THEN 'shared memory'
        END AS limited_by
    FROM filled
),

-- The limit that holds for most of the time.
limit_times AS (
    SELECT run, name, category, limited_by, sum(kernel_ns) AS ns
    FROM limited
    GROUP BY run, name, category, limited_by
    QUALIFY row_number() OVER (PARTITION BY run, name, category ORDER BY sum(kernel_ns) DESC, limited_by) = 1
),

named AS (
    SELECT
        run,
        name,
        category,
        sum(kernels) AS kernels,
        sum(kernel_ns) AS kernel_ns,
        sum(occupancy_pct * kernel_ns) / nullif(sum(kernel_ns) FILTER (occupancy_pct IS NOT NULL), 0) AS occupancy_pct,
        100.0 * sum(greatest(1 - blocks_per_sm, 0) * kernel_ns) / nullif(sum(kernel_ns) FILTER (blocks_per_sm IS NOT NULL), 0) AS empty_sms_pct,
        sum(blocks_per_sm * kernel_ns) / nullif(sum(kernel_ns) FILTER (blocks_per_sm IS NOT NULL), 0) AS blocks_per_sm,
        sum(blocks_per_sm / nullif(held_blocks, 0) * kernel_ns)
        / nullif(sum(kernel_ns) FILTER (blocks_per_sm / nullif(held_blocks, 0) IS NOT NULL), 0) AS waves,
        max(threads) AS threads,
        max(registers) AS registers,
        max(shared_bytes) AS shared_bytes
    FROM limited
    GROUP BY run, name, category
),

ranked AS (
    SELECT
        n.*,
        CASE WHEN s.is_whole THEN 100.0 * n.kernel_ns / nullif(sum(n.kernel_ns) OVER (PARTITION BY n.run), 0) END AS pct_of_kernel,
        row_number() OVER (PARTITION BY n.run ORDER BY n.kernel_ns DESC, n.name, n.category) AS place
    FROM named AS n
    JOIN seen AS s USING (run)
)

SELECT
    r.run,
    r.name,
    r.category,
    r.kernels::BIGINT AS kernels,
    r.kernel_ns::BIGINT AS kernel_ns,
    r.pct_of_kernel,
    r.occupancy_pct,
    l.limited_by,
    CASE
        WHEN r.category = 'comm' THEN NULL
        WHEN r.empty_sms_pct > 25 THEN 'SMs'
        WHEN r.occupancy_pct < 50 AND r.category NOT IN ('gemm', 'conv', 'attention', 'rnn') THEN 'occupancy'
    END AS low,
    r.empty_sms_pct,
    r.waves,
    r.blocks_per_sm,
    r.threads,
    r.registers,
    r.shared_bytes
FROM ranked AS r
JOIN limit_times AS l ON l.run = r.run AND l.name IS NOT DISTINCT FROM r.name AND l.category = r.category
WHERE r.place <= coalesce($top::BIGINT, r.place)
ORDER BY r.run, r.place
