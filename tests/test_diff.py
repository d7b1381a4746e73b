"""Comparisons: the cases of the log, real pairs, and what holds for any two runs."""

import gzip
import html
import io
import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from clirun import environment, traceq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import ADD, GEMM, MUL, opened, row, store_of, timed_again, trace
from markdown_it import MarkdownIt
from recorded import SLOW
from rich.cells import cell_len

from traceq import query
from traceq.analysis import tables
from traceq.analysis.advise import advise
from traceq.analysis.diff import diff
from traceq.analysis.match import Contents, Kernel, match
from traceq.analysis.shares import per_step, split
from traceq.show import page, verdicts
from traceq.show.page import heads_of
from traceq.store.files import open_store

FIXTURES = Path(__file__).parents[1] / "fixtures"


def compared(folder, first, second, steps=(None, None)):
    """The comparison of two traces, and the store that holds them as a and b."""
    con = opened(folder, a=(first, {"step_ns": steps[0]}), b=(second, {"step_ns": steps[1]}))
    return diff(con, "a", "b"), con


def measure(found, name):
    return next(m for m in tables.measures(found) if m["measure"] == name)


def fates(found):
    return {p.what: (p.first_ns, p.second_ns) for p in found.parts if p.part == "fusible"}


# The cases of the log -----------------------------------------------------------------------------------------


def test_other_numbers_of_steps_are_compared_per_step(tmp_path):
    case = FIXTURES / "cases" / "hand-65-diff-different-step-counts"
    found, _ = compared(tmp_path, case / "input-eager.json", case / "input-compiled.json")
    time = measure(found, "kernel time")
    assert (time["a"], time["b"], time["delta"], time["delta_pct"]) == (20_000, 16_000, -4000, -20.0)
    counts = measure(found, "kernels")
    assert (counts["a"], counts["b"]) == (3, 2)
    assert "a has 4 steps that count, b 2: all figures are per step" in found.caveats
    (same,) = [p for p in found.matching.pairs if p.how == "same"]
    assert (same.first.ns, same.second.ns) == (10_000, 10_000)


def test_a_run_compared_with_itself_is_all_zeros(tmp_path):
    found, con = compared(tmp_path, trace([[(GEMM, 10), (ADD, 5)]] * 3), trace([[(GEMM, 11)]] * 3))
    same = diff(con, "a", "a")
    assert same.sentence == "no difference: a and a have the same content"
    assert {p.delta_ns for p in same.parts} == {0}
    assert {m["delta"] for m in tables.measures(same)} <= {0, None}
    assert found.sentence != same.sentence


def test_the_same_file_is_the_same_content(tmp_path):
    case = FIXTURES / "cases" / "hand-67-diff-of-a-file-with-itself" / "input.json"
    store = tmp_path / "s.duckdb"
    assert traceq("ingest", case, "--label", "one", "--store", store).status == 0
    done = traceq("diff", "one", "one", "--store", store)
    assert done.out.startswith("no difference: one and one have the same content\n")
    assert not re.search(r"faster|slower|-0\.0", done.out)


@pytest.mark.parametrize(
    ("labels", "heads"),
    [
        (("eager", "default"), ["eager", "default"]),
        (("gptsdpa__eager", "gptsdpa__default"), ["…eager", "…default"]),
        (("gpt-eager-bs32-h200", "gpt-default-bs32-h200"), ["…eager…", "…default…"]),
        (("compiled-1", "compiled-12-again"), ["…1", "…12-again"]),
        (("x" * 30 + "1" + "y" * 30, "x" * 30 + "2" + "y" * 30), ["A xxxxxx…yyy", "B xxxxxx…yyy"]),
        (("長い名前の実験番号一番", "長い名前の実験番号二番"), ["長い名…番", "B"]),
    ],
)
def test_heads_of_columns_say_in_what_two_labels_differ(labels, heads):
    found = heads_of(*labels)
    assert all(cell_len(head) <= 12 for head in found)
    assert found[0] != found[1]
    assert heads[1] == "B" or found == heads


def test_a_gpu_of_another_rank_is_compared_and_said(tmp_path):
    steps = [[(ADD, 10)]] * 3
    ranked = [trace(steps, distributedInfo={"rank": rank, "world_size": 4}) for rank in range(3)]
    for n, made in enumerate(ranked):
        (tmp_path / f"r{n}.json").write_text(json.dumps(made | {"n": n}), "utf-8")
    store = tmp_path / "s.duckdb"
    assert traceq("ingest", tmp_path / "r0.json", tmp_path / "r1.json", "--label", "a", "--store", store).status == 0
    assert traceq("ingest", tmp_path / "r2.json", "--label", "b", "--store", store).status == 0
    with open_store(store) as con:
        found = diff(con, "a", "b")
    said = "no GPU (rank:device) is in both: a has 0:0, 1:0 and b has 2:0; compared are the means over"
    assert any(line.startswith(said) for line in found.caveats)


def test_a_rank_that_one_side_lacks_is_left_out_of_all_figures(tmp_path):
    fast, slow = [[(ADD, 10)]] * 4, [[(ADD, 90)]] * 4
    for n, (rank, steps) in enumerate(((0, fast), (1, slow), (0, fast))):
        made = trace(steps, distributedInfo={"rank": rank, "world_size": 2}) | {"n": n}
        (tmp_path / f"r{n}.json").write_text(json.dumps(made), "utf-8")
    store = tmp_path / "s.duckdb"
    assert traceq("ingest", tmp_path / "r0.json", tmp_path / "r1.json", "--label", "a", "--store", store).status == 0
    assert traceq("ingest", tmp_path / "r2.json", "--label", "b", "--store", store).status == 0
    with open_store(store) as con:
        found = diff(con, "a", "b")
    assert "b lacks GPU 1:0 (rank:device): compared is what both have" in found.caveats
    assert {m["delta"] for m in tables.measures(found)} <= {0, None}
    assert {p.delta_ns for p in found.parts} == {0}


def test_without_gpu_work_or_steps_that_is_said_and_counts_are_empty(tmp_path):
    host = trace([[(ADD, 10)]] * 3)
    host["traceEvents"] = [e for e in host["traceEvents"] if e["cat"] == "user_annotation"]
    found, _ = compared(tmp_path, host, trace([[(ADD, 10)]] * 3))
    assert "a: no GPU work was recorded" in found.caveats
    assert not any("all figures are per step" in line for line in found.caveats)
    ((_, _, a_ns, _, _, a_kernels, b_kernels),) = tables.categories(found).rows
    assert (a_ns, a_kernels, b_kernels) == (None, None, 3)


def test_a_step_shorter_than_its_work_is_doubted(tmp_path):
    steps = [[(ADD, 100)]] * 4
    found, _ = compared(tmp_path, trace(steps), trace(steps), steps=(1000, 200_000))
    assert any(line.startswith("a: the GPU works for 100.000 µs in a step") for line in found.caveats)


def test_runs_without_any_figure_are_drawn_without_a_table(tmp_path):
    path, store = tmp_path / "host.json", tmp_path / "s.duckdb"
    host = trace([[(ADD, 10)]] * 3)
    host["traceEvents"] = [e for e in host["traceEvents"] if e["cat"] == "user_annotation"]
    path.write_text(json.dumps(host), "utf-8")
    assert traceq("ingest", path, "--label", "host", "--store", store).status == 0
    done = traceq("diff", "host", "host", "--store", store)
    assert (done.status, "Per step" in done.out) == (0, False)


def test_less_busy_and_an_equal_step_are_both_said(tmp_path):
    busy = [trace([[(ADD, 100)]] * 4, pause=98), trace([[(ADD, 50)]] * 4, pause=148)]
    found, _ = compared(tmp_path, *busy, steps=(200_000, 200_000))
    assert found.direction == "same"
    assert measure(found, "GPU busy")["delta"] == -50_000
    assert "GPU busy time fell (-50.0 %), but the step did not change" in found.also


def test_a_first_step_with_kernels_of_its_own_is_warm_up(tmp_path):
    tuned = [(f"triton_mm_{n}x", 5) for n in range(10)]
    found, _ = compared(tmp_path, trace([[(ADD, 25)]] * 2), trace([tuned, [(ADD, 20)], [(ADD, 20)]]))
    assert measure(found, "kernel time")["delta_pct"] == -20.0
    assert "b: step 0 is left out as warm-up: its kernels occur in no other step" in found.caveats


def test_one_kernel_more_shifts_no_pairs(tmp_path):
    names = [ADD, MUL, ADD.replace("add", "sub")]
    found, _ = compared(
        tmp_path,
        trace([[(n, 5) for n in names]] * 3),
        trace(
            [[(n, 5) for n in [names[0], "void at::native::vectorized_elementwise_kernel<4, x>(int)", *names[1:]]]] * 3
        ),
    )
    assert sorted(p.how for p in found.matching.pairs) == ["added", "same", "same", "same"]


def test_running_numbers_in_names_do_not_part_kernels(tmp_path):
    found, _ = compared(
        tmp_path, trace([[("triton_poi_fused_add_0", 5)]] * 3), trace([[("triton_poi_fused_add_3", 6)]] * 3)
    )
    (pair,) = found.matching.pairs
    assert (pair.how, pair.first.ns, pair.second.ns) == ("same", 5000, 6000)


def test_a_gpu_that_one_side_lacks_is_said_and_left_out(tmp_path):
    both = trace([[(ADD, 10), (ADD, 10)]] * 3, device_of=lambda place: place)
    found, _ = compared(tmp_path, both, trace([[(ADD, 10)]] * 3))
    assert "b lacks GPU -:1 (rank:device): compared is what both have" in found.caveats
    assert fates(found)["changed"] == (10_000, 10_000)


def test_of_several_gpus_the_one_that_changed_most_comes_first(tmp_path):
    names = [ADD, MUL, "ncclDevKernel_AllReduce"]
    fast, slow = ([[(names[0], 10), (names[1], ns), (names[2], 4)]] * 3 for ns in (10, 30))
    sides = [trace(steps, device_of=lambda place: place % 2) for steps in (fast, slow)]
    store = store_of(tmp_path, a=sides[0], b=sides[1])
    done = traceq("diff", "a", "b", "--store", store)
    assert [
        (row["device"], row["a_busy_ns"], row["b_busy_ns"], row["delta_busy_ns"], row["a_comm_ns"], row["b_comm_ns"])
        for row in json.loads(traceq("diff", "a", "b", "--store", store, "--json").out)["gpus"]
    ] == [(1, 10_000, 30_000, 20_000, 0, 0), (0, 14_000, 14_000, 0, 4000, 4000)]
    told = done.out[done.out.index("Each GPU") :].splitlines()
    assert [line.split()[0] for line in told[3:5]] == ["-:1", "-:0"]
    assert traceq("ingest", FIXTURES / "made" / "uneven.json", "--label", "one", "--store", store).status == 0
    assert "Each GPU" not in traceq("diff", "one", "one", "--store", store).out


def test_replays_that_were_not_recorded_leave_no_verdict(tmp_path):
    found, _ = compared(tmp_path, FIXTURES / "made" / "invisible.json", trace([[(ADD, 10)]] * 3))
    assert found.parts == ()
    assert found.sentence.startswith("no verdict on speed")
    assert any("were not recorded, so its GPU time is not known" in line for line in found.caveats)


def test_a_slow_first_step_moves_no_median_and_is_said(tmp_path):
    found, _ = compared(
        tmp_path,
        trace([[(ADD, 20)], *[[(ADD, 10)]] * 5]),
        trace([[(ADD, 10)]] * 6),
    )
    assert measure(found, "kernel time")["delta"] == 0
    assert any("periods scatter" in line for line in found.caveats)


def test_other_recording_options_are_said(tmp_path):
    steps = [[(ADD, 10)]] * 3
    found, _ = compared(tmp_path, trace(steps), trace(steps, with_stack=1))
    assert "recording options differ (nothing extra; stacks): host and idle times cannot be compared" in found.caveats


def test_a_run_that_is_called_eager_and_compiled_is_said(tmp_path):
    made = FIXTURES / "made"
    told = json.loads((made / "train-default.capture.json").read_text("utf-8"))
    eager = tmp_path / "itself.capture.json"
    eager.write_text(json.dumps(told | {"mode": "eager"}), "utf-8")
    con = opened(tmp_path, eager=eager, default=made / "train-default.capture.json")
    assert "eager is not eager: its script itself compiles, for 2.000 µs" in diff(con, "eager", "default").caveats
    assert not [line for line in diff(con, "default", "default").caveats if "eager" in line]


def test_different_models_get_no_verdict(tmp_path):
    ops = {GEMM: "aten::mm", "cutlass_gemm": "aten::bmm"}
    one, other = trace([[(GEMM, 10)]] * 3, ops=ops), trace([[("cutlass_gemm", 90)]] * 3, ops=ops)
    found, _ = compared(tmp_path, one, other, steps=(50_000, 100_000))
    assert (found.direction, found.sentence.partition(":")[0]) == ("unknown", "cannot be compared")
    assert found.also == ("a step of a takes 50.000 µs", "a step of b takes 100.000 µs")
    assert found.anchor.changes == (
        "gemm ampere_sgemm_128x64_tn → cutlass_gemm, cublas → cutlass: 10.000 µs → 90.000 µs",
    )


def test_another_gpu_is_said_beside_the_verdict(tmp_path):
    names = [{"deviceProperties": [{"id": 0, "name": name}]} for name in ("NVIDIA A100", "NVIDIA H200")]
    found, _ = compared(tmp_path, *(trace([[(ADD, 10)]] * 3, **name) for name in names), steps=(50_000, 40_000))
    assert found.also[0] == "but a ran on NVIDIA A100, b on NVIDIA H200"


def test_captures_tell_what_compiling_costs_and_where_graphs_break(tmp_path):
    made = FIXTURES / "made"
    con = opened(tmp_path, eager=made / "train-eager.capture.json", default=made / "train-default.capture.json")
    found = diff(con, "eager", "default")
    assert found.sentence == "default is 1.60× as fast as eager: a step takes 1.250 µs, not 2.000 µs (real)"
    assert "compilation took 2.000 µs: it has paid for itself after 3 steps" in found.also
    assert (found.breaks[0]["file"], found.breaks[0]["line"]) == ("train.py", 20)
    assert (found.pays_after_steps, diff(con, "default", "eager").pays_after_steps) == (3, None)


def test_a_gain_that_is_not_real_pays_for_nothing(tmp_path):
    """The first is the same as before, with steps that scatter so that they may be as short as the second's."""
    made = FIXTURES / "made"
    noise = iter((0.5, 1, 1, 2.0) * 9)
    eager = timed_again(made / "train-eager.capture.json", tmp_path, lambda ns: int(ns * next(noise)))
    con = opened(tmp_path, eager=eager, default=made / "train-default.capture.json")
    found = diff(con, "eager", "default")
    assert found.sentence.endswith("(within noise)")
    assert (found.pays_after_steps, [line for line in found.also if "compilation" in line]) == (None, [])


def test_steps_that_waiting_makes_faster_were_disturbed_and_get_no_verdict(tmp_path):
    captures = FIXTURES / "captures-h200"
    eager = timed_again(captures / "scattered-eager.capture.json", tmp_path, lambda ns: 30 * ns)
    con = opened(tmp_path, eager=eager, default=captures / "scattered-default.json.gz")
    found = diff(con, "eager", "default")
    assert found.sentence.startswith(
        "no verdict on speed: eager was disturbed while timing (a step takes 4.839 ms, but 186.764 µs with a "
        "synchronisation after each): capture it again; the GPU is busy for 77.9"
    )
    assert (found.direction, found.also, found.pays_after_steps) == ("unknown", (), None)
    step = measure(found, "step, un-profiled")
    assert (step["verdict"], step["delta_low"]) == ("disturbed while timing", None)
    assert measure(found, "step, synchronised")["verdict"] == "disturbed while timing"
    assert measure(found, "GPU busy")["verdict"] == "real"
    assert {p.first_estimate_ns for p in found.parts} == {None}
    assert sum(p.second_estimate_ns for p in found.parts) == round(found.second.step.value)
    advice = advise(con, "eager")
    assert advice.confidence == "low"
    assert any("disturbed while timing" in line for line in advice.not_visible)


@pytest.mark.parametrize(("more_ns", "is_disturbed"), [(-9, False), (9, True)])
def test_only_pipelined_steps_above_twice_the_synced_ones_are_taken_for_disturbed(tmp_path, more_ns, is_disturbed):
    """Their median against the others', which is the same in every place that says so."""
    captures = FIXTURES / "captures-h200"
    record = captures / "scattered-eager.capture.json"
    told = json.loads(record.read_text("utf-8"))
    added = 2 * told["step_synced_ns"]["median"] - told["step_pipelined_ns"]["median"] + more_ns
    eager = timed_again(record, tmp_path, lambda ns: ns + added)
    con = opened(tmp_path, eager=eager, default=captures / "scattered-default.json.gz")
    verdict = measure(diff(con, "eager", "default"), "step, un-profiled")["verdict"]
    notes = " ".join(query.trust(con, ["eager"])["eager"]["notes"])
    assert (verdict == "disturbed while timing", "disturbed while timing" in notes) == (is_disturbed, is_disturbed)


def test_a_peak_of_memory_is_the_same_each_time_and_compilation_is_not(tmp_path):
    captures = FIXTURES / "captures-h200"
    con = opened(tmp_path, **{m: captures / f"scattered-{m}.json.gz" for m in ("eager", "default")})
    found = diff(con, "eager", "default")
    assert measure(found, "peak memory")["verdict"] == "real"
    compilation = measure(found, "compilation")
    assert (compilation["a"], compilation["verdict"]) == (0, "noise unknown")


def test_without_two_steps_in_a_row_kernel_time_is_still_compared(tmp_path):
    found, _ = compared(tmp_path, trace([[(ADD, 10), (GEMM, 30)]]), trace([[(ADD, 12)]] * 3))
    assert "a: no two steps that count follow on one another, so its time has no parts per step" in found.caveats
    assert [row[:5] for row in tables.categories(found).rows] == [
        ("gemm", None, 30_000, 0, -30_000),
        ("elementwise", None, 10_000, 12_000, 2000),
    ]


# A real pair --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Eager and compiled training steps of one small GPT on an H200."""
    demo = FIXTURES / "demo"
    steps = (43_534_535, 28_190_109)
    return compared(tmp_path_factory.mktemp("real"), demo / "eager.json.gz", demo / "default.json.gz", steps)


def test_the_step_decides_which_is_faster(real):
    found, _ = real
    assert found.direction == "faster"
    assert found.sentence == "b is 1.54× as fast as a: a step takes 28.190 ms, not 43.535 ms (noise unknown)"


def test_parts_sum_to_the_period_and_estimates_to_the_step(real):
    found, _ = real
    for side, column in ((found.first, "first"), (found.second, "second")):
        periods = [r["period_ns"] for r in side.steps if r["period_ns"]]
        assert sum(getattr(p, f"{column}_ns") for p in found.parts) == round(Fraction(sum(periods), len(periods)))
        assert sum(getattr(p, f"{column}_estimate_ns") for p in found.parts) == side.step.value


def test_the_heavy_anchor_holds_between_eager_and_compiled(real):
    found, _ = real
    assert found.anchor.holds
    assert (round(found.anchor.first_ns, -5), round(found.anchor.second_ns, -5)) == (10_100_000, 9_900_000)


def test_every_kernel_of_both_sides_is_in_one_place(real):
    found, _ = real
    for n, side in enumerate((found.first, found.second)):
        paired = sum(k.ns for p in found.matching.pairs if (k := (p.first, p.second)[n]))
        fused = sum(
            f.made.ns if f.is_second == bool(n) else sum(k.ns for k in f.replaced) for f in found.matching.fused
        )
        assert paired + fused == sum(k.ns for k in side.kernels)


def test_a_fused_gelu_replaced_the_eager_ones(real):
    found, _ = real
    rows = {r["name"]: r for r in tables.records(tables.fused(found))}
    gelu = rows["triton_poi_fused_gelu_view_10"]
    assert (gelu["kernels"], gelu["replaced"], gelu["replaced_kernels"]) == (12, "gelu ×12", 12)


def test_what_was_fused_begins_with_the_greatest_change_whether_gain_or_loss(real):
    found, _ = real
    changes = [abs(r["delta_ns"]) for r in tables.records(tables.fused(found))]
    assert changes == sorted(changes, reverse=True)
    assert len(set(changes)) > 8


def test_the_eager_optimizer_stayed_unfused(real):
    found, _ = real
    reasons = {row["op"]: row["reason"] for row in found.unfused}
    assert reasons["aten::_foreach_addcdiv_"] == "optimizer"
    assert reasons["aten::_log_softmax"] == "outside"


def test_each_layer_norm_is_in_the_kernel_that_runs_as_often(real):
    found, _ = real
    rows = {(r["name"], r["kernels"]): r["replaced"] for r in tables.records(tables.fused(found))}
    forward = {k: v for k, v in rows.items() if "native_layer_norm_native_layer_norm_backward_view" in k[0]}
    assert len(forward) == 9
    for (name, runs), replaced in forward.items():
        at_the_end = name.endswith("_17") and "embedding" in name  # of the backward pass
        assert at_the_end or f"native_layer_norm ×{runs:.0f}, add ×{runs:.0f}" in replaced
    # Two kernels of the eager backward pass, the input's gradient and the parameters', for each.
    assert rows["triton_per_fused__to_copy_add_native_layer_norm_backward_view_8", 23].startswith(
        "native_layer_norm_backward ×46, "
    )


def test_both_kernels_of_one_eager_call_are_in_one_compiled_kernel(real):
    found, _ = real
    (last,) = [f for f in found.matching.fused if f.made.name.endswith("to_copy_native_layer_norm_backward_view_1")]
    norms = [k for k in last.replaced if k.op == "aten::native_layer_norm_backward"]
    assert sorted((k.short_name, k.count) for k in norms) == [
        ("GammaBetaBackwardCUDAKernelTemplate", 1), ("layer_norm_grad_input_kernel_vectorized", 1),
    ]  # fmt: skip


def test_casts_of_weights_are_told_apart_by_their_size(real):
    found, _ = real
    (f,) = [f for f in found.matching.fused if f.made.name == "triton_poi_fused__to_copy_4"]
    counts = {(k.op, k.shapes): k.count for k in f.replaced if k.largest in {2304, 2304 * 768}}
    assert (f.made.count, counts) == (12, {("aten::copy_", "[[2304],[2304],[]]"): 12})


def test_a_captured_kernel_replaced_the_five_that_its_source_names(tmp_path):
    folder, store = FIXTURES / "captures-h200", tmp_path / "s.duckdb"
    assert traceq("ingest", folder, "--store", store).status == 0
    traced = json.loads(gzip.decompress((folder / "scattered-eager.json.gz").read_bytes()))["traceEvents"]
    kernels = sorted((e["ts"], round(1000 * e["dur"])) for e in traced if e.get("cat") == "kernel")
    first_four_steps = sum(ns for _, ns in kernels[:20])
    for mode in ("default", "reduce-overhead"):  # launched, with arguments; replayed, with its source alone
        with open_store(store) as con:
            found = diff(con, "scattered/eager", f"scattered/{mode}")
        (f,) = found.matching.fused
        assert sorted((k.op, k.count) for k in f.replaced) == [
            ("aten::add", 1), ("aten::gelu", 1), ("aten::mul", 1), ("aten::native_layer_norm", 1), ("aten::tanh", 1),
        ]  # fmt: skip
        assert sum(k.ns for k in f.replaced) == round(Fraction(first_four_steps, 4))


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_drawn_fits_the_terminal(real, columns, tmp_path):
    _, con = real
    (store,) = con.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchone()
    done = traceq("diff", "a", "b", "--store", store, env=environment(COLUMNS=columns))
    assert max(map(len, done.out.splitlines())) <= columns
    assert "…" not in re.sub(r"[\w<>,. ]*…[\w<>,. ]*", "", done.out)


def test_markdown_has_every_word_of_the_text_as_headings_and_tables(real):
    """Also where a name has what Markdown takes for its own."""
    found, _ = real
    texts = [io.StringIO(), io.StringIO()]
    verdicts.diff(found, page.Screen(texts[0], is_wide=True))
    verdicts.diff(found, page.Markdown(texts[1]))
    rendered = MarkdownIt("commonmark").enable("table").render(texts[1].getvalue())
    titles = re.findall("<h3>(.*)</h3>", rendered)
    assert titles[:2] == ["Per step", "Where the difference comes from"]
    assert "What was fused" in titles
    assert rendered.startswith(f"<p><strong>{found.sentence}</strong></p>")
    words = html.unescape(re.sub("<[^>]+>", " ", rendered)).split()
    drawn = re.sub("[─•]", " ", texts[0].getvalue()).split()
    assert Counter(drawn) - Counter(words) == Counter()
    assert any("<" in word for word in drawn)


@pytest.mark.parametrize(
    "verb", [["diff", "a", "b"], ["advise", "a"], ["check", "b", "--against", "a", "--max", "kernels=+0"]]
)
def test_markdown_begins_with_the_verdict(tmp_path, verb):
    store = store_of(tmp_path, a=trace([[(GEMM, 10), (ADD, 5)]] * 3), b=trace([[(GEMM, 10)]] * 3))
    done = traceq(*verb, "--store", store, "--format", "markdown")
    assert re.match(r"\*\*[^|]+\*\*\n\n", done.out)
    assert "\n|---|" in done.out


@pytest.mark.parametrize("columns", [60, 61, 80])
def test_no_line_begins_with_the_unit_of_a_number(real, columns, tmp_path):
    _, con = real
    (store,) = con.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchone()
    lines = traceq("diff", "a", "b", "--store", store, env=environment(COLUMNS=columns)).out.splitlines()
    assert [line for line in lines if re.match(r"\s*([nµm]?s|[KMG]iB|%)\b", line)] == []


def test_a_limit_cuts_rows_of_data(real):
    _, con = real
    (store,) = con.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchone()
    found = json.loads(traceq("diff", "a", "b", "--limit", 2, "--json", "--store", store).out)
    assert (len(found["rows"]), found["row_count"], found["truncated"]) == (2, 2, True)


# What holds for any two runs -----------------------------------------------------------------------------------

NAMES = [
    GEMM,
    ADD,
    MUL,
    "triton_poi_fused_add_mul_0",
    "triton_red_fused_sum_1",
    "nvjet_tst_64x8",
    "ncclDevKernel_AllReduce",
]
kernels = st.tuples(st.sampled_from(NAMES), st.integers(1, 40))
programs = st.lists(st.lists(kernels, min_size=1, max_size=6), min_size=2, max_size=4)
FEW = settings(
    max_examples=5 if SLOW else 3, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
ANTI = {"removed": "added", "added": "removed"}


@FEW
@given(programs, programs, st.integers(0, 5))
def test_turned_round_every_difference_is_its_negative(tmp_path_factory, one, two, pause):
    _, con = compared(tmp_path_factory.mktemp("turn"), trace(one, pause=pause), trace(two), steps=(50_000, 60_000))
    there, back = diff(con, "a", "b"), diff(con, "b", "a")
    turned = {(p.part, ANTI.get(p.what, p.what)): (-p.delta_ns, -p.delta_estimate_ns) for p in back.parts}
    assert {(p.part, p.what): (p.delta_ns, p.delta_estimate_ns) for p in there.parts} == turned
    for m, n in zip(tables.measures(there), tables.measures(back), strict=True):
        assert (m["delta"], m["verdict"]) == (None if n["delta"] is None else -n["delta"], n["verdict"])


@FEW
@given(programs)
def test_any_run_compared_with_itself_is_nothing(tmp_path_factory, one):
    with opened(tmp_path_factory.mktemp("self"), a=trace(one)) as con:
        found = diff(con, "a", "a")
    assert {p.delta_ns for p in found.parts} <= {0}
    assert {m["delta"] for m in tables.measures(found)} <= {0, None}


@FEW
@given(programs, programs)
def test_other_names_within_a_category_move_nothing_between_categories(tmp_path_factory, one, two):
    again = [[(RENAMED.get(name, name), dur) for name, dur in step] for step in two]
    con = opened(tmp_path_factory.mktemp("names"), a=trace(one), b=trace(two), renamed=trace(again))
    sums = []
    for second in ("b", "renamed"):
        found = diff(con, "a", second)
        by_category = {}
        for r in tables.records(tables.categories(found)):
            held = by_category.setdefault(r["category"], [0, 0])
            held[0] += r["a_ns"]
            held[1] += r["b_ns"]
        by_part = {}
        for p in found.parts:
            by_part[p.part] = by_part.get(p.part, 0) + p.delta_ns
        sums.append((by_category, by_part))
    assert sums[0] == sums[1]


RENAMED = {
    GEMM: "ampere_sgemm_64x32_nn",
    ADD: ADD.replace("add", "renamed"),
    "triton_red_fused_sum_1": "triton_red_fused_mean_7",
}


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20), st.integers(1, 50))
def test_rounded_parts_sum_to_the_rounded_whole(totals, steps):
    parts = per_step(totals, steps)
    assert sum(parts) == round(Fraction(sum(totals), steps))
    assert all(abs(part - Fraction(total, steps)) <= 1 for part, total in zip(parts, totals, strict=True))


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_a_split_sums_to_what_was_split(total, weights):
    assert sum(split(total, weights)) == total


def kernel(name, ns, origin="aten", category="elementwise", count=1, op=None, **known):
    return Kernel(category, origin, name, name, "forward", op, None, None, None, Fraction(count), ns, **known)


def made(name, ns, **known):
    return kernel(name, ns, origin="inductor", category="fused_pointwise", **known)


def replaced(found):
    return {f.made.name: [(k.name, k.count, k.ns) for k in f.replaced] for f in found.fused}


def test_a_kernel_that_one_side_has_more_of_is_left_over():
    found = match([kernel("x", 90, count=3)], [kernel("x", 30, count=1)])
    assert [(p.how, p.first and p.first.ns, p.second and p.second.ns) for p in found.pairs] == [
        ("same", 30, 30),
        ("removed", 60, None),
    ]


def test_a_gemm_that_another_library_computes_is_a_change():
    found = match(
        [kernel("cutlass_gemm", 90, category="gemm", origin="cutlass")],
        [kernel("triton_tem_mm", 95, category="gemm", origin="inductor")],
    )
    assert [p.how for p in found.pairs] == ["changed"]


def test_what_no_name_lists_goes_to_kernels_that_may_do_more():
    foreach = kernel("triton_for_fused_0", 10, origin="inductor", category="fused_foreach")
    found = match([kernel("x", 90, op="aten::_foreach_add_")], [foreach], ({}, {"triton_for_fused_0": Contents()}))
    assert [(f.made.name, sum(k.ns for k in f.replaced)) for f in found.fused] == [("triton_for_fused_0", 90)]


ONLY_ADD = Contents(("add",), has_more=False)


def test_of_two_kernels_that_add_the_first_takes_the_first_eager_one():
    eager = [kernel("late", 70, op="aten::add", place=200.0), kernel("early", 20, op="aten::add", place=100.0)]
    fused = [made("in_front", 5, place=1.0), made("behind", 30, place=2.0)]
    told = {"in_front": ONLY_ADD, "behind": ONLY_ADD}
    sized = [[replace(k, largest=64) for k in side] for side in (eager, fused)]
    assert replaced(match(*sized, ({}, told))) == {"in_front": [("early", 1, 20)], "behind": [("late", 1, 70)]}


def test_a_kernel_takes_eager_ones_of_its_own_size():
    eager = [kernel("short", 10, op="aten::add", largest=8), kernel("long", 90, op="aten::add", largest=64)]
    fused = [made("of_64", 5, largest=64), made("of_8", 5, elements=8), made("in_its_source", 5, largest=5)]
    told = {"of_64": ONLY_ADD, "of_8": ONLY_ADD, "in_its_source": replace(ONLY_ADD, elements=frozenset({64}))}
    assert replaced(match(eager, fused, ({}, told))) == {
        "of_64": [("long", Fraction(1, 2), 45)],
        "in_its_source": [("long", Fraction(1, 2), 45)],
        "of_8": [("short", 1, 10)],
    }


def test_where_no_size_is_known_time_decides_in_the_order_of_both():
    eager = [kernel("early", 40, op="aten::add", place=1.0), kernel("late", 60, op="aten::add", place=2.0)]
    fused = [made("in_front", 10, place=1.0), made("behind", 10, place=2.0)]
    found = match(eager, fused, ({}, {"in_front": ONLY_ADD, "behind": ONLY_ADD}))
    assert replaced(found) == {
        "in_front": [("early", 1, 40), ("late", Fraction(1, 6), 10)],
        "behind": [("late", Fraction(5, 6), 50)],
    }


def test_a_source_names_what_a_name_has_no_room_for():
    fused = [made("named", 10), made("unknown", 10)]
    eager = [kernel("x", 90, op="aten::tanh")]
    by_name = {"named": Contents(("add",), has_more=True), "unknown": Contents()}
    assert set(replaced(match(eager, fused, ({}, by_name)))) == {"named", "unknown"}
    by_source = {"named": Contents(("add", "tanh"), has_more=False), "unknown": Contents()}
    assert replaced(match(eager, fused, ({}, by_source))) == {"named": [("x", 1, 90)]}


def test_a_phase_that_the_other_run_lacks_parts_nothing():
    stepped = replace(kernel("x", 90, op="aten::_foreach_add_"), phase="optimizer")
    compiled = made("triton_for_fused_0", 10)
    assert replaced(match([stepped], [compiled])) == {"triton_for_fused_0": [("x", 1, 90)]}
    assert replaced(match([stepped], [compiled, replace(kernel("y", 5), phase="optimizer")])) == {}


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.sampled_from([None, 8, 64])), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.sampled_from([None, 8, 64])), min_size=1, max_size=5),
)
def test_whatever_is_dealt_out_is_dealt_out_whole(one, two):
    eager = [kernel(f"e{n}", ns, op="aten::add", count=c, largest=size) for n, (ns, c, size) in enumerate(one)]
    fused = [made(f"m{n}", ns, count=c, largest=size) for n, (ns, c, size) in enumerate(two)]
    found = match(eager, fused, ({}, {k.name: ONLY_ADD for k in fused}))
    for k in eager:
        parts = [p for f in found.fused for p in f.replaced if p.name == k.name]
        assert (sum(p.ns for p in parts), sum(p.count for p in parts)) == (k.ns, k.count)


# What stayed unfused --------------------------------------------------------------------------------------------

GRAPH = ("Torch-Compiled Region: 0/0", "## Call CompiledFxGraph f1 ##")
LEFT = (  # kernel, µs, operators and ranges around its launch, from the outside
    ("at::native::sort", 50, (*GRAPH, "aten::sort")),
    ("at::native::scaled", 40, (*GRAPH, "mine::scale", "aten::mul")),
    ("triton_poi_fused_add_0", 30, (*GRAPH, "triton_poi_fused_add_0")),
    ("at::native::sin", 20, ("Torch-Compiled Region: 0/0", "aten::sin")),
    ("at::native::zeros", 15, ("CompiledFunctionBackward", "aten::zero_")),
    ("at::native::step", 10, ("Optimizer.step#SGD.step", "aten::_foreach_add_")),
    ("at::native::loss", 5, ("aten::mse_loss",)),
)


def test_what_stayed_unfused_is_listed_by_cost_with_its_reason(tmp_path):
    compiled = trace([[(name, dur) for name, dur, _ in LEFT]] * 3)
    around = {name: marks for name, _, marks in LEFT}
    launches = {e["args"]["correlation"]: e for e in compiled["traceEvents"] if e["cat"] == "cuda_runtime"}
    for e in [e for e in compiled["traceEvents"] if e["cat"] == "kernel"]:
        start = launches[e["args"]["correlation"]]["ts"]
        for depth, name in enumerate(around[e["name"]]):
            kind = "user_annotation" if name.startswith(("##", "Optimizer")) else "cpu_op"
            compiled["traceEvents"].append(row(kind, name, start - 0.5 + depth / 10, 2 - depth / 5, None))
    found, _ = compared(tmp_path, trace([[(ADD, 10)]] * 3), compiled)
    assert [(r["name"], r["reason"], r["ns_per_step"]) for r in tables.records(tables.unfused(found))] == [
        ("at::native::sort", "library call", 50_000),
        ("at::native::scaled", "custom operator", 40_000),
        ("at::native::sin", "graph break", 20_000),
        ("at::native::zeros", "wrapper", 15_000),
        ("at::native::step", "optimizer", 10_000),
        ("at::native::loss", "outside", 5_000),
    ]
