"""What torch.compile did, seen from beside it: real compilations in processes of their own. Skipped without torch."""

import importlib.util
import json
import shutil
import subprocess
import sys
import textwrap

import pytest
from capturing import SCALAR
from clirun import environment, shared

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

WATCHED = """
import json, runpy, sys
from traceq.capture import compiler
assert not any(name.partition(".")[0] in ("torch", "triton") for name in sys.modules)
notes = []
compiler.watch(notes.append)
runpy.run_path(sys.argv[1], run_name="__main__")
with open(sys.argv[2], "w") as file:
    json.dump(compiler.facts(), file)
for note in notes:
    print("note:", note)
"""


def python(folder, *argv):
    """Run Python in a folder, with caches of its own."""
    env = environment(**SCALAR, TORCHINDUCTOR_CACHE_DIR=folder / "cache", TRITON_CACHE_DIR=folder / "triton")
    done = subprocess.run([sys.executable, *map(str, argv)], cwd=folder, env=env, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done


def watched(folder, code):
    """The facts of a script, and what it printed."""
    script = folder / "script.py"
    script.write_text("import torch\n" + textwrap.dedent(code), "utf-8")
    done = python(folder, "-c", WATCHED, script, folder / "facts.json")
    return json.loads((folder / "facts.json").read_text("utf-8")), done


def line_of(folder, text):
    """Number of the only line of the script with that text."""
    lines = (folder / "script.py").read_text("utf-8").splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return number


def test_facts_that_cannot_be_read_are_none_and_it_is_said(tmp_path):
    facts, done = watched(
        tmp_path,
        """
        import torch._dynamo.utils
        torch.compile(torch.relu, backend="eager")(torch.ones(2))
        del torch._dynamo.utils.get_compilation_metrics  # as a torch would be that keeps them elsewhere
        """,
    )
    assert facts["graph_breaks"] is None
    assert facts["recompiles"] == []
    assert done.stdout.decode().startswith("note: graph breaks of the compiler were not recorded: AttributeError: ")


BREAKING = """
def helper(x):
    return x.sum().item()  # in a helper

@torch.compile(backend="eager")
def step(x):
    x = x * 2
    print("a step")
    if x.mean() > 0:
        x = x + 1
    return x * helper(x)

@torch.compile(backend="eager")
def looping(x):
    for _ in range(3):
        x = x + 1
        if x.sum() > 0:  # in a loop
            x = x * 2
    return x

@torch.compile(backend="eager")
def whole(x):
    return torch.relu(x) + 1

step(torch.ones(4))
looping(torch.ones(3))
whole(torch.ones(5))
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    facts, done = watched(folder, BREAKING)
    return folder, facts, done


def places(facts):
    return {(b["file"], b["line"], b["function"]) for b in facts["graph_breaks"]}


def test_each_graph_break_is_found_on_its_line(broken):
    folder, facts, _ = broken
    assert places(facts) == {
        ("script.py", line_of(folder, "in a helper"), "helper"),
        ("script.py", line_of(folder, 'print("a step")'), "step"),
        ("script.py", line_of(folder, "if x.mean() > 0"), "step"),
        ("script.py", line_of(folder, "in a loop"), "looping"),
    }


def test_graph_breaks_say_why_in_one_line(broken):
    folder, facts, _ = broken
    reasons = {b["line"]: b["reason"] for b in facts["graph_breaks"]}
    assert "item" in reasons[line_of(folder, "in a helper")]
    assert reasons[line_of(folder, "if x.mean() > 0")] == "Data-dependent branching"
    assert [reason for reason in reasons.values() if "\n" in reason] == []


def test_a_branch_on_data_breaks_once(broken):
    folder, facts, _ = broken
    at = line_of(folder, "if x.mean() > 0")
    assert [b["count"] for b in facts["graph_breaks"] if b["line"] == at] == [1]


def test_nothing_was_compiled_again(broken):
    assert broken[1]["recompiles"] == []


def test_what_the_script_prints_stays_the_same(broken):
    folder, _, done = broken
    plain = python(folder, "script.py")
    assert done.stdout == plain.stdout == b"a step\n"
    assert without_times(done.stderr) == without_times(plain.stderr)


def without_times(err):
    """Standard error without the time and process that torch's warnings begin with."""
    return [line.partition(b"] ")[2] if line.startswith(b"W") else line for line in err.splitlines()]


AGAIN = """
@torch.compile(backend="eager", dynamic=False)
def step(x, flag):
    return x * 2 if flag else x * 3

step(torch.ones(4), True)
step(torch.ones(4), True)
step(torch.ones(8), True)
step(torch.ones(8, dtype=torch.float64), True)
step(torch.ones(8, dtype=torch.float64), False)
torch._dynamo.reset()
step(torch.ones(4), True)
"""


def test_recompilations_name_the_guard_that_failed(tmp_path):
    facts, _ = watched(tmp_path, AGAIN)
    found = facts["recompiles"]
    at = {(r["file"], r["line"], r["function"], r["count"]) for r in found}
    assert at == {("script.py", line_of(tmp_path, "@torch.compile"), "step", 1)}
    size, dtype, flag = (r["guard"] for r in found)
    assert "size mismatch at index 0. expected 4, actual 8" in size
    assert "dtype mismatch" in dtype
    assert "flag" in flag
    assert [guard for guard in (size, dtype, flag) if "#" in guard or "\n" in guard] == []
    assert facts["graph_breaks"] == []


TRAINED = """
import time
import torch._inductor.compile_fx  # takes as long as compiling does, and is none
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
    def forward(self, x):
        return torch.softmax(self.layer(x), -1) + x

began = time.perf_counter_ns()
torch.compile(Block())(torch.ones(4, 16)).sum().backward()
open("took", "w").write(str(time.perf_counter_ns() - began))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = shared(tmp_path_factory, "trained", lambda to: watched(to, TRAINED))
    return folder, json.loads((folder / "facts.json").read_text("utf-8"))


def test_phases_sum_to_no_more_than_the_time_that_passed(trained):
    folder, facts = trained
    phases = {p["phase"]: p["ns"] for p in facts["compile_phases"]}
    assert {"dynamo", "aot_autograd", "inductor", "cpp"} <= set(phases)
    assert 0.8 < sum(phases.values()) / int((folder / "took").read_text()) <= 1


def test_the_sources_of_generated_kernels_are_found(trained):
    _, facts = trained
    found = {k["kernel"]: k for k in facts["kernel_sources"]}
    assert any("softmax" in name and "backward" not in name for name in found)
    assert any("backward" in name for name in found)
    for kernel in found.values():
        assert kernel["language"] == "cpp"
        assert "kernel(" in kernel["source"]
        assert kernel["registers"] is None
        # The comment above a library call names what the library computes.
        assert not {"aten.mm", "aten.addmm"} & set(kernel["ops"] or ())


def test_no_folder_of_this_machine_is_in_the_facts(trained, broken):
    for folder, facts, *_ in (trained, broken):
        assert str(folder) not in json.dumps(facts)


def test_without_compilation_there_are_no_facts(tmp_path):
    facts, _ = watched(tmp_path, "torch.ones(3) + 1")
    assert facts == {"graph_breaks": [], "recompiles": [], "compile_phases": [], "kernel_sources": []}


def test_the_kernels_of_a_fresh_cache_are_found_too(tmp_path):
    code = """
    with torch._inductor.utils.fresh_inductor_cache():
        torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(64))
    """
    facts, _ = watched(tmp_path, "import torch._inductor.utils\n" + textwrap.dedent(code))
    assert [k["kernel"] for k in facts["kernel_sources"] if "sin" in k["kernel"]]


def on_a_gpu(test):
    """Marks a test that needs an NVIDIA GPU."""
    return pytest.mark.cuda(pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU")(test))


ON_GPU = """
import triton, triton.language as tl

@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

x = torch.ones(1 << 16, device="cuda")
doubled[(64,)](x, torch.empty_like(x), x.numel(), BLOCK=1024, num_warps=8)
compiled = torch.compile(lambda x: torch.softmax(x.view(256, 256), -1).sum() + torch.sin(x).mean())
compiled(x)
compiled(x)
with torch.profiler.profile(record_shapes=True) as recorded:
    compiled(x)
    torch.cuda.synchronize()
recorded.export_chrome_trace("trace.json")
"""


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    facts, _ = watched(folder, ON_GPU)
    events = json.loads((folder / "trace.json").read_text("utf-8"))["traceEvents"]
    return {k["kernel"]: k for k in facts["kernel_sources"]}, facts, events


@on_a_gpu
def test_every_triton_kernel_of_a_trace_has_its_source(on_gpu):
    found, _, events = on_gpu
    ran = {e["name"] for e in events if e.get("cat") == "kernel" and e["name"].startswith("triton_")}
    assert ran
    assert ran <= set(found)
    assert [name for name in ran if f"def {name}(" not in found[name]["source"]] == []


@on_a_gpu
def test_the_hash_of_a_kernel_is_the_one_in_the_trace(on_gpu):
    found, _, events = on_gpu
    told = {e["name"]: e["args"]["kernel_hash"] for e in events if (e.get("args") or {}).get("kernel_hash")}
    assert told
    assert {name: found[name]["hash"] for name in told} == told


@on_a_gpu
def test_triton_tells_what_a_kernel_needs(on_gpu):
    found, facts, _ = on_gpu
    for name, kernel in found.items():
        if name.startswith("triton_"):
            assert kernel["num_warps"] >= 1
            assert kernel["registers"] >= 1
            assert kernel["spills"] is not None
            assert kernel["shared_bytes"] is not None
            assert kernel["ops"]
    assert {"triton", "inductor", "dynamo"} <= {p["phase"] for p in facts["compile_phases"]}


@on_a_gpu
def test_a_kernel_written_by_hand_is_found(on_gpu):
    hand = on_gpu[0]["doubled"]
    assert hand["num_warps"] == 8
    assert "def doubled(" in hand["source"]


@on_a_gpu
def test_the_peaks_of_this_gpu(tmp_path):
    env = environment(XDG_CACHE_HOME=tmp_path)
    command = [sys.executable, "-m", "traceq.capture.peaks"]
    first, again = (subprocess.run(command, env=env, capture_output=True, check=True).stdout for _ in range(2))
    assert first == again
    peaks = json.loads(first)
    assert peaks["bytes_per_s"] > 10**11
    assert peaks["flops"]["bfloat16"] > peaks["flops"]["float32"] > 10**12
