-- Names, categories and the final table of GPU work. Reads stage.activities, stage.linked, rules; fills gpu_activities.

-- One row a distinct kernel name: the rule with the smallest priority that matches it, and the name without return type,
-- namespaces, template and call arguments (what nsys calls the short name).
CREATE OR REPLACE TABLE stage.kernel_names AS
WITH names AS (SELECT DISTINCT name FROM stage.activities WHERE kind = 'kernel'),
matched AS (
    SELECT n.name, arg_min(r.category, r.priority) AS category, arg_min(r.origin, r.priority) AS origin
    FROM names AS n, rules AS r WHERE regexp_matches(n.name, r.pattern) GROUP BY n.name
)
SELECT
    n.name, coalesce(m.category, 'other') AS category, coalesce(m.origin, 'unknown') AS origin,
    coalesce(
        nullif(regexp_extract(replace(n.name, '(anonymous namespace)::', ''), '^(?:void |std::enable_if<[^>]*>::type )?(?:[^<(]*::)?([^<(:]+)', 1), ''),
        n.name
    ) AS short_name
FROM names AS n LEFT JOIN matched AS m USING (name);

INSERT INTO gpu_activities BY NAME
SELECT
    1 AS trace_id, a.* EXCLUDE (scope, collective), l.launch_id, l.pid, l.step,
    coalesce(n.short_name, a.name) AS short_name,
    n.category AS category, n.category AS category_by_name,
    CASE WHEN n.category = 'other' THEN 'none' WHEN n.category IS NOT NULL THEN 'name' END AS category_source, n.origin AS origin
FROM stage.activities AS a
JOIN stage.linked AS l USING (activity_id)
LEFT JOIN stage.kernel_names AS n ON a.kind = 'kernel' AND n.name = a.name;
