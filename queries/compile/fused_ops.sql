-- title: Operators inside each Inductor kernel
-- what: The operators that each fused Triton kernel computes, read from its name, or from that which its launch records; ranks are summed.
-- value: Shows what Inductor fused, and where it stopped: short lists between matrix products, or copies alone, are chances missed.
-- needs: gpu_activities, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- kernels to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: name VARCHAR -- name of the kernel
-- column: op_count BIGINT count -- different operators named; NULL if the name lists none
-- column: ops VARCHAR -- the operators, without aten::, in the order of the name; what no known operator explains is kept whole
-- column: is_known BOOLEAN -- whether each is an operator that this query knows
-- column: is_cut BOOLEAN -- whether there may be more: Inductor names at most ten
-- column: kernels BIGINT count -- kernels of that name
-- column: total_ns BIGINT ns -- sum of their durations
-- column: pct_of_kernel DOUBLE percent -- of all kernel time of the run; NULL if graph replays were not recorded
-- chart: bar x=ops y=total_ns
-- order: run, total_ns DESC
-- example: traceq query fused_ops --run default -p top=5

WITH picked AS (
    SELECT trace_id, run, max(invisible_replays) OVER (PARTITION BY run) = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

-- Operators of ATen, and a few of Inductor's own, that get into the names of its kernels.
known AS (
    SELECT unnest(string_split_regex(trim('
        _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _addmm_activation _assert_async _assert_scalar
        _batch_norm_with_update _batch_norm_with_update_functional _cdist_forward _chunk_cat _convolution _efficient_attention_forward
        _embedding_bag _fft_c2c _fft_c2r _fft_r2c _flash_attention_forward _flash_attention_backward _fused_moving_avg_obs_fq_helper
        _fused_moving_avg_obs_fq_helper_functional _fused_rms_norm _fused_rms_norm_backward _grouped_mm _int_mm
        _local_scalar_dense _log_softmax _log_softmax_backward_data _low_memory_max_pool2d_offsets_to_indices
        _low_memory_max_pool2d_with_offsets _low_memory_max_pool_offsets_to_indices _low_memory_max_pool_with_offsets
        _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _prelu_kernel
        _prelu_kernel_backward _reshape_alias _safe_softmax _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
        _scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention
        _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_backward _scaled_dot_product_fused_attention_overrideable _scaled_grouped_mm _scaled_mm
        _softmax _softmax_backward_data _thnn_fused_gru_cell _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward _to_copy
        _trilinear _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate _unsafe_view
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
        _upsample_nearest_exact3d _weight_int4pack_mm _weight_int8pack_mm _weight_norm _weight_norm_interface
        _weight_norm_interface_backward
        abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool2d_backward
        adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv addr affine_grid_generator alias all all_gather_into_tensor
        all_reduce all_to_all_single amax amin aminmax angle any arange argmax argmin argsort as_strided as_strided_scatter asin
        asinh associative_scan atan atan2 atanh auto_functionalized auto_functionalized_v2 avg_pool1d avg_pool2d avg_pool2d_backward
        avg_pool3d avg_pool3d_backward baddbmm batch_norm_backward bernoulli bilinear binary_cross_entropy
        binary_cross_entropy_backward binary_cross_entropy_with_logits bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor bmm broadcast_in_dim broadcast_tensors bucketize cat cdist ceil celu channel_shuffle chunk
        clamp clamp_max clamp_min clone col2im complex cond conj_physical constant_pad_nd contiguous convert_element_type convolution
        convolution_backward copy copy_ copysign cos cosh count_nonzero cross cross_entropy_loss cudnn_batch_norm
        cudnn_batch_norm_backward cummax cummin cumprod cumsum deg2rad detach device_put diag diag_embed diagonal diagonal_backward
        diagonal_copy diagonal_scatter diff digamma dist div dot dropout einsum elu elu_backward embedding embedding_backward
        embedding_bag embedding_dense_backward empty empty_like empty_permuted empty_strided eq erf erfc erfinv exp exp2 expand
        expand_as expm1 exponential eye fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
        fake_quantize_per_tensor_affine_cachemask fill fill_ flatten flex_attention flex_attention_backward flip floor floor_divide
        fma fmax fmin fmod frac full full_like gather gather_backward gcd ge gelu gelu_backward getitem glu glu_backward
        grid_sampler_2d grid_sampler_2d_backward group_norm gru gt hardshrink hardsigmoid hardsigmoid_backward hardswish
        hardswish_backward hardtanh hardtanh_backward heaviside huber_loss huber_loss_backward hypot i0 im2col index index_add
        index_copy index_fill index_put index_put_ index_reduce index_select index_select_backward inductor_lookup_seed
        inductor_randint inductor_random inductor_seeds instance_norm iota isfinite isinf isnan item kl_div l1_loss layer_norm le
        leaky_relu leaky_relu_backward lerp lgamma lift_fresh lift_fresh_copy linalg_vector_norm linear linspace log log10 log1p
        log2 log_sigmoid_backward log_sigmoid_forward log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
        logical_or logical_xor logit logit_backward logsumexp lstm lt masked_fill masked_scatter masked_select matmul max
        max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward
        max_unpool2d maximum mean median min minimum mish mish_backward mm mod mse_loss mse_loss_backward mul mv nan_to_num narrow
        native_batch_norm native_batch_norm_backward native_dropout native_dropout_backward native_group_norm
        native_group_norm_backward native_layer_norm native_layer_norm_backward ne neg new_empty new_empty_strided new_full new_ones
        new_zeros nextafter nll_loss2d_backward nll_loss2d_forward nll_loss_backward nll_loss_forward nll_loss_nd nonzero norm
        normal normal_functional one_hot ones ones_like out_dtype pad permute philox_rand pixel_shuffle pixel_unshuffle
        polar polygamma pow prelu prepare_softmax_online prod rad2deg rand rand_like randint randint_like randn randn_like randperm
        reciprocal reduce_scatter_tensor reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward relu
        relu6 remainder renorm repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape resize rms_norm
        roll rot90 round rrelu_with_noise_functional rsqrt rsub scalar_tensor scaled_dot_product_attention scatter scatter_add
        scatter_reduce searchsorted select select_backward select_scatter selu set_ sgn sigmoid sigmoid_backward sign signbit silu
        silu_backward sin sinc sinh slice slice_backward slice_scatter smooth_l1_loss smooth_l1_loss_backward soft_margin_loss
        softmax softplus softplus_backward softshrink softshrink_backward sort special_entr special_erfcx special_i1 split
        split_with_sizes sqrt square squeeze stack std std_mean sub sum sum_to_size sym_size t take take_along_dim tan tanh
        tanh_backward threshold threshold_backward tile topk trace transpose tril triu trunc type_as unbind unflatten unfold
        unfold_backward uniform unsafe_split unsafe_split_with_sizes unsqueeze upsample_bicubic2d upsample_bicubic2d_backward
        upsample_bilinear2d upsample_bilinear2d_backward upsample_linear1d upsample_nearest1d upsample_nearest2d
        upsample_nearest2d_backward upsample_nearest3d upsample_trilinear3d value_selecting_reduction_backward var var_mean vdot view
        view_as_complex view_as_real view_copy wait_tensor where xlogy zero zero_ zeros zeros_like
    ', E' \n'), '\s+')) AS op
),

-- Longest first, so that native_layer_norm_backward is not native_layer_norm and a rest; else one word.
pattern AS (
    SELECT '(' || string_agg(op, '|' ORDER BY length(op) DESC, op) || '|_?[^_]+)_' AS pattern
    FROM known
),

whole AS (
    SELECT p.run, sum(a.dur_ns) AS kernel_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'kernel'
    GROUP BY p.run
),

alike AS (
    SELECT p.run, p.is_whole, a.name, o.details, count(*) AS kernels, sum(a.dur_ns) AS total_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id AND o.kernel_file IS NOT NULL
    WHERE a.kind = 'kernel' AND a.origin = 'inductor'
    GROUP BY ALL
),

-- Where kernels have no names of their own, the launch may know one.
named AS (
    SELECT
        run,
        is_whole,
        CASE WHEN contains(name, '_fused_') THEN name ELSE coalesce(details->>'$.kernel_name', name) END AS name,
        sum(kernels)::BIGINT AS kernels,
        sum(total_ns)::BIGINT AS total_ns
    FROM alike
    GROUP BY ALL
),

listed AS (
    SELECT *, regexp_extract(name, '^triton_(?:[a-z]+_)?fused_(?:(\w*?)_)?\d+$', 1) AS fused
    FROM named
),

words AS (
    SELECT
        d.fused,
        unnest(regexp_extract_all(d.fused || '_', p.pattern, 1)) AS word,
        generate_subscripts(regexp_extract_all(d.fused || '_', p.pattern, 1), 1) AS place
    FROM (SELECT DISTINCT fused FROM listed WHERE fused <> '') AS d
    CROSS JOIN pattern AS p
),

judged AS (
    SELECT
        w.fused,
        w.word,
        w.place,
        k.op IS NOT NULL AS is_known,
        -- Neighbours that nothing explains are one.
        sum(CASE WHEN k.op IS NOT NULL THEN 1 ELSE 0 END) OVER (PARTITION BY w.fused ORDER BY w.place) AS explained
    FROM words AS w
    LEFT JOIN known AS k ON k.op = w.word
),

parts AS (
    SELECT fused, min(place) AS place, string_agg(word, '_' ORDER BY place) AS op, is_known
    FROM judged
    GROUP BY fused, is_known, explained
),

split AS (
    SELECT
        fused,
        count(*) AS op_count,
        string_agg(op, ', ' ORDER BY place) AS ops,
        bool_and(is_known) AS is_known
    FROM parts
    GROUP BY fused
),

ranked AS (
    SELECT
        n.*,
        s.op_count,
        s.ops,
        s.is_known,
        CASE WHEN n.is_whole THEN 100.0 * n.total_ns / nullif(w.kernel_ns, 0) END AS pct_of_kernel,
        row_number() OVER (PARTITION BY n.run ORDER BY n.total_ns DESC, n.name) AS place
    FROM listed AS n
    JOIN whole AS w USING (run)
    LEFT JOIN split AS s ON s.fused = n.fused
)

SELECT
    run,
    name,
    op_count,
    ops,
    is_known,
    op_count >= 10 AS is_cut,
    kernels,
    total_ns,
    pct_of_kernel
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
