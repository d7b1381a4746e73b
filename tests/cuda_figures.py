"""Figures of `traceq capture` on a GPU; needs torch and what traceq itself needs, nothing else.

    python tests/cuda_figures.py [PART…]     # none: all; nsys must be on the path for its part, ranks need two GPUs

examples   the three examples in all four modes, with the table that ends a comparison
steps      the un-profiled step of each example against a plain loop of the same script, each in a process of its own,
           in turns; the least of each is compared, for a host's speed comes and goes
breaks     graph breaks of `.item()` and of control flow that depends on data, counted against the known number
sources    Triton kernels of a trace whose source was found
trace      a capture of five steps is read without a warning
submodules blocks of a model, ranked by what compiling each alone brings
memory     the peak of work that a CUDA graph does against that of the same work launched one by one
ranks      two ranks of NCCL on two GPUs become one run
nsys       the same steps recorded by nsys and by torch's profiler have the same kernels, those in CUDA graphs, too

Ends with status 1 if a figure misses what is asked of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
CASES = {
    "train": ("train.py",),
    "infer": ("infer.py",),
    "scattered": ("operators.py", "scattered"),
    "gemm": ("operators.py", "gemm"),
    "adam": ("operators.py", "adam"),
}
# So much that the GPU decides where it can, and so long that it has settled on its clock.
AT_LENGTH = {
    "train": ("--batch", "96", "--steps", "300"),
    "infer": ("--batch", "128", "--steps", "600"),
    "scattered": ("--steps", "8000"),
    "gemm": ("--steps", "8000"),
    "adam": ("--steps", "600"),
}
MODES = ("eager", "default", "reduce-overhead", "max-autotune")
BY_HAND = ("eager", "default")  # modes whose plain loops are timed, too
WITHIN_PCT = 5.0
ROUNDS = 3
BREAKS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        x = self.a(x)
        scale = x.abs().max().item()      # the first break
        x = self.b(x * (1 / (1 + scale)))
        if x.sum() > 0:                   # the second
            x = x + 1
        else:
            x = x - 1
        torch._dynamo.graph_break()       # the third
        return self.c(x)

torch.manual_seed(0)
model = Model().cuda()
x = torch.randn(32, 64, device="cuda")
with torch.no_grad():
    for _ in range(200):
        model(x)
"""
KNOWN_BREAKS = 3
INFER_BLOCKS = 4
MEMORY = """
import sys
import torch

def work(x):
    return ((x * 2 + 1) * x).sum()

class Plain(torch.nn.Module):
    def forward(self, x):
        return work(x)

class Replayed(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        work(x)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = work(x)

    def forward(self, x):
        self.graph.replay()
        return self.out

x = torch.ones(2**25, device="cuda")
model = Replayed(x) if sys.argv[1] == "graph" else Plain()
torch.zeros(2**29, device="cuda")  # taken from the driver, kept by the allocator, in no step
for _ in range(300):
    model(x)
"""
MEMORY_BYTES = 3 * 2**25 * 4  # the input and two products are there at a time
RANKS = """
import os
import torch
import torch.distributed as dist
from torch import nn

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda())
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(512, 1024, device="cuda")
for _ in range(300):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


class Folder:
    """An empty folder with a store, in which scripts are run plainly and captured."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / "traceq.duckdb"

    def run(self, *command: str) -> tuple[int, str, str]:
        """Status, standard output and standard error of a command of Python."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    def plain_ns(self, mode: str, script: str, *words: str) -> float:
        """The step of a plain loop, by the script's own clock."""
        by_hand = [] if mode == "eager" else ["--mode", mode]
        status, out, err = self.run(str(EXAMPLES / script), *words, *by_hand)
        assert status == 0, err
        return float(out.split("step_ns ")[1].split()[0])

    def captured_ns(self, mode: str, label: str, *command: str) -> float:
        """The un-profiled step that a capture of the same gives."""
        status, said = self.captured(label, mode, "--no-measure-peaks", *command)
        assert status == 0, said
        return float(self.ask(f"SELECT step_pipelined_ns FROM runs WHERE label = '{label}/{mode}'")[0][0])

    def captured(self, label: str, modes: str, *command: str) -> tuple[int, str]:
        """Capture in modes; status and what was said."""
        status, _, err = self.run("-m", "traceq", "capture", "--compare", modes, "--label", label, *command)
        return status, err

    def ask(self, sql: str) -> list[tuple]:
        """Rows of the store."""
        with duckdb.connect(str(self.store), read_only=True) as con:
            return con.execute(sql).fetchall()


def examples(folder: Folder, cases: list[str], modes: list[str]) -> bool:
    """The table of each example in `modes`."""
    fine = True
    for case in cases:
        began = time.monotonic()
        script, *words = CASES[case]
        extra = ["--check-outputs", *optimizer_too(case)]
        status, said = folder.captured(case, ",".join(modes), *extra, str(EXAMPLES / script), *words)
        print(f"== {case}: status {status}, {time.monotonic() - began:.0f} s\n{said}", flush=True)
        fine &= status == 0
    return fine


def optimizer_too(case: str) -> list[str]:
    """What those examples are captured with that compile their optimizer, too, when they compile by hand."""
    return ["--compile-optimizer"] if case in ("train", "adam") else []


def steps(folder: Folder, cases: list[str], modes: list[str]) -> bool:
    """Whether the step of each example is that of a plain loop."""
    fine = [is_close(folder, case, mode) for case in cases for mode in modes]
    return all(fine)


def is_close(folder: Folder, case: str, mode: str) -> bool:
    script, *words = *CASES[case], *AT_LENGTH[case]
    plain, captured = [], []
    for n in range(ROUNDS):
        plain.append(folder.plain_ns(mode, script, *words))
        command = *optimizer_too(case), str(EXAMPLES / script), *words
        captured.append(folder.captured_ns(mode, f"{case}-{mode}-{n}", *command))
    deviation = 100 * (min(captured) / min(plain) - 1)
    told = [", ".join(f"{ns / 1e3:.2f}" for ns in some) for some in (captured, plain)]
    print(f"step of {case} {mode}: captured {told[0]} µs, plain {told[1]} µs: {deviation:+.1f} %", flush=True)
    return abs(deviation) <= WITHIN_PCT


def breaks(folder: Folder) -> bool:
    """Graph breaks found of those that are in the script."""
    (folder.path / "breaks.py").write_text(BREAKS)
    status, said = folder.captured("breaks", "eager,default", "breaks.py")
    assert status == 0, said
    found = folder.ask("SELECT reason, file, line, count FROM graph_breaks ORDER BY line")
    print(f"graph breaks: {len(found)} places of {KNOWN_BREAKS}")
    for row in found:
        print("  ", *row)
    return len(found) == KNOWN_BREAKS


def sources(folder: Folder) -> bool:
    """Triton kernels of a compiled training trace whose source is in the store."""
    status, said = folder.captured("sources", "default", "--compile-optimizer", str(EXAMPLES / "train.py"))
    assert status == 0, said
    run = "sources/default"
    kernels = {
        n for (n,) in folder.ask(f"SELECT DISTINCT name FROM kernels WHERE run = '{run}' AND name LIKE 'triton_%'")
    }
    known = {
        n for (n,) in folder.ask(
            f"SELECT kernel FROM kernel_sources JOIN runs USING (run_id) WHERE label = '{run}' AND source <> ''"
        )
    }  # fmt: skip
    print(f"sources: {len(kernels & known)} of {len(kernels)} Triton kernels; without: {sorted(kernels - known)}")
    return bool(kernels) and kernels <= known


def trace(folder: Folder) -> bool:
    """A plain capture of five steps: its steps, the warnings of reading it, its peaks."""
    status, _, err = folder.run("-m", "traceq", "capture", "--label", "five", str(EXAMPLES / "train.py"))
    print(err)
    found = folder.ask(
        "SELECT t.status, t.warnings, (SELECT count(*) FROM steps AS s WHERE s.trace_id = t.trace_id), "
        "(SELECT count(*) FROM kernels AS k WHERE k.trace_id = t.trace_id) "
        "FROM traces AS t JOIN runs AS r USING (run_id) WHERE label = 'five'"
    )
    print("trace:", found, folder.ask("SELECT name, peak_bytes_per_s, peak_flops FROM devices LIMIT 1"))
    record = json.loads(next(folder.path.glob("traces/five*.capture.json")).read_text())
    print("peaks:", record["peaks"], "peak memory:", record["peak_memory_bytes"], "notes:", record["notes"])
    return status == 0 and found[0][:3] == ("complete", "[]", 5) and found[0][3] > 0


def submodules(folder: Folder) -> bool:
    """The blocks of the inference example, each compiled alone."""
    status, said = folder.captured("blocks", "eager,default", "--submodules", str(EXAMPLES / "infer.py"))
    print(said)
    found = folder.ask("SELECT label FROM runs WHERE label NOT IN ('blocks/eager', 'blocks/default') ORDER BY label")
    print("submodules:", found)
    return status == 0 and len(found) == INFER_BLOCKS


def memory(folder: Folder) -> bool:
    """The peak of a script whose memory is known, with a CUDA graph and without."""
    (folder.path / "memory.py").write_text(MEMORY)
    for how in ("plain", "graph"):
        status, said = folder.captured(how, "eager", "--no-measure-peaks", "memory.py", how)
        assert status == 0, said
    found = dict(folder.ask("SELECT label, peak_memory_bytes FROM runs"))
    print(f"peak memory: {found}, known {MEMORY_BYTES}")
    return all(abs(found[f"{how}/eager"] / MEMORY_BYTES - 1) < WITHIN_PCT / 100 for how in ("plain", "graph"))


def ranks(folder: Folder) -> bool:
    """Two ranks, each on its own GPU, that reduce their gradients."""
    (folder.path / "ranks.py").write_text(RANKS)
    start = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "traceq", "capture")
    status, out, err = folder.run(*start, "--label", "two", "ranks.py")
    print(out, err)
    assert status == 0, err
    found = folder.ask(
        "SELECT t.rank, t.world_size, t.status, (SELECT count(*) FROM steps AS s WHERE s.trace_id = t.trace_id), "
        "(SELECT count(*) FROM kernels AS k WHERE k.trace_id = t.trace_id AND category = 'comm') "
        "FROM traces AS t JOIN runs AS r USING (run_id) WHERE label = 'two' ORDER BY t.rank"
    )
    print("ranks:", found)
    return [row[:4] for row in found] == [(0, 2, "complete", 5), (1, 2, "complete", 5)] and all(r[4] for r in found)


def nsys(folder: Folder) -> bool:
    """Kernels in a step of the inference example, eager and from a CUDA graph, by both profilers."""
    modes = "eager,reduce-overhead"
    for profiler in ("torch", "nsys"):
        command = "--profiler", profiler, "--no-measure-peaks", str(EXAMPLES / "infer.py")
        status, said = folder.captured(profiler, modes, *command)
        print(said)
        assert status == 0, said
    found = {
        tuple(label.split("/")): rest
        for label, *rest in folder.ask(
            "SELECT r.label, any_value(t.format), count(DISTINCT k.step), count(*), count(k.graph_node_id) > 0 "
            "FROM kernels AS k JOIN traces AS t USING (trace_id) JOIN runs AS r USING (run_id) "
            "WHERE k.step IS NOT NULL GROUP BY r.label"
        )
    }
    print("format, steps, kernels, graph nodes:", found)
    return all(
        found["nsys", mode][:2] == ["nsys", 5]
        and found["nsys", mode][2] == found["torch", mode][2]
        and found["nsys", mode][3] == (mode != "eager")
        for mode in modes.split(",")
    )


def main() -> int:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--modes", default=",".join(MODES))
    args = parser.parse_args()
    cases, modes = args.cases.split(","), args.modes.split(",")
    fine = {}
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(Path(path))
        for part, run in {
            "trace": lambda: trace(folder),
            "breaks": lambda: breaks(folder),
            "sources": lambda: sources(folder),
            "submodules": lambda: submodules(folder),
            "memory": lambda: memory(folder),
            "ranks": lambda: ranks(folder),
            "nsys": lambda: nsys(folder),
            "steps": lambda: steps(folder, cases, [mode for mode in modes if mode in BY_HAND]),
            "examples": lambda: examples(folder, cases, modes),
        }.items():
            if not args.parts or part in args.parts:
                began = time.monotonic()
                fine[part] = run()
                print(f"{part}: {'fine' if fine[part] else 'MISSED'} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0 if all(fine.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
