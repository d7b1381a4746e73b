"""The parent's side: name the files, start the child, pass signals on, wait, and pack its trace."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceq.analysis import stats
from traceq.capture import interrupts, nsys, record, running
from traceq.capture.record import Record, Spec
from traceq.errors import Status, TraceqError

CHILD = Path(__file__).with_name("child.py")
FROM_KERNEL = 128
DISTURBED = 1.2  # how much longer is no chance
WITHOUT_VERDICT = 2  # as disturbed_ratio of queries/diff/run_facts.sql
RAW = {"torch": ".raw.json", "nsys": ".nsys-rep"}  # what the profiler itself writes
PARTS = (".part", ".part.tmp")
ENDING = {"torch": ".json.gz", "nsys": ".sqlite"}
PACKAGE = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class Target:
    """What is to be run: a script, a module or a piece of code, and its arguments."""

    kind: str
    name: str
    argv: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a run of it is called."""
        name = {"script": Path(self.name).stem, "module": self.name, "code": "code"}[self.kind] or "script"
        return "".join(c if c.isprintable() else "_" for c in name)  # what is no UTF-8 is not printable either

    @property
    def command(self) -> str:
        """The command line as Python would be given it; only the name of a script, not where it lies."""
        name = Path(self.name).name if self.kind == "script" else self.name
        option = {"script": [], "module": ["-m"], "code": ["-c"]}[self.kind]
        return shlex.join(["python", *option, name, *self.argv])


@dataclass(frozen=True)
class Files:
    """Where one child writes: the trace that stays, and the record beside it."""

    trace: Path
    record: Path


@dataclass(frozen=True)
class Ended:
    """How one child ended: its status as a shell would tell it, what it recorded, and where that is.

    `nsys_said` is the last line of nsys, if that was around it.
    """

    status: int
    record: Record | None
    files: Files
    nsys_said: str | None = None

    @property
    def trace(self) -> str | None:
        """The path of its trace; None if it wrote none."""
        return str(self.files.trace) if self.record is not None and self.record.trace is not None else None


def check(target: Target) -> None:
    """Compile the target before anything runs. Raises what Python would raise, or TraceqError for a missing file."""
    if target.kind == "script" and not Path(target.name).exists():
        raise TraceqError(f"{target.name}: no such file", "traceq capture SCRIPT [ARGS…]", Status.USAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child says them
        running.compile_target(target.kind, target.name)


def reserve(wanted: Path, profiler: str = "torch") -> Files:
    """Names that no file has, taken at once; with a number where `wanted` is taken."""
    ending = "".join(s for s in wanted.suffixes[-2:] if s in (".json", ".gz", ".sqlite"))
    stem = wanted.name[: len(wanted.name) - len(ending)]
    number = 1
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        while True:
            name = stem if number == 1 else f"{stem}-{number}"
            files = Files(
                wanted.with_name(name + (ending or ENDING[profiler])), wanted.with_name(f"{name}.capture.json")
            )
            if not any(path.exists() for path in (files.record, *_between(files, profiler))):
                try:
                    files.trace.open("xb").close()
                    return files
                except FileExistsError:
                    pass
            number += 1
    except OSError as error:
        raise TraceqError(f"{wanted}: {error.strerror}", "-o names a file that can be written", Status.USAGE) from error


def _raw(files: Files, profiler: str) -> Path:
    """What the profiler itself writes."""
    if files.trace.suffix == ".json":
        return files.trace
    return files.trace.with_name(files.record.name.replace(".capture.json", RAW[profiler]))


def _between(files: Files, profiler: str) -> list[Path]:
    """Files that are there only until all is written: they must not be somebody's either."""
    raw = _raw(files, profiler)
    parts = [path.with_name(path.name + end) for path in (files.trace, files.record, raw) for end in PARTS]
    return [*parts, *([raw] if raw != files.trace else [])]


def run(spec: Spec, files: Files, wants_peaks: bool, heard: list[int]) -> Ended:
    """Run the child of `spec` to its end; its trace is where `files` says, or nothing is there.

    `heard` gets the signals that meanwhile asked for an end.
    """
    raw = _raw(files, spec.profiler)
    with tempfile.TemporaryDirectory(prefix="traceq-capture-") as folder:
        spec.trace, spec.record = str(raw.absolute()), os.path.join(folder, "record.json")
        path = os.path.join(folder, "spec.json")
        record.write(path, spec)
        command = [sys.executable, *_options_of_python(), str(CHILD), path]
        is_nsys = spec.profiler == "nsys"
        if is_nsys:
            status, said = _under_nsys(command, raw, heard)
        else:
            status, said = _wait(subprocess.Popen(command), heard), ""
        found = record.read_record(spec.record)
    if is_nsys and found is not None and found.status is not None:
        status = found.status  # of a script that was interrupted nsys says 1
    if found is None and spec.world_size:  # rank 0 waits for it
        found = Record(spec.command, spec.mode, spec.label, spec.rank, spec.world_size)
    if found is not None:
        _keep(found, files, raw, status, wants_peaks)
    if found is None or found.trace is None:
        files.trace.unlink(missing_ok=True)
    return Ended(status, found, files, nsys.last_line(said) if is_nsys else None)


def _options_of_python() -> list[str]:
    """Those of this process, such as -W and -O, but for those that say where traceq itself is found."""
    options: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    said = {option.partition("=")[0] for option in options}
    more = [name if value is True else f"{name}={value}" for name, value in sys._xoptions.items()]
    options += [word for x in more if x.partition("=")[0] not in said for word in ("-X", x)]
    return [option for option in options if option not in ("-P", "-I", "-E", "-s")]


def _under_nsys(command: list[str], report: Path, heard: list[int]) -> tuple[int, str]:
    """Run the child under nsys with the streams of this process; what nsys says itself is kept apart."""
    out, err = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as said:
        around = nsys.around([*command, str(out), str(err)], report)
        child = subprocess.Popen(around, stdout=said, stderr=said, pass_fds=(out, err))
        os.close(out)
        os.close(err)
        status = _wait(child, heard)
        said.seek(0)
        return status, said.read().decode("utf-8", "replace")


def _keep(found: Record, files: Files, raw: Path, status: int, wants_peaks: bool) -> None:
    """Bring the trace to its name, and its record beside it; where the folder does not take them, it is noted."""
    try:
        _keep_trace(found, files, raw)
    except OSError as error:
        found.trace = None
        found.note(f"{record.NOT_WRITTEN}: {error.strerror}")
    _complete(found, status, wants_peaks)
    try:
        record.write(str(files.record), found)
    except OSError as error:
        found.note(f"the record of the capture could not be written: {error.strerror}")


def _keep_trace(found: Record, files: Files, raw: Path) -> None:
    """Bring the trace to its name: the child's own, or the last one that the script wrote itself."""
    last_first = dict.fromkeys(path for path in reversed(found.own_traces) if os.path.exists(path))
    own = [*reversed(last_first)]
    found.own_traces = [Path(path).name for path in own]
    if raw.suffix == ".nsys-rep":
        _export(found, files, raw)
        return
    if found.trace is not None:
        source = raw
    elif own:
        source = Path(own[-1])
        if len(own) > 1:
            found.note(f"the script wrote {len(own)} traces: the last is taken ({', '.join(own)})")
    else:
        return
    _pack(source, files.trace)
    found.trace = files.trace.name
    if source == raw and raw != files.trace:
        raw.unlink()


def _export(found: Record, files: Files, report: Path) -> None:
    """The export of an nsys report, which stays beside it."""
    fault = nsys.export(report, files.trace)
    found.trace = None if fault else files.trace.name
    if fault:
        found.note(fault)


def _complete(found: Record, status: int, wants_peaks: bool) -> None:
    """What the child cannot know: how it ended, the intervals of its timings, the GPU's peaks."""
    found.status = status
    for kind in ("pipelined", "synced"):
        steps = [t["ns"] / t["steps"] for t in found.timings if t["kind"] == kind]
        if steps:
            estimate = stats.bootstrap_median(steps)
            interval = {"median": estimate.value, "low": estimate.low, "high": estimate.high}
            setattr(found, f"step_{kind}_ns", {k: v for k, v in interval.items() if v is not None})
    if is_disturbed(found):
        found.note("steps that wait for nothing took longer than those that wait: the machine was busy, capture again")
    if wants_peaks and found.gpu:
        found.peaks, fault = measured_peaks()
        if fault:
            found.note(f"the peaks of the GPU were not measured: {fault}")


def is_disturbed(found: Record) -> bool:
    """Whether the step times contradict each other: waiting for the GPU after each step cannot make steps faster."""
    pipelined, synced = found.step_pipelined_ns or {}, found.step_synced_ns or {}
    if not pipelined or not synced:
        return False
    is_clear = "low" in pipelined and "high" in synced and pipelined["low"] > DISTURBED * synced["high"]
    return is_clear or pipelined["median"] > WITHOUT_VERDICT * synced["median"]


@functools.cache
def measured_peaks() -> tuple[dict[str, Any] | None, str | None]:
    """What this GPU reaches, by a process of its own: measured once, then known. Else why it is not."""
    done = subprocess.run(
        [sys.executable, "-m", "traceq.capture.peaks"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))},
        capture_output=True,
        text=True,
    )
    try:
        peaks: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None, nsys.last_line(done.stderr)
    return peaks, None


def _pack(source: Path, to: Path) -> None:
    """Copy a trace to its name, compressed as that says."""
    if source == to:
        return
    part = to.with_name(f"{to.name}.part")
    with _opened(source, "rb") as raw, _opened(part, "wb", to.suffix) as out:
        shutil.copyfileobj(raw, out, 1 << 20)
    os.replace(part, to)


def _opened(path: Path, mode: str, ending: str | None = None) -> Any:
    return gzip.open(path, mode, compresslevel=5) if (ending or path.suffix) == ".gz" else open(path, mode)


def _wait(child: subprocess.Popen[bytes], heard: list[int]) -> int:
    """Wait for the child; signals sent to this process alone are passed on to it.

    A Ctrl-C on the terminal reaches both, and the kernel says that it sent it: that one the child has already.
    """
    watched = {*interrupts.ASKING, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        for number in heard:  # while it started
            _pass_on(child, number)
        while child.poll() is None:
            info = signal.sigtimedwait(watched, 1.0)
            if info is None or info.si_signo == signal.SIGCHLD:
                continue
            _hear(info.si_signo, heard)
            if info.si_code != FROM_KERNEL:
                _pass_on(child, info.si_signo)
        while info := signal.sigtimedwait(watched, 0):
            _hear(info.si_signo, heard)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _hear(number: int, heard: list[int]) -> None:
    if number != signal.SIGCHLD and interrupts.is_heeded(number):
        heard.append(number)


def _pass_on(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)
