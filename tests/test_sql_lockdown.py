"""A stranger's SQL reads the store and nothing else, and writes nowhere."""

import hashlib
import json
import os
import tempfile

import duckdb
import polars as pl
import pytest
from clirun import NS_UNIT, assert_fails, fill, inside, listing, traceq

import traceq as api
from traceq.errors import TraceqError
from traceq.store.build import SCHEMA_VERSION

SECRET = "planted-secret-4711"
SPILL = "(current_setting('temp_directory') || '/out.csv')"
# What each tries; {here} is the folder of the store and of the planted files.
FORBIDDEN = {
    "read csv": "FROM read_csv('{here}/secret.csv')",
    "read csv auto": "FROM read_csv_auto('secret.csv')",
    "sniff csv": "FROM sniff_csv('{here}/secret.csv')",
    "read text": "FROM read_text('{here}/secret.csv')",
    "read text relative": "SELECT content FROM read_text('secret.csv')",
    "read blob": "FROM read_blob('{here}/secret.csv')",
    "read json": "FROM read_json('{here}/secret.json')",
    "read ndjson": "FROM read_ndjson('{here}/secret.json')",
    "read parquet": "FROM read_parquet('{here}/secret.parquet')",
    "parquet metadata": "FROM parquet_metadata('{here}/secret.parquet')",
    "from csv": "FROM '{here}/secret.csv'",
    "from parquet": "SELECT * FROM 'secret.parquet'",
    "from json": "FROM 'secret.json'",
    "from database": "FROM 'secret.duckdb'",
    "read database": "FROM read_duckdb('secret.duckdb', table_name = 'kept')",
    "glob": "FROM glob('{here}/*')",
    "glob relative": "FROM glob('*')",
    "passwd": "FROM read_text('/etc/passwd')",
    "environment file": "FROM read_blob('/proc/self/environ')",
    "network": "FROM read_csv('http://127.0.0.1:9/x.csv')",
    "getenv": "SELECT getenv('TRACEQ_TEST_SECRET')",
    "in a subquery": "SELECT (SELECT content FROM read_text('secret.csv')) AS a FROM meta",
    "through query": "FROM query('FROM read_text(''secret.csv'')')",
    "summarize a file": "SUMMARIZE FROM 'secret.csv'",
    "explain analyze a read": "EXPLAIN ANALYZE FROM read_text('secret.csv')",
    "copy to": "COPY (SELECT 1) TO '{here}/out.csv'",
    "copy to relative": "COPY meta TO 'out.parquet' (FORMAT parquet)",
    "copy over the store": "COPY (SELECT 1) TO '{here}/store.duckdb'",
    "copy over the store, relative": "COPY (SELECT 1) TO 'store.duckdb'",
    "copy over its log": "COPY (SELECT 1) TO 'store.duckdb.wal'",
    "copy from": "COPY meta FROM '{here}/secret.csv'",
    "copy database": "COPY FROM DATABASE memory TO store",
    "copy into the spill folder": f"COPY (SELECT 1) TO {SPILL}",
    "explain analyze copy": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{here}/out.csv'",
    "explain analyze copy into the spill folder": f"EXPLAIN ANALYZE COPY (SELECT 1) TO {SPILL}",
    "explain analyze copy over the store": "EXPLAIN ANALYZE COPY (SELECT 1) TO 'store.duckdb'",
    "explain analyze insert": "EXPLAIN ANALYZE INSERT INTO meta VALUES ('a', 'b')",
    "explain analyze delete": "EXPLAIN ANALYZE DELETE FROM meta",
    "explain analyze create": "EXPLAIN ANALYZE CREATE TABLE taken AS SELECT 1 AS a",
    "attach": "ATTACH '{here}/new.duckdb'",
    "attach another": "ATTACH 'secret.duckdb' AS other (READ_ONLY)",
    "attach again for writing": "ATTACH '{here}/store.duckdb' AS again",
    "detach": "DETACH store",
    "install": "INSTALL httpfs",
    "force install": "FORCE INSTALL sqlite FROM '{here}'",
    "load": "LOAD httpfs",
    "load a file": "LOAD '{here}/secret.csv'",
    "update extensions": "UPDATE EXTENSIONS",
    "create table": "CREATE TABLE taken (a INTEGER)",
    "create table as": "CREATE OR REPLACE TABLE meta AS SELECT 1 AS a",
    "create view": "CREATE VIEW taken AS SELECT 1 AS a",
    "create macro": "CREATE MACRO taken() AS 1",
    "create schema": "CREATE SCHEMA taken",
    "create secret": "CREATE PERSISTENT SECRET taken (TYPE http)",
    "insert": "INSERT INTO meta VALUES ('a', 'b')",
    "insert returning": "INSERT INTO meta VALUES ('a', 'b') RETURNING *",
    "update": "UPDATE meta SET value = '9'",
    "delete": "DELETE FROM gpu_activities",
    "truncate": "TRUNCATE meta",
    "merge": "MERGE INTO meta USING (SELECT 'a' AS k) AS s ON meta.key = s.k "
    "WHEN NOT MATCHED THEN INSERT VALUES ('a', 'b')",
    "drop": "DROP TABLE meta",
    "alter": "ALTER TABLE meta ADD COLUMN taken INTEGER",
    "comment": "COMMENT ON TABLE meta IS 'taken'",
    "export": "EXPORT DATABASE '{here}/out'",
    "import": "IMPORT DATABASE '{here}'",
    "set threads": "SET threads = 1",
    "set global": "SET GLOBAL memory_limit = '9GB'",
    "set access": "SET enable_external_access = true",
    "set folder": "SET temp_directory = '{here}'",
    "set home": "SET home_directory = '{here}'",
    "unlock": "SET lock_configuration = false",
    "reset": "RESET memory_limit",
    "reset access": "RESET enable_external_access",
    "pragma threads": "PRAGMA threads = 1",
    "pragma profiling": "PRAGMA enable_profiling = 'json'",
    "pragma profiling output": "PRAGMA profiling_output = '{here}/out.json'",
    "pragma log": "PRAGMA log_query_path = '{here}/out.log'",
    "log": "CALL enable_logging(storage = 'file', storage_path = '{here}/out')",
    "python frame": "FROM frame",
    "python connection": "FROM con",
    "python result": "FROM columns",
    "two statements": "SELECT 1 AS a; SELECT 2 AS a",
    "two statements, the second writes": "SELECT 1 AS a; COPY (SELECT 1) TO '{here}/out.csv'",
    "prepare and execute": "PREPARE p AS SELECT 1; EXECUTE p",
    "set, then read": "SET enable_external_access = true; FROM read_text('secret.csv')",
    "no statement": "",
    "only a semicolon": ";",
    "no sql": "SELEC 1",
    "no such column": "SELECT nope FROM kernels",
}
IN_A_PROCESS = [
    "read text",
    "glob",
    "getenv",
    "copy to",
    "copy over the store",
    "explain analyze copy into the spill folder",
    "explain analyze insert",
    "attach",
    "create table",
    "export",
    "set access",
    "log",
    "python connection",
    "two statements, the second writes",
]
# Statement, and what the answer holds.
ALLOWED = {
    "SELECT count(*) AS n FROM kernels": [{"n": 2}],
    "SELECT name, dur_ns FROM kernels ORDER BY dur_ns LIMIT 1 OFFSET 1": [
        {"name": "ampere_sgemm_128x64_tn", "dur_ns": 13500}
    ],
    "FROM meta WHERE key = 'schema_version' LIMIT 1;": [{"key": "schema_version", "value": str(SCHEMA_VERSION)}],
    "WITH a AS (SELECT 1 AS x UNION ALL SELECT 2) SELECT sum(x)::BIGINT AS s FROM a": [{"s": 3}],
    "VALUES (1)": [{"col0": 1}],
    "(SELECT 1 AS a)": [{"a": 1}],
    "/* why */ SELECT 1 AS a -- because": [{"a": 1}],
    "SELECT ';' AS a": [{"a": ";"}],
    "PIVOT (SELECT category, dur_ns FROM kernels) ON category USING sum(dur_ns)::BIGINT": [
        {"elementwise": 1500, "gemm": 13500}
    ],
    "SELECT 1 AS a, 2 AS a": [{"a": 1, "a_2": 2}],
    "SELECT 'nan'::DOUBLE AS n, 'inf'::DOUBLE AS i, ['-inf'::DOUBLE, 1] AS l": [
        {"n": None, "i": None, "l": [None, 1.0]}
    ],
}
# Statement, and a column that its answer has.
DESCRIBED = {
    "SUMMARIZE meta": "column_name",
    "SUMMARIZE SELECT dur_ns FROM kernels": "column_name",
    "DESCRIBE kernels": "column_name",
    "DESCRIBE SELECT 1 AS a": "column_name",
    "EXPLAIN SELECT count(*) FROM kernels": "explain_value",
    "EXPLAIN ANALYZE SELECT count(*) FROM kernels": "explain_value",
    "SHOW TABLES": "name",
    "FROM duckdb_columns()": "comment",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a store and files that nobody may read."""
    folder = tmp_path_factory.mktemp("lockdown")
    fill(folder / "store.duckdb", (NS_UNIT, "one"))
    (folder / "secret.csv").write_text(f"key,value\n{SECRET},1\n")
    (folder / "secret.json").write_text(json.dumps([{"a": SECRET}]))
    pl.DataFrame({"a": [SECRET]}).write_parquet(folder / "secret.parquet")
    with duckdb.connect(folder / "secret.duckdb") as con:
        con.execute(f"CREATE TABLE kept AS SELECT '{SECRET}' AS a")
    return folder


def digests(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in listing(folder)}


@pytest.fixture
def there(here, tmp_path, monkeypatch):
    """The same folder as the current one; nothing in it changes, and no file is made at home or in TMPDIR."""
    for name in ("HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TRACEQ_TEST_SECRET", SECRET)
    monkeypatch.setenv("TRACEQ_STORE", str(here / "store.duckdb"))
    monkeypatch.chdir(here)
    before = digests(here)
    yield here
    assert digests(here) == before
    assert listing(tmp_path) == {"HOME": None, "TMPDIR": None}


def assert_refused(done):
    assert SECRET not in done.out + done.err
    assert "root:" not in done.out + done.err
    assert done.status in (1, 2), done
    assert_fails(done, done.status, "")
    assert done.out == ""


@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden(there, statement):
    assert_refused(inside("sql", statement.format(here=there), "--json"))


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_forbidden_in_a_process_of_its_own(there, tmp_path, name):
    env = {key: os.environ[key] for key in ("HOME", "TMPDIR", "TRACEQ_TEST_SECRET", "TRACEQ_STORE")}
    assert_refused(traceq("sql", FORBIDDEN[name].format(here=there), "--format", "csv", cwd=there, env=env))


@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_in_python(there, statement):
    frame = pl.DataFrame({"a": [SECRET]})
    assert frame.height
    with api.open() as store, pytest.raises(TraceqError) as raised:
        store.sql(statement.format(here=there))
    assert SECRET not in f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize("statement", ALLOWED)
def test_allowed(there, statement):
    done = inside("sql", statement, "--json")
    assert done.status == 0, done
    assert json.loads(done.out)["rows"] == ALLOWED[statement]


@pytest.mark.parametrize("statement", DESCRIBED)
def test_allowed_to_look_around(there, statement):
    done = inside("sql", statement, "--json")
    assert done.status == 0, done
    found = json.loads(done.out)
    assert found["row_count"] == len(found["rows"]) > 0
    assert DESCRIBED[statement] in [column["name"] for column in found["columns"]]


def test_a_statement_may_begin_with_a_comment(there):
    done = traceq(
        "sql", "--json", "-- how many?\nSELECT count(*) AS n FROM kernels", env={"TRACEQ_STORE": there / "store.duckdb"}
    )
    assert done.status == 0, done
    assert json.loads(done.out)["rows"] == [{"n": 2}]


def test_a_statement_from_standard_input(there):
    text = "-- how many?\nSELECT count(*) AS n, 'é' AS e FROM kernels;\n".encode()
    done = traceq("sql", "-", "--json", env={"TRACEQ_STORE": there / "store.duckdb"}, stdin=text)
    assert done.status == 0, done
    assert json.loads(done.out)["rows"] == [{"n": 2, "e": "é"}]


def test_the_spill_folder_is_a_private_one(there, tmp_path):
    done = inside("sql", "SELECT current_setting('temp_directory') AS folder", "--json")
    folder = json.loads(done.out)["rows"][0]["folder"]
    assert folder.startswith(str(tmp_path / "TMPDIR"))
