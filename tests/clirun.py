"""Running traceq as a user does, and small stores and traces to run it on."""

import contextlib
import fcntl
import gzip
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

from traceq import cli
from traceq.ingest.pipeline import Options, ingest

ROOT = Path(__file__).parents[1]
CASES = ROOT / "fixtures" / "cases"
DEMO = ROOT / "fixtures" / "demo"
NS_UNIT = CASES / "hand-20-display-unit-ns" / "input.json"
MARKUP = CASES / "hand-69-tui-names-that-look-like-markup" / "input.json"
LONG = CASES / "hand-47-very-long-and-mangled-names" / "input.json"
DEADLINE_S = 60.0
ERROR = re.compile(r"traceq: error: [^\n]+\n(hint: [^\n]+\n)?")
STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
REPEATED = re.compile(r'"(ts|correlation|External id)": (\d+)')


@dataclass(frozen=True)
class Done:
    """What a command did: its status, and its two streams as text and, for standard output, as bytes."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self):
        return self.raw.decode("utf-8")


def environment(**changes):
    """This process's environment without what changes traceq's answers, and with `changes`."""
    ours = ("TRACEQ_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "LC_", "LANG", "PYTHON", "TERM")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONPATH": str(ROOT), **{name: str(value) for name, value in changes.items()}}


def start(*argv, cwd=None, env=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """A running traceq in a process group of its own."""
    command = [sys.executable, "-m", "traceq", *map(str, argv)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment(**(env or {})), stdin=stdin, stdout=stdout, stderr=stderr, process_group=0
    )


def finish(process, timeout=DEADLINE_S):
    """Wait for a process that `start` gave."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(process.returncode, out or b"", (err or b"").decode("utf-8"))


def traceq(*argv, cwd=None, env=None, stdin=None):
    """Run traceq to its end; `stdin` are the bytes it gets there."""
    if stdin is None:
        return finish(start(*argv, cwd=cwd, env=env))
    command = [sys.executable, "-m", "traceq", *map(str, argv)]
    done = subprocess.run(
        command, cwd=cwd, env=environment(**(env or {})), input=stdin, capture_output=True, timeout=DEADLINE_S
    )
    return Done(done.returncode, done.stdout, done.stderr.decode("utf-8"))


def inside(*argv):
    """The same in this process, with this process's environment: for many questions about what is printed."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run([str(word) for word in argv])
        out.flush()
        err.flush()
    return Done(int(status), out.buffer.getvalue(), err.buffer.getvalue().decode("utf-8"))


def on_terminal(*argv, cwd=None, env=None):
    """The same with a terminal as standard output; line ends are as they were written."""
    master, slave = pty.openpty()
    process = start(*argv, cwd=cwd, env={"TERM": "xterm-256color", **(env or {})}, stdout=slave)
    os.close(slave)
    got = bytearray()
    deadline = time.monotonic() + DEADLINE_S
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while time.monotonic() < deadline and select.select([master], [], [], 1) is not None:
            if not (more := os.read(master, 1 << 16)):
                break
            got += more
    os.close(master)
    return Done(process.wait(DEADLINE_S), bytes(got).replace(b"\r\n", b"\n"), process.communicate()[1].decode())


def assert_fails(done, status, says):
    """The command ended with that status, one line of error, perhaps a hint, and nothing else on standard error."""
    assert done.status == status, done
    assert ERROR.fullmatch(done.err), done.err
    assert re.search(says, done.err), done.err


def wait_until(condition, process=None):
    """Poll until `condition()` is true; False if `process` ended before that."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        if process is not None and process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.002)
    return found


def cpu_seconds(process):
    """The processor time that a running process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def send(process, number=signal.SIGINT):
    """Send a signal to a process that `start` gave, and to what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def listing(folder):
    """Every file and folder below `folder`, with the size of each file."""
    return {str(p.relative_to(folder)): p.stat().st_size if p.is_file() else None for p in Path(folder).rglob("*")}


def fill(store, *runs):
    """Ingest (file, label) pairs in this process."""
    for path, label in runs:
        outcomes, _ = ingest([str(path)], Path(store), Options(label=label))
        assert [(o.result, o.run) for o in outcomes] == [("ingested", label)], outcomes
    return Path(store)


def rows(store, *argv):
    """The rows of a command that prints JSON."""
    done = inside(*argv, "--store", store, "--json", "-q")
    assert done.status == 0, done
    return json.loads(done.out)["rows"]


def labels(store):
    """The runs of a store, read as any DuckDB client would."""
    with duckdb.connect(store, read_only=True) as con:
        return [label for (label,) in con.execute("SELECT label FROM runs ORDER BY run_id").fetchall()]


def shared(tmp_path_factory, name, make):
    """A folder that `make` fills once for all workers of pytest-xdist. Only for reading."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = root / name
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = root / f"{name}.part"
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder


def trace(names, at_us=100.0):
    """The text of a trace with one launch and one kernel of 1 µs for each name."""
    events = []
    for number, name in enumerate(names, 1):
        where = {"correlation": number}
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            | {"ts": at_us + number * 10, "dur": 2, "args": where},
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7}
            | {"ts": at_us + number * 10 + 5, "dur": 1, "args": {"device": 0, "stream": 7, **where}},
        ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


def write_big_trace(path, copies=3):
    """A trace of about 11 MB a copy: the demo's eager one, each copy after the one before with ids of its own."""
    text = gzip.decompress((DEMO / "eager.json.gz").read_bytes()).decode()
    head, rest = text.split('"traceEvents": [', 1)
    end = rest.rindex("\n  ],")
    events = rest[:end]

    def moved(copy):
        by = {"ts": copy * 300_000, "correlation": copy * 1_000_000, "External id": copy * 1_000_000}
        return REPEATED.sub(lambda f: f'"{f[1]}": {int(f[2]) + by[f[1]]}', events)

    path.write_text(f'{head}"traceEvents": [{",".join(map(moved, range(copies)))}{rest[end:]}')
    return path
