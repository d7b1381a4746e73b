-- title: Ranges by name, as nsys sums them
-- what: NVTX ranges, or record_function and steps of torch.profiler, by name with number and lengths on the host, all threads of a run together, as nsys stats has it.
-- value: Where the host's time goes by the program's own names. Ranges inside others count in full in both.
-- needs: ranges
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: time_pct DOUBLE percent -- of the length of all ranges of the run
-- column: total_ns BIGINT ns -- sum of their lengths; a range that was never closed ends with the last range or mark of the trace
-- column: instances BIGINT count -- ranges
-- column: avg_ns DOUBLE ns -- mean
-- column: med_ns DOUBLE ns -- median; of an even number the mean of the two in the middle
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- column: stddev_ns DOUBLE ns -- standard deviation of a sample (n - 1); 0 for one
-- column: style VARCHAR -- PushPop, or StartEnd (nsys only)
-- column: range VARCHAR -- DOMAIN:NAME, of the default domain and of torch.profiler the name alone; emit_nvtx ids are left out
-- chart: bar x=range y=total_ns
-- order: run, total_ns DESC
-- example: traceq query nvtx_sum --run eager

WITH marked AS (
    SELECT *
    FROM nvtx_ranges
    WHERE run = coalesce($run::VARCHAR, run)
),

lasts AS (
    SELECT trace_id, max(start_ns + coalesce(dur_ns, 0)) AS last_ns
    FROM marked
    GROUP BY trace_id
),

timed AS (
    SELECT m.run, m.name, m.style, coalesce(m.dur_ns, l.last_ns - m.start_ns) AS dur_ns
    FROM marked AS m
    JOIN lasts AS l USING (trace_id)
    WHERE m.kind <> 'mark'
),

named AS (
    SELECT
        run,
        name,
        style,
        count(*) AS instances,
        sum(dur_ns)::BIGINT AS total_ns,
        sum(dur_ns) / nullif(count(dur_ns), 0) AS avg_ns,
        median(dur_ns) AS med_ns,
        min(dur_ns) AS min_ns,
        max(dur_ns) AS max_ns,
        coalesce(sqrt((count(dur_ns) * sum(dur_ns::HUGEINT * dur_ns) - sum(dur_ns) * sum(dur_ns))::DOUBLE / nullif(count(dur_ns) * (count(dur_ns) - 1), 0)), 0) AS stddev_ns
    FROM timed
    GROUP BY run, name, style
),

ranked AS (
    SELECT
        *,
        100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY run), 0) AS time_pct,
        row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, name, style) AS place
    FROM named
)

SELECT
    run,
    time_pct,
    total_ns,
    instances,
    avg_ns,
    med_ns,
    min_ns,
    max_ns,
    stddev_ns,
    style,
    name AS range
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
