-- The phase, module and forward operator of each operator. Reads stage.ops, stage.op_places, stage.nested_ops,
-- stage.nested_modules, stage.module_frames; fills stage.backward_threads, stage.op_phases, stage.forwards,
-- stage.op_modules.

-- A thread that mostly runs nodes of the autograd engine does nothing but backward work.
CREATE OR REPLACE TABLE stage.backward_threads AS
SELECT n.lane
FROM stage.nested_ops AS n JOIN stage.ops AS o ON o.op_id = n.id
WHERE n.depth = 0 GROUP BY n.lane HAVING 2 * count(*) FILTER (starts_with(o.name, 'autograd::engine::')) > count(*)
UNION
SELECT t.lane FROM stage.threads AS t JOIN threads AS n USING (pid, tid) WHERE starts_with(n.name, 'pt_autograd');

-- What a launch or an operator at some place serves; marks: see ingest/nest.py.
CREATE OR REPLACE MACRO stage.phase(marks, is_backward_thread, has_op) AS CASE
    WHEN marks & 2 > 0 THEN 'optimizer'
    WHEN marks & 4 > 0 THEN 'data'
    WHEN marks & 1 > 0 OR is_backward_thread THEN 'backward'
    WHEN has_op THEN 'forward'
    ELSE 'other'
END;

CREATE OR REPLACE TABLE stage.op_phases AS
SELECT n.id AS op_id, n.root_id, stage.phase(n.marks | p.marks, b.lane IS NOT NULL, true) AS phase
FROM stage.nested_ops AS n JOIN stage.op_places AS p ON p.op_id = n.id LEFT JOIN stage.backward_threads AS b ON b.lane = n.lane;

-- The forward operator of a backward node (a root): sequence numbers count per thread, and the node knows the profiler's own
-- number of the forward thread, which it gave in the order in which threads began. Of those with the number the last to start
-- made the node.
CREATE OR REPLACE TABLE stage.numbered_ops AS
SELECT o.op_id, o.pid, p.lane, o.sequence, o.start_ns, o.forward_thread, h.root_id = o.op_id AS is_root
FROM stage.ops AS o JOIN stage.op_places AS p USING (op_id) JOIN stage.op_phases AS h USING (op_id)
WHERE o.sequence IS NOT NULL AND (h.root_id = o.op_id OR (h.root_id = -1 AND h.phase <> 'backward'));

CREATE OR REPLACE TABLE stage.forward_threads AS
WITH used AS (
    SELECT pid, forward_thread, row_number() OVER (PARTITION BY pid ORDER BY forward_thread) AS place
    FROM (SELECT DISTINCT pid, forward_thread FROM stage.numbered_ops WHERE is_root)
), lanes AS (
    SELECT pid, lane, row_number() OVER (PARTITION BY pid ORDER BY first_ns, lane) AS place
    FROM (SELECT pid, lane, min(start_ns) AS first_ns FROM stage.numbered_ops WHERE NOT is_root GROUP BY ALL)
), alike AS (
    SELECT pid FROM used FULL JOIN lanes USING (pid, place) GROUP BY pid
    HAVING count(*) = count(forward_thread) AND count(*) = count(lane)
)
SELECT u.pid, u.forward_thread, l.lane FROM used AS u JOIN lanes AS l USING (pid, place) JOIN alike USING (pid)
UNION ALL
SELECT u.pid, u.forward_thread, l.lane FROM used AS u JOIN lanes AS l USING (pid) ANTI JOIN alike USING (pid);

CREATE OR REPLACE TABLE stage.forwards AS
WITH candidates AS (
    SELECT lane, sequence, start_ns, max(op_id) AS op_id FROM stage.numbered_ops WHERE NOT is_root GROUP BY ALL
), roots AS (
    SELECT r.op_id, t.lane, r.sequence, r.start_ns
    FROM stage.numbered_ops AS r JOIN stage.forward_threads AS t ON t.pid = r.pid AND t.forward_thread = r.forward_thread
    WHERE r.is_root
)
SELECT r.op_id AS root_id, arg_max(f.op_id, (f.start_ns, f.op_id)) AS forward_op_id
FROM roots AS r ASOF JOIN candidates AS f ON f.lane = r.lane AND f.sequence = r.sequence AND r.start_ns >= f.start_ns
GROUP BY ALL;

-- The path of a module frame; `/` separates, so one in a name becomes `|`.
CREATE OR REPLACE TABLE stage.module_paths AS
WITH RECURSIVE paths AS (
    SELECT n.id AS frame_id, replace(f.name, '/', '|') AS path
    FROM stage.nested_modules AS n JOIN stage.module_frames AS f ON f.frame_id = n.id WHERE n.parent_id = -1
    UNION ALL
    SELECT n.id, p.path || '/' || replace(f.name, '/', '|')
    FROM paths AS p JOIN stage.nested_modules AS n ON n.parent_id = p.frame_id JOIN stage.module_frames AS f ON f.frame_id = n.id
)
FROM paths;

CREATE OR REPLACE TABLE stage.op_modules AS
WITH nested AS (FROM stage.nested_modules), edges AS (FROM stage.edges('nested'))
SELECT o.op_id, p.path AS module
FROM (SELECT n.id AS op_id, n.lane, n.start_ns FROM stage.nested_ops AS n WHERE EXISTS (FROM nested)) AS o
ASOF JOIN edges AS e ON e.lane = o.lane AND o.start_ns >= e.at_ns
JOIN stage.module_paths AS p ON p.frame_id = e.id
UNION ALL
SELECT op_id, module FROM stage.ops WHERE module IS NOT NULL AND NOT EXISTS (FROM stage.module_frames);
