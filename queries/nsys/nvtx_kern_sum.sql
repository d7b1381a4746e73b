-- title: Kernels by the range that launched them, as nsys sums them
-- what: For each range, thread and kernel: in how many ranges, how many kernels, and their durations, as nsys stats has it; a kernel counts in every range around its launch. In a range is a call on its thread that neither starts before nor ends after it; ranges never closed, or closed on another thread, hold none.
-- value: Says what a part of the program, by its own name, does on the GPU. op_kernels and module_time do so for operators and modules.
-- needs: ranges, gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 50 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: range VARCHAR -- DOMAIN:NAME, of the default domain and of torch.profiler the name alone; NULL for kernels launched in none
-- column: style VARCHAR -- PushPop, or StartEnd (nsys only); NULL likewise
-- column: pid BIGINT -- process that launches, as the system numbers it; NULL without a recorded launch
-- column: tid VARCHAR -- thread that launches, as recorded
-- column: nvtx_inst BIGINT count -- ranges; 0 for none
-- column: kern_inst BIGINT count -- kernels
-- column: total_ns BIGINT ns -- sum of their durations
-- column: avg_ns DOUBLE ns -- mean
-- column: med_ns DOUBLE ns -- median
-- column: min_ns BIGINT ns -- shortest
-- column: max_ns BIGINT ns -- longest
-- column: stddev_ns DOUBLE ns -- standard deviation of a sample (n - 1); 0 for one
-- column: kernel_name VARCHAR -- name of the kernel
-- order: run, total_ns DESC
-- example: traceq query nvtx_kern_sum --run eager -p top=5

WITH marked AS (
    SELECT *
    FROM nvtx_ranges
    WHERE run = coalesce($run::VARCHAR, run) AND kind <> 'mark'
),

works AS (
    SELECT l.run, l.rank, a.trace_id, a.activity_id, a.launch_id, a.name, a.dur_ns
    FROM gpu_activities AS a
    JOIN labels AS l USING (trace_id)
    WHERE a.kind = 'kernel' AND l.run = coalesce($run::VARCHAR, l.run)
),

-- Calls that launched something, and replays that were not recorded, numbered along each thread.
launching AS (
    SELECT
        l.trace_id,
        c.call_id,
        c.pid,
        c.tid,
        c.start_ns,
        c.start_ns + c.dur_ns AS end_ns,
        row_number() OVER (PARTITION BY l.trace_id, c.pid, c.tid ORDER BY c.start_ns, c.call_id) - 1 AS place
    FROM api_calls AS c
    JOIN labels AS l USING (trace_id)
    WHERE
        l.run = coalesce($run::VARCHAR, l.run)
        AND ((c.trace_id, c.call_id) IN (SELECT (w.trace_id, w.launch_id) FROM works AS w))
),

-- Ranges with the numbers of the calls that start in them: from low to below high.
ends AS (
    SELECT trace_id, pid, tid, start_ns AS at_ns, 1 AS turn, NULL::BIGINT AS id, 1 AS calls
    FROM launching
    UNION ALL
    SELECT trace_id, pid, tid, start_ns, 0, id, 0
    FROM marked
    WHERE dur_ns IS NOT NULL AND end_tid IS NULL
    UNION ALL
    SELECT trace_id, pid, tid, start_ns + dur_ns, 2, id, 0
    FROM marked
    WHERE dur_ns IS NOT NULL AND end_tid IS NULL
),

counted AS (
    SELECT trace_id, id, turn, sum(calls) OVER (PARTITION BY trace_id, pid, tid ORDER BY at_ns, turn RANGE UNBOUNDED PRECEDING)::BIGINT AS calls
    FROM ends
),

spans AS (
    SELECT trace_id, id, min(calls) AS low, max(calls) AS high
    FROM counted
    WHERE id IS NOT NULL
    GROUP BY trace_id, id
    HAVING max(calls) > min(calls)
),

-- Each such stretch as few blocks of 2^bits numbers, so that calls find their ranges by equality; ranges may cross.
halved AS (
    SELECT trace_id, id, low, high, unnest(range(1 + floor(log2(high - low))::BIGINT)) AS bits
    FROM spans
),

sides AS (
    SELECT trace_id, id, bits, (low + (1::BIGINT << bits) - 1) >> bits AS low, high >> bits AS high
    FROM halved
),

blocks AS (
    SELECT trace_id, id, bits, low AS block
    FROM sides
    WHERE low < high AND low & 1 = 1
    UNION ALL
    SELECT trace_id, id, bits, high - 1
    FROM sides
    WHERE low < high AND high & 1 = 1
),

spread AS (
    SELECT c.*, b.bits, c.place >> b.bits AS block
    FROM launching AS c
    JOIN (SELECT DISTINCT trace_id, bits FROM blocks) AS b USING (trace_id)
),

inside AS (
    SELECT m.run, m.trace_id, m.id, c.call_id
    FROM spread AS c
    JOIN blocks AS b ON b.trace_id = c.trace_id AND b.bits = c.bits AND b.block = c.block
    JOIN marked AS m ON m.trace_id = b.trace_id AND m.id = b.id AND m.pid IS NOT DISTINCT FROM c.pid AND m.tid IS NOT DISTINCT FROM c.tid
    WHERE m.start_ns + m.dur_ns >= c.end_ns
),

grouped AS (
    SELECT
        w.run,
        w.rank,
        w.trace_id,
        m.name AS range_name,
        m.style,
        c.pid,
        c.tid,
        w.name,
        count(DISTINCT m.id) AS nvtx_inst,
        count(*) AS kern_inst,
        sum(w.dur_ns)::BIGINT AS total_ns,
        sum(w.dur_ns) / nullif(count(w.dur_ns), 0) AS avg_ns,
        median(w.dur_ns) AS med_ns,
        min(w.dur_ns) AS min_ns,
        max(w.dur_ns) AS max_ns,
        coalesce(sqrt((count(w.dur_ns) * sum(w.dur_ns::HUGEINT * w.dur_ns) - sum(w.dur_ns) * sum(w.dur_ns))::DOUBLE / nullif(count(w.dur_ns) * (count(w.dur_ns) - 1), 0)), 0) AS stddev_ns
    FROM works AS w
    LEFT JOIN inside AS i ON i.trace_id = w.trace_id AND i.call_id = w.launch_id
    LEFT JOIN marked AS m ON m.trace_id = i.trace_id AND m.id = i.id
    LEFT JOIN api_calls AS c ON c.trace_id = w.trace_id AND c.call_id = w.launch_id
    GROUP BY w.run, w.rank, w.trace_id, m.name, m.style, c.pid, c.tid, w.name
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY total_ns DESC, range_name, style, rank, pid, tid, name, trace_id) AS place
    FROM grouped
)

SELECT
    g.run,
    g.rank,
    g.range_name AS range,
    g.style,
    coalesce(p.os_pid, try_cast(g.pid AS BIGINT)) AS pid,
    g.tid,
    g.nvtx_inst,
    g.kern_inst,
    g.total_ns,
    g.avg_ns,
    g.med_ns,
    g.min_ns,
    g.max_ns,
    g.stddev_ns,
    g.name AS kernel_name
FROM ranked AS g
LEFT JOIN processes AS p ON p.trace_id = g.trace_id AND p.pid = g.pid
WHERE g.place <= coalesce($top::BIGINT, g.place)
ORDER BY g.run, g.place
