-- title: Ranges projected on the GPU, as nsys sums them
-- what: Ranges by name with the time on the GPU from the first start to the last end of what was launched in each, gaps and others' work included, as nsys stats has it. In a range is a call on its thread that neither starts before nor ends after it; ranges never closed, or closed on another thread, hold none.
-- value: The length of a range on the host says little, since launches return at once: this says when its work was done.
-- needs: ranges, gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: top BIGINT = 20 -- rows to show for each run; NULL means all
-- column: run VARCHAR -- run label
-- column: range VARCHAR -- DOMAIN:NAME, of the default domain and of torch.profiler the name alone; emit_nvtx ids are left out
-- column: style VARCHAR -- PushPop, or StartEnd (nsys only)
-- column: total_proj_ns BIGINT ns -- sum of the projected times
-- column: total_range_ns BIGINT ns -- sum of the lengths on the host
-- column: range_instances BIGINT count -- ranges that launched something
-- column: proj_avg_ns DOUBLE ns -- mean of the projected times
-- column: proj_med_ns DOUBLE ns -- their median
-- column: proj_min_ns BIGINT ns -- the shortest
-- column: proj_max_ns BIGINT ns -- the longest
-- column: proj_stddev_ns DOUBLE ns -- their standard deviation of a sample (n - 1); 0 for one
-- column: total_gpu_ops BIGINT count -- launches with work on the GPU: a graph counts once
-- column: avg_gpu_ops DOUBLE count -- those of a range, mean
-- column: avg_range_lvl DOUBLE count -- ranges around it on its thread, mean
-- column: avg_num_child DOUBLE count -- ranges directly in it, mean
-- column: hidden_replays BIGINT count -- graph launches in them whose work was not recorded: with any, the projected times may be longer
-- chart: bar x=range y=total_proj_ns
-- order: run, total_proj_ns DESC
-- example: traceq query nvtx_gpu_proj_sum --run eager

WITH marked AS (
    SELECT *
    FROM nvtx_ranges
    WHERE run = coalesce($run::VARCHAR, run) AND kind <> 'mark'
),

works AS (
    SELECT a.trace_id, a.launch_id AS call_id, min(a.start_ns) AS start_ns, max(a.start_ns + a.dur_ns) AS end_ns
    FROM gpu_activities AS a
    WHERE a.launch_id IS NOT NULL
    GROUP BY a.trace_id, a.launch_id
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
        AND ((c.role = 'graph_launch' AND c.correlation_id <> 0) OR (c.trace_id, c.call_id) IN (SELECT (w.trace_id, w.call_id) FROM works AS w))
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

projected AS (
    SELECT
        i.trace_id,
        i.id,
        max(w.end_ns) - min(w.start_ns) AS proj_ns,
        count(w.call_id) AS gpu_ops,
        count(*) - count(w.call_id) AS hidden
    FROM inside AS i
    LEFT JOIN works AS w ON w.trace_id = i.trace_id AND w.call_id = i.call_id
    GROUP BY i.trace_id, i.id
    HAVING count(w.call_id) > 0
),

-- How ranges nest on their thread: what starts while another is open is in it. Of what starts together the longer is outside.
edges AS (
    SELECT trace_id, pid, tid, id, start_ns AS at_ns, 1 AS turn, -dur_ns AS size, CASE WHEN dur_ns > 0 THEN 1 ELSE 0 END AS opened
    FROM marked
    WHERE dur_ns IS NOT NULL AND end_tid IS NULL
    UNION ALL
    SELECT trace_id, pid, tid, id, start_ns + dur_ns, 0, 0, -1
    FROM marked
    WHERE dur_ns > 0 AND end_tid IS NULL
),

leveled AS (
    SELECT
        trace_id,
        pid,
        tid,
        id,
        at_ns,
        size,
        turn,
        sum(opened) OVER (PARTITION BY trace_id, pid, tid ORDER BY at_ns, turn, size, id ROWS UNBOUNDED PRECEDING) - opened AS level
    FROM edges
),

-- Along each thread and level: the last range of the level above is the parent.
levels AS (
    SELECT trace_id, pid, tid, id, level::BIGINT AS level, row_number() OVER (PARTITION BY trace_id, pid, tid ORDER BY at_ns, size, id) AS place
    FROM leveled
    WHERE turn = 1
),

lanes AS (
    SELECT *, dense_rank() OVER (ORDER BY trace_id, pid, tid) AS lane
    FROM levels
),

children AS (
    SELECT p.trace_id, p.id, count(*) AS children
    FROM lanes AS c
    ASOF JOIN lanes AS p ON p.lane = c.lane AND p.level = c.level - 1 AND c.place >= p.place
    GROUP BY p.trace_id, p.id
),

named AS (
    SELECT
        m.run,
        m.name,
        m.style,
        count(*) AS range_instances,
        sum(m.dur_ns)::BIGINT AS total_range_ns,
        sum(p.proj_ns)::BIGINT AS proj_total_ns,
        sum(p.proj_ns) / nullif(count(p.proj_ns), 0) AS proj_avg_ns,
        median(p.proj_ns) AS proj_med_ns,
        min(p.proj_ns) AS proj_min_ns,
        max(p.proj_ns) AS proj_max_ns,
        coalesce(sqrt((count(p.proj_ns) * sum(p.proj_ns::HUGEINT * p.proj_ns) - sum(p.proj_ns) * sum(p.proj_ns))::DOUBLE / nullif(count(p.proj_ns) * (count(p.proj_ns) - 1), 0)), 0) AS proj_stddev_ns,
        sum(p.gpu_ops)::BIGINT AS total_gpu_ops,
        sum(p.gpu_ops) / nullif(count(*), 0) AS avg_gpu_ops,
        sum(v.level) / nullif(count(*), 0) AS avg_range_lvl,
        sum(coalesce(c.children, 0)) / nullif(count(*), 0) AS avg_num_child,
        sum(p.hidden)::BIGINT AS hidden_replays
    FROM projected AS p
    JOIN marked AS m ON m.trace_id = p.trace_id AND m.id = p.id
    JOIN levels AS v ON v.trace_id = p.trace_id AND v.id = p.id
    LEFT JOIN children AS c ON c.trace_id = p.trace_id AND c.id = p.id
    GROUP BY m.run, m.name, m.style
),

ranked AS (
    SELECT *, row_number() OVER (PARTITION BY run ORDER BY proj_total_ns DESC, name, style) AS place
    FROM named
)

SELECT
    run,
    name AS range,
    style,
    proj_total_ns AS total_proj_ns,
    total_range_ns,
    range_instances,
    proj_avg_ns,
    proj_med_ns,
    proj_min_ns,
    proj_max_ns,
    proj_stddev_ns,
    total_gpu_ops,
    avg_gpu_ops,
    avg_range_lvl,
    avg_num_child,
    hidden_replays
FROM ranked
WHERE place <= coalesce($top::BIGINT, place)
ORDER BY run, place
