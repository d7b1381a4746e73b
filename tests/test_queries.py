"""Every query file: lint, golden rows, an empty store, shuffled tables, examples; and the lint itself.

A query without golden rows fails here: give it some in golden/make.py or, where that cannot be, a test that
HELD_ELSEWHERE names.
"""

import contextlib
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from traceq import lint, query
from traceq.store import files

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(query.__file__).parent / "store" / "schema.sql"
VIEWS = SCHEMA.with_name("views.sql")
NAMES = query.names()
TOLERANCE = 1e-12

# Columns that golden rows do not have.
LEFT_OUT = {
    ("runs", "created"): "the moment of ingest",
    ("run_facts", "content"): "a digest of the files: test_the_same_file_is_the_same_content",
    ("trust", "note"): "sentences: test_trust_says holds some by hand",
}
# Queries about the store itself: they have rows without a trace, and this test instead of golden rows.
HELD_ELSEWHERE = {
    "schema": "test_schema_lists_what_schema_sql_declares",
    "tables": "test_tables_lists_what_schema_sql_declares",
}
# The verb whose name is not the query's.
VERBS = {"tables": "schema"}

NO_STEPS = "no steps are marked, so there are no figures per step (traceq ingest --step-range GLOB names a range)"
NO_STEP_TIME = "idle time is an upper bound: no un-profiled step time is known (traceq ingest --step 12.3ms)"
NO_OPERATORS = "no operators were recorded, so GPU work belongs to no operator or module"
WHOLE_MICROSECONDS = "times are in whole µs: shorter gaps and kernels are blurred"
SAYS = {
    "nogpu": [
        "no GPU rows were recorded although there are 2 launch calls: no permission for GPU counters, another "
        "profiler attached, or the CUPTI library not found; GPU figures are not available",
        NO_STEPS,
    ],
    "warmup": [
        NO_OPERATORS,
        "2 of 4 GPU activities (52.9 % of their time) have no launch in the trace: launched before the "
        "recording began, they are in no step",
        "100.0 % of kernel time is in kernels that no rule knows (other)",
        WHOLE_MICROSECONDS,
        NO_STEP_TIME,
    ],
    "badtime": [
        "1 row(s) without a usable time left out: 1 of category kernel",
        NO_OPERATORS,
        "1 of 3 launch calls have no kernel in the trace",
        "100.0 % of idle time has no known cause (unexplained)",
        WHOLE_MICROSECONDS,
        NO_STEPS,
        NO_STEP_TIME,
    ],
    "ranks": [NO_OPERATORS, NO_STEP_TIME],
    "model": [
        "2 of 13 GPU activities (12.3 % of their time) have a launch but no operator",
        "1 of 13 GPU activities name another operator (External id) than the one open at their launch, which counts",
        "1 row(s) of the host outlast the one around them (clock noise) and count as ending with it",
        "7.5 % of kernel time is in kernels that no rule knows (other)",
        "25.3 % of idle time has no known cause (unexplained)",
        WHOLE_MICROSECONDS,
        "recorded with stacks, shapes: CPU times and launch gaps are inflated by recording stacks",
        NO_STEP_TIME,
    ],
    "flagged": [
        NO_OPERATORS,
        "1 of 6 launch calls have no kernel in the trace",
        WHOLE_MICROSECONDS,
        "the profiler itself kept the host for 0.004 ms",
        "recorded with stacks, shapes, memory: CPU times and launch gaps are inflated by recording stacks",
        "4 of 7 steps are left out of medians (compiles; no_gpu; no_gpu, compiles; partial)",
        "under the profiler a step takes 1.12 times the un-profiled 0.090 ms: idle time is inflated",
    ],
    "cut": [
        "cut.json: truncated: the list of events never ends; 7 whole events kept, "
        "1 unreadable event dropped near byte 1,144",
        NO_OPERATORS,
        "1 of 3 launch calls have no kernel in the trace",
        WHOLE_MICROSECONDS,
        "1 of 2 steps are left out of medians (partial)",
        NO_STEP_TIME,
    ],
}


@pytest.fixture(scope="module")
def golden(golden_store):
    """The golden store, open for reading."""
    with contextlib.closing(files.open_store(golden_store)) as con:
        yield con


@pytest.fixture(scope="module")
def empty():
    """A store without runs."""
    with files.empty_store() as con:
        yield con


@pytest.fixture(scope="module")
def shuffled(golden_store, tmp_path_factory):
    """A copy of the golden store with the rows of every table in another order."""
    path = tmp_path_factory.mktemp("shuffled") / "store.duckdb"
    shutil.copyfile(golden_store, path)
    with contextlib.closing(duckdb.connect(path)) as con:
        con.execute("SET threads = 1; SELECT setseed(0.42)")
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            con.execute(f"CREATE TEMP TABLE rows AS SELECT * FROM {table} ORDER BY random()")
            con.execute(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM rows; DROP TABLE rows")
        con.execute("SET threads = 4")
        yield con


def calls(name):
    """The golden calls of a query: parameters and rows."""
    found = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return found if found and "rows" in found[0] else [{"params": {}, "rows": found}]


def params_to_try(name):
    return [{}] if name in HELD_ELSEWHERE else [call["params"] for call in calls(name)]


def rows(con, name, params):
    """Rows as objects, without the columns that golden rows leave out."""
    asked = query.load(name)
    kept = [c.name for c in asked.columns if (name, c.name) not in LEFT_OUT]
    columns, found, _ = query.fetch(con, asked.sql, query.bind(asked, params), None)
    whole = [dict(zip([c.name for c in columns], row, strict=True)) for row in found]
    return [{column: row[column] for column in kept} for row in whole]


def is_same(value, golden_value):
    if isinstance(value, float) and golden_value is not None:
        return math.isclose(value, golden_value, rel_tol=TOLERANCE)
    return value == golden_value and isinstance(value, bool) == isinstance(golden_value, bool)


def differences(found, wanted):
    """What differs, as lines that one can read; columns must agree in name and order."""
    if len(found) != len(wanted):
        missing = [row for row in wanted if row not in found][:5]
        return [f"{len(found)} rows, not {len(wanted)}; only in golden: {missing}"]
    lines = []
    for number, (row, golden_row) in enumerate(zip(found, wanted, strict=True)):
        if list(row) != list(golden_row):
            return [f"columns {list(row)}, not {list(golden_row)}"]
        unlike = {c: (row[c], golden_row[c]) for c in row if not is_same(row[c], golden_row[c])}
        if unlike:
            key = [v for v in golden_row.values() if isinstance(v, str)][:3]
            lines.append(f"row {number} {key}: (found, golden) {unlike}")
    return lines


def test_lint_finds_nothing():
    assert lint.check_all() == []


@pytest.mark.parametrize("name", NAMES)
def test_golden_rows(golden, name):
    if name in HELD_ELSEWHERE:
        assert HELD_ELSEWHERE[name] in globals()
        return
    assert (GOLDEN / f"{name}.json").exists(), f"no golden rows for {name}: compute them in golden/make.py"
    found = [
        f"{call['params']}: {line}"
        for call in calls(name)
        for line in differences(rows(golden, name, call["params"]), call["rows"])
    ]
    assert not found, "\n".join(found)


def test_golden_rows_are_what_make_computes():
    """make.py shares no code with traceq; it says for which query the committed rows are not its own."""
    done = subprocess.run([sys.executable, str(GOLDEN / "make.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    imported = re.findall(r"^\s*(?:import|from) (\w+)", (GOLDEN / "make.py").read_text("utf-8"), re.M)
    assert not {"traceq", "duckdb", "polars"} & set(imported)


def test_golden_rows_belong_to_queries():
    assert {path.stem for path in GOLDEN.glob("*.json")} - {"store"} <= set(NAMES)


@pytest.mark.parametrize("run", SAYS)
def test_trust_says(golden, run):
    assert query.trust(golden, [run])[run]["notes"] == SAYS[run]


def declared():
    """The columns (name, type) of each table by the text of schema.sql, and the names of the views."""
    text = re.sub(r"--.*", "", SCHEMA.read_text("utf-8"))
    tables = {
        table: [tuple(column.split()[:2]) for column in body.split(",")]
        for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\);", text, re.S)
    }
    return tables, re.findall(r"CREATE VIEW (\w+)", VIEWS.read_text("utf-8"))


def test_schema_lists_what_schema_sql_declares(golden):
    tables, views = declared()
    found = [(r["table"], r["column"], r["type"]) for r in rows(golden, "schema", {})]
    of_tables = [row for row in found if row[0] not in views]
    assert of_tables == [(table, *column) for table in sorted(tables) for column in tables[table]]
    assert {row[0] for row in found} == {*tables, *views}
    assert len(found) == len(set(found))
    assert {r["table"] for r in rows(golden, "schema", {"table": "kernels"})} == {"kernels"}


def test_tables_lists_what_schema_sql_declares(golden):
    tables, views = declared()
    found = [(r["table"], r["kind"]) for r in rows(golden, "tables", {})]
    assert found == sorted([(table, "table") for table in tables] + [(view, "view") for view in views])
    counts = {r["table"]: r["columns"] for r in rows(golden, "tables", {}) if r["kind"] == "table"}
    assert counts == {table: len(columns) for table, columns in tables.items()}


@pytest.mark.parametrize("name", NAMES)
def test_empty_store(empty, name):
    asked = query.load(name)
    for params in ({p.name: p.default for p in asked.params}, {p.name: None for p in asked.params}):
        columns, found, _ = query.fetch(empty, asked.sql, params, None)
        assert [(c.name, c.type) for c in columns] == [(c.name, c.type) for c in asked.columns]
        assert name in HELD_ELSEWHERE or found == []


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows_in_the_store_does_not_matter(golden, shuffled, name):
    for params in params_to_try(name):
        assert not differences(rows(shuffled, name, params), rows(golden, name, params))


@pytest.mark.parametrize("name", NAMES)
def test_examples(golden, name):
    """An example calls this query, as a verb or by name, and its parameters are ones that work."""
    asked = query.load(name)
    for example in asked.examples:
        program, verb, *rest = shlex.split(example)
        assert program == "traceq"
        assert verb == VERBS.get(name, name) or (verb == "query" and rest[:1] == [name]), example
        query.run(golden, asked, given(rest))


def given(words):
    """The parameters of a command line: `--run L` and `-p k=v`."""
    found = dict(re.findall(r"-p (\w+)=(\S+)", " ".join(words)))
    return found | ({"run": words[words.index("--run") + 1]} if "--run" in words else {})


HEADER = """-- title: A test
-- what: A test.
-- value: None.
-- needs: gpu_activities
{param}-- column: n {type}{unit} -- a number
-- order: n
-- example: traceq query bad

"""
QUADRATIC = "is quadratic"
COUNT = "SELECT count(*) AS n FROM kernels"
WINDOW = "OVER (ORDER BY start_ns)"
RUN = "-- param: run VARCHAR = NULL -- a run\n"
DIVISOR = "a divisor is neither"
BAD = [
    ("SELECT 1::BIGINT AS n; SELECT 2::BIGINT AS n", {}, "not exactly one SELECT"),
    ("DELETE FROM runs", {}, "not exactly one SELECT"),
    (f"{COUNT} WHERE name = $name", {}, "placeholder and param differ: name"),
    (COUNT, {"param": RUN}, "placeholder and param differ: run"),
    ("SELECT 'one' AS n", {}, "column n BIGINT is declared, n VARCHAR comes"),
    ("SELECT 1::BIGINT AS m", {}, "column n BIGINT is declared, m BIGINT comes"),
    ("SELECT 1::BIGINT AS n, 2 AS m", {}, "1 columns are declared, 2 come"),
    ("SELECT * FROM (SELECT 1::BIGINT AS n)", {}, "no * in the final SELECT"),
    ("SELECT 1 / count(*) AS n FROM kernels", {"type": "DOUBLE"}, DIVISOR),
    ("SELECT 1 // count(*) AS n FROM kernels", {}, DIVISOR),
    ("SELECT 7 % count(*) AS n FROM kernels", {}, DIVISOR),
    (f"SELECT count(*) FILTER (dur_ns > 9) {WINDOW} AS n FROM kernels", {}, QUADRATIC),
    (f"SELECT count(name) FILTER (dur_ns > 9) {WINDOW} AS n FROM kernels", {}, QUADRATIC),
    (f"{COUNT} AS a JOIN kernels AS b ON a.start_ns >= b.start_ns AND a.start_ns < b.dur_ns", {}, QUADRATIC),
    ("SELECT 1::BIGINT AS n FROM nowhere", {}, "nowhere"),
    ("SELECT 1 / 0 AS n", {"type": "DOUBLE"}, DIVISOR),
    ("SELECT divide(7, count(*)) AS n FROM kernels", {}, DIVISOR),
    ("SELECT 1::BIGINT AS n UNION ALL SELECT * FROM (SELECT 2::BIGINT AS n)", {}, "no * in the final SELECT"),
    (f"{COUNT} AS a JOIN kernels AS b ON a.start_ns BETWEEN b.start_ns AND b.dur_ns", {}, QUADRATIC),
    (f"{COUNT} AS a, kernels AS b WHERE a.start_ns > b.start_ns AND a.start_ns < b.dur_ns", {}, QUADRATIC),
    (COUNT, {"unit": " ns"}, "a time has ns in its name and as its unit"),
    (COUNT, {"unit": " miles"}, "unknown unit miles"),
]
GOOD = [
    (COUNT, {}),
    (f"{COUNT} WHERE run = coalesce($run::VARCHAR, run)", {"param": RUN}),
    (f"{COUNT} AS a ASOF JOIN kernels AS b ON a.device = b.device AND a.start_ns >= b.start_ns", {}),
    ("SELECT 1 / nullif(count(*), 0) + 1 / 2 + 1 / 2::DOUBLE AS n FROM kernels", {"type": "DOUBLE"}),
    ("SELECT n FROM (SELECT *, 1::BIGINT AS n FROM kernels)", {}),
    (f"SELECT sum(CASE WHEN dur_ns > 9 THEN 1 ELSE 0 END) {WINDOW}::BIGINT AS n FROM kernels", {}),
]


def faults(tmp_path, sql, header):
    path = tmp_path / "area" / "bad.sql"
    path.parent.mkdir()
    path.write_text(HEADER.format(**{"param": "", "type": "BIGINT", "unit": "", **header}) + sql, "utf-8")
    with files.empty_store() as con:
        return lint.check(con, query.parse(path))


@pytest.mark.parametrize(("sql", "header", "fault"), BAD)
def test_lint_names_the_fault(tmp_path, sql, header, fault):
    assert any(fault in line for line in faults(tmp_path, sql, header))


@pytest.mark.parametrize(("sql", "header"), GOOD)
def test_lint_passes_what_is_allowed(tmp_path, sql, header):
    assert faults(tmp_path, sql, header) == []
