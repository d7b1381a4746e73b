-- title: Matrix products by shape
-- what: GEMM operators by shape and number format with their calls, kernel time, FLOP/s and shares of what the device can do.
-- value: A shape with much time and a low share of the roof is the one to pad, batch or tune; small or thin ones never get near the peak.
-- needs: gpu_activities, ops, api_calls, devices
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- operator that launched the kernels; NULL if none is known, as in a replayed graph
-- column: m BIGINT count -- rows of the result; NULL, with all that follows from it, where the trace lacks the shapes or the operator is no plain product
-- column: n BIGINT count -- columns of the result
-- column: k BIGINT count -- length of the dot products
-- column: batch BIGINT count -- products in a call
-- column: dtype VARCHAR -- number format of the first matrix, e.g. bfloat16
-- column: calls BIGINT count -- operators of that shape; NULL if no operator is known
-- column: kernel_ns BIGINT ns -- sum of the durations of those kernels
-- column: pct_of_gemm DOUBLE percent -- of the kernel time of all GEMM kernels of the run; NULL if graph replays were not recorded
-- column: tflop_per_s DOUBLE -- 2 · m · n · k · batch · calls over kernel_ns, in 10¹² a second
-- column: pct_of_peak DOUBLE percent -- of the dense peak of the device, as a capture measured it, else by its data sheet; NULL for an unknown model
-- column: peak VARCHAR -- number format of the peak: dtype, but tf32 for float32 input if the name of a kernel shows that it uses tensor cores, which have no float32
-- column: bound VARCHAR -- what takes longer at the peaks: math, or memory (reading both matrices and writing the result once, all in dtype)
-- column: pct_of_roof DOUBLE percent -- that longer time, of kernel_ns; above 100 where the matrices lie in the cache
-- column: ns_per_call DOUBLE ns -- kernel time a call
-- column: kernels BIGINT count -- their GEMM kernels: a split product has several a call
-- chart: bar x=op y=kernel_ns
-- order: run, kernel_ns DESC
-- example: traceq query gemm_shapes --run eager -p top=10

WITH picked AS (
    SELECT trace_id, run, invisible_replays
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

-- The operator around a graph launch says nothing of the kernels in it.
replays AS (
    SELECT trace_id, call_id
    FROM api_calls
    WHERE role = 'graph_launch'
),

gemm AS (
    SELECT
        a.trace_id,
        a.device,
        CASE WHEN (a.trace_id, a.launch_id) NOT IN (SELECT (trace_id, call_id) FROM replays) THEN a.op_id END AS op_id,
        a.dur_ns,
        regexp_matches(a.name, 'tf32|tensorop|nvjet|1688') AS on_tensor_cores
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.category = 'gemm'
),

-- A call of an operator with its GEMM kernels; kernels without an operator are one row a device.
called AS (
    SELECT trace_id, device, op_id, count(*) AS kernels, sum(dur_ns) AS kernel_ns, bool_or(on_tensor_cores) AS on_tensor_cores
    FROM gemm
    GROUP BY trace_id, device, op_id
),

signed AS (
    SELECT
        p.run,
        p.trace_id,
        c.device,
        o.name AS op,
        o.input_dims,
        o.input_types,
        c.on_tensor_cores,
        count(o.op_id) AS calls,
        sum(c.kernels) AS kernels,
        sum(c.kernel_ns) AS kernel_ns
    FROM called AS c
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = c.trace_id AND o.op_id = c.op_id
    GROUP BY p.run, p.trace_id, c.device, o.name, o.input_dims, o.input_types, c.on_tensor_cores
),

-- Which inputs an operator multiplies.
products AS (
    SELECT *
    FROM (VALUES
        ('aten::mm', 1, 2), ('aten::bmm', 1, 2), ('aten::mv', 1, 2), ('aten::dot', 1, 2), ('aten::matmul', 1, 2), ('aten::linear', 1, 2),
        ('aten::_int_mm', 1, 2), ('aten::_scaled_mm', 1, 2), ('aten::addmm', 2, 3), ('aten::_addmm_activation', 2, 3),
        ('aten::baddbmm', 2, 3), ('aten::addbmm', 2, 3), ('aten::addmv', 2, 3)
    ) AS t (op, left_at, right_at)
),

-- Formats as recorded, with the bytes of an element and the elements that one recorded element holds.
formats AS (
    SELECT *
    FROM (VALUES
        ('double', 'float64', 8, 1), ('float', 'float32', 4, 1), ('c10::Half', 'float16', 2, 1), ('c10::BFloat16', 'bfloat16', 2, 1),
        ('c10::Float8_e4m3fn', 'float8', 1, 1), ('c10::Float8_e5m2', 'float8', 1, 1), ('c10::Float8_e4m3fnuz', 'float8', 1, 1),
        ('c10::Float8_e5m2fnuz', 'float8', 1, 1), ('signed char', 'int8', 1, 1), ('c10::Float4_e2m1fn_x2', 'float4', 0.5, 2)
    ) AS t (recorded, dtype, bytes, packed)
),

multiplied AS (
    SELECT
        s.*,
        try_cast(s.input_dims AS BIGINT[][])[p.left_at] AS a,
        try_cast(s.input_dims AS BIGINT[][])[p.right_at] AS b,
        try_cast(s.input_types AS VARCHAR[])[p.left_at] AS recorded
    FROM signed AS s
    LEFT JOIN products AS p USING (op)
),

shaped AS (
    SELECT
        * EXCLUDE (input_dims, input_types),
        CASE
            WHEN op = 'aten::linear' AND len(b) = 2 AND a[-1] = b[2]
                THEN {'batch': 1, 'm': coalesce(list_product(a[:-2]), 1)::BIGINT, 'n': b[1], 'k': b[2]}
            WHEN op = 'aten::linear' THEN NULL
            WHEN len(a) = 3 AND len(b) = 3 AND a[1] = b[1] AND a[3] = b[2] THEN {'batch': a[1], 'm': a[2], 'n': b[3], 'k': a[3]}
            WHEN len(a) = 2 AND len(b) = 2 AND a[2] = b[1] THEN {'batch': 1, 'm': a[1], 'n': b[2], 'k': a[2]}
            WHEN len(a) = 2 AND len(b) = 1 AND a[2] = b[1] THEN {'batch': 1, 'm': a[1], 'n': 1, 'k': a[2]}
            WHEN len(a) = 1 AND len(b) = 1 AND a = b THEN {'batch': 1, 'm': 1, 'n': 1, 'k': a[1]}
        END AS shape
    FROM multiplied
),

sized AS (
    SELECT
        s.*,
        s.shape.m AS m,
        s.shape.n AS n,
        s.shape.k * coalesce(f.packed, 1) AS k,
        s.shape.batch AS batch,
        CASE WHEN s.shape IS NOT NULL THEN coalesce(f.dtype, s.recorded) END AS dtype,
        f.bytes::DOUBLE AS bytes,
        CASE WHEN f.dtype = 'float32' AND s.on_tensor_cores THEN 'tf32' ELSE f.dtype END AS peak,
        d.peak_flops,
        d.peak_bytes_per_s / 1e9 AS peak_bytes_per_ns
    FROM shaped AS s
    LEFT JOIN formats AS f ON f.recorded = s.recorded AND s.shape IS NOT NULL
    LEFT JOIN devices AS d ON d.trace_id = s.trace_id AND d.device = s.device
),

-- The two times that the peaks allow for all calls of a row.
roofed AS (
    SELECT
        *,
        CASE WHEN peak IS NOT NULL THEN 2.0 * m * n * k * batch * calls END AS flop,
        kernel_ns * ((peak_flops ->> peak)::DOUBLE / 1e9) AS peak_flop,
        2.0 * m * n * k * batch * calls / nullif((peak_flops ->> peak)::DOUBLE / 1e9, 0) AS math_ns,
        (m * k + k * n + m * n) * bytes * batch * calls / nullif(peak_bytes_per_ns, 0) AS memory_ns
    FROM sized
),

summed AS (
    SELECT
        run, op, m, n, k, batch, dtype, peak,
        CASE WHEN math_ns >= memory_ns THEN 'math' WHEN math_ns < memory_ns THEN 'memory' END AS bound,
        sum(calls) AS calls,
        sum(kernels) AS kernels,
        sum(kernel_ns) AS kernel_ns,
        sum(flop) AS flop,
        CASE WHEN count(peak_flop) = count(*) THEN sum(peak_flop) END AS peak_flop,
        sum(CASE WHEN math_ns >= memory_ns THEN math_ns WHEN math_ns < memory_ns THEN memory_ns END) AS least_ns
    FROM roofed
    GROUP BY ALL
),

seen AS (
    SELECT run, max(invisible_replays) = 0 AS is_whole
    FROM picked
    GROUP BY run
),

ranked AS (
    SELECT
        s.*,
        CASE WHEN n.is_whole THEN 100.0 * s.kernel_ns / nullif(sum(s.kernel_ns) OVER (PARTITION BY s.run), 0) END AS pct_of_gemm,
        row_number() OVER (
            PARTITION BY s.run ORDER BY s.kernel_ns DESC, s.op, s.m, s.n, s.k, s.batch, s.dtype, s.peak, s.bound
        ) AS place
    FROM summed AS s
    JOIN seen AS n USING (run)
)

SELECT
    run,
    op,
    m,
    n,
    k,
    batch,
    dtype,
    CASE WHEN op IS NOT NULL THEN calls END::BIGINT AS calls,
    kernel_ns::BIGINT AS kernel_ns,
    pct_of_gemm,
    flop / nullif(kernel_ns, 0) / 1000 AS tflop_per_s,
    100.0 * flop / nullif(peak_flop, 0) AS pct_of_peak,
    peak,
    bound,
    100.0 * least_ns / nullif(kernel_ns, 0) AS pct_of_roof,
    kernel_ns / nullif(calls, 0) AS ns_per_call,
    kernels::BIGINT AS kernels
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
