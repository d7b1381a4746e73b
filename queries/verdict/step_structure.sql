-- title: What a compiler finds in a step
-- what: For each step that counts its launches by what they start, and the groups of fusible kernels that stand between heavy ones, copies and the user's own kernels; the optimizer apart.
-- value: Few long groups are what fusion merges; many short ones between matrix products leave it little.
-- needs: gpu_activities, api_calls, steps, gaps
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step
-- column: launched BIGINT count -- kernels, copies and memsets
-- column: kept BIGINT count -- of these, heavy kernels, communication, copies, memsets and kernels of the user's own
-- column: optimizer BIGINT count -- fusible kernels of the optimizer, which is not compiled with the model
-- column: optimizer_ns BIGINT ns -- sum of their durations
-- column: fusible BIGINT count -- the other fusible kernels
-- column: fusible_ns BIGINT ns -- sum of their durations
-- column: fusible_groups BIGINT count -- groups that they form: neighbours on a stream with nothing else between them
-- column: longest_ns BIGINT ns -- sum of each group's longest kernel: about what a perfectly fused group still moves
-- column: optimizer_python_ns BIGINT ns -- idle time that Python outside of operators caused before work of the optimizer
-- column: has_backward BOOLEAN -- whether kernels of a backward pass are among them
-- order: run, rank, step
-- example: traceq query step_structure --run eager

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run) AND invisible_replays = 0
),

work AS NOT MATERIALIZED (
    SELECT
        a.trace_id,
        a.pid,
        a.step,
        a.device,
        a.stream,
        a.activity_id,
        a.start_ns,
        a.dur_ns,
        a.phase,
        CASE
            WHEN
                a.kind <> 'kernel' OR a.category IN ('gemm', 'conv', 'attention', 'rnn', 'comm', 'sort') OR a.origin IN ('triton', 'custom')
                THEN 'kept'
            WHEN a.phase = 'optimizer' THEN 'optimizer'
            ELSE 'fusible'
        END AS part
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    JOIN good_steps AS g ON g.trace_id = a.trace_id AND g.pid = a.pid AND g.step = a.step
),

-- An optimizer alone is what would be compiled.
counted AS (
    SELECT
        trace_id,
        pid,
        step,
        bool_and(part = 'optimizer') AS is_optimizer,
        count(*) AS launched,
        count(*) FILTER (part = 'kept') AS kept,
        count(*) FILTER (part = 'optimizer') AS optimizer,
        coalesce(sum(dur_ns) FILTER (part = 'optimizer'), 0) AS optimizer_ns,
        bool_or(phase = 'backward') AS has_backward
    FROM work
    GROUP BY trace_id, pid, step
),

judged AS (
    SELECT
        w.trace_id,
        w.pid,
        w.step,
        w.device,
        w.stream,
        w.activity_id,
        w.start_ns,
        w.dur_ns,
        w.part = 'fusible' OR c.is_optimizer AS is_fusible
    FROM work AS w
    JOIN counted AS c ON c.trace_id = w.trace_id AND c.pid = w.pid AND c.step = w.step
),

marked AS (
    SELECT
        *,
        sum(CASE WHEN is_fusible THEN 0 ELSE 1 END) OVER (
            PARTITION BY trace_id, pid, step, device, stream ORDER BY start_ns, activity_id
        ) AS before
    FROM judged
),

groups_of AS (
    SELECT trace_id, pid, step, device, stream, before, count(*) AS kernels, sum(dur_ns) AS ns, max(dur_ns) AS longest_ns
    FROM marked
    WHERE is_fusible
    GROUP BY ALL
),

fused AS (
    SELECT trace_id, pid, step, count(*) AS fusible_groups, sum(kernels) AS kernels, sum(ns) AS ns, sum(longest_ns) AS longest_ns
    FROM groups_of
    GROUP BY trace_id, pid, step
),

late AS (
    SELECT a.trace_id, a.pid, a.step, sum(p.ns) AS python_ns
    FROM gap_parts AS p
    JOIN gaps AS g USING (trace_id, gap_id)
    JOIN gpu_activities AS a ON a.trace_id = g.trace_id AND a.activity_id = g.after_id
    WHERE p.cause = 'python' AND a.phase = 'optimizer'
    GROUP BY ALL
)

SELECT
    p.run,
    p.rank,
    c.step,
    c.launched,
    c.kept,
    CASE WHEN c.is_optimizer THEN 0 ELSE c.optimizer END AS optimizer,
    CASE WHEN c.is_optimizer THEN 0 ELSE c.optimizer_ns END::BIGINT AS optimizer_ns,
    coalesce(f.kernels, 0)::BIGINT AS fusible,
    coalesce(f.ns, 0)::BIGINT AS fusible_ns,
    coalesce(f.fusible_groups, 0) AS fusible_groups,
    coalesce(f.longest_ns, 0)::BIGINT AS longest_ns,
    coalesce(l.python_ns, 0)::BIGINT AS optimizer_python_ns,
    c.has_backward
FROM counted AS c
JOIN picked AS p USING (trace_id)
LEFT JOIN late AS l ON l.trace_id = c.trace_id AND l.pid = c.pid AND l.step = c.step
LEFT JOIN fused AS f ON f.trace_id = c.trace_id AND f.pid = c.pid AND f.step = c.step
ORDER BY p.run, p.rank, c.step, c.pid, c.trace_id
