"""Captures made by `traceq capture` on a CPU, read in where there is no torch."""

import pytest
from clirun import ROOT, rows, shared

from traceq.ingest.pipeline import Options, ingest

CAPTURES = ROOT / "fixtures" / "captures"
LINE_OF_ITEM = 12


def made(to):
    outcomes, _ = ingest([str(CAPTURES)], to / "store.duckdb", Options())
    assert [(o.result, o.notes, o.error) for o in outcomes] == [("ingested", [], None)] * 2, outcomes


@pytest.fixture
def store(tmp_path_factory):
    return shared(tmp_path_factory, "captures", made) / "store.duckdb"


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
