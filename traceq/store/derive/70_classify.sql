-- What each kernel computes and who made it. Reads stage.to_classify, rules; fills stage.classified.
-- `traceq reclassify` runs this file too, over the kernels of a whole store.

-- Rules become one CASE with constant patterns: a pattern taken from a column would be compiled for every name. The rule with
-- the smallest priority that matches counts.
CREATE OR REPLACE MACRO stage.first_rule(whose) AS (
    SELECT
        'CASE ' || coalesce(
            string_agg(format('WHEN regexp_matches(name, ''{}'') THEN {} ', replace(pattern, '''', ''''''), priority), '' ORDER BY priority), ''
        ) || 'WHEN false THEN 0 END'
    FROM rules WHERE applies_to = whose
);

SET VARIABLE kernel_rules = 'SELECT name, ' || stage.first_rule('kernel') || ' AS priority FROM (SELECT DISTINCT name FROM stage.to_classify)';
SET VARIABLE op_rules = 'SELECT name, ' || stage.first_rule('op') || ' AS priority FROM (SELECT DISTINCT op_name AS name FROM stage.to_classify)';

-- The short name is the name without return type, namespaces, template and call arguments (what nsys calls so).
CREATE OR REPLACE TABLE stage.kernel_names AS
SELECT
    n.name, coalesce(r.category, 'other') AS category, coalesce(r.origin, 'unknown') AS origin, coalesce(r.decisive, false) AS is_decisive,
    coalesce(r.priority >= 9000, true) AS is_anyones,
    coalesce(
        nullif(regexp_extract(replace(n.name, '(anonymous namespace)::', ''), '^(?:void |std::enable_if<[^>]*>::type )?(?:[^<(]*::)?([^<(:]+)', 1), ''),
        n.name
    ) AS short_name,
    regexp_full_match(n.name, '[A-Za-z]\w*|_[A-Y_a-z]\w*') AS is_plain
FROM query(getvariable('kernel_rules')) AS n LEFT JOIN rules AS r ON r.priority = n.priority;

CREATE OR REPLACE TABLE stage.op_names AS
SELECT n.name, r.category FROM query(getvariable('op_rules')) AS n JOIN rules AS r ON r.priority = n.priority;

-- A decisive name wins, then the operator (not the one around a graph launch), then the weaker names. Triton's own launcher
-- calls the driver; a plain name launched so, outside of ATen, that no rule ascribes to a library is a Triton kernel of the
-- user's (the rules from 9000 on know words, not libraries).
CREATE OR REPLACE TABLE stage.classified AS
SELECT
    t.trace_id, t.activity_id, n.short_name, n.category AS category_by_name,
    CASE WHEN NOT n.is_decisive THEN coalesce(p.category, n.category) ELSE n.category END AS category,
    CASE
        WHEN NOT n.is_decisive AND p.category IS NOT NULL THEN 'op'
        WHEN n.category = 'other' THEN 'none'
        ELSE 'name'
    END AS category_source,
    CASE
        WHEN n.origin IN ('custom', 'unknown') AND n.is_anyones AND n.is_plain AND (
            t.op_details->>'$.kernel_backend' = 'triton' OR t.kernel_file IS NOT NULL
            OR (starts_with(t.launch_name, 'cuLaunchKernel') AND coalesce(t.op_name NOT LIKE 'aten::%', true))
        ) THEN 'triton'
        ELSE n.origin
    END AS origin
FROM stage.to_classify AS t
JOIN stage.kernel_names AS n ON n.name IS NOT DISTINCT FROM t.name
LEFT JOIN stage.op_names AS p ON p.name = t.op_name AND t.launch_role IS DISTINCT FROM 'graph_launch';
