"""What is known of the recorded traces, beside their reference figures: shares, causes and links found by hand.

They were made to show something; that is what traceq has to see in them.
"""

import oracle
import pytest
from recorded import RECORDED, expensive, name_of, needs_recorded, parameters, recorded, stored

LAUNCH_BOUND = ("cpu_ops", "launch_latency")
# At least that share of a device's idle time, in percent.
SHARES = [
    ("syncs__eager", ("sync",), 40),
    ("syncs__default", ("sync",), 40),
    ("overlap__eager", ("sync",), 70),
    ("dataloader__workers0", ("dataloader",), 75),
    ("smallchain__eager", LAUNCH_BOUND, 90),
    ("gptsdpa__reduce", ("in_graph",), 70),
    ("cudagraph__manual", ("in_graph",), 70),
    ("smallchain__default", ("compiled_runtime",), 70),
    ("scattered__reduce", ("compiled_runtime",), 70),
]
COMPILED = ["adam__default", "gptsdpa__default", "gptsdpa__reduce", "scattered__maxauto", "smallchain__reduce"]
MODES = ("eager", "default", "reduce")
MOST_OTHER_PCT = 3
# Activities whose External id is an operator's; the older traces have the correlation id there.
EXTERNAL_IDS = 61_571
OLDER = {
    "public/hta/critical_path_alexnet/benchmark_result_2869224_1695835535_trace",
    "public/hta/negative_queue_length/rank0",
    "public/hta/old_flows/control",
    "public/hta/two_ranks/sampled_rank-0",
    "public/hta/two_ranks/sampled_rank-1",
    *(name_of(path) for path in recorded("public/param/dlrm_8_ranks/*.json.gz")),
}
HELD_UP = """
SELECT p.ns, p.evidence, (k.pid, k.tid) = (l.pid, l.tid) AS is_own
FROM idle AS p
JOIN gpu_activities AS a ON a.activity_id = p.after_id
JOIN api_calls AS l ON l.call_id = a.launch_id
JOIN api_calls AS k ON k.name = p.evidence AND k.start_ns < l.start_ns + l.dur_ns AND k.start_ns + k.dur_ns > l.start_ns
WHERE p.cause = 'allocator' AND p.part = 'launch'
"""
GEMM = """
SELECT
    coalesce(sum(dur_ns) FILTER (category = 'gemm'), 0)::BIGINT,
    coalesce(sum(dur_ns) FILTER (category_by_name = 'gemm'), 0)::BIGINT
FROM kernels WHERE op_id IS NOT NULL
"""
LAUNCHED_GEMM = """
SELECT sum(k.dur_ns) FILTER (k.launch_id IS NOT NULL)::BIGINT / (SELECT count(*) FROM steps)
FROM kernels AS k WHERE k.category_by_name = 'gemm'
"""
OTHER = """
SELECT name, count(*), sum(dur_ns)::BIGINT AS ns, (SELECT sum(dur_ns)::BIGINT FROM kernels) AS all_ns
FROM kernels WHERE category = 'other' GROUP BY name ORDER BY ns DESC, name
"""
LINKS = """
SELECT
    count(*) FILTER (o.external_id <> 0 AND a.external_id <> 0 AND c.op_id IS NOT NULL),
    count(*) FILTER (o.external_id <> a.external_id AND c.op_id IS NOT NULL),
    count(*) FILTER (a.op_id IS NOT NULL AND c.op_id IS NULL),
    any_value(t.op_disagreements)
FROM gpu_activities AS a
CROSS JOIN traces AS t
LEFT JOIN api_calls AS c ON c.call_id = a.launch_id
LEFT JOIN ops AS o ON o.op_id = a.op_id
"""
PEAKS = """
SELECT name, peak_bytes_per_s, (peak_flops->>'$.bfloat16')::BIGINT, (peak_flops->>'$.float32')::BIGINT FROM devices
"""
UNEVEN = """
SELECT gap_id FROM {0}gaps LEFT JOIN {0}gap_parts USING (gap_id) GROUP BY gap_id, dur_ns
HAVING sum(ns) IS DISTINCT FROM dur_ns
"""


def h200(name, tmp_path_factory):
    """One of the traces recorded on an H200."""
    path = RECORDED / "h200" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the recorded traces are not here")
    return stored(path, tmp_path_factory)


def shares(case):
    """Idle time by cause, in percent."""
    return {row["cause"]: row["pct_of_idle"] for row in case.ask("gap_causes")}


@pytest.mark.parametrize(("name", "causes", "least"), SHARES)
def test_what_the_idle_time_is_made_of(name, causes, least, tmp_path_factory):
    with h200(name, tmp_path_factory) as case:
        found = shares(case)
        assert sum(found.get(cause, 0) for cause in causes) >= least, found


@pytest.mark.parametrize("name", COMPILED)
def test_a_steady_compiled_run_does_not_compile(name, tmp_path_factory):
    with h200(name, tmp_path_factory) as case:
        assert "compile" not in shares(case)


def test_two_launches_are_held_up_by_an_allocation_of_another_thread(tmp_path_factory):
    with h200("dataloader__workers8", tmp_path_factory) as case:
        found = case.con.execute(HELD_UP).fetchall()
        assert [(evidence, is_own) for _, evidence, is_own in found] == [("cudaHostAlloc", False)] * 2
        assert all(ns > 1_000_000 for ns, _, _ in found)


@pytest.mark.parametrize("path", [expensive(p) for p in parameters(recorded("h200/*__eager.json.gz"), RECORDED)])
def test_matrix_products_by_operator_and_by_name(path, tmp_path_factory):
    """Over the kernels with an operator, traceq's two categories and the oracle's two agree within 1 %."""
    reference = oracle.gemm(oracle.load(path))
    with stored(path, tmp_path_factory) as case:
        found = [*case.con.execute(GEMM).fetchone(), reference["by_op_ns"], reference["by_name_with_op_ns"]]
        assert max(found) <= 1.01 * min(found), found
        without = "SELECT coalesce(sum(dur_ns), 0)::BIGINT FROM kernels WHERE op_id IS NULL"
        assert case.con.execute(without).fetchone() == (reference["without_op_ns"],)


def test_compiling_does_not_change_the_matrix_products(tmp_path_factory):
    """GEMM time per step of launched kernels, by name: inside a graph no operator tells them."""
    found = {}
    for mode in MODES:
        with h200(f"gptsdpa__{mode}", tmp_path_factory) as case:
            (found[mode],) = case.con.execute(LAUNCHED_GEMM).fetchone()
    assert max(found.values()) <= 1.03 * min(found.values()), found
    assert min(found.values()) > 7_000_000


@pytest.mark.parametrize("path", parameters(recorded(), RECORDED))
def test_little_is_left_in_other(path, tmp_path_factory):
    """What is left is printed: pytest -rP -k left_in_other."""
    with stored(path, tmp_path_factory) as case:
        found = case.con.execute(OTHER).fetchall()
    table = [f"{100 * ns / all_ns:7.3f} % {kernels:6d} {name[:100]}" for name, kernels, ns, all_ns in found]
    print(name_of(path), *table, sep="\n")
    assert sum(100 * ns / all_ns for _, _, ns, all_ns in found) < MOST_OTHER_PCT, table


@needs_recorded
def test_external_ids_name_the_operator_that_time_does(tmp_path_factory):
    total = 0
    for path in recorded():
        with stored(path, tmp_path_factory) as case:
            known, different, by_external_id, disagreements = case.con.execute(LINKS).fetchone()
        name = name_of(path)
        assert (disagreements or 0) == 0, name
        if name in OLDER:
            assert by_external_id == 0, name
            assert known == different > 0, name
        else:
            assert different == 0, name
            total += known
    assert total == EXTERNAL_IDS


@pytest.mark.parametrize("path", parameters(recorded(), RECORDED))
def test_causes_sum_to_the_idle_time(path, tmp_path_factory):
    with stored(path, tmp_path_factory) as case:
        idle = {row["device"]: row["idle_ns"] for row in case.ask("summary") if row["idle_ns"]}
        gaps = dict(case.con.execute("SELECT device, sum(dur_ns)::BIGINT FROM gaps GROUP BY ALL").fetchall())
        causes = {}
        for row in case.ask("gap_causes"):
            causes[row["device"]] = causes.get(row["device"], 0) + row["idle_ns"]
        assert [case.con.execute(UNEVEN.format(what)).fetchall() for what in ("", "stream_")] == [[], []]
    assert idle == gaps == causes


def test_the_peaks_of_the_device_are_those_of_its_data_sheet(tmp_path_factory):
    with h200("gemm__eager", tmp_path_factory) as case:
        found = case.con.execute(PEAKS).fetchall()
    assert found == [("NVIDIA H200", 4_800 * 10**9, 989_400 * 10**9, 67_000 * 10**9)]
