-- title: Time of copies and memsets, as nsys sums it
-- what: Copies by direction, and memsets, with number and durations on the GPU, all processes and devices of a run together, as nsys stats has it.
-- value: For those who know nsys: the same figures, from any trace. memcpys says which copies the host waits for, and how fast they are.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: time_pct DOUBLE percent -- of the time of all copies and memsets of the run; NULL if graph replays were not recorded
-- column: total_ns BIGINT ns -- sum of their durations
-- column: count BIGINT count -- operations
-- column: avg_ns DOUBLE ns -- mean
-- column: med_ns DOUBLE ns -- median; of an even number the mean of the two in the middle
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- column: stddev_ns DOUBLE ns -- standard deviation of a sample (n - 1); 0 for one
-- column: operation VARCHAR -- [CUDA memset], or [CUDA memcpy …] with its direction; Unified: moved by unified memory; Unknown if not recorded
-- chart: bar x=operation y=total_ns
-- order: run, total_ns DESC
-- example: traceq query cuda_gpu_mem_time_sum --run overlap

WITH operations AS (
    FROM (
        VALUES
            ('HtoD', 'Host-to-Device'), ('DtoH', 'Device-to-Host'), ('HtoA', 'Host-to-Array'), ('AtoH', 'Array-to-Host'),
            ('AtoA', 'Array-to-Array'), ('AtoD', 'Array-to-Device'), ('DtoA', 'Device-to-Array'), ('DtoD', 'Device-to-Device'),
            ('HtoH', 'Host-to-Host'), ('PtoP', 'Peer-to-Peer')
    ) AS v (copy_kind, label)
),

seen AS (
    SELECT run, max(invisible_replays) = 0 AS is_whole
    FROM labels
    GROUP BY run
),

named AS (
    SELECT
        m.run,
        CASE
            WHEN m.kind = 'memset' THEN '[CUDA memset]'
            ELSE concat('[CUDA memcpy ', CASE WHEN contains(m.name, '(Unified)') THEN 'Unified ' END, coalesce(o.label, 'Unknown'), ']')
        END AS operation,
        count(*) AS count,
        sum(m.dur_ns)::BIGINT AS total_ns,
        sum(m.dur_ns) / nullif(count(m.dur_ns), 0) AS avg_ns,
        median(m.dur_ns) AS med_ns,
        min(m.dur_ns) AS min_ns,
        max(m.dur_ns) AS max_ns,
        coalesce(sqrt((count(m.dur_ns) * sum(m.dur_ns::HUGEINT * m.dur_ns) - sum(m.dur_ns) * sum(m.dur_ns))::DOUBLE / nullif(count(m.dur_ns) * (count(m.dur_ns) - 1), 0)), 0) AS stddev_ns
    FROM memops AS m
    LEFT JOIN operations AS o ON o.copy_kind = m.copy_kind
    WHERE m.run = coalesce($run::VARCHAR, m.run)
    GROUP BY m.run, operation
)

SELECT
    n.run,
    CASE WHEN s.is_whole THEN 100.0 * n.total_ns / nullif(sum(n.total_ns) OVER (PARTITION BY n.run), 0) END AS time_pct,
    n.total_ns,
    n.count,
    n.avg_ns,
    n.med_ns,
    n.min_ns,
    n.max_ns,
    n.stddev_ns,
    n.operation
FROM named AS n
JOIN seen AS s USING (run)
ORDER BY n.run, n.total_ns DESC, n.operation
