"""Write docs/queries/ from the headers of the query files, and docs/schema.md from the comments of an empty store.

    python docs/generate.py            write every page, delete those of queries that are gone
    python docs/generate.py --check    write nothing; exit 1 and name the pages that are not up to date

The same input gives the same bytes. Only pages with the mark of this script in their first line are ever deleted, so
that guides written by hand can lie beside them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # describe this checkout, whichever traceq is installed

from traceq.errors import TraceqError
from traceq.query import Query, Value, all_queries
from traceq.show.text import escape
from traceq.store.build import SCHEMA_VERSION
from traceq.store.files import empty_store

DOCS = Path(__file__).resolve().parent
MARK = "<!-- Written by docs/generate.py"
SCHEMA = "schema.md"
INDEX = "queries/README.md"
RELATIONS = """
SELECT table_name AS name, 'table' AS kind, comment, table_oid AS place FROM duckdb_tables() WHERE NOT internal
UNION ALL
SELECT view_name, 'view', comment, view_oid FROM duckdb_views() WHERE NOT internal
ORDER BY place
"""
COLUMNS = """
SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() WHERE NOT internal AND table_name = ?
ORDER BY column_index
"""
# Of _ only those that could open or close emphasis, of & only those of an entity; table() sees to |.
BLOCK = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[-+#=]))")  # what a backslash keeps from being a list or a heading
REFERENCE = re.compile(r"\b(\w+)\.(\w+)\b")
INDEX_INTRO = """
Every number that traceq shows is the answer of one of these questions. Ask one with `traceq query NAME`, for one run
with `--run LABEL`, with its parameters as `-p NAME=VALUE`; `traceq query --list` shows this list, and
`traceq query NAME --help` the heart of a page. Each is one SQL file, to be read, changed and copied; the tables are
described in [the schema](../schema.md).

Times are nanoseconds (ns), sizes are bytes, and a share of 100 percent is 100.0. A value that the trace does not
record is NULL, never 0.
"""
SCHEMA_INTRO = """
A store is one DuckDB file. Query it with `traceq sql STATEMENT` or with any DuckDB client (1.5 or newer), and read the
columns of a table with `traceq schema TABLE`. [The canned questions](queries/README.md) are SQL over these tables. This
is schema version {version}, from [schema.sql](../traceq/store/schema.sql), [views.sql](../traceq/store/views.sql) and
[comments.sql](../traceq/store/comments.sql).

- Times are BIGINT nanoseconds. `start_ns` and `at_ns` count from the first stored event of their trace.
- Rows are numbered within their trace: join on `trace_id` and the id (`activity_id`, `call_id`, `op_id`, …).
- {labelled}
  have the columns `run` and `rank`, so that `WHERE run = 'eager'` works; to any other with a `trace_id` they come with
  `JOIN labels USING (trace_id)`.
- Not recorded is NULL, never 0. A column marked NOT NULL has a value in every row; a view declares no such thing.
"""


@dataclass(frozen=True)
class Column:
    """A column of a table or view; `type` says NOT NULL where it is so."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Relation:
    """A table or a view of the store."""

    name: str
    kind: str
    meaning: str
    columns: tuple[Column, ...]


class Links:
    """Turns `table.column` in a text into a link to the table; `schema` is the way to the schema page."""

    def __init__(self, relations: Sequence[Relation], schema: str) -> None:
        self.known = {(r.name, c.name) for r in relations for c in r.columns}
        self.schema = schema

    def table(self, name: str) -> str:
        """A link to a table."""
        return f"[{code(name)}]({self.schema}#{name})"

    def prose(self, text: str) -> str:
        """`text` so that Markdown shows it as it is, apart from the links."""
        parts, end = [], 0
        for found in REFERENCE.finditer(text):
            if found.groups() in self.known:
                parts += [escape(text[end : found.start()]), f"[{code(found[0])}]({self.schema}#{found[1]})"]
                end = found.end()
        return "".join([*parts, escape(text[end:])])

    def paragraph(self, text: str) -> str:
        """`prose` that begins no list or heading."""
        return BLOCK.sub(r"\1\\", self.prose(text))


def pages() -> dict[str, str]:
    """The text of every page by its path within docs/."""
    queries, relations = list(all_queries()), read_schema()
    made = {INDEX: index_page(queries, relations), SCHEMA: schema_page(relations, queries)}
    return made | {f"queries/{q.name}.md": query_page(q, relations) for q in queries}


def read_schema() -> list[Relation]:
    """The tables, then the views, in the order in which they are created."""
    with empty_store() as con:
        return [
            Relation(
                name,
                kind,
                comment or "",
                tuple(
                    Column(column, type_ if is_nullable else f"{type_} NOT NULL", text or "")
                    for column, type_, is_nullable, text in con.execute(COLUMNS, [name]).fetchall()
                ),
            )
            for name, kind, comment, _ in con.execute(RELATIONS).fetchall()
        ]


def query_page(query: Query, relations: Sequence[Relation]) -> str:
    """What a query asks, how to read the answer, what it takes and gives, and its SQL."""
    links, source = Links(relations, f"../{SCHEMA}"), f"queries/{query.area}/{query.name}.sql"
    facts = [
        f"- Needs {', '.join(map(links.table, query.needs))}.",
        f"- Rows come ordered by: {links.prose(query.order)}.",
        *([f"- Drawn as: {code(query.chart)}."] if query.chart else []),
    ]
    params = [(code(p.name), p.type, code(default(p.default)), links.prose(p.meaning)) for p in query.params]
    columns = [(code(c.name), c.type, c.unit or "", links.prose(c.meaning)) for c in query.columns]
    return page(
        source,
        f"# {escape(query.title)}",
        f"{code(query.name)} · area [{escape(query.area)}](README.md#{query.area}) · [source](../../{source}) · "
        "[all questions](README.md)",
        links.paragraph(query.what),
        f"**What it tells you.** {links.prose(query.value)}",
        fenced("\n".join(query.examples), "sh"),
        "\n".join(facts),
        "## Parameters",
        table(("parameter", "type", "default", "meaning"), params) if params else "None.",
        "## Columns",
        table(("column", "type", "unit", "meaning"), columns),
        "## SQL",
        *(["`$name` stands for a parameter."] if params else []),
        fenced(body(query.sql), "sql"),
    )


def index_page(queries: Sequence[Query], relations: Sequence[Relation]) -> str:
    """All queries by area."""
    links, blocks = Links(relations, f"../{SCHEMA}"), []
    for area, members in groupby(queries, lambda q: q.area):
        rows = [(f"[{code(q.name)}]({q.name}.md)", escape(q.title), links.prose(q.what)) for q in members]
        blocks += [f"## {escape(area)}", table(("query", "question", "answer"), rows)]
    return page("queries/", "# The canned questions", INDEX_INTRO.strip(), *blocks)


def schema_page(relations: Sequence[Relation], queries: Sequence[Query]) -> str:
    """All tables and views with their columns, and which queries need them."""
    links = Links(relations, "")
    blocks = [
        table(("name", "kind", "meaning"), [(links.table(r.name), r.kind, links.prose(r.meaning)) for r in relations])
    ]
    for relation in relations:
        users = [f"[{code(q.name)}](queries/{q.name}.md)" for q in queries if relation.name in q.needs]
        rows = [(code(c.name), escape(c.type), links.prose(c.meaning)) for c in relation.columns]
        blocks += [f"## {escape(relation.name)}", f"{relation.kind.capitalize()}: {links.prose(relation.meaning)}."]
        blocks += [f"Questions that need it: {', '.join(users)}."] if users else []
        blocks += [table(("column", "type", "meaning"), rows)]
    labelled = [links.table(r.name) for r in relations if {"run", "rank"} <= {c.name for c in r.columns}]
    intro = SCHEMA_INTRO.strip().format(version=SCHEMA_VERSION, labelled=", ".join(labelled))
    return page("traceq/store/*.sql and queries/", "# The schema", intro, *blocks)


def page(source: str, *blocks: str) -> str:
    """A page that says where it comes from."""
    return "\n\n".join([f"{MARK} from {source}: change that, not this page. -->", *blocks]) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the cells are Markdown in which | is still bare, in text as in code."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: str) -> str:
    """`text` as code, also where it has backticks."""
    fence = "`" * (1 + longest_run(text))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def fenced(text: str, language: str) -> str:
    """`text` as a block of code."""
    fence = "`" * max(3, 1 + longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def longest_run(text: str) -> int:
    """The length of the longest run of backticks in `text`."""
    return max(map(len, re.findall("`+", text)), default=0)


def default(value: Value) -> str:
    """A default as `-p` takes it; empty text as two quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return "NULL" if value is None else str(value) or "''"


def body(sql: str) -> str:
    """The text of a query without its header, which the page has told already."""
    lines = sql.splitlines()
    first = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return "\n".join(line.rstrip() for line in lines[first:]).strip()


def stale(made: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The pages that are not as they should be, each with what is wrong."""
    for name, text in sorted(made.items()):
        path = DOCS / name
        if not path.is_file():
            yield name, "missing"
        elif path.read_bytes() != text.encode():
            yield name, "out of date"
    yield from ((name, "left over: nothing makes this page any more") for name in left_over(made))


def left_over(made: dict[str, str]) -> list[str]:
    """Pages that this script wrote for something that is gone."""
    found = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    return [name for name in sorted(found.keys() - made.keys()) if found[name].read_bytes().startswith(MARK.encode())]


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the pages; the exit status."""
    parser = argparse.ArgumentParser(description="Write the query and schema pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the pages not up to date")
    is_check = parser.parse_args(argv).check
    try:
        made = pages()
    except TraceqError as error:
        print(f"docs/generate.py: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 1
    faults = list(stale(made))
    for name, fault in faults:
        if is_check:
            print(f"docs/{name}: {fault}", file=sys.stderr)
        elif name in made:
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_bytes(made[name].encode())
        else:
            (DOCS / name).unlink()
    if is_check and faults:
        print("hint: python docs/generate.py writes them", file=sys.stderr)
        return 1
    print(f"{len(made)} pages{'' if is_check else f', {len(faults)} written or deleted'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
