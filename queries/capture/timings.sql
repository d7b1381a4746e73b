-- title: The un-profiled measurements
-- what: Each measurement of steps without the profiler: its steps together, and the time of one.
-- value: Blocks that differ much, or fall one after the other, mean that the program had not warmed up or that something else ran beside it.
-- needs: timings
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that measured; NULL if it is not one of several
-- column: kind VARCHAR -- pipelined (nothing waits between the steps of a block), or synced (the host waits for the GPU after each step)
-- column: block BIGINT -- number of the measurement among those of its kind
-- column: steps BIGINT count -- steps timed together
-- column: total_ns BIGINT ns -- their time
-- column: step_ns DOUBLE ns -- the time of one of them, on average
-- chart: bar x=block y=step_ns
-- order: run, rank, kind, block
-- example: traceq query timings --run train/eager

SELECT
    r.label AS run,
    t.rank,
    t.kind,
    t.block,
    t.steps,
    t.ns AS total_ns,
    t.ns / nullif(t.steps, 0) AS step_ns
FROM timings AS t
JOIN runs AS r USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.label, t.rank, t.kind, t.block, t.steps, t.ns
