-- title: Operators by the shapes of their inputs
-- what: Calls, own host time and kernel time of each operator and set of input shapes and element types; ranks are summed.
-- value: Shows which sizes cost the time, what to pad to a multiple of 8, and which shapes change (and make torch.compile recompile).
-- needs: ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: op VARCHAR = NULL -- part of the operator's name, or a pattern with * and ?; NULL means all
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- name of the operator
-- column: calls BIGINT count -- calls
-- column: gpu_self_ns BIGINT ns -- sum of the durations of the kernels that they launch directly; NULL if no GPU work was recorded
-- column: cpu_self_ns BIGINT ns -- host time in the calls less operators inside them
-- column: shapes VARCHAR -- shape of each input, [] for a scalar or a list of tensors; NULL where not recorded (record_shapes)
-- column: dtypes VARCHAR -- element type of each input; likewise
-- column: kernels BIGINT count -- kernels that these calls launch directly; NULL as gpu_self_ns
-- column: ns_per_call DOUBLE ns -- gpu_self_ns over calls
-- chart: bar x=shapes y=gpu_self_ns
-- order: run, gpu_self_ns DESC, cpu_self_ns DESC
-- example: traceq query op_shapes --run eager -p op=aten::addmm

WITH picked AS (
    SELECT trace_id, run
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

work AS (
    SELECT
        a.trace_id,
        a.op_id,
        count(*) FILTER (a.kind = 'kernel') AS kernels,
        sum(a.dur_ns) FILTER (a.kind = 'kernel') AS kernel_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    GROUP BY a.trace_id, a.op_id
),

seen AS (
    SELECT DISTINCT p.run
    FROM picked AS p
    JOIN (SELECT DISTINCT trace_id FROM work) AS w USING (trace_id)
),

grouped AS (
    SELECT
        p.run,
        o.name AS op,
        o.input_dims::VARCHAR AS dims,
        o.input_types::VARCHAR AS types,
        count(*) AS calls,
        coalesce(sum(w.kernels), 0)::BIGINT AS kernels,
        coalesce(sum(w.kernel_ns), 0)::BIGINT AS gpu_self_ns,
        sum(o.self_ns)::BIGINT AS cpu_self_ns
    FROM ops AS o
    JOIN picked AS p USING (trace_id)
    LEFT JOIN work AS w ON w.trace_id = o.trace_id AND w.op_id = o.op_id
    WHERE $op::VARCHAR IS NULL OR o.name GLOB $op::VARCHAR OR contains(o.name, $op::VARCHAR)
    GROUP BY ALL
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY gpu_self_ns DESC, cpu_self_ns DESC, op, dims, types) AS place
    FROM grouped
)

SELECT
    r.run,
    r.op,
    r.calls,
    CASE WHEN s.run IS NOT NULL THEN r.gpu_self_ns END AS gpu_self_ns,
    r.cpu_self_ns,
    r.dims AS shapes,
    replace(replace(replace(trim(r.types, '[]'), '"', ''), 'c10::', ''), ',', ', ') AS dtypes,
    CASE WHEN s.run IS NOT NULL THEN r.kernels END AS kernels,
    CASE WHEN s.run IS NOT NULL THEN r.gpu_self_ns / nullif(r.calls, 0) END AS ns_per_call
FROM ranked AS r
LEFT JOIN seen AS s USING (run)
WHERE r.place <= coalesce($top::BIGINT, r.place)
ORDER BY r.run, r.place
