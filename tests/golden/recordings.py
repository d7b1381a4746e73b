"""What nsys' reports are computed from: GPU work, API calls and ranges of a torch.profiler trace or an nsys export.

Plain Python, and not by traceq: an export is read with sqlite3, a trace is what explain.py made of it. Times count from
the first event, pids are those of the system.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import definitions
from definitions import Row
from op_rows import short_name

DIRECTIONS = [
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array",
    "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer", "Unified Host-to-Device",
    "Unified Device-to-Host", "Unified Device-to-Device",
]  # fmt: skip
MEMORY = ["Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"]
LETTERS = {"H": "Host", "D": "Device", "A": "Array", "P": "Peer"}
GRAPH_LAUNCH = re.compile("^(cuda|cu|hip)GraphLaunch")
# What PyTorch's emit_nvtx adds to the name of an operator.
ADDED = re.compile(
    r"(, seq = -?\d+)?(, op_id = \d+)?(, sizes = \[[^a-zA-Z]*\])?(, input_op_ids = (\[[^a-zA-Z]*\]))?$", re.S
)


@dataclass(eq=False)
class Call:
    """A call of the CUDA API."""

    name: str
    pid: int | None
    tid: str
    start: int
    end: int
    correlation: int | None
    work: list[Work] = field(default_factory=list)

    @property
    def dur(self) -> int:
        return self.end - self.start

    @property
    def is_hidden_replay(self) -> bool:
        """Whether it launched a graph of which nothing was recorded."""
        return bool(GRAPH_LAUNCH.search(self.name) and self.correlation and not self.work)


@dataclass(eq=False)
class Work:
    """GPU activity; `direction` is that of a copy, as nsys calls it, `columns` what is shown as recorded."""

    kind: str
    names: tuple[str, str, str]
    pid: int | None
    device: int
    start: int
    end: int
    bytes: int | None
    direction: str
    columns: Row
    launch: Call | None = None

    @property
    def dur(self) -> int:
        return self.end - self.start

    @property
    def operation(self) -> str:
        """As nsys calls a copy or memset."""
        return "[CUDA memset]" if self.kind == "memset" else f"[CUDA memcpy {self.direction}]"


@dataclass(eq=False)
class Span:
    """A range, or a mark; `end` is None for one that was never closed."""

    name: str
    style: str
    pid: int | None
    tid: str
    start: int
    end: int | None
    ends_elsewhere: bool = False


@dataclass
class Recording:
    """A trace or an export, each list in order of start."""

    run: str
    rank: int | None = None
    work: list[Work] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    overheads: list[Row] = field(default_factory=list)
    devices: dict[int, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the work of every graph that was launched is here."""
        return not any(c.is_hidden_replay for c in self.calls)

    def device(self, number: int) -> str:
        return f"{self.devices[number]} ({number})" if number in self.devices else f"({number})"


# Traces of torch.profiler -------------------------------------------------------------------------------------


def of_trace(t: definitions.Trace) -> Recording:
    found = Recording(t.run, t.rank)
    calls = {}
    for c in t.explained.calls:
        calls[id(c)] = Call(c.name, number(c.pid), str(c.tid), c.start, c.start + c.dur, c.link("correlation"))
    for w in sorted(t.explained.work, key=lambda w: (w.start, -w.dur, w.correlation or 0, w.place)):
        made = of_work(w)
        if w.launch:
            made.launch = calls[id(w.launch)]
            made.launch.work.append(made)
        found.work.append(made)
    found.calls = list(calls.values())
    for r in sorted([*t.explained.ranges, *t.explained.marks], key=lambda r: r.order):
        is_mark = r.kind == "mark"
        end = None if is_mark else r.start + r.dur
        found.spans.append(Span(r.name, "mark" if is_mark else "PushPop", number(r.pid), str(r.tid), r.start, end))
    found.overheads = [
        {"type": o.name, "pid": number(o.pid), "start": o.start, "end": o.end} for o in t.explained.overheads
    ]
    found.devices = {d["id"]: d["name"] for d in t.metadata.get("deviceProperties", [])}
    return found


def of_work(w: Any) -> Work:
    args, kinds = w.args, re.search(r"\((\w+) -> (\w+)\)", w.name) if w.kind == "memcpy" else None
    letters = re.search("([HDPA])to([HDPA])", w.name) if w.kind == "memcpy" else None
    direction = f"{LETTERS[letters[1]]}-to-{LETTERS[letters[2]]}" if letters else "Unknown"
    memory = re.search(r"\((\w+)\)", w.name) if w.kind == "memset" else None
    columns = {
        "corr_id": w.number("correlation"),
        "grid": args.get("grid") or [None] * 3,
        "block": args.get("block") or [None] * 3,
        "registers": args.get("registers per thread"),
        "static_shared_bytes": None,
        "dynamic_shared_bytes": None,
        "shared_bytes": args.get("shared memory"),
        "src_kind": kinds[1] if kinds else None,
        "dst_kind": kinds[2] if kinds else memory[1] if memory else None,
        "context": args.get("context"),
        "green_context": None,
        "stream": w.stream,
        "ends": (args.get("fromDevice"), args.get("toDevice")),
    }
    names = (w.name, short_name(w.name) if w.kind == "kernel" else w.name, w.name)
    return Work(w.kind, names, number(w.pid), w.device, w.start, w.start + w.dur, args.get("bytes"), direction, columns)


def number(pid: Any) -> int | None:
    return int(pid) if re.fullmatch(r"-?\d+", str(pid)) else None


# Exports of Nsight Systems --------------------------------------------------------------------------------------


class Export:
    """Tables of an export as rows by column name; those that are missing are empty, columns that are missing None."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
            db.row_factory = sqlite3.Row
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self.tables = {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}
        self.strings = {r["id"]: r["value"] for r in self.tables["StringIds"]}
        listed = self.rows("TARGET_INFO_CUDA_DEVICE")
        self.ordinals = {(d["pid"], d["cudaId"]): d["gpuId"] for d in listed}

    def rows(self, table: str) -> list[defaultdict[str, Any]]:
        return [defaultdict(lambda: None, dict(r)) for r in self.tables.get(table, [])]

    def gpu(self, kind: str) -> list[defaultdict[str, Any]]:
        return self.rows(f"CUPTI_ACTIVITY_KIND_{kind}")

    def text(self, key: int | None) -> str | None:
        return None if key is None else self.strings.get(key, f"[name {key}]")


def process(g: int) -> int:
    return g >> 24 & 0xFFFFFF


def thread(g: int) -> str:
    return str(g & 0xFFFFFF)


def of_export(run: str, path: Path) -> Recording:
    export = Export(path)
    found = Recording(run)
    found.calls = [
        Call(
            export.text(r["nameId"]),
            process(r["globalTid"]),
            thread(r["globalTid"]),
            r["start"],
            r["end"],
            r["correlationId"],
        )
        for r in export.gpu("RUNTIME")
    ]
    launches = {(c.pid, c.correlation): c for c in found.calls}
    for kind in ("kernel", "memcpy", "memset"):
        for r in export.gpu(kind.upper()):
            made = exported_work(export, kind, r)
            made.launch = launches.get((made.pid, r["correlationId"])) if r["correlationId"] else None
            if made.launch:
                made.launch.work.append(made)
            found.work.append(made)
    found.spans = exported_spans(export)
    found.overheads = [
        {"type": export.text(r["nameId"]), "pid": process(r["globalTid"]), "start": r["start"], "end": r["end"]}
        for r in export.rows("PROFILER_OVERHEAD")
    ]
    found.devices = {r["id"]: r["name"] for r in export.rows("TARGET_INFO_GPU")}
    shift(found, min([e.start for e in [*found.work, *found.calls, *found.spans]] + other_starts(export)))
    found.work.sort(key=lambda w: (w.start, -w.end, w.columns["corr_id"]))
    found.calls.sort(key=lambda c: (c.start, -c.end))
    found.spans.sort(key=lambda s: (s.start, -(s.end or s.start)))
    return found


OTHERS = [
    "CUDA_GPU_MEMORY_USAGE_EVENTS", "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "OSRT_API",
    "PROFILER_OVERHEAD",
]  # fmt: skip


def other_starts(export: Export) -> list[int]:
    """When what is not in a `Recording` starts; some rows of OSRT_API are markers."""
    rows = [r for table in OTHERS for r in export.rows(table) if table != "OSRT_API" or r["eventClass"] == 27]
    return [r["start"] for r in rows]


def shift(found: Recording, origin: int) -> None:
    for e in [*found.work, *found.calls, *found.spans]:
        e.start -= origin
        e.end = None if e.end is None else e.end - origin
    for o in found.overheads:
        o["start"] -= origin
        o["end"] -= origin


def exported_work(export: Export, kind: str, r: Row) -> Work:
    static, dynamic, none = r["staticSharedMemory"], r["dynamicSharedMemory"], [None] * 3
    pid = process(r["globalPid"])
    ends = [export.ordinals.get((pid, d), d) for d in (r["srcDeviceId"], r["dstDeviceId"])]
    columns = {
        "corr_id": r["correlationId"],
        "grid": [r["gridX"], r["gridY"], r["gridZ"]] if kind == "kernel" else none,
        "block": [r["blockX"], r["blockY"], r["blockZ"]] if kind == "kernel" else none,
        "registers": r["registersPerThread"],
        "static_shared_bytes": static,
        "dynamic_shared_bytes": dynamic,
        "shared_bytes": static + dynamic if kind == "kernel" else None,
        "src_kind": label(MEMORY, r["srcKind"]),
        "dst_kind": label(MEMORY, r["memKind"] if kind == "memset" else r["dstKind"]),
        "context": r["contextId"] or None,
        "green_context": r["greenContextId"] or None,
        "stream": r["streamId"],
        "ends": tuple(ends),
    }
    full, base, mangled = (export.text(r[c]) for c in ("demangledName", "shortName", "mangledName"))
    direction = label(DIRECTIONS, r["copyKind"]) or "Unknown"
    return Work(
        kind, (full, base, mangled or full), pid, export.ordinals.get((pid, r["deviceId"]), r["deviceId"]),
        r["start"], r["end"], r["bytes"], direction, columns,
    )  # fmt: skip


def label(labels: list[str], key: int | None) -> str | None:
    return labels[key] if key is not None and key < len(labels) else None


STYLES = {59: "PushPop", 60: "StartEnd", 70: "PushPop", 71: "StartEnd", 34: "mark"}


def exported_spans(export: Export) -> list[Span]:
    rows = export.rows("NVTX_EVENTS")

    def message(r: Row) -> str:
        return (export.text(r["textId"]) if r["textId"] is not None else r["text"]) or ""

    domains = {(process(r["globalTid"]), r["domainId"]): message(r) for r in rows if r["eventType"] == 75}
    found = []
    for r in rows:
        if r["eventType"] in STYLES:
            g, name = r["globalTid"], ADDED.sub("", message(r), count=1)
            if r["domainId"]:
                domain = domains.get((process(g), r["domainId"])) or f"[domain {r['domainId']}]"
                name = f"{domain}:{name}"
            end = r["end"] if r["eventType"] != 34 else None
            found.append(
                Span(name, STYLES[r["eventType"]], process(g), thread(g), r["start"], end, bool(r["endGlobalTid"]))
            )
    return found
