"""The command line: what every verb prints, where, and with which status."""

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import made_traces
import polars as pl
import pytest
from clirun import (
    CASES,
    CONTROL,
    DEADLINE_S,
    DEMO,
    LONG,
    MARKUP,
    NS_UNIT,
    STYLE,
    assert_fails,
    cpu_seconds,
    environment,
    fill,
    finish,
    inside,
    labels,
    listing,
    on_terminal,
    rows,
    send,
    shared,
    start,
    trace,
    traceq,
    wait_until,
    write_big_trace,
)
from recorded import SLOW, slow
from rich.cells import cell_len

from traceq import query as queries
from traceq.cli import VERBS
from traceq.store.build import SCHEMA_VERSION
from traceq.version import __version__

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
MADE = CASES.parent / "made"
REQUIRED = {
    "gpu_gaps": ["-p", "gap_ns=1000"],
    "diff_categories": ["-p", "a=eager", "-p", "b=default"],
    "schema": ["-p", "table=kernels"],
}
NAMES = [
    "ordinary",
    "\x1b[31mred\x1b[0m",
    "line\nfeed\r\ttab",
    "bell\x07nul\x00del\x7f",
    "\x9b2Jcsi",
    "\u202egnp.exe",
    "é漢😀",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a store and everything that can be wrong with one or with a trace."""
    folder = tmp_path_factory.mktemp("place")
    fill(folder / "store.duckdb", (NS_UNIT, "one"), (MARKUP, "two"))
    shutil.copy(folder / "store.duckdb", folder / "newer.duckdb")
    with duckdb.connect(folder / "newer.duckdb") as con:
        con.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(SCHEMA_VERSION + 1)])
    shutil.copy(folder / "store.duckdb", folder / "older.duckdb")
    with duckdb.connect(folder / "older.duckdb") as con:
        con.execute("UPDATE meta SET value = '0' WHERE key = 'schema_version'")
    with duckdb.connect(folder / "other.duckdb") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    (folder / "text.duckdb").write_text("this is no database\n" * 1000)
    (folder / "empty.duckdb").touch()
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(1000))
    (folder / "png.json").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(1000))
    (folder / "a.sqlite").write_bytes(b"SQLite format 3\0" + bytes(4000))
    (folder / "a.zip").write_bytes(b"PK\x03\x04" + bytes(1000))
    (folder / "nothing.json").touch()
    (folder / "blank.json").write_text(" \n")
    (folder / "config.json").write_text('{"traceEvents_": [], "a": {"b": [1, 2]}}')
    (folder / "numbers.json").write_text("[1, 2, 3]")
    (folder / "broken.json").write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts"')
    (folder / "gzip.json.gz").write_bytes(gzip.compress(b"hello"))
    (folder / "no traces").mkdir()
    (folder / "no traces" / "README").write_text("hello")
    (folder / "only config").mkdir()
    (folder / "only config" / "config.json").write_text('{"a": 1}')
    shutil.copy(NS_UNIT, folder / "good.json")
    return folder


@pytest.fixture
def there(place, monkeypatch):
    """The same folder as the current one, and its store as the default; nothing in it changes."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("TRACEQ_STORE", "store.duckdb")
    monkeypatch.setenv("COLUMNS", "160")
    before = listing(place)
    yield place
    assert listing(place) == before


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A store that answers every question: with the demo's two runs, what they lack, and names of every kind."""

    def make(folder):
        (folder / "odd.json").write_text(trace(NAMES))
        (folder / "signs.json").write_text(json.dumps(made_traces.SIGNS))
        runs = [(DEMO / "eager.json.gz", "eager"), (DEMO / "default.json.gz", "default"), (LONG, "long")]
        runs += [(MADE / f"{name}.json", name) for name in ("memory", "copies", "causes", "uneven", "compiled")]
        runs += [(MADE / "train-default.capture.json", "train/default")]
        runs.append((folder / "signs.json", "signs"))
        fill(folder / "store.duckdb", *runs, (MARKUP, "markup"), (folder / "odd.json", "odd\x1b[7m\nrun"))

    return shared(tmp_path_factory, "full", make) / "store.duckdb"


# Command line, status, what standard error says. Nothing comes on standard output.
ERRORS = [
    (["nope"], 2, "No such command 'nope'\nhint: traceq --help"),
    (["--nope"], 2, "No such option"),
    (["ingest"], 2, "Missing argument 'PATH...'\nhint: traceq ingest --help"),
    (["ingest", "--nope", "good.json"], 2, "No such option '--nope'"),
    (["ingest", "good.json", "--step", "12"], 2, r"--step.*'12' is not a duration such as 12\.3ms"),
    (["ingest", "good.json", "--step", "31536000000s"], 2, "--step.*longer than a store can hold"),
    (["ingest", "good.json", "--step", "-3ms"], 2, "--step.*is not a duration"),
    (["ingest", "good.json", "--step", "0ms"], 2, "--step"),
    (["ingest", "good.json", "--format", "xml"], 2, "'xml' is not one of"),
    (["ingest", "no traces"], 3, "no traces: no .json"),
    (["ingest", "only config"], 3, "only config"),
    (["ingest", "good.json", "--store", "other.duckdb"], 4, "other.duckdb: a DuckDB file, but not a traceq store"),
    (["ingest", "good.json", "--store", "text.duckdb"], 4, "text.duckdb: not a store"),
    (["ingest", "good.json", "--store", "newer.duckdb"], 4, "newer.duckdb: written by a newer traceq"),
    (["ingest", "good.json", "--store", "older.duckdb"], 4, "older.duckdb: written by an older traceq"),
    (["ingest", "good.json", "--store", "no traces"], 4, "no traces: a store is a file"),
    (["ingest", "good.json", "--store", "nope/store.duckdb"], 4, "nope: cannot write there"),
    (["runs", "--nope"], 2, "No such option"),
    (["runs", "extra"], 2, "unexpected extra argument"),
    (
        ["runs", "--store", "nope.duckdb"],
        4,
        "no store at nope.duckdb\nhint: make one: traceq ingest .*--store nope.duckdb",
    ),
    (["runs", "--store", "other.duckdb"], 4, "other.duckdb: a DuckDB file, but not a traceq store\nhint: .*--store"),
    (["runs", "--store", "text.duckdb"], 4, "text.duckdb: not a store"),
    (["runs", "--store", "empty.duckdb"], 4, "empty.duckdb: "),
    (["runs", "--store", "no traces"], 4, "no traces: a store is a file"),
    (
        ["runs", "--store", "newer.duckdb"],
        4,
        rf"newer traceq \(schema {SCHEMA_VERSION + 1}.*\nhint: upgrade traceq-gpu",
    ),
    (["runs", "--store", "older.duckdb"], 4, "older traceq.*\nhint: ingest the traces again"),
    (["query"], 2, "which question.*\nhint: traceq query --list"),
    (["query", "gemm_shar"], 2, "no query is called 'gemm_shar'; did you mean gemm_share.*\nhint: traceq query --list"),
    (["query", "zzz"], 2, "no query is called 'zzz'\nhint: traceq query --list"),
    (["query", "../overview/runs"], 2, "no query is called"),
    (["query", "gemm_shar", "--help"], 2, "did you mean gemm_share"),
    (["query", "gemm_share", "--run", "on"], 2, "no run is called 'on'; did you mean 'one'\\?\nhint: runs here"),
    (["query", "gemm_share", "--run", "zzz"], 2, "no run is called 'zzz'\nhint: runs here: one, two"),
    (["query", "gemm_share", "-p", "run=zzz"], 2, "no run is called 'zzz'\nhint: runs here: one, two"),
    (["query", "diff_categories", "-p", "a=one", "-p", "b=three"], 2, "no run is called 'three'"),
    (["query", "gemm_share", "-p", "nope=1"], 2, "no parameter 'nope'\nhint: its parameters: run"),
    (["query", "runs", "--run", "one"], 2, "no parameter 'run'\nhint: its parameters: none"),
    (["query", "top_kernels", "-p", "top=many"], 2, "top='many' is no BIGINT\nhint: top: rows to show"),
    (["query", "top_kernels", "-p", "top=1.5"], 2, "top='1.5' is no BIGINT"),
    (["query", "top_kernels", "-p", "top=99999999999999999999"], 2, "top='99999999999999999999' is no BIGINT"),
    (["query", "top_kernels", "-p", "top"], 2, "-p takes NAME=VALUE, not 'top'"),
    (["query", "top_kernels", "--limit", "x"], 2, "'x' is not a valid integer"),
    (["query", "top_kernels", "--format", "xml"], 2, "'xml' is not one of"),
    (["query", "top_kernels", "-o", "nope/out.csv"], 2, "nope/out.csv: No such file or directory\nhint: -o"),
    (["query", "top_kernels", "-o", "no traces"], 2, "no traces: Is a directory"),
    (["query", "top_kernels", "--store", "nope.duckdb"], 4, "no store at nope.duckdb"),
    (["query", "top_kernels", "--store", "newer.duckdb"], 4, "newer traceq"),
    (["sql"], 2, "Missing argument"),
    (["sql", "SELECT 1", "SELECT 2"], 2, "unexpected extra argument"),
    (["sql", "SELECT 1; SELECT 2"], 2, "one statement at a time, not 2"),
    (["sql", ""], 2, "one statement at a time, not 0"),
    (["sql", "SELEC 1"], 1, 'syntax error at or near "SELEC"'),
    (["sql", "SELECT dur FROM kernels"], 1, '"dur" not found.*\nhint: Candidate bindings: "dur_ns"'),
    (["sql", "SELECT * FROM kernel"], 1, 'kernel does not exist.*\nhint: Did you mean "kernels"'),
    (["sql", "SELECT 'x'::INTEGER"], 1, "Could not convert string 'x'"),
    (["sql", "SELECT error('a\nb') FROM kernels"], 1, "a"),
    (["sql", "DELETE FROM meta"], 2, "only statements that read are run, not DELETE"),
    (["sql", "SELECT 1", "--store", "nope.duckdb"], 4, "no store at nope.duckdb\nhint: make one: traceq ingest"),
    (["sql", "SELECT 1", "--store", "other.duckdb"], 4, "not a traceq store"),
    (["sql", "SELECT 1", "--store", "newer.duckdb"], 4, "newer traceq"),
    (["schema", "nope"], 2, "no table or view is called 'nope'\nhint: traceq schema"),
    (["demo", "extra"], 2, "unexpected extra argument"),
]
# Files that are no traces: a row with `failed` on standard output, and the reason on standard error.
REFUSED = {
    "nope.json": "nope.json: No such file or directory",
    "no*such.json": r"no\*such.json: No such file or directory",
    "a.png": "a.png: not a torch.profiler trace: it is no JSON",
    "png.json": "png.json: not a torch.profiler trace: it is no JSON",
    "a.sqlite": "a.sqlite: not a trace but an SQLite database",
    "a.zip": "a.zip: not a trace but a ZIP archive\nhint: unpack it",
    "nothing.json": "nothing.json: the file is empty",
    "blank.json": "blank.json: not a torch.profiler trace: it is empty",
    "config.json": "config.json: not a torch.profiler trace: it has no traceEvents list",
    "numbers.json": "numbers.json: not a torch.profiler trace",
    "gzip.json.gz": "gzip.json.gz: not a torch.profiler trace: it is no JSON",
    "store.duckdb": "store.duckdb: not a trace but a DuckDB file",
    "no\nsuch\x1b[31m.json": r"no\\x0asuch\\x1b\[31m.json: No such file or directory",
}
# Command line, what standard output holds, what standard error holds.
SUCCEEDS = [
    ([], r"Usage: traceq .*Commands:\n.*ingest", "^$"),
    (["--help"], r"Usage: traceq .*Examples:\n.*Exit status: 0 fine", "^$"),
    (["--version"], f"^traceq {re.escape(__version__)}\n$", "^$"),
    (["runs"], r"^run  .*\none  .*\ntwo  .*\n$", "trust: one: "),
    (["runs", "-q"], r"^run  ", "^$"),
    (["query", "top_kernels", "--run", "one"], "ampere_sgemm_128x64_tn +gemm +cublas +1 +13.500 µs", "trust: one: "),
    (["query", "top_kernels", "--run", "one", "-p", "top=1", "-q"], "ampere_sgemm", "^$"),
    (["query", "gemm_share", "-p", "run=one", "-q"], r"one .*cublas .*13\.500 µs +90\.0 %", "^$"),
    (["query", "--list"], r"gemm_share +kernels +GPU time in matrix products", "^$"),
    (["query", "--check"], "^$", r"traceq: \d+ queries checked, 0 faults"),
    (["sql", "SELECT count(*) AS n FROM kernels", "-q"], r"^n\n─\n9\n$", "^$"),
    (["sql", "SELECT 1 AS a WHERE false", "-q"], r"^a\n─\n$", "^$"),
    (["schema"], r"\ngpu_activities .*\n", "^$"),
    (["schema", "kernels"], r"dur_ns", "^$"),
]


def ids(table):
    return [re.sub(r"[^\w.-]+", " ", " ".join(argv)) or "nothing" for argv, *_ in table]


@pytest.mark.parametrize(("argv", "status", "says"), ERRORS, ids=ids(ERRORS))
def test_errors(there, argv, status, says):
    done = inside(*argv)
    assert_fails(done, status, says)
    assert done.out == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_trace_is_refused(there, name):
    done = inside("ingest", name, "--store", "new.duckdb")
    assert_fails(done, 3, f"^traceq: error: {REFUSED[name]}")
    assert re.search(r"\bfailed\b", done.out)


@pytest.mark.parametrize(("argv", "out", "err"), SUCCEEDS, ids=ids(SUCCEEDS))
def test_success(there, argv, out, err):
    done = inside(*argv)
    assert done.status == 0, done
    assert re.search(out, done.out, re.S), done.out
    assert re.search(err, done.err), done.err


PROCESSES = [
    (["--version"], 0),
    (["runs"], 0),
    (["sql", "SELEC 1"], 1),
    (["query", "gemm_shar"], 2),
    (["ingest", "a.zip", "--store", "new.duckdb"], 3),
    (["runs", "--store", "newer.duckdb"], 4),
]


@pytest.mark.parametrize(("argv", "status"), PROCESSES, ids=ids(PROCESSES))
def test_a_process_of_its_own_gives_the_same(there, argv, status):
    done = traceq(*argv, cwd=there, env={"TRACEQ_STORE": "store.duckdb", "COLUMNS": "160"})
    assert done == inside(*argv)
    assert done.status == status


def test_no_store_where_the_default_is(tmp_path):
    for argv in (["runs"], ["query", "summary"], ["sql", "SELECT 1"]):
        assert_fails(
            traceq(*argv, cwd=tmp_path), 4, "no store at traceq.duckdb\nhint: make one: traceq ingest TRACE.json.gz,"
        )
    assert listing(tmp_path) == {}


def test_the_store_is_the_option_else_the_variable_else_the_default(place, tmp_path, monkeypatch):
    for name, label in (("traceq.duckdb", "default"), ("variable.duckdb", "variable"), ("option.duckdb", "option")):
        shutil.copy(place / "store.duckdb", tmp_path / name)
        with duckdb.connect(tmp_path / name) as con:
            con.execute("UPDATE runs SET label = ? WHERE run_id = 1", [label])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    assert "default" in inside("runs").out
    monkeypatch.setenv("TRACEQ_STORE", "variable.duckdb")
    assert "variable" in inside("runs").out
    assert "option" in inside("runs", "--store", "option.duckdb").out


def test_some_inputs_fail_and_the_others_come_in(place, tmp_path):
    store = tmp_path / "store.duckdb"
    done = traceq("ingest", NS_UNIT, "a.zip", MARKUP, "nope.json", "--store", store, "-q", cwd=place)
    assert done.status == 6
    assert re.findall(r"ingested|failed", done.out) == ["ingested", "failed", "ingested", "failed"]
    assert re.fullmatch(r"(traceq: error: [^\n]+\nhint: [^\n]+\n){2}", done.err)
    assert labels(store) == ["input", "input-2"]


def test_some_inputs_fail_and_the_others_were_there(place, tmp_path):
    store = fill(tmp_path / "store.duckdb", (NS_UNIT, "one"))
    done = traceq("ingest", NS_UNIT, "a.zip", "--store", store, "--json", cwd=place)
    assert done.status == 6
    assert [r["result"] for r in json.loads(done.out)["rows"]] == ["known", "failed"]


def test_a_broken_trace_is_salvaged_or_with_strict_refused(place, tmp_path):
    store = tmp_path / "store.duckdb"
    damaged = CASES / "hand-01-truncated-object" / "input.json"
    done = traceq("ingest", damaged, "--strict", "--store", store)
    assert_fails(done, 3, "truncated.*10 whole events.*\nhint: leave --strict out")
    assert not store.exists()
    done = traceq("ingest", damaged, "--store", store)
    assert done.status == 0
    assert re.search("truncated.*10 whole events", done.err)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_trace_from_standard_input(tmp_path, pack):
    store = tmp_path / "store.duckdb"
    text = pack(NS_UNIT.read_bytes())
    for result in ("ingested", "known"):
        done = traceq("ingest", "-", "--store", store, "--json", stdin=text)
        assert done.status == 0, done
        assert [(r["path"], r["result"], r["run"]) for r in json.loads(done.out)["rows"]] == [("-", result, "stdin")]
    assert rows(store, "sql", "SELECT sum(dur_ns)::BIGINT AS ns FROM kernels") == [{"ns": 15000}]


def test_nothing_on_standard_input(tmp_path):
    store = tmp_path / "store.duckdb"
    assert_fails(
        traceq("ingest", "-", "--store", store, stdin=b""), 3, "^traceq: error: standard input: the file is empty"
    )
    assert listing(tmp_path) == {}


def test_standard_input_is_closed(tmp_path):
    shell = ["bash", "-c", 'exec "$0" -m traceq ingest - --store store.duckdb <&-', sys.executable]
    done = subprocess.run(shell, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 3, done
    assert "internal error" not in done.stderr
    assert listing(tmp_path) == {}


def test_folders_and_globs(tmp_path, monkeypatch):
    deep = tmp_path / "jobs" / "a" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs" / "one.pt.trace.json").write_text(trace(["one"]))
    (deep / "two.json.gz").write_bytes(gzip.compress(trace(["two"]).encode()))
    (deep / "three.txt").write_text(trace(["three"]))
    (deep / "config.json").write_text("{}")
    done = inside("ingest", "jobs", "--store", "folder.duckdb", "--json")
    assert done.status == 0, done
    assert {r["path"]: (r["result"], r["run"]) for r in json.loads(done.out)["rows"]} == {
        "jobs/one.pt.trace.json": ("ingested", "one"),
        "jobs/a/deep/two.json.gz": ("ingested", "two"),
        "jobs/a/deep/config.json": ("ignored", None),
    }
    assert "config.json: not a trace" in done.err
    done = inside("ingest", "jobs/**/t*.*", "--store", "glob.duckdb", "--json")
    assert done.status == 0, done
    assert [r["run"] for r in json.loads(done.out)["rows"]] == ["three.txt", "two"]
    done = inside("ingest", "jobs/a/deep/config.json", "jobs", "--store", "named.duckdb", "--json")
    assert done.status == 6, done


FILES = [
    "it's.json",
    'a "b" c.json',
    "br[1]*?.json",
    "new\nline\x1b[31m.json",
    "é 漢 😀.json",
    "a;b&c $HOME `d`.json",
    "50%.json",
]


@pytest.mark.parametrize("name", FILES)
def test_any_file_name(tmp_path, monkeypatch, name):
    (tmp_path / name).write_text(trace(["k"]))
    monkeypatch.chdir(tmp_path)
    run = name.removesuffix(".json")
    for argv in (
        ["ingest", name],
        ["query", "top_kernels", "--run", run],
        ["sql", "SELECT path, run FROM labels JOIN traces USING (trace_id)"],
        ["ingest", name],
    ):
        done = inside(*argv)
        assert done.status == 0, done
        assert not CONTROL.search(done.out + done.err)
    assert "already in the store" in done.err
    assert labels("traceq.duckdb") == [run]


def test_a_file_name_that_is_not_utf8(tmp_path):
    name = os.fsencode(tmp_path) + b"/caf\xe9.json"
    Path(os.fsdecode(name)).write_text(trace(["k"]))
    done = traceq("ingest", os.fsdecode(name), cwd=tmp_path)
    assert done.status == 0, done
    assert traceq("runs", cwd=tmp_path).status == 0


LABELS = [
    'it\'s "quoted"',
    "a b",
    "é 漢 😀",
    "[red]x[/red]",
    "-dash",
    "'; DROP TABLE runs; --",
    "new\nline\x1b[31m",
    "%s {x} $1",
]


@pytest.mark.parametrize("label", LABELS)
def test_any_label(tmp_path, monkeypatch, label):
    monkeypatch.chdir(tmp_path)
    for argv in (["ingest", NS_UNIT, f"--label={label}"], ["query", "summary", f"--run={label}"]):
        done = inside(*argv)
        assert done.status == 0, done
        assert not CONTROL.search(done.out + done.err)
    found = json.loads(inside("query", "top_kernels", f"--run={label}", "--json").out)["rows"]
    assert [row["run"] for row in found] == [label] * 2


def as_typed(line, cwd, **env):
    """Run a command that traceq printed, as a shell would."""
    words = shlex.split(line)
    assert words[0] == "traceq", line
    return traceq(*words[1:], cwd=cwd, env=env)


@pytest.mark.parametrize(
    ("label", "store"), [("plain", "s.duckdb"), ("two words", "s.duckdb"), ("it's", "a store.duckdb")]
)
def test_the_next_command_works_as_printed(tmp_path, label, store):
    done = traceq("ingest", NS_UNIT, "--label", label, "--store", store, cwd=tmp_path)
    found = re.search(r"^traceq: next: (.*)$", done.err, re.M)
    done = as_typed(found[1], tmp_path)
    assert done.status == 0, done
    assert label in done.out


def test_the_hint_where_there_is_no_store_works_as_printed(tmp_path):
    done = traceq("runs", "--store", "my store.duckdb", cwd=tmp_path)
    command = re.search(r"^hint: make one: (traceq ingest .*), or try: traceq demo$", done.err, re.M)[1]
    done = as_typed(command.replace("TRACE.json.gz", shlex.quote(str(NS_UNIT))), tmp_path)
    assert done.status == 0, done
    assert labels(tmp_path / "my store.duckdb") == ["input"]


@pytest.mark.parametrize(
    "argv",
    [["runs", "--store", "nope"], ["sql", "SELEC"], ["query", "nope"], ["ingest", "--nope"]],
    ids=["store", "sql", "query", "option"],
)
def test_debug_gives_the_traceback(place, argv):
    done = traceq(*argv, cwd=place, env={"TRACEQ_DEBUG": "1", "TRACEQ_STORE": "store.duckdb"})
    assert done.status != 0
    assert "Traceback" in done.err
    assert "TraceqError" in done.err


def test_debug_changes_nothing_else(place):
    env = {"TRACEQ_STORE": "store.duckdb"}
    assert traceq("runs", cwd=place, env={**env, "TRACEQ_DEBUG": "1"}) == traceq("runs", cwd=place, env=env)


# What appears beside the store when an ingest has come that far; `working`: it has computed for a while.
@pytest.mark.parametrize(
    ("moment", "is_first"),
    [(".scratch-*/lock", True), ("working", True), (".lock", True), (".scratch-*/0.stage", False), ("working", False)],
)
def test_interrupted(tmp_path, tmp_path_factory, moment, is_first):
    big = shared(tmp_path_factory, "interrupt", lambda to: write_big_trace(to / "big.json")) / "big.json"
    store = tmp_path / "store.duckdb"
    if not is_first:
        fill(store, (NS_UNIT, "old"))
    process = start("ingest", big, "--store", store, "--label", "new", env={"TMPDIR": tmp_path})
    if moment == "working":
        wait_until(lambda: cpu_seconds(process) > 0.8, process)
    else:
        wait_until(lambda: list(tmp_path.glob(store.name + moment)), process)
    send(process, signal.SIGINT)
    done = finish(process)
    assert done.status == 130, done
    assert done.err.strip() == "traceq: interrupted"
    assert done.out == ""
    had = [] if is_first else ["old"]
    if moment == ".lock" and store.exists():  # it may have been renamed by then
        assert labels(store) in (had, [*had, "new"])
    else:
        assert (labels(store) if store.exists() else []) == had
    assert set(listing(tmp_path)) <= {store.name, f"{store.name}.lock"}  # an empty lock that nobody holds does no harm


def test_interrupted_sql(place, tmp_path):
    process = start(
        "sql", "SELECT sum(a.range * b.range % 7) FROM range(1000000) AS a, range(1000000) AS b", "--store",
        place / "store.duckdb", env={"TMPDIR": tmp_path},
    )  # fmt: skip
    wait_until(lambda: cpu_seconds(process) > 1, process)
    send(process, signal.SIGINT)
    done = finish(process, timeout=10)
    assert done.status == 130, done
    assert done.err.strip() == "traceq: interrupted"
    assert listing(tmp_path) == {}


LARGE = "SELECT range AS a, 'x' AS b FROM range(300000)"
PIPED = [
    ["sql", LARGE, "--format", "csv"],
    ["sql", LARGE, "--format", "jsonl"],
    ["sql", LARGE, "--json"],
    ["sql", LARGE, "--format", "markdown"],
    ["sql", LARGE, "--format", "parquet"],
    ["query", "--list"],
    ["demo"],
]


@pytest.mark.parametrize("argv", PIPED, ids=ids([(argv,) for argv in PIPED]))
def test_nobody_reads_on(place, tmp_path, argv):
    """`traceq … | head -1`: no complaint, and not the status of a query that failed."""
    process = start(*argv, "-q" if argv[0] != "demo" else "--", cwd=place,
                    env={"TRACEQ_STORE": "store.duckdb", "TMPDIR": tmp_path})  # fmt: skip
    os.read(process.stdout.fileno(), 10)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(DEADLINE_S) in ((0, 141) if argv[0] != "demo" else (0, 1, 141)), err
    for complaint in ("Traceback", "Exception ignored", "error"):
        assert complaint not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("argv", [["-o", "/dev/full"], []], ids=["file", "standard output"])
def test_the_disk_is_full(place, argv):
    with open("/dev/full", "wb") as full_disk:
        process = start(
            "sql", LARGE, "--format", "csv", "-q", *argv, "--store", place / "store.duckdb", stdout=full_disk
        )
        done = finish(process)
    assert_fails(done, done.status, "No space left on device")
    assert done.status != 0
    assert "internal error" not in done.err


SAME = [
    ["query", "top_kernels"],
    ["query", "top_kernels", "--run", "markup", "--wide"],
    ["query", "summary"],
    ["query", "gemm_share", "--help"],
    ["query", "launch_gaps", "--json"],
    ["query", "launch_gaps", "--run", "eager", "--format", "csv"],
    ["sql", "SELECT 1 AS a, true AS b, NULL AS c, [1, 2] AS d, 'é漢😀' AS e"],
    ["schema", "kernels"],
    ["--help"],
]


@pytest.mark.parametrize("argv", SAME, ids=ids([(argv,) for argv in SAME]))
def test_a_pipe_gets_the_bytes_of_a_terminal_but_for_colour(full, argv):
    env = {"TRACEQ_STORE": full, "COLUMNS": "100"}
    piped, shown = traceq(*argv, env=env), on_terminal(*argv, env=env)
    assert (piped.status, shown.status) == (0, 0)
    assert STYLE.sub("", shown.out) == piped.out
    assert "\x1b" not in piped.out
    assert shown.err == piped.err


@pytest.mark.parametrize(
    "argv", [["query", "top_kernels"], ["query", "summary"], ["demo"]], ids=["table", "record", "demo"]
)
def test_no_color(full, tmp_path, argv):
    done = on_terminal(*argv, env={"TRACEQ_STORE": full, "TMPDIR": tmp_path, "NO_COLOR": "1"})
    assert done.status == 0, done
    codes = [int(code) for style in STYLE.findall(done.out) for code in re.findall(r"\d+", style)]
    assert not [code for code in codes if code >= 30]
    assert "\x1b" not in STYLE.sub("", done.out)


def test_parquet_is_not_for_a_terminal(full):
    assert_fails(
        on_terminal("query", "runs", "--format", "parquet", "--store", full), 2, "Parquet is not for a terminal"
    )


def strict(text):
    """A JSON value; refuses what JSON has not, and a key that comes twice."""

    def refuse(what):
        raise ValueError(what)

    def once(pairs):
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


JSON_TYPES = {"BIGINT": int, "INTEGER": int, "DOUBLE": (int, float), "VARCHAR": str, "BOOLEAN": bool}
CONTRACT = ["query", "params", "columns", "rows", "row_count", "truncated", "trust", "schema_version"]


@pytest.mark.parametrize("name", queries.names())
def test_json_of_every_query(full, name):
    done = inside("query", name, *REQUIRED.get(name, []), "--json", "--store", full)
    assert done.status == 0, done
    assert done.err == ""
    found = strict(done.out)
    assert list(found) == CONTRACT
    asked = queries.load(name)
    assert found["query"] == name
    assert list(found["params"]) == [p.name for p in asked.params]
    assert found["columns"] == [{"name": c.name, "type": c.type, "unit": c.unit} for c in asked.columns]
    assert found["row_count"] == len(found["rows"]) > 0
    assert found["truncated"] is False
    assert found["schema_version"] == SCHEMA_VERSION
    for run, entry in found["trust"].items():
        assert isinstance(run, str)
        assert all(isinstance(note, str) for note in entry["notes"])
    for row in found["rows"]:
        assert list(row) == [c.name for c in asked.columns]
        for column in asked.columns:
            value = row[column.name]
            assert value is None or isinstance(value, JSON_TYPES[column.type]), (column, value)


@pytest.mark.parametrize("name", queries.names() if SLOW else queries.names()[::4])
def test_a_limit_is_announced(full, name):
    asked = ["query", name, *REQUIRED.get(name, []), "--store", full]
    every = strict(inside(*asked, "--json").out)["row_count"]
    done = inside(*asked, "--json", "--limit", "1")
    found = strict(done.out)
    assert (found["row_count"], found["truncated"]) == (1, every > 1)
    assert ("--limit -1 shows all" in done.err) == (every > 1)
    done = inside(*asked, "--format", "csv", "--limit", str(every))
    assert "--limit" not in done.err


def test_a_table_of_many_rows_stops_and_says_so(full):
    done = inside("sql", "SELECT range AS a FROM range(51)", "--store", full)
    assert len(done.out.splitlines()) == 52
    assert "traceq: the first 50 rows are shown; --limit -1 shows all\n" in done.err
    done = inside("sql", "SELECT range AS a FROM range(51)", "--limit", "-1", "--store", full)
    assert len(done.out.splitlines()) == 53
    assert "--limit" not in done.err
    done = inside("sql", "SELECT range AS a FROM range(51)", "--format", "csv", "--store", full)
    assert len(done.out.splitlines()) == 52
    assert "--limit" not in done.err


@pytest.mark.parametrize(
    ("argv", "query"),
    [(["runs"], "runs"), (["sql", "SELECT 1 AS a"], "sql"), (["schema"], "tables"), (["schema", "kernels"], "schema")],
)
def test_json_of_other_verbs(full, argv, query):
    store = ["--store", full] if argv[0] != "schema" else []
    found = strict(inside(*argv, "--json", *store).out)
    assert list(found) == CONTRACT
    assert found["query"] == query
    assert found["row_count"] == len(found["rows"]) > 0


def test_json_of_ingest(tmp_path):
    done = traceq("ingest", NS_UNIT, "--json", "-q", cwd=tmp_path)
    found = strict(done.out)
    assert set(CONTRACT) <= set(found)
    (row,) = found["rows"]
    assert list(row) == [c["name"] for c in found["columns"]]
    expected = {"path": str(NS_UNIT), "result": "ingested", "run": "input", "events": 8, "lost": 0}
    assert expected.items() <= row.items()
    assert row["kept"] + row["skipped"] + row["lost"] == row["events"]
    assert row["size_bytes"] == NS_UNIT.stat().st_size
    assert done.err == ""


ROW = ["one", "ampere_sgemm_128x64_tn", "gemm", "cublas", 1, 13500, 90.0, 13500.0, 13500.0, 13500, 13500]
SECOND = ["one", ADD, "elementwise", "aten", 1, 1500, 10.0, 1500.0, 1500.0, 1500, 1500]
HEADER = "run,name,category,origin,kernels,total_ns,pct_of_kernel,mean_ns,median_ns,min_ns,max_ns"
GOLDEN = {
    "csv": f"{HEADER}\n{','.join(map(str, ROW))}\n" + f'one,"{ADD}",' + ",".join(map(str, SECOND[2:])) + "\n",
    "jsonl": "".join(json.dumps(dict(zip(HEADER.split(","), row, strict=True))) + "\n" for row in (ROW, SECOND)),
    "markdown": (
        "| run | name | category | origin | kernels | total | % of kernel | mean | median | min | max |\n"
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
        "| one | ampere_sgemm_128x64_tn | gemm | cublas | 1 | 13.500 µs | 90.0 % | 13.500 µs | 13.500 µs | 13.500 µs "
        "| 13.500 µs |\n"
        f"| one | {ADD} | elementwise | aten | 1 | 1.500 µs | 10.0 % | 1.500 µs | 1.500 µs | 1.500 µs | 1.500 µs |\n"
    ),
    "table": (
        "name                               category     origin  kernels      total\n"
        "──────────────────────────────────────────────────────────────────────────\n"
        "ampere_sgemm_128x64_tn             gemm         cublas        1  13.500 µs\n"
        "vectorized_elementwise…d<float> >  elementwise  aten          1   1.500 µs\n"
    ),
}


@pytest.mark.parametrize("format_", [*GOLDEN, "json", "parquet"])
def test_formats(place, tmp_path, format_):
    argv = ["query", "top_kernels", "--run", "one", "--format", format_, "--store", place / "store.duckdb"]
    env = {"COLUMNS": "74"}
    done = traceq(*argv, env=env)
    assert done.status == 0, done
    to_file = traceq(*argv, "-o", tmp_path / "out", env=env)
    assert (to_file.status, to_file.out, to_file.err) == (0, "", done.err)
    assert (tmp_path / "out").read_bytes() == done.raw
    if format_ in GOLDEN:
        assert done.out == GOLDEN[format_]
    elif format_ == "json":
        assert [list(row.values()) for row in strict(done.out)["rows"]] == [ROW, SECOND]
    else:
        frame = pl.read_parquet(tmp_path / "out")
        assert list(frame.schema.items()) == [
            (name, pl.Int64 if isinstance(v, int) else pl.Float64 if isinstance(v, float) else pl.String)
            for name, v in zip(HEADER.split(","), ROW, strict=True)
        ]
        assert frame.rows() == [tuple(ROW), tuple(SECOND)]


def test_json_is_short_for_format_json(place):
    argv = ["query", "gemm_share", "--store", place / "store.duckdb"]
    assert traceq(*argv, "--json") == traceq(*argv, "--format", "json")


EVERY_TYPE = """
SELECT 1.50::DECIMAL(10, 2) AS dec, 170141183460469231731687303715884105727::HUGEINT AS huge, sum(range) AS total,
    [1, NULL] AS list, {'a': 'nan'::DOUBLE} AS struct, MAP {1: 2} AS map, '\\xFF'::BLOB AS blob,
    '00000000-0000-0000-0000-000000000001'::UUID AS uuid,
    TIMESTAMP '2024-01-01 00:00:00' AS ts, DATE '2024-01-01' AS day,
    INTERVAL 1 DAY AS span, 'inf'::DOUBLE AS inf, 'nan'::FLOAT AS nan, true AS yes, NULL AS nothing,
    'a'::ENUM('a', 'b') AS enum, '{"a": 1}'::JSON AS doc, 'a,"b"|c' AS text
FROM range(3)
"""
AS_JSON = {
    "dec": 1.5,
    "huge": 170141183460469231731687303715884105727,
    "total": 3,
    "list": [1, None],
    "struct": {"a": None},
    "map": {"1": 2},
    "blob": "ff",
    "uuid": "00000000-0000-0000-0000-000000000001",
    "ts": "2024-01-01T00:00:00",
    "day": "2024-01-01",
    "span": "1 day, 0:00:00",
    "inf": None,
    "nan": None,
    "yes": True,
    "nothing": None,
    "enum": "a",
    "doc": '{"a": 1}',
    "text": 'a,"b"|c',
}


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "markdown", "parquet"])
def test_every_type_in_every_format(place, tmp_path, format_):
    out = tmp_path / "out"
    done = inside("sql", EVERY_TYPE, "--format", format_, "-q", "--wide", "-o", out, "--store", place / "store.duckdb")
    assert (done.status, done.out, done.err) == (0, "", "")
    if format_ == "json":
        assert strict(out.read_text())["rows"] == [AS_JSON]
    elif format_ == "jsonl":
        assert strict(out.read_text()) == AS_JSON
    elif format_ == "parquet":
        assert pl.read_parquet(out).columns == list(AS_JSON)
    else:
        assert "2024-01-01" in out.read_text()


@pytest.mark.parametrize("name", queries.names())
def test_help_of_a_query_says_what_its_header_says(name):
    done = inside("query", name, "--help")
    assert (done.status, done.err) == (0, "")
    asked = queries.load(name)
    for text in (asked.title, asked.what, asked.value, asked.order, *asked.examples):
        assert text in done.out
    for part in (*asked.params, *asked.columns):
        assert re.search(rf"^  {part.name} \({part.type}.*\): {re.escape(part.meaning)}$", done.out, re.M)


def test_list_and_check():
    done = traceq("query", "--list", "--json")
    assert [row["query"] for row in strict(done.out)["rows"]] == [q.name for q in queries.all_queries()]
    done = traceq("query", "--check")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"traceq: {len(queries.names())} queries checked, 0 faults\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "80")
    for option in ("--help", "-h"):
        done = inside(verb, option)
        assert (done.status, done.err) == (0, "")
        assert done.out.startswith(f"Usage: traceq {verb}")
        about, examples = re.split(r"\n  Examples?:\n", done.out)
        assert f"traceq {verb}" in examples
        assert max(map(cell_len, about.splitlines())) <= 80


WIDE = (
    "SELECT name, name AS b, dur_ns, start_ns, run, details, name AS c, grid_x FROM kernels ORDER BY length(name) DESC"
)


@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=slow)])
@pytest.mark.parametrize("name", [*queries.names(), "runs verb", "sql"])
def test_no_line_of_a_table_is_wider_than_the_terminal(full, monkeypatch, name, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    argv = ["query", name, *REQUIRED.get(name, [])]
    if name in ("runs verb", "sql"):
        argv = ["runs"] if name == "runs verb" else ["sql", WIDE]
    done = inside(*argv, "--store", full)
    assert done.status == 0, done
    assert max(map(cell_len, done.out.splitlines())) <= columns
    assert not CONTROL.search(done.out + done.err)


def test_columns_that_do_not_fit_are_named(full):
    done = traceq("query", "top_kernels", "--store", full, env={"COLUMNS": "80"})
    assert re.search(r"^traceq: \d+ columns do not fit: .*max_ns; --wide or --format csv shows all$", done.err, re.M)
    done = traceq("query", "top_kernels", "--run", "long", "--store", full, "--wide", env={"COLUMNS": "80"})
    assert "do not fit" not in done.err
    assert json.loads(LONG.read_text())["traceEvents"][-1]["name"][:400] in done.out


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_odd_names_are_shown_as_they_are(full, format_):
    argv = ["query", "top_kernels", "--wide", "--format", format_, "-p", "top=NULL", "--store", full]
    done = traceq(*argv, "--limit", "-1")
    assert not CONTROL.search(done.out + done.err)
    markup = [e["name"] for e in json.loads(MARKUP.read_text())["traceEvents"] if e.get("cat") == "kernel"]
    shown = ["\\x1b[31mred\\x1b[0m", "line\\x0afeed\\x0d\\x09tab", "del\\x7f", "\\x9b2Jcsi", "\\u202egnp.exe", "é漢😀"]
    for name in [*markup, *shown, "odd\\x1b[7m\\x0arun"]:
        assert name in done.out
    one = traceq("query", "launch_gaps", "--run", "odd\x1b[7m\nrun", "--store", full)
    assert one.status == 0, one
    assert not CONTROL.search(one.out + one.err)


def test_odd_names_are_data_in_json(full):
    found = rows(full, "query", "top_kernels", "--run", "odd\x1b[7m\nrun")
    assert {row["name"] for row in found} == set(NAMES)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, ASCII], ids=["C", "ascii"])
@pytest.mark.parametrize(
    "argv",
    [["query", "top_kernels", "--run", "odd\x1b[7m\nrun", "--wide"], ["sql", "FROM kernels SELECT name", "--json"]],
    ids=["table", "json"],
)
def test_a_locale_without_unicode(full, argv, env):
    done = traceq(*argv, env={"TRACEQ_STORE": full, **env})
    assert done.status == 0, done
    assert "é漢😀" in done.out


NOT_UTF8 = [
    ["sql", "SELECT 'caf\udce9'"],
    ["ingest", "good.json", "--label", "caf\udce9", "--store", "new.duckdb"],
    ["query", "gemm_share", "--run", "caf\udce9"],
    ["query", "caf\udce9"],
]


@pytest.mark.parametrize("argv", NOT_UTF8, ids=["sql", "label", "run", "query"])
def test_words_that_are_not_utf8(there, argv):
    done = inside(*argv)
    assert_fails(done, 2, "")


def test_the_demo(tmp_path):
    done = traceq("demo", cwd=tmp_path, env={"TMPDIR": tmp_path})
    assert done.status == 0, done
    text = done.out
    store = Path(re.search(r"^The store: (.+)$", text, re.M)[1])
    assert store.exists()
    assert store.is_relative_to(tmp_path)
    assert labels(store) == ["eager", "default"]
    for title in ("The runs in the store", "GPU time in matrix products", "Idle time by what the launch was doing",
                  "Kernel sizes in decades", "Two runs compared by category"):  # fmt: skip
        assert f"\n{title}\n" in text
    for pattern in (
        r"^eager +– +all +441 +23\.337 ms +31\.9 %",
        r"^default +– +all +441 +22\.865 ms +38\.3 %",
        r"^eager +– +0 +host +[\d,]+ +\d+\.\d+ ms",
        r"^eager +10–100 µs ",
        r"^all +24\.396 ms +19\.916 ms +-4\.480 ms +-18\.4 %.* step +3 +3 +eager +default",
    ):
        assert re.search(pattern, text, re.M), pattern
    assert "trust: eager: " in done.err
    found = as_typed(re.search(r"^Next: +(traceq .+)$", text, re.M)[1], tmp_path)
    assert found.status == 0, found
    assert len(found.out.splitlines()) > 5


def test_the_demo_fits_the_terminal_and_sets_nothing_in_the_folder(tmp_path):
    (tmp_path / "here").mkdir()
    done = traceq("demo", cwd=tmp_path / "here", env={"TMPDIR": tmp_path, "COLUMNS": "80"})
    assert done.status == 0, done
    tables = [line for line in done.out.splitlines() if "  " in line and "traceq-demo-" not in line]
    assert max(map(cell_len, tables)) <= 80
    assert listing(tmp_path / "here") == {}
