-- The steps of a trace as the host marks them.
-- Reads stage.ranges, stage.calls, stage.step_marks, stage.options; fills stage.callers, stage.step_ranges, stage.step_times.

-- A step is a range of stage.step_marks, or what the user names by a glob; its number is N, or the ordinal where numbers
-- are missing or repeat. It takes the launches of its own process. When all API calls come from one process that has no
-- steps, it takes those: the thread that launches may belong to a process without marks. Its `pid` is the process whose
-- launches it takes.
CREATE OR REPLACE TABLE stage.callers AS SELECT count(DISTINCT pid) = 1 AS is_one, min(pid) AS pid FROM stage.calls;

CREATE OR REPLACE TABLE stage.step_ranges AS
WITH found AS (
    SELECT DISTINCT r.name, r.pid, r.start_ns, r.dur_ns, o.step_range IS NULL AS is_numbered
    FROM stage.ranges AS r, stage.options AS o
    WHERE
        r.dur_ns IS NOT NULL
        AND CASE WHEN o.step_range IS NULL THEN r.range_id IN (FROM stage.step_marks) ELSE r.kind <> 'window' AND r.name GLOB o.step_range END
), owned AS (
    SELECT
        f.name, f.start_ns, f.dur_ns,
        CASE WHEN c.is_one AND c.pid NOT IN (SELECT pid FROM found WHERE pid IS NOT NULL) THEN c.pid ELSE f.pid END AS pid,
        CASE WHEN f.is_numbered AND starts_with(f.name, 'ProfilerStep#') THEN TRY_CAST(split_part(f.name, '#', 2) AS BIGINT) END AS number
    FROM found AS f, stage.callers AS c
), numbers AS (
    SELECT count(*) = count(DISTINCT (pid, number)) FILTER (number IS NOT NULL) AS are_good FROM owned
)
SELECT
    CASE
        WHEN n.are_good THEN o.number
        ELSE row_number() OVER (PARTITION BY o.pid ORDER BY o.start_ns, o.dur_ns DESC, o.name) - 1
    END AS step,
    o.name, o.pid, o.start_ns, o.dur_ns, o.start_ns + o.dur_ns AS end_ns
FROM owned AS o, numbers AS n;

-- Steps may overlap (a user's ranges nest): each stretch of time belongs to the innermost, the one that began last.
CREATE OR REPLACE TABLE stage.step_times AS
WITH edges AS (
    SELECT pid, start_ns AS at_ns FROM stage.step_ranges UNION SELECT pid, end_ns FROM stage.step_ranges
), stretches AS (
    SELECT pid, at_ns AS start_ns, lead(at_ns) OVER (PARTITION BY pid ORDER BY at_ns) AS end_ns FROM edges
)
SELECT t.pid, t.start_ns, t.end_ns, arg_max(s.step, (s.start_ns, -s.end_ns, s.step)) AS step
FROM stretches AS t JOIN stage.step_ranges AS s ON s.pid = t.pid AND s.start_ns <= t.start_ns AND s.end_ns > t.start_ns
GROUP BY ALL;
