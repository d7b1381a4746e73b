"""torch's profiler, kept quiet, and the profilers that the script itself starts."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

from traceq.capture.faults import Note, reason
from traceq.capture.record import NOT_WRITTEN, Spec

# Kineto advises "If you see CUPTI_ERROR_…, refer to …" after any fault.
FAULT = re.compile(r"(?<!if you see )CUPTI_ERROR_\w+|insufficient privileges|already (?:subscribed|in use)", re.I)
# A place in C++ as Kineto prints it, the tracer in any words, a warning of torch's Python with its line of source.
PROFILERS = re.compile(
    rb"^.*(?:\.(?:cpp|cc|cu|h):\d+\] |cupti|kineto|/torch/(?:profiler|autograd)/\S+:\d+: \w*Warning: .*\n {2}).*\n?",
    re.M | re.I,
)
HELD = "another tool holds the tracer: run without nsys around traceq, and without CUDA_INJECTION64_PATH"
REMEDIES = {  # by a part of the fault
    "PRIVILEGES": "the driver keeps the tracer from ordinary users: load it with "
    "NVreg_RestrictProfilingToAdminUsers=0, or give the container CAP_SYS_ADMIN",
    "SUBSCRI": HELD,
    "IN USE": HELD,
}
UNWRITTEN = re.compile(r"output_json\.cpp:\d+\] (.+)")
is_ours = False


@contextlib.contextmanager
def quiet(note: Note) -> Iterator[list[str]]:
    """Keep what the profiler itself prints out of the script's standard error; a fault of the tracer becomes a note.

    What it said of a trace that it could not write is in the list afterwards. What other threads of the script write
    meanwhile comes out a moment later. Ctrl-C waits until the profiler has done what it does: half a trace is none.
    """
    global is_ours
    unwritten: list[str] = []
    interrupts: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number)) if is_main else None
    said: list[bytes] = []
    try:
        with _stderr_into(said):
            is_ours = True
            yield unwritten
    finally:
        is_ours = False
        text = b"".join(said).decode("utf-8", "replace")
        unwritten += UNWRITTEN.findall(text)
        for fault in dict.fromkeys(FAULT.findall(text)):
            remedy = next((text for part, text in REMEDIES.items() if part in fault.upper()), None)
            because = f" ({remedy})" if remedy else ""
            note(f"the device tracer said {fault}: no GPU activity may have been recorded{because}")
        if is_main:
            signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
            for number in interrupts[:1]:
                os.kill(os.getpid(), number)


@contextlib.contextmanager
def _stderr_into(said: list[bytes]) -> Iterator[None]:
    """Take what is written to standard error, and give back what is the script's."""
    _flush_stderr()
    with tempfile.TemporaryFile() as file:  # first of all: it takes the place of a standard error that was closed
        kept = os.dup(2)

        def give_back() -> None:
            start = sum(map(len, said))
            text = os.pread(file.fileno(), os.fstat(file.fileno()).st_size - start, start)
            said.append(text)
            with contextlib.suppress(OSError):  # nobody reads it any more
                os.write(kept, PROFILERS.sub(b"", text))

        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            _flush_stderr()
            give_back()
            os.dup2(kept, 2)
            give_back()  # what was written since
            os.close(kept)


def _flush_stderr() -> None:
    with contextlib.suppress(Exception):  # the script may have put anything in its place
        sys.stderr.flush()


class Whole:
    """A recording of all there is until it is told to stop; of the CPU's side, or of both.

    It uses the inner profiler: the outer one imports the compiler, which takes a second and changes the environment.
    """

    def __init__(self, torch: Any, spec: Spec, note: Note, has_gpu: bool = False) -> None:
        self._torch = torch
        self._note = note
        device = "cuda" if has_gpu else None
        config = None
        with contextlib.suppress(AttributeError, TypeError):  # an old torch records the threads it started itself
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        self._profiler = torch.autograd.profiler.profile(
            use_kineto=True, use_device=device, experimental_config=config, **_options(spec)
        )
        self._mark: Any = None
        self._steps = 0
        self.is_running = False

    def start(self) -> None:
        """Begin at once."""
        with quiet(self._note):
            self._profiler.__enter__()
        self.is_running = True

    def mark(self) -> None:
        """The next step begins."""
        self._end_mark()
        self._mark = self._torch.profiler.record_function(f"ProfilerStep#{self._steps}")
        self._mark.__enter__()
        self._steps += 1

    def stop(self) -> None:
        """End the recording; what it holds stays until `export`."""
        if self.is_running:
            self.is_running = False
            with quiet(self._note):
                self._end_mark()
                self._profiler.__exit__(None, None, None)

    def export(self, path: str) -> bool:
        """Write the trace, whole or not at all; whether there was one."""
        return _export(self._profiler, path, self._note)

    def _end_mark(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None


class Profile:
    """A recording of a few steps, with the GPU's side where there is one."""

    def __init__(self, torch: Any, spec: Spec, note: Note, wait: int, active: int) -> None:
        self._note = note
        self._added: set[str] = set()
        self._turns = {wait, wait + 1, wait + 1 + active}
        self._step = 0
        self._is_exported = False
        activity = torch.profiler.ProfilerActivity
        with quiet(note), self._noticing():
            self._profiler = torch.profiler.profile(
                activities=[activity.CPU, *([activity.CUDA] if torch.cuda.is_initialized() else [])],
                schedule=torch.profiler.schedule(wait=wait, warmup=1, active=active, repeat=1),
                **_options(spec),
            )
            self._profiler.start()
        self.is_running = True

    def step(self) -> None:
        """The next step begins; where the profiler has more to do than to mark it, it does so quietly."""
        self._step += 1
        if self._step not in self._turns:
            self._profiler.step()
            return
        with quiet(self._note), self._noticing():
            self._profiler.step()

    def stop(self) -> None:
        """End the recording; what it holds stays until `export`. The environment is again what it was."""
        if self.is_running:
            self.is_running = False
            with quiet(self._note), self._noticing():
                self._profiler.stop()
            for name in self._added:
                os.environ.pop(name, None)

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        """Remember what the profiler puts into the environment; what the script puts there is its own."""
        before = set(os.environ)
        try:
            yield
        finally:
            self._added |= set(os.environ) - before

    def export(self, path: str) -> bool:
        """Write the trace, whole or not at all; whether there was one. A profiler writes it once, or never."""
        inner = self._profiler.profiler
        if inner is None or self._is_exported:
            return False
        self._is_exported = True
        return _export(inner, path, self._note, self._profiler.export_chrome_trace)


def _options(spec: Spec) -> dict[str, bool]:
    return {
        "record_shapes": spec.shapes,
        "with_stack": spec.stack,
        "with_modules": spec.stack,
        "profile_memory": spec.memory,
        "with_flops": spec.flops,
    }


def _export(inner: Any, path: str, note: Note, write: Callable[[str], None] | None = None) -> bool:
    if getattr(inner, "kineto_results", None) is None:
        return False
    return _write(write or inner.export_chrome_trace, path, note)


def _write(export: Callable[[str], None], path: str, note: Note) -> bool:
    """Have a profiler write its trace. One that cannot says so on standard error and returns as if it had."""
    part = f"{path}.part"
    with quiet(note) as unwritten:
        export(part)
    if os.path.exists(part):
        os.replace(part, path)
        return True
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{part}.tmp")
    said = (unwritten or ["the profiler does not say why"])[0].replace(os.path.dirname(path) + os.sep, "")
    note(f"{NOT_WRITTEN}: {said}")
    return False


class ScriptsOwn:
    """The profilers that the script starts itself: two at once crash, so ours gives way, and their traces are kept."""

    def __init__(self, give_way: Callable[[], None], note: Note) -> None:
        self._give_way = give_way
        self._note = note
        self.traces: list[str] = []
        self.is_used = False
        self._last: Any = None
        self._is_exporting = False

    def watch(self, torch: Any) -> None:
        """Notice every start and every export from now on."""
        kineto = torch.profiler.profiler._KinetoProfile
        legacy = torch.autograd.profiler.profile
        for owner, name in ((kineto, "prepare_trace"), (kineto, "start_trace"), (legacy, "__enter__")):
            self._before(owner, name)
        for owner in (kineto, legacy):
            self._after_export(owner)

    def export(self, path: str) -> bool:
        """Write the trace of the last one; whether there was one."""
        try:
            return _write(self._last.export_chrome_trace, path, self._note)
        except Exception as error:
            self._note(f"the script's own profile could not be exported: {reason(error)}")
            return False

    def _before(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(this: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_ours:
                self.is_used = True
                self._last = this
                self._give_way()
            return real(this, *args, **kwargs)

        setattr(owner, name, watched)

    def _after_export(self, owner: Any) -> None:
        real = owner.export_chrome_trace

        def watched(this: Any, path: str, *args: Any, **kwargs: Any) -> Any:
            if is_ours or self._is_exporting:
                return real(this, path, *args, **kwargs)
            self._is_exporting = True
            try:
                result = real(this, path, *args, **kwargs)
            finally:
                self._is_exporting = False
            self.traces.append(os.path.abspath(path))
            return result

        owner.export_chrome_trace = watched
