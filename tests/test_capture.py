"""`traceq capture` runs a script as Python does, and records it: on the CPU, with a real torch."""

import os
import shutil
from pathlib import Path

import pytest
from capturing import capture, plain
from clirun import ROOT

pytest.importorskip("torch")

SCRIPTS_FOLDER = ROOT / "fixtures" / "scripts"
CASE_59, CASE_61, CASE_63 = (
    SCRIPTS_FOLDER / name
    for name in (
        "hand-59-capture-without-gpu",
        "hand-61-capture-arguments-and-main",
        "hand-63-capture-with-worker-processes",
    )
)
ONE_OP = "import torch\ntorch.mm(torch.ones(2, 2), torch.ones(2, 2))\n"
TRAINING = """
import sys
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(4, 8)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = (model(data) - data).pow(2).mean()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
"""
INFERENCE = """
import sys
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)).eval()
data = torch.randn(4, 8)
with torch.no_grad():
    for _ in range(int(sys.argv[1])):
        out = model(data)
print("out", out.sum().item())
"""


@pytest.fixture
def here(tmp_path):
    """A folder that writes scripts: here(name=text)."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return tmp_path

    return write


def copied(case, tmp_path):
    return Path(shutil.copytree(case, tmp_path / "case"))


# What must be as it is without traceq -------------------------------------------------------------------------------

SCRIPTS = {
    "output": ONE_OP + "import sys\nprint('out')\nprint('err', file=sys.stderr)\n",
    "status 3": ONE_OP + "import sys\nsys.exit(3)\n",
    "exit with a message": ONE_OP + "import sys\nsys.exit('that is all')\n",
    "an uncaught error": ONE_OP
    + "def f():\n    return 1 / 0\ntry:\n    f()\nexcept Exception as e:\n    raise ValueError('x') from e\n",
    "an error while importing": "import torch\nimport nothing_of_this_name\n",
    "its own excepthook": ONE_OP + "import sys\nsys.excepthook = lambda t, e, tb: print('hook', e)\n1 / 0\n",
    "a syntax error": "import torch\nif True\n",
    "main and names": ONE_OP
    + "import sys\nprint(sorted(globals()), __name__, __file__, __spec__, __package__, __doc__)\n"
    + "print(sys.argv, sys.path[0], sys.modules['__main__'].__file__)\n",
    "environment": ONE_OP + "import os\nprint(sorted(os.environ.items()))\n",
    "own modules of torch": ONE_OP
    + "print(*map(type, (torch.__spec__.loader, torch.__loader__)), torch.nn.Module.__call__.__name__)\n",
    "an exit function": ONE_OP + "import atexit\natexit.register(print, 'last words')\nprint('first')\n",
    "a thread that outlives": ONE_OP + "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()\n",
    "no torch at all": "print('hello')\n",
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_the_script_does_what_it_does_without_traceq(text, here):
    folder = here(script=text)
    expected = plain("script.py", "a", "b c", cwd=folder)
    got = capture("script.py", "a", "b c", cwd=folder)
    if "import torch" in text:
        assert got.what_the_script_did == expected.what_the_script_did
    else:
        assert (got.out, got.err) == (expected.out, expected.err)


def test_a_module_runs_as_with_python_m(tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mod.py").write_text(
        ONE_OP + "import sys\nprint(sys.argv, __name__, __package__, __spec__.name, sys.path[0])\n1 / 0\n"
    )
    expected = plain("-m", "pkg.mod", "--x", "1", cwd=tmp_path)
    got = capture("-m", "pkg.mod", "--x", "1", cwd=tmp_path)
    assert got.what_the_script_did == expected.what_the_script_did
    assert got.count("aten::mm") == 1


def test_a_module_that_is_not_there_is_told_as_python_tells_it(tmp_path):
    expected = plain("-m", "nothing_of_this_name", cwd=tmp_path)
    got = capture("-m", "nothing_of_this_name", cwd=tmp_path)
    assert (got.status, got.out, got.err) == expected.what_the_script_did


def test_code_runs_as_with_python_c(tmp_path):
    code = ONE_OP + "import sys\nprint(sys.argv, sys.path[0] == '')\nraise SystemExit(4)"
    assert capture("-c", code, "x", cwd=tmp_path).what_the_script_did == (
        plain("-c", code, "x", cwd=tmp_path).what_the_script_did
    )


def test_a_script_beside_a_module_of_the_standard_library_gets_its_own(tmp_path):
    (tmp_path / "json.py").write_text("answer = 42\n")
    (tmp_path / "script.py").write_text("import json\nprint(json.answer)\n")
    assert capture("script.py", cwd=tmp_path).out == plain("script.py", cwd=tmp_path).out == b"42\n"


# The cases of bug reports -------------------------------------------------------------------------------------------


def test_hand_59_without_a_gpu_the_cpu_is_recorded_and_it_is_said_once(tmp_path):
    folder = copied(CASE_59, tmp_path)
    got = capture("model.py", cwd=folder)
    assert (got.status, got.out) == (0, b"sum 192.0\n")
    assert got.notes[0] == "traceq: writing traces/model.json.gz"
    assert [p.name for p in got.traces] == ["model.json.gz"]
    assert got.count("aten::mm") == 3
    assert got.ask("SELECT count(*) FROM kernels") == [(0,)]
    assert len([n for n in got.notes if n == "traceq: no GPU was used: only the CPU side is recorded"]) == 1


HAND_61 = b"name __main__\nfile profile.py\nsteps 2 o out.txt rest ['a', 'b c']\nsibling says 42\n"


@pytest.mark.parametrize("above", [False, True], ids=["beside", "from the folder above"])
def test_hand_61_arguments_and_main(above, tmp_path):
    folder = copied(CASE_61, tmp_path)
    where, script = (folder.parent, "case/profile.py") if above else (folder, "profile.py")
    got = capture(script, "--steps", "2", "-o", "out.txt", "--", "a", "b c", cwd=where)
    assert (got.status, got.out) == (0, HAND_61)
    assert got.count("aten::mm") == 2


def test_hand_63_worker_processes_do_not_record(tmp_path):
    folder = copied(CASE_63, tmp_path)
    got = capture("model.py", cwd=folder)
    assert (got.status, got.out) == (0, b"children [0, 2]\nloader 28\n")
    assert len(got.traces) == 1
    assert got.count("aten::mm") == 2


# Steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "source"), [(TRAINING, "optimizer"), (INFERENCE, "forward")], ids=["train", "infer"])
def test_steps_are_found_timed_and_five_of_them_profiled(text, source, here):
    folder = here(script=text)
    got = capture("script.py", "150", cwd=folder)
    record = got.record()
    assert got.what_the_script_did == plain("script.py", "150", cwd=folder).what_the_script_did
    assert record["step_source"] == source
    assert len([t for t in record["timings"] if t["kind"] == "pipelined"]) >= 7
    assert len([t for t in record["timings"] if t["kind"] == "synced"]) >= 7
    assert got.ask("SELECT count(*) FROM steps") == [(5,)]
    assert got.ask("SELECT status, warnings FROM traces") == [("complete", "[]")]


def test_a_script_with_too_few_steps_keeps_its_trace(here):
    got = capture("script.py", "4", cwd=here(script=INFERENCE))
    assert got.status == 0
    assert got.count("aten::linear") == 8


def test_files_are_never_overwritten(here):
    folder = here(script=ONE_OP)
    first, second = (capture("script.py", cwd=folder) for _ in range(2))
    assert first.notes[0] == "traceq: writing traces/script.json.gz"
    assert second.notes[0] == "traceq: writing traces/script-2.json.gz"
    assert len(second.traces) == 2


def test_os_exit_loses_the_trace_and_it_is_said(here):
    got = capture("script.py", cwd=here(script=ONE_OP + "import os\nos._exit(0)\n"))
    assert got.status == 1
    assert "traceq: error: no trace was written" in got.notes
    assert not got.traces


def test_a_folder_that_cannot_be_written_stops_it_before_the_script_runs(here):
    folder = here(script="print('ran')\n")
    (folder / "file").write_text("")
    got = capture("-o", "file/trace.json", "script.py", cwd=folder)
    assert got.status == 2
    assert got.out == b""
    assert os.listdir(folder) == ["script.py", "file"] or sorted(os.listdir(folder)) == ["file", "script.py"]
