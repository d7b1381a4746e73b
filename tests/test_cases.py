"""The example cases: every quantity of each `expected.md`, and what its words demand."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import cases
import pytest
from cases import Case
from recorded import SLOW, slow

from traceq import query as queries
from traceq.ingest.pipeline import Options

BIG = "hand-17-many-events"
PAIR = "hand-42-rank-missing-and-rank-twice"
BROKEN = {"hand-01-truncated-object": 10, "hand-15-truncated-gzip": 9}
TWO_GIB_IN_KIB = 2 << 20

# What the notes on a file or its numbers have to say, by the number of the case.
SAID = {
    "01": [r"truncated.*\b10 whole events", r"\bno steps\b"],
    "05": [r"\b2\b.*repaired"],
    "07": [r"\b3\b.*repaired"],
    "15": [r"truncated.*\b9 whole events"],
    "23": [r"\b1 .*time.*kernel"],
    "25": [r"\b1 .*clock skew"],
    "33": [r"no GPU rows.*\b2 launch calls.*permission.*another profiler.*library"],
    "40": [r"\b2 of 4 GPU activities.*no launch"],
    "50": [r"nsys export has no copies, memsets, NVTX ranges: not recorded"],
    "51": [r"\b2 names are missing"],
    "58": [r"\b1 row.*time.*KERNEL"],
    "71": [r"stacks.*shapes.*memory.*launch gaps are inflated"],
}
# Clean files: the reader has nothing to say about them, and drops nothing.
CLEAN = {
    *("02", "11", "13", "19", "20", "25", "26", "29", "31", "35"),
    *("37", "39", "40", "45", "47", "48", "50", "54", "56", "71", "73"),
}
# (statement, right answer) for what is demanded in words.
DEMANDS = {
    "05": [("SELECT count(*) FROM python_calls WHERE name IS NOT NULL", 2)],
    "09": [
        ("SELECT count(*) FROM gpu_activities WHERE regexp_matches(details::VARCHAR, '(?i)nan|inf|n/a')", 0),
        ("SELECT count(*) FROM gpu_activities WHERE occupancy_pct IS NOT NULL AND NOT isfinite(occupancy_pct)", 0),
    ],
    "31": [
        # Gaps inside a replay can be told from those between launches.
        ("SELECT list([a.launch_id = b.launch_id, g.dur_ns] ORDER BY g.start_ns) FROM gaps AS g "
         "JOIN gpu_activities AS a ON a.activity_id = g.before_id "
         "JOIN gpu_activities AS b ON b.activity_id = g.after_id",
         [[1, 1000], [1, 2000], [1, 1000], [0, 30000], [0, 30000], [1, 1000], [1, 2000], [1, 1000]]),
    ],
    "35": [
        ("SELECT list(pid ORDER BY pid) FROM ranges WHERE kind IN ('window', 'mark')", ["", "Spans", "Traces"]),
        ("SELECT list(pid || '/' || dur_ns) FROM overheads", ["-1/200000"]),
    ],
    "37": [("SELECT list(copy_kind || ' ' || bytes) FROM gpu_activities WHERE kind = 'memcpy'", ["HtoD 1048576"])],
    "39": [("SELECT count(*) FROM kernels WHERE step IS NULL", 0)],
    "40": [("SELECT list(step ORDER BY start_ns) FROM kernels", [None, None, 2, 2])],
    "48": [
        ("SELECT list(device) FROM devices", [2]),
        ("SELECT list(copy_kind) FROM gpu_activities WHERE kind = 'memcpy'", ["HtoD"]),
    ],
    "50": [("SELECT metadata->>'$.nsys_version' FROM traces", "unknown")],
    "51": [("SELECT count(*) FROM kernels WHERE name = '[name 888]'", 1)],
    "58": [("SELECT list(correlation_id ORDER BY start_ns) FROM kernels", [1, None, 3])],
    "71": [("SELECT count(*) FROM steps WHERE len(flags) > 0", 0)],
    "73": [
        ("SELECT list(DISTINCT pid) FROM api_calls", ["4000"]),
        ("SELECT count(*) FROM ranges WHERE kind = 'mark' AND pid = ''", 1),
        ("SELECT list(dur_ns ORDER BY start_ns) FROM kernels", [6000, 750, 1500]),
    ],
}  # fmt: skip
# What comes into the store of these is like any other's; that questions have answers is tried with TRACEQ_SLOW.
ODDLY_WRITTEN = {"02", "05", "07", "11", "13", "15", "20", "56"}
GEMM = re.compile(r"^\| \d+ \| yes \| `(.*)` \|$", re.M)


def number(name):
    return name.split("-")[1]


def open_case(name, folder):
    return Case(cases.inputs(name, folder).values(), folder / "s.duckdb")


def answer(case, quantity, tag, like):
    if quantity not in cases.ANSWERS:
        return "no function for this quantity"
    return cases.written(cases.answer(case, quantity, tag), like)


@pytest.mark.parametrize("name", [n for n in cases.names() if n != BIG])
def test_values(name, tmp_path):
    expected = cases.values(cases.expected(name))
    with open_case(name, tmp_path) as case:
        assert {key: answer(case, *key, like) for key, like in expected.items()} == expected
        check_words(number(name), case)
        if SLOW or number(name) not in ODDLY_WRITTEN:
            check_finite(case)


def check_words(nr, case):
    said = "\n".join(case.notes)
    assert [words for words in SAID.get(nr, []) if not re.search(words, said)] == [], said
    if nr in CLEAN:
        assert [(o.result, cases.remarks(o), o.lost) for o in case.outcomes] == [("ingested", [], 0)]
    for statement, right in DEMANDS.get(nr, []):
        assert case.one(statement) == right, statement


def check_finite(case):
    """Every canned question is answered, and never with NaN or infinity."""
    for name in queries.names():
        for row in case.ask(name):
            assert all(math.isfinite(value) for value in row.values() if isinstance(value, float)), (name, row)


@pytest.mark.parametrize("name", BROKEN)
def test_strict_refuses_what_is_cut(name, tmp_path):
    with Case(cases.inputs(name).values(), tmp_path / "s.duckdb", Options(strict=True)) as case:
        (outcome,) = case.outcomes
        assert (outcome.result, case.con) == ("failed", None)
        assert str(case.paths[0]) in outcome.error.message
        assert re.search(rf"truncated.*\b{BROKEN[name]}\b", outcome.error.message)


def test_the_marked_names_are_the_products(tmp_path):
    name = "hand-45-gemm-names"
    starts = GEMM.findall(cases.expected(name))
    with open_case(name, tmp_path) as case:
        found = case.column("SELECT name FROM kernels WHERE category = 'gemm' ORDER BY dur_ns")
    assert [name[: len(start)] for name, start in zip(found, starts, strict=True)] == starts


@pytest.mark.parametrize(("tag", "rank"), [("norank", None), ("rank3", 3), ("rank3-again", 3)])
def test_a_rank_on_its_own(tag, rank, tmp_path):
    with Case([cases.inputs(PAIR)[tag]], tmp_path / "s.duckdb") as case:
        assert case.column("SELECT rank FROM traces") == [rank]
        assert cases.remarks(case.outcomes[0]) == []


def test_two_files_that_claim_one_rank_stay_apart(tmp_path):
    first, second = (cases.inputs(PAIR)[tag] for tag in ("rank3", "rank3-again"))
    with Case([first, second], tmp_path / "s.duckdb") as case:
        (note,) = cases.remarks(case.outcomes[1])
        assert first.name in note
        assert "rank 3" in note
        assert case.outcomes[0].run != case.outcomes[1].run
        rows = case.con.execute("SELECT sum(dur_ns) FROM kernels GROUP BY run ORDER BY run").fetchall()
        assert rows == [(20000,), (30000,)]


def test_a_diff_of_different_step_counts_is_per_step(tmp_path):
    with open_case("hand-65-diff-different-step-counts", tmp_path) as case:
        rows = {row["category"]: row for row in case.diff()}
    assert {(row["per"], row["a_steps"], row["b_steps"]) for row in rows.values()} == {("step", 4, 2)}
    assert {name: (row["a_ns"], row["b_ns"]) for name, row in rows.items()} == {
        "all": (20000, 16000),
        "gemm": (10000, 10000),
        "elementwise": (10000, 0),
        "fused_pointwise": (0, 6000),
    }


def test_a_copy_of_a_file_is_known_as_the_same_file(tmp_path):
    (path,) = cases.inputs("hand-67-diff-of-a-file-with-itself").values()
    copy = tmp_path / "copy.json"
    copy.write_bytes(path.read_bytes())
    with Case([path, copy], tmp_path / "s.duckdb") as case:
        assert [(o.result, o.run) for o in case.outcomes] == [("ingested", "input"), ("known", "input")]
        assert {row["delta_ns"] for row in case.diff()} == {0}
        assert {math.copysign(1, row["delta_pct"]) for row in case.diff()} == {1}


def many_events(n):
    """What expected.md says follows from N."""
    m = -(-n // 4)
    quick = -(-(n - 1) // 4)  # gaps of 6 us, the others last 8 us
    return {
        "N": n,
        "kernels": n,
        "kernel_time_ns": 2000 * n + 2000 * m,
        "gpu_busy_ns": 2000 * n + 2000 * m,
        "gemm_kernels": m,
        "gemm_time_ns": 4000 * m,
        "gemm_share": f"{4000 * m / (2000 * n + 2000 * m):.6f}",
        "gaps": n - 1,
        "gap_sum_ns": 6000 * quick + 8000 * (n - 1 - quick),
        "gap_min_ns": 6000,
        "gap_max_ns": 8000,
        "launch_latency_all_ns": 5000,
        "python_function_events": 4 * n,
        "steps": 0,
    }


def test_what_follows_from_many_events():
    expected = {name: value for (name, _), value in cases.values(cases.expected(BIG)).items()}
    assert {name: str(value) for name, value in many_events(200000).items()} == expected


# Ingests argv[1] into argv[2] and prints the peak resident size in KiB.
INGEST = """
import resource, sys
from pathlib import Path
from traceq.ingest.pipeline import Options, ingest
(outcome,), _ = ingest(sys.argv[1:2], Path(sys.argv[2]), Options())
assert outcome.result == "ingested", outcome.error
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run(*words):
    root = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["input.json", "input.json.gz"])
@pytest.mark.parametrize("n", [20000, pytest.param(200000, marks=slow)])
def test_many_events(n, name, tmp_path):
    path, store = tmp_path / name, tmp_path / "s.duckdb"
    run(str(cases.FOLDER / BIG / "build_json.py"), str(n), str(path))
    script = tmp_path / "load.py"  # with -c DuckDB takes the session for an interactive one and draws a progress bar
    script.write_text(INGEST, "utf-8")
    peak_kib = int(run(str(script), str(path), str(store)))
    with Case([path], store) as case:
        expected = {name: str(value) for name, value in many_events(n).items() if name != "N"}
        assert {name: answer(case, name, None, like) for name, like in expected.items()} == expected
    assert peak_kib < TWO_GIB_IN_KIB
