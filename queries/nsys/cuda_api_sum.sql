-- title: CUDA calls by name, as nsys sums them
-- what: Calls of the CUDA runtime and driver API (or HIP) by name with number and lengths, all processes and threads of a run together, as nsys stats has it.
-- value: For those who know nsys: the same figures, from any trace. api_time says what each call is for and what share of its thread it takes.
-- needs: api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: time_pct DOUBLE percent -- of the time of all calls of the run
-- column: total_ns BIGINT ns -- sum of their lengths
-- column: num_calls BIGINT count -- calls
-- column: avg_ns DOUBLE ns -- mean
-- column: med_ns DOUBLE ns -- median; of an even number the mean of the two in the middle
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- column: stddev_ns DOUBLE ns -- standard deviation of a sample (n - 1); 0 for one
-- column: name VARCHAR -- name of the call as nsys prints it: as recorded, without _v and four digits at its end; versions of a call have a row each
-- chart: bar x=name y=total_ns
-- order: run, total_ns DESC
-- example: traceq query cuda_api_sum --run eager

WITH named AS (
    SELECT
        l.run,
        c.recorded_name,
        count(*) AS num_calls,
        sum(c.dur_ns)::BIGINT AS total_ns,
        sum(c.dur_ns) / nullif(count(c.dur_ns), 0) AS avg_ns,
        median(c.dur_ns) AS med_ns,
        min(c.dur_ns) AS min_ns,
        max(c.dur_ns) AS max_ns,
        coalesce(sqrt((count(c.dur_ns) * sum(c.dur_ns::HUGEINT * c.dur_ns) - sum(c.dur_ns) * sum(c.dur_ns))::DOUBLE / nullif(count(c.dur_ns) * (count(c.dur_ns) - 1), 0)), 0) AS stddev_ns
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run)
    GROUP BY l.run, c.recorded_name
),

ranked AS (
    SELECT
        *,
        100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run), 0) AS time_pct,
        row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, recorded_name) AS place
    FROM named
)

SELECT
    run,
    time_pct,
    total_ns,
    num_calls,
    avg_ns,
    med_ns,
    min_ns,
    max_ns,
    stddev_ns,
    regexp_replace(recorded_name, '_v.{4}$', '') AS name
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
