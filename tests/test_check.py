"""Thresholds for pipelines: what crosses them, what cannot be judged, and how it is told."""

import json
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
from clirun import environment, traceq
from made_traces import ADD, GEMM, opened, store_of, timed_again, trace

from traceq.analysis.check import MEASURES, Sample, Snapshot, judge, saved, snapshot, threshold
from traceq.errors import TraceqError

FIXTURES = Path(__file__).parents[1] / "fixtures"
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


def test_a_measure_that_one_side_lacks_is_not_recorded_and_the_others_are_judged():
    base, new = side(gemm=steps(100, 1)), side("new", step=steps(1, 1), gemm=steps(200, 2))
    asked = [threshold("max", text) for text in ("step=+3%", "comm=+3%", "gemm=+3%")]
    lacking, nowhere, judged = judge(base, new, asked)
    assert (lacking.status, lacking.reason, lacking.base, lacking.difference) == (
        "not recorded", "in base", None, None,
    )  # fmt: skip
    assert lacking.new == new.measures["step"].estimate.value
    assert (nowhere.reason, judged.status) == ("in base and new", "crossed")


def test_a_gain_that_was_asked_for_and_is_not_there_is_crossed():
    base = side(step=steps(100, 1))
    assert status(base, side(step=steps(100, 1)), "max", "step=-5%") == "crossed"
    assert status(base, side(step=steps(90, 2)), "max", "step=-5%") == "ok"
    rates = side(gemm_tflops=steps(700, 1, "tflop/s")), side(gemm_tflops=steps(705, 2, "tflop/s"))
    assert status(*rates, "min", "gemm_tflops=+10%") == "crossed"


def test_a_gain_that_may_be_there_is_within_noise():
    wide = Sample("ns", (80.0, 96.0, 97.0, 98.0, 130.0))
    assert status(side(step=Sample("ns", (100.0,) * 5)), side(step=wide), "max", "step=-4%") == "ok"


@pytest.mark.parametrize("huge", ["9" * 400, "9" * 400 + "%", "9" * 400 + "s", "1" + "0" * 18])
def test_a_threshold_beyond_all_measures_is_none(huge):
    with pytest.raises(TraceqError, match="is no change of step"):
        threshold("max", f"step=+{huge}")


@pytest.mark.parametrize("text", ["step", "steps=+3%", "step=3%", "step=+x%", "kernels=+1ms", "step=+1KiB", "step=+٣%"])
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
    assert done.out.startswith("new against base: 1 of 1 thresholds crossed\n")
    assert "kernels: 2 → 3 (+1, +50.0 %); --max kernels=+0: crossed, the difference is real" in done.err


def test_within_its_thresholds_a_run_is_exit_0(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+1", "--max", "gemm=+3%", "--store", store)
    assert (done.status, done.out.splitlines()[0]) == (0, "new against base: no threshold is crossed")


def test_json_names_what_is_crossed(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+0", "--store", store, "--json")
    found = json.loads(done.out)
    assert [row["status"] for row in found["rows"]] == ["crossed"]
    assert found["crossed"][0].startswith("kernels: 2 → 3")


def test_junit_has_a_failure_for_what_is_crossed(store):
    argv = ("--max", "kernels=+0", "--max", "gemm=+3%", "--format", "junit")
    done = traceq("check", "new", "--against", "base", *argv, "--store", store)
    suite = ElementTree.fromstring(done.out)
    assert suite.attrib == {
        "name": "traceq check: new against base",
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert [case[0].tag for case in suite] == ["failure", "system-out"]


def test_github_gets_workflow_commands(store):
    done = traceq("check", "new", "--against", "base", "--max", "kernels=+0", "--format", "github", "--store", store)
    said = "kernels: 2 → 3 (+1, +50.0 %25); --max kernels=+0: crossed, the difference is real"
    assert done.out == f"::error title=traceq check::new against base: {said}\n"


def test_labels_are_escaped_as_each_format_asks(tmp_path):
    label = 'a<b>&"50%"'
    store = store_of(tmp_path, **{label: trace([[(GEMM, 50)]] * 5), "new": trace([[(GEMM, 50), (ADD, 5)]] * 5)})
    argv = ("check", "new", "--against", label, "--max", "kernels=+0", "--store", store)
    assert traceq(*argv).out.startswith(f"new against {label}: ")
    suite = ElementTree.fromstring(traceq(*argv, "--format", "junit").out)
    assert suite.attrib["name"] == f"traceq check: new against {label}"
    assert traceq(*argv, "--format", "github").out.startswith(
        '::error title=traceq check::new against a<b>&"50%25": kernels: '
    )


@pytest.mark.parametrize(("text", "status"), [("kernels=+0", 5), ("kernels=+1", 1)])
def test_a_crossed_threshold_counts_more_than_a_measure_that_was_not_recorded(store, text, status):
    argv = ("new", "--against", "base", "--max", "step=+3%", "--max", text, "--store", store)
    done = traceq("check", *argv)
    assert done.status == status
    assert done.out.splitlines()[0].endswith("; 1 not recorded")
    said = "step: – → –; --max step=+3%: not recorded in base and new"
    assert f"traceq: error: {said}\nhint: record it" in done.err
    rows = json.loads(traceq("check", *argv, "--json").out)["rows"]
    assert rows[0] == {
        "measure": "step", "threshold": "--max step=+3%", "status": "not recorded", "reason": "in base and new",
        "unit": "ns", **dict.fromkeys(("base", "new", "delta", "delta_pct", "low", "high")),
    }  # fmt: skip
    suite = ElementTree.fromstring(traceq("check", *argv, "--format", "junit").out)
    assert (suite.attrib["errors"], suite[0][0].tag, suite[0][0].attrib["message"]) == ("1", "error", said)
    assert (
        f"::error title=traceq check::new against base: {said.replace('%', '%25')}\n"
        in traceq("check", *argv, "--format", "github").out
    )


def test_one_measurement_a_side_is_said_in_every_format(tmp_path):
    told = [(trace([[(ADD, 10)]] * (3 + n)), {"step_ns": ns}) for n, ns in enumerate((100_000, 900_000))]
    argv = ("new", "--against", "base", "--max", "step=+3%", "--store", store_of(tmp_path, base=told[0], new=told[1]))
    said = "not judged, noise unknown: one measurement of base and new"
    done = traceq("check", *argv)
    assert (done.status, done.out.splitlines()[0]) == (
        0,
        "new against base: no threshold is crossed; 1 cannot be judged",
    )
    assert said in done.err
    assert "noise unknown: one measurement of base and new" in " ".join(done.out.split())
    (row,) = json.loads(traceq("check", *argv, "--json").out)["rows"]
    assert f"{row['status']}, {row['reason']}" == said
    (case,) = ElementTree.fromstring(traceq("check", *argv, "--format", "junit").out)
    assert (case[0].tag, said in case[0].attrib["message"]) == ("skipped", True)
    github = traceq("check", *argv, "--format", "github").out
    assert github.startswith("::warning ")
    assert said in github


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[max]\nfoo = '+3%'", "[max] foo: no measure is called 'foo'"),
        ("[min]\nstep = '3%'", "[min] step: '3%' is no change of step"),
        ("[max]\nstep = 3", "no thresholds: [max] step: 3 is no text in quotation marks"),
        ("[max]\nstep = inf", "no thresholds: [max] step: inf is no text in quotation marks"),
        ("[max]\n", "no thresholds: it has none"),
        ("[max\n", "no thresholds: Expected ']' at the end of a table declaration (at line 1, column 5)"),
    ],
)
def test_a_threshold_in_a_file_that_cannot_be_read_is_said_with_its_place(store, tmp_path, text, said):
    limits = tmp_path / "limits.toml"
    limits.write_text(text, "utf-8")
    done = traceq("check", "new", "--against", "base", "--thresholds", limits, "--store", store)
    assert (done.status, done.err.splitlines()[0]) == (3, f"traceq: error: {limits}: {said}")


def broken(**changes):
    """A baseline with one measure, and what is changed in it."""
    measures = {"step": {"unit": "ns", "samples": [1, 2], "value": None, "low": None, "high": None}}
    return {"format": "traceq-check", "version": 1, "label": "base", "facts": {}, "measures": measures} | changes


def sample(**changes):
    return broken(measures={"step": {"unit": "ns", "samples": [1, 2]} | changes})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "it was not written by traceq check --save"),
        ([], "it was not written by traceq check --save"),
        (broken(version=2), "it has version 2, this traceq reads 1"),
        (broken(label=None), "label is missing, or no text"),
        (broken(measures=[]), "measures is missing, or no object"),
        (broken(facts={"gpu": [1]}), "facts: gpu is neither text nor a number"),
        (sample(unit="s"), "measures: step is not in ns"),
        (sample(samples=["a"]), "measures: step: samples are no list of numbers"),
        (sample(samples=[float("nan")]), "measures: step: samples are no list of numbers"),
        (sample(samples=[float("inf")]), "measures: step: samples are no list of numbers"),
        (sample(samples=[]), "measures: step has neither samples nor a value that is a number"),
    ],
)
def test_a_baseline_that_was_changed_is_said_with_its_place(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(TraceqError) as caught:
        saved(path)
    assert (caught.value.status, caught.value.message) == (3, f"{path}: no baseline: {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"format": ', "line 1, column 12 is no JSON: Expecting value"),
        (b"\x1f\x8b\x08", "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"9" * 5000, "it is no JSON"),
    ],
)
def test_a_baseline_that_is_no_json_is_said(tmp_path, content, said):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(TraceqError) as caught:
        saved(path)
    assert caught.value.message == f"{path}: no baseline: {said}"


def test_a_folder_is_no_baseline(store, tmp_path):
    done = traceq("check", "new", "--against", tmp_path, "--max", "kernels=+0", "--store", store)
    assert (done.status, done.err.splitlines()[0]) == (
        3, f"traceq: error: {tmp_path}: no baseline: a folder or a device, not a file",
    )  # fmt: skip


def test_a_baseline_overwrites_a_baseline_and_nothing_else(store, tmp_path):
    baseline, notes = tmp_path / "baseline.json", tmp_path / "notes.txt"
    assert [traceq("check", "base", "--save", baseline, "--store", store).status for _ in range(2)] == [0, 0]
    notes.write_text("mine", "utf-8")
    held = store.read_bytes()
    for path in (notes, store):
        done = traceq("check", "base", "--save", path, "--store", store)
        assert (done.status, done.err.splitlines()[0]) == (
            2, f"traceq: error: {path}: --save would overwrite what is no baseline",
        )  # fmt: skip
    assert (notes.read_text("utf-8"), store.read_bytes()) == ("mine", held)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["baseline.json", "notes.txt"]


def test_what_no_run_and_no_file_is_called_is_said(store):
    for name, said in (("bass", "no run is called 'bass'; did you mean 'base'?"), ("base.json", "no such file")):
        done = traceq("check", "new", "--against", name, "--max", "kernels=+0", "--store", store)
        assert done.status == 2
        assert said in done.err


def test_a_report_that_ends_in_xml_is_junit(store, tmp_path):
    path = tmp_path / "report.xml"
    assert traceq("check", "new", "--against", "base", "--max", "kernels=+0", "-o", path, "--store", store).status == 5
    assert ElementTree.parse(path).getroot().tag == "testsuite"


def test_a_rate_is_that_of_the_median_step(tmp_path):
    matrix = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
    long = trace([[(GEMM, dur)] for dur in (10, 10, 10, 30, 40)], ops={GEMM: "aten::mm"})
    for event in long["traceEvents"]:
        event.get("args", {}).update(matrix if event["name"] == "aten::mm" else {})
    with opened(tmp_path, a=long) as con:
        found = snapshot(con, "a").measures["gemm_tflops"].estimate.value
    assert found == pytest.approx(2 * 64**3 / 10_000 / 1000)


def test_compiling_once_tells_nothing_of_its_noise():
    one, two = Sample("ns", (), 100), Sample("ns", (), 200)
    assert status(side(compile=one), side(compile=two), "max", "compile=+3%") == "not judged"


def test_a_run_that_was_disturbed_while_timing_is_not_judged_by_its_steps(tmp_path):
    captures = FIXTURES / "captures-h200"
    new = timed_again(captures / "scattered-eager.capture.json", tmp_path, lambda ns: 30 * ns)
    store, file = store_of(tmp_path, base=captures / "scattered-default.json.gz", new=new), tmp_path / "baseline.json"
    limits = [word for m in ("step=+3%", "step_synced=+3%", "kernels=+0") for word in ("--max", m)]
    found = traceq("check", "new", "--against", "base", *limits, "--store", store)
    assert (found.status, found.out.splitlines()[0]) == (
        5, "new against base: 1 of 3 thresholds crossed; 2 cannot be judged",
    )  # fmt: skip
    assert "step=+3%: not judged, disturbed while timing: new" in found.err
    assert "one measurement" not in found.err
    assert traceq("check", "new", "--save", file, "--store", store).status == 0
    for base in ("new", file):
        done = traceq("check", "base", "--against", base, *limits, "--json", "--store", store)
        rows = [(r["status"], r["reason"], r["low"]) for r in json.loads(done.out)["rows"]]
        unsure = ("not judged", "disturbed while timing: base", None)
        assert (done.status, rows[:2], rows[2][0]) == (0, [unsure] * 2, "ok")


def test_memory_is_the_same_each_time_and_an_eager_run_compiles_nothing(tmp_path):
    captures = FIXTURES / "captures-h200"
    store = store_of(tmp_path, **{m: captures / f"scattered-{m}.json.gz" for m in ("eager", "default")})
    argv = ("eager", "--against", "default", "--max", "peak_memory=+1%", "--max", "compile=+0", "--store", store)
    done = traceq("check", *argv)
    assert done.status == 5
    assert "--max peak_memory=+1%: crossed, the difference is real" in done.err
    assert "not recorded" not in done.out


def test_without_a_gpu_that_is_said_in_place_of_how_to_record(tmp_path):
    captures = FIXTURES / "captures"
    store = store_of(tmp_path, **{m: captures / f"breaks-{m}.json.gz" for m in ("eager", "default")})
    argv = ("check", "default", "--against", "eager", "--max", "kernels=+0", "--store", store)
    done = traceq(*argv)
    assert done.status == 1
    assert "--max kernels=+0: not recorded in base and new: no GPU in what was recorded\n" in done.err
    assert "hint: record it on a GPU, or leave it out\n" in done.err


def test_without_a_baseline_or_a_threshold_it_is_usage(store):
    assert traceq("check", "new", "--store", store).status == 2
    assert traceq("check", "new", "--against", "base", "--store", store).status == 2


def test_a_reason_is_whole_where_room_is_short(store):
    done = traceq(
        "check", "new", "--against", "base", "--max", "kernels=-1", "--store", store, env=environment(COLUMNS=70)
    )
    assert "…" not in done.out
    assert [word for word in ["less", "than", "the", "change", "asked", "for"] if word not in done.out] == []


def test_every_measure_is_named_in_the_help():
    told = traceq("check", "--help").out
    assert [name for name in MEASURES if name not in told] == []
