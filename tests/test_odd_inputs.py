"""What users can do to numbers without meaning to: odd steps, odd files, odd stores."""

import gzip
import json
import os

import duckdb
import pytest
from clirun import inside
from test_reports import A, K, L, trace

from traceq import query
from traceq.ingest.pipeline import Options, ingest
from traceq.store import files


def stored(folder, events, **options):
    """The store of one trace, open for reading."""
    path = folder / "t.json"
    path.write_text(events, "utf-8")
    store = folder / "s.duckdb"
    outcomes, _ = ingest([str(path)], store, Options(**options))
    assert not outcomes[0].error, outcomes
    return files.open_store(store)


def per_step(con):
    return con.execute("SELECT pid, step, kernels FROM steps ORDER BY start_ns, step").fetchall()


NESTED = trace(
    *(A("train", 0, 100), A("train_fwd", 10, 30), A("train_bwd", 50, 30)),
    *(L(5, 1, 1), L(15, 1, 2), L(45, 1, 3), L(55, 1, 4), L(90, 1, 5)),
    *(K("a", at + 2, 1, n) for n, at in enumerate((5, 15, 45, 55, 90), 1)),
)


def test_a_launch_belongs_to_the_innermost_step_that_is_open(tmp_path):
    with stored(tmp_path, NESTED, step_range="train*") as con:
        assert [kernels for _, _, kernels in per_step(con)] == [3, 1, 1]


def test_steps_that_start_together(tmp_path):
    events = trace(
        A("ProfilerStep#1", 0, 100),
        A("ProfilerStep#2", 0, 10),
        L(5, 1, 1),
        L(50, 1, 2),
        K("a", 7, 1, 1),
        K("b", 52, 1, 2),
    )
    with stored(tmp_path, events) as con:
        assert sorted(con.execute("SELECT step, kernels FROM steps").fetchall()) == [(1, 1), (2, 1)]


def test_steps_of_a_process_without_launches_take_none_of_another_that_has_steps(tmp_path):
    other = [A(f"ProfilerStep#{n}", at, 100).replace("1000", "2000") for n, at in ((1, 50), (2, 150))]
    mine = [A(f"ProfilerStep#{n}", at, 100) for n, at in ((1, 0), (2, 100))]
    calls = [L(at, 1, at + 1) for at in range(5, 200, 10)]
    kernels = [K("k", at + 2, 1, at + 1) for at in range(5, 200, 10)]
    with stored(tmp_path, trace(*mine, *other, *calls, *kernels)) as con:
        assert sorted(per_step(con)) == [("1000", 1, 10), ("1000", 2, 10), ("2000", 1, 0), ("2000", 2, 0)]


def test_a_period_that_holds_the_next_step_s_compilation_is_left_out(tmp_path):
    events = trace(
        *(A("ProfilerStep#0", 0, 100), A("ProfilerStep#1", 100, 1000), A("ProfilerStep#2", 1100, 100)),
        *(A("ProfilerStep#3", 1200, 100), A("_compile.compile_inner (dynamo_timed)", 105, 900)),
        *(L(10, 1, 1), L(1050, 1, 2), L(1110, 1, 3), L(1210, 1, 4)),
        *(K("k", 15, 5, 1), K("k", 1060, 5, 2), K("k", 1115, 5, 3), K("k", 1215, 5, 4)),
    )
    with stored(tmp_path, events, step_ns=100_000) as con:
        found = query.run(con, query.load("summary"), {})
        assert found.rows[0][[c.name for c in found.columns].index("period_ns")] == 100_000


def test_a_pause_between_steps_is_no_period(tmp_path):
    events = trace(
        A("ProfilerStep#1", 0, 10),
        A("ProfilerStep#7", 900, 10),
        L(1, 1, 1),
        L(901, 1, 2),
        K("k", 3, 1, 1),
        K("k", 903, 1, 2),
    )
    with stored(tmp_path, events) as con:
        assert con.execute("SELECT list(period_ns) FROM steps").fetchall() == [([None, None],)]


def test_a_run_may_be_called_null(tmp_path):
    for label in ("NULL", "other"):
        (tmp_path / f"{label}.json").write_text(trace(K(label, 0, 1)))
    store = tmp_path / "s.duckdb"
    assert inside("ingest", tmp_path / "NULL.json", tmp_path / "other.json", "--store", store).status == 0
    done = inside("query", "top_kernels", "--run", "NULL", "--json", "--store", store)
    assert {row["run"] for row in json.loads(done.out)["rows"]} == {"NULL"}


def rank_file(path, rank, size):
    path.parent.mkdir(parents=True)
    path.write_text(trace(K("k", 0, 1), distributedInfo={"rank": rank, "world_size": size}))
    return path


def test_ranks_of_another_job_are_no_ranks_of_this_one(tmp_path):
    store = tmp_path / "s.duckdb"
    for path in (
        rank_file(tmp_path / "a" / "log" / "r0.json", 0, 2),
        rank_file(tmp_path / "b" / "log" / "r1.json", 1, 8),
    ):
        done = inside("ingest", path, "--store", store)
        assert done.status == 0, done
    assert "already holds another job" in done.err
    with files.open_store(store) as con:
        assert con.execute("SELECT label FROM runs ORDER BY run_id").fetchall() == [("log",), ("log-2",)]


def test_diff_does_not_compare_a_run_with_itself_unasked(golden_store):
    with files.open_store(golden_store) as con:
        for given in ({"b": "eager"}, {"a": "default"}):
            rows = query.run(con, query.load("diff_categories"), given).rows
            assert len({row[-2:] for row in rows}) == 1
            assert rows[0][-2] != rows[0][-1]


def test_a_second_list_of_events_is_refused(tmp_path):
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1}
    for text in (
        f'{{"traceEvents":[{json.dumps(event)}],"x":1,"traceEvents":[{json.dumps(event)},{json.dumps(event)}]}}',
        f'{{"meta":{{"traceEvents":[]}},"traceEvents":[{json.dumps(event)}]}}',
    ):
        (tmp_path / "t.json").write_text(text)
        done = inside("ingest", tmp_path / "t.json", "--store", tmp_path / "s.duckdb")
        assert done.status == 3, done
        assert "more than one" in done.err


def test_one_broken_event_with_other_first_keys_costs_itself(tmp_path):
    events = [
        f'{{"sf": {n}, "ph": "X", "cat": "kernel", "name": "k{n}", "pid": 0, "tid": 7, "ts": {n}, "dur": 1}}'
        for n in range(1000)
    ]
    events[500] = events[500].replace("k500", 'k"500')
    with stored(tmp_path, f'{{"traceEvents": [{", ".join(events)}]}}') as con:
        assert con.execute("SELECT count(*) FROM kernels").fetchall() == [(999,)]


def test_objects_inside_a_broken_event_are_no_events(tmp_path):
    bad = '{"ph": "X", "name": "a"b", "args": {"l": [{"name": "q"}, {"name": "r"}]}}'
    good = [
        f'{{"ph": "X", "cat": "kernel", "name": "k{n}", "pid": 0, "tid": 7, "ts": {n}, "dur": 1}}' for n in range(9)
    ]
    with stored(tmp_path, f'{{"traceEvents": [{", ".join([*good[:4], bad, *good[4:]])}], "traceName": "x"}}') as con:
        assert con.execute("SELECT count(*) FROM kernels").fetchall() == [(9,)]
        assert con.execute("SELECT status FROM traces").fetchall() == [("salvaged",)]


def test_a_wrong_checksum_costs_no_event_but_is_told(tmp_path):
    body = trace(*(K(f"k{n}", n * 10, 4) for n in range(500)))
    packed = bytearray(gzip.compress(body.encode()))
    packed[-8] ^= 1
    (tmp_path / "t.json.gz").write_bytes(packed)
    done = inside("ingest", tmp_path / "t.json.gz", "--json", "--store", tmp_path / "s.duckdb")
    assert done.status == 0, done
    assert "damaged" in done.out
    with files.open_store(tmp_path / "s.duckdb") as con:
        assert con.execute("SELECT count(*), any_value(t.status) FROM kernels, traces AS t").fetchall() == [
            (500, "salvaged")
        ]
    refused = inside("ingest", tmp_path / "t.json.gz", "--strict", "--store", tmp_path / "other.duckdb")
    assert refused.status == 3, refused


@pytest.fixture
def store(tmp_path):
    stored(tmp_path, trace(K("a", 0, 1))).close()
    return tmp_path / "s.duckdb"


def another(folder):
    (folder / "b.json").write_text(trace(K("b", 0, 2)))
    return folder / "b.json"


def test_a_table_of_the_user_s_own_is_left_alone(tmp_path, store):
    with duckdb.connect(store) as con:
        con.execute("CREATE TABLE notes AS SELECT 42 AS x")
    done = inside("ingest", another(tmp_path), "--store", store)
    assert done.status == 0, done
    with files.open_store(store) as con:
        assert con.execute("SELECT (SELECT x FROM notes), count(*) FROM traces").fetchall() == [(42, 2)]


def test_a_rule_that_is_no_regular_expression_is_named(tmp_path, store):
    with duckdb.connect(store) as con:
        con.execute("INSERT INTO rules (priority, pattern, category, origin) VALUES (7, '(', 'gemm', 'custom')")
    done = inside("ingest", another(tmp_path), "--store", store)
    assert done.status == 4, done
    assert "priority 7" in done.err


def test_output_never_replaces_a_store_or_an_input(tmp_path, store):
    before = store.read_bytes()
    done = inside("query", "runs", "--store", store, "-o", store)
    assert (done.status, store.read_bytes()) == (2, before), done
    path = another(tmp_path)
    text = path.read_text()
    done = inside("ingest", path, "--store", store, "-o", path)
    assert (done.status, path.read_text()) == (2, text), done


def test_a_store_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = inside("query", "runs", "--store", tmp_path / "pipe")
    assert done.status == 4, done


def test_the_step_time_of_a_run_that_gets_another_rank(tmp_path):
    store = tmp_path / "s.duckdb"
    for rank, more in ((0, []), (1, ["--step", "43ms"])):
        done = inside(
            "ingest", rank_file(tmp_path / str(rank) / "r.json", rank, 2), "--label", "job", *more, "--store", store
        )
        assert done.status == 0, done
    with files.open_store(store) as con:
        assert con.execute("SELECT label, step_pipelined_ns FROM runs").fetchall() == [("job", 43_000_000)]


def test_a_length_of_years_is_no_time(tmp_path):
    with stored(tmp_path, trace(*(K("k", n, 2 * 10**15) for n in range(6)), K("good", 10, 1))) as con:
        assert con.execute("SELECT name FROM kernels").fetchall() == [("good",)]
        assert con.execute("SELECT sum(lost) FROM event_counts").fetchall() == [(6,)]
