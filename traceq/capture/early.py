"""Recording from the first line on, for scripts that take no steps or too few: better that than no trace."""

from __future__ import annotations

import _thread
import os
import re
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from traceq.capture.faults import Note, told
from traceq.capture.profiling import Whole
from traceq.capture.record import Spec

MOST_STEPS = 16
MOST_WORK_S = 1.0
LOOK_EVERY_S = 0.2
SIGNS_OF_A_GPU = ("/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia", "/dev/dxg")
STEPS_TO_COME = re.compile(
    r"\bnn\b|\boptim\b|\bModule\b|from_pretrained|\btimm\b|torchvision|capture\.step|import_module"
)


def _text(spec: Spec) -> str:
    """The text of the script; of a module none is known, and steps may come."""
    if spec.kind == "code":
        return spec.target
    try:
        with open(spec.target, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return "nn"


def _is_importing() -> bool:
    """Whether the main thread is at an import: the first optimizer brings the compiler, which alone takes a second."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


class Early:
    """A recording from the import of torch, ended by the first steps or by a second of work.

    The device tracer, once used, slows all that follows. So where a GPU is near, only a script whose text speaks of no
    modules and no optimizers is recorded from its start, and with the GPU's side from the moment it turns to it.
    """

    def __init__(self, torch: Any, spec: Spec, note: Note) -> None:
        self._torch = torch
        self._note = note
        self._profile = Whole(torch, spec, note)
        self._over = threading.Event()
        self._is_cut = False
        self._has_steps = False
        self._spec = spec

    def begin(self) -> None:
        """Begin, if the script imports torch on its main thread: elsewhere there would be nothing to see."""
        if threading.current_thread() is not threading.main_thread() or (self._has_gpu() and self._expects_steps()):
            return
        with told(self._note, "recording from the start failed"):
            self._profile.start()
        if not self._profile.is_running:
            return
        signal.signal(signal.SIGRTMAX, self._reach_limit)
        clock = time.pthread_getcpuclockid(threading.get_ident())
        if hasattr(self._torch.cuda, "_lazy_call"):
            self._torch.cuda._lazy_call(self.begin_gpu)
        threading.Thread(target=self._watch, args=(clock,), daemon=True).start()

    def begin_gpu(self) -> None:
        """The script is about to use the GPU: begin anew with it, unless steps are to be expected."""
        if self._over.is_set() or not self._profile.is_running or self._expects_steps():
            return
        with told(self._note, "recording the GPU from the start failed"):
            self._profile.stop()
            self._profile = Whole(self._torch, self._spec, self._note, has_gpu=True)
            self._profile.start()

    def step(self, count: int) -> None:
        """A step has ended."""
        if self._profile.is_running:
            if count > MOST_STEPS:
                self.stop()
            else:
                self._profile.mark()

    def expect_steps(self) -> None:
        """There is a module to be called: its steps end the recording, and time does not."""
        self._has_steps = True

    @property
    def is_running(self) -> bool:
        """Whether it records."""
        return self._profile.is_running

    def stop(self) -> None:
        """End it; what was recorded stays until the trace that replaces it is there."""
        if not self._over.is_set():
            self._over.set()
            signal.signal(signal.SIGRTMAX, signal.SIG_DFL)
            self._profile.stop()

    def forget(self) -> None:
        """In a forked child: no limit to look out for, nothing to stop."""
        self._over.set()

    def export(self, path: str) -> bool:
        """Write the trace; whether there was one."""
        return self._profile.export(path)

    @property
    def extent(self) -> str:
        """What the trace holds, for one that ended before the script did."""
        return f"the first {MOST_WORK_S} s of work" if self._is_cut else "what ran before steps were timed"

    def _has_gpu(self) -> bool:
        """Whether a GPU is near, without asking CUDA: that would spoil a fork to come."""
        return self._torch.version.cuda is not None and any(map(os.path.exists, SIGNS_OF_A_GPU))

    def _expects_steps(self) -> bool:
        return STEPS_TO_COME.search(_text(self._spec)) is not None

    def _reach_limit(self, number: int, frame: FrameType | None) -> None:
        if not self._over.is_set() and not self._has_steps and not self._is_compiling():
            self._is_cut = True
            self.stop()

    def _is_compiling(self) -> bool:
        """Whether Dynamo is at work: to stop a profiler in its midst has crashed."""
        guards = sys.modules.get("torch._guards")
        return guards is not None and guards.CompileContext.try_get() is not None

    def _watch(self, clock: int) -> None:
        """Look at the main thread's processor time, and have the main thread itself end the recording."""
        worked_s, before = 0.0, time.clock_gettime(clock)
        while not self._over.wait(LOOK_EVERY_S):
            now = time.clock_gettime(clock)
            worked_s += 0 if _is_importing() else now - before
            before = now
            if worked_s > MOST_WORK_S:
                _thread.interrupt_main(signal.SIGRTMAX)
