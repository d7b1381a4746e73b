"""Golden rows of the queries on captures, from their records and traces, by plain Python and not by traceq."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import definitions
from definitions import Row, Trace, in_order, keyed, median, percent, ratio

ENDING = ".capture.json"

# What the makers' data sheets say: GB/s, and dense TFLOP/s.
SHEETS = {
    "NVIDIA H200": {
        "memory": 4800, "bfloat16": 989.4, "float16": 989.4, "float32": 67, "float64": 67, "float8": 1978.9,
        "int8": 1978.9, "tf32": 494.7,
    },
    "NVIDIA A100-SXM4-80GB": {
        "memory": 2039, "bfloat16": 312, "float16": 312, "float32": 19.5, "float64": 19.5, "int8": 624, "tf32": 156,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Captured:
    """A record with the run that it became and the trace beside it, if there is one."""

    run: str
    record: Row
    traces: list[Trace]

    @property
    def capture(self) -> str:
        """What is before the last slash of the run's label."""
        return self.run.rpartition("/")[0] or self.run

    def facts(self, name: str) -> list[Row]:
        return (self.record["facts"] or {}).get(name, [])

    def step(self, kind: str, what: str) -> int | None:
        return (self.record[f"step_{kind}_ns"] or {}).get(what)


def load(paths: list[tuple[Row, Path]], traces: list[Trace]) -> list[Captured]:
    """The records that are files of a run themselves, and those beside a trace."""
    found = []
    for run, path in paths:
        record = path if path.name.endswith(ENDING) else path.with_name(path.name.partition(".json")[0] + ENDING)
        if record.exists():
            its = [t for t in traces if t.run == run["label"]]
            found.append(Captured(run["label"], json.loads(record.read_text("utf-8")), its))
    return found


def only(things: list[Trace | Captured]) -> list[Captured]:
    return [t for t in things if isinstance(t, Captured)]


def rows_of(things: list[Trace | Captured], table: str) -> Iterator[tuple[Captured, Row]]:
    """Rows of one table of facts, each with its capture."""
    for c in only(things):
        for row in c.facts(table):
            yield c, row


def runs(things: list[Trace | Captured]) -> list[Row]:
    """Runs with traces, then those without: they came in that order."""
    with_traces = definitions.runs([t for t in things if isinstance(t, Trace)])
    return with_traces + [
        {
            **dict.fromkeys(with_traces[0]),
            "run": c.run,
            "traces": 0,
            "gpu": c.record["gpu"],
            "step_ns": c.step("pipelined", "median"),
        }
        for c in only(things)
        if not c.traces
    ]


def captures(things: list[Trace | Captured], label: str | None = None) -> list[Row]:
    found = []
    for capture, some in sorted(keyed(only(things), lambda c: c.capture).items()):
        for c in some if label in (None, capture) else ():
            alike = [other for other in some if ("/" in other.run) == ("/" in c.run)]
            base = next((other for other in alike if other.record["mode"] == "eager"), alike[0])
            found.append(capture_row(c, base))
    return found


def capture_row(c: Captured, base: Captured) -> Row:
    good = [s for t in c.traces for s in t.steps if not s.flags and not t.invisible]
    is_seen, other = c.record["facts"] is not None, c is not base
    places = {(r["reason"], r["file"], r["line"], r["function"]) for r in c.facts("graph_breaks")}
    return {
        "run": c.run,
        "mode": c.record["mode"],
        "step_ns": c.step("pipelined", "median"),
        "step_low_ns": c.step("pipelined", "low"),
        "step_high_ns": c.step("pipelined", "high"),
        "speedup": ratio(base.step("pipelined", "median"), c.step("pipelined", "median")),
        "speedup_low": ratio(base.step("pipelined", "low"), c.step("pipelined", "high")) if other else None,
        "speedup_high": ratio(base.step("pipelined", "high"), c.step("pipelined", "low")) if other else None,
        "synced_ns": c.step("synced", "median"),
        "synced_low_ns": c.step("synced", "low"),
        "synced_high_ns": c.step("synced", "high"),
        "gpu_busy_ns": median(definitions.union_over_devices(s.work) for s in good),
        "kernels": median(sum(a.kind == "kernel" for a in s.work) for s in good),
        "compile_ns": sum(r["ns"] for r in c.facts("compile_phases")) if is_seen else None,
        "graph_breaks": len(places) if is_seen else None,
        "recompiles": sum(r["count"] for r in c.facts("recompiles")) if is_seen else None,
        "peak_bytes": c.record["peak_memory_bytes"],
    }


def timings(things: list[Trace | Captured]) -> list[Row]:
    found = [
        {
            "run": c.run,
            "rank": c.record["rank"],
            **{name: t[name] for name in ("kind", "block", "steps")},
            "total_ns": t["ns"],
            "step_ns": Fraction(t["ns"], t["steps"]),
        }
        for c in only(things)
        for t in c.record["timings"]
    ]
    return in_order(found, "run", "kind", "block")


def graph_breaks(things: list[Trace | Captured]) -> list[Row]:
    found = [
        {
            "run": c.run,
            "rank": c.record["rank"],
            **{name: b[name] for name in ("file", "line", "function", "reason")},
            "graphs": b["count"],
        }
        for c, b in rows_of(things, "graph_breaks")
    ]
    return in_order(found, "run", "-graphs", "file", "line")


def recompiles(things: list[Trace | Captured]) -> list[Row]:
    found = [
        {
            "run": c.run,
            "rank": c.record["rank"],
            **{name: r[name] for name in ("file", "line", "function", "guard")},
            "recompiles": r["count"],
        }
        for c, r in rows_of(things, "recompiles")
    ]
    return in_order(found, "run", "-recompiles", "file", "line")


def compile_time(things: list[Trace | Captured]) -> list[Row]:
    whole: Counter[str] = Counter()
    for c, p in rows_of(things, "compile_phases"):
        whole[c.run] += p["ns"]
    found = [
        {
            "run": c.run,
            "rank": c.record["rank"],
            "phase": p["phase"],
            "total_ns": p["ns"],
            "pct_of_compile": percent(p["ns"], whole[c.run]),
            "runs": p["count"],
        }
        for c, p in rows_of(things, "compile_phases")
    ]
    return in_order(found, "run", "-total_ns")


def kernel_sources(things: list[Trace | Captured]) -> list[Row]:
    found = []
    for c, k in rows_of(things, "kernel_sources"):
        ran = [a for t in c.traces for a in t.kernels if a.name == k["kernel"]]
        found.append(
            {
                "run": c.run,
                "rank": c.record["rank"],
                "kernel": k["kernel"],
                "gpu_ns": sum(a.dur for a in ran) if ran else None,
                **known(k, "language", "num_warps", "num_stages", "registers", "spills", "shared_bytes"),
                "lines": len(k["source"].splitlines()),
                "hash": k["hash"],
                "ops": None if k["ops"] is None else ", ".join(k["ops"]),
                "elements": elements(k["source"]),
            }
        )
    return in_order(found, "run", "-gpu_ns", "kernel", "hash")


def elements(source: str) -> int | None:
    """Of a kernel that sets every size that it takes."""
    head = next((line for line in source.splitlines() if line.startswith("def triton_")), "")
    asked = [word.strip(" )") for word in head.replace("(", ",").split(",") if word.strip(" )").endswith("numel")]
    fixed = {}
    for line in source.splitlines():
        name, _, value = line.partition("=")
        if value.strip().isdecimal():
            fixed[name.partition(":")[0].strip()] = int(value)
    return prod(fixed[name] for name in asked) if asked and set(asked) <= set(fixed) else None


def known(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def kernel_source(things: list[Trace | Captured], kernel: str | None = None) -> list[Row]:
    found = [
        {
            "line": number,
            "source": line,
            "kernel": k["kernel"],
            "hash": k["hash"],
            "run": c.run,
            "rank": c.record["rank"],
        }
        for c, k in rows_of(things, "kernel_sources")
        if kernel in (None, k["kernel"], k["hash"])
        for number, line in enumerate(k["source"].splitlines(), 1)
    ]
    return in_order(found, "run", "kernel", "hash", "line")


def device_peaks(things: list[Trace | Captured]) -> list[Row]:
    measured = {t: c.record["peaks"] for c in only(things) if c.record["peaks"] for t in map(id, c.traces)}
    found = []
    for t in things:
        if isinstance(t, Trace):
            for device in t.devices or [d["id"] for d in t.metadata.get("deviceProperties", [])]:
                found += peaks_of(t, device, measured.get(id(t)))
    return in_order(found, "run", "rank", "device")


def peaks_of(t: Trace, device: int, measured: Row | None) -> Iterator[Row]:
    """Memory first, then the formats by name."""
    gpu = t.device_name(device)
    if measured and gpu == measured["gpu"]:
        peaks = {"memory": Fraction(measured["bytes_per_s"], 10**9)}
        peaks |= {name: Fraction(flops, 10**12) for name, flops in sorted(measured["flops"].items())}
    else:
        peaks, measured = SHEETS.get(gpu, {}), None
    for peak, rate in peaks.items():
        yield {
            "run": t.run,
            "rank": t.rank,
            "device": device,
            "gpu": gpu,
            "peak": peak,
            "gb_per_s": Fraction(rate) if peak == "memory" else None,
            "tflop_per_s": None if peak == "memory" else Fraction(rate),
            "source": "measured" if measured else "data sheet",
        }


CALLS: dict[Callable[..., list[Row]], list[Row]] = {
    runs: [{}],
    captures: [{}, {"label": "train"}],
    timings: [{}, {"run": "train/eager"}],
    graph_breaks: [{}, {"run": "train/eager"}],
    recompiles: [{}, {"run": "train/default"}],
    compile_time: [{}, {"run": "train/default"}],
    kernel_sources: [{}, {"run": "uneven"}],
    device_peaks: [{}, {"run": "uneven"}],
    kernel_source: [{}, {"run": "train/default", "kernel": "cdef"}, {"kernel": "uneven_most"}],
}
