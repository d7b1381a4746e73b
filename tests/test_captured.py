"""Records of captures: what `traceq ingest` makes of `X.capture.json`, beside a trace and alone."""

import gzip
import json
import shutil
from pathlib import Path

import duckdb
import pytest
from clirun import ROOT, traceq

from traceq.ingest.pipeline import Options, ingest

FIXTURES = ROOT / "fixtures"
GEMM = FIXTURES / "h200" / "gemm__maxauto.json.gz"
NO_FACTS = {"graph_breaks": [], "recompiles": [], "compile_phases": [], "kernel_sources": []}
RECORD = {
    "format": "traceq-capture",
    "version": 1,
    "command": "train.py",
    "mode": "default",
    "label": "train/default",
    "torch_version": "2.13.0",
    "gpu": "NVIDIA H200",
    "seed": 7,
    "trace": "x.json.gz",
    "timings": [{"kind": "pipelined", "block": 0, "steps": 10, "ns": 1_000_000}],
    "step_pipelined_ns": {"median": 100_000.4, "low": 99_000, "high": 101_000},
    "peak_memory_bytes": 4096,
    "facts": {
        "graph_breaks": [{"reason": "item", "file": "train.py", "line": 3, "function": "f", "count": 2}],
        "recompiles": [{"function": "f", "file": "train.py", "line": 1, "guard": "x == 1", "count": 1}],
        "compile_phases": [{"phase": "dynamo", "ns": 5, "count": 1}],
        "kernel_sources": [
            {"kernel": "k", "hash": "h", "language": "triton", "source": "def k", "registers": 9, "ops": ["aten.add"]}
        ],
    },
    "peaks": None,
    "status": 0,
    "notes": ["a note"],
}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.duckdb"


def write(folder, name="x", beside=GEMM, **changes):
    """A record in a folder, with its trace beside it; the path of the record."""
    folder.mkdir(exist_ok=True)
    if beside:
        shutil.copy(beside, folder / f"{name}.json.gz")
    path = folder / f"{name}.capture.json"
    path.write_text(json.dumps(RECORD | {"trace": f"{name}.json.gz" if beside else None} | changes), "utf-8")
    return path


def read(store, *paths, **options):
    """What became of each path."""
    outcomes, _ = ingest([str(p) for p in paths], store, Options(**options))
    assert [o.error for o in outcomes if o.error] == []
    return [(Path(o.path).name, o.result, o.run) for o in outcomes]


def ask(store, sql):
    with duckdb.connect(store, read_only=True) as con:
        return con.execute(sql).fetchall()


STEP = "SELECT label, step_pipelined_ns, step_pipelined_low_ns, step_pipelined_high_ns FROM runs ORDER BY run_id"


def test_a_trace_brings_its_record(store, tmp_path):
    write(tmp_path / "a")
    assert read(store, tmp_path / "a" / "x.json.gz") == [("x.json.gz", "ingested", "train/default")]
    assert ask(store, STEP) == [("train/default", 100_000, 99_000, 101_000)]
    assert ask(store, "SELECT command, mode, torch_version, gpu, peak_memory_bytes FROM runs") == [
        ("train.py", "default", "2.13.0", "NVIDIA H200", 4096)
    ]
    assert ask(store, "SELECT kind, block, steps, ns FROM timings") == [("pipelined", 0, 10, 1_000_000)]
    assert ask(store, "SELECT reason, file, line, function, count FROM graph_breaks") == [
        ("item", "train.py", 3, "f", 2)
    ]
    assert ask(store, "SELECT function, file, line, guard, count FROM recompiles") == [
        ("f", "train.py", 1, "x == 1", 1)
    ]
    assert ask(store, "SELECT phase, ns, count FROM compile_phases") == [("dynamo", 5, 1)]
    assert ask(store, "SELECT kernel, hash, registers, spills, ops FROM kernel_sources") == [
        ("k", "h", 9, None, '["aten.add"]')
    ]


def test_a_median_of_one_block_has_no_interval(store, tmp_path):
    write(tmp_path / "a", step_pipelined_ns={"median": 100_000})
    read(store, tmp_path / "a" / "x.json.gz")
    assert ask(store, STEP) == [("train/default", 100_000, None, None)]


def test_what_has_no_column_is_kept(store, tmp_path):
    write(tmp_path / "a", later="a field of a later version")
    read(store, tmp_path / "a" / "x.json.gz")
    ((details,),) = ask(store, "SELECT details FROM runs")
    assert json.loads(details) == {
        "seed": 7,
        "status": 0,
        "notes": ["a note"],
        "later": "a field of a later version",
    }


@pytest.mark.parametrize("facts", [None, {}, NO_FACTS | {"recompiles": None}])
def test_facts_that_were_not_recorded_are_not_zero(store, tmp_path, facts):
    read(store, write(tmp_path / "a", beside=None, facts=facts))
    done = traceq("query", "captures", "--store", store, "--json")
    (row,) = json.loads(done.out)["rows"]
    assert (row["graph_breaks"], row["recompiles"], row["compile_ns"]) == (None, None, None)


def test_facts_without_rows_are_zero(store, tmp_path):
    read(store, write(tmp_path / "a", beside=None, facts=NO_FACTS))
    done = traceq("query", "captures", "--store", store, "--json")
    (row,) = json.loads(done.out)["rows"]
    assert (row["graph_breaks"], row["recompiles"], row["compile_ns"]) == (0, 0, 0)


def test_a_run_that_is_called_as_a_comparison_is_none_of_it(store, tmp_path):
    twice = {"median": 2000.0, "low": 1990.0, "high": 2010.0}
    read(store, write(tmp_path / "a", beside=None, label="train/default", mode="default"))
    read(store, write(tmp_path / "b", beside=None, label="train", mode="eager", step_pipelined_ns=twice))
    read(store, write(tmp_path / "c", beside=None, label="other", mode="eager"))
    done = traceq("query", "captures", "-p", "label=train", "--store", store, "--json")
    assert {r["run"]: r["speedup"] for r in json.loads(done.out)["rows"]} == {"train/default": 1, "train": 1}


def test_a_folder_and_the_record_itself_bring_the_same(store, tmp_path):
    record = write(tmp_path / "a")
    assert read(store, record) == [("x.json.gz", "ingested", "train/default")]
    assert read(store, tmp_path / "a") == [("x.json.gz", "known", "train/default")]
    assert ask(store, "SELECT count(*) FROM timings") == [(1,)]


def test_a_record_without_a_trace_is_a_run(store, tmp_path):
    record = write(tmp_path / "a", beside=None, label="train/failed", facts=None, timings=[], status=1)
    assert read(store, record) == [("x.capture.json", "ingested", "train/failed")]
    assert read(store, record) == [("x.capture.json", "known", "train/failed")]
    assert ask(store, "SELECT count(*) FROM traces") == [(0,)]
    shown = traceq("runs", "--store", store, "--json")
    (row,) = json.loads(shown.out)["rows"]
    assert (row["traces"], row["kernels"], row["steps"], row["gpu"]) == (0, None, None, "NVIDIA H200")


def test_a_record_whose_trace_is_not_there_is_a_run(store, tmp_path):
    record = write(tmp_path / "a")
    (tmp_path / "a" / "x.json.gz").unlink()
    assert read(store, record) == [("x.capture.json", "ingested", "train/default")]


def test_a_record_that_comes_later_joins_its_trace(store, tmp_path):
    record = write(tmp_path / "a")
    kept = record.rename(tmp_path / "kept")
    read(store, tmp_path / "a", label="mine")
    shutil.copy(kept, record)
    assert read(store, tmp_path / "a") == [("x.json.gz", "known", "mine")]
    assert ask(store, STEP) == [("mine", 100_000, 99_000, 101_000)]
    assert ask(store, "SELECT count(*) FROM captures") == [(1,)]
    read(store, tmp_path / "a")
    assert ask(store, "SELECT count(*) FROM captures") == [(1,)]


def test_another_record_of_the_same_trace_is_left_out(store, tmp_path):
    write(tmp_path / "a")
    read(store, tmp_path / "a")
    write(tmp_path / "a", peak_memory_bytes=1)
    ((outcome,), _) = ingest([str(tmp_path / "a")], store, Options())
    assert outcome.placed.endswith("the record beside it is not taken in: the run has one")
    assert ask(store, "SELECT peak_memory_bytes FROM runs") == [(4096,)]


def test_two_captures_of_one_label_are_two_runs(store, tmp_path):
    read(store, write(tmp_path / "a", beside=None))
    other = write(tmp_path / "b", beside=None, seed=8)
    assert read(store, other) == [("x.capture.json", "ingested", "train/default-2")]
    assert ask(store, "SELECT run_id, count(*) FROM timings GROUP BY ALL ORDER BY ALL") == [(1, 1), (2, 1)]


def test_ranks_form_one_run_that_the_lowest_tells_of(store, tmp_path):
    for rank, median in ((1, 50), (0, 40)):
        step = {"median": median, "low": median - 1, "high": median + 1}
        changes = {"rank": rank, "world_size": 2, "step_pipelined_ns": step, "peak_memory_bytes": 100 + rank}
        record = write(tmp_path / "a", f"rank{rank}", beside=None, **changes)
        assert read(store, record) == [(record.name, "ingested", "train/default")]
    assert ask(store, STEP) == [("train/default", 40, 39, 41)]
    assert ask(store, "SELECT peak_memory_bytes FROM runs") == [(101,)]
    assert ask(store, "SELECT rank, count(*) FROM graph_breaks GROUP BY ALL ORDER BY ALL") == [(0, 1), (1, 1)]


def test_a_record_says_the_rank_that_its_trace_does_not(store, tmp_path):
    write(tmp_path / "a", rank=1, world_size=4)
    read(store, tmp_path / "a")
    assert ask(store, "SELECT rank, world_size FROM traces") == [(1, 4)]


def test_a_given_step_time_has_no_interval(store, tmp_path):
    write(tmp_path / "a")
    read(store, tmp_path / "a", step_ns=77)
    assert ask(store, STEP) == [("train/default", 77, None, None)]


def peaks(gpu):
    return {"gpu": gpu, "uuid": "u", "bytes_per_s": 4_000_000_000_000, "flops": {"bfloat16": 500_000_000_000_000}}


PEAKS = "SELECT peak_bytes_per_s, peak_flops ->> 'bfloat16', peak_source FROM devices"


def test_measured_peaks_replace_the_data_sheet(store, tmp_path):
    write(tmp_path / "a", peaks=peaks("NVIDIA H200"))
    read(store, tmp_path / "a")
    assert ask(store, PEAKS) == [(4_000_000_000_000, "500000000000000", "measured")]


def test_measured_peaks_come_to_a_trace_that_was_there(store, tmp_path):
    record = write(tmp_path / "a", peaks=peaks("NVIDIA H200"))
    kept = record.rename(tmp_path / "kept")
    read(store, tmp_path / "a")
    assert ask(store, PEAKS) == [(4_800_000_000_000, "989400000000000", "data sheet")]
    shutil.copy(kept, record)
    read(store, tmp_path / "a")
    assert ask(store, PEAKS) == [(4_000_000_000_000, "500000000000000", "measured")]


def test_peaks_of_another_model_say_nothing_of_this_one(store, tmp_path):
    write(tmp_path / "a", peaks=peaks("NVIDIA A100"))
    read(store, tmp_path / "a")
    assert ask(store, "SELECT peak_source FROM devices") == [("data sheet",)]


def gemm_share_of_peak(store):
    done = traceq("query", "gemm_shapes", "--store", store, "--json")
    return [row["pct_of_peak"] for row in json.loads(done.out)["rows"] if row["peak"] == "bfloat16"]


def test_gemm_shapes_counts_against_the_measured_peak(store, tmp_path):
    eager = FIXTURES / "demo" / "eager.json.gz"
    write(tmp_path / "a", beside=eager)
    read(store, tmp_path / "a")
    write(tmp_path / "b", beside=eager, peaks=peaks("NVIDIA H200"))
    read(tmp_path / "b.duckdb", tmp_path / "b")
    before, after = gemm_share_of_peak(store), gemm_share_of_peak(tmp_path / "b.duckdb")
    assert before
    assert after == pytest.approx([share * 989.4 / 500 for share in before])


WRONG = {
    "another format": ({"format": "x"}, "it does not say that its format is traceq-capture"),
    "a later version": ({"version": 2}, "its version is 2, and this traceq reads 1"),
    "a time that is text": ({"timings": [RECORD["timings"][0] | {"ns": "1"}]}, "timings[0].ns is no whole number"),
    "a kind of its own": ({"timings": [RECORD["timings"][0] | {"kind": "x"}]}, "timings[0].kind is none of pipelined"),
    "facts that are none": ({"facts": []}, "facts is no object"),
    "a column too many": (
        {"facts": NO_FACTS | {"compile_phases": [{"phase": "a", "ns": 1, "count": 1, "more": 1}]}},
        "facts.compile_phases[0] has a field that no record has: more",
    ),
    "a trace elsewhere": ({"trace": "/x/y.json"}, "trace is no name of a file beside the record"),
    "the folder as its trace": ({"trace": ".."}, "trace is no name of a file beside the record"),
    "a number below zero": ({"peak_memory_bytes": -1}, "peak_memory_bytes is no whole number from 0 on"),
}


@pytest.mark.parametrize(("changes", "fault"), WRONG.values(), ids=WRONG)
def test_a_wrong_record_is_told_in_one_line(store, tmp_path, changes, fault):
    record = write(tmp_path / "a", beside=None, **changes)
    done = traceq("ingest", record, "--store", store)
    assert done.status == 3
    assert f"{record}: no record of a capture: " in done.err
    assert fault in done.err
    assert not store.exists()


@pytest.mark.parametrize("text", ["", "[1", '{"format": NaN}', "\0", "[" * 100_000], ids=repr)
def test_a_record_that_is_no_json(store, tmp_path, text):
    path = tmp_path / "x.capture.json"
    path.write_text(text, "utf-8")
    done = traceq("ingest", path, "--store", store)
    assert done.status == 3
    assert "no record of a capture" in done.err
    assert "Traceback" not in done.err


def test_a_wrong_record_costs_only_its_own_trace(store, tmp_path):
    write(tmp_path / "a", version=2)
    shutil.copy(GEMM, tmp_path / "a" / "good.json.gz")
    with gzip.open(tmp_path / "a" / "good.json.gz", "at") as file:
        file.write("\n")
    done = traceq("ingest", tmp_path / "a", "--store", store)
    assert done.status == 6
    assert ask(store, "SELECT label FROM runs") == [("good",)]
