"""One program recorded twice, by torch.profiler and by Nsight Systems: what both can see agrees.

fixtures/both holds four steps of a small GPT in eager mode on one kind of machine: the kernels are the same, their
times are those of two executions. What differs on purpose is said at the place.
"""

import contextlib

import pytest
from recorded import FIXTURES

from traceq import query
from traceq.analysis.diff import diff
from traceq.analysis.names import spelled
from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import open_store

CLOSE = 0.05  # two executions of one kernel on one kind of GPU
STARTING_NS = 150  # by as much a kernel of a microsecond takes longer in one of them


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    paths = [str(FIXTURES / "both" / name) for name in ("gpt4-eager.json.gz", "gpt4-eager.sqlite")]
    ingest(paths, folder / "store.duckdb", Options(step_range="step?"))
    with contextlib.closing(open_store(folder / "store.duckdb")) as con:
        yield con


def answers(con, name, *columns):
    """{run: rows of these columns}, with `kineto` and `nsys` for the runs."""
    found = {"kineto": [], "nsys": []}
    labels = dict(con.execute("SELECT label, format FROM runs JOIN traces USING (run_id)").fetchall())
    result = query.run(con, query.load(name), {})
    for row in result.rows:
        record = dict(zip([c.name for c in result.columns], row, strict=True))
        found[labels[record["run"]]].append(tuple(record[c] for c in columns))
    return found


def test_both_have_the_same_steps_with_the_same_kernels(both):
    found = answers(both, "steps", "step", "kernels", "launches")
    assert found["kineto"] == found["nsys"] == [(n, 143, 143) for n in range(4)]


def test_both_have_the_same_kernels_of_each_category(both):
    found = answers(both, "categories", "category", "kernels")
    assert sorted(found["kineto"]) == sorted(found["nsys"])
    assert dict(found["nsys"])["gemm"] == 192


def test_kernel_time_of_each_category_agrees(both):
    found = {run: dict(rows) for run, rows in answers(both, "categories", "category", "kernel_ns").items()}
    for category, ns in found["kineto"].items():
        assert found["nsys"][category] == pytest.approx(ns, rel=CLOSE), category


def test_kernel_time_of_each_name_agrees(both):
    """Their demanglers write casts, lambdas, constants and arguments differently."""
    sums = "SELECT format, name, count(*), sum(dur_ns) FROM kernels JOIN traces USING (trace_id) GROUP BY ALL"
    found = {"kineto": {}, "nsys": {}}
    for recorder, name, count, ns in both.execute(sums).fetchall():
        assert spelled(name) not in found[recorder]
        found[recorder][spelled(name)] = (count, ns)
    assert found["kineto"].keys() == found["nsys"].keys()
    assert len(found["nsys"]) == 30
    for name, (count, ns) in found["kineto"].items():
        assert found["nsys"][name][0] == count, name
        assert found["nsys"][name][1] == pytest.approx(ns, rel=2 * CLOSE, abs=count * STARTING_NS), name


@pytest.mark.parametrize(
    ("by_torch", "by_nsys"),
    [
        ("void f<128, true, false>(int, float const*)", "void f<(int)128, (bool)1, (bool)0>(int, const T1 *)"),
        ("void (anonymous namespace)::g<3ul>()", "void <unnamed>::g<(unsigned long)3>()"),
        ("void h<k(int&)::{lambda(A)#2}, B<-1> >()", "void h<k(int &)::[lambda(A) (instance 2)], B<(int)-1>>(T1)"),
        ("void h<k<int>(A&)::{lambda()#1}>(A)", "void h<void k<int>(T1 &)::[lambda() (instance 1)]>(T1)"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)  # fmt: skip
def test_two_spellings_are_one_name(by_torch, by_nsys):
    assert spelled(by_torch) == spelled(by_nsys)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<(int)1>()", "void f<(int)2>()"),
        ("void f<(bool)1>()", "void f<(bool)0>()"),
        ("void f<float>(int)", "void f<double>(int)"),
        ("gemm_128x4l", "gemm_128x4u"),
        ("f(int)", "f(float)"),
        ("(", ")"),
    ],
)
def test_other_kernels_have_other_names(one, other):
    assert spelled(one) != spelled(other)


def test_they_differ_by_no_kernel(both):
    matching = diff(both, *sorted(label for (label,) in both.execute("SELECT label FROM runs").fetchall())).matching
    assert {pair.how for pair in matching.pairs} == {"same"}
    assert not matching.fused


def test_the_share_of_matrix_products_agrees(both):
    found = answers(both, "gemm_share", "origin", "gemm_pct_of_kernel", "gemm_pct_of_busy")
    for (maker, of_kernel, of_busy), theirs in zip(found["kineto"], found["nsys"], strict=True):
        assert theirs[0] == maker
        assert theirs[1:] == pytest.approx((of_kernel, of_busy), abs=1)


def test_only_the_profiler_of_torch_sees_operators(both):
    ops = "SELECT format, count(op_id) FROM kernels JOIN traces USING (trace_id) GROUP BY ALL ORDER BY ALL"
    assert both.execute(ops).fetchall() == [("kineto", 572), ("nsys", 0)]
