-- Names, categories and the final table of GPU work. Reads stage.activities, stage.linked, rules; fills gpu_activities.

-- One row a distinct kernel name: the rule with the smallest priority that matches it, and the name without return type,
-- namespaces, template and call arguments (what nsys calls the short name).
-- The rules become one CASE with constant patterns: a pattern taken from a column would be compiled for every name.
SET VARIABLE rule_cases = (
    SELECT
        'SELECT name, CASE '
        || coalesce(string_agg(format('WHEN regexp_matches(name, ''{}'') THEN {} ', replace(pattern, '''', ''''''), priority), '' ORDER BY priority), '')
        || 'WHEN false THEN 0 END AS priority FROM (SELECT DISTINCT name FROM stage.activities WHERE kind = ''kernel'')'
    FROM rules
);

CREATE OR REPLACE TABLE stage.kernel_names AS
SELECT
    n.name, coalesce(r.category, 'other') AS category, coalesce(r.origin, 'unknown') AS origin,
    coalesce(
        nullif(regexp_extract(replace(n.name, '(anonymous namespace)::', ''), '^(?:void |std::enable_if<[^>]*>::type )?(?:[^<(]*::)?([^<(:]+)', 1), ''),
        n.name
    ) AS short_name
FROM query(getvariable('rule_cases')) AS n LEFT JOIN rules AS r ON r.priority = n.priority;

INSERT INTO gpu_activities BY NAME
SELECT
    1 AS trace_id, a.* EXCLUDE (scope, collective, pid, short_name), l.launch_id, l.pid, l.step,
    coalesce(a.short_name, n.short_name, a.name) AS short_name,
    n.category AS category, n.category AS category_by_name,
    CASE WHEN n.category = 'other' THEN 'none' WHEN n.category IS NOT NULL THEN 'name' END AS category_source, n.origin AS origin
FROM stage.activities AS a
JOIN stage.linked AS l USING (activity_id)
LEFT JOIN stage.kernel_names AS n ON a.kind = 'kernel' AND n.name IS NOT DISTINCT FROM a.name;
