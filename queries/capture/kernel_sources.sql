-- title: Kernels whose source is known
-- what: The kernels that were compiled in a captured run, with their GPU time, configuration, registers, spills and shared memory.
-- value: Spills or very many registers in a kernel that takes long mean too much fused into one, or blocks too large; kernel_source shows the text.
-- needs: kernel_sources, gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank that compiled; NULL if it is not one of several
-- column: kernel VARCHAR -- its name
-- column: gpu_ns BIGINT ns -- sum of the durations of all kernels of that name in the trace; NULL if there are none
-- column: language VARCHAR -- triton, or cpp on the CPU
-- column: num_warps BIGINT count -- warps a block; NULL if not known, as with all that follows
-- column: num_stages BIGINT count -- stages of the software pipeline
-- column: registers BIGINT count -- registers per thread
-- column: spills BIGINT count -- registers spilled to memory
-- column: shared_bytes BIGINT bytes -- shared memory per block
-- column: lines BIGINT count -- lines of its source
-- column: hash VARCHAR -- name of its file, as traces have it (triton_kernels.kernel_hash)
-- column: ops VARCHAR -- operators that it computes
-- column: elements BIGINT count -- elements that it goes through: the product of the sizes in its source (xnumel, r0_numel); NULL if some come as arguments
-- chart: bar x=kernel y=gpu_ns
-- order: run, rank, gpu_ns DESC
-- example: traceq query kernel_sources --run train/default

-- A size that is fixed is set in the first lines of a kernel; one that is not is but an argument.
WITH sized AS (
    SELECT
        *,
        list_distinct(regexp_extract_all(source, '\W([xyz]|r[0-9]+_|r)numel\b *[,:)]', 1)) AS asked,
        regexp_extract_all(source, '\n    ([xyz]|r[0-9]+_|r)numel *(?:: *tl\.constexpr *)?= *[0-9]{1,18}\b', 1) AS fixed,
        regexp_extract_all(source, '\n    (?:[xyz]|r[0-9]+_|r)numel *(?:: *tl\.constexpr *)?= *([0-9]{1,18})\b', 1) AS sizes
    FROM kernel_sources
),

ran AS (
    SELECT l.run_id, l.rank, a.name, sum(a.dur_ns)::BIGINT AS gpu_ns
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY l.run_id, l.rank, a.name
)

SELECT
    r.label AS run,
    k.rank,
    k.kernel,
    n.gpu_ns,
    k.language,
    k.num_warps,
    k.num_stages,
    k.registers,
    k.spills,
    k.shared_bytes,
    len(string_split(rtrim(k.source, chr(10)), chr(10))) AS lines,
    k.hash,
    array_to_string(k.ops::VARCHAR[], ', ') AS ops,
    CASE
        WHEN len(k.sizes) > 0 AND len(list_intersect(k.asked, k.fixed)) = len(k.asked)
            THEN try_cast(list_product(list_transform(k.sizes, lambda size: size::BIGINT)) AS BIGINT)
    END AS elements
FROM sized AS k
JOIN runs AS r USING (run_id)
LEFT JOIN ran AS n ON n.run_id = k.run_id AND n.rank IS NOT DISTINCT FROM k.rank AND n.name = k.kernel
WHERE r.label = coalesce($run::VARCHAR, r.label)
ORDER BY r.label, k.rank, n.gpu_ns DESC NULLS LAST, k.kernel, k.hash, k.source
