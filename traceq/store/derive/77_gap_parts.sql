-- The parts of the gaps with the operator that was being dispatched. Reads stage.whole_parts, stage.late, stage.late_*,
-- stage.slow_launches, stage.stream_gap_ids, stage.call_places, stage.inside_*, stage.python_calls, stage.ranges; fills gap_parts,
-- stream_gap_parts.

CREATE OR REPLACE TABLE stage.gap_parts AS
WITH parts AS (
    SELECT is_stream, gap_id, 'whole' AS part, cause, ns, evidence, launch_id AS call_id FROM stage.whole_parts
    UNION ALL
    SELECT g.is_stream, g.gap_id, 'host', coalesce(w.won.cause, 'sync'), g.host_ns,
        coalesce(e.evidence, s.name, CASE WHEN w.won.cause = 'python' THEN coalesce(y.name, r.name) END),
        CASE WHEN s.gap_id IS NULL THEN g.launch_id ELSE s.call_id END
    FROM stage.late AS g
    LEFT JOIN stage.late_syncs AS s USING (is_stream, gap_id)
    LEFT JOIN stage.late_classes AS w USING (is_stream, gap_id)
    LEFT JOIN stage.late_evidence AS e USING (is_stream, gap_id)
    LEFT JOIN stage.inside_python_calls AS i ON i.id = g.launch_id
    LEFT JOIN stage.python_calls AS y ON y.call_id = i.holder_id
    LEFT JOIN stage.call_places AS p ON p.call_id = g.launch_id
    LEFT JOIN stage.ranges AS r ON r.range_id = p.range_id
    WHERE g.host_ns > 0
    UNION ALL
    SELECT g.is_stream, g.gap_id, 'launch', coalesce(s.cause, 'launch_latency'), g.after_launch_ns, s.evidence, g.launch_id
    FROM stage.late AS g LEFT JOIN stage.slow_launches AS s USING (launch_id)
    WHERE g.after_launch_ns > 0
)
SELECT p.is_stream, p.gap_id, p.part, p.cause, p.ns, p.evidence, o.holder_id AS op_id
FROM parts AS p LEFT JOIN stage.inside_ops AS o ON o.kind = 1 AND o.id = p.call_id;

INSERT INTO gap_parts BY NAME
SELECT 1 AS trace_id, * EXCLUDE (is_stream) FROM stage.gap_parts WHERE NOT is_stream ORDER BY gap_id, part;

INSERT INTO stream_gap_parts BY NAME
SELECT 1 AS trace_id, i.gap_id, p.* EXCLUDE (is_stream, gap_id)
FROM stage.gap_parts AS p JOIN stage.stream_gap_ids AS i ON i.is_stream = p.is_stream AND i.old_id = p.gap_id ORDER BY i.gap_id, p.part;
