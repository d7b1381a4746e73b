-- title: Source of generated kernels
-- what: The Triton source of each generated kernel, with how it was compiled, as capture kept it.
-- value: Shows which operators a kernel really does, and how it was tiled; spills mean too many registers.
-- needs: kernel_sources, runs
-- layout: wrap
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: name VARCHAR = NULL -- kernel name, whole; NULL means all
-- param: top BIGINT = 20 -- kernels to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled it, if there are several
-- column: name VARCHAR -- kernel name
-- column: language VARCHAR -- what the source is written in
-- column: warps BIGINT count -- warps of a block
-- column: stages BIGINT count -- stages of the software pipeline
-- column: registers BIGINT count -- registers of a thread
-- column: spills BIGINT count -- registers that did not fit
-- column: shared_bytes BIGINT bytes -- shared memory of a block
-- column: source VARCHAR -- the source
-- order: run, name, rank
-- example: traceq query kernel_source --run compiled -p top=1

WITH placed AS (
    SELECT
        r.label AS run,
        s.*,
        row_number() OVER (PARTITION BY r.label ORDER BY s.kernel, s.rank, s.hash, s.source) AS place
    FROM kernel_sources AS s
    JOIN runs AS r USING (run_id)
    WHERE r.label = coalesce($run::VARCHAR, r.label) AND ($name::VARCHAR IS NULL OR s.kernel = $name::VARCHAR)
)

SELECT
    run,
    rank,
    kernel AS name,
    language,
    num_warps AS warps,
    num_stages AS stages,
    registers,
    spills,
    shared_bytes,
    source
FROM placed
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
