-- title: Everything that the GPU did, as nsys lists it
-- what: Kernels, copies, memsets and whole graphs in order of their start, as nsys stats has it.
-- value: The raw rows, for a look at one place; sums and causes are in the other questions.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 100 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: start_ns BIGINT ns -- start, from the first event of the trace
-- column: dur_ns BIGINT ns -- duration
-- column: corr_id BIGINT -- correlation id, which it shares with its launch in the same process; NULL if not recorded
-- column: grid_x BIGINT count -- blocks of the grid in x; NULL for all but kernels, or if not recorded
-- column: grid_y BIGINT count -- blocks of the grid in y; NULL for all but kernels, or if not recorded
-- column: grid_z BIGINT count -- blocks of the grid in z; NULL for all but kernels, or if not recorded
-- column: block_x BIGINT count -- threads of a block in x; NULL for all but kernels, or if not recorded
-- column: block_y BIGINT count -- threads of a block in y; NULL for all but kernels, or if not recorded
-- column: block_z BIGINT count -- threads of a block in z; NULL for all but kernels, or if not recorded
-- column: registers BIGINT count -- registers of a thread; likewise
-- column: static_shared_bytes BIGINT bytes -- static shared memory of a block; likewise, and in Kineto traces
-- column: dynamic_shared_bytes BIGINT bytes -- dynamic shared memory of a block; likewise
-- column: shared_bytes BIGINT bytes -- both together; NULL for all but kernels, or if not recorded
-- column: bytes BIGINT bytes -- bytes copied or set; NULL for a kernel, or if not recorded
-- column: bytes_per_s DOUBLE -- those over the duration; nsys prints a little less, since it rounds operations a second down to a whole number
-- column: src_kind VARCHAR -- memory read: Pageable, Pinned, Device, …; NULL for all but copies, or if not recorded
-- column: dst_kind VARCHAR -- memory written, likewise of copies and memsets
-- column: device VARCHAR -- GPU, as NAME (NUMBER)
-- column: context BIGINT -- CUDA context; NULL if not recorded
-- column: green_context BIGINT -- green context; NULL if there is none
-- column: stream BIGINT -- stream; NULL if not recorded
-- column: name VARCHAR -- name of the kernel, or [CUDA memcpy …], [CUDA memset]
-- order: run, start_ns
-- example: traceq query cuda_gpu_trace --run overlap -p top=5

WITH operations AS (
    FROM (
        VALUES
            ('HtoD', 'Host-to-Device'), ('DtoH', 'Device-to-Host'), ('HtoA', 'Host-to-Array'), ('AtoH', 'Array-to-Host'),
            ('AtoA', 'Array-to-Array'), ('AtoD', 'Array-to-Device'), ('DtoA', 'Device-to-Array'), ('DtoD', 'Device-to-Device'),
            ('HtoH', 'Host-to-Host'), ('PtoP', 'Peer-to-Peer')
    ) AS v (copy_kind, label)
),

works AS (
    SELECT l.run, l.rank, a.*
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
    QUALIFY
        $top::BIGINT IS NULL
        OR row_number() OVER (PARTITION BY l.run ORDER BY a.start_ns, l.rank, a.trace_id, a.activity_id) <= $top::BIGINT
)

SELECT
    w.run,
    w.rank,
    w.start_ns,
    w.dur_ns,
    w.correlation_id AS corr_id,
    w.grid_x,
    w.grid_y,
    w.grid_z,
    w.block_x,
    w.block_y,
    w.block_z,
    w.registers,
    w.static_shared_bytes,
    w.dynamic_shared_bytes,
    w.shared_bytes,
    w.bytes,
    w.bytes * 1e9 / nullif(w.dur_ns, 0) AS bytes_per_s,
    w.src_kind,
    w.dst_kind,
    concat(d.name || ' ', '(', w.device, ')') AS device,
    w.context,
    w.green_context,
    w.stream,
    CASE
        WHEN w.kind NOT IN ('memcpy', 'memset') THEN w.name
        ELSE CASE
            WHEN w.kind = 'memset' THEN '[CUDA memset]'
            ELSE concat('[CUDA memcpy ', CASE WHEN contains(w.name, '(Unified)') THEN 'Unified ' END, coalesce(o.label, 'Unknown'), ']')
        END
    END AS name
FROM works AS w
LEFT JOIN operations AS o ON o.copy_kind = w.copy_kind
LEFT JOIN devices AS d ON d.trace_id = w.trace_id AND d.device = w.device
ORDER BY w.run, w.start_ns, w.rank, w.trace_id, w.activity_id
