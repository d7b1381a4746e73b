"""The SQL screen: names while one types, history, rows in pages, nothing but reading."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest
from clirun import traceq
from tuirun import drive, press, seen, settle

from traceq.store.files import connect, create
from traceq.tui.history import MOST, History
from traceq.tui.widgets.editor import Editor, Names, tokens
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.prose import Prose

KERNELS = "SELECT name, dur_ns FROM kernels WHERE run = 'eager' ORDER BY start_ns, name"
LONG = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"


@pytest.fixture
def store(golden_store, tmp_path, monkeypatch):
    """A copy of the golden store that is the default one of the folder; the history is in the folder, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TRACEQ_DEBUG", "1")
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    shutil.copy(golden_store, "traceq.duckdb")
    return Path("traceq.duckdb")


def typed(store, *texts, look, size=(120, 40)):
    """What `look(app)` gives after each of `texts` was put into the editor and run."""

    async def steps(app, pilot):
        await press(pilot, "7")
        for text in texts:
            app.screen.query_one(Editor).put(text)
            await press(pilot, "ctrl+r")
        found = look(app)
        return await found if hasattr(found, "__await__") else found

    return drive(store, steps, size=size)


async def rows_of(app):
    return await app.screen.query_one(Grid).sheet.page(0, 10**6)


def test_the_rows_are_those_of_traceq_sql(store):
    rows = typed(store, KERNELS, look=rows_of)
    done = traceq("sql", KERNELS, "--json")
    assert rows == [tuple(row.values()) for row in json.loads(done.out)["rows"]]
    assert len(rows) > 1000


def test_rows_come_in_pages(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        app.screen.query_one(Editor).put("SELECT range AS n FROM range(1000000)")
        await press(pilot, "ctrl+r", "escape", "end")
        grid = app.screen.query_one(Grid)
        return grid.row, len(grid._pages), seen(app)

    row, pages, text = drive(store, steps)
    assert row == {"n": 999_999}
    assert pages < 5
    assert "1,000,000 rows" in text


def test_the_command_below_is_traceq_sql(store):
    assert typed(store, "SELECT 1", look=lambda app: app.screen.subject().command()) == "traceq sql 'SELECT 1'"


def test_e_writes_the_rows(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        app.screen.query_one(Editor).put(KERNELS)
        await press(pilot, "ctrl+r", "escape", "e")
        app.screen.query_one("#file").value = "out.csv"
        await press(pilot, "enter")

    drive(store, steps)
    assert Path("out.csv").read_text() == traceq("sql", KERNELS, "--format", "csv").out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DELETE FROM runs", "only statements that read are run, not DELETE"),
        ("SELECT 1; SELECT 2", "one statement at a time, not 2"),
        ("SELECT * FROM 'traceq.duckdb'", "traceq.duckdb"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Permission Error"),
        ("COPY runs TO 'out.csv'", "only statements that read are run, not COPY"),
        ("ATTACH 'other.duckdb'", "only statements that read are run, not ATTACH"),
        ("SELECT nme FROM kernels", 'Referenced column "nme" not found'),
        ("SELEC 1", "Parser Error"),
    ],
)
def test_what_does_not_only_read_the_store_is_refused_and_faults_are_told(store, text, says):
    assert says in typed(store, text, look=seen)
    assert not Path("out.csv").exists()


def test_after_a_fault_the_next_statement_runs(store):
    assert typed(store, "SELEC 1", "SELECT 7 AS seven", look=lambda app: app.screen.query_one(Grid).row) == {"seven": 7}


@pytest.mark.parametrize(
    "text", ["FROM runs", "PIVOT kernels ON category USING sum(dur_ns)", "DESCRIBE kernels", "VALUES (1)"]
)
def test_every_form_of_reading_gives_rows(store, text):
    assert typed(store, text, look=lambda app: app.screen.query_one(Grid).count) > 0


@pytest.mark.parametrize("text", ["SHOW TABLES", "-- mine\nshow all tables"])
def test_tables_that_are_shown_are_those_of_traceq_sql(store, text):
    found = json.loads(traceq("sql", text, "--json").out)["rows"]
    assert typed(store, text, look=lambda app: app.screen.query_one(Grid).count) == len(found)


def test_a_plan_is_shown_as_text(store):
    plan = typed(store, "EXPLAIN SELECT count(*) FROM kernels", look=lambda app: app.screen.query_one(Prose).copied())
    assert "gpu_activities" in plan
    assert plan.count("\n") > 5


def test_escape_stops_a_statement(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        app.screen.query_one(Editor).put(LONG)
        await pilot.press("ctrl+r")
        while not app.screen.is_spinning:
            await pilot.pause(0.05)
        spinning = seen(app)
        await press(pilot, "escape")
        stopped = seen(app)
        app.screen.query_one(Editor).put("SELECT 7 AS seven")
        app.screen.query_one(Editor).focus()
        await press(pilot, "ctrl+r")
        return spinning, stopped, app.screen.query_one(Grid).row

    spinning, stopped, row = drive(store, steps)
    assert "esc stops" in spinning
    assert "stopped" in stopped
    assert row == {"seven": 7}


def test_names_are_offered_and_tab_takes_one(store):
    async def steps(app, pilot):
        await press(pilot, "7", "ctrl+l", *"SELECT", "space", *"du")
        await settle(pilot)
        offered = seen(app)
        await press(pilot, "tab", "space", *"FROM", "space", *"ker", "down", "enter", "enter")
        return offered, app.screen.query_one(Editor).text

    offered, text = drive(store, steps)
    assert "dur_ns  BIGINT" in offered
    assert text == "SELECT dur_ns FROM kernel_sources\n"


NAMES = Names(
    {"kernels": [("name", "VARCHAR"), ("dur_ns", "BIGINT")], "steps": [("step", "BIGINT"), ("dur_ns", "BIGINT")]}
)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("SELECT * FROM ke", "", ["kernels"]),
        ("SELECT k.", " FROM kernels AS k", ["name", "dur_ns"]),
        ("SELECT kernels.d", " FROM kernels", ["dur_ns"]),
        ("SELECT st", " FROM steps", ["step", "steps", "DISTINCT"]),
        ("SELECT na", " FROM steps", []),
        ("SELECT name", " FROM kernels", []),
        ("SELECT ", "", []),
        ("SELECT 1", "", []),
        ("SEL", "", ["SELECT"]),
    ],
)
def test_the_names_that_fit(before, after, words):
    assert [word for word, _ in NAMES.matching(before, before + after)] == words


def test_colours_are_where_duckdb_sees_them():
    text = "SELECT 'é', 1 -- ü\nFROM x /* a\nb */"
    pieces = [(text.split("\n")[n].encode()[a:b].decode().strip(), kind) for n, a, b, kind in tokens(text)]
    assert pieces == [
        ("SELECT", "keyword"), ("'é'", "string_const"), (",", "operator"), ("1", "numeric_const"), ("-- ü", "comment"),
        ("FROM", "keyword"), ("x", "identifier"), ("/* a", "comment"), ("b */", "comment"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " \n\n", "SELECT 'not closed", "/* not closed\n\n", "\udcff", "😀"])
def test_colours_fail_on_nothing(text):
    assert all(start <= end for _, start, end, _ in tokens(text))


def test_the_history_brings_back_what_was_run(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        editor = app.screen.query_one(Editor)
        for text in ("SELECT 1", "SELECT 2", "SELECT 1", "SELECT 3"):
            editor.put(text)
            await press(pilot, "ctrl+r")
        editor.put("typed")
        found = []
        for key in ("ctrl+up", "up", "up", "up", "down", "down", "ctrl+down"):
            await press(pilot, key)
            found.append(editor.text)
        return found

    found = drive(store, steps)
    assert found == ["SELECT 3", "SELECT 1", "SELECT 2", "SELECT 2", "SELECT 1", "SELECT 3", "typed"]


def test_the_history_outlives_the_app_and_is_for_the_user_alone(store, tmp_path):
    typed(store, "SELECT 'é\n'", look=lambda app: None)
    file = tmp_path / "state" / "traceq" / "sql_history.jsonl"
    assert file.stat().st_mode & 0o077 == 0
    assert History().older(1, "") == "SELECT 'é\n'"


def test_a_history_that_cannot_be_read_or_written_hinders_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    History(tmp_path / "file" / "below.jsonl").add("SELECT 1")
    (tmp_path / "odd.jsonl").write_bytes(b'\xff\n{"a": 1}\n"SELECT 1"\n')
    assert History(tmp_path / "odd.jsonl").texts() == ["SELECT 1"]


def test_the_history_does_not_grow_for_ever(tmp_path):
    history = History(tmp_path / "history.jsonl")
    (tmp_path / "history.jsonl").write_text("".join(f'"SELECT {n}"\n' for n in range(2 * MOST)))
    history.add("SELECT 'new'")
    assert len(history.texts()) == MOST
    assert history.texts()[-1] == "SELECT 'new'"


def test_a_store_that_is_empty_can_be_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with contextlib.closing(connect(tmp_path / "empty.duckdb")) as con:
        create(con)
    assert "0 rows" in typed(tmp_path / "empty.duckdb", "FROM kernels", look=seen)


@pytest.mark.parametrize("text", ["SELECT [1, 2] AS a, 3 AS b", "SELECT {'x': 1} AS a", "SELECT MAP {[1]: 2} AS a"])
def test_a_first_column_of_lists_is_drawn(store, text):
    rows = typed(store, text, look=rows_of)
    assert len(rows) == 1


def test_a_column_may_have_quotes_in_its_name(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        app.screen.query_one(Editor).put("""SELECT range AS "a""b", 'x' AS "c""d" FROM range(3)""")
        await press(pilot, "ctrl+r", "escape", "s", "slash", "x")
        grid = app.screen.query_one(Grid)
        return grid.error, await grid.sheet.page(0, 9)

    assert drive(store, steps) == (None, [(2, "x"), (1, "x"), (0, "x")])


def test_a_fault_that_speaks_of_interrupts_is_told(store):
    error = typed(store, "SELECT interrupts FROM kernels", look=lambda app: app.screen.query_one(Grid).error)
    assert "interrupts" in error


def test_after_a_fault_there_is_no_row_to_copy_or_open(store):
    async def steps(app, pilot):
        await press(pilot, "7")
        for text in ("SELECT 1", "SELECT nothing"):
            app.screen.query_one(Editor).put(text)
            await press(pilot, "ctrl+r")
        await press(pilot, "escape", "y", "enter", "s")
        return app.screen.query_one(Grid).row, app.screen.copied()

    assert drive(store, steps) == (None, "")


def test_a_reload_leaves_the_keys_with_the_rows(store):
    async def steps(app, pilot):
        await press(pilot, "7", "ctrl+r", "escape", "r", "1")
        return app.screen.NAME

    assert drive(store, steps) == "runs"
