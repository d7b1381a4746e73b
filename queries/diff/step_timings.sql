-- title: Un-profiled step times as measured
-- what: Each measurement of a capture, block by block: steps that ran back to back (pipelined), or one step with the GPU waited for after it (synced).
-- value: The samples behind the intervals of the step time; a trend or outliers mean a machine that was not quiet.
-- needs: timings
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that measured; NULL if it is not one of several
-- column: kind VARCHAR -- pipelined or synced
-- column: block BIGINT -- number of the measurement
-- column: steps BIGINT count -- steps timed together
-- column: block_ns BIGINT ns -- their time
-- column: step_ns DOUBLE ns -- of one step
-- chart: line x=block y=step_ns
-- order: run, rank, kind, block
-- example: traceq query step_timings --run eager

SELECT
    r.label AS run,
    t.rank,
    t.kind,
    t.block,
    t.steps,
    t.ns AS block_ns,
    t.ns / nullif(t.steps, 0) AS step_ns
FROM timings AS t
JOIN runs AS r USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY run, t.rank, t.kind, t.block, t.ns
