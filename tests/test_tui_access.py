"""From screens to answers: interrupting, closing, pages, what is refused; and the verb in a terminal of its own."""

import asyncio
import contextlib
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from clirun import DEADLINE_S, ROOT, traceq
from tuirun import drive, seen

from traceq.errors import TraceqError
from traceq.store.files import open_store
from traceq.tui.access import Access, Asked, ClosedError, Given, Statement, newest_store
from traceq.tui.view import PATIENCE_S
from traceq.tui.widgets.grid import PAGE

FIXTURES = ROOT / "fixtures"
SLOW = Statement("SELECT count(*) FROM range(1000000000) AS a, range(1000) AS b WHERE a.range * b.range % 7 = 3")
SOON_S = 3


def ask(store, work):
    """What the coroutine function `work` makes of an access, which is closed in the end."""

    async def whole():
        access = Access(store)
        try:
            return await work(access)
        finally:
            access.close()

    return asyncio.run(whole())


def test_an_answer_is_that_of_the_query(golden_store):
    found = ask(golden_store, lambda access: access.answer(Asked("categories", {"run": "eager"})))
    with contextlib.closing(open_store(golden_store)) as con:
        from traceq import query

        assert found.rows == query.run(con, query.load("categories"), {"run": "eager"}).rows


def test_a_question_nobody_waits_for_is_interrupted(golden_store):
    async def work(access):
        task = asyncio.create_task(access.answer(SLOW))
        await asyncio.sleep(0.5)
        task.cancel()
        before = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        access.close()
        return time.monotonic() - before

    assert ask(golden_store, work) < SOON_S


def test_closing_ends_what_runs_and_the_next_question_opens_anew(golden_store):
    async def work(access):
        task = asyncio.create_task(access.answer(SLOW))
        await asyncio.sleep(0.5)
        await access.reopen()
        with pytest.raises(ClosedError):
            await task
        return await access.answer(Asked("runs", {}))

    assert ask(golden_store, work).rows


def test_a_sheet_of_a_closed_store_is_closed(golden_store):
    async def work(access):
        sheet = await access.sheet(Asked("runs", {}))
        await access.reopen()
        with pytest.raises(ClosedError):
            await sheet.page(0, PAGE)

    ask(golden_store, work)


def test_pages_of_a_sheet_are_the_rows_in_order(golden_store):
    asked = Asked("kernel_launches", {"run": "eager", "top": None})

    async def work(access):
        sheet = await access.sheet(asked)
        pages = [await sheet.page(first, 500) for first in range(0, sheet.count, 500)]
        return [row for page in pages for row in page], (await access.answer(asked, None)).rows

    paged, whole = ask(golden_store, work)
    assert len(paged) > 2000
    assert paged == whole


def test_a_sheet_sorts_and_filters(golden_store):
    async def work(access):
        sheet = await access.sheet(Asked("kernel_launches", {"run": "eager", "top": None}))
        await sheet.arrange("dur_ns", True, "aten::mm")
        rows = await sheet.page(0, sheet.count)
        await sheet.arrange(None, False, "")
        names = [c.name for c in sheet.columns]
        return rows, names, sheet.count == sheet.total

    rows, names, is_whole_again = ask(golden_store, work)
    durations = [row[names.index("dur_ns")] for row in rows]
    assert durations == sorted(durations, reverse=True)
    assert {row[names.index("op")] for row in rows} == {"aten::mm"}
    assert is_whole_again


def test_rows_of_an_analysis_make_a_sheet(golden_store):
    async def work(access):
        result = await access.answer(Asked("categories", {"run": "eager"}))
        sheet = await access.sheet(Given(result, ("diff", "a", "b")))
        return result.rows, await sheet.page(0, PAGE)

    rows, page = ask(golden_store, work)
    assert page == rows


@pytest.mark.parametrize(
    "text", ["DELETE FROM runs", "CREATE TABLE t (i INT)", "SELECT * FROM read_csv('/etc/passwd')"]
)
def test_a_statement_can_only_read_the_store(golden_store, text):
    before = golden_store.read_bytes()
    with pytest.raises(TraceqError):
        ask(golden_store, lambda access: access.answer(Statement(text)))
    assert golden_store.read_bytes() == before


def test_the_command_of_a_question_survives_any_label():
    asked = Asked("top_kernels", {"run": "it's [/bold] $HOME", "top": None})
    assert shlex.split(asked.command()) == [
        "traceq",
        "query",
        "top_kernels",
        "--run",
        "it's [/bold] $HOME",
        "-p",
        "top=NULL",
    ]


def test_a_store_that_someone_writes_to_is_explained(golden_store, tmp_path):
    path = tmp_path / "held.duckdb"
    path.write_bytes(golden_store.read_bytes())
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"

        async def steps(app, pilot):
            return seen(app)

        text = drive(path, steps, size=(160, 24))
        holder.communicate("\n")
    assert "held for writing by process" in text
    assert "close it there" in text


def test_a_spinner_turns_while_a_question_takes_long_and_escape_ends_it(golden_store):
    """Time passes by sleeping: the pilot would wait for a processor that is never idle here."""

    async def steps(app, pilot):
        began = time.monotonic()
        app.screen.run_worker(app.screen.outcome(app.access.answer(SLOW)))
        await asyncio.sleep(0.05)
        is_spinning = "esc stops" in seen(app)
        is_early = is_spinning and time.monotonic() - began < PATIENCE_S
        async with asyncio.timeout(DEADLINE_S):
            while "esc stops" not in seen(app):
                await asyncio.sleep(0.05)
            app.simulate_key("escape")
            while "esc stops" in seen(app):
                await asyncio.sleep(0.05)
        return is_early

    assert not drive(golden_store, steps)


def test_keys_are_answered_while_a_question_takes_long(golden_store):
    async def steps(app, pilot):
        app.screen.run_worker(app.screen.outcome(app.access.answer(SLOW)))
        grid = app.screen.query_one("#runs")
        before = time.monotonic()
        for key in ("home", "down", "down"):
            app.simulate_key(key)
        while grid.cursor != 2:
            await asyncio.sleep(0.01)
        took = time.monotonic() - before
        app.workers.cancel_all()
        return took

    assert drive(golden_store, steps) < 1


def test_the_newest_store_of_a_folder_is_opened(tmp_path):
    assert newest_store(tmp_path) is None
    for age, name in ((200, "old.duckdb"), (100, "new.duckdb"), (0, "other.json")):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert newest_store(tmp_path) == tmp_path / "new.duckdb"


class Terminal:
    """`traceq tui` in a pseudo-terminal."""

    def __init__(self, *words, cwd):
        self.parent, child = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", "TMPDIR": str(cwd)}
        env = {k: v for k, v in env.items() if k != "TRACEQ_STORE"} | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "traceq", "tui", *map(str, words)],
            stdin=child,
            stdout=child,
            stderr=child,
            cwd=cwd,
            env=env,
        )
        os.close(child)

    def read_until(self, text, patience_s=30):
        seen = ""
        while text not in seen:
            assert select.select([self.parent], [], [], patience_s)[0], seen[-2000:]
            seen += os.read(self.parent, 65536).decode(errors="replace")

    def quit(self):
        os.write(self.parent, b"q")
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.parent], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.parent, 65536)
        os.close(self.parent)
        return self.process.wait(1)


def test_a_trace_is_read_into_a_store_that_is_gone_afterwards(tmp_path):
    terminal = Terminal(FIXTURES / "h200" / "overlap__eager.json.gz", cwd=tmp_path)
    terminal.read_until("overlap__eager")
    assert list(tmp_path.glob("traceq-tui-*"))
    assert terminal.quit() == 0
    assert list(tmp_path.iterdir()) == []


def test_commands_name_the_trace_and_not_the_store_that_is_gone_afterwards(tmp_path):
    shutil.copy(FIXTURES / "h200" / "overlap__eager.json.gz", tmp_path / "it's.json.gz")
    terminal = Terminal("it's.json.gz", cwd=tmp_path)
    terminal.read_until("it's.json.gz › ")
    terminal.read_until("""$ traceq ingest 'it'"'"'s.json.gz' && traceq query runs_at_a_glance""")
    assert terminal.quit() == 0


def test_what_is_no_trace_is_refused_in_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("no trace")
    terminal = Terminal("notes.txt", cwd=tmp_path)
    terminal.read_until("hint:")
    assert terminal.quit() == 3


def test_a_trace_that_is_refused_is_refused_once(tmp_path):
    (tmp_path / "notes.txt").write_text("no trace")
    done = traceq("tui", "notes.txt", cwd=tmp_path, env={"TEXTUAL_DRIVER": "none"})  # it never comes to a screen
    assert (done.status, done.err.count("traceq: error:")) == (3, 1)


def test_a_trace_that_is_not_there_is_no_store_to_be_made(tmp_path):
    done = traceq("tui", "gone.json.gz", cwd=tmp_path, env={"TEXTUAL_DRIVER": "none"})
    assert done.status == 3
    assert "gone.json.gz: No such file" in done.err


def test_a_store_may_be_named_as_everywhere_but_once(tmp_path):
    (tmp_path / "empty.db").touch()
    terminal = Terminal("--store", "empty.db", cwd=tmp_path)
    terminal.read_until("not a store")
    assert terminal.quit() == 0
    done = traceq("tui", "a.duckdb", "--store", "b.duckdb", cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "a.duckdb or b.duckdb: one of them is to be looked at" in done.err


def test_an_empty_file_named_as_a_store_is_explained_as_one(tmp_path):
    (tmp_path / "empty.duckdb").touch()
    terminal = Terminal("empty.duckdb", cwd=tmp_path)
    terminal.read_until("not a store")
    assert terminal.quit() == 0


def test_serve_says_what_to_install(tmp_path):
    done = traceq("tui", "--serve", cwd=tmp_path, env={"PYTHONPATH": f"{without_serve(tmp_path)}:{ROOT}"})
    assert done.status == 2
    assert "install traceq-gpu[web]" in done.err


def without_serve(tmp_path):
    """A folder on the path in which textual_serve cannot be imported."""
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "textual_serve.py").write_text("raise ImportError")
    return tmp_path / "none"
