"""A loop that looks at the clock as one would by hand: some steps to warm up, then all others at once."""

import time
from collections.abc import Iterator

import torch

WARM_UP = 50


def device() -> str:
    """The GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def scaled(size: int) -> int:
    """A size for a GPU, or an eighth of it without one."""
    return size if torch.cuda.is_available() else max(size // 8, 1)


def measured(steps: range) -> Iterator[int]:
    """Each step; after the last one a line that says what a step took, in ns, without waiting between steps."""
    warm = min(WARM_UP, len(steps) // 2)
    for step in steps:
        if step == warm:
            wait()
            started = time.perf_counter_ns()
        yield step
    wait()
    print(f"step_ns {(time.perf_counter_ns() - started) / (len(steps) - warm):.0f}")


def wait() -> None:
    """Until the GPU has nothing left to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
