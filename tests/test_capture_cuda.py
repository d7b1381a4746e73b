"""`traceq capture` on an NVIDIA GPU: each figure that tests/cuda_figures.py prints, as a test."""

import shutil
import subprocess

import cuda_figures
import pytest
from capturing import capture

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]


def gpus() -> int:
    """How many GPUs there are, by nvidia-smi; torch stays unloaded."""
    return len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.fixture
def folder(tmp_path):
    return cuda_figures.Folder(tmp_path)


def test_five_steps_are_read_without_a_warning(folder):
    assert cuda_figures.trace(folder)


def test_graph_breaks_are_counted_right(folder):
    assert cuda_figures.breaks(folder)


def test_the_source_of_every_triton_kernel_is_found(folder):
    assert cuda_figures.sources(folder)


def test_each_block_of_a_model_is_compiled_alone(folder):
    assert cuda_figures.submodules(folder)


def test_what_cuda_graphs_keep_counts_as_memory(folder):
    assert cuda_figures.memory(folder)


@pytest.mark.skipif(shutil.which("nvidia-smi") is None or gpus() < 2, reason="needs two NVIDIA GPUs")
def test_ranks_of_nccl_become_one_run(folder):
    assert cuda_figures.ranks(folder)


@pytest.mark.skipif(shutil.which("nsys") is None, reason="needs nsys")
def test_nsys_records_the_kernels_that_torch_does(folder):
    assert cuda_figures.nsys(folder)


@pytest.mark.parametrize("case", cuda_figures.CASES)
def test_an_example_runs_in_all_modes(case, folder):
    assert cuda_figures.examples(folder, [case], list(cuda_figures.MODES))


@pytest.mark.parametrize("case", cuda_figures.CASES)
def test_the_step_of_an_example_is_that_of_a_plain_loop(case, folder):
    assert cuda_figures.steps(folder, [case], list(cuda_figures.BY_HAND))


HELD = """
import ctypes, torch
x, model = torch.ones(64, 64, device="cuda"), torch.nn.Linear(64, 64).cuda()
with open("/proc/self/maps") as maps:
    (path, *_) = {line.split()[-1] for line in maps if "libcupti.so" in line}
handle = ctypes.c_void_p()
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
print("subscribed", ctypes.CDLL(path).cuptiSubscribe(ctypes.byref(handle), callback, None))
for _ in range(60):
    out = model(x)
"""


def test_r_161_where_another_holds_the_tracer_the_cpu_is_recorded_and_it_is_said(tmp_path):
    (tmp_path / "script.py").write_text(HELD)
    got = capture("--no-measure-peaks", "script.py", cwd=tmp_path)
    assert (got.status, got.out) == (0, b"subscribed 0\n")
    assert got.count("aten::linear") == 5
    (kernels,) = got.ask("SELECT count(*) FROM kernels")[0]
    assert kernels or any("another tool holds" in note for note in got.notes)  # newer drivers let several in
