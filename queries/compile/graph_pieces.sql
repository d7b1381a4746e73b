-- title: How many compiled pieces each step falls into
-- what: For each step of a trace with torch.compile its compiled pieces, forward and backward, the kernels launched in them and outside, and CUDA graph launches.
-- value: 1 piece forward and 1 backward is a whole graph; more are graph breaks, and what runs around the pieces is not fused. TORCH_LOGS=graph_breaks says where.
-- needs: ops, ranges, api_calls, gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: step BIGINT -- number of the step; NULL for what is in none
-- column: flags VARCHAR -- no_gpu, compiles, partial; NULL if none
-- column: pieces BIGINT count -- compiled graphs called, but for those of backward; autograd functions, else regions, where the trace does not record graphs
-- column: backward_pieces BIGINT count -- likewise those of backward; NULL where the trace records regions alone
-- column: regions BIGINT count -- regions run: functions that Dynamo rewrote and, after each graph break, their rest; NULL if the trace does not record them
-- column: frames BIGINT count -- different ones, by the i of region i/j; NULL if not recorded
-- column: kernels BIGINT count -- kernels launched; NULL, as all numbers of kernels, if graph replays were not recorded
-- column: piece_kernels BIGINT count -- of these, launched within a piece
-- column: around_kernels BIGINT count -- launched within a region or autograd function but in no piece: what a graph break leaves, and copies for the pieces
-- column: eager_kernels BIGINT count -- launched outside of all
-- column: eager_ns BIGINT ns -- sum of the durations of those two
-- column: graph_launches BIGINT count -- CUDA graph launches
-- chart: bar x=step y=pieces
-- order: run, rank, start
-- example: traceq query graph_pieces --run default

WITH picked AS (
    SELECT trace_id, run, rank, invisible_replays = 0 AS is_whole
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

marks AS (
    SELECT s.*
    FROM host_spans AS s
    JOIN picked USING (trace_id)
    WHERE starts_with(s.name, 'Torch-Compiled Region') OR starts_with(s.name, '## Call CompiledFxGraph') OR starts_with(s.name, 'CompiledFunction')
),

kinds AS (
    SELECT
        *,
        CASE
            WHEN starts_with(name, 'Torch') THEN 'region'
            WHEN starts_with(name, '##') THEN 'graph'
            WHEN contains(name, 'Backward') THEN 'backward'
            ELSE 'forward'
        END AS kind
    FROM marks
),

-- What counts as a piece is what the trace records of it.
compiled AS (
    SELECT
        trace_id,
        bool_or(kind = 'region') AS has_regions,
        bool_or(kind = 'graph') AS has_graphs,
        bool_or(kind IN ('forward', 'backward')) AS has_functions
    FROM kinds
    GROUP BY trace_id
),

judged AS (
    SELECT
        k.*,
        CASE WHEN c.has_graphs THEN k.kind = 'graph' WHEN c.has_functions THEN k.kind <> 'region' ELSE k.kind = 'region' END AS is_piece
    FROM kinds AS k
    JOIN compiled AS c USING (trace_id)
),

-- Unions on each thread, as intervals that do not overlap, of all marks, of pieces, and of backward functions.
sets AS (
    SELECT *, 'all' AS what FROM judged
    UNION ALL
    SELECT *, 'piece' AS what FROM judged WHERE is_piece
    UNION ALL
    SELECT *, 'backward' AS what FROM judged WHERE kind = 'backward'
),

merged AS (
    SELECT
        trace_id,
        what,
        pid,
        tid,
        end_ns,
        greatest(start_ns, coalesce(max(end_ns) OVER (
            PARTITION BY trace_id, what, pid, tid ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns)) AS from_ns
    FROM sets
),

intervals AS (
    SELECT trace_id, what, pid, tid, from_ns, end_ns
    FROM merged
    WHERE end_ns > from_ns
),

-- Steps by the start on the host; where they overlap, the one that began last counts.
placed AS (
    SELECT
        j.trace_id,
        j.pid,
        j.kind,
        j.name,
        j.is_piece,
        j.kind = 'backward' OR coalesce(j.start_ns < b.end_ns, false) AS is_backward,
        CASE WHEN j.start_ns < s.start_ns + s.dur_ns THEN s.step END AS step
    FROM judged AS j
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE what = 'backward') AS b
        ON j.trace_id = b.trace_id AND j.pid = b.pid AND j.tid = b.tid AND j.start_ns >= b.from_ns
    ASOF LEFT JOIN steps AS s ON j.trace_id = s.trace_id AND j.pid = s.pid AND j.start_ns >= s.start_ns
),

marked AS (
    SELECT
        trace_id,
        pid,
        step,
        count(*) FILTER (is_piece AND NOT is_backward) AS pieces,
        count(*) FILTER (is_piece AND is_backward) AS backward_pieces,
        count(*) FILTER (kind = 'region') AS regions,
        count(DISTINCT nullif(regexp_extract(name, '^Torch-Compiled Region: (?:!\d+/)?(\d+)/\d+', 1), '')) AS frames
    FROM placed
    GROUP BY trace_id, pid, step
),

launched AS (
    SELECT trace_id, launch_id, count(*) AS kernels, sum(dur_ns) AS kernel_ns
    FROM gpu_activities
    WHERE kind = 'kernel' AND trace_id IN (SELECT trace_id FROM compiled)
    GROUP BY trace_id, launch_id
),

calls AS (
    SELECT
        c.trace_id,
        c.pid,
        c.tid,
        c.start_ns,
        c.step,
        c.role,
        coalesce(l.kernels, 0) AS kernels,
        coalesce(l.kernel_ns, 0) AS kernel_ns
    FROM api_calls AS c
    LEFT JOIN launched AS l ON l.trace_id = c.trace_id AND l.launch_id = c.call_id
    WHERE c.trace_id IN (SELECT trace_id FROM compiled) AND (l.launch_id IS NOT NULL OR c.role = 'graph_launch')
),

inside AS (
    SELECT c.*, coalesce(c.start_ns < p.end_ns, false) AS in_piece, coalesce(c.start_ns < a.end_ns, false) AS in_any
    FROM calls AS c
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE what = 'piece') AS p
        ON c.trace_id = p.trace_id AND c.pid = p.pid AND c.tid = p.tid AND c.start_ns >= p.from_ns
    ASOF LEFT JOIN (SELECT * FROM intervals WHERE what = 'all') AS a
        ON c.trace_id = a.trace_id AND c.pid = a.pid AND c.tid = a.tid AND c.start_ns >= a.from_ns
),

worked AS (
    SELECT
        trace_id,
        pid,
        step,
        sum(kernels) AS kernels,
        coalesce(sum(kernels) FILTER (in_piece), 0) AS piece_kernels,
        coalesce(sum(kernels) FILTER (in_any AND NOT in_piece), 0) AS around_kernels,
        coalesce(sum(kernels) FILTER (NOT in_any), 0) AS eager_kernels,
        coalesce(sum(kernel_ns) FILTER (NOT in_piece), 0) AS eager_ns,
        count(*) FILTER (role = 'graph_launch') AS graph_launches
    FROM inside
    GROUP BY trace_id, pid, step
),

listed AS (
    SELECT s.trace_id, s.pid, s.step, s.start_ns, nullif(array_to_string(s.flags, ', '), '') AS flags
    FROM steps AS s
    WHERE s.trace_id IN (SELECT trace_id FROM compiled)
    UNION ALL
    SELECT trace_id, pid, NULL AS step, NULL AS start_ns, NULL AS flags
    FROM (
        SELECT trace_id, pid FROM marked WHERE step IS NULL
        UNION
        SELECT trace_id, pid FROM worked WHERE step IS NULL
    )
)

SELECT
    p.run,
    p.rank,
    n.step,
    n.flags,
    coalesce(m.pieces, 0) AS pieces,
    CASE WHEN c.has_graphs OR c.has_functions THEN coalesce(m.backward_pieces, 0) END AS backward_pieces,
    CASE WHEN c.has_regions THEN coalesce(m.regions, 0) END AS regions,
    CASE WHEN c.has_regions AND (m.regions IS NULL OR m.frames > 0 OR m.regions = 0) THEN coalesce(m.frames, 0) END AS frames,
    CASE WHEN p.is_whole THEN coalesce(w.kernels, 0) END::BIGINT AS kernels,
    CASE WHEN p.is_whole THEN coalesce(w.piece_kernels, 0) END::BIGINT AS piece_kernels,
    CASE WHEN p.is_whole THEN coalesce(w.around_kernels, 0) END::BIGINT AS around_kernels,
    CASE WHEN p.is_whole THEN coalesce(w.eager_kernels, 0) END::BIGINT AS eager_kernels,
    CASE WHEN p.is_whole THEN coalesce(w.eager_ns, 0) END::BIGINT AS eager_ns,
    coalesce(w.graph_launches, 0) AS graph_launches
FROM listed AS n
JOIN picked AS p USING (trace_id)
JOIN compiled AS c USING (trace_id)
LEFT JOIN marked AS m ON m.trace_id = n.trace_id AND m.pid IS NOT DISTINCT FROM n.pid AND m.step IS NOT DISTINCT FROM n.step
LEFT JOIN worked AS w ON w.trace_id = n.trace_id AND w.pid IS NOT DISTINCT FROM n.pid AND w.step IS NOT DISTINCT FROM n.step
ORDER BY p.run, p.rank, n.start_ns, n.step, n.pid, n.trace_id
