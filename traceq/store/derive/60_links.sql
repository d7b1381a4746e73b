-- What each API call is inside of, and the operator and phase of each GPU activity. Reads stage.calls, stage.roles,
-- stage.call_places, stage.inside_*, stage.linked, stage.ops, stage.op_phases, stage.backward_threads; fills api_calls, stage.links,
-- stage.explained, stage.to_classify.

INSERT INTO api_calls BY NAME
SELECT
    1 AS trace_id, c.* EXCLUDE (scope), r.name, r.role, p.step, p.range_id, o.holder_id AS op_id, y.holder_id AS python_call_id
FROM stage.calls AS c
JOIN stage.roles AS r ON r.recorded_name IS NOT DISTINCT FROM c.recorded_name
JOIN stage.call_places AS p USING (call_id)
LEFT JOIN stage.inside_ops AS o ON o.kind = 1 AND o.id = c.call_id
LEFT JOIN stage.inside_python_calls AS y ON y.id = c.call_id;

-- Where GPU rows carry their own correlation id as External id, it links nothing.
CREATE OR REPLACE TABLE stage.links AS
SELECT count(*) FILTER (is_correlation) * 2 <= count(is_correlation) AS are_external FROM stage.linked;

CREATE OR REPLACE TABLE stage.explained AS
WITH known AS (
    SELECT external_id, min(op_id) AS op_id FROM stage.ops WHERE external_id <> 0 GROUP BY ALL HAVING count(*) = 1
), told AS (
    SELECT l.activity_id, c.op_id, k.op_id AS external_op_id, o.external_id AS op_external_id, l.external_id, l.launch_lane,
        l.launch_marks | coalesce(i.marks, 0) AS marks, c.role AS launch_role, c.name AS launch_name
    FROM stage.linked AS l
    CROSS JOIN stage.links AS s
    LEFT JOIN api_calls AS c ON c.call_id = l.launch_id
    LEFT JOIN stage.inside_ops AS i ON i.kind = 1 AND i.id = l.launch_id
    LEFT JOIN known AS k ON s.are_external AND c.op_id IS NULL AND k.external_id = l.external_id
    LEFT JOIN stage.ops AS o ON s.are_external AND o.op_id = c.op_id
)
SELECT
    t.activity_id, t.launch_role, t.launch_name, coalesce(t.op_id, t.external_op_id) AS op_id,
    t.op_external_id <> t.external_id AS disagrees,
    CASE
        WHEN t.launch_lane IS NULL THEN coalesce(o.phase, 'other')
        ELSE stage.phase(t.marks, b.lane IS NOT NULL, t.op_id IS NOT NULL OR t.external_op_id IS NOT NULL)
    END AS phase
FROM told AS t
LEFT JOIN stage.op_phases AS o ON o.op_id = t.external_op_id
LEFT JOIN stage.backward_threads AS b ON b.lane = t.launch_lane;

CREATE OR REPLACE VIEW stage.to_classify AS
SELECT 1 AS trace_id, a.activity_id, a.name, e.launch_role, e.launch_name, o.name AS op_name, o.kernel_file, o.details AS op_details
FROM stage.activities AS a JOIN stage.explained AS e USING (activity_id) LEFT JOIN stage.ops AS o USING (op_id) WHERE a.kind = 'kernel';
