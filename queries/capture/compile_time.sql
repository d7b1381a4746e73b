-- title: Compile time by phase
-- what: Where the time of torch.compile went, over all compilations of a process; the phases do not overlap and sum to the whole.
-- value: It is paid at every start: much in triton or autotune is saved by a warm cache, much in dynamo by fewer breaks and recompilations, or by compiling a block once.
-- needs: compile_phases
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled; NULL if it is not one of several
-- column: phase VARCHAR -- dynamo (traces Python, makes guards), backend (imports and hands over), aot_autograd (backward graph), inductor (lowers, fuses, writes code), triton or cpp (compiles it), autotune (tries variants), cudagraphs (records), other
-- column: total_ns BIGINT ns -- time in it, without the phases inside it
-- column: pct_of_compile DOUBLE percent -- of all phases
-- column: runs BIGINT count -- how often it was entered
-- chart: bar x=phase y=total_ns
-- order: run, rank, total_ns DESC
-- example: traceq query compile_time --run train/default

SELECT
    r.label AS run,
    p.rank,
    p.phase,
    p.ns AS total_ns,
    100.0 * p.ns / nullif(sum(p.ns) OVER (PARTITION BY p.run_id, p.rank), 0) AS pct_of_compile,
    p.count AS runs
FROM compile_phases AS p
JOIN runs AS r USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.label, p.rank, p.ns DESC, p.phase
