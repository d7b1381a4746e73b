"""One run of the script in this process: prepare, run, save what was recorded, end as the script ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType

from traceq.capture import imports, interrupts, record, running
from traceq.capture.record import Record
from traceq.capture.recorder import Recorder


def run(spec_path: str, at_start: frozenset[str]) -> None:
    """Run the script of a spec. Returns or raises as the script does, after everything was saved."""
    spec = record.read_spec(spec_path)
    os.unlink(spec_path)
    recorder = Recorder(spec, Record(spec.command, spec.mode, spec.label, spec.rank, spec.world_size, seed=spec.seed))
    pid = os.getpid()
    ending: BaseException | None = None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    _save_when_terminated(recorder)
    imports.when_imported("torch", recorder.begin)
    if spec.seed is not None:
        _seed(spec.seed)
    os.register_at_fork(after_in_child=recorder.forget)
    try:
        start = running.prepare(spec.kind, spec.target, spec.argv)
        running.forget_shadowed(sys.path[0], at_start)
        start()
    except BaseException as error:
        try:
            _tell(error)
        except KeyboardInterrupt:  # the same interrupt again: sent to the group, and passed on
            _tell(error)
        recorder.record.status = _status(error)
        ending = error
        raise
    else:
        recorder.record.status = 0
    finally:
        if os.getpid() == pid:
            _uninterrupted(recorder.finish)
        elif recorder.was_recording:
            _leave(recorder.record.status, ending)


def _tell(error: BaseException) -> None:
    """Show an exception. After an interrupt no other is heeded: it may come again when the interpreter is half gone."""
    _uninterrupted(partial(running.show, running.without_our_frames(error)))
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _uninterrupted(work: Callable[[], None]) -> None:
    """Do `work` without being interrupted: a second Ctrl-C must not cost what the first one saves and says."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)


def _leave(status: int | None, ending: BaseException | None) -> None:
    """End a forked child as Python does, but for the destructors of the profiler: those wait for threads it has not."""
    if isinstance(ending, SystemExit) and not isinstance(ending.code, int | None):
        with contextlib.suppress(Exception):
            print(ending.code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status or 0)


def _status(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    if not isinstance(error, SystemExit):
        return 1
    return error.code if isinstance(error.code, int) else int(error.code is not None)


def _seed(seed: int) -> None:
    import random

    random.seed(seed)
    imports.when_imported("numpy", lambda: sys.modules["numpy"].random.seed(seed))


def _save_when_terminated(recorder: Recorder) -> None:
    """Save at SIGTERM, unless the script handles it, and end by it all the same."""
    pid = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # it may come twice: to the group, and passed on
        if os.getpid() == pid:
            recorder.record.status = 128 + number
            recorder.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if interrupts.is_heeded(signal.SIGTERM):
        signal.signal(signal.SIGTERM, end)
