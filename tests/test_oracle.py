"""Every trace at hand: the store against reference figures computed in plain Python, equal to the nanosecond."""

import json
import subprocess
import sys

import oracle
import pytest
from recorded import FIXTURES, RECORDED, SHARED, SLOW, expensive, needs_recorded, parameters, recorded, stored

from traceq import query as queries

OTHER_ORACLE = SHARED / "tools" / "oracle.py"
AT_LEAST = 50
UNREADABLE = {  # by plain json: broken on purpose
    "hand-01-truncated-object",
    "hand-02-trailing-comma",
    "hand-07-windows-backslashes",
    "hand-09-nan-infinity-na",
    "hand-15-truncated-gzip",
}
KEYS = {"memcpys": "memcpy", "memsets": "memset", "calls": "api_calls", "events": "events", "kernels": "kernels"} | {
    "kernel_ns": "kernel_ns",
    "latency_first_ns": "launch_latency_median_ns",
    "latency_all_ns": "launch_latency_all_median_ns",
}
GEMM_KEYS = {
    "by_op_ns": "gemm_by_op_ns",
    "by_name_ns": "gemm_by_name_ns",
    "by_name_with_op_ns": "gemm_by_name_linked_ns",
    "without_op_ns": "kernel_ns_without_op",
}
COUNTS = """
SELECT
    (SELECT sum(kept + skipped + lost)::BIGINT FROM event_counts) AS events,
    count(*) FILTER (kind = 'kernel') AS kernels,
    count(*) FILTER (kind = 'memcpy') AS memcpys,
    count(*) FILTER (kind = 'memset') AS memsets,
    (SELECT count(*) FROM api_calls) AS calls,
    coalesce(sum(dur_ns) FILTER (kind = 'kernel'), 0)::BIGINT AS kernel_ns
FROM gpu_activities
"""
EVENTS = "SELECT ph, category, sum(kept + skipped + lost)::BIGINT FROM event_counts GROUP BY ALL"


def fixtures():
    cases = [p for p in FIXTURES.glob("cases/*/input*.json*") if p.parent.name not in UNREADABLE]
    return [*FIXTURES.glob("demo/*.json.gz"), *FIXTURES.glob("h200/*.json.gz"), *cases]


def product(case):
    """The figures of `oracle.figures` as traceq's tables and queries give them."""
    columns, (counts,), _ = queries.fetch(case.con, COUNTS, {}, None)
    latency = {row["basis"]: row["median_ns"] for row in case.ask("launch_latency")}
    return {
        **dict(zip((column.name for column in columns), counts, strict=True)),
        "latency_first_ns": latency.get("launch"),
        "latency_all_ns": latency.get("activity"),
        "devices": {row["device"]: device(case, row) for row in case.ask("summary") if row["busy_ns"]},
        "steps": [[row["kernels"], row["kernel_ns"] or 0] for row in case.ask("steps")],
    }


def device(case, summary):
    every = [g for g in case.ask("launch_gaps") if g["device"] == summary["device"]]
    long = [g for g in case.ask("launch_gaps", min_ns=1000) if g["device"] == summary["device"]]
    by_state = {g["launch_state"]: g["idle_ns"] for g in every}
    return {
        **{name: summary[name] for name in ("window_ns", "busy_ns", "idle_ns")},
        "gaps": sum(g["gaps"] for g in every),
        "gaps_1us": sum(g["gaps"] for g in long),
        "gaps_1us_ns": sum(g["idle_ns"] for g in long),
        **{state: by_state.get(state, 0) for state in oracle.STATES},
    }


def other_figures(path):
    """The same figures from the oracle in `shared/tools`, which was written by others."""
    done = subprocess.run([sys.executable, str(OTHER_ORACLE), str(path)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        **{mine: found.get(theirs) for mine, theirs in KEYS.items()},
        "devices": {int(name): other_device(d) for name, d in found["devices"].items()},
        "steps": [[s["kernels"], s["kernel_ns"]] for s in found["steps"]],
        "gemm": {mine: found[theirs] for mine, theirs in GEMM_KEYS.items()},
    }


def other_device(found):
    return {
        **{name: found[name] for name in ("window_ns", "busy_ns", "idle_ns", "gaps")},
        "gaps_1us": found["gaps_ge_1us"],
        "gaps_1us_ns": found["gap_ge_1us_ns"],
        **{state: found["cause_ns"].get(state, 0) for state in oracle.STATES},
    }


def check(path, tmp_path_factory):
    """Compare all there is to compare for one trace, and return the events and the reference figures."""
    events = oracle.load(path)
    expected = oracle.figures(events)
    with stored(path, tmp_path_factory) as case:
        assert product(case) == expected
        assert {(ph, cat): n for ph, cat, n in case.con.execute(EVENTS).fetchall()} == oracle.count_events(events)
    return events, expected


def asked_of_both():
    """The traces that the other oracle reads too: every third one, whatever its size; all of them with TRACEQ_SLOW."""
    if not OTHER_ORACLE.exists():
        return []
    return recorded() if SLOW else recorded()[2::3]


@pytest.mark.parametrize("path", [expensive(p) for p in parameters(recorded(), RECORDED)])
def test_recorded_trace(path, tmp_path_factory):
    events, expected = check(path, tmp_path_factory)
    if path in asked_of_both():
        assert other_figures(path) == expected | {"gemm": oracle.gemm(events)}


@pytest.mark.parametrize("path", parameters(fixtures(), FIXTURES))
def test_fixture(path, tmp_path_factory):
    check(path, tmp_path_factory)


def test_the_broken_cases_are_still_broken():
    for name in UNREADABLE:
        (path,) = (FIXTURES / "cases" / name).glob("input*")
        with pytest.raises((ValueError, EOFError)):
            oracle.load(path)


@needs_recorded
def test_enough_traces_are_compared(capfd):
    count = sum(SLOW or not expensive(p).marks for p in parameters(recorded(), RECORDED))
    said = f"traceq was compared with an oracle on {count} recorded traces, with another on {len(asked_of_both())}"
    with capfd.disabled():
        print(f"\n{said}", file=sys.stderr)
    print(said)
    assert count >= AT_LEAST


@needs_recorded
def test_the_namespace_fbgemm_is_no_matrix_product(tmp_path_factory):
    """Counted by the word alone, a quarter of this public trace would be GEMM; 11.2 % is."""
    path = RECORDED / "public" / "hta" / "two_ranks" / "sampled_rank-0.json.gz"
    with stored(path, tmp_path_factory) as case:
        (share,) = {row["gemm_pct_of_kernel"] for row in case.ask("gemm_share") if row["origin"] == "all"}
        by_word = "SELECT 100 * sum(dur_ns) FILTER (contains(lower(name), 'gemm')) / sum(dur_ns) FROM kernels"
        assert (round(share, 1), round(case.con.execute(by_word).fetchone()[0], 1)) == (11.2, 25.7)
