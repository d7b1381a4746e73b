"""One program recorded twice, by torch.profiler and by Nsight Systems: what both can see agrees.

fixtures/both holds four steps of a small GPT in eager mode on one kind of machine: the kernels are the same, their
times are those of two executions. What differs on purpose is said at the place.
"""

import contextlib
import re

import pytest
from recorded import FIXTURES

from traceq import query
from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import open_store

CLOSE = 0.05  # two executions of one kernel on one kind of GPU


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


def plain(name):
    """A demangled name without what demanglers write differently: casts in templates, the unnamed namespace."""
    name = re.sub(r"\((?:int|bool|unsigned int|unsigned long|long|\w+::\w+)\)(?=[-\w])", "", name)
    return re.sub(r"<unnamed>|\(anonymous namespace\)", "", name).partition("<")[0]


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
    sums = "SELECT format, name, count(*), sum(dur_ns) FROM kernels JOIN traces USING (trace_id) GROUP BY ALL"
    found = {"kineto": {}, "nsys": {}}
    for recorder, name, count, ns in both.execute(sums).fetchall():
        had = found[recorder].get(plain(name), (0, 0))
        found[recorder][plain(name)] = (had[0] + count, had[1] + ns)
    assert found["kineto"].keys() == found["nsys"].keys()
    assert len(found["nsys"]) > 15
    for name, (count, ns) in found["kineto"].items():
        assert found["nsys"][name][0] == count, name
        assert found["nsys"][name][1] == pytest.approx(ns, rel=2 * CLOSE), name


def test_the_share_of_matrix_products_agrees(both):
    found = answers(both, "gemm_share", "origin", "gemm_pct_of_kernel", "gemm_pct_of_busy")
    for (maker, of_kernel, of_busy), theirs in zip(found["kineto"], found["nsys"], strict=True):
        assert theirs[0] == maker
        assert theirs[1:] == pytest.approx((of_kernel, of_busy), abs=1)


def test_only_the_profiler_of_torch_sees_operators(both):
    ops = "SELECT format, count(op_id) FROM kernels JOIN traces USING (trace_id) GROUP BY ALL ORDER BY ALL"
    assert both.execute(ops).fetchall() == [("kineto", 572), ("nsys", 0)]
