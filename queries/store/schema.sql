-- title: The tables of a store and their columns
-- what: Every column of every table and view with its type and meaning.
-- value: What traceq sql can ask about.
-- needs: meta
-- layout: wrap
-- param: table VARCHAR = NULL -- table or view; NULL means all
-- column: table VARCHAR -- table or view
-- column: column VARCHAR -- column
-- column: type VARCHAR -- type in DuckDB
-- column: meaning VARCHAR -- what it holds
-- order: table, position
-- example: traceq schema kernels

SELECT
    c.table_name AS "table",
    c.column_name AS "column",
    c.data_type AS type,
    c.comment AS meaning
FROM duckdb_columns() AS c
WHERE
    c.database_name = current_database()
    AND NOT c.internal
    AND c.table_name = coalesce($table::VARCHAR, c.table_name)
ORDER BY c.table_name, c.column_index
