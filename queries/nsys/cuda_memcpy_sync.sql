-- title: Copies that hold the host up, as nsys finds them
-- what: Copies by a cudaMemcpy… (or HIP's) that is not Async, but for those of up to 64,000 bytes to the device and those within a device, as nsys analyze has it; but copy and call must be of one process.
-- value: Each stops the host until it is done: pin the memory, and copy with non_blocking=True.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 50 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: dur_ns BIGINT ns -- duration of the copy on the GPU
-- column: start_ns BIGINT ns -- its start, from the first event of the trace
-- column: src_kind VARCHAR -- memory read: Pageable, Pinned, Device, …; NULL if not recorded
-- column: dst_kind VARCHAR -- memory written, likewise
-- column: bytes BIGINT bytes -- bytes copied; NULL if not recorded
-- column: pid BIGINT -- process that copies, as the system numbers it; NULL if not recorded
-- column: device BIGINT -- GPU
-- column: context BIGINT -- CUDA context; NULL if not recorded
-- column: green_context BIGINT -- green context; NULL if there is none
-- column: stream BIGINT -- stream; NULL if not recorded
-- column: api_name VARCHAR -- name of the call as nsys prints it: as recorded, without _v and four digits at its end
-- chart: bar x=start_ns y=dur_ns
-- order: run, dur_ns DESC
-- example: traceq query cuda_memcpy_sync --run streams -p top=5

WITH copies AS (
    SELECT l.run, l.rank, c.recorded_name, a.*
    FROM gpu_activities AS a
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    JOIN labels AS l ON l.trace_id = a.trace_id
    WHERE
        l.run = coalesce($run::VARCHAR, l.run)
        AND a.kind = 'memcpy'
        AND regexp_matches(c.recorded_name, '^(cuda|hip)Memcpy')
        AND NOT contains(c.recorded_name, 'Async')
        AND NOT coalesce(a.copy_kind = 'HtoD' AND a.bytes <= 64000, false)
        AND NOT coalesce(a.src_device = a.dst_device, false)
    QUALIFY
        $top::BIGINT IS NULL
        OR row_number() OVER (PARTITION BY l.run ORDER BY a.dur_ns DESC, l.rank, a.start_ns, a.trace_id, a.activity_id) <= $top::BIGINT
)

SELECT
    c.run,
    c.rank,
    c.dur_ns,
    c.start_ns,
    c.src_kind,
    c.dst_kind,
    c.bytes,
    coalesce(p.os_pid, try_cast(c.pid AS BIGINT)) AS pid,
    c.device,
    c.context,
    c.green_context,
    c.stream,
    regexp_replace(c.recorded_name, '_v.{4}$', '') AS api_name
FROM copies AS c
LEFT JOIN processes AS p ON p.trace_id = c.trace_id AND p.pid = c.pid
ORDER BY c.run, c.dur_ns DESC, c.rank, c.start_ns, c.trace_id, c.activity_id
