-- The operator and the phase of each GPU activity. Reads stage.linked, api_calls, ops, stage.inside_ops,
-- stage.backward_threads; fills stage.links, stage.explained, stage.to_classify.

-- Where GPU rows carry their own correlation id as External id, it links nothing.
CREATE OR REPLACE TABLE stage.links AS
SELECT count(*) FILTER (is_correlation) * 2 <= count(is_correlation) AS are_external FROM stage.linked;

CREATE OR REPLACE TABLE stage.explained AS
WITH known AS (
    SELECT external_id, min(op_id) AS op_id FROM ops WHERE external_id <> 0 GROUP BY ALL HAVING count(*) = 1
), told AS (
    SELECT l.activity_id, c.op_id, k.op_id AS external_op_id, o.external_id AS op_external_id, l.external_id, l.launch_lane,
        l.launch_marks | coalesce(i.marks, 0) AS marks, c.role AS launch_role, c.name AS launch_name
    FROM stage.linked AS l
    CROSS JOIN stage.links AS s
    LEFT JOIN api_calls AS c ON c.call_id = l.launch_id
    LEFT JOIN stage.inside_ops AS i ON i.kind = 1 AND i.id = l.launch_id
    LEFT JOIN known AS k ON s.are_external AND c.op_id IS NULL AND k.external_id = l.external_id
    LEFT JOIN ops AS o ON s.are_external AND o.op_id = c.op_id
)
SELECT
    t.activity_id, t.launch_role, t.launch_name, coalesce(t.op_id, t.external_op_id) AS op_id,
    t.op_external_id <> t.external_id AS disagrees,
    CASE
        WHEN t.launch_lane IS NULL THEN coalesce(o.phase, 'other')
        ELSE stage.phase(t.marks, b.lane IS NOT NULL, t.op_id IS NOT NULL OR t.external_op_id IS NOT NULL)
    END AS phase
FROM told AS t
LEFT JOIN ops AS o ON o.op_id = t.external_op_id
LEFT JOIN stage.backward_threads AS b ON b.lane = t.launch_lane;

CREATE OR REPLACE VIEW stage.to_classify AS
SELECT 1 AS trace_id, a.activity_id, a.name, e.launch_role, e.launch_name, e.op_id
FROM stage.activities AS a JOIN stage.explained AS e USING (activity_id) WHERE a.kind = 'kernel';
