-- The rows of the host: nothing here is read before 80_steps.sql, so these are written beside the GPU's.
-- Reads stage.ops, stage.ranges, stage.python_calls, stage.memory_events, stage.nested_*, stage.inside_*, stage.op_*,
-- stage.forwards; fills ops, ranges, python_calls, memory_events.

INSERT INTO ops BY NAME
SELECT
    1 AS trace_id, o.* EXCLUDE (module), p.step, n.self_ns, nullif(n.parent_id, -1) AS parent_id, n.depth, h.phase,
    h.phase = 'backward' AS is_backward, f.forward_op_id, coalesce(m.module, fm.module) AS module
FROM stage.ops AS o
JOIN stage.op_places AS p USING (op_id)
JOIN stage.nested_ops AS n ON n.id = o.op_id
JOIN stage.op_phases AS h USING (op_id)
LEFT JOIN stage.forwards AS f ON f.root_id = h.root_id
LEFT JOIN stage.op_modules AS m ON m.op_id = o.op_id
LEFT JOIN stage.op_modules AS fm ON fm.op_id = f.forward_op_id;

INSERT INTO ranges BY NAME
SELECT 1 AS trace_id, r.*, nullif(coalesce(n.parent_id, i.holder_id), -1) AS parent_id, n.depth
FROM stage.ranges AS r
LEFT JOIN stage.nested_ranges AS n ON n.id = r.range_id
LEFT JOIN stage.inside_ranges AS i ON i.id = r.range_id
ORDER BY range_id;

INSERT INTO python_calls BY NAME
SELECT 1 AS trace_id, c.*, n.self_ns, nullif(n.parent_id, -1) AS parent_id, n.depth
FROM stage.python_calls AS c JOIN stage.nested_python_calls AS n ON n.id = c.call_id;

INSERT INTO memory_events BY NAME
SELECT 1 AS trace_id, e.* EXCLUDE (event_id, start_ns), e.start_ns AS at_ns, i.holder_id AS op_id
FROM stage.memory_events AS e LEFT JOIN stage.inside_ops AS i ON i.kind = 2 AND i.id = e.event_id
ORDER BY ALL;
