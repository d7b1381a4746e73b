"""Rules of the user's own: files of them, the configuration folder, and applying them to a store."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from clirun import CASES, ROOT, assert_fails, environment, finish, inside, shared, start, traceq

from traceq.store import rules
from traceq.store.build import RULES

USERTRITON = ROOT / "fixtures" / "cases" / "hand-45-gemm-names" / "input.json"
OTHER = CASES / "hand-47-very-long-and-mangled-names" / "input.json"
ONE_RULE = '[[rule]]\npattern = "^ampere_sgemm"\ncategory = "conv"\norigin = "mine"\nnote = "why not"\n'


def categories(store, like):
    """(category, by name, source, origin, kernels) of the kernels whose name is like that."""
    with duckdb.connect(store, read_only=True) as con:
        return con.execute(
            "SELECT category, category_by_name, category_source, origin, count(*) FROM kernels WHERE name LIKE ? "
            "GROUP BY ALL ORDER BY ALL",
            [like],
        ).fetchall()


def users_rules(store):
    with duckdb.connect(store, read_only=True) as con:
        return con.execute("SELECT priority, pattern FROM rules WHERE source = 'user' ORDER BY 1").fetchall()


@pytest.fixture
def store(tmp_path, tmp_path_factory):
    """A private copy of a store with one run."""

    def make(folder):
        assert traceq("ingest", USERTRITON, "--store", folder / "store.duckdb", "-q").status == 0

    made = shared(tmp_path_factory, "usertriton", make)
    return Path(shutil.copy(made / "store.duckdb", tmp_path))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(ONE_RULE)
    return path


def test_reclassify_applies_a_file_and_keeps_everything_else(store, file):
    before = categories(store, "%")
    assert categories(store, "ampere_sgemm%")[0][:4] == ("gemm", "gemm", "name", "cublas")
    done = traceq("reclassify", "--rules", file, "--store", store, "--json")
    assert done.status == 0
    assert "changed their category or origin" in done.err
    assert categories(store, "ampere_sgemm%")[0][:4] == ("conv", "conv", "name", "mine")
    answer = json.loads(done.out)
    assert answer["query"] == "categories"
    assert "conv" in {row["category"] for row in answer["rows"]}
    assert sum(n for *_, n in categories(store, "%")) == sum(n for *_, n in before)
    assert users_rules(store) == [(1, "^ampere_sgemm")]


def test_without_a_file_the_store_keeps_the_users_rules(store, file):
    assert traceq("reclassify", "--rules", file, "--store", store, "-q").status == 0
    done = traceq("reclassify", "--store", store)
    assert (done.status, users_rules(store)) == (0, [(1, "^ampere_sgemm")])
    assert "traceq: 0 kernels changed" in done.err


def test_an_empty_file_takes_them_away(store, file, tmp_path):
    assert traceq("reclassify", "--rules", file, "--store", store, "-q").status == 0
    empty = tmp_path / "none.csv"
    empty.write_text("pattern,category\n")
    assert traceq("reclassify", "--rules", empty, "--store", store, "-q").status == 0
    assert users_rules(store) == []
    assert categories(store, "ampere_sgemm%")[0][:4] == ("gemm", "gemm", "name", "cublas")


def test_ingest_with_rules_applies_them_to_what_was_there_too(store, file):
    assert traceq("ingest", OTHER, "--rules", file, "--store", store, "-q").status == 0
    assert categories(store, "ampere_sgemm%")[0][:4] == ("conv", "conv", "name", "mine")


def test_ingest_with_rules_into_a_new_store(tmp_path, file):
    store = tmp_path / "new.duckdb"
    assert traceq("ingest", USERTRITON, "--rules", file, "--store", store, "-q").status == 0
    assert categories(store, "ampere_sgemm%")[0][:4] == ("conv", "conv", "name", "mine")
    assert users_rules(store) == [(1, "^ampere_sgemm")]


def test_ingest_of_a_known_file_with_rules_applies_them(store, file):
    assert traceq("ingest", USERTRITON, "--rules", file, "--store", store, "-q").status == 0
    assert categories(store, "ampere_sgemm%")[0][:4] == ("conv", "conv", "name", "mine")


def test_the_configuration_folder_is_read(store, tmp_path):
    folder = tmp_path / "config" / "traceq"
    folder.mkdir(parents=True)
    (folder / "rules.csv").write_text('pattern,category,priority,decisive\n"^ampere_sgemm",conv,7,true\n')
    env = {"XDG_CONFIG_HOME": tmp_path / "config"}
    assert finish(start("reclassify", "--store", store, "-q", env=env)).status == 0
    assert users_rules(store) == [(7, "^ampere_sgemm")]
    assert "XDG_CONFIG_HOME" in environment(**env)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.toml", '[[rule]]\ncategory = "gemm"\n', r"r\.toml: rule 1: it has no pattern"),
        ("r.toml", '[[rule]]\npattern = "a"\n', r"rule 1: it has no category"),
        (
            "r.toml",
            '[[rule]]\npattern = "a"\ncategory = "matmul"\n',
            r"rule 1: 'matmul' is no category; there are gemm,",
        ),
        (
            "r.toml",
            '[[rule]]\npattern = "("\ncategory = "gemm"\n',
            r"rule 1: '\(' is no regular expression .*missing \)",
        ),
        ("r.toml", '[[rule]]\npattern = "(?=a)"\ncategory = "gemm"\n', r"is no regular expression"),
        ("r.toml", '[[rule]]\npattern = "a"\ncategory = "gemm"\ncolour = 1\n', r"'colour' is no key of a rule"),
        (
            "r.toml",
            '[[rule]]\npattern = "a"\ncategory = "gemm"\npriority = 0\n',
            r"priority is '0', not a whole number",
        ),
        ("r.toml", '[[rule]]\npattern = "a"\ncategory = "gemm"\ndecisive = "maybe"\n', r"decisive is true or false"),
        ("r.toml", '[[rule]]\npattern = "a"\ncategory = "gemm"\napplies_to = "x"\n', r"applies_to is kernel or op"),
        ("r.toml", '[[rule]]\npattern = "a"\ncategory = "gemm"\npriority = 1000\n', r"1000 is that of a built-in rule"),
        (
            "r.toml",
            '[[rule]]\npattern = "a"\ncategory = "gemm"\npriority = 99999999999999999999\n',
            "from 1 to 2147483647",
        ),
        ("r.toml", '[[rule]]\npattern = "a"\ncategory = "gemm"\norigin = ["a"]\n', "its origin is .*not text"),
        ("r.toml", f"a = {'9' * 5000}\n", r"r\.toml: "),
        ("r.toml", f"a = {'[' * 5000}\n", r"r\.toml: "),
        ("r.csv", "a,gemm\n", r"r\.csv: its header names no pattern"),
        ("r.csv", "pattern,pattern,category\na,b,gemm\n", "its header has a name twice"),
        ("r.toml", "rule = 3\n", r"has \[\[rule\]\] tables and nothing else"),
        ("r.toml", "[[rule\n", r"r\.toml: .*line 1"),
        ("r.csv", "pattern,category\na,gemm,b\n", r"'more than the header names' is no key"),
        ("r.csv", "pattern,category,priority\na,gemm,2\nb,gemm,2\n", r"rule 2: its priority 2 is also that of rule 1"),
        ("r.csv", b"pattern,category\n\xff,gemm\n", r"r\.csv: .*utf-8"),
    ],
)
def test_a_wrong_file_is_refused_and_the_store_is_as_before(store, tmp_path, name, text, says):
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = store.read_bytes()
    for verb in (["reclassify"], ["ingest", OTHER]):
        done = traceq(*verb, "--rules", file, "--store", store)
        assert_fails(done, 2, says)
        assert store.read_bytes() == before


def test_a_missing_file_and_a_missing_store(store, file, tmp_path):
    assert_fails(traceq("reclassify", "--rules", tmp_path / "no.toml", "--store", store), 2, "No such file")
    assert_fails(traceq("reclassify", "--rules", file, "--store", tmp_path / "no.duckdb"), 4, "no store at")
    assert not (tmp_path / "no.duckdb").exists()


def test_rules_that_the_user_added_by_hand_are_kept_and_applied(store):
    with duckdb.connect(store) as con:
        con.execute("INSERT INTO rules (priority, pattern, category, origin) VALUES (5, '^ampere_sgemm', 'rnn', 'me')")
    assert traceq("reclassify", "--store", store, "-q").status == 0
    assert categories(store, "ampere_sgemm%")[0][:4] == ("rnn", "rnn", "name", "me")
    assert users_rules(store) == [(5, "^ampere_sgemm")]


def test_a_rule_that_is_not_decisive_leaves_it_to_the_operator(tmp_path):
    trace = tmp_path / "trace.json"
    call = {"ph": "X", "pid": 1, "tid": 1, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10, "dur": 2}
    trace.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "aten::mm", "ts": 5, "dur": 20, "args": {}},
        call | {"args": {"correlation": 1}},
        {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "mystery", "ts": 20, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": 1}},
    ]}))  # fmt: skip
    for decisive, found in ((True, ("sort", "sort", "name")), (False, ("gemm", "sort", "op"))):
        file = tmp_path / "rules.toml"
        file.write_text(f'[[rule]]\npattern = "mystery"\ncategory = "sort"\ndecisive = {str(decisive).lower()}\n')
        store = tmp_path / f"{decisive}.duckdb"
        assert traceq("ingest", trace, "--rules", file, "--store", store, "-q").status == 0
        assert categories(store, "mystery")[0][:3] == found
    file.write_text('[[rule]]\npattern = "::mm$"\ncategory = "moe"\napplies_to = "op"\n')
    assert traceq("reclassify", "--rules", file, "--store", store, "-q").status == 0
    assert categories(store, "mystery")[0][:3] == ("moe", "other", "op")


def test_the_categories_are_those_of_the_built_in_rules():
    with duckdb.connect() as con:
        used = {c for (c,) in con.execute("SELECT DISTINCT category FROM read_csv(?)", [str(RULES)]).fetchall()}
    assert used - {"other"} == set(rules.CATEGORIES) - {"other"}


def test_help_shows_a_file_that_works(tmp_path, store):
    shown = inside("reclassify", "--help").out
    text = shown[shown.index("[[rule]]") : shown.index("Rules are tried")]
    file = tmp_path / "shown.toml"
    file.write_text("\n".join(line.strip() for line in text.splitlines()))
    assert [r.pattern for r in rules.read(file)] == ["my_fused_attn"]
