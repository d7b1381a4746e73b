-- title: What fills each cell of a timeline
-- what: A stretch of time cut into equal cells; for each lane and cell what is in it, the larger part first.
-- value: The picture that the timeline of traceq tui draws, at any zoom: a cell has a row only if something is in it.
-- needs: gpu_activities
-- param: run VARCHAR = NULL -- run label; NULL means the first run
-- param: rank BIGINT = NULL -- rank; NULL means the first
-- param: start_ns BIGINT = 0 -- where the first cell begins, from the start of the trace
-- param: cell_ns BIGINT = NULL -- length of a cell; NULL means so long that the rest of the trace fits
-- param: cells BIGINT = 100 -- how many cells, at most 65536
-- param: reach_ns BIGINT = NULL -- the longest that an operator, call, gap or activity lasts, if known: then less is read
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: kind VARCHAR -- steps, stream (GPU work by category), idle (of a device, by cause), ranges, ops (by phase) or calls (by role)
-- column: lane VARCHAR -- the device and stream, or the thread
-- column: depth BIGINT -- how many of the same kind are around it; 0 where nothing nests
-- column: cell BIGINT -- number of the cell, from 0
-- column: start_ns BIGINT ns -- its start
-- column: dur_ns BIGINT ns -- its length
-- column: what VARCHAR -- category, cause, phase, role or kind
-- column: what_ns BIGINT ns -- how much of the cell that fills
-- column: covered_ns BIGINT ns -- how much everything on the lane fills; what overlaps counts twice
-- column: covered_pct DOUBLE percent -- that, of the cell
-- column: begins BIGINT count -- how many of it begin in the cell
-- column: item BIGINT -- id of the only one in the cell; NULL if there are several
-- column: name VARCHAR -- its name; NULL if there are several
-- order: kind, lane, depth, cell, what_ns DESC, what
-- example: traceq query timeline_cells --run eager -p start_ns=1000000 -p cell_ns=1000 -p cells=120

WITH picked AS (
    SELECT l.trace_id, l.run, l.rank, t.duration_ns
    FROM labels AS l
    JOIN traces AS t USING (trace_id)
    WHERE l.run = coalesce($run::VARCHAR, l.run) AND coalesce(l.rank = $rank::BIGINT, $rank::BIGINT IS NULL)
    ORDER BY l.run_id, l.rank NULLS FIRST, l.trace_id
    LIMIT 1
),

frame AS (
    SELECT
        trace_id,
        run,
        rank,
        coalesce($start_ns::BIGINT, 0) AS first_ns,
        cells,
        greatest(coalesce($cell_ns::BIGINT, (duration_ns - coalesce($start_ns::BIGINT, 0) + cells - 1) // nullif(cells, 0)), 1) AS cell_ns
    FROM (SELECT *, least(greatest(coalesce($cells::BIGINT, 100), 1), 65536) AS cells FROM picked)
),

-- As plain numbers the bounds let DuckDB skip what lies outside; steps and ranges may be longer than `reach_ns`.
items AS (
    SELECT *
    FROM timeline_items
    WHERE
        from_ns < coalesce($start_ns::BIGINT, 0) + coalesce($cell_ns::BIGINT * coalesce($cells::BIGINT, 100), 4000000000000000000)
        AND till_ns > coalesce($start_ns::BIGINT, 0)
        AND (kind IN ('steps', 'ranges') OR from_ns >= coalesce($start_ns::BIGINT, 0) - coalesce($reach_ns::BIGINT, 4000000000000000000))
),

cut AS (
    SELECT
        i.kind,
        i.lane,
        i.depth,
        i.item,
        i.name,
        i.what,
        i.start_ns,
        greatest(i.start_ns - f.first_ns, 0) AS from_ns,
        least(i.start_ns + i.dur_ns - f.first_ns, f.cells * f.cell_ns) AS till_ns,
        f.cell_ns,
        f.first_ns
    FROM items AS i
    JOIN frame AS f USING (trace_id)
),

pieces AS (
    SELECT *, unnest(range(from_ns // nullif(cell_ns, 0), (till_ns - 1) // nullif(cell_ns, 0) + 1)) AS cell
    FROM cut
    WHERE till_ns > from_ns
),

filled AS (
    SELECT
        kind,
        lane,
        depth,
        cell,
        what,
        sum(least(till_ns, (cell + 1) * cell_ns) - greatest(from_ns, cell * cell_ns))::BIGINT AS ns,
        count(*) FILTER (start_ns >= first_ns AND from_ns >= cell * cell_ns) AS begins,
        CASE WHEN min(item) = max(item) THEN min(item) END AS item,
        CASE WHEN min(item) = max(item) THEN min(name) END AS name
    FROM pieces
    GROUP BY kind, lane, depth, cell, what
)

SELECT
    f.run,
    f.rank,
    p.kind,
    p.lane,
    p.depth,
    p.cell,
    f.first_ns + p.cell * f.cell_ns AS start_ns,
    f.cell_ns AS dur_ns,
    p.what,
    p.ns AS what_ns,
    (sum(p.ns) OVER (PARTITION BY p.kind, p.lane, p.depth, p.cell))::BIGINT AS covered_ns,
    100.0 * (sum(p.ns) OVER (PARTITION BY p.kind, p.lane, p.depth, p.cell)) / nullif(f.cell_ns, 0) AS covered_pct,
    p.begins,
    p.item,
    p.name
FROM filled AS p
CROSS JOIN frame AS f
ORDER BY p.kind, p.lane, p.depth, p.cell, p.ns DESC, p.what
