-- title: Sizes of copies and memsets, as nsys sums them
-- what: Copies by direction, and memsets, with number and sizes, all processes and devices of a run together, as nsys stats has it (there in MB of 10⁶ bytes).
-- value: For those who know nsys: the same figures, from any trace. Many small copies are better made one.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: total_bytes BIGINT bytes -- sum of their sizes; NULL, as all that follows, if none was recorded
-- column: count BIGINT count -- operations whose size was recorded
-- column: avg_bytes DOUBLE bytes -- mean
-- column: med_bytes DOUBLE bytes -- median; of an even number the mean of the two in the middle
-- column: min_bytes BIGINT bytes -- smallest
-- column: max_bytes BIGINT bytes -- largest
-- column: stddev_bytes DOUBLE bytes -- standard deviation of a sample (n - 1); 0 for one
-- column: operation VARCHAR -- [CUDA memset], or [CUDA memcpy …] with its direction; Unified: moved by unified memory; Unknown if not recorded
-- chart: bar x=operation y=total_bytes
-- order: run, total_bytes DESC
-- example: traceq query cuda_gpu_mem_size_sum --run overlap

WITH operations AS (
    FROM (
        VALUES
            ('HtoD', 'Host-to-Device'), ('DtoH', 'Device-to-Host'), ('HtoA', 'Host-to-Array'), ('AtoH', 'Array-to-Host'),
            ('AtoA', 'Array-to-Array'), ('AtoD', 'Array-to-Device'), ('DtoA', 'Device-to-Array'), ('DtoD', 'Device-to-Device'),
            ('HtoH', 'Host-to-Host'), ('PtoP', 'Peer-to-Peer')
    ) AS v (copy_kind, label)
),

named AS (
    SELECT
        m.run,
        CASE
            WHEN m.kind = 'memset' THEN '[CUDA memset]'
            ELSE concat('[CUDA memcpy ', CASE WHEN contains(m.name, '(Unified)') THEN 'Unified ' END, coalesce(o.label, 'Unknown'), ']')
        END AS operation,
        nullif(count(m.bytes), 0) AS count,
        sum(m.bytes)::BIGINT AS total_bytes,
        sum(m.bytes) / nullif(count(m.bytes), 0) AS avg_bytes,
        median(m.bytes) AS med_bytes,
        min(m.bytes) AS min_bytes,
        max(m.bytes) AS max_bytes,
        CASE WHEN count(m.bytes) > 0 THEN coalesce(sqrt((count(m.bytes) * sum(m.bytes::HUGEINT * m.bytes) - sum(m.bytes) * sum(m.bytes))::DOUBLE / nullif(count(m.bytes) * (count(m.bytes) - 1), 0)), 0) END AS stddev_bytes
    FROM memops AS m
    LEFT JOIN operations AS o ON o.copy_kind = m.copy_kind
    WHERE m.run = coalesce($run::VARCHAR, m.run)
    GROUP BY m.run, operation
)

SELECT
    run,
    total_bytes,
    count,
    avg_bytes,
    med_bytes,
    min_bytes,
    max_bytes,
    stddev_bytes,
    operation
FROM named
ORDER BY run, total_bytes DESC NULLS LAST, operation
