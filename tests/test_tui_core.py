"""The app itself: screens by number, filter, sort, export, copy, reload, and stores that cannot be shown."""

import contextlib
import json
import os
import shutil
import time

import duckdb
import pytest
from clirun import traceq
from tuirun import drive, press, seen, settle

from traceq.store.files import connect
from traceq.tui.screens.question import Question
from traceq.tui.widgets.grid import Grid


@pytest.fixture
def store(golden_store, tmp_path, monkeypatch):
    """A copy of the golden store that is the default one of the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    shutil.copy(golden_store, "traceq.duckdb")
    return tmp_path.joinpath("traceq.duckdb").relative_to(tmp_path)


def test_it_opens_on_the_runs(store):
    async def steps(app, pilot):
        return seen(app), [row["run"] for row in app.runs]

    text, labels = drive(store, steps, size=(100, 50))
    assert "traceq.duckdb › Runs" in text
    assert all(label in text for label in labels)
    assert "$ traceq query runs_at_a_glance" in text


def test_enter_on_a_run_shows_its_overview(store):
    async def steps(app, pilot):
        await press(pilot, "home", "enter")
        return seen(app), app.runs[0]["run"]

    text, label = drive(store, steps)
    assert f"traceq.duckdb › {label} › Overview" in text


def test_numbers_change_screens_and_escape_returns_from_deeper_ones(store):
    async def steps(app, pilot):
        await press(pilot, "8", "enter")
        deep = type(app.screen)
        await press(pilot, "escape")
        return deep, app.screen.NAME

    assert drive(store, steps) == (Question, "queries")


def test_the_filter_narrows_as_one_types(store):
    async def steps(app, pilot):
        await press(pilot, "3")
        grid = app.screen.query_one(Grid)
        before = grid.count
        await press(pilot, "slash", *"gemm")
        return before, grid.count, seen(app)

    before, after, text = drive(store, steps, run="eager")
    assert 0 < after < before
    assert f"{after} of {before} rows" in text


def test_letters_typed_at_once_all_reach_the_filter(store):
    async def steps(app, pilot):
        await press(pilot, "3")
        for key in ("slash", *"gemm"):
            app.simulate_key(key)
        await settle(pilot)
        await settle(pilot)
        return type(app.screen).__name__, app.screen.query_one("#filter").value

    assert drive(store, steps, run="eager") == ("Kernels", "gemm")


def test_the_list_of_questions_is_filtered_and_gets_the_keys_back(store):
    async def steps(app, pilot):
        await press(pilot, "8", "slash", *"gemm_shapes", "enter", "enter")
        return app.screen.crumb

    assert drive(store, steps) == "gemm_shapes"


def test_escape_clears_the_filter(store):
    async def steps(app, pilot):
        await press(pilot, "3", "slash", *"gemm", "escape")
        grid = app.screen.query_one(Grid)
        return grid.count == grid.sheet.total, app.focused is grid

    assert drive(store, steps, run="eager") == (True, True)


def test_s_sorts_by_the_column_under_the_cursor(store):
    async def steps(app, pilot):
        await press(pilot, "3", "right", "right", "right", "s")
        grid = app.screen.query_one(Grid)
        found = [row[grid_column(grid, "kernels")] for row in await grid.sheet.page(0, 100)]
        await press(pilot, "s")
        return found, [row[grid_column(grid, "kernels")] for row in await grid.sheet.page(0, 100)]

    down, up = drive(store, steps, run="eager")
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)


def grid_column(grid, name):
    return [c.name for c in grid.sheet.columns].index(name)


def test_the_command_below_gives_the_rows_on_screen(store):
    async def steps(app, pilot):
        await press(pilot, "3")
        grid = app.screen.query_one(Grid)
        return app.screen.subject().command(), await grid.sheet.page(0, 1000)

    command, rows = drive(store, steps, run="eager")
    done = traceq(*command.split()[1:], "--json")
    assert [tuple(row.values()) for row in json.loads(done.out)["rows"]] == rows


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "md", "parquet"])
def test_e_writes_what_the_command_line_would(store, ending):
    async def steps(app, pilot):
        await press(pilot, "3", "e")
        app.screen.query_one("#file").value = f"out.{ending}"
        await press(pilot, "enter")

    drive(store, steps, run="eager")
    done = traceq("query", "top_kernels", "--run", "eager", "-p", "top=NULL", "-o", f"command.{ending}")
    assert done.status == 0
    with open(f"out.{ending}", "rb") as out, open(f"command.{ending}", "rb") as command:
        assert out.read() == command.read()


def test_what_is_typed_into_a_form_is_seen(store):
    async def steps(app, pilot):
        await press(pilot, "8", "slash", *"top_kernels", "enter", "enter", "shift+tab", *"73")
        return seen(app)

    line = next(line for line in drive(store, steps).splitlines() if line.split()[:1] == ["top"])
    assert line.split()[1] == "73"


def test_a_filter_that_leaves_no_question_says_so(store):
    async def steps(app, pilot):
        await press(pilot, "8", "slash", *"zzz", "enter", "enter")
        return seen(app)

    assert "no question has 'zzz': esc clears the filter" in drive(store, steps)


def test_export_to_the_home_of_nobody_is_told(store):
    async def steps(app, pilot):
        await press(pilot, "3", "e")
        app.screen.query_one("#file").value = "~no-such-user/kernels.csv"
        await press(pilot, "enter")
        return seen(app)

    assert "No such file or directory" in " ".join(drive(store, steps, size=(160, 50)).split())


def test_export_writes_over_nothing(store):
    async def steps(app, pilot):
        await press(pilot, "e")
        app.screen.query_one("#file").value = "traceq.duckdb"
        await press(pilot, "enter")
        app.screen.query_one("#file").value = "there.csv"
        await press(pilot, "enter")
        return seen(app)

    with open("there.csv", "w") as there:
        there.write("mine")
    assert "there.csv is there already" in drive(store, steps)
    with open("there.csv") as there:
        assert there.read() == "mine"


def test_y_copies_the_row_and_capital_y_the_command(store):
    async def steps(app, pilot):
        await press(pilot, "home", "y")
        row = app.clipboard
        await press(pilot, "Y")
        return row, app.clipboard

    row, command = drive(store, steps)
    assert "\tkineto\t" in row
    assert command == "traceq query runs_at_a_glance"


def test_a_store_that_changed_is_noticed_and_read_anew(store):
    """The old file must not be handed back: every handle is closed first."""

    async def steps(app, pilot):
        await press(pilot, "3", "4", "1")
        with contextlib.closing(duckdb.connect("other.duckdb")) as con:
            con.execute("ATTACH 'traceq.duckdb' AS old (READ_ONLY); COPY FROM DATABASE old TO other")
            con.execute("UPDATE runs SET label = 'renamed' WHERE label = 'eager'")
        os.replace("other.duckdb", "traceq.duckdb")
        deadline = time.monotonic() + 10
        while not app.has_changed and time.monotonic() < deadline:
            await pilot.pause(0.1)
        noticed = seen(app)
        await press(pilot, "r")
        return noticed, seen(app), app.has_changed

    noticed, after, has_changed = drive(store, steps, size=(100, 50))
    assert "the store changed: r reads it" in noticed
    assert "renamed" in after
    assert not has_changed


def test_a_missing_store_is_explained_and_found_after_r(golden_store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def steps(app, pilot):
        before = seen(app)
        shutil.copy(golden_store, "late.duckdb")
        await press(pilot, "r")
        return before, seen(app)

    before, after = drive(tmp_path / "late.duckdb", steps, size=(120, 50))
    assert "no store at" in before
    assert "traceq ingest TRACE.json.gz" in before
    assert "eager" in after


def test_a_newer_store_is_explained(store):
    with contextlib.closing(connect(store)) as con:
        con.execute("UPDATE meta SET value = '9999' WHERE key = 'schema_version'")

    async def steps(app, pilot):
        return seen(app)

    text = drive(store, steps, size=(120, 24))
    assert "written by a newer traceq" in text
    assert "upgrade traceq-gpu" in text


def test_a_file_that_is_no_store_is_explained(tmp_path):
    (tmp_path / "text.duckdb").write_text("hello " * 1000)

    async def steps(app, pilot):
        await press(pilot, *"12346")
        return seen(app)

    assert "not a store" in drive(tmp_path / "text.duckdb", steps, size=(120, 24))


def test_a_run_of_replays_that_were_not_recorded_is_shown_with_what_is_missing(store):
    async def steps(app, pilot):
        await press(pilot, "2")
        return seen(app)

    text = drive(store, steps, size=(120, 60), run="invisible")
    assert "invisible › Overview" in text
    assert "busy –" in text
    assert "What the numbers cannot see" in text


def test_help_names_the_keys_of_the_screen(store):
    async def steps(app, pilot):
        await press(pilot, "question_mark")
        return seen(app)

    text = drive(store, steps, size=(100, 40))
    assert "Every run in the store" in text
    assert "space  Mark" in text


def test_the_palette_opens_a_question(store):
    async def steps(app, pilot):
        await press(pilot, "ctrl+p", *"launch_queue")
        await settle(pilot)
        await pilot.pause(0.5)
        await press(pilot, "enter", "enter")
        return app.screen.crumb

    assert drive(store, steps) == "launch_queue"
