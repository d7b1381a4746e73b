"""`traceq capture` on an NVIDIA GPU: each figure that tests/cuda_figures.py prints, as a test."""

import shutil

import cuda_figures
import pytest

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="needs an NVIDIA GPU"),
]


@pytest.fixture
def folder(tmp_path):
    return cuda_figures.Folder(tmp_path)


def test_five_steps_are_read_without_a_warning(folder):
    assert cuda_figures.trace(folder)


def test_graph_breaks_are_counted_right(folder):
    assert cuda_figures.breaks(folder)


def test_the_source_of_every_triton_kernel_is_found(folder):
    assert cuda_figures.sources(folder)


@pytest.mark.parametrize("case", cuda_figures.CASES)
def test_the_unprofiled_step_is_that_of_a_plain_loop(case, folder):
    assert cuda_figures.times(folder, [case], ["eager", "default"], repeats=2)


@pytest.mark.parametrize("case", cuda_figures.CASES)
def test_each_example_is_captured_in_all_modes(case, folder):
    assert cuda_figures.all_modes(folder, [case], list(cuda_figures.MODES))
