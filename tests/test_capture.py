"""`traceq capture` runs a script as Python does, and records it: on the CPU, with a real torch."""

import contextlib
import json
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from capturing import capture, finish, plain, start
from clirun import ROOT, environment, traceq

from traceq.units import show_ns

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

OF_ITS_OWN_KIND = """
import torch
class Called:
    def __call__(self, x):
        return x + 1
class Child(torch.nn.Module):
    forward = Called()
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.child, self.linear = Child(), torch.nn.Linear(2, 2)
    def parameters(self, rate):
        return [{"params": super().parameters(), "lr": rate}]
    def forward(self, x):
        return self.child(self.linear(x))
model = Model()
for _ in range(4):
    out = model(torch.ones(2, 2))
print(out.shape)
"""
TORCHSCRIPT = """
import warnings
warnings.simplefilter("ignore")
import torch
model, x = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.ones(2, 2)
traced = torch.jit.trace(model, x)
scripted = torch.jit.script(model)
for _ in range(60):
    a = scripted(x)
again = torch.jit.trace(model, x)
for _ in range(60):
    a = model(x)
print(a.shape, traced(x).shape, again(x).shape)
"""
DROPPED = """
import gc, torch
class Model(torch.nn.Linear):
    def __del__(self):
        print("dropped")
def train():
    model = Model(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(60):
        optimizer.zero_grad()
        model(torch.ones(2, 2)).sum().backward()
        optimizer.step()
train()
gc.collect()
print("end")
"""
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
    "a probe for torch": "import importlib.util\nprint(importlib.util.find_spec('torch').name)\n" + ONE_OP,
    "a post mortem": ONE_OP + "import sys, traceback\nsys.excepthook = lambda *_: traceback.print_last()\n1 / 0\n",
    "words of the command line": ONE_OP + "import sys\nprint(sys.orig_argv)\n",
    "a child that leaves with a message": ONE_OP
    + "import os, sys\nif os.fork() == 0:\n    sys.exit('the child leaves')\nprint(os.wait()[1])\n",
    "a warning of the compiler": ONE_OP + "x = 5\nprint(x is 5)\n",
    "a model of its own kind": OF_ITS_OWN_KIND,
    "TorchScript": TORCHSCRIPT,
    "a model that is dropped": DROPPED,
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_the_script_does_what_it_does_without_traceq(text, here):
    """R-174."""
    folder = here(script=text)
    expected = plain("script.py", "a", "b c", cwd=folder)
    got = capture("script.py", "a", "b c", cwd=folder)
    if "import torch" in text:
        assert got.what_the_script_did == expected.what_the_script_did
    else:
        assert (got.out, got.err) == (expected.out, expected.err)


def test_a_module_runs_as_with_python_m(tmp_path):
    """R-171."""
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
    """R-173."""
    (tmp_path / "json.py").write_text("answer = 42\n")
    (tmp_path / "script.py").write_text("import json\nprint(json.answer)\n")
    assert capture("script.py", cwd=tmp_path).out == plain("script.py", cwd=tmp_path).out == b"42\n"


def test_no_error_of_a_chain_shows_traceq(here):
    text = "import torch\nmodel = torch.nn.Linear(2, 2)\ntry:\n    model(torch.ones(3, 3))\n"
    got = capture(
        "script.py", cwd=here(script=f"{text}except RuntimeError as error:\n    raise KeyError(1) from error\n")
    )
    assert got.status == 1
    assert got.err.count(b"Traceback") == 2
    assert b"traceq" not in got.err


@pytest.mark.parametrize("kind", ["folder", "archive", "compiled"])
def test_what_python_runs_besides_files_of_source(kind, tmp_path):
    """A folder or an archive with a `__main__`, and a compiled file."""
    text = ONE_OP + "import sys\nprint(sys.argv, sys.path[0], __name__, __file__, __spec__ and __spec__.name)\n1 / 0\n"
    (tmp_path / "app").mkdir()
    main = tmp_path / "app" / "__main__.py"
    main.write_text(text)
    target = "app"
    if kind == "archive":
        target = shutil.make_archive(str(tmp_path / "app"), "zip", tmp_path / "app")
    elif kind == "compiled":
        target = py_compile.compile(str(main), str(tmp_path / "app.pyc"), doraise=True)
    expected = plain(target, "x", cwd=tmp_path)
    assert capture(target, "x", cwd=tmp_path).what_the_script_did == expected.what_the_script_did


def test_options_of_python_and_its_paths_reach_the_script(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "of_the_user.py").write_text("")
    (tmp_path / "script.py").write_text(ONE_OP + "import sys, of_the_user\nprint(sys._xoptions, sys.flags.safe_path)\n")
    path = os.pathsep.join([str(tmp_path / "lib"), environment()["PYTHONPATH"]])
    env = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    option = ["-X", "int_max_str_digits=0"]
    command = [sys.executable, *option, "-m", "traceq", "capture", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(**env), capture_output=True)
    assert (done.returncode, done.stdout) == (0, plain(*option, "script.py", cwd=tmp_path, env=env).out)


@pytest.mark.parametrize("of_standard_error", ["2>&-", "2>/dev/full"])
def test_a_script_runs_where_nobody_can_read_what_is_said(of_standard_error, here):
    folder = here(script=ONE_OP + "print('done')\n")
    command = f"{sys.executable} -P -m traceq capture script.py {of_standard_error}"
    done = subprocess.run(command, shell=True, cwd=folder, env=environment(), stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert (folder / "traces" / "script.json.gz").stat().st_size > 0


@pytest.mark.parametrize("name", ["new\nline.py", b"no\xffutf-8.py"], ids=repr)
def test_a_script_of_any_name_is_captured(name, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with open(path, "w") as file:
        file.write(ONE_OP + "print('done')\n")
    got = capture(os.fsdecode(name), cwd=tmp_path)
    assert (got.status, got.out, len(got.traces)) == (0, b"done\n", 1)
    assert got.ask("SELECT label FROM runs") == [(got.traces[0].name.removesuffix(".json.gz"),)]


def test_signals_that_come_twice_save_what_was_recorded(here):
    """To the group, and passed on. A loop of Python alone looks at signals all the time."""
    text = ONE_OP * 50 + "print('on', flush=True)\nx = 0\nwhile True:\n    x += 1\n"
    folder = here(script=text)
    process = start("script.py", cwd=folder)
    assert process.stdout.readline() == b"on\n"
    os.killpg(process.pid, signal.SIGTERM)
    got = finish(process, folder)
    assert (got.status, got.count("aten::mm")) == (128 + signal.SIGTERM, 50)


def test_a_signal_that_is_to_be_ignored_stays_so(here):
    folder = here(script=ONE_OP + "import signal\nprint(signal.getsignal(signal.SIGTERM))\n")
    command = f"trap '' TERM; exec {sys.executable} -P -m traceq capture script.py"
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"1\n")


# The cases of bug reports -------------------------------------------------------------------------------------------


def test_hand_59_without_a_gpu_the_cpu_is_recorded_and_it_is_said_once(tmp_path):
    """R-166."""
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
    """R-172, R-173."""
    folder = copied(CASE_61, tmp_path)
    where, script = (folder.parent, "case/profile.py") if above else (folder, "profile.py")
    got = capture(script, "--steps", "2", "-o", "out.txt", "--", "a", "b c", cwd=where)
    assert (got.status, got.out) == (0, HAND_61)
    assert got.count("aten::mm") == 2


def test_hand_63_worker_processes_do_not_record(tmp_path):
    """R-167, R-169, R-170."""
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


SHAPES_HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
model, data = nn.Linear(8, 8), torch.randn(4, 8)
def loss():
    return model(data).pow(2).mean()
"""
MADE = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
SGD = "a step ends when the optimizer SGD steps"
SHAPES = {
    "gradients accumulate": (
        f"{MADE}for i in range(320):\n    loss().backward()\n    if i % 4 == 3:\n        optimizer.step()\n"
        "        optimizer.zero_grad()\n",
        SGD,
        4 * 5,
    ),
    "a closure": (
        f"{MADE}def closure():\n    optimizer.zero_grad()\n    now = loss()\n    now.backward()\n    return now\n"
        "for _ in range(60):\n    optimizer.step(closure)\n",
        SGD,
        5,
    ),
    "two optimizers": (
        f"{MADE}other = nn.Linear(8, 8)\nsecond = torch.optim.Adam(other.parameters())\nfor _ in range(60):\n"
        "    loss().backward()\n    optimizer.step()\n    other(data).sum().backward()\n    second.step()\n",
        f"{SGD}, the first of several",
        2 * 5,
    ),
    "a scaler that leaves steps out": (
        f"{MADE}scaler = torch.amp.GradScaler('cpu', growth_interval=10**6)\nfor i in range(60):\n"
        "    optimizer.zero_grad()\n"
        "    scaler.scale(loss() * (float('inf') if i % 3 == 0 else 1)).backward()\n    scaler.step(optimizer)\n"
        "    scaler.update()\n",
        SGD,
        5,
    ),
    "compiled by the script": (
        f"{MADE}whole = torch.compile(loss, backend='eager')\nfor _ in range(60):\n    optimizer.zero_grad()\n"
        "    whole().backward()\n    optimizer.step()\n",
        SGD,
        5,
    ),
    "a look at the model before training": (
        "with torch.no_grad():\n    for _ in range(2):\n        model(data)\n"
        f"{MADE}for _ in range(60):\n    optimizer.zero_grad()\n"
        "    loss().backward()\n    optimizer.step()\n",
        SGD,
        5,
    ),
    "called in a nested function": (
        "def outer():\n    def inner():\n        with torch.no_grad():\n            return model(data)\n"
        "    return inner()\nfor _ in range(60):\n    outer()\n",
        "a step is one call of Linear",
        5,
    ),
}


@pytest.mark.parametrize(("text", "meaning", "products"), SHAPES.values(), ids=SHAPES)
def test_what_a_step_is_fits_the_script_and_is_said(text, meaning, products, here):
    got = capture("script.py", cwd=here(script=SHAPES_HEAD + text))
    assert got.status == 0
    assert got.notes.count(f"traceq: {meaning}") == 1
    assert got.ask("SELECT count(*) FROM steps") == [(5,)]
    assert got.count("aten::linear") == products
    assert not any("too few" in note for note in got.record()["notes"])
    assert len([t for t in got.record()["timings"] if t["kind"] == "pipelined"]) == 7


@pytest.mark.parametrize("end", ["import sys\nsys.stderr = None\n", "import os\nos.close(2)\n"])
def test_a_script_without_standard_error_is_recorded_all_the_same(end, here):
    got = capture("script.py", "60", cwd=here(script=end + TRAINING))
    assert (got.status, got.ask("SELECT count(*) FROM steps")) == (0, [(5,)])


def test_a_script_without_steps_says_that_none_were_seen(here):
    text = "import threading, torch\nmodel = torch.nn.Linear(2, 2)\n"
    text += "thread = threading.Thread(target=lambda: [model(torch.ones(1, 2)) for _ in range(9)])\n"
    got = capture("script.py", cwd=here(script=f"{text}thread.start()\nthread.join()\n"))
    said = "traceq: no steps were seen: no optimizer stepped and no module was called on the main thread"
    assert got.notes.count(said) == 1
    assert got.count("aten::linear") == 9


def test_a_script_that_fails_before_its_steps_are_profiled_says_what_the_trace_holds(here):
    text = TRAINING.replace(
        "    optimizer.step()\n", "    optimizer.step()\n    if _ == 12:\n        raise KeyError(_)\n"
    )
    got = capture("script.py", "200", cwd=here(script=text))
    assert got.status == 1
    assert any("what ran before steps were timed: too few steps came to be profiled" in note for note in got.notes)
    assert got.count("aten::addmm") > 0


def test_a_script_with_too_few_steps_keeps_its_trace(here):
    got = capture("script.py", "4", cwd=here(script=INFERENCE))
    assert got.status == 0
    assert got.count("aten::linear") == 8


def test_files_that_are_there_for_a_moment_are_nobody_elses(here):
    folder = here(script=ONE_OP)
    (folder / "traces").mkdir()
    ends = (".raw.json", ".raw.json.part", ".json.gz.part", ".capture.json.part", ".raw.json.part.tmp")
    kept = [folder / "traces" / f"script{end}" for end in ends]
    for path in kept:
        path.write_text("precious")
    assert capture("script.py", cwd=folder).notes[0] == "traceq: writing traces/script-2.json.gz"
    assert [path.read_text() for path in kept] == ["precious"] * len(kept)


def test_what_the_script_puts_into_the_environment_stays(here):
    marks = "    import os; os.environ[f'MINE_{_}'] = '1'\nprint(sum(k.startswith('MINE_') for k in os.environ))\n"
    folder = here(script=TRAINING.replace('print("loss", loss.item())\n', marks))
    got = capture("script.py", "200", cwd=folder)
    assert (got.status, got.out) == (0, b"200\n")
    assert len(got.ask("SELECT * FROM steps")) == 5


def test_a_script_is_called_as_it_was_given(here):
    folder = here(script="print(__file__)\nraise ValueError(1)\n")
    (folder / "sub").mkdir()
    got, expected = (run("../script.py", cwd=folder / "sub") for run in (capture, plain))
    assert got.what_the_script_did == expected.what_the_script_did


def test_options_of_python_are_the_scripts(here):
    folder = here(script="import sys, warnings\nprint(sys.flags.optimize, sys.warnoptions)\nwarnings.warn('x')\n")
    options = ("-O", "-W", "error")
    command = [sys.executable, *options, "-P", "-m", "traceq", "capture", "script.py"]
    got = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, stdin=subprocess.DEVNULL)
    expected = plain(*options, "script.py", cwd=folder)
    assert (got.returncode, got.stdout) == (expected.status, expected.out) == (1, b"1 ['error']\n")


WRITING = """
import os, threading, time

def write():
    while not over.is_set():
        os.write(2, b"%d\\n" % len(written))
        written.append(1)
        time.sleep(0.001)

over, written = threading.Event(), []
thread = threading.Thread(target=write)
thread.start()
"""


def test_what_a_thread_writes_while_the_profiler_starts_and_stops_is_not_lost(here):
    end = "over.set()\nthread.join()\nprint(len(written))\n"
    got = capture("script.py", "60", cwd=here(script=WRITING + TRAINING + end))
    numbers = (line for line in got.err.split() if line.isdigit())
    assert sorted(map(int, numbers)) == list(range(int(got.out.split()[-1])))
    assert len(got.traces) == 1


def test_files_are_never_overwritten(here):
    folder = here(script=ONE_OP)
    first, second = (capture("script.py", cwd=folder) for _ in range(2))
    assert first.notes[0] == "traceq: writing traces/script.json.gz"
    assert second.notes[0] == "traceq: writing traces/script-2.json.gz"
    assert len(second.traces) == 2


def test_os_exit_loses_the_trace_and_it_is_said(here):
    """R-175."""
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


# Scripts with a profiler of their own -------------------------------------------------------------------------------

OWN = {
    "exported": "with profile() as p:\n    torch.mm(a, a)\np.export_chrome_trace('own.json')\n",
    "compressed": "with profile() as p:\n    torch.mm(a, a)\np.export_chrome_trace('own.json.gz')\n",
    "not exported": "with profile() as p:\n    torch.mm(a, a)\n",
    "by start and stop": "p = profile()\np.start()\ntorch.mm(a, a)\np.stop()\np.export_chrome_trace('own.json')\n",
    "the inner profiler": "with torch.autograd.profiler.profile() as p:\n    torch.mm(a, a)\n"
    "p.export_chrome_trace('own.json')\n",
    "with a schedule": "from torch.profiler import schedule, tensorboard_trace_handler as handler\n"
    "with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1), on_trace_ready=handler('tb')) as p:\n"
    "    for _ in range(4):\n        torch.mm(a, a)\n        p.step()\n",
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_a_script_that_profiles_itself_keeps_its_profiler_and_its_trace_is_taken(text, here):
    """R-163, R-164."""
    begin = "import torch\nfrom torch.profiler import profile\na = torch.ones(4, 4)\n"
    got = capture("script.py", cwd=here(script=f"{begin}{text}print('end')\n"))
    assert (got.status, got.out) == (0, b"end\n")
    assert "traceq: the script profiles itself: its own trace is taken" in got.notes
    assert got.count("aten::mm") == 1


LOST = {
    "its file is gone": "with profile() as p:\n    torch.mm(a, a)\n"
    "p.export_chrome_trace('own.json')\nos.unlink('own.json')\n",
    "never stopped": "p = profile()\np.start()\ntorch.mm(a, a)\n",
}


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_why_the_scripts_own_profile_could_not_be_exported_is_said_once(text, here):
    begin = "import os, torch\nfrom torch.profiler import profile\na = torch.ones(4, 4)\ntorch.mm(a, a)\n"
    folder = here(script=begin + text)
    got = capture("script.py", cwd=folder)
    assert got.status == plain("script.py", cwd=folder).status  # torch itself crashes where it was never stopped
    (why,) = [n for n in got.record()["notes"] if n.startswith("the script's own profile could not be exported: ")]
    assert why.endswith(("RuntimeError: Trace is already saved.", "'NoneType' object has no attribute 'save'"))
    assert got.notes.count(f"traceq: {why}") == 1
    assert not any("its own trace is taken" in note for note in got.notes)
    assert got.count("aten::mm") == 1  # the one before it


@pytest.mark.parametrize("spoil", ["setrlimit(RLIMIT_FSIZE, (20000, 20000))", "shutil.rmtree('traces')"])
def test_r_176_the_scripts_error_comes_first_then_why_the_trace_could_not_be_written(spoil, here):
    head = f"import shutil\nfrom resource import RLIMIT_FSIZE, setrlimit\n{TRAINING}"
    folder = here(script=head.replace("for _ in", f"{spoil}\nfor _ in") + "raise ValueError('its own')\n")
    process = start("script.py", "60", cwd=folder)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    said = err.decode()
    assert 0 < said.index("ValueError: its own") < said.index("traceq: the trace could not be written: Failed to ")
    assert "os._exit" not in said
    assert not list(folder.glob("traces/*.raw.json*"))


def test_where_no_file_can_be_written_at_all_the_scripts_error_still_comes_first(here):
    text = f"from resource import RLIMIT_FSIZE, setrlimit\n{ONE_OP}setrlimit(RLIMIT_FSIZE, (99, 99))\n"
    process = start("script.py", cwd=here(script=f"{text}raise ValueError('its own')\n"))
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    said = err.decode()
    assert 0 < said.index("ValueError: its own") < said.index("traceq: what was recorded is lost: OSError: ")


def test_a_profiler_inside_a_training_loop_ends_ours(here):
    text = TRAINING.replace("for _ in", "from torch.profiler import profile\np = profile()\nfor _ in").replace(
        "    optimizer.step()\n", "    optimizer.step()\n    if _ == 20: p.start()\n    if _ == 22: p.stop()\n"
    )
    got = capture("script.py", "40", cwd=here(script=text))
    assert (got.status, got.out[:4]) == (0, b"loss")
    assert (
        got.count("Optimizer.step#Adam.step")
        + got.ask("SELECT count(*) FROM ranges WHERE name LIKE 'Optimizer.step%'")[0][0]
        == 2
    )


def test_r_179_a_trace_that_a_handler_exported_is_not_exported_again(here):
    text = "import torch\nfrom torch.profiler import profile\na = torch.ones(4, 4)\n"
    text += "with profile(on_trace_ready=lambda p: p.export_chrome_trace('own.json')):\n    torch.mm(a, a)\n"
    got = capture("script.py", cwd=here(script=text))
    assert got.status == 0
    assert got.record()["notes"] == ["the script profiles itself: its own trace is taken"]
    assert got.count("aten::mm") == 1
    assert len(got.traces) == 1


WITHOUT_TRACER = """
import torch, torch.profiler, torch.autograd.profiler
def refuse(*_):
    raise RuntimeError("Requested Kineto profiling but Kineto is not available")
torch.profiler.kineto_available = torch.autograd.kineto_available = lambda: False
torch.autograd.profiler._prepare_profiler = torch.autograd.profiler._enable_profiler = refuse
"""


def test_r_165_a_torch_without_its_tracer_is_told_before_the_script_works(here):
    folder = here(script=TRAINING.replace("for _ in", "print('begun', file=sys.stderr, flush=True)\nfor _ in"))
    (folder / "build").mkdir()
    (folder / "build" / "sitecustomize.py").write_text(WITHOUT_TRACER)
    process = start("script.py", "60", cwd=folder, env={"PYTHONPATH": f"{ROOT}:{folder / 'build'}"})
    _, err = process.communicate(timeout=240)
    said = err.decode()
    without = "traceq: this torch was built without its tracer (Kineto): steps are timed, and there will be no trace\n"
    assert said.count(without) == 1
    assert said.index(without) < said.index("begun\n")
    assert "traceq: error: no trace was written\nhint: install a torch" in said
    assert process.returncode == 1
    with duckdb.connect(folder / "traceq.duckdb", read_only=True) as con:
        timed = "SELECT label, count(*) FROM timings JOIN runs USING (run_id) WHERE kind = 'pipelined' GROUP BY ALL"
        assert con.execute(timed).fetchall() == [("script", 7)]


# Ends that come early ------------------------------------------------------------------------------------------------

ENDLESS = TRAINING.replace("for _ in range(int(sys.argv[1])):", "print('on', flush=True)\nwhile True:")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to", ["the parent", "the group"])
def test_an_interrupted_script_keeps_what_was_recorded(number, to, here):
    folder = here(script=ENDLESS)
    process = start("script.py", cwd=folder)
    assert process.stdout.readline() == b"on\n"
    time.sleep(1.0)
    (os.kill if to == "the parent" else os.killpg)(process.pid, number)
    got = finish(process, folder)
    assert got.status == 128 + number
    assert got.count("aten::addmm") > 0
    if number == signal.SIGINT:
        assert got.err.rstrip().endswith(b"KeyboardInterrupt")
        assert b"traceq/capture/" not in got.err


def test_a_script_that_handles_sigterm_itself_goes_on(here):
    text = ONE_OP + "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('asked'))\n"
    text += "os.kill(os.getpid(), signal.SIGTERM)\nprint('end')\n"
    got = capture("script.py", cwd=here(script=text))
    assert (got.status, got.out) == (0, b"asked\nend\n")


# Processes and threads -----------------------------------------------------------------------------------------------


def test_loaders_and_forked_children_do_not_record(here):
    text = """
import os, subprocess, sys
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return torch.mm(torch.ones(2, 2), torch.ones(2, 2)) * i
for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2):
    torch.mm(batch[0], batch[0])
sys.stdout.flush()
if os.fork() == 0:
    print("child", flush=True)
    raise SystemExit(0)
os.wait()
print(subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True).stdout)
"""
    folder = here(script=text)
    got = capture("script.py", cwd=folder)
    assert got.what_the_script_did == plain("script.py", cwd=folder).what_the_script_did
    assert got.count("aten::mm") == 3
    assert len(got.traces) == 1


LOADER = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.ones(2)
def main():
    for batch in torch.utils.data.DataLoader(Data(), num_workers=2):
        torch.mm(batch, batch.t())
"""


@pytest.mark.parametrize(
    ("run", "has_stacks"),
    [("main()", True), ("from torch.profiler import profile\nwith profile():\n    main()", False)],
    ids=["recorded", "by the script's own profiler without"],
)
def test_r_168_stacks_that_are_empty_are_noted(run, has_stacks, here):
    got = capture("--stack", "script.py", cwd=here(script=f"{LOADER}{run}\n"))
    assert (got.status, got.count("aten::mm")) == (0, 4)
    assert (got.ask("SELECT count(*) FROM python_calls")[0][0] > 0) == has_stacks
    note = "traceq: --stack asked for Python stacks, and the trace has none"
    assert got.notes.count(note) == (0 if has_stacks else 1)


def test_a_step_is_where_the_script_says_so(here):
    text = INFERENCE.replace(
        "        out = model(data)\n", "        out = model(data)\n        model(data)\n        step()\n"
    )
    got = capture("script.py", "60", cwd=here(script=f"from traceq.capture import step\n{text}"))
    assert got.record()["step_source"] == "manual"
    assert got.ask("SELECT count(*) FROM ops WHERE name = 'aten::linear'") == [(5 * 4,)]


def test_an_endless_loop_without_steps_is_recorded_in_part_and_it_is_said(here):
    """R-181."""
    text = "import time, torch\na = torch.ones(2, 2)\nuntil = time.process_time() + 2\n"
    text += (
        "while time.process_time() < until:\n    torch.mm(a, a)\n    sum(range(5000))  # or its trace is very long\n"
    )
    got = capture("script.py", cwd=here(script=text))
    assert got.status == 0
    assert any(n.startswith("traceq: recorded was the first 1.0 s of work") for n in got.notes)
    assert got.count("aten::mm") > 1000


def test_the_trace_goes_where_o_says_even_into_a_folder_to_come(here):
    """R-180."""
    folder = here(script=ONE_OP)
    got = capture("-o", "new/folder/t.json", "script.py", cwd=folder)
    assert got.status == 0
    assert json.loads((folder / "new/folder/t.json").read_text())["traceEvents"]
    assert (folder / "new/folder/t.capture.json").exists()


def test_without_nsys_it_is_said_before_the_script_runs(here):
    got = capture("--profiler", "nsys", "script.py", cwd=here(script="print('ran')\n"), env={"PATH": "/usr/bin:/bin"})
    assert (got.status, got.out) == (2, b"")
    assert got.notes[0] == "traceq: error: --profiler nsys: there is no nsys on the path"


# It takes the command line of `nsys profile`, talks as nsys does and runs what it is given: CI has no nsys.
NSYS = """#!/bin/sh
echo Generated:
echo 'WARNING: of nsys' >&2
shift
while [ "${1#--}" != "$1" ]; do shift; done
%s
"""


@pytest.fixture
def with_nsys(tmp_path):
    """The environment with an nsys that ends as `end` says: with_nsys(end)."""

    def make(end):
        stand_in = tmp_path / "bin" / "nsys"
        stand_in.parent.mkdir()
        stand_in.write_text(NSYS % end)
        stand_in.chmod(0o755)
        return {"PATH": f"{stand_in.parent}:{os.environ['PATH']}"}

    return make


def test_what_nsys_says_does_not_mix_with_what_the_script_says(here, with_nsys):
    folder = here(script=ONE_OP + "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n")
    got = capture("--profiler", "nsys", "script.py", cwd=folder, env=with_nsys('"$@"; exit 1'))
    assert got.what_the_script_did == (3, b"out\n", plain("script.py", cwd=folder).err)
    assert got.notes[-2:] == [
        "traceq: error: no trace was written",
        "hint: nsys records steps on a GPU only: without one leave --profiler out",
    ]


FEW_STEPS = "for _ in range(6):\n    model(x)\n"
ITS_OWN = "with torch.profiler.profile():\n    for _ in range(60):\n        model(x)\n"


@pytest.mark.parametrize(
    ("steps", "hint"),
    [
        pytest.param(FEW_STEPS, "nsys records steps on a GPU only: without one leave --profiler out", id="few"),
        pytest.param(ITS_OWN, "leave --profiler nsys out, or the script's own profiler", id="its own profiler"),
    ],
)
def test_under_nsys_no_trace_of_torch_takes_the_place_of_the_report(steps, hint, here, with_nsys):
    script = "import torch\nmodel, x = torch.nn.Linear(4, 4), torch.ones(2, 4)\n" + steps + "print('out')\n"
    got = capture("--profiler", "nsys", "script.py", cwd=here(script=script), env=with_nsys('"$@"'))
    assert (got.status, got.out) == (1, b"out\n")
    assert got.notes[-2:] == ["traceq: error: no trace was written", f"hint: {hint}"]
    assert got.traces == []
    assert not list(got.folder.glob("traces/*.nsys-rep"))


# What marks steps for nsys needs CUDA, which is not here: it prints what it is told.
MARKED = """
import torch
cuda = torch.cuda
cuda.is_initialized = lambda: True
cuda.get_device_name = lambda: "no GPU"
cuda.current_device = lambda: 0
cuda.memory_snapshot = list
cuda.max_memory_allocated = lambda: 4096
for name in ("synchronize", "reset_peak_memory_stats", "is_current_stream_capturing"):
    setattr(cuda, name, lambda: None)
cuda.profiler.start = lambda: print("start")
cuda.profiler.stop = lambda: print("stop")
cuda.nvtx.range_push = print
cuda.nvtx.range_pop = lambda: print("pop")
model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
for n in range(STEPS):
    model(x)
"""


@pytest.mark.parametrize(
    ("steps", "options", "marked"),
    [(200, (), range(2, 7)), (200, ("--wait", "3", "--active", "2"), range(4, 6)), (6, (), range(1, 5))],
    ids=["many", "options", "few"],
)
def test_under_nsys_the_steps_to_record_are_marked(steps, options, marked, here, with_nsys):
    folder = here(script=MARKED.replace("STEPS", str(steps)))
    got = capture("--profiler", "nsys", *options, "script.py", cwd=folder, env=with_nsys('"$@"'))
    ranges = [line for n in marked for line in (f"step {n}", "pop")]
    assert got.out.decode().splitlines() == ["start", *ranges, "stop"]
    assert "traceq: nsys wrote no report: no step was recorded on a GPU" in got.notes


def test_an_nsys_that_runs_nothing_is_told_in_its_own_words(here, with_nsys):
    folder = here(script="print('ran')\n")
    got = capture("--profiler", "nsys", "script.py", cwd=folder, env=with_nsys("echo 'no room for a session'\nexit 1"))
    assert (got.status, got.out) == (1, b"")
    assert got.notes[-1].endswith("under nsys, which said: no room for a session")


def test_an_export_of_nsys_is_not_called_json(here, with_nsys):
    got = capture(
        "--profiler", "nsys", "-o", "x.json.gz", "script.py", cwd=here(script="print('ran')\n"), env=with_nsys('"$@"')
    )
    assert (got.status, got.out) == (2, b"")
    assert got.notes[0] == "traceq: error: x.json.gz: an export of nsys is an SQLite file"


# The store ---


BAD = {
    "a folder": (["-o", "."], 2, "traceq: error: -o .: that is a folder"),
    "no name": (["-o", "/"], 2, "traceq: error: -o /: that is a folder"),
    "an ending": (["-o", "x.sqlite"], 2, "traceq: error: x.sqlite: a trace of torch is JSON"),
    "a label": (["--label", b"\xff"], 2, "traceq: error: --label: a label is text, in UTF-8"),
    "no folder": (["--store", "no/x.duckdb"], 4, "traceq: error: no/x.duckdb: there is no such folder"),
}


@pytest.mark.parametrize(("words", "status", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_done_is_said_before_the_script_runs(words, status, said, here):
    got = capture(*map(os.fsdecode, words), "script.py", cwd=here(script="print('ran')\n"))
    assert (got.status, got.out, got.notes[0]) == (status, b"", said)


HOLDING = """
import subprocess, sys
import torch
torch.mm(torch.ones(2, 2), torch.ones(2, 2))
code = "import duckdb, time; con = duckdb.connect('traceq.duckdb'); print('held', flush=True); time.sleep(600)"
holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
holder.stdout.readline()
print(holder.pid)
"""


def test_a_store_that_is_held_meanwhile_costs_no_trace(here):
    """Not the modes that are still to come, either."""
    folder = here(script=ONE_OP, holding=HOLDING)
    assert capture("script.py", cwd=folder).status == 0
    got = capture("--compare", "eager,default", "--label", "two", "holding.py", cwd=folder)
    for pid in got.out.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    assert len(got.out.split()) == 2
    assert got.status == 4
    (hint, _) = (note for note in got.notes if note.startswith("hint: "))
    assert hint.endswith("traceq ingest --label two/eager traces/two-eager.json.gz")
    assert [path.name for path in got.traces] == ["script.json.gz", "two-default.json.gz", "two-eager.json.gz"]


def test_a_file_that_is_no_store_is_refused_before_the_script_runs(here):
    folder = here(script="print('ran')\n")
    (folder / "junk.duckdb").write_text("junk")
    got = capture("--store", "junk.duckdb", "script.py", cwd=folder)
    assert (got.status, got.out) == (4, b"")
    assert got.notes[0].startswith("traceq: error: junk.duckdb: ")


# Modes side by side --------------------------------------------------------------------------------------------------


def test_modes_are_compared_and_one_that_fails_does_not_stop_the_others(here):
    text = (
        INFERENCE
        + "import torch._dynamo.utils as u\nif u.counters['stats']['unique_graphs']:\n    raise SystemExit(9)\n"
    )
    got = capture("--compare", "eager,default", "script.py", "120", cwd=here(script=text))
    assert got.status == 6
    assert got.ask("SELECT label, mode FROM runs ORDER BY label") == [
        ("script/default", "default"),
        ("script/eager", "eager"),
    ]
    assert "traceq: script/default failed with status 9; the others go on" in got.notes


def test_a_script_that_compiles_itself_is_not_taken_for_eager(here):
    own = "class Model(torch.nn.Sequential):\n    def forward(self, x):\n        return super().forward(x)\n"
    text = INFERENCE.replace("model = torch.nn.Sequential", f"{own}model = Model")
    text = text.replace("data = torch", "model.compile()\ndata = torch")
    got = capture("--compare", "eager,default", "script.py", "60", cwd=here(script=text))
    assert got.status == 0
    said = "script/eager is not eager: the script itself compiles, so the modes differ by less than their names say"
    assert f"traceq: {said}" in got.notes
    caveat = "note: script/eager is not eager: its script itself compiles"
    assert caveat in traceq("diff", "script/eager", "script/default", "--store", got.store).out


def test_a_mode_that_cannot_compile_has_failed_and_does_not_pass_for_no_gain(here):
    own = "class Model(torch.nn.Sequential):\n    def compile(self, **_):\n        raise RuntimeError('not this one')\n"
    text = INFERENCE.replace("model = torch.nn.Sequential", f"{own}model = Model")
    got = capture("--compare", "eager,default", "script.py", "60", cwd=here(script=text))
    assert got.status == 6
    assert "traceq: script/default failed with status 1; the others go on" in got.notes
    assert b"not this one" in got.err


def test_what_was_compiled_is_named_and_the_next_commands_have_answers(here):
    got = capture("--compare", "default", "--label", "one", "script.py", "60", cwd=here(script=INFERENCE))
    assert got.status == 0
    assert "traceq: compiled is Sequential, the module that the script called first, and no other" in got.notes
    assert got.notes[-1].startswith("traceq: next: traceq query captures -p label=one")
    assert traceq("query", "captures", "-p", "label=one", "--store", got.store).status == 0


ENDLESS_WHEN_COMPILED = (
    INFERENCE
    + "import torch._dynamo.utils as u\nif u.counters['stats']['unique_graphs']:\n    print('on', flush=True)\n"
    + "    with torch.no_grad():\n        while True:\n            model(data)\n"
)


@pytest.mark.parametrize(("number", "to"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)])
def test_an_interrupt_ends_the_whole_comparison_and_shows_what_is_complete(number, to, here):
    folder = here(script=ENDLESS_WHEN_COMPILED)
    process = start("--compare", "eager,default,reduce-overhead", "script.py", "120", cwd=folder)
    while process.stdout.readline() != b"on\n":
        assert process.poll() is None
    to(process.pid, number)
    got = finish(process, folder)
    assert got.status == 128 + number
    assert got.ask("SELECT label FROM runs") == [("script/eager",)]
    (kept,) = (note for note in got.notes if "script/default was interrupted" in note)
    assert [trace.name for trace in got.traces] == ["script-default.json.gz", "script-eager.json.gz"]
    assert kept.endswith("traces/script-default.json.gz keeps what was recorded")
    assert got.record("script-default")["status"] == 128 + number
    assert not any("reduce-overhead" in note or "the others go on" in note for note in got.notes)
    assert b"script/eager" in got.err  # the table


def test_a_name_that_is_taken_is_said_and_so_is_the_step_time(here):
    folder = here(train=INFERENCE)
    first = capture("train.py", "120", cwd=folder)
    second = capture("train.py", "120", cwd=folder)
    compared = capture("--compare", "eager", "train.py", "120", cwd=folder)
    assert not any("already holds" in note for note in first.notes)
    (why,) = (note for note in second.notes if "already holds" in note)
    assert why.startswith("traceq: ingested as run 'train-2': the run 'train' already holds")
    (why,) = (note for note in compared.notes if "this comparison is called" in note)
    assert why == "traceq: the store has runs of 'train': this comparison is called 'train-3'"
    for got, name in ((first, "train"), (second, "train-2")):
        (told,) = (note for note in got.notes if note.startswith("traceq: a step takes"))
        record = got.record(name)
        steps = {kind: show_ns(record[f"step_{kind}_ns"]["median"]) for kind in ("pipelined", "synced")}
        times = ", ".join(f"{step} {kind}" for kind, step in steps.items())
        assert told == f"traceq: a step takes {times} (median, without the profiler)"


BROKEN = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    def forward(self, x):
        x = self.first(x)
        if x.sum().item() > 0:
            x = x + 1
        return self.second(x)
model = Model()
x = torch.randn(4, 8)
with torch.no_grad():
    for _ in range(60):
        out = model(x)
print(round(out.sum().item(), 3))
"""


def test_compiled_modes_say_what_the_compiler_did_and_give_the_same_outputs(here):
    folder = here(script=BROKEN)
    got = capture("--compare", "eager,default", "--check-outputs", "--submodules", "script.py", cwd=folder)
    assert got.status == 0
    assert len(set(got.out.split())) == 1  # the same seed, the same result, four times
    broken = got.ask("SELECT label, line FROM graph_breaks JOIN runs USING (run_id)")
    assert broken == [("script/default", 10)]
    compiled = dict(
        got.ask("SELECT label, count(*) FROM compile_phases JOIN runs USING (run_id) GROUP BY 1")  # none when eager
    )
    assert set(compiled) == {"script/default", "script/only-first", "script/only-second"}
    assert b"gain per compile" in got.err
    assert b"outputs" in got.err


def test_what_is_compared_must_be_a_mode(here):
    got = capture("--compare", "eager,fast", "script.py", cwd=here(script=ONE_OP))
    assert got.status == 2
    assert got.notes[0] == "traceq: error: --compare: no mode 'fast'"
    assert got.notes[1].startswith("hint: modes: eager, default, reduce-overhead, max-autotune")


def test_nothing_to_rank_and_nothing_to_compare_is_said(here):
    text = "import torch\nfor _ in range(3):\n    torch.mm(torch.ones(2, 2), torch.ones(2, 2))\n"
    folder = here(script=text)
    got = capture("--compare", "eager", "--submodules", "--check-outputs", "script.py", cwd=folder)
    assert got.status == 0
    assert "traceq: --submodules: no block was compiled alone and timed, so there is nothing to rank" in got.notes
    assert "traceq: --check-outputs: no two modes gave outputs or losses, so there is nothing to compare" in got.notes


def test_blocks_are_not_ranked_without_eager(here):
    got = capture("--compare", "default", "--submodules", "script.py", cwd=here(script="print('ran')\n"))
    assert (got.status, got.out) == (2, b"")
    assert got.notes[1] == "hint: --compare eager,default"


def test_a_compiled_optimizer_keeps_its_mark_and_its_steps(here):
    text = TRAINING.replace("for _ in", "step = optimizer.step\nfor _ in").replace(
        "optimizer.step()\nprint", "step()\nprint"
    )
    got = capture("--compare", "default", "--compile-optimizer", "script.py", "60", cwd=here(script=text))
    assert got.status == 0
    assert got.record("script-default")["step_source"] == "optimizer"
    assert got.ask("SELECT count(*) FROM ranges WHERE name = 'Optimizer.step#Adam.step'") == [(5,)]
    assert got.ask("SELECT count(*) FROM kernel_sources")[0][0] > 0


RANKS = """
import torch
from torch import nn
torch.distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print("rank", torch.distributed.get_rank(), flush=True)
"""


@pytest.mark.parametrize("end", ["", "if torch.distributed.get_rank():\n    raise KeyError('its own')\n"])
def test_ranks_of_torchrun_become_one_run_even_if_one_fails(end, here):
    """Of a rank that fails torchrun tells the others at once to end: what they recorded is read in all the same."""
    folder = here(script=f"{RANKS}{end}torch.distributed.destroy_process_group()\n")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "traceq", "capture"]
    got = plain(*words, "script.py", cwd=folder)
    assert got.status == (1 if end else 0), got.err
    assert sorted(got.out.splitlines()) == [b"rank 0", b"rank 1"]
    assert (b"KeyError: 'its own'" in got.err) == bool(end)
    ranks = (
        "SELECT label, rank, count(*) FROM traces JOIN runs USING (run_id) JOIN steps USING (trace_id) "
        "GROUP BY ALL ORDER BY 2"
    )
    with duckdb.connect(folder / "traceq.duckdb", read_only=True) as con:
        assert con.execute(ranks).fetchall() == [("script", 0, 5), ("script", 1, 5)]


def test_a_script_that_compiles_its_optimizer_meets_nothing_of_traceq_in_its_graphs(here):
    text = TRAINING.replace("for _ in", "step = torch.compile(optimizer.step)\nfor _ in")
    text = text.replace("    optimizer.step()\nprint", "    step()\nprint")
    text += "import torch._dynamo.utils as utils\nprint(sum(utils.counters['graph_break'].values()))\n"
    folder = here(script=text)
    got = capture("script.py", "60", cwd=folder)
    assert (got.status, got.out) == (0, plain("script.py", "60", cwd=folder).out)
    assert got.ask("SELECT count(*) FROM graph_breaks WHERE file LIKE '%traceq%'") == [(0,)]
    assert got.ask("SELECT count(*) FROM steps") == [(5,)]


def test_operators_of_other_threads_are_recorded_too(here):
    """R-177."""
    text = "import threading\nimport torch\ndef work():\n    for _ in range(4):\n"
    text += "        torch.mm(torch.ones(2, 2), torch.ones(2, 2))\n"
    text += "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
    got = capture("script.py", cwd=here(script=text))
    assert (got.status, got.count("aten::mm")) == (0, 4)


def test_few_steps_of_training_are_recorded_once_each(here):
    got = capture("script.py", "3", cwd=here(script=TRAINING))
    assert got.count("aten::addmm") == 2 * 3
    assert got.ask("SELECT count(*) FROM ranges WHERE name = 'Optimizer.step#Adam.step'") == [(3,)]
