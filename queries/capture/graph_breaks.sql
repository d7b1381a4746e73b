-- title: Graph breaks
-- what: Where and why torch.compile had to split a graph, with the user's line.
-- value: Each break ends a graph: nothing is fused across it, and the host comes in between. Breaks inside the step's inner loop cost most.
-- needs: graph_breaks
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled; NULL if it is not one of several
-- column: file VARCHAR -- file of the line that breaks the graph; NULL if not known
-- column: line BIGINT -- its line
-- column: function VARCHAR -- its function
-- column: reason VARCHAR -- why, in the words of TorchDynamo; TORCH_LOGS=graph_breaks says more
-- column: graphs BIGINT count -- graphs that broke there for it; compiled again, a function breaks again
-- chart: bar x=reason y=graphs
-- order: run, rank, graphs DESC
-- example: traceq query graph_breaks --run train/default

SELECT
    r.label AS run,
    b.rank,
    b.file,
    b.line,
    b.function,
    b.reason,
    b.count AS graphs
FROM graph_breaks AS b
JOIN runs AS r USING (run_id)
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.label, b.rank, b.count DESC, b.file, b.line, b.function, b.reason
