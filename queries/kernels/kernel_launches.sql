-- title: Each launch of a kernel
-- what: Kernels one by one in order of time: when, how long, on which stream, for which operator, how launched.
-- value: Shows whether a kernel is slow always or sometimes, and whether it waited for its launch or for the GPU.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: name VARCHAR = NULL -- kernel name, whole and as recorded; NULL means all
-- param: top BIGINT = 100 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank, if the file says
-- column: step BIGINT -- step that launched it; NULL outside of steps
-- column: start_ns BIGINT ns -- when it began
-- column: dur_ns BIGINT ns -- how long it took
-- column: device BIGINT -- GPU
-- column: stream BIGINT -- stream
-- column: op VARCHAR -- innermost operator around its launch; of a graph's kernel that around the graph launch
-- column: latency_ns BIGINT ns -- from the start of its launch call; NULL if that is not in the trace
-- column: queue_ns BIGINT ns -- from the end of its launch call; NULL if it began before, too
-- column: grid VARCHAR -- blocks in x, y, z
-- column: block VARCHAR -- threads of a block in x, y, z
-- column: registers BIGINT count -- registers of a thread
-- column: shared_bytes BIGINT bytes -- shared memory of a block
-- column: occupancy_pct DOUBLE percent -- of the warps that an SM can hold, as the profiler estimates it
-- order: run, start_ns, rank
-- example: traceq query kernel_launches --run eager -p top=10

WITH found AS (
    SELECT
        k.*,
        c.start_ns AS launch_start_ns,
        c.dur_ns AS launch_dur_ns,
        o.name AS op,
        row_number() OVER (PARTITION BY k.run ORDER BY k.start_ns, k.rank, k.trace_id, k.activity_id) AS place
    FROM kernels AS k
    LEFT JOIN api_calls AS c ON c.trace_id = k.trace_id AND c.call_id = k.launch_id
    LEFT JOIN ops AS o ON o.trace_id = k.trace_id AND o.op_id = k.op_id
    WHERE k.run = coalesce($run::VARCHAR, k.run) AND ($name::VARCHAR IS NULL OR k.name = $name::VARCHAR)
)

SELECT
    run,
    rank,
    step,
    start_ns,
    dur_ns,
    device,
    stream,
    op,
    start_ns - launch_start_ns AS latency_ns,
    CASE
        WHEN start_ns >= launch_start_ns + launch_dur_ns THEN start_ns - launch_start_ns - launch_dur_ns
    END AS queue_ns,
    nullif(concat_ws('×', grid_x, grid_y, grid_z), '') AS grid,
    nullif(concat_ws('×', block_x, block_y, block_z), '') AS block,
    registers,
    shared_bytes,
    occupancy_pct
FROM found
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
