-- title: What asks for a kernel
-- what: Operators with their phase, module, input shapes and element types, by the time of the kernels that they launched.
-- value: Leads from a kernel to the line of the model that asks for it, and to the shapes that make it slow.
-- needs: gpu_activities, ops
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: name VARCHAR = NULL -- kernel name, whole and as recorded; NULL means all kernels
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: op VARCHAR -- innermost operator around the launch; NULL for none
-- column: phase VARCHAR -- forward, backward, optimizer, data or other
-- column: module VARCHAR -- path of the module around the operator; NULL where not recorded
-- column: shapes VARCHAR -- shape of each input; NULL where not recorded (record_shapes)
-- column: dtypes VARCHAR -- element type of each input; likewise
-- column: kernels BIGINT count -- kernels launched there
-- column: total_ns BIGINT ns -- sum of their durations
-- column: pct_of_name DOUBLE percent -- of the time of all kernels of that name
-- column: mean_ns DOUBLE ns -- mean duration
-- chart: bar x=op y=total_ns
-- order: run, total_ns DESC, op
-- example: traceq query kernel_callers --run eager -p top=5

WITH grouped AS (
    SELECT
        k.run,
        o.name AS op,
        k.phase,
        o.module,
        o.input_dims::VARCHAR AS shapes,
        o.input_types::VARCHAR AS types,
        count(*) AS kernels,
        sum(k.dur_ns)::BIGINT AS total_ns
    FROM kernels AS k
    LEFT JOIN ops AS o ON o.trace_id = k.trace_id AND o.op_id = k.op_id
    WHERE k.run = coalesce($run::VARCHAR, k.run) AND ($name::VARCHAR IS NULL OR k.name = $name::VARCHAR)
    GROUP BY ALL
),

ranked AS (
    SELECT
        *,
        sum(total_ns) OVER (PARTITION BY run) AS all_ns,
        row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, op, phase, module, shapes, types) AS place
    FROM grouped
)

SELECT
    run,
    op,
    phase,
    module,
    shapes,
    replace(replace(replace(trim(types, '[]'), '"', ''), 'c10::', ''), ',', ', ') AS dtypes,
    kernels,
    total_ns,
    100.0 * total_ns / nullif(all_ns, 0) AS pct_of_name,
    total_ns / nullif(kernels, 0) AS mean_ns
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
