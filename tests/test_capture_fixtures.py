"""Captures made by `traceq capture` on a CPU and on an H200, read in where there is no torch."""

import json

import pytest
from clirun import ROOT, rows, shared, traceq

from traceq.ingest.pipeline import Options, ingest

CAPTURES = ROOT / "fixtures" / "captures"
ON_H200 = ROOT / "fixtures" / "captures-h200"
RANKS = ROOT / "fixtures" / "captures-ranks"
BY_NSYS = ROOT / "fixtures" / "captures-nsys"
MODES = ["eager", "default", "reduce-overhead", "max-autotune"]
LINE_OF_ITEM = 12


def taken_in(captures, number):
    def make(to):
        outcomes, _ = ingest([str(captures)], to / "store.duckdb", Options())
        assert [(o.result, o.notes, o.error) for o in outcomes] == [("ingested", [], None)] * number, outcomes

    return make


@pytest.fixture
def store(tmp_path_factory):
    return shared(tmp_path_factory, "captures", taken_in(CAPTURES, 2)) / "store.duckdb"


@pytest.fixture
def h200(tmp_path_factory):
    return shared(tmp_path_factory, "captures-h200", taken_in(ON_H200, 4)) / "store.duckdb"


@pytest.fixture
def by_both(tmp_path_factory):
    """One model in two modes by two profilers: torch/… and nsys/…."""
    return shared(tmp_path_factory, "captures-nsys", taken_in(BY_NSYS, 4)) / "store.duckdb"


def test_records_name_their_runs(store):
    found = rows(store, "query", "captures")
    assert {(r["run"], r["mode"]) for r in found} == {("breaks/eager", "eager"), ("breaks/default", "default")}
    assert all(r["step_low_ns"] <= r["step_ns"] <= r["step_high_ns"] for r in found)


def test_five_steps_of_each_were_recorded(store):
    found = rows(store, "query", "steps")
    assert sorted(r["run"] for r in found) == ["breaks/default"] * 5 + ["breaks/eager"] * 5


def test_the_break_and_the_recompilation_are_those_that_torch_counts(store):
    (broken,) = rows(store, "query", "graph_breaks")
    (again,) = rows(store, "query", "recompiles")
    assert (broken["run"], broken["file"], broken["line"]) == ("breaks/default", "breaks.py", LINE_OF_ITEM)
    assert (again["run"], again["line"], again["recompiles"]) == ("breaks/default", LINE_OF_ITEM, 1)


def test_what_needs_a_gpu_is_not_recorded(store):
    for row in rows(store, "query", "captures"):
        assert (row["gpu_busy_ns"], row["kernels"], row["peak_bytes"]) == (None, None, None)


def test_the_table_of_modes_says_what_the_records_say(h200):
    found = {r["mode"]: r for r in rows(h200, "query", "captures")}
    assert sorted(found) == sorted(MODES)
    assert found["eager"]["speedup"] == 1
    for mode, row in found.items():
        record = json.loads((ON_H200 / f"scattered-{mode}.capture.json").read_text())
        assert row["peak_bytes"] == record["peak_memory_bytes"]
        assert row["step_ns"] == pytest.approx(record["step_pipelined_ns"]["median"], abs=1)
        assert row["compile_ns"] == sum(p["ns"] for p in record["facts"]["compile_phases"])


def test_one_kernel_takes_the_place_of_five(h200):
    kernels = {r["mode"]: r["kernels"] for r in rows(h200, "query", "captures")}
    assert kernels == {"eager": 5, "default": 1, "reduce-overhead": 2, "max-autotune": 2}


def test_each_triton_kernel_of_a_trace_has_its_source(h200):
    launched = rows(h200, "sql", "SELECT DISTINCT run, name FROM kernels WHERE name LIKE 'triton_%'")
    known = rows(h200, "sql", "SELECT label AS run, kernel AS name FROM kernel_sources JOIN runs USING (run_id)")
    assert len(launched) == 3
    assert all(kernel in known for kernel in launched)


def test_twice_as_fast_is_no_noise(h200):
    said = traceq("diff", "scattered/eager", "scattered/default", "--store", h200).out
    assert said.startswith("scattered/default is 1.99× as fast as scattered/eager")
    assert "real" in said.splitlines()[0]


def test_two_ranks_of_nccl_are_one_run_with_what_they_sent(tmp_path_factory):
    """DistributedDataParallel sends 4 × (1024 × 1024 + 1024) gradients of 4 bytes in two messages a step."""
    store = shared(tmp_path_factory, "captures-ranks", taken_in(RANKS, 2)) / "store.duckdb"
    (told,) = rows(store, "query", "captures")
    assert (told["run"], told["mode"]) == ("two", "eager")
    steps = rows(store, "query", "steps")
    assert [(r["rank"], r["kernels"]) for r in steps] == [(0, 35)] * 5 + [(1, 35)] * 5
    sent = rows(
        store, "sql", "SELECT name, group_size, bytes, count(*) AS n FROM collectives GROUP BY ALL ORDER BY bytes"
    )
    assert [tuple(r.values()) for r in sent] == [("allreduce", 2, 4_198_400, 10), ("allreduce", 2, 12_595_200, 10)]
    assert 4_198_400 + 12_595_200 == 4 * 4 * (1024 * 1024 + 1024)
    least_ns = 35_553 + 60_544  # the shortest of each message, read off the trace
    for r in rows(store, "query", "step_measures"):
        assert r["peer_wait_ns"] == max(r["comm_alone_ns"] - least_ns, 0)


@pytest.mark.parametrize(("mode", "kernels"), [("eager", 36), ("reduce-overhead", 26)])
def test_nsys_records_the_kernels_of_each_step_that_torch_does(by_both, mode, kernels):
    """In their order, by what both write alike: names are spelled differently."""
    asked = (
        "SELECT step, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers FROM kernels "
        f"WHERE run = '{{}}/{mode}' AND step IS NOT NULL ORDER BY start_ns"
    )
    torch, nsys = (
        [list(r.values()) for r in rows(by_both, "sql", asked.format(p), "--limit", "-1")] for p in ("torch", "nsys")
    )
    first = torch[0][0] - nsys[0][0]  # each counts from its own first step
    assert [[step + first, *rest] for step, *rest in nsys] == torch
    assert len(torch) == 5 * kernels


def test_of_cuda_graphs_nsys_records_the_nodes(by_both):
    asked = "SELECT run, count(*) AS n, count(graph_node_id) AS nodes FROM kernels WHERE step IS NOT NULL GROUP BY run"
    found = {r["run"]: (r["n"], r["nodes"]) for r in rows(by_both, "sql", asked)}
    # The copy of the inputs is launched on its own, before the graph.
    assert found["nsys/reduce-overhead"] == (130, 125)
    assert found["nsys/eager"] == (180, 0)


def test_of_one_capture_only_its_own_runs_have_notes(by_both):
    told = json.loads(traceq("query", "captures", "-p", "label=nsys", "--json", "--store", by_both).out)
    assert {r["run"] for r in told["rows"]} == set(told["trust"]) == {"nsys/eager", "nsys/reduce-overhead"}


@pytest.mark.parametrize("mode", ["eager", "reduce-overhead"])
def test_two_profilers_of_one_program_differ_by_no_kernel(by_both, mode):
    said = traceq("diff", f"torch/{mode}", f"nsys/{mode}", "--json", "--store", by_both)
    parts = json.loads(said.out)["rows"]
    assert [p["what"] for p in parts if p["part"] == "fusible"] == ["changed"], parts
    kernels = json.loads(said.out)["kernels"]
    assert {k["how"] for k in kernels} == {"same"}, kernels
