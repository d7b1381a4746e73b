-- Where on the host each call and operator starts: its step, and the range around it.
-- Reads stage.threads, stage.nested_ranges, stage.step_times, stage.calls, stage.ops; fills stage.places,
-- stage.call_places, stage.op_places.

-- The innermost open interval of a thread changes where one starts, and where one ends (to the one around it). Of what happens
-- at one time the innermost start counts, else the outermost end.
CREATE OR REPLACE MACRO stage.edges(nested) AS TABLE
WITH edges AS (
    SELECT lane, start_ns AS at_ns, id, marks, depth AS weight FROM query_table(nested) WHERE end_ns > start_ns
    UNION ALL
    SELECT n.lane, n.end_ns, p.id, coalesce(p.marks, 0), -1 - n.depth
    FROM query_table(nested) AS n LEFT JOIN query_table(nested) AS p ON p.id = n.parent_id WHERE n.end_ns > n.start_ns
)
SELECT lane, at_ns, arg_max_null(id, weight) AS id, arg_max(marks, weight) AS marks FROM edges GROUP BY ALL;

CREATE OR REPLACE TABLE stage.range_edges AS
WITH nested AS (FROM stage.nested_ranges) SELECT lane, at_ns, id AS range_id, marks FROM stage.edges('nested');

CREATE OR REPLACE TABLE stage.places AS
WITH cuts AS (
    SELECT lane, at_ns FROM stage.range_edges
    UNION SELECT t.lane, s.start_ns FROM stage.step_times AS s JOIN stage.threads AS t USING (pid)
    UNION SELECT t.lane, s.end_ns FROM stage.step_times AS s JOIN stage.threads AS t USING (pid)
)
SELECT
    c.lane, c.at_ns, CASE WHEN c.at_ns < s.end_ns THEN s.step END AS step, r.range_id, coalesce(r.marks, 0) AS marks
FROM (SELECT c.lane, t.pid, c.at_ns FROM cuts AS c JOIN stage.threads AS t USING (lane)) AS c
ASOF LEFT JOIN stage.step_times AS s ON c.pid = s.pid AND c.at_ns >= s.start_ns
ASOF LEFT JOIN stage.range_edges AS r ON c.lane = r.lane AND c.at_ns >= r.at_ns;

-- Narrow rows, since an ASOF join sorts all that it is given.
CREATE OR REPLACE TABLE stage.call_places AS
SELECT c.call_id, c.lane, p.step, p.range_id, coalesce(p.marks, 0) AS marks
FROM (
    SELECT call_id, lane, start_ns
    FROM stage.calls AS c JOIN stage.threads AS t ON t.pid IS NOT DISTINCT FROM c.pid AND t.tid IS NOT DISTINCT FROM c.tid
) AS c
ASOF LEFT JOIN stage.places AS p ON c.lane = p.lane AND c.start_ns >= p.at_ns;

CREATE OR REPLACE TABLE stage.op_places AS
SELECT o.op_id, o.lane, p.step, p.range_id, coalesce(p.marks, 0) AS marks
FROM (
    SELECT op_id, lane, start_ns
    FROM stage.ops AS o JOIN stage.threads AS t ON t.pid IS NOT DISTINCT FROM o.pid AND t.tid IS NOT DISTINCT FROM o.tid
) AS o
ASOF LEFT JOIN stage.places AS p ON o.lane = p.lane AND o.start_ns >= p.at_ns;
