"""Recording with Nsight Systems instead of torch's profiler: the same steps, marked for `nsys profile` to record."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from traceq.errors import Status, TraceqError

STEP_RANGE = "step *"  # what the marks are called, as `traceq ingest --step-range` takes it


def find() -> str:
    """The nsys to use. Raises TraceqError (usage) without one."""
    if found := shutil.which("nsys"):
        return found
    hint = "put Nsight Systems on the path, or leave --profiler out: torch's own profiler needs nothing"
    raise TraceqError("--profiler nsys: there is no nsys on the path", hint, Status.USAGE)


def around(command: list[str], report: Path) -> list[str]:
    """The command that runs `command` under nsys, which records only while the CUDA profiler is on."""
    options = ["--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node"]
    ranges = ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    return [find(), "profile", *options, *ranges, "--force-overwrite=true", f"--output={report}", *command]


def export(report: Path, to: Path) -> str | None:
    """Write the export of a report; why it could not be, else None."""
    if not report.exists():
        return "nsys wrote no report: no step was recorded on a GPU"
    options = ["--type=sqlite", "--force-overwrite=true", f"--output={to}"]
    done = subprocess.run([find(), "export", *options, str(report)], capture_output=True, text=True)
    return f"nsys export failed: {last_line(done.stderr or done.stdout)}" if done.returncode else None


def last_line(said: str) -> str:
    """What a command said last: of a traceback the exception."""
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it does not say why")


class Range:
    """The steps that nsys records: the CUDA profiler is on, and each step is an NVTX range."""

    def __init__(self, torch: Any, wait: int, active: int) -> None:
        self._torch = torch
        self._first = wait + 1  # as torch's profiler: one step between waiting and recording
        self._last = self._first + active
        self._step = 0
        self._is_open = False

    def step(self) -> None:
        """The next step begins."""
        self._step += 1
        if self._step == self._first:
            self._torch.cuda.synchronize()
            self._torch.cuda.profiler.start()
            self._is_open = True
        elif self._is_open:
            self._torch.cuda.nvtx.range_pop()
        if self._step == self._last:
            self.stop()
        elif self._is_open:
            self._torch.cuda.nvtx.range_push(f"step {self._step}")

    def stop(self) -> None:
        """End the recording."""
        if self._is_open:
            self._is_open = False
            self._torch.cuda.synchronize()
            self._torch.cuda.profiler.stop()

    def export(self, _: str) -> bool:
        """There is nothing to write here: nsys does, once the script has ended."""
        return False
