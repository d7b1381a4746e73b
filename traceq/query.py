"""The canned questions: reading the header of a query file, binding parameters, running it, and the trust line.

A query is one file `queries/<area>/<name>.sql`: a header of `-- key: value` lines and one SELECT. The name is unique.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from traceq.errors import Status, TraceqError
from traceq.resources import folder

T = TypeVar("T")
OWN_WORDS = "Invalid Input Error: "  # how DuckDB begins what a query's own error() says
RUNS = ("run", "a", "b")  # parameters that are labels of runs; a run may be called NULL
COMPARISON = "label"  # the parameter that picks the runs of one capture
Value = str | int | float | bool | None
HEADER = re.compile(r"-- ([a-z]+): (.*)")
PARAM = re.compile(r"(\w+) ([A-Z]+) = (.+?) -- (.+)")
COLUMN = re.compile(r"(\w+) ([A-Z]+)(?: (\w+))? -- (.+)")
CONVERT: dict[str, Callable[[str], Value]] = {
    "BIGINT": int,
    "INTEGER": int,
    "DOUBLE": float,
    "VARCHAR": str,
    "BOOLEAN": lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
}
KEYS = {"title", "what", "value", "needs", "layout", "param", "column", "chart", "order", "example"}
REQUIRED = ("title", "what", "value", "needs", "column", "order", "example")


@dataclass(frozen=True)
class Param:
    """A parameter of a query; `default` is None where the header says NULL."""

    name: str
    type: str
    default: Value
    meaning: str


@dataclass(frozen=True)
class Column:
    """A column of a result; `unit` is ns, bytes, count, percent, ratio or None."""

    name: str
    type: str
    unit: str | None = None
    meaning: str = ""

    @property
    def is_number(self) -> bool:
        """Whether values are written to the right: no text, truth value or nested type."""
        return self.type not in ("VARCHAR", "BOOLEAN") and not self.type.startswith(("STRUCT", "MAP"))


@dataclass(frozen=True)
class Query:
    """A query file: its header, and the text that DuckDB gets."""

    name: str
    area: str
    title: str
    what: str
    value: str
    needs: tuple[str, ...]
    layout: str
    params: tuple[Param, ...]
    columns: tuple[Column, ...]
    chart: str | None
    order: str
    examples: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class Result:
    """Rows in base units with what they mean; `trust` has, for each run, its checks and the sentences that matter."""

    query: str
    params: Mapping[str, Value]
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool = False
    layout: str = "table"
    trust: dict[str, dict[str, Any]] = field(default_factory=dict)


def names() -> list[str]:
    """The names of all queries, from the file names alone."""
    return sorted(path.stem for path in folder("queries").glob("*/*.sql"))


def load(name: str) -> Query:
    """The query of that name. Raises TraceqError (usage) with the nearest names when there is none."""
    found = list(folder("queries").glob(f"*/{name}.sql")) if re.fullmatch(r"\w+", name) else []
    if not found:
        near = difflib.get_close_matches(name, names(), n=3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise TraceqError(f"no query is called {name!r}{meant}", "traceq query --list shows them all", Status.USAGE)
    return parse(found[0])


@cache
def parse(path: Path) -> Query:
    """The query in a file. Raises TraceqError (internal) naming the line that breaks the header convention."""
    text = path.read_text("utf-8")
    entries = _header(path, text)
    values = {key: [v for k, v in entries if k == key] for key in KEYS}
    if missing := [key for key in REQUIRED if not values[key]]:
        raise _fault(path, f"the header lacks {', '.join(missing)}")
    return Query(
        name=path.stem,
        area=path.parent.name,
        title=values["title"][0],
        what=values["what"][0],
        value=values["value"][0],
        needs=tuple(re.split(r",\s*", values["needs"][0])),
        layout=next(iter(values["layout"]), "table"),
        params=tuple(_param(path, text) for text in values["param"]),
        columns=tuple(_column(path, text) for text in values["column"]),
        chart=next(iter(values["chart"]), None),
        order=values["order"][0],
        examples=tuple(values["example"]),
        sql=text,
    )


def run(
    con: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, Value | str], limit: int | None = None
) -> Result:
    """The rows of `query` with the parameters `given` (text is converted), at most `limit` of them.

    Raises TraceqError: usage for an unknown parameter, a bad value or an unknown run; failed when DuckDB refuses.
    """
    params = bind(query, given)
    runs = [str(params[name]) for name in RUNS if params.get(name) is not None]
    check_runs(con, runs)
    columns, rows, truncated = fetch(con, query.sql, params, limit)
    if params.get(COMPARISON) is not None:
        at = [c.name for c in columns].index("run")
        runs = list(dict.fromkeys(row[at] for row in rows))
    units = {c.name: c for c in query.columns}
    return Result(
        query.name,
        params,
        tuple(units.get(c.name, c) for c in columns),
        rows,
        truncated,
        query.layout,
        trust(con, runs),
    )


def fetch(
    con: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, Value], limit: int | None
) -> tuple[tuple[Column, ...], list[tuple[Any, ...]], bool]:
    """Columns, rows (at most `limit`) and whether there were more. Raises TraceqError (failed) with DuckDB's reason."""

    def work() -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
        cursor = con.execute(sql, dict(params)) if params else con.execute(sql)
        columns = tuple(Column(d[0], str(d[1])) for d in cursor.description or [])
        return columns, cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)

    try:
        columns, rows = _interruptible(con, work)
    except duckdb.Error as error:
        raise TraceqError(*explain(error)) from error
    return columns, rows[:limit], limit is not None and len(rows) > limit


def _interruptible(con: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """`work` in a thread of its own: DuckDB does not look at signals while it runs, this thread does."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        try:
            return done.result()
        except KeyboardInterrupt:
            con.interrupt()
            raise


def explain(error: duckdb.Error) -> tuple[str, str | None]:
    """DuckDB's complaint as one line, and its own suggestion, if it makes one, as the hint."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    hint = next((line for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))), None)
    if lines and re.search(r'column "?(run|rank)"?', lines[0]):
        hint = "run and rank are columns of the views; beside a table they come with: JOIN labels USING (trace_id)"
    if lines and isinstance(error, duckdb.InvalidInputException) and lines[0].startswith(OWN_WORDS):
        return lines[0].removeprefix(OWN_WORDS), "traceq query NAME --help says what each parameter takes"
    return lines[0] if lines else type(error).__name__, hint or "traceq schema shows the tables and columns"


def bind(query: Query, given: Mapping[str, Value | str]) -> dict[str, Value]:
    """Every declared parameter with its value. Raises TraceqError (usage) for unknown names and bad values."""
    known = {p.name: p for p in query.params}
    if unknown := [name for name in given if name not in known]:
        takes = ", ".join(known) or "none"
        raise TraceqError(
            f"query {query.name} has no parameter {unknown[0]!r}", f"its parameters: {takes}", Status.USAGE
        )
    return {p.name: _convert(p, given[p.name]) if p.name in given else p.default for p in query.params}


def trust(con: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The checks of each of `runs` (none given: of all) by name, with `notes` for what matters."""
    found: dict[str, dict[str, Any]] = {}
    asked: list[str | None] = [*dict.fromkeys(runs)] or [None]
    for run_label in asked:
        rows = fetch(con, load("trust").sql, {"run": run_label}, None)[1]
        for label, item, value, note in rows:
            entry = found.setdefault(label, {"notes": []})
            entry[item] = int(value) if value is not None and float(value).is_integer() else value
            entry["notes"] += [note] if note else []
    return found


def check_runs(con: duckdb.DuckDBPyConnection, asked: Sequence[str]) -> None:
    """Raise TraceqError (usage), with the nearest labels, unless there is a run of each label."""
    if not asked:
        return
    labels = [row[0] for row in fetch(con, load("runs").sql, {}, None)[1]]
    for label in asked:
        if label not in labels:
            near = difflib.get_close_matches(label, labels, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            here = ", ".join(labels[:10]) + (", …" if len(labels) > 10 else "")
            hint = f"runs here: {here} (traceq runs)" if here else "the store is empty: traceq ingest TRACE"
            raise TraceqError(f"no run is called {label!r}{meant}", hint, Status.USAGE)


def _convert(param: Param, value: Value | str) -> Value:
    if value is None or (value == "NULL" and param.name not in RUNS):
        return None
    try:
        converted = CONVERT[param.type](str(value))
        if isinstance(converted, int) and not -(2**63) <= converted < 2**63:
            raise ValueError
        return converted
    except (ValueError, KeyError, TypeError) as error:
        raise TraceqError(
            f"{param.name}={value!r} is no {param.type}", f"{param.name}: {param.meaning}", Status.USAGE
        ) from error


def unique(names: Sequence[str]) -> list[str]:
    """Names with a number behind those that came before: SQL allows twins, JSON keys and frames do not."""
    made: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in made:
            number += 1
            candidate = f"{name}_{number}"
        made.append(candidate)
    return made


def _header(path: Path, text: str) -> list[tuple[str, str]]:
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            break
        found = HEADER.fullmatch(line)
        if not found or found[1] not in KEYS:
            raise _fault(path, f"line {number} is no header line: {line}")
        entries.append((found[1], found[2].strip()))
    return entries


def _param(path: Path, text: str) -> Param:
    if not (found := PARAM.fullmatch(text)) or found[2] not in CONVERT:
        raise _fault(path, f"param is NAME TYPE = DEFAULT -- MEANING, not: {text}")
    bare = Param(found[1], found[2], None, found[4])
    default = None if found[3] == "NULL" else _convert(bare, found[3].strip("'"))
    return Param(bare.name, bare.type, default, bare.meaning)


def _column(path: Path, text: str) -> Column:
    if not (found := COLUMN.fullmatch(text)) or found[2] not in CONVERT:
        raise _fault(path, f"column is NAME TYPE [UNIT] -- MEANING, not: {text}")
    return Column(found[1], found[2], found[3], found[4])


def _fault(path: Path, what: str) -> TraceqError:
    return TraceqError(f"{path.parent.name}/{path.name}: {what}", status=Status.INTERNAL)


def all_queries() -> Iterable[Query]:
    """Every query, by area and name."""
    return [parse(path) for path in sorted(folder("queries").glob("*/*.sql"))]
