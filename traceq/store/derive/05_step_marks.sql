-- The ranges that are steps when the user names none: ProfilerStep#N, else the outermost family of NVTX ranges. Reads
-- stage.ranges, stage.calls; fills stage.step_marks.

-- A family is the ranges of one thread whose names differ in the digits at their ends alone. Of those with two members or
-- more that cover most of their process's launches, the one that takes the most time is the outermost.
CREATE OR REPLACE TABLE stage.step_marks AS
WITH numbered AS (
    SELECT range_id FROM stage.ranges WHERE kind <> 'window' AND dur_ns IS NOT NULL AND regexp_full_match(name, 'ProfilerStep#[0-9]+')
), ranges AS (
    SELECT
        range_id, pid, tid, rtrim(name, '0123456789') AS family, start_ns, start_ns + dur_ns AS end_ns,
        max(start_ns + dur_ns) OVER (
            PARTITION BY pid, tid, rtrim(name, '0123456789') ORDER BY start_ns, dur_ns DESC, range_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM stage.ranges
    WHERE kind IN ('push_pop', 'start_end') AND dur_ns IS NOT NULL AND pid IS NOT NULL AND NOT EXISTS (FROM numbered)
), members AS (
    SELECT *, dense_rank() OVER (ORDER BY pid, tid, family) AS family_id
    FROM ranges WHERE before_ns IS NULL OR start_ns >= before_ns  -- one inside another of its family is no step
), families AS (
    SELECT pid, family_id, sum(end_ns - start_ns) AS ns FROM members GROUP BY pid, family_id HAVING count(*) >= 2
    QUALIFY row_number() OVER (PARTITION BY pid ORDER BY ns DESC, family_id) <= 32
), launches AS (
    SELECT pid, start_ns AS at_ns FROM stage.calls WHERE contains(recorded_name, 'Launch')
), edges AS (
    SELECT pid, family_id, start_ns AS at_ns, -1 AS sign FROM members SEMI JOIN families USING (family_id)
    UNION ALL
    SELECT pid, family_id, end_ns, 1 FROM members SEMI JOIN families USING (family_id)
), counted AS (  -- an edge comes before a launch at the same time: a range holds its start and not its end
    SELECT family_id, sign, count(CASE WHEN sign IS NULL THEN 1 END) OVER (
        PARTITION BY pid ORDER BY at_ns, sign IS NULL ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS before
    FROM (FROM edges UNION ALL BY NAME FROM launches)
    WHERE EXISTS (FROM edges)
), covered AS (
    SELECT family_id, sum(sign * before) AS launches FROM counted WHERE sign IS NOT NULL GROUP BY family_id
), best AS (
    SELECT f.pid, arg_max(f.family_id, (f.ns, -f.family_id)) AS family_id
    FROM families AS f
    JOIN covered AS c USING (family_id)
    JOIN (SELECT pid, count(*) AS launches FROM launches GROUP BY pid) AS l ON l.pid = f.pid
    WHERE 2 * c.launches > l.launches
    GROUP BY f.pid
)
SELECT range_id FROM numbered
UNION ALL
SELECT range_id FROM members SEMI JOIN best USING (family_id);
