-- title: What stands in a compiler's way, and what it may improve
-- what: Operators and kernels that torch.compile stumbles over (blocker), and patterns of heavy kernels that it may replace by better ones (chance), with their number in a step that counts.
-- value: A blocker caps what compiling can bring until it is gone; a chance means that even heavy kernels may get faster.
-- needs: ops, gpu_activities, steps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: sign VARCHAR -- blocker or chance
-- column: kind VARCHAR -- data_dependent (the shape of a result depends on data), rnn, custom_autograd, nchw_conv, naive_attention
-- column: what VARCHAR -- operator or kernel
-- column: module VARCHAR -- module or range around it, if known
-- column: occurrences BIGINT count -- in all steps that count
-- column: per_step DOUBLE count -- over the number of those steps
-- column: gpu_ns BIGINT ns -- kernel time of those kernels, in the same steps; NULL for an operator without any
-- order: run, sign, kind, occurrences DESC
-- example: traceq query compile_signs --run eager

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

counted AS (
    SELECT p.run, count(*) AS steps
    FROM good_steps AS g
    JOIN picked AS p USING (trace_id)
    GROUP BY p.run
),

op AS (
    SELECT
        p.run,
        o.name,
        o.module,
        CASE
            WHEN regexp_full_match(o.name, 'aten::(nonzero|masked_select|_unique2?|unique_dim|unique_consecutive)') THEN 'data_dependent'
            WHEN regexp_full_match(o.name, 'aten::(_cudnn_rnn|miopen_rnn|_thnn_fused_(gru|lstm)_cell)') THEN 'rnn'
            -- Nodes of PyTorch's own end with a number; a Function of the user's does not.
            WHEN regexp_full_match(o.name, '[A-Za-z_]\w*Backward') AND NOT starts_with(o.name, 'Compiled') THEN 'custom_autograd'
        END AS kind
    FROM ops AS o
    JOIN picked AS p USING (trace_id)
    JOIN good_steps AS g ON g.trace_id = o.trace_id AND g.pid = o.pid AND g.step = o.step
),

kernel AS (
    SELECT
        p.run,
        a.short_name AS name,
        o.name AS op,
        o.module,
        a.category,
        a.dur_ns,
        regexp_matches(a.name, '(?i)nchwToNhwc|nhwcToNchw|_nchw_|nchwkcrs') AS is_nchw
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
    LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
    WHERE a.kind = 'kernel'
),

-- Batched products around a softmax, and no kernel made for attention.
naive AS (
    SELECT run
    FROM kernel
    GROUP BY run
    HAVING bool_or(op IN ('aten::_softmax', 'aten::softmax')) AND bool_or(op IN ('aten::bmm', 'aten::baddbmm')) AND NOT bool_or(category = 'attention')
),

signs AS (
    SELECT run, 'blocker' AS sign, kind, name AS what, module, NULL::BIGINT AS ns
    FROM op
    WHERE kind IS NOT NULL
    UNION ALL
    SELECT run, 'chance' AS sign, 'nchw_conv' AS kind, name AS what, module, dur_ns
    FROM kernel
    WHERE is_nchw
    UNION ALL
    SELECT k.run, 'chance' AS sign, 'naive_attention' AS kind, k.op AS what, k.module, k.dur_ns
    FROM kernel AS k
    JOIN naive AS n USING (run)
    WHERE k.op IN ('aten::_softmax', 'aten::softmax')
)

SELECT
    s.run,
    s.sign,
    s.kind,
    s.what,
    s.module,
    count(*) AS occurrences,
    count(*) / nullif(any_value(c.steps), 0) AS per_step,
    sum(s.ns)::BIGINT AS gpu_ns
FROM signs AS s
JOIN counted AS c USING (run)
GROUP BY s.run, s.sign, s.kind, s.what, s.module
ORDER BY s.run, s.sign, s.kind, occurrences DESC, s.what, s.module
