"""Thresholds for pipelines: what crosses them, what cannot be judged, and how it is told."""

import json
import random
from xml.etree import ElementTree

import pytest
from clirun import traceq
from made_traces import ADD, GEMM, store_of, trace

from traceq.analysis.check import MEASURES, Sample, Snapshot, judge, saved, threshold
from traceq.errors import TraceqError

FACTS = {"gpu": "NVIDIA H200", "torch_version": None, "recorded_with": None, "format": "kineto", "good_steps": 5}


def side(label="base", gpu="NVIDIA H200", **measures):
    return Snapshot(label, FACTS | {"gpu": gpu}, measures)


def steps(centre, seed, unit="ns"):
    draw = random.Random(seed)
    return Sample(unit, tuple(draw.gauss(centre, centre / 100) for _ in range(10)))


def status(base, new, kind, text):
    (found,) = judge(base, new, [threshold(kind, text)])
    return found.status


# What crosses -------------------------------------------------------------------------------------------------


def test_a_real_rise_beyond_the_threshold_crosses_it():
    assert status(side(step=steps(100, 1)), side(step=steps(110, 2)), "max", "step=+3%") == "crossed"


def test_a_rise_within_the_threshold_does_not():
    assert status(side(step=steps(100, 1)), side(step=steps(110, 2)), "max", "step=+20%") == "ok"


def test_a_rise_within_noise_does_not():
    noisy = Sample("ns", (90.0, 130.0, 95.0, 140.0, 100.0))
    assert (
        status(side(step=noisy), side(step=Sample("ns", (95.0, 135.0, 100.0, 142.0, 110.0))), "max", "step=+1%") == "ok"
    )


def test_with_one_measurement_the_noise_is_unknown_and_nothing_is_judged():
    one, two = Sample("ns", (), 100), Sample("ns", (), 200)
    assert status(side(step=one), side(step=two), "max", "step=+3%") == "not judged"


def test_one_kernel_more_in_every_step_is_real():
    base, new = Sample("count", (5.0,) * 4), Sample("count", (6.0,) * 4)
    assert status(side(kernels=base), side(kernels=new), "max", "kernels=+0") == "crossed"


def test_a_fall_below_the_least_crosses_it():
    base, new = steps(700, 1, "tflop/s"), steps(600, 2, "tflop/s")
    assert status(side(gemm_tflops=base), side(gemm_tflops=new), "min", "gemm_tflops=-5%") == "crossed"
    assert status(side(gemm_tflops=new), side(gemm_tflops=base), "min", "gemm_tflops=-5%") == "ok"


def test_an_absolute_change_is_in_units_of_its_own():
    base, new = steps(100e6, 1), steps(102e6, 2)
    assert status(side(step=base), side(step=new), "max", "step=+1ms") == "crossed"
    assert status(side(step=base), side(step=new), "max", "step=+5ms") == "ok"


def test_times_on_another_gpu_are_not_judged_and_counts_are():
    base = side(step=steps(100, 1), kernels=Sample("count", (5.0,) * 4))
    new = side("new", "NVIDIA A100", step=steps(200, 2), kernels=Sample("count", (6.0,) * 4))
    assert status(base, new, "max", "step=+3%") == "not judged"
    assert status(base, new, "max", "kernels=+0") == "crossed"


def test_a_measure_that_one_side_lacks_is_an_error():
    with pytest.raises(TraceqError, match="base: step was not recorded"):
        judge(side(), side(step=steps(1, 1)), [threshold("max", "step=+3%")])


@pytest.mark.parametrize("text", ["step", "steps=+3%", "step=3%", "step=+x%", "kernels=+1ms", "step=+1KiB"])
def test_a_threshold_that_cannot_be_read_is_usage(text):
    with pytest.raises(TraceqError) as caught:
        threshold("max", text)
    assert caught.value.status == 2


# The command --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A base, and a run with a kernel more in each step."""
    base, more = [[(GEMM, 50), (ADD, 5)]] * 5, [[(GEMM, 50), (ADD, 5), (ADD, 5)]] * 5
    return store_of(tmp_path_factory.mktemp("check"), base=trace(base), new=trace(more))


def test_a_crossed_threshold_is_exit_5_with_its_reason_on_standard_error(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+0", "--store", store)
    assert done.status == 5
    assert done.out.startswith("1 of 1 thresholds crossed\n")
    assert "kernels: 2 → 3 (+1, +50.0 %); --max kernels=+0: crossed, the difference is real" in done.err


def test_within_its_thresholds_a_run_is_exit_0(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+1", "--max", "gemm=+3%", "--store", store)
    assert (done.status, done.out.splitlines()[0]) == (0, "no threshold is crossed")


def test_json_names_what_is_crossed(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+0", "--store", store, "--json")
    found = json.loads(done.out)
    assert [row["status"] for row in found["rows"]] == ["crossed"]
    assert found["crossed"][0].startswith("kernels: 2 → 3")


def test_junit_has_a_failure_for_what_is_crossed(store):
    argv = ("--max", "kernels=+0", "--max", "gemm=+3%", "--format", "junit")
    done = traceq("check", "new", "--against", "base", *argv, "--store", store)
    suite = ElementTree.fromstring(done.out)
    assert suite.attrib == {"name": "traceq check", "tests": "2", "failures": "1", "skipped": "0"}
    assert [case[0].tag for case in suite] == ["failure", "system-out"]


def test_github_gets_workflow_commands(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+0", "--format", "github", "--store", store)
    said = "kernels: 2 → 3 (+1, +50.0 %25); --max kernels=+0: crossed, the difference is real"
    assert done.out == f"::error title=traceq check::{said}\n"


def test_a_saved_baseline_judges_as_the_run_does(store, tmp_path):
    file = tmp_path / "baseline.json"
    assert traceq("check", "base", "--save", file, "--store", store).status == 0
    done = traceq("check", "new", "--against", file, "--max", "kernels=+0", "--store", store)
    assert done.status == 5
    assert file.stat().st_size < 4000


def test_another_store_is_a_baseline(store, tmp_path):
    other = store_of(tmp_path, only=trace([[(GEMM, 50), (ADD, 5)]] * 4))
    assert traceq("check", "new", "--against", other, "--max", "kernels=+0", "--store", store).status == 5


def test_thresholds_come_from_a_file(store, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text('[max]\nkernels = "+0"\ngemm = "+3%"\n', "utf-8")
    done = traceq("check", "new", "--against", "base", "--thresholds", limits, "--store", store)
    assert done.status == 5


def test_a_file_of_thresholds_that_is_none_is_said(store, tmp_path):
    limits = tmp_path / "limits.toml"
    limits.write_text("[most]\nkernels = 1\n", "utf-8")
    done = traceq("check", "new", "--against", "base", "--thresholds", limits, "--store", store)
    assert (done.status, done.err.splitlines()[0]) == (
        3, f"traceq: error: {limits}: no thresholds: most is neither [max] nor [min]",
    )  # fmt: skip


def test_a_file_that_is_no_baseline_is_said(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{}", "utf-8")
    with pytest.raises(TraceqError, match="no baseline: it was not written by traceq check --save"):
        saved(path)


def test_without_a_baseline_or_a_threshold_it_is_usage(store):
    assert traceq("check", "new", "--store", store).status == 2
    assert traceq("check", "new", "--against", "base", "--store", store).status == 2


def test_every_measure_is_named_in_the_help():
    told = traceq("check", "--help").out
    assert [name for name in MEASURES if name not in told] == []
