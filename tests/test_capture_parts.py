"""Parts of `traceq capture` that need no torch: plans, loops, names of files, records, distances, blocks."""

import os
import subprocess
import sys

import pytest
from clirun import environment

from traceq.analysis import blocks, outputs
from traceq.capture import course, launch, modes, nsys, profiling, record
from traceq.capture.record import Record, Spec
from traceq.errors import TraceqError

MS = 1_000_000


@pytest.mark.parametrize(
    ("step_ns", "left", "expected"),
    [
        (5 * MS, 10_000, (20, 10)),  # a tenth of a second
        (200_000, 10_000, (500, 10)),
        (50_000, 10_000, (1000, 10)),  # but no more than 1,000 steps
        (5 * MS, None, (10, 10)),  # no more than ten where the end is not known
        (300 * MS, 10_000, (1, 10)),
        (5 * MS, 80, (10, 10)),
        (5 * MS, 10, (1, 3)),
        (5 * MS, 9, (0, 0)),  # no timing at all
    ],
)
def test_blocks_are_as_long_as_the_script_allows(step_ns, left, expected):
    planned = course.plan(step_ns, left)
    assert (planned.block_steps, planned.synced_steps) == expected
    assert left is None or course.BLOCKS * planned.block_steps + planned.synced_steps <= left


@pytest.mark.parametrize(("in_a_row", "block_steps"), [(10_000, 500), (200, 50), (3, 1)])
def test_most_blocks_end_before_a_loop_does(in_a_row, block_steps):
    assert course.plan(200_000, 10_000, in_a_row).block_steps == block_steps


IN_A_ROW = {
    "for i in range(900):\n    here()\n": 900,
    "for e in range(10):\n    for b in range(200):\n        here()\n": 200,
    "for e in range(10):\n    for b in range(200):\n        for c in range(2):\n            here()\n": 400,
    "for e in range(10):\n    for b in range(200):\n        if b % 4 == 3: here()\n": 50,
    "for e in range(3):\n    for b in range(5):\n        here()\n": 15,
}


@pytest.mark.parametrize(("text", "in_a_row"), IN_A_ROW.items())
def test_steps_in_a_row_are_those_of_the_inner_loops(text, in_a_row, tmp_path):
    assert told_of(text, "in_a_row", tmp_path) == f"{in_a_row}\n"


LOOPS = {
    "for i in range(7):\n    here()\n": 7,
    "n = 3\nfor e in range(n):\n    for b in [1, 2]:\n        here()\n": 6,
    "for i, b in enumerate([1, 2, 3]):\n    here()\n": 3,
    "def f():\n    for b in range(4):\n        here()\nfor e in range(5):\n    f()\n": 20,
    "import types\na = types.SimpleNamespace(steps=9)\nfor i in range(a.steps - 1):\n    here()\n": 8,
    "import sys\nfor i in range(int(sys.argv[1])):\n    here()\n": 11,
    "n = 4\nfor i in range(40):\n    if (i + 1) % n == 0 or i == 39:\n        here()\n": 10,
    "for i in range(40):\n    if not i % 8: here()\n": 5,
    "for i in range(40):\n    if i < 30:\n        here()\n": 40,
    "if __name__ == '__main__':\n    for i in range(6): here()\n": 6,
    "for i in here() or [1, 2]:\n    pass\n": None,
    "def DataLoader(d, n):\n    return d[::n]\nd = [1] * 8\nfor b in DataLoader(d, 4):\n    here()\n": None,
    "x = True\nwhile x:\n    here()\n    x = False\n": None,
    "for i in (j for j in range(3)):\n    here()\n": None,
    "here()\n": None,
    # Loops that are left early.
    "for i in range(40):\n    here()\n    if i == 30:\n        break\n": 30,
    "for i in range(40):\n    here()\n    if i + 1 >= 30:\n        break\n": 29,
    "n = 0\nfor e in range(5):\n    for b in range(4):\n        here()\n        n += 1\n        if n > 6: break\n": 7,
    "n, m = 100, 106\nwhile True:\n    here()\n    n += 1\n    if m and n >= m: break\n": 6,
    "n = 4\nwhile n < 50:\n    here()\n    n += 1\n": 46,
    "n = 4\nwhile n != 50:\n    for i in range(5):\n        here()\n        n += 1\n": 46,
    "n = x = 0\nwhile n < 70:\n    for b in range(35):\n        here()\n        n += 1\n    if x > 3: break\n": 35,
    "bad = 0\nfor i in range(40):\n    here()\n    if bad > 3: break\n    if i < 0: bad += 1\n": None,
    "bad = 0\nwhile bad < 3:\n    here()\n": None,
    "n = 0\nfor i in range(400):\n    if i % 4 == 0:\n        here()\n        n += 1\n        if n == 30: break\n": 30,
    "n = 0\nfor e in 1, 2:\n    for i in range(8):\n      n += 1\n      if not i % 2: here()\n    if n > 9: break": 4,
    "n = 50\nwhile n >= 1:\n    here()\n    n -= 1\n": None,
    "x = []\nfor i in range(40):\n    here()\n    if x: break\n": None,
    "x = []\nfor i in range(40):\n    here()\n    if x or i > 5: break\n": None,
    "x = []\nfor e in range(5):\n    for b in range(4):\n        here()\n    if x: break\n": 4,
    "for e in range(5):\n    for b in range(4):\n        here()\n    break\n": 4,
    "def f():\n    for b in range(9):\n        here()\n        if b > 5: return\nfor e in range(2):\n    f()\n": 12,
    "def data():\n    yield from '12345'\nfor i, b in enumerate(data()):\n    if i == 3: break\n    here()\n": 3,
    "for i in range(40):\n    here()\n    for j in range(3):\n        if j > 1: break\n": 40,
    "for i in range(40):\n    here()\n    if i < 3:\n        pass\n    else:\n        break\n": None,
    "x = 'n'\nfor i in range(40):\n    here()\n    if x == 'y': break\n": None,
}


@pytest.mark.parametrize(("text", "steps"), LOOPS.items())
def test_steps_are_read_off_the_loops_of_a_script(text, steps, tmp_path):
    assert told_of(text, "steps", tmp_path) == f"{steps}\n"


def told_of(text, what, folder):
    """What a script that calls `here` in its loops is expected to do, printed there."""
    begin = "from traceq.capture.expect import expected\ndef here():\n    found = expected()\n"
    (folder / "script.py").write_text(f"{begin}    print(found and found.{what})\n    raise SystemExit\n{text}")
    done = subprocess.run(
        [sys.executable, "script.py", "11"], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_name_is_never_given_twice(tmp_path):
    first, second = (launch.reserve(tmp_path / "new" / "t.json.gz") for _ in range(2))
    assert (first.trace.name, second.trace.name) == ("t.json.gz", "t-2.json.gz")
    assert second.record.name == "t-2.capture.json"


def test_a_record_is_written_whole_and_read_again(tmp_path):
    path = str(tmp_path / "t.capture.json")
    assert record.read_record(path) is None
    found = Record("python t.py", "eager", "t", notes=["one"])
    record.write(path, found)
    assert record.read_record(path) == found
    assert [p.name for p in tmp_path.iterdir()] == ["t.capture.json"]


@pytest.mark.parametrize(
    ("line", "said", "remedy"),
    [
        pytest.param(
            b"CUPTI initialization failed, CUDA activities will be missing: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS\n",
            "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS",
            "another tool holds the tracer",
            id="R-161",
        ),
        pytest.param(
            b"function cuptiActivityEnable failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)\n",
            "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            "NVreg_RestrictProfilingToAdminUsers=0",
            id="R-162",
        ),
    ],
)
def test_what_the_device_tracer_says_is_told_with_its_remedy(line, said, remedy, capfd):
    notes = []
    with profiling.quiet(notes.append):
        os.write(2, line)
    (note,) = notes
    assert said in note
    assert remedy in note
    assert capfd.readouterr().err == ""


KINETO = b"""\
WARNING:2026-11-30 22:33:20 27:27 init.cpp:155] function cbapi->getCuptiStatus() failed with error CUPTI_ERROR_BUSY (7)
WARNING:2026-11-30 22:33:20 27:27 init.cpp:156] CUPTI initialization failed - CUDA profiler activities will be missing
INFO:2026-11-30 22:33:20 2786:2786 init.cpp:158] If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to https://a/b
[W1130 22:33:20.982 profiler_kineto.cpp:330] Warning: Profiler clears events at the end of each cycle.
/x/torch/profiler/profiler.py:238: UserWarning: Warning: Profiler clears events at the end of each cycle.
  _warn_once(
"""


def test_what_the_tracer_advises_is_no_fault_and_what_the_script_writes_comes_out(capfd):
    notes = []
    with profiling.quiet(notes.append):
        os.write(2, b"half a ")
        os.write(2, b"line\n" + KINETO + b"  \xe4 [W] script.py:3: UserWarning: its own\n  warn()\n\nlast")
    assert [note.split(":")[0] for note in notes] == ["the device tracer said CUPTI_ERROR_BUSY"]
    assert capfd.readouterr().err == "half a line\n  \ufffd [W] script.py:3: UserWarning: its own\n  warn()\n\nlast"


@pytest.mark.parametrize(
    ("pipelined", "expected"),
    [
        ((180, 200, 220), True),
        ((18, 19, 20), True),  # their intervals are that far apart
        ((15, 19, 25), False),
        ((5, 21, 80), True),  # over twice as long, however little that is sure of
        ((2, 3, 4), False),
    ],
)
def test_pipelined_steps_that_are_slower_than_synced_ones_are_a_disturbance(pipelined, expected):
    low, median, high = (ms * MS for ms in pipelined)
    found = Record("python t.py", "eager", "t", step_synced_ns={"median": 10 * MS, "low": 2 * MS, "high": 14 * MS})
    found.step_pipelined_ns = {"median": median, "low": low, "high": high}
    assert launch.is_disturbed(found) == expected
    found.step_synced_ns = None
    assert not launch.is_disturbed(found)


def test_peaks_that_cannot_be_measured_have_a_reason(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    peaks, fault = launch.measured_peaks()
    assert peaks is None
    assert fault.endswith("no CUDA GPU that torch can use, so there are no peaks to measure")


@pytest.mark.parametrize("text", ["", "fast", "eager,,fast"])
def test_only_modes_are_compared(text):
    with pytest.raises(TraceqError, match="--compare"):
        modes.parse(text)


def test_modes_are_named_once_and_keep_their_order():
    assert modes.parse("default, eager,default") == ("default", "eager")


def test_each_mode_has_a_trace_of_its_own(tmp_path):
    spec = Spec("script", "a.py", [], "", "", "a", "python a.py")
    names = [modes.Campaign(spec, output=tmp_path / "x.json.gz").wanted(part).name for part in (None, "eager")]
    assert names == ["x.json.gz", "x-eager.json.gz"]


def kept(*values, losses=()):
    return {"losses": list(losses), "outputs": [[{"shape": [len(values)], "dtype": "f", "values": list(values)}]]}


def test_outputs_differ_by_their_largest_difference():
    (found,) = outputs.distances(kept(1.0, -4.0), kept(1.5, -4.0))
    assert (found.what, found.values, found.absolute, found.relative) == ("outputs", 2, 0.5, 0.125)


def test_losses_are_told_apart_from_outputs():
    losses, rest = outputs.distances(kept(1.0, losses=[2.0]), kept(1.0, losses=[1.0]))
    assert (losses.what, losses.absolute) == ("losses", 1.0)
    assert (rest.what, rest.absolute) == ("outputs", 0.0)


def test_values_that_cannot_be_compared_are_named():
    (shape,) = outputs.distances(kept(1.0), kept(1.0, 2.0))
    (odd,) = outputs.distances(kept(1.0), kept("nan"))
    assert (shape.absolute, shape.fault) == (None, "1 values against 2")
    assert (odd.absolute, odd.fault) == (None, "1 values are NaN or infinite on one side only")
    assert outputs.distances(None, None) == []


def test_blocks_are_ranked_by_gain_for_each_second_of_compiling():
    eager = [10.0 * MS] * 7
    steps = {
        "slow to compile": [5.0 * MS] * 7,
        "quick": [8.0 * MS] * 7,
        "worse": [12.0 * MS] * 7,
        "worst": [13.0 * MS] * 7,
        "free": [10.0 * MS] * 7,
    }
    costs = {"slow to compile": 10 * 10**9, "quick": 10**9, "worse": 10**9, "worst": 10 * 10**9, "free": None}
    found = blocks.ranked(eager, steps, costs)
    assert [(b.name, b.gain_ns, b.verdict) for b in found] == [
        ("quick", 2 * MS, "real"),
        ("slow to compile", 5 * MS, "real"),
        ("free", 0, "within noise"),
        ("worse", -2 * MS, "real"),
        ("worst", -3 * MS, "real"),
    ]
    assert [b.gain_per_s for b in found] == [2 * MS, 0.5 * MS, None, -2 * MS, -0.3 * MS]


class Allocator:
    """What torch.cuda says of its memory, of two devices; there is no GPU here."""

    def __init__(self, *segments):
        self.segments = segments

    def current_device(self):
        return 1

    def memory_snapshot(self):
        if not self.segments:
            raise RuntimeError("cudaMallocAsync does not yet support snapshot")
        return [
            {"device": device, "segment_pool_id": pool, "total_size": total, "allocated_size": allocated}
            for device, pool, total, allocated in self.segments
        ]


def test_memory_that_graphs_keep_is_what_their_pools_hold_beyond_allocations():
    common, graphs, elsewhere = (1, (0, 0), 900, 100), (1, (0, 3), 70, 20), (0, (0, 5), 4000, 0)
    assert course._kept_by_graphs(Allocator(common, graphs, (1, (2, 0), 8, 0), elsewhere)) == 50 + 8
    assert course._kept_by_graphs(Allocator(common)) == 0
    assert course._kept_by_graphs(Allocator()) == 0


class Marks:
    """torch.cuda as far as nsys is told of steps by it; there is no GPU here."""

    def __init__(self):
        self.said = []
        self.cuda = self.profiler = self.nvtx = self

    def synchronize(self):
        self.said.append("wait")

    def start(self):
        self.said.append("start")

    def stop(self):
        self.said.append("stop")

    def range_push(self, name):
        self.said.append(name)

    def range_pop(self):
        self.said.append("pop")


@pytest.mark.parametrize("wait", [0, 2])
def test_nsys_records_whole_steps_after_those_that_it_waits_for(wait):
    marks = Marks()
    steps = nsys.Range(marks, wait, 2)
    for _ in range(wait):
        steps.step()
    assert marks.said == []
    for _ in range(3):
        steps.step()
    ranges = [f"step {wait + 1}", "pop", f"step {wait + 2}", "pop"]
    assert marks.said == ["wait", "start", *ranges, "wait", "stop"]
    steps.step()
    steps.stop()
    assert len(marks.said) == 8


def test_a_recording_by_nsys_that_is_cut_is_ended(tmp_path):
    marks = Marks()
    steps = nsys.Range(marks, 0, 5)
    steps.step()
    steps.stop()
    assert marks.said == ["wait", "start", "step 1", "wait", "stop"]
    assert not steps.export(str(tmp_path / "x.nsys-rep"))
    assert not list(tmp_path.iterdir())
