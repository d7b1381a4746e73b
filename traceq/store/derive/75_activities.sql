-- The final table of GPU work. Reads stage.activities, stage.linked, stage.explained, stage.classified, stage.collectives;
-- fills gpu_activities, collectives.

INSERT INTO gpu_activities BY NAME
SELECT
    1 AS trace_id, a.* EXCLUDE (scope, collective, pid, short_name), l.launch_id, l.pid, l.step, e.op_id, e.phase,
    coalesce(a.short_name, c.short_name, a.name) AS short_name, c.category, c.category_by_name, c.category_source, c.origin
FROM stage.activities AS a
JOIN stage.linked AS l USING (activity_id)
JOIN stage.explained AS e USING (activity_id)
LEFT JOIN stage.classified AS c USING (activity_id);

INSERT INTO collectives BY NAME
SELECT 1 AS trace_id, c.*, e.op_id FROM stage.collectives AS c JOIN stage.explained AS e USING (activity_id) ORDER BY activity_id;
