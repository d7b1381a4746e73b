"""The Python interface."""

import json

import duckdb
import polars as pl
import pytest
from clirun import DEMO, MARKUP, NS_UNIT, fill, inside, shared
from polars.testing import assert_frame_equal

import traceq as api
from traceq import query as queries
from traceq.errors import Status, TraceqError

POLARS = {"BIGINT": pl.Int64, "INTEGER": pl.Int32, "DOUBLE": pl.Float64, "VARCHAR": pl.String, "BOOLEAN": pl.Boolean}
REQUIRED = {"diff_categories": {"a": "demo", "b": "small"}, "schema": {"table": "kernels"}}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    runs = ((DEMO / "default.json.gz", "demo"), (NS_UNIT, "small"), (MARKUP, "markup"))
    return shared(tmp_path_factory, "api", lambda to: fill(to / "store.duckdb", *runs)) / "store.duckdb"


@pytest.fixture(scope="module")
def store(path):
    with api.open(path) as opened:
        yield opened


@pytest.mark.parametrize("name", queries.names())
def test_a_query_gives_the_rows_and_types_of_the_command(store, path, name):
    params = REQUIRED.get(name, {})
    given = [word for key, value in params.items() for word in ("-p", f"{key}={value}")]
    done = inside("query", name, *given, "--json", "--store", path)
    assert done.status == 0, done
    said = json.loads(done.out)
    frame = store.query(name, **params)
    assert frame.schema == {c["name"]: POLARS[c["type"]] for c in said["columns"]}
    assert frame.to_dicts() == said["rows"]


def test_an_answer_without_rows_has_its_columns(store):
    frame = store.query("top_kernels", top=0)
    assert frame.shape == (0, len(queries.load("top_kernels").columns))
    assert frame.schema["total_ns"] == pl.Int64


def test_parameters(store):
    frame = store.query("top_kernels", run="small", top=1)
    assert frame.select("name", "total_ns").rows() == [("ampere_sgemm_128x64_tn", 13500)]
    assert_frame_equal(store.query("top_kernels", run="small", top="1"), frame)
    assert set(store.query("top_kernels", run=None, top=1)["run"]) == {"demo", "small", "markup"}


@pytest.mark.parametrize(
    ("expression", "type_", "value"),
    [
        ("1::BIGINT", pl.Int64, 1),
        ("1.5::DOUBLE", pl.Float64, 1.5),
        ("'é'", pl.String, "é"),
        ("true", pl.Boolean, True),
        ("[1, NULL]::BIGINT[]", pl.List(pl.Int64), [1, None]),
        ("{'a': 1::BIGINT}", pl.Struct({"a": pl.Int64}), {"a": 1}),
        ("NULL::BIGINT", pl.Int64, None),
        ("'{\"a\": 1}'::JSON", pl.String, '{"a": 1}'),
    ],
)
def test_sql_types(store, expression, type_, value):
    frame = store.sql(f"SELECT {expression} AS a")
    assert frame.schema == {"a": type_}
    assert frame.rows() == [(value,)]


def test_sql_reads_the_store(store):
    frame = store.sql("SELECT name, dur_ns FROM kernels WHERE run = 'small' ORDER BY start_ns")
    assert frame["dur_ns"].to_list() == [13500, 1500]
    assert store.sql("SELECT 1 AS a WHERE false").schema == {"a": pl.Int32}


@pytest.mark.parametrize(
    "statement", ["SELECT 1 AS a, 2 AS a", "SELECT INTERVAL 1 DAY AS a"], ids=["twins", "interval"]
)
def test_sql_that_the_command_answers(store, statement):
    assert store.sql(statement).height == 1


def test_trust(store, path):
    every = store.trust()
    assert set(every) == {"demo", "small", "markup"}
    assert store.trust("small") == {"small": every["small"]}
    assert any("no steps are marked" in note for note in every["small"]["notes"])
    done = inside("query", "gemm_share", "--run", "small", "--json", "--store", path)
    assert json.loads(done.out)["trust"] == store.trust("small")


ERRORS = {
    "no such query": (lambda s: s.query("gemm_shar"), Status.USAGE, "did you mean gemm_share"),
    "a path for a query": (lambda s: s.query("../kernels/gemm_share"), Status.USAGE, "no query is called"),
    "no such run": (lambda s: s.query("gemm_share", run="nope"), Status.USAGE, "no run is called 'nope'"),
    "no such parameter": (lambda s: s.query("gemm_share", nope=1), Status.USAGE, "no parameter 'nope'"),
    "a bad value": (lambda s: s.query("top_kernels", top="many"), Status.USAGE, "is no BIGINT"),
    "a fraction for a whole number": (lambda s: s.query("top_kernels", top=1.5), Status.USAGE, "is no BIGINT"),
    "bad sql": (lambda s: s.sql("SELECT nope FROM kernels"), Status.FAILED, "nope"),
    "sql that fails halfway": (lambda s: s.sql("SELECT error('stop') FROM kernels"), Status.FAILED, "stop"),
    "trust of no such run": (lambda s: s.trust("nope"), Status.USAGE, "no run is called 'nope'"),
}


@pytest.mark.parametrize(("use", "status", "says"), ERRORS.values(), ids=ERRORS)
def test_errors(store, use, status, says):
    with pytest.raises(TraceqError, match=says) as raised:
        use(store)
    assert raised.value.status == status
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("use", [lambda s: s.query("runs"), lambda s: s.sql("SELECT 1"), lambda s: s.trust()])
def test_a_closed_store_answers_nothing(path, use):
    with api.open(path) as opened:
        pass
    with pytest.raises(TraceqError):
        use(opened)
    opened.close()


def test_where_the_store_is(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEQ_STORE", str(path))
    with api.open() as opened:
        assert opened.query("runs").height == 3
        assert repr(opened) == f"traceq.open({str(path)!r})"
    monkeypatch.delenv("TRACEQ_STORE")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traceq.duckdb").symlink_to(path)
    with api.open() as opened:
        assert opened.query("runs").height == 3
    with pytest.raises(TraceqError, match="no store at") as raised:
        api.open(tmp_path / "nope.duckdb")
    assert raised.value.status == Status.STORE


def test_a_store_that_this_process_has_open_in_duckdb(path):
    """As in a notebook; DuckDB wants one configuration for a file in a process."""
    with duckdb.connect(path, read_only=True) as con:
        assert con.execute("SELECT count(*) FROM runs").fetchall() == [(3,)]
        try:
            with api.open(path) as opened:
                answer = opened.query("runs").height, None
        except TraceqError as error:
            answer = None, error.status
    assert answer in ((3, None), (None, Status.STORE))


def test_an_open_store_gives_one_answer_while_another_run_comes_in(tmp_path):
    """`query` and `sql` see the same store, whichever moment that is."""
    path = fill(tmp_path / "store.duckdb", (NS_UNIT, "before"))
    with api.open(path) as opened:
        fill(path, (MARKUP, "after"))
        assert opened.sql("SELECT label FROM runs ORDER BY run_id")["label"].to_list() == (
            opened.query("runs")["run"].to_list()
        )
