"""The one way from screens to answers: a question by name, asked in a thread that can be interrupted.

Nothing here knows textual. A question is awaited; cancelling the await interrupts DuckDB. DuckDB hands back the old
file while one connection to it is open, so `close` ends every question and closes every handle before the store is
opened anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from traceq.errors import TraceqError

if TYPE_CHECKING:  # DuckDB is imported with the first question, after the first screen has been painted
    import duckdb

    from traceq.query import Column, Result, Value

T = TypeVar("T")
MOST_ROWS = 1000  # of an answer that is drawn whole; longer ones are sheets
PATIENCE_S = 0.05
AT_ONCE = 3  # questions; pages of a sheet never wait for them
MODEST = 10  # how much nicer than the screen the threads are that ask


class ClosedError(Exception):
    """The store was let go of while the question was asked; whoever asked will ask again."""


class Ask(Protocol):
    """Something that is asked of a store."""

    def command(self, store: Path | None = None) -> str:
        """The `traceq` command that answers the same; `store` where it is not the default one."""

    def some(self, con: duckdb.DuckDBPyConnection, limit: int | None) -> Result:
        """At most `limit` rows, without the trust line."""

    def whole(self, con: duckdb.DuckDBPyConnection) -> Result:
        """All rows and the trust line, as the command line has them: for export."""

    def keep(self, con: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
        """Make the temporary table `base` of all rows; its columns."""


@dataclass(frozen=True)
class Asked:
    """A canned question with its parameters: what a widget shows, what is exported, the command that gives the same."""

    query: str
    params: Mapping[str, Value]

    def command(self, store: Path | None = None) -> str:
        """The `traceq` command that answers the same; `store` where it is not the default one."""
        words = ["traceq", "query", self.query]
        if (run := self.params.get("run")) is not None:
            words += ["--run", str(run)]
        for name, value in self.params.items():
            if name != "run":
                words += ["-p", f"{name}={'NULL' if value is None else value}"]
        return _command(words, store)

    def some(self, con: duckdb.DuckDBPyConnection, limit: int | None) -> Result:
        """At most `limit` rows, without the trust line."""
        from traceq import query

        question = query.load(self.query)
        params = query.bind(question, self.params)
        _, rows, is_truncated = query.fetch(con, question.sql, params, limit)
        return query.Result(self.query, params, question.columns, rows, is_truncated, question.layout)

    def whole(self, con: duckdb.DuckDBPyConnection) -> Result:
        """All rows and the trust line, as the command line has them."""
        from traceq import query

        return query.run(con, query.load(self.query), self.params)

    def keep(self, con: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
        """Make the temporary table `base` of all rows."""
        from traceq import query

        question = query.load(self.query)
        _make_base(con, question.sql, query.bind(question, self.params))
        return question.columns


@dataclass(frozen=True)
class Statement:
    """SQL that a user typed; it reads this store and nothing else."""

    text: str

    def command(self, store: Path | None = None) -> str:
        """The `traceq` command that answers the same."""
        return _command(["traceq", "sql", self.text], store)

    def some(self, con: duckdb.DuckDBPyConnection, limit: int | None) -> Result:
        """At most `limit` rows."""
        from traceq import query

        self._check(con)
        columns, rows, is_truncated = query.fetch(con, self.text, {}, limit)
        return query.Result("sql", {}, columns, rows, is_truncated, "raw")

    def whole(self, con: duckdb.DuckDBPyConnection) -> Result:
        """All rows."""
        return self.some(con, None)

    def keep(self, con: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
        """Make the temporary table `base` of all rows; for SELECT, which EXPLAIN and PIVOT are not."""
        from traceq import query
        from traceq.store.lockdown import SHOW

        self._check(con)
        if SHOW.match(self.text):  # else the table that is made would be among those that are shown
            return Given(self.some(con, None), ("sql", self.text)).keep(con)
        _make_base(con, self.text, {})
        return query.fetch(con, "SELECT * FROM base LIMIT 0", {}, None)[0]

    def _check(self, con: duckdb.DuckDBPyConnection) -> None:
        import duckdb

        from traceq import query
        from traceq.store.lockdown import check_statement

        try:
            check_statement(con, self.text)
        except duckdb.Error as error:
            raise TraceqError(*query.explain(error)) from error


@dataclass(frozen=True)
class Given:
    """Rows that an analysis made, and the words of the command that makes them."""

    result: Result
    words: tuple[str, ...]

    def command(self, store: Path | None = None) -> str:
        """The `traceq` command that answers the same."""
        return _command(["traceq", *self.words], store)

    def some(self, con: duckdb.DuckDBPyConnection, limit: int | None) -> Result:
        """The rows."""
        return self.result

    def whole(self, con: duckdb.DuckDBPyConnection) -> Result:
        """The rows."""
        return self.result

    def keep(self, con: duckdb.DuckDBPyConnection) -> tuple[Column, ...]:
        """Make the temporary table `base` of the rows."""
        columns = ", ".join(f"{_named(c.name)} {c.type}" for c in self.result.columns)
        _execute(con, f"CREATE TEMP TABLE base ({columns})", None)
        if self.result.rows:
            con.executemany(
                f"INSERT INTO base VALUES ({', '.join('?' for _ in self.result.columns)})", self.result.rows
            )
        return self.result.columns


class Access:
    """The store at `path`, opened with the first question and read-only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._stack = contextlib.ExitStack()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._lines: set[Line] = set()
        self._is_closing = False
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._seen = self._stamp()

    async def answer(self, asked: Ask, limit: int | None = MOST_ROWS) -> Result:
        """At most `limit` rows of an answer, without its trust line. Raises TraceqError."""
        return await self._in_thread(lambda con: asked.some(con, limit))

    async def whole(self, asked: Ask) -> Result:
        """All rows with the trust line, as the command line has them: for export."""
        return await self._in_thread(asked.whole)

    async def work(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """What `work` makes of a connection, in a thread: for the analyses. Raises TraceqError."""
        return await self._in_thread(work)

    async def sheet(self, asked: Ask) -> Sheet:
        """All rows of an answer, kept by DuckDB, to be read in pages, sorted and filtered. Raises TraceqError."""
        sheet = Sheet(self, asked)
        try:
            sheet.columns, sheet.count = await sheet.use(lambda con: (asked.keep(con), _count(con, "base")))
        except BaseException:
            sheet.close()
            raise
        sheet.total = sheet.count
        return sheet

    def has_changed(self) -> bool:
        """Whether the file is another than when it was opened: written anew, gone, or come."""
        return self._stamp() != self._seen

    async def reopen(self) -> None:
        """Close every handle; the next question opens the file that is there now."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Interrupt what runs, wait for it to end, and let go of the file."""
        self._is_closing = True
        while not self._is_closed():
            time.sleep(PATIENCE_S)
        self._is_closing = False

    def _is_closed(self) -> bool:
        with self._lock:
            for line in list(self._lines):
                line.hang_up()
            self._lines = {line for line in self._lines if not line.is_closed}
            if not self._lines:
                self._root = None
                self._stack.close()
                self._seen = self._stamp()
            return not self._lines

    def connect(self) -> Line:
        """A connection on the store, known to `close`; whoever asks for it hangs up."""
        from traceq.store.lockdown import locked_down

        with self._lock:
            if self._is_closing:
                raise ClosedError
            if self._root is None:
                self._seen = self._stamp()
                self._root = self._stack.enter_context(locked_down(self.path))
            con = self._root.cursor()
            con.execute("USE store")
            line = Line(con)
            self._lines = {other for other in self._lines if not other.is_closed} | {line}
            return line

    async def _in_thread(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        question = Question()

        def whole() -> T:
            line = self.connect()
            try:
                return line.use(question, work)
            finally:
                line.hang_up()

        async with self._slots:
            return await question.wait(whole)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


class Line:
    """A connection that one question at a time uses, and that is closed once nobody does."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.is_closed = False
        self._con = con
        self._turn = threading.Lock()
        self._unwanted = threading.Event()

    def use(self, question: Question, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """Do `work` when it is its turn; in a worker thread."""
        with self._turn:
            if self.is_closed or self._unwanted.is_set():
                raise ClosedError
            try:
                return question.run(self._con, work)
            finally:
                if self._unwanted.is_set():
                    self._close()

    def hang_up(self) -> None:
        """Close the connection, or interrupt who uses it, who then closes it. Never waits."""
        self._unwanted.set()
        if not self._turn.acquire(blocking=False):
            self._con.interrupt()
            return
        try:
            self._close()
        finally:
            self._turn.release()

    def _close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._con.close()


class Question:
    """One piece of work on a connection, which `cancel` ends from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._con: duckdb.DuckDBPyConnection | None = None
        self._is_cancelled = False

    def run(self, con: duckdb.DuckDBPyConnection, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """Do `work`; raises ClosedError in place of whatever an interrupt made of it."""
        with self._lock:
            if self._is_cancelled:
                raise ClosedError
            self._con = con
        try:
            return work(con)
        except Exception as error:
            if self._is_cancelled or _is_interrupt(error):
                raise ClosedError from error
            raise
        finally:
            with self._lock:
                self._con = None

    async def wait(self, whole: Callable[[], T]) -> T:
        """The result of `whole`, done in a thread."""

        def modest() -> T:
            _be_modest()
            return whole()

        try:
            return await asyncio.to_thread(modest)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Interrupt the work if it runs, and see that it never begins if it does not."""
        with self._lock:
            self._is_cancelled = True
            if self._con is not None:
                self._con.interrupt()


class Sheet:
    """The rows of one answer in a temporary table of DuckDB, on a connection of its own."""

    columns: tuple[Column, ...] = ()
    count = 0
    total = 0

    def __init__(self, access: Access, asked: Ask) -> None:
        self.asked = asked
        self._access = access
        self._line: Line | None = None
        self._table = "base"

    async def page(self, first: int, size: int) -> list[tuple[Any, ...]]:
        """Rows `first` to `first + size` in the order and with the filter that `arrange` was given last."""
        return await self.use(
            lambda con: _execute(
                con, f"SELECT * FROM {self._table} WHERE rowid >= ? AND rowid < ? ORDER BY rowid", [first, first + size]
            ).fetchall()
        )

    async def arrange(self, order: str | None, is_descending: bool, words: str) -> int:
        """Sort by a column (None: as the question does) and keep rows with every word in some text; how many remain."""
        by = f"{_named(order)} {'DESC' if is_descending else 'ASC'} NULLS LAST, rowid" if order else "rowid"
        keep, values = _filter(self.columns, words)

        def work(con: duckdb.DuckDBPyConnection) -> int:
            if order is None and not values:
                self._table = "base"
            else:
                _execute(
                    con,
                    f"CREATE OR REPLACE TEMP TABLE arranged AS SELECT * FROM base WHERE {keep} ORDER BY {by}",
                    values,
                )
                self._table = "arranged"
            return _count(con, self._table)

        self.count = await self.use(work)
        return self.count

    async def use(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """`work` on the sheet's connection, in a thread, when it is its turn."""
        question = Question()

        def whole() -> T:
            if self._line is None:
                self._line = self._access.connect()
            return self._line.use(question, work)

        return await question.wait(whole)

    def close(self) -> None:
        """Drop the rows; a question that runs is interrupted."""
        if self._line is not None:
            self._line.hang_up()


def _be_modest() -> None:
    """The screen goes before the answers: on Linux each thread has its own niceness, and DuckDB's inherit it."""
    thread = threading.get_native_id()
    if sys.platform == "linux" and os.getpriority(os.PRIO_PROCESS, thread) < MODEST:
        os.setpriority(os.PRIO_PROCESS, thread, MODEST)


def _command(words: list[str], store: Path | None) -> str:
    return shlex.join([*words, *(["--store", str(store)] if store else [])])


def _make_base(con: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, Value]) -> None:
    _execute(con, f"CREATE TEMP TABLE base AS\n{text.rstrip().removesuffix(';')}", dict(params))


def _execute(con: duckdb.DuckDBPyConnection, text: str, values: Any) -> duckdb.DuckDBPyConnection:
    import duckdb

    from traceq import query

    try:
        return con.execute(text, values) if values else con.execute(text)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise TraceqError(*query.explain(error)) from error


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether DuckDB was stopped, by its type: a column may be called `interrupts`."""
    import duckdb

    while error is not None and not isinstance(error, duckdb.InterruptException):
        error = error.__cause__
    return error is not None


def _named(column: str) -> str:
    """A column's name in SQL, whatever is in it."""
    return '"{}"'.format(column.replace('"', '""'))


def _count(con: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(_execute(con, f"SELECT count(*) FROM {table}", None).fetchall()[0][0])


def _filter(columns: tuple[Column, ...], words: str) -> tuple[str, list[str]]:
    texts = [_named(c.name) for c in columns if c.type == "VARCHAR"]
    wanted = words.lower().split()
    if not texts or not wanted:
        return "true", []
    one = " OR ".join(f"contains(lower({text}), ?)" for text in texts)
    return " AND ".join(f"({one})" for _ in wanted), [word for word in wanted for _ in texts]


def explain(error: Exception, path: Path) -> tuple[str, str]:
    """An error as a sentence and what to do about it."""
    if isinstance(error, TraceqError):
        return error.message, error.hint or "r tries again"
    return f"{path.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", "r tries again"


def newest_store(folder: Path) -> Path | None:
    """The store written last in `folder`."""
    found = [path for path in folder.glob("*.duckdb") if path.is_file()]
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)
