"""Creating the tables of a store, and deriving what is expensive or subtle once, by SQL files run in order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from traceq.version import __version__

HERE = Path(__file__).parent
RULES = HERE / "rules.csv"
CLASSIFY = HERE / "derive" / "70_classify.sql"
SCHEMA_VERSION = 4
RUN_TABLES = ("captures", "timings", "graph_breaks", "recompiles", "compile_phases", "kernel_sources")
STORE_TABLES = ("meta", "rules", "runs", "traces", *RUN_TABLES)
CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    # DuckDB 2.0.1 bounds sums too narrowly above some joins, and then gives wrong numbers (-48 for 2000) or errors.
    "disabled_optimizers": "statistics_propagation,compressed_materialization",
}
READ_RULES = """
INSERT INTO rules SELECT *, 'built-in'
FROM read_csv(?, header = true, quote = '"', escape = '"', delim = ',', columns = {
    'priority': 'BIGINT', 'pattern': 'VARCHAR', 'category': 'VARCHAR', 'origin': 'VARCHAR', 'decisive': 'BOOLEAN',
    'applies_to': 'VARCHAR', 'note': 'VARCHAR'
}) ORDER BY priority
"""


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make an empty store of the current schema in the database that `con` is open on."""
    create_tables(con)
    complete(con)


def complete(con: duckdb.DuckDBPyConnection) -> None:
    """Make a store of its bare tables: the views, the documentation of every column, and the versions."""
    con.execute("SET threads = 1; PRAGMA disable_optimizer")  # hundreds of COMMENT ON: planning is all that they cost
    for name in ("views.sql", "comments.sql"):
        con.execute((HERE / name).read_text("utf-8"))
    con.execute("PRAGMA enable_optimizer; RESET threads")
    versions = {
        "schema_version": str(SCHEMA_VERSION),
        "traceq_version": __version__,
        "duckdb_version": duckdb.__version__,
    }
    con.executemany("INSERT INTO meta VALUES (?, ?)", list(versions.items()))


def create_tables(con: duckdb.DuckDBPyConnection) -> None:
    """The tables alone, with the built-in rules: what deriving a trace needs."""
    con.execute((HERE / "schema.sql").read_text("utf-8"))
    con.execute(READ_RULES, [str(RULES)])


def derive_steps(con: duckdb.DuckDBPyConnection) -> None:
    """Which ranges are steps; the nesting of modules leaves these out."""
    _run(con, range(20))


def derive_links(con: duckdb.DuckDBPyConnection) -> None:
    """What needs no nesting of the host's rows: launches, busy intervals, gaps and why the host was late."""
    _run(con, range(20, 50))


def derive_rest(con: duckdb.DuckDBPyConnection) -> None:
    """Everything else; the tables of the one trace in `con` are complete then."""
    _run(con, range(50, 55))
    with ThreadPoolExecutor(1) as beside:
        host = beside.submit(_run, con.cursor(), range(55, 60))
        _run(con, range(60, 80))
        host.result()
    _run(con, range(80, 100))


def _run(con: duckdb.DuckDBPyConnection, numbers: range) -> None:
    for path in sorted((HERE / "derive").glob("*.sql")):
        if int(path.name[:2]) in numbers:
            con.execute(path.read_text("utf-8"))


def trace_tables(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The tables of the scratch store whose rows belong to one trace; users may have put others into a store."""
    found = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'scratch' AND schema_name = 'main' ORDER BY ALL"
    )
    return [name for (name,) in found.fetchall() if name not in STORE_TABLES]
