"""The generated pages of docs/: up to date, found out when they are not, every link good, every character shown."""

import html
import importlib.util
import posixpath
import re
import subprocess
import sys
from itertools import dropwhile

import pytest
from clirun import ROOT
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from traceq import query
from traceq.store import files

SCRIPT = ROOT / "docs" / "generate.py"
FENCED = re.compile(r"^(`{3,})\w*\n.*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")
NASTY = st.text(alphabet="\\`*_~<>|[]()&#;$-+=!.:1a ", min_size=1, max_size=25).map(lambda text: " ".join(text.split()))


def load():
    spec = importlib.util.spec_from_file_location("docs_generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate = load()


@pytest.fixture(scope="module")
def made():
    return generate.pages()


@pytest.fixture
def docs(tmp_path, monkeypatch, made):
    """A fresh docs/ that the script takes for the real one."""
    monkeypatch.setattr(generate, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(generate, "pages", lambda: made)
    (tmp_path / "docs").mkdir()
    assert generate.main([]) == 0
    return tmp_path / "docs"


def test_docs_are_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pages_are_the_same_each_time(made):
    assert generate.pages() == made


def change(page):
    page.write_text(page.read_text("utf-8") + "\n", "utf-8")


def remove(page):
    page.unlink()


def leave_over(page):
    page.with_name("gone.md").write_bytes(page.read_bytes())


@pytest.mark.parametrize("page", ["queries/gemm_share.md", "queries/README.md", "schema.md"])
@pytest.mark.parametrize(
    ("spoil", "name", "fault"),
    [(change, None, "out of date"), (remove, None, "missing"), (leave_over, "gone.md", "left over")],
)
def test_check_names_the_page_and_writing_mends_it(docs, capsys, page, spoil, name, fault):
    assert generate.main(["--check"]) == 0
    good = snapshot(docs)
    spoil(docs / page)
    spoiled = snapshot(docs)
    capsys.readouterr()

    assert generate.main(["--check"]) == 1
    told = capsys.readouterr().err.splitlines()
    at = (docs / page).with_name(name or page.rpartition("/")[2]).relative_to(docs.parent).as_posix()
    assert told[0].startswith(f"{at}: {fault}")
    assert told[1:] == ["hint: python docs/generate.py writes them"]
    assert snapshot(docs) == spoiled

    assert generate.main([]) == 0
    assert snapshot(docs) == good
    assert generate.main(["--check"]) == 0


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.md")}


def test_pages_written_by_hand_are_left_alone(docs):
    guide = docs / "guide.md"
    guide.write_text("# A guide\n", "utf-8")
    assert generate.main(["--check"]) == 0
    assert generate.main([]) == 0
    assert guide.exists()


def test_a_broken_header_is_one_line(monkeypatch, capsys, tmp_path):
    broken = tmp_path / "area" / "broken.sql"
    broken.parent.mkdir()
    broken.write_text("-- title: No more than that\nSELECT 1\n", "utf-8")
    monkeypatch.setattr(generate, "all_queries", lambda: [query.parse(broken)])
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.startswith("docs/generate.py: area/broken.sql: the header lacks what")


@pytest.mark.parametrize("asked", query.all_queries(), ids=lambda q: q.name)
def test_a_query_page_has_all_of_the_header(made, asked):
    text = shown(made[f"queries/{asked.name}.md"])
    for part in (asked.title, asked.what, asked.value, asked.order, asked.chart or "", *asked.examples):
        assert part in text
    for row in (*asked.params, *asked.columns):
        assert f"{row.name} {row.type} " in text
        assert row.meaning in text
    sql = " ".join(dropwhile(lambda line: line.startswith("--"), asked.sql.splitlines()))
    assert " ".join(sql.split()) in text
    assert f"({asked.name}.md)" in made["queries/README.md"]


def test_the_schema_page_has_every_column(made):
    text = shown(made["schema.md"])
    with files.empty_store() as con:
        rows = con.execute("SELECT column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal").fetchall()
    assert len(rows) > 100
    assert [
        row for row in rows if not re.search(rf"{row[0]} {re.escape(row[1])}( NOT NULL)? {re.escape(row[2])}", text)
    ] == []


def test_every_link_leads_somewhere(made):
    """Also holds the `needs` of the queries to tables that exist."""
    bad = []
    for name, text in made.items():
        for target in LINK.findall(FENCED.sub("", text)):
            path, _, anchor = target.partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            is_good = anchor in ("", *anchors(made[to])) if to in made else (ROOT / "docs" / to).exists() and not anchor
            if not is_good:
                bad.append(f"{name}: {target}")
    assert bad == []


def anchors(text):
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@given(NASTY.filter(bool))
@example("a_b and *c* and __d__ | <e> &lt; `f` [g](h) ~~i~~ $j$ k")
@example("- no list")
@example("1. no list")
@example("# no heading")
def test_markdown_shows_every_character(text):
    links = generate.Links([], "")
    assert shown(links.paragraph(text)) == text
    rows = [(links.prose(text), generate.code(text))]
    assert shown(generate.table(("a", "b"), rows)) == f"a b {text} {text}"
    assert shown(generate.fenced(text, "sql")) == text


def test_references_to_columns_become_links():
    relation = generate.Relation("runs", "table", "", (generate.Column("label", "VARCHAR", ""),))
    links = generate.Links([relation], "../schema.md")
    assert links.prose("as runs.label (runs.label), *not* runs.other") == (
        r"as [`runs.label`](../schema.md#runs) ([`runs.label`](../schema.md#runs)), \*not\* runs.other"
    )


def shown(text):
    """The words of a Markdown text as a reader sees them."""
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    rendered = re.sub(r"<!--.*?-->|</?(?:span|a|code|strong)\b[^>]*>", "", rendered)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", rendered)).split())
