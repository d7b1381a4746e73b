-- title: Copies by direction and kind of memory
-- what: Copies between host and device, on a device and between devices, with size, speed, and whether the host waited for them; ranks are listed apart.
-- value: Pageable memory copies slowly and holds the host up: pin it (pin_memory) and copy with non_blocking=True; many small copies are better made one.
-- needs: gpu_activities, api_calls
-- param: run VARCHAR = NULL -- run label; NULL means all runs
-- param: small_bytes BIGINT = 65536 -- copies below this size are small
-- column: run VARCHAR -- run label
-- column: rank BIGINT -- rank of the trace; NULL if the file does not say
-- column: direction VARCHAR -- HtoD (host to device), DtoH, DtoD (on one device), PtoP (between devices); NULL if not recorded
-- column: src VARCHAR -- memory read: Pageable, Pinned, Device, …; NULL if not recorded
-- column: dst VARCHAR -- memory written, likewise
-- column: pageable BOOLEAN -- whether either is pageable host memory; NULL where only Host, or nothing, was recorded
-- column: copies BIGINT count -- copies
-- column: bytes BIGINT bytes -- their sizes; NULL if not recorded
-- column: copy_ns BIGINT ns -- sum of their durations
-- column: gb_per_s DOUBLE -- bytes over duration, in 10⁹ bytes a second, of the copies whose size is known
-- column: median_bytes DOUBLE bytes -- median size
-- column: small BIGINT count -- copies of less than small_bytes; NULL if no size was recorded
-- column: blocking BIGINT count -- copies that the host waited for: pageable memory, a call without Async, or a synchronisation as the thread's next call; NULL if no call is known
-- column: call_ns BIGINT ns -- host time in the memcpy calls; NULL if none is known
-- column: copies_per_step DOUBLE count -- in steps that count, over their number
-- chart: bar x=direction y=copy_ns
-- order: run, rank, copy_ns DESC
-- example: traceq query memcpys --run overlap

WITH picked AS (
    SELECT trace_id, run, rank
    FROM labels
    WHERE run = coalesce($run::VARCHAR, run)
),

steps_counted AS (
    SELECT trace_id, count(*) AS steps
    FROM good_steps
    GROUP BY trace_id
),

copies AS (
    SELECT
        a.trace_id,
        a.copy_kind AS direction,
        a.src_kind AS src,
        a.dst_kind AS dst,
        CASE
            WHEN 'Pageable' IN (a.src_kind, a.dst_kind) OR contains(lower(a.name), 'pageable') THEN true
            WHEN 'Host' IN (a.src_kind, a.dst_kind) OR a.src_kind IS NULL OR a.dst_kind IS NULL THEN NULL
            ELSE false
        END AS pageable,
        a.launch_id,
        a.pid,
        a.step,
        a.bytes,
        a.dur_ns
    FROM gpu_activities AS a
    JOIN picked AS p USING (trace_id)
    WHERE a.kind = 'memcpy'
),

-- Calls of the threads that copy, each with whether its thread synchronises next; call_id is in order of start.
lanes AS (
    SELECT trace_id, pid, tid, row_number() OVER (ORDER BY trace_id, pid, tid) AS lane
    FROM (
        SELECT DISTINCT c.trace_id, c.pid, c.tid
        FROM copies AS m
        JOIN api_calls AS c ON c.trace_id = m.trace_id AND c.call_id = m.launch_id
    )
),

followed AS (
    SELECT trace_id, call_id, lead(is_sync) OVER (PARTITION BY lane ORDER BY call_id) AS is_synced
    FROM (
        SELECT c.trace_id, c.call_id, l.lane, c.role = 'sync' AS is_sync
        FROM api_calls AS c
        JOIN lanes AS l ON l.trace_id = c.trace_id AND l.pid IS NOT DISTINCT FROM c.pid AND l.tid IS NOT DISTINCT FROM c.tid
    )
),

told AS (
    SELECT
        m.*,
        CASE
            WHEN m.pageable THEN true
            WHEN c.role <> 'memcpy' THEN false
            ELSE NOT contains(c.name, 'Async') OR coalesce(f.is_synced, false)
        END AS blocks,
        CASE
            WHEN c.role = 'memcpy' AND row_number() OVER (PARTITION BY m.trace_id, m.launch_id ORDER BY m.direction, m.src, m.dst) = 1
                THEN c.dur_ns
        END AS call_ns,
        s.step IS NOT NULL AS is_counted
    FROM copies AS m
    LEFT JOIN api_calls AS c ON c.trace_id = m.trace_id AND c.call_id = m.launch_id
    LEFT JOIN followed AS f ON f.trace_id = m.trace_id AND f.call_id = m.launch_id
    LEFT JOIN good_steps AS s ON s.trace_id = m.trace_id AND s.pid = m.pid AND s.step = m.step
),

grouped AS (
    SELECT
        trace_id,
        direction,
        src,
        dst,
        pageable,
        count(*) AS copies,
        sum(bytes) AS bytes,
        sum(dur_ns) AS copy_ns,
        sum(CASE WHEN bytes IS NOT NULL THEN dur_ns END) AS sized_ns,
        median(bytes) AS median_bytes,
        CASE WHEN count(bytes) > 0 THEN count(*) FILTER (bytes < coalesce($small_bytes::BIGINT, 65536)) END AS small,
        CASE WHEN count(blocks) > 0 THEN count(*) FILTER (blocks) END AS blocking,
        sum(call_ns) AS call_ns,
        count(*) FILTER (is_counted) AS stepped
    FROM told
    GROUP BY trace_id, direction, src, dst, pageable
)

SELECT
    p.run,
    p.rank,
    g.direction,
    g.src,
    g.dst,
    g.pageable,
    g.copies,
    g.bytes::BIGINT AS bytes,
    g.copy_ns::BIGINT AS copy_ns,
    g.bytes / nullif(g.sized_ns, 0) AS gb_per_s,
    g.median_bytes,
    g.small,
    g.blocking,
    g.call_ns::BIGINT AS call_ns,
    g.stepped / nullif(s.steps, 0) AS copies_per_step
FROM grouped AS g
JOIN picked AS p USING (trace_id)
LEFT JOIN steps_counted AS s ON s.trace_id = g.trace_id
ORDER BY p.run, p.rank, g.copy_ns DESC, g.direction, g.src, g.dst, g.pageable, g.trace_id
