-- Why each gap was there. Reads stage.gaps, stage.linked, stage.streams, stage.calls, stage.roles, stage.call_places, stage.ops,
-- stage.op_places, stage.ranges, stage.threads, syncs, overheads; fills stage.whole_parts, stage.late, stage.late_syncs,
-- stage.late_classes, stage.late_evidence, stage.slow_launches.

-- The calls with their thread: what most of the causes are.
CREATE OR REPLACE TABLE stage.placed_calls AS
SELECT c.call_id, r.name, r.role, p.lane, c.start_ns, c.start_ns + c.dur_ns AS end_ns
FROM stage.calls AS c JOIN stage.roles AS r ON r.recorded_name IS NOT DISTINCT FROM c.recorded_name JOIN stage.call_places AS p USING (call_id);

-- Parts whose cause lies in K and its launch alone ----------------------------------------------------------------------

-- The first activity of each launch that has several: the later ones were started by the graph, not by the host. Of a launch
-- from before the recording only the correlation id is known.
CREATE OR REPLACE TABLE stage.replays AS
SELECT launch_id, arg_min(activity_id, (start_ns, dur_ns, activity_id)) AS first_id
FROM stage.linked WHERE launch_id IS NOT NULL GROUP BY ALL HAVING count(*) > 1;

CREATE OR REPLACE TABLE stage.old_replays AS
SELECT pid, correlation_id, arg_min(activity_id, (start_ns, dur_ns, activity_id)) AS first_id
FROM stage.linked WHERE launch_id IS NULL AND pid IS NOT NULL AND correlation_id <> 0 GROUP BY ALL HAVING count(*) > 1;

CREATE OR REPLACE TABLE stage.whole_parts AS
WITH whole AS (
    SELECT g.*, k.stream AS k_stream, k.pid AS k_pid, k.correlation_id AS k_correlation_id
    FROM stage.gaps AS g LEFT JOIN stage.linked AS k ON k.activity_id = g.after_id
    WHERE g.launch_state <> 'host'
), queued AS (
    SELECT is_stream, gap_id, device, k_stream, start_ns, launch_lane, launch_start_ns FROM whole WHERE launch_state = 'queued' AND dur_ns > 10000
), since AS (
    SELECT q.*, p.launch_start_ns AS previous_ns
    FROM queued AS q
    ASOF LEFT JOIN (SELECT device, stream, launch_start_ns FROM stage.linked WHERE launch_start_ns IS NOT NULL) AS p
        ON p.device = q.device AND p.stream = q.k_stream AND q.launch_start_ns > p.launch_start_ns
), waits AS (
    SELECT d.device, s.stream, s.start_ns
    FROM syncs AS s CROSS JOIN (SELECT DISTINCT device FROM stage.streams) AS d
    WHERE contains(s.type, 'Wait') AND coalesce(s.device, d.device) = d.device
), waited AS (
    SELECT s.is_stream, s.gap_id, w.start_ns AS row_ns
    FROM since AS s ASOF JOIN waits AS w ON w.device = s.device AND w.stream = s.k_stream AND s.launch_start_ns >= w.start_ns
    WHERE w.start_ns > coalesce(s.previous_ns, -9000000000000000000)
), called AS (
    SELECT s.is_stream, s.gap_id, c.start_ns AS call_ns
    FROM since AS s
    ASOF JOIN (SELECT lane, start_ns FROM stage.placed_calls WHERE role = 'wait') AS c ON c.lane = s.launch_lane AND s.launch_start_ns >= c.start_ns
    WHERE c.start_ns > coalesce(s.previous_ns, -9000000000000000000)
), ended AS (
    SELECT q.is_stream, q.gap_id, bool_or(l.stream IS NOT DISTINCT FROM q.k_stream) AS has_own
    FROM queued AS q JOIN stage.linked AS l ON l.device = q.device AND l.start_ns + l.dur_ns = q.start_ns AND l.dur_ns > 0
    WHERE NOT q.is_stream GROUP BY ALL
)
SELECT
    w.is_stream, w.gap_id, w.dur_ns AS ns, w.launch_id,
    CASE
        WHEN w.after_id IS NULL THEN 'unexplained'
        WHEN coalesce(r.first_id, o.first_id) <> w.after_id THEN 'in_graph'
        WHEN w.launch_id IS NULL THEN 'carried_over'
        WHEN w.launch_state = 'launching' THEN 'launch_latency'
        WHEN w.dur_ns <= 10000 THEN 'queue_latency'
        WHEN d.row_ns IS NOT NULL OR c.call_ns IS NOT NULL OR NOT e.has_own THEN 'dependency'
        ELSE 'unexplained'
    END AS cause,
    CASE
        WHEN w.after_id IS NULL THEN 'no work follows within the window'
        WHEN coalesce(r.first_id, o.first_id) <> w.after_id OR w.launch_id IS NULL OR w.launch_state = 'launching' OR w.dur_ns <= 10000 THEN NULL
        WHEN d.row_ns IS NOT NULL THEN 'the stream was told to wait for an event'
        WHEN c.call_ns IS NOT NULL THEN 'a stream wait call came before the launch'
        WHEN NOT e.has_own THEN 'work on another stream ended just before'
    END AS evidence
FROM whole AS w
LEFT JOIN stage.replays AS r ON r.launch_id = w.launch_id
LEFT JOIN stage.old_replays AS o ON w.launch_id IS NULL AND o.pid = w.k_pid AND o.correlation_id = w.k_correlation_id
LEFT JOIN waited AS d ON d.is_stream = w.is_stream AND d.gap_id = w.gap_id
LEFT JOIN called AS c ON c.is_stream = w.is_stream AND c.gap_id = w.gap_id
LEFT JOIN ended AS e ON e.is_stream = w.is_stream AND e.gap_id = w.gap_id;

-- Parts in which the host was late -----------------------------------------------------------------------------------

CREATE OR REPLACE TABLE stage.late AS
SELECT is_stream, gap_id, launch_id, launch_lane AS lane, start_ns, start_ns + host_ns AS end_ns, launch_start_ns, launch_end_ns, host_ns, after_launch_ns
FROM stage.gaps WHERE launch_state = 'host';

-- A synchronising call that was open when the gap began, or began in it: what it waited for was the GPU's own work, so only
-- its tail lies in the gap. Of those that begin before the launch the one that ends last.
CREATE OR REPLACE TABLE stage.late_syncs AS
WITH calls AS (
    FROM stage.placed_calls WHERE role = 'sync' OR (role = 'memcpy' AND NOT contains(name, 'Async'))
), so_far AS (
    SELECT lane, start_ns, call_id, arg_max({'end_ns': end_ns, 'name': name, 'call_id': call_id}, (end_ns, -start_ns, -call_id)) OVER (
        PARTITION BY lane ORDER BY start_ns, call_id ROWS UNBOUNDED PRECEDING
    ) AS last
    FROM calls
), final AS (
    SELECT lane, start_ns, arg_max(last, call_id) AS last FROM so_far GROUP BY ALL
)
SELECT g.is_stream, g.gap_id, f.last.name AS name, f.last.call_id AS call_id
FROM stage.late AS g ASOF JOIN final AS f ON f.lane = g.lane AND g.launch_start_ns > f.start_ns
WHERE f.last.end_ns > g.start_ns;

-- What the host did: `class` in the order in which it explains; from 9 on, what other threads did. Lane 0 stands for every thread.
CREATE OR REPLACE TABLE stage.classes AS
FROM (VALUES
    (0, 'module_load'), (1, 'module_load'), (2, 'profiler'), (3, 'dataloader'), (4, 'allocator'), (5, 'cuda_api'), (6, 'compile'), (7, 'cpu_ops'),
    (8, 'compiled_runtime'), (9, 'module_load'), (11, 'dataloader'), (12, 'allocator'), (13, 'cuda_api'), (14, 'compile'),
    (15, 'cpu_ops'), (16, 'compiled_runtime'), (17, 'python')
) AS t (class, cause);

CREATE OR REPLACE MACRO stage.class_of(name) AS CASE
    WHEN starts_with(name, 'enumerate(DataLoader)#') THEN 3
    WHEN contains(name, '(dynamo_timed)') THEN 6
    WHEN regexp_matches(
        name, '^(autograd::engine::evaluate_function: )?CompiledFunction(Backward)?[0-9]*$|^Torch-Compiled Region|^TorchDynamo Cache Lookup|'
        || '^AOTDispatcher Runtime Wrapper|^Pregraph bytecode|^## Call CompiledFxGraph|^_?[cC]ompiled_?[aA]utograd'
    ) THEN 8
END;

-- Rows (lane, class, start_ns, end_ns, name) as the stretches that each class covers, each with the name of its first row, the
-- longest of those that start together. A stretch ends where all rows before the next one have ended.
CREATE OR REPLACE MACRO stage.stretches(source) AS TABLE
WITH marked AS (
    SELECT *, max(end_ns) OVER (
        PARTITION BY lane, class ORDER BY start_ns, end_ns DESC, name ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
    FROM query_table(source) WHERE end_ns > start_ns
), lasts AS (
    SELECT lane, class, max(end_ns) AS last_ns FROM query_table(source) WHERE end_ns > start_ns GROUP BY ALL
)
SELECT
    m.lane, m.class, m.start_ns,
    coalesce(lead(m.before_ns) OVER (PARTITION BY m.lane, m.class ORDER BY m.start_ns), l.last_ns) AS end_ns, m.name
FROM marked AS m JOIN lasts AS l ON l.lane = m.lane AND l.class = m.class
WHERE m.before_ns IS NULL OR m.start_ns > m.before_ns;

CREATE OR REPLACE TABLE stage.host AS
WITH names AS (
    SELECT name, coalesce(stage.class_of(name), 7) AS class
    FROM (SELECT DISTINCT name FROM stage.ops) WHERE NOT coalesce(regexp_matches(name, '^Optimizer\..*#'), false)
), rows AS (
    SELECT p.lane, n.class, o.name, o.start_ns, o.start_ns + o.dur_ns AS end_ns
    FROM stage.ops AS o JOIN stage.op_places AS p USING (op_id) JOIN names AS n ON n.name IS NOT DISTINCT FROM o.name
    UNION ALL
    SELECT t.lane, stage.class_of(r.name), r.name, r.start_ns, r.start_ns + r.dur_ns
    FROM stage.ranges AS r JOIN stage.threads AS t ON t.pid IS NOT DISTINCT FROM r.pid AND t.tid IS NOT DISTINCT FROM r.tid
    WHERE r.dur_ns > 0 AND r.kind <> 'window' AND stage.class_of(r.name) IS NOT NULL
    UNION ALL
    SELECT lane, CASE role WHEN 'load' THEN 1 WHEN 'alloc' THEN 4 ELSE 5 END, name, start_ns, end_ns FROM stage.placed_calls
    UNION ALL
    SELECT 0, CASE WHEN regexp_matches(type, '(?i)lazy|module') THEN 0 ELSE 2 END, type, start_ns, start_ns + dur_ns FROM overheads
)
FROM stage.stretches('rows');

-- What threads share: the stretches of every thread (owner 0), and those of the launching threads of a process together (owner
-- below 0). A thread's own come first, so that they are among them makes no difference to it.
CREATE OR REPLACE TABLE stage.owners AS
WITH launching AS (
    SELECT DISTINCT launch_lane AS lane FROM stage.linked WHERE launch_lane IS NOT NULL
), processes AS (
    SELECT t.pid, -row_number() OVER (ORDER BY t.pid) AS owner
    FROM launching AS l JOIN stage.threads AS t USING (lane) GROUP BY t.pid HAVING count(*) > 1
)
SELECT t.lane, p.owner, l.lane IS NOT NULL AS is_launching
FROM processes AS p JOIN stage.threads AS t ON t.pid IS NOT DISTINCT FROM p.pid LEFT JOIN launching AS l ON l.lane = t.lane
UNION ALL
SELECT lane, 0, false FROM stage.threads;

CREATE OR REPLACE TABLE stage.shared AS
WITH together AS (
    SELECT o.owner AS lane, h.class + 8 AS class, h.start_ns, h.end_ns, h.name
    FROM stage.owners AS o JOIN stage.host AS h ON h.lane = o.lane WHERE o.is_launching
)
SELECT lane AS owner, class, start_ns, end_ns, name FROM stage.host WHERE lane = 0
UNION ALL
FROM stage.stretches('together');

-- What each thread with late gaps sees: its own stretches, and the shared ones that meet a late part of its own. The late parts of
-- one device or stream do not overlap, nor do the stretches of one class: of two that meet, one starts in the other.
CREATE OR REPLACE TABLE stage.seen AS
WITH parts AS (
    SELECT l.is_stream, g.device, g.stream, l.lane, l.start_ns, l.end_ns
    FROM stage.late AS l ANTI JOIN stage.late_syncs USING (is_stream, gap_id)
    JOIN stage.gaps AS g USING (is_stream, gap_id)
    WHERE l.host_ns > 0
), series AS (
    SELECT row_number() OVER (ORDER BY is_stream, device, stream) AS series, * FROM (SELECT DISTINCT is_stream, device, stream FROM parts)
), late AS (
    SELECT s.series, p.lane, p.start_ns, p.end_ns
    FROM parts AS p JOIN series AS s ON s.is_stream = p.is_stream AND s.device = p.device AND s.stream IS NOT DISTINCT FROM p.stream
), classes AS (
    SELECT DISTINCT owner, class FROM stage.shared
), open_at_start AS (
    SELECT l.lane, s.class, s.start_ns, s.end_ns, s.name
    FROM (
        SELECT l.lane, l.start_ns, c.owner, c.class
        FROM late AS l JOIN stage.owners AS o ON o.lane = l.lane JOIN classes AS c ON c.owner = o.owner
    ) AS l
    ASOF JOIN stage.shared AS s ON s.owner = l.owner AND s.class = l.class AND l.start_ns >= s.start_ns
    WHERE s.end_ns > l.start_ns
), begun_within AS (
    SELECT l.lane, s.class, s.start_ns, s.end_ns, s.name, s.owner
    FROM (SELECT h.*, r.series FROM stage.shared AS h CROSS JOIN series AS r) AS s
    ASOF JOIN late AS l ON l.series = s.series AND s.start_ns >= l.start_ns
    WHERE s.start_ns < l.end_ns
)
SELECT l.lane, h.class, h.start_ns, h.end_ns, h.name FROM (SELECT DISTINCT lane FROM stage.late) AS l JOIN stage.host AS h ON h.lane = l.lane
UNION ALL
SELECT DISTINCT * FROM (
    FROM open_at_start
    UNION ALL
    SELECT b.* EXCLUDE (owner) FROM begun_within AS b SEMI JOIN stage.owners AS o ON o.lane = b.lane AND o.owner = b.owner
);

-- Each stretch of time belongs to the smallest class that is open in it. Stretches of one class do not overlap, so each edge
-- toggles the bit of its class. With a running total per class a difference of two look-ups is what the class explains of any interval.
CREATE OR REPLACE TABLE stage.explained_time AS
WITH edges AS (
    SELECT lane, 1 << class AS bit, unnest([start_ns, end_ns]) AS at_ns FROM stage.seen
), opened AS (
    SELECT lane, at_ns AS start_ns, lead(at_ns) OVER lanes AS end_ns, bit_xor(bit) OVER (lanes ROWS UNBOUNDED PRECEDING) AS bits
    FROM edges WINDOW lanes AS (PARTITION BY lane ORDER BY at_ns)
), first_open AS (
    SELECT lane, start_ns, end_ns, log2(bits & -bits)::INTEGER AS class FROM opened WHERE bits <> 0 AND end_ns > start_ns
)
SELECT *, (sum(end_ns - start_ns) OVER (PARTITION BY lane, class ORDER BY start_ns ROWS UNBOUNDED PRECEDING))::BIGINT - (end_ns - start_ns) AS earlier_ns
FROM first_open;

CREATE OR REPLACE TABLE stage.late_classes AS
WITH asked AS (
    SELECT g.is_stream, g.gap_id, g.lane, p.class, unnest([g.start_ns, g.end_ns]) AS at_ns, unnest([-1, 1]) AS sign
    FROM stage.late AS g ANTI JOIN stage.late_syncs USING (is_stream, gap_id)
    JOIN (SELECT DISTINCT lane, class FROM stage.seen) AS p ON p.lane = g.lane
    WHERE g.host_ns > 0
), own AS (
    SELECT a.is_stream, a.gap_id, a.class, sum(a.sign * coalesce(c.earlier_ns + least(a.at_ns, c.end_ns) - c.start_ns, 0))::BIGINT AS ns
    FROM asked AS a ASOF LEFT JOIN stage.explained_time AS c ON a.lane = c.lane AND a.class = c.class AND a.at_ns >= c.start_ns
    GROUP BY ALL
), explained AS (
    FROM own WHERE ns > 0
    UNION ALL
    SELECT g.is_stream, g.gap_id, 17, g.host_ns - coalesce(sum(o.ns), 0)
    FROM stage.late AS g ANTI JOIN stage.late_syncs USING (is_stream, gap_id)
    LEFT JOIN own AS o ON o.is_stream = g.is_stream AND o.gap_id = g.gap_id
    WHERE g.host_ns > 0 GROUP BY g.is_stream, g.gap_id, g.host_ns
), causes AS (
    SELECT e.is_stream, e.gap_id, c.cause, min(CASE WHEN e.class IN (0, 9) THEN 1 WHEN e.class BETWEEN 10 AND 16 THEN e.class - 8 ELSE e.class END) AS place, sum(e.ns)::BIGINT AS ns,
        min(e.class) AS class
    FROM explained AS e JOIN stage.classes AS c USING (class) GROUP BY ALL
)
SELECT is_stream, gap_id, arg_max({'cause': cause, 'class': class, 'ns': ns}, (ns, -place)) AS won FROM causes GROUP BY ALL;

-- The first row of the last stretch of the winning class that began before the launch.
CREATE OR REPLACE TABLE stage.late_evidence AS
SELECT w.is_stream, w.gap_id, s.name || CASE WHEN w.class > 8 THEN ' on another thread' ELSE '' END AS evidence
FROM (
    SELECT g.is_stream, g.gap_id, g.lane, g.end_ns, w.won.class AS class FROM stage.late_classes AS w JOIN stage.late AS g USING (is_stream, gap_id)
) AS w
ASOF JOIN stage.seen AS s ON s.lane = w.lane AND s.class = w.class AND w.end_ns > s.start_ns;

-- A launch that takes long because something holds the driver's lock: an allocation or a first use, on whatever thread.
CREATE OR REPLACE TABLE stage.slow_launches AS
WITH slow AS (
    SELECT DISTINCT launch_id, launch_start_ns AS start_ns, launch_end_ns AS end_ns FROM stage.late
    WHERE after_launch_ns > 0 AND launch_end_ns - launch_start_ns > 100000
), holders AS (
    SELECT 0 AS lane, greatest(class, 1) AS class, start_ns, end_ns, name FROM stage.host WHERE class IN (0, 1, 4)
), held_stretches AS (
    FROM stage.stretches('holders')
), totals AS (
    SELECT *, (sum(end_ns - start_ns) OVER (PARTITION BY class ORDER BY start_ns ROWS UNBOUNDED PRECEDING))::BIGINT - (end_ns - start_ns) AS earlier_ns
    FROM held_stretches
), asked AS (
    SELECT s.launch_id, c.class, s.end_ns - s.start_ns AS dur_ns, unnest([s.start_ns, s.end_ns]) AS at_ns, unnest([-1, 1]) AS sign
    FROM slow AS s CROSS JOIN (VALUES (1), (4)) AS c (class)
), held AS (
    SELECT a.launch_id, a.class, a.dur_ns, sum(a.sign * coalesce(t.earlier_ns + least(a.at_ns, t.end_ns) - t.start_ns, 0))::BIGINT AS ns,
        arg_max(t.name, a.at_ns) AS name
    FROM asked AS a ASOF LEFT JOIN totals AS t ON a.class = t.class AND a.at_ns > t.start_ns
    GROUP BY ALL
)
SELECT h.launch_id, arg_min(c.cause, h.class) AS cause, arg_min(h.name, h.class) AS evidence
FROM held AS h JOIN stage.classes AS c USING (class) WHERE 2 * h.ns > h.dur_ns GROUP BY ALL;
