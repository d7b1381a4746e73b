-- title: The tables and views of a store
-- what: Every table and view with its kind, number of columns and meaning.
-- value: Where to look before writing SQL.
-- needs: meta
-- layout: wrap
-- column: table VARCHAR -- table or view
-- column: kind VARCHAR -- table or view
-- column: columns BIGINT count -- its columns
-- column: meaning VARCHAR -- what a row is
-- order: table
-- example: traceq schema

WITH found AS (
    SELECT table_name, 'table' AS kind, column_count, comment
    FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal AND NOT temporary
    UNION ALL
    SELECT view_name, 'view', column_count, comment
    FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal AND NOT temporary
)

SELECT
    table_name AS "table",
    kind,
    column_count AS columns,
    comment AS meaning
FROM found
ORDER BY table_name
