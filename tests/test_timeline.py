"""`traceq timeline`: the picture says what the rows of its query say."""

import json
import re

import pytest
from clirun import DEMO, ROOT, assert_fails, fill, inside, shared, traceq

RANKS = [ROOT / "fixtures" / "made" / f"ranks-{n}.json" for n in (0, 1)]
CAUSES = ROOT / "fixtures" / "made" / "causes.json"
REPLAY = ROOT / "fixtures" / "cases" / "hand-31-graph-replay" / "input.json"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    def make(folder):
        fill(folder / "store.duckdb", (DEMO / "eager.json.gz", "eager"), (CAUSES, "causes"), (REPLAY, "replay"))
        assert traceq("ingest", *RANKS, "--label", "ranks", "--store", folder / "store.duckdb", "-q").status == 0

    return shared(tmp_path_factory, "timeline", make) / "store.duckdb"


def picture(out):
    """{(title of the group, lane): its letters}, and {title: {letter: what}}."""
    lanes, legends, title = {}, {}, None
    for line in out.splitlines()[2:]:
        if legend := re.match(r"(GPU work, by category|GPU idle, by cause|operators|CUDA calls): (.*)", line):
            title = legend[1]
            legends[title] = dict(pair.split(" ", 1) for pair in legend[2].strip().split("  "))
        else:
            lanes[title, line[:24].strip()] = line[25:]
    return lanes, legends


def test_the_picture_is_the_rows(store, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    done = inside("timeline", "--run", "eager", "--step", "4", "--store", store)
    assert (done.status, done.out.splitlines()[0]) == (0, "eager: step 4, 68.066 ms")
    lanes, legends = picture(done.out)
    buckets = 160 - 25  # a lane has its name before it
    asked = ["query", "timeline", "--run", "eager", "-p", "step=4", "-p", f"buckets={buckets}"]
    answer = json.loads(inside(*asked, "--store", store, "--json").out)
    kinds = {"stream": "GPU work, by category", "idle": "GPU idle, by cause", "ops": "operators", "calls": "CUDA calls"}
    assert answer["rows"]
    for row in answer["rows"]:
        letters = lanes[kinds[row["kind"]], row["lane"][:24]]
        letter = letters[row["bucket"]]
        assert legends[kinds[row["kind"]]][letter.lower()] == row["what"]
        assert letter.isupper() == (row["covered_pct"] >= 50) or letter.isdigit()
    drawn = sum(letter != " " for letters in lanes.values() for letter in letters)
    assert drawn == len(answer["rows"])


def test_json_does_not_depend_on_the_terminal(store, monkeypatch):
    answers = []
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        answers.append(json.loads(inside("timeline", "--run", "eager", "--store", store, "--json").out))
    assert answers[0] == answers[1]
    assert answers[0]["params"]["buckets"] == 100


def test_without_a_step_the_first_good_one_and_without_steps_the_whole_trace(store):
    assert inside("timeline", "--run", "eager", "--store", store).out.startswith("eager: step 3, ")
    assert inside("timeline", "--run", "replay", "--store", store).out.startswith("replay: the whole trace, ")


def test_a_rank(store):
    done = inside("timeline", "--run", "ranks", "--rank", "1", "--store", store)
    assert done.out.startswith("ranks, rank 1: step ")


def test_it_is_as_wide_as_the_terminal(store, monkeypatch):
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = inside("timeline", "--run", "eager", "--store", store)
        assert max(map(len, done.out.splitlines())) <= columns


@pytest.mark.parametrize(
    ("argv", "status", "says"),
    [
        ([], 2, "which run? there are .*eager.*\nhint: traceq timeline --run LABEL"),
        (["--run", "nope"], 2, "nope"),
        (["--run", "eager", "--step", "99"], 1, "nothing to draw for step 99\nhint: its steps are 3, 4, 5"),
        (["--run", "eager", "--rank", "7"], 1, "nothing to draw for rank 7"),
        (["--run", "eager", "--step", "x"], 2, "'x' is not a valid integer"),
    ],
)
def test_errors(store, argv, status, says):
    assert_fails(inside("timeline", *argv, "--store", store), status, says.replace("?", r"\?"))
