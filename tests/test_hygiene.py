"""What is imported when, and what every verb has."""

import importlib
import json
import subprocess
import sys

import click
import pytest
from clirun import DEMO, MARKUP, NS_UNIT, ROOT, environment, fill, shared, traceq

from traceq.cli import VERBS

HEAVY = {"duckdb", "polars", "textual", "torch", "rich", "nanoarrow", "isal"}
AFTER = "import json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})), file=sys.stderr)"
LIGHT = {
    "import": "import traceq; traceq.__version__; traceq.open",
    "--help": "from traceq.cli import run; assert run(['--help']) == 0",
    "--version": "from traceq.cli import run; assert run(['--version']) == 0",
    "no verb": "from traceq.cli import run; assert run([]) == 0",
}
# One use of each verb.
USES = {
    "capture": ["capture", "-c", "pass"],
    "ingest": ["ingest", MARKUP, "--store", "new.duckdb"],
    "runs": ["runs"],
    "query": ["query", "top_kernels"],
    "sql": ["sql", "SELECT 1"],
    "timeline": ["timeline", "--run", "one"],
    "diff": ["diff", "one", "eager"],
    "advise": ["advise", "eager"],
    "check": ["check", "eager", "--against", "eager", "--max", "kernels=+0"],
    "reclassify": ["reclassify"],
    "schema": ["schema"],
    "demo": ["demo"],
}
ENDS = {"capture": 1}  # there is nothing to record without torch
POISON = "import os, pathlib; pathlib.Path(os.environ['POISONED']).touch(); raise RuntimeError('imported')"


@pytest.mark.parametrize("code", LIGHT.values(), ids=LIGHT)
def test_the_first_word_imports_nothing_heavy(code):
    done = subprocess.run([sys.executable, "-c", f"{code}\n{AFTER}"], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "tui"])
def test_no_verb_but_tui_imports_torch_or_textual(verb, tmp_path, tmp_path_factory):
    """Modules of these names that come first on the path and tell on whoever imports them."""
    poison = tmp_path / "poison"
    poison.mkdir()
    for name in ("torch", "triton", "textual"):
        (poison / f"{name}.py").write_text(POISON)
    marker = tmp_path / "imported"
    runs = [(NS_UNIT, "one"), (DEMO / "eager.json.gz", "eager")]
    store = shared(tmp_path_factory, "hygiene", lambda to: fill(to / "store.duckdb", *runs)) / "store.duckdb"
    env = {"TRACEQ_STORE": store, "PYTHONPATH": f"{poison}:{ROOT}", "POISONED": marker, "TMPDIR": tmp_path}
    done = traceq(*USES[verb], cwd=tmp_path, env=env)
    assert done.status == ENDS.get(verb, 0), done
    assert not marker.exists()


def test_tui_wants_a_terminal_and_says_what_to_use_instead(tmp_path):
    done = traceq("tui", cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "needs a terminal" in done.err
    assert "hint: traceq query" in done.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads_and_says_what_it_does(verb):
    command = importlib.import_module(f"traceq.cli.{verb}").command
    assert isinstance(command, click.Command)
    assert command.name == verb
    assert command.help.strip()[0].isupper()
    assert f"traceq {verb}" in command.epilog
    assert VERBS[verb].endswith(".")
    assert len(VERBS[verb]) <= 70


def test_readme_names_every_verb():
    text = (ROOT / "README.md").read_text("utf-8")
    assert [verb for verb in VERBS if f"traceq {verb}" not in text] == []
    assert "pip install traceq\n" not in text
