-- title: Recompilations by the guard that failed
-- what: The functions that torch.compile had to compile again, with the guard that no longer held.
-- value: A guard on a size: mark it dynamic or pad it. On a number: make it a tensor. After eight variants of a function torch gives up and runs it eagerly.
-- needs: recompiles
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled; NULL if it is not one of several
-- column: file VARCHAR -- file of the function; NULL if not known
-- column: line BIGINT -- line on which it begins, after a graph break its rest
-- column: function VARCHAR -- function that was compiled again
-- column: guard VARCHAR -- the guard that failed, of several variants that of the latest; NULL if not known
-- column: recompiles BIGINT count -- compilations that this failure caused
-- chart: bar x=function y=recompiles
-- order: run, rank, recompiles DESC
-- example: traceq query recompiles --run train/default

SELECT
    r.label AS run,
    c.rank,
    c.file,
    c.line,
    c.function,
    c.guard,
    c.count AS recompiles
FROM recompiles AS c
JOIN runs AS r USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.label, c.rank, c.count DESC, c.file, c.line, c.function, c.guard
