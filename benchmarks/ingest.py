#!/usr/bin/env python3
"""Time `traceq ingest` against HolisticTraceAnalysis loading the same file; see README.md beside this file.

Plain Python 3.11, standard library only. MB is 10**6 bytes everywhere, of uncompressed text. Exit status: 0,
whatever the figures are (a benchmark never judges); 2 for a usage error or a trace that cannot be read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from repeat_trace import open_trace, size_in_bytes

HTA = "HolisticTraceAnalysis"
HTA_VERSION = "0.5.0"
HTA_BACKENDS = ("json", "ijson", "ijson_batched", "ijson_batch_and_compress")
MB = 10**6
BLOCK_BYTES = 4 * MB
SAMPLE_EVERY_S = 0.05


class UsageError(Exception):
    """Something the user has to change; ends the program with status 2."""


# ---- running and measuring ---------------------------------------------------------------------------------


@dataclass
class Run:
    """One whole process: wall time, highest memory, exit status and what it wrote."""

    wall_s: float
    peak_bytes: int | None
    exit_status: int
    stdout: str
    stderr: str


class TreeMemory(threading.Thread):
    """Samples the summed resident memory of a process and its descendants (Linux; elsewhere does nothing)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak_bytes, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        while not self.done.wait(SAMPLE_EVERY_S):
            pages = [resident_pages(pid) for pid in self.tree(self.pid)]
            self.peak_bytes = max(self.peak_bytes, sum(pages) * page_bytes)

    def tree(self, pid: int) -> Iterator[int]:
        yield pid
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                pids = children.read_text().split()
            except OSError:
                continue
            for child in pids:
                yield from self.tree(int(child))


def resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def measure(command: list[str], workdir: Path) -> Run:
    """Run a command to its end. Its peak is the larger of `ru_maxrss` and the sampled sum of its processes.

    On Linux `ru_maxrss` also counts what this program held when it started the command, so it stays small.
    """
    with tempfile.TemporaryFile(dir=workdir) as out, tempfile.TemporaryFile(dir=workdir) as err:
        started_s = time.monotonic()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            return Run(0.0, None, 127, "", f"{command[0]}: {error.strerror}")
        sampler = TreeMemory(process.pid)
        if sys.platform == "linux":
            sampler.start()
        try:
            own_peak_bytes = wait(process)
        except BaseException:
            process.kill()
            raise
        wall_s = time.monotonic() - started_s
        sampler.done.set()
        peak_bytes = None if own_peak_bytes is None else max(own_peak_bytes, sampler.peak_bytes)
        return Run(wall_s, peak_bytes, process.returncode, text_of(out), text_of(err))


def wait(process: subprocess.Popen[bytes]) -> int | None:
    if not hasattr(os, "wait4"):
        process.wait()
        return None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def text_of(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


class Traceq:
    name = "traceq ingest"

    def __init__(self, command: list[str], workdir: Path) -> None:
        self.command, self.workdir, self.json_flag = command, workdir, ["--json"]

    def load(self, trace: Path) -> Run:
        """Ingest into a store that does not exist yet, so that nothing is skipped as already present."""
        with tempfile.TemporaryDirectory(prefix="store-", dir=self.workdir) as folder:
            store = str(Path(folder) / "bench.duckdb")
            command = [*self.command, "ingest", str(trace), "--store", store]
            run = measure([*command, *self.json_flag], self.workdir)
            if run.exit_status == 2 and self.json_flag:
                self.json_flag = []
                run = measure(command, self.workdir)
            return run

    def start(self) -> Run:
        return measure([*self.command, "--version"], self.workdir)

    def parts(self, run: Run) -> dict[str, float]:
        try:
            return {f"  {name}": s for name, s in find_seconds(json.loads(run.stdout)).items()}
        except ValueError:
            return {}


class Hta:
    name = f"HTA {HTA_VERSION} load"
    load_code = "from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_files={{0: {path!r}}})"
    backend_code = (
        "from hta.common.trace_parser import ParserBackend, set_default_trace_parsing_backend as use; "
        "use(ParserBackend({backend!r})); "
    )

    def __init__(self, python: str, backend: str | None, workdir: Path) -> None:
        self.python, self.workdir = python, workdir
        self.prefix = self.backend_code.format(backend=backend) if backend else ""

    def load(self, trace: Path) -> Run:
        code = self.prefix + self.load_code.format(path=str(trace))
        return measure([self.python, "-c", code], self.workdir)

    def start(self) -> Run:
        return measure([self.python, "-c", "from hta.trace_analysis import TraceAnalysis"], self.workdir)

    def parts(self, run: Run) -> dict[str, float]:
        """From HTA's own log; each holds the one before it."""
        patterns = {
            "  reading the JSON": r"Parsed .* time = ([\d.]+) seconds",
            "  and making the frame": r"Parsed .* backend=.* in ([\d.]+) seconds",
            "  and linking, steps": r"Overall parsing of .* in ([\d.]+) seconds",
        }
        found = {name: re.search(pattern, run.stderr) for name, pattern in patterns.items()}
        return {name: float(match[1]) for name, match in found.items() if match}


def find_seconds(answer: object) -> dict[str, float]:
    """The first object called `timings` or `seconds` in a JSON answer, its numbers as seconds."""
    if isinstance(answer, list):
        return next((found for item in answer if (found := find_seconds(item))), {})
    if not isinstance(answer, dict):
        return {}
    for key in ("timings", "seconds"):
        if isinstance(answer.get(key), dict):
            return {k: in_seconds(k, v) for k, v in answer[key].items() if type(v) in (int, float)}
    return find_seconds(list(answer.values()))


def in_seconds(name: str, value: float) -> float:
    scale = {"ns": 1e9, "us": 1e6, "ms": 1e3}.get(name.rpartition("_")[2], 1)
    return value / scale


# ---- finding the two programs ------------------------------------------------------------------------------


def traceq_command(given: str | None) -> list[str]:
    if given:
        return shlex.split(given)
    beside = Path(sys.executable).with_name("traceq")
    found = str(beside) if beside.exists() else shutil.which("traceq")
    return [found] if found else [sys.executable, "-m", "traceq"]


def hta_python(given: str | None, backend: str | None, workdir: Path) -> str | None:
    """The Python that has HTA: the one given, or that of a private environment made once in `workdir`."""
    folder = workdir / f"hta-{HTA_VERSION}"
    python = given or str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    wanted = [f"{HTA}=={HTA_VERSION}"] + (["ijson"] if backend and backend != "json" else [])
    modules = ["hta"] + (["ijson"] if len(wanted) > 1 else [])
    check = [python, "-c", "import " + ", ".join(modules)]
    if given or (Path(python).exists() and measure(check, workdir).exit_status == 0):
        return python
    print(f"installing {' '.join(wanted)} in {folder}", file=sys.stderr)
    pip_install = [python, "-m", "pip", "install", "-q", *wanted]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip_install):
        run = measure(command, workdir)
        if run.exit_status:
            print(f"HTA could not be installed, so only traceq is timed: {last_line(run)}", file=sys.stderr)
            return None
    return python


def versions(python: str, workdir: Path) -> str:
    code = (
        "import platform; from importlib.metadata import version; "
        f"print(*(f'{{name}} {{version(name)}}' for name in ('{HTA}', 'pandas', 'numpy')), "
        "'Python', platform.python_version())"
    )
    run = measure([python, "-c", code], workdir)
    return run.stdout.strip() if run.exit_status == 0 else f"broken: {last_line(run)}"


def last_line(run: Run) -> str:
    lines = (run.stderr or run.stdout).strip().splitlines()
    return f"exit {run.exit_status}: {lines[-1] if lines else 'no message'}"


# ---- the report --------------------------------------------------------------------------------------------


def median_of(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "-"


def row_of(name: str, runs: list[Run], size_bytes: int | None) -> list[str]:
    good = [run for run in runs if run.exit_status == 0]
    if not good:
        return [name, "failed", *[""] * 4]
    walls_s = [run.wall_s for run in good]
    peaks_bytes = [run.peak_bytes for run in good if run.peak_bytes is not None]
    speed = f"{size_bytes / MB / statistics.median(walls_s):.1f}" if size_bytes else ""
    peak = f"{max(peaks_bytes) / MB:.0f}" if peaks_bytes else "-"
    return [name, f"{min(walls_s):.2f}", median_of(walls_s), f"{max(walls_s):.2f}", speed, peak]


def part_rows(tool: Traceq | Hta, runs: list[Run]) -> list[list[str]]:
    parts: dict[str, list[float]] = {}
    for run in runs:
        if run.exit_status == 0:
            for name, value_s in tool.parts(run).items():
                parts.setdefault(name, []).append(value_s)
    return [
        [name, f"{min(values):.2f}", median_of(values), f"{max(values):.2f}", "", ""] for name, values in parts.items()
    ]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())


def print_ratio(ours: list[Run], theirs: list[Run]) -> None:
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.exit_status == b.exit_status == 0]
    if not pairs:
        print("\nno ratio: no pair of runs in which both succeeded")
        return
    ratios = [b.wall_s / a.wall_s for a, b in pairs]
    listed = " ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"\ntraceq is faster by, pair by pair: {listed}; median {statistics.median(ratios):.2f}")


def machine() -> str:
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 10**9:.0f} GB"
    return f"{os.cpu_count()} cores{memory}, {platform.system()} {platform.machine()}"


def compare(tools: list[Traceq | Hta], trace: Path, runs: int) -> None:
    size_bytes = trace.stat().st_size
    starts: list[list[Run]] = [[] for _ in tools]
    loads: list[list[Run]] = [[] for _ in tools]
    warm_up(tools, trace)
    for number in range(runs):
        for index, tool in enumerate(tools):
            starts[index].append(tool.start())
            loads[index].append(run := tool.load(trace))
            state = f"{run.wall_s:.2f} s" if run.exit_status == 0 else last_line(run)
            print(f"run {number + 1}/{runs}: {tool.name}: {state}", file=sys.stderr)
    rows = [["", "min s", "median s", "max s", "MB/s", "peak MB"]]
    rows += [row_of(tool.name, loads[i], size_bytes) for i, tool in enumerate(tools)]
    for i, tool in enumerate(tools):
        rows.append([""] * 6)
        rows.append(row_of(f"{tool.name}: start-up, imports", starts[i], None))
        rows += part_rows(tool, loads[i])
    print_table(rows)
    if len(tools) == 2:
        print_ratio(*loads)


def warm_up(tools: list[Traceq | Hta], trace: Path) -> None:
    """Byte code written and the file in the page cache before either is timed."""
    for tool in tools:
        tool.start()
    with trace.open("rb") as stream:
        while stream.read(BLOCK_BYTES):
            pass


# ---- command line ------------------------------------------------------------------------------------------


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time `traceq ingest` against HTA loading the same trace.")
    add = parser.add_argument
    add("trace", type=Path, metavar="TRACE", help="a torch.profiler trace, .json or .json.gz")
    add("--repeat-to", type=size_in_bytes, metavar="SIZE", help="time the trace repeated to e.g. 1GB instead")
    add("--runs", type=positive, default=3, help="runs of each, alternating (default 3)")
    add("--traceq", metavar="CMD", help="the traceq command (default: the installed one)")
    add("--hta", metavar="PYTHON", help="a Python that has HTA (default: an environment is made in DIR)")
    add("--hta-backend", choices=HTA_BACKENDS, help="a parser of HTA other than its default")
    add("--no-hta", action="store_true", help="time traceq alone")
    workdir = Path(tempfile.gettempdir()) / "traceq-bench"
    add(
        "--workdir",
        type=Path,
        metavar="DIR",
        default=workdir,
        help="default: traceq-bench in the temp folder",
    )
    return parser.parse_args()


def plain_trace(trace: Path, workdir: Path) -> Path:
    """The trace as an unpacked file whose name ends in .json, which is what both programs are given."""
    with trace.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if trace.suffix == ".json" and not packed:
        return trace.resolve()
    target = workdir / (trace.name.removesuffix(".gz").removesuffix(".json") + ".json")
    source_time_ns = trace.stat().st_mtime_ns
    if not (target.exists() and target.stat().st_mtime_ns == source_time_ns):
        with open_trace(trace) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, BLOCK_BYTES)
        os.utime(target, ns=(source_time_ns, source_time_ns))
    return target


def repeated_trace(source: Path, wanted_bytes: int, workdir: Path) -> Path:
    """The repeated trace in `workdir`, made now or found from an earlier run on the same source.

    A process of its own makes it, so that this one stays small (see `measure`).
    """
    target = workdir / f"{source.stem}.repeated-{wanted_bytes}.json"
    note = target.with_suffix(".source")
    stamp = f"{source} {source.stat().st_size} {source.stat().st_mtime_ns}"
    if target.exists() and note.exists() and note.read_text() == stamp:
        return target
    note.unlink(missing_ok=True)
    program = Path(__file__).with_name("repeat_trace.py")
    command = [sys.executable, str(program), str(source), str(wanted_bytes), str(target)]
    if subprocess.run(command, check=False).returncode:
        raise UsageError(f"{source}: could not be repeated")
    note.write_text(stamp)
    return target


def main() -> int:
    try:
        benchmark(arguments())
    except (UsageError, OSError, EOFError) as error:
        print(f"ingest.py: {error}", file=sys.stderr)
        return 2
    return 0


def benchmark(options: argparse.Namespace) -> None:
    options.workdir.mkdir(parents=True, exist_ok=True)
    workdir = options.workdir.resolve()
    trace = plain_trace(options.trace, workdir)
    if options.repeat_to:
        trace = repeated_trace(trace, options.repeat_to, workdir)
    tools: list[Traceq | Hta] = [Traceq(traceq_command(options.traceq), workdir)]
    python = None if options.no_hta else hta_python(options.hta, options.hta_backend, workdir)
    if python:
        tools.append(Hta(python, options.hta_backend, workdir))
    print(f"trace    {trace.name}, {trace.stat().st_size / MB:.1f} MB unpacked")
    print(f"machine  {machine()}")
    print(f"traceq   {tools[0].start().stdout.strip() or '-'}")
    if python:
        print(f"HTA      {versions(python, workdir)}, parser {options.hta_backend or 'as it comes (json)'}")
    print(flush=True)
    compare(tools, trace, options.runs)


if __name__ == "__main__":
    sys.exit(main())
