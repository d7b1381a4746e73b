-- title: Each kernel with its launch, as nsys lists them
-- what: Kernels whose launch was recorded, in order of their launches: time in the call, in the queue and in the kernel, as nsys stats has it.
-- value: Shows where the queue drains: there the GPU waits for the host. cuda_kern_exec_sum sums it up.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 100 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: api_start_ns BIGINT ns -- start of the call, from the first event of the trace
-- column: api_dur_ns BIGINT ns -- its length
-- column: queue_start_ns BIGINT ns -- its end; NULL if the kernel started before
-- column: queue_dur_ns BIGINT ns -- from there to the start of the kernel; likewise
-- column: kernel_start_ns BIGINT ns -- start of the kernel
-- column: kernel_dur_ns BIGINT ns -- its duration
-- column: total_dur_ns BIGINT ns -- from the start of the call to the end of the kernel, or of the call if that is later
-- column: pid BIGINT -- process that launched, as the system numbers it; NULL if not recorded
-- column: tid VARCHAR -- thread that launched, as recorded
-- column: device BIGINT -- GPU
-- column: api_name VARCHAR -- name of the call as nsys prints it: as recorded, without _v and four digits at its end
-- column: grid_xyz VARCHAR -- blocks of the grid as x,y,z; NULL if not recorded
-- column: block_xyz VARCHAR -- threads of a block as x,y,z; NULL if not recorded
-- column: kernel_name VARCHAR -- name of the kernel
-- order: run, api_start_ns
-- example: traceq query cuda_kern_exec_trace --run eager -p top=5

WITH launched AS (
    SELECT
        l.run,
        l.rank,
        a.trace_id,
        a.activity_id,
        c.pid,
        c.tid,
        a.device,
        c.recorded_name,
        a.name,
        c.start_ns AS api_start_ns,
        c.dur_ns AS api_ns,
        CASE WHEN a.start_ns >= c.start_ns + c.dur_ns THEN a.start_ns - c.start_ns - c.dur_ns END AS queue_ns,
        a.start_ns AS kernel_start_ns,
        a.dur_ns AS kernel_ns,
        greatest(c.start_ns + c.dur_ns, a.start_ns + a.dur_ns) - c.start_ns AS total_ns,
        CASE WHEN a.grid_x IS NOT NULL THEN concat_ws(',', a.grid_x, a.grid_y, a.grid_z) END AS grid_xyz,
        CASE WHEN a.block_x IS NOT NULL THEN concat_ws(',', a.block_x, a.block_y, a.block_z) END AS block_xyz
    FROM gpu_activities AS a
    JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
    JOIN labels AS l ON l.trace_id = a.trace_id
    WHERE a.kind = 'kernel' AND l.run = coalesce($run::VARCHAR, l.run)
    QUALIFY
        $top::BIGINT IS NULL
        OR row_number() OVER (PARTITION BY l.run ORDER BY c.start_ns, l.rank, a.trace_id, c.call_id, a.activity_id) <= $top::BIGINT
)

SELECT
    g.run,
    g.rank,
    g.api_start_ns,
    g.api_ns AS api_dur_ns,
    CASE WHEN g.queue_ns IS NOT NULL THEN g.api_start_ns + g.api_ns END AS queue_start_ns,
    g.queue_ns AS queue_dur_ns,
    g.kernel_start_ns,
    g.kernel_ns AS kernel_dur_ns,
    g.total_ns AS total_dur_ns,
    coalesce(p.os_pid, try_cast(g.pid AS BIGINT)) AS pid,
    g.tid,
    g.device,
    regexp_replace(g.recorded_name, '_v.{4}$', '') AS api_name,
    g.grid_xyz,
    g.block_xyz,
    g.name AS kernel_name
FROM launched AS g
LEFT JOIN processes AS p ON p.trace_id = g.trace_id AND p.pid = g.pid
ORDER BY g.run, g.api_start_ns, g.rank, g.trace_id, g.activity_id
