-- title: Calls that wait for the GPU, as nsys finds them
-- what: Calls of cudaDeviceSynchronize and cudaStreamSynchronize (or HIP's), the longest first, as nsys analyze has it.
-- value: Each stops the host until the GPU is done, and the GPU may then wait for the host. sync_points has the other calls that wait, sync_sites the operator.
-- needs: api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 50 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: dur_ns BIGINT ns -- length of the call
-- column: start_ns BIGINT ns -- its start, from the first event of the trace
-- column: pid BIGINT -- process that calls, as the system numbers it; NULL if not recorded
-- column: tid VARCHAR -- thread that calls, as recorded
-- column: api_name VARCHAR -- name of the call as nsys prints it: as recorded, without _v and four digits at its end
-- chart: bar x=start_ns y=dur_ns
-- order: run, dur_ns DESC
-- example: traceq query cuda_api_sync --run syncs -p top=5

WITH calls AS (
    SELECT l.run, l.rank, c.*
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND regexp_matches(c.recorded_name, '^(cuda|hip)(Device|Stream)Synchronize')
    QUALIFY
        $top::BIGINT IS NULL
        OR row_number() OVER (PARTITION BY l.run ORDER BY c.dur_ns DESC, l.rank, c.start_ns, c.trace_id, c.call_id) <= $top::BIGINT
)

SELECT
    c.run,
    c.rank,
    c.dur_ns,
    c.start_ns,
    coalesce(p.os_pid, try_cast(c.pid AS BIGINT)) AS pid,
    c.tid,
    regexp_replace(c.recorded_name, '_v.{4}$', '') AS api_name
FROM calls AS c
LEFT JOIN processes AS p ON p.trace_id = c.trace_id AND p.pid = c.pid
ORDER BY c.run, c.dur_ns DESC, c.rank, c.start_ns, c.trace_id, c.call_id
