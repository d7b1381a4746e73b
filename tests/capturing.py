"""Running a script plainly and under `traceq capture`, and what the two wrote."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from clirun import environment

OURS = ("traceq: ", "hint: ")
DEADLINE_S = 240.0
# Else torch compiles a file for each kind of vector instruction, to see which work: two thirds of a first compilation.
SCALAR = {"TORCHINDUCTOR_VEC_ISA_OK": 0}


@dataclass(frozen=True)
class Ran:
    """What a command did: its status, its standard output, its standard error, and the notes of traceq in it."""

    status: int
    out: bytes
    err: bytes
    notes: list[str] = field(default_factory=list)

    @property
    def what_the_script_did(self):
        return self.status, self.out, self.err


@dataclass(frozen=True)
class Captured(Ran):
    """The same with the folder that it ran in."""

    folder: Path = Path()

    @property
    def store(self):
        return self.folder / "traceq.duckdb"

    @property
    def traces(self):
        return sorted(p for p in (self.folder / "traces").glob("*.json*") if not p.name.endswith(".capture.json"))

    def record(self, name="*"):
        (path,) = (self.folder / "traces").glob(f"{name}.capture.json")
        return json.loads(path.read_text("utf-8"))

    def ask(self, sql):
        with duckdb.connect(self.store, read_only=True) as con:
            return con.execute(sql).fetchall()

    def count(self, op):
        return self.ask(f"SELECT count(*) FROM ops WHERE name = '{op}'")[0][0]


def plain(*argv, cwd, env=None):
    """Run Python on a script as a user does without traceq."""
    done = subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=cwd,
        env=environment(**SCALAR, **(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Ran(status, done.stdout, done.stderr)


def start(*argv, cwd, env=None):
    """A running `traceq capture`, alone in a process group."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "traceq", "capture", *map(str, argv)],
        cwd=cwd,
        env=environment(**SCALAR, **(env or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )


def finish(process, cwd):
    """Wait for what `start` gave."""
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        raise
    lines = err.splitlines(keepends=True)
    notes = [line.decode().rstrip() for line in lines if line.decode("utf-8", "replace").startswith(OURS)]
    rest = b"".join(line for line in lines if not line.decode("utf-8", "replace").startswith(OURS))
    return Captured(process.returncode, out, rest, notes, Path(cwd))


def capture(*argv, cwd, env=None):
    """Run `traceq capture` to its end."""
    return finish(start(*argv, cwd=cwd, env=env), cwd)
