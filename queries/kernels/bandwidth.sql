-- title: Memory bandwidth of copies and memory-bound operators
-- what: Bytes that operators must move at least, by the shapes and types of their inputs, with bandwidth and share of the device's peak; and copies.
-- value: Much time near the peak is helped only by moving less, as fusion does; large calls far below it have bad strides or too few blocks.
-- needs: gpu_activities, ops, api_calls, devices
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- operator that launched the kernels, NULL if none is known; of a memcpy or memset its name
-- column: category VARCHAR -- what its kernels compute (mixed if several things), memcpy or memset; gemm, conv, attention, rnn and comm are left out
-- column: gpu_ns BIGINT ns -- sum of their durations
-- column: bytes BIGINT bytes -- inputs read once and the result written once, at least; of a copy within a device both; NULL where the trace lacks shapes, or the operator's needs are not known
-- column: gb_per_s DOUBLE -- bytes over gpu_ns, in 10⁹ a second
-- column: pct_of_peak DOUBLE percent -- of the memory bandwidth of the device, as a capture measured it, else by its data sheet; above 100 out of the cache; NULL for an unknown model, or a copy to or from another memory
-- column: lost_ns DOUBLE ns -- gpu_ns less the time at that peak, not below 0: what better kernels could gain at most
-- column: calls BIGINT count -- operators, or copies; NULL if no operator is known
-- column: bytes_per_call DOUBLE bytes -- bytes over calls: below some MB the launch and the cache count, not the memory
-- column: kernels BIGINT count -- kernels, or copies
-- column: basis VARCHAR -- where bytes are from: shapes (of the inputs), arguments (every tensor of a Triton kernel once, which is too much where it touches a part), recorded (copies); NULL if not known
-- chart: bar x=op y=gpu_ns
-- order: run, gpu_ns DESC
-- example: traceq query bandwidth --run eager

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

-- The operator around a graph launch says nothing of the kernels in it.
replays AS (
    SELECT trace_id, call_id
    FROM api_calls
    WHERE role = 'graph_launch'
),

light AS (
    SELECT
        a.trace_id,
        a.device,
        CASE WHEN (a.trace_id, a.launch_id) NOT IN (SELECT (trace_id, call_id) FROM replays) THEN a.op_id END AS op_id,
        a.category,
        a.dur_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel' AND a.category NOT IN ('gemm', 'conv', 'attention', 'rnn', 'comm')
),

-- A call with its kernels; kernels without an operator are one row for each category.
called AS (
    SELECT
        trace_id,
        device,
        op_id,
        CASE WHEN min(category) = max(category) THEN min(category) ELSE 'mixed' END AS category,
        count(*) AS kernels,
        sum(dur_ns) AS gpu_ns
    FROM light
    GROUP BY trace_id, device, op_id, CASE WHEN op_id IS NULL THEN category END
),

signed AS (
    SELECT
        c.trace_id,
        c.device,
        o.name AS op,
        o.input_dims,
        o.input_types,
        o.input_strides,
        o.kernel_file IS NOT NULL AS is_triton,
        c.category,
        count(o.op_id) AS calls,
        sum(c.kernels) AS kernels,
        sum(c.gpu_ns) AS gpu_ns
    FROM called AS c
    LEFT JOIN ops AS o ON o.trace_id = c.trace_id AND o.op_id = c.op_id
    GROUP BY ALL
),

-- What operators must read (places of their inputs) and write: the result is like the input at `writes`, or if that is 0 as large and
-- as wide as what is read, or a bool each; `also` are further bytes for each of its elements.
rules AS (
    SELECT 'aten::' || unnest(string_split(ops, ' ')) AS op, reads, writes, is_bool, also
    FROM (VALUES
        (
            'abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh sigmoid logit relu '
            'gelu silu mish erf erfc ceil floor round trunc frac sign sgn threshold hardtanh leaky_relu elu softplus hardswish hardsigmoid '
            'bitwise_not nan_to_num triu tril cumsum cumprod _softmax _log_softmax',
            [1], 0, false, 0
        ),
        (
            'add sub rsub mul div true_divide floor_divide remainder fmod pow atan2 maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor '
            'clamp_min clamp_max masked_fill tanh_backward sigmoid_backward gelu_backward silu_backward mish_backward threshold_backward '
            'hardtanh_backward leaky_relu_backward elu_backward hardswish_backward hardsigmoid_backward softplus_backward '
            'native_dropout_backward _softmax_backward_data _log_softmax_backward_data',
            [1, 2], 0, false, 0
        ),
        ('addcmul addcdiv lerp where clamp', [1, 2, 3], 0, false, 0),
        ('eq ne lt le gt ge logical_and logical_or logical_xor', [1, 2], 0, true, 0),
        ('logical_not isnan isinf isfinite', [1], 0, true, 0),
        ('copy_', [2], 1, false, 0),
        ('fill_ zero_ uniform_ normal_ bernoulli_ exponential_ random_', [], 1, false, 0),
        ('sum nansum mean prod amax amin max min argmax argmin all any norm linalg_vector_norm var std var_mean logsumexp', [1], NULL, false, 0),
        ('native_dropout', [1], 1, false, 1),
        ('native_layer_norm', [1, 3, 4], 1, false, 0),
        ('native_layer_norm_backward', [1, 2, 4, 5, 6], 2, false, 0),
        ('_fused_rms_norm', [1, 3], 1, false, 0),
        ('_fused_rms_norm_backward', [1, 2, 4, 5], 2, false, 0),
        ('native_group_norm native_batch_norm cudnn_batch_norm miopen_batch_norm', [1, 2, 3], 1, false, 0),
        ('native_group_norm_backward', [1, 2, 3, 4, 5], 2, false, 0),
        ('native_batch_norm_backward', [1, 2, 3], 2, false, 0),
        ('cudnn_batch_norm_backward miopen_batch_norm_backward', [1, 2, 3], 1, false, 0)
    ) AS t (ops, reads, writes, is_bool, also)
),

-- Element types as recorded: bytes, and which is wider where two meet. What else is recorded but these words is a type not known here.
formats AS (
    SELECT *
    FROM (VALUES
        ('bool', 1, 0), ('unsigned char', 1, 1), ('signed char', 1, 2), ('short', 2, 3), ('short int', 2, 3), ('int', 4, 4), ('long', 8, 5),
        ('long int', 8, 5), ('c10::Float8_e4m3fn', 1, 6), ('c10::Float8_e5m2', 1, 6), ('c10::Float8_e4m3fnuz', 1, 6), ('c10::Float8_e5m2fnuz', 1, 6),
        ('c10::Half', 2, 7), ('c10::BFloat16', 2, 7), ('float', 4, 8), ('double', 8, 9), ('c10::complex<float>', 8, 10), ('c10::complex<double>', 16, 11)
    ) AS t (recorded, bytes, width)
),

not_tensors AS (
    SELECT unnest(['', 'Scalar', 'ScalarList', 'GenericList', 'Int', 'Double', 'Bool', 'String', 'Device', 'None']) AS recorded
),

-- Operators with shapes, each signature once. In place (a trailing _), the result is like the first input.
signatures AS (
    SELECT
        row_number() OVER () AS id,
        s.*,
        coalesce(r.reads, f.reads, range(1, len(try_cast(s.input_types AS VARCHAR[])) + 1)) AS reads,
        CASE WHEN r.op IS NOT NULL THEN r.writes WHEN f.op IS NOT NULL THEN 1 END AS writes,
        coalesce(r.is_bool, false) AS is_bool,
        coalesce(r.also, 0) AS also
    FROM (
        SELECT DISTINCT op, input_dims, input_types, input_strides, is_triton
        FROM signed
        WHERE input_dims IS NOT NULL AND input_types IS NOT NULL
    ) AS s
    LEFT JOIN rules AS r ON r.op = s.op
    LEFT JOIN rules AS f ON r.op IS NULL AND f.op || '_' = s.op AND f.writes = 0
    WHERE r.op IS NOT NULL OR f.op IS NOT NULL OR s.is_triton
),

inputs AS (
    SELECT
        a.id,
        a.place,
        list_contains(a.reads, a.place) AS is_read,
        a.place = a.writes AS is_written,
        a.dims,
        a.strides,
        f.bytes,
        f.width,
        f.recorded IS NULL AND n.recorded IS NULL AS is_strange
    FROM (
        SELECT
            id,
            reads,
            writes,
            unnest(range(1, len(try_cast(input_types AS VARCHAR[])) + 1)) AS place,
            unnest(try_cast(input_types AS VARCHAR[])) AS recorded,
            unnest(try_cast(input_dims AS BIGINT[][])) AS dims,
            unnest(try_cast(input_strides AS BIGINT[][])) AS strides
        FROM signatures
    ) AS a
    LEFT JOIN formats AS f ON f.recorded = a.recorded
    LEFT JOIN not_tensors AS n ON n.recorded = a.recorded
),

-- The extents that inputs have when they are broadcast against each other, counted from the last dimension.
extents AS (
    SELECT id, back, max(extent) AS extent
    FROM (
        SELECT id, unnest(range(1, len(dims) + 1)) AS back, unnest(list_reverse(dims)) AS extent
        FROM inputs
        WHERE is_read AND bytes IS NOT NULL
    )
    GROUP BY id, back
),

broadcast AS (
    SELECT id, product(extent) AS elements
    FROM extents
    GROUP BY id
),

-- An expanded dimension (stride 0) is in memory once. A tensor without dimensions, as a number becomes one, does not widen the result.
moved AS (
    SELECT
        id,
        sum(bytes * coalesce(list_product([CASE WHEN strides[i] = 0 THEN 1 ELSE dims[i] END FOR i IN range(1, len(dims) + 1)]), 1))
            FILTER (is_read AND bytes IS NOT NULL) AS read_bytes,
        max(bytes * coalesce(list_product(dims), 1)) FILTER (is_written) AS written_bytes,
        max(coalesce(list_product(dims), 1)) FILTER (is_written) AS written_elements,
        arg_max(bytes, width + CASE WHEN len(dims) > 0 THEN 100 ELSE 0 END) FILTER (is_read AND bytes IS NOT NULL) AS widest_bytes,
        coalesce(bool_or(is_strange) FILTER (is_read OR is_written), false) AS is_strange
    FROM inputs
    GROUP BY id
),

-- Bytes of one call.
needed AS (
    SELECT
        s.op,
        s.input_dims,
        s.input_types,
        s.input_strides,
        CASE WHEN s.is_triton THEN 'arguments' ELSE 'shapes' END AS basis,
        CASE
            WHEN m.is_strange THEN NULL
            WHEN s.is_triton OR s.writes IS NULL THEN m.read_bytes
            WHEN s.writes = 0 THEN m.read_bytes + coalesce(b.elements, 1) * CASE WHEN s.is_bool THEN 1 ELSE m.widest_bytes END
            ELSE coalesce(m.read_bytes, 0) + m.written_bytes + s.also * m.written_elements
        END::BIGINT AS bytes
    FROM signatures AS s
    JOIN moved AS m USING (id)
    LEFT JOIN broadcast AS b USING (id)
),

listed AS (
    SELECT
        s.trace_id,
        s.device,
        s.op,
        s.category,
        CASE WHEN n.bytes IS NOT NULL THEN n.basis END AS basis,
        CASE WHEN s.op IS NOT NULL THEN s.calls END AS calls,
        s.kernels,
        s.gpu_ns,
        n.bytes * s.calls AS bytes,
        true AS is_inside
    FROM signed AS s
    LEFT JOIN needed AS n
        ON n.op = s.op AND n.input_dims = s.input_dims AND n.input_types = s.input_types AND n.input_strides IS NOT DISTINCT FROM s.input_strides
    UNION ALL
    SELECT
        a.trace_id,
        a.device,
        a.name,
        a.kind,
        CASE WHEN a.bytes IS NOT NULL THEN 'recorded' END,
        count(*),
        count(*),
        sum(a.dur_ns),
        sum(CASE WHEN a.copy_kind = 'DtoD' THEN 2 ELSE 1 END * a.bytes),
        a.kind = 'memset' OR coalesce(a.copy_kind = 'DtoD', false)
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind IN ('memcpy', 'memset')
    GROUP BY a.trace_id, a.device, a.name, a.kind, a.bytes IS NOT NULL, a.copy_kind
),

summed AS (
    SELECT
        p.run,
        t.op,
        t.category,
        t.basis,
        sum(t.calls) AS calls,
        sum(t.kernels) AS kernels,
        sum(t.gpu_ns) AS gpu_ns,
        CASE WHEN t.basis IS NOT NULL THEN sum(t.bytes) END AS bytes,
        CASE WHEN count(d.peak_bytes_per_s) = count(*) AND bool_and(t.is_inside) THEN sum(t.gpu_ns * (d.peak_bytes_per_s / 1e9)) END AS peak_bytes,
        sum(t.bytes / nullif(d.peak_bytes_per_s / 1e9, 0)) AS least_ns
    FROM listed AS t
    JOIN picked AS p USING (trace_id)
    LEFT JOIN devices AS d ON d.trace_id = t.trace_id AND d.device = t.device
    GROUP BY p.run, t.op, t.category, t.basis
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY gpu_ns DESC, op, category, basis) AS place
    FROM summed
)

SELECT
    run,
    op,
    category,
    gpu_ns::BIGINT AS gpu_ns,
    bytes::BIGINT AS bytes,
    bytes / nullif(gpu_ns, 0) AS gb_per_s,
    100.0 * bytes / nullif(peak_bytes, 0) AS pct_of_peak,
    CASE WHEN bytes IS NOT NULL AND peak_bytes IS NOT NULL THEN greatest(gpu_ns - least_ns, 0) END AS lost_ns,
    calls::BIGINT AS calls,
    bytes / nullif(calls, 0) AS bytes_per_call,
    kernels::BIGINT AS kernels,
    basis
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
