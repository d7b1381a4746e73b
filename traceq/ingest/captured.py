"""The record that `traceq capture` writes beside a trace (`X.capture.json` beside `X.json.gz`): found, read, checked.

What it says becomes columns of `runs` and rows of the tables of a run; what has no column is kept in `runs.details`.
A record whose `trace` is null, or not there, is a run without a trace.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from traceq.errors import Status, TraceqError
from traceq.ingest.source import path_as_text
from traceq.store import captures

ENDING = ".capture.json"
TRACE_ENDING = re.compile(r"(\.sqlite3?|\.nsys-rep|\.qdrep|_pqtdir|\.json(\.gz|\.zst|\.zstd)?)$", re.I)
FORMAT, VERSION = "traceq-capture", 1
LARGEST = 2**53  # so that sums of a thousand fit a column, and 104 days in ns are enough
Check = Callable[[str, Any], Any]


class _FaultError(Exception):
    """What is wrong with a record, and where in it."""


@dataclass(frozen=True)
class Record:
    """A checked record: what it is called, whose it is, the columns of its run and the rows of its tables."""

    path: Path
    sha256: str
    size_bytes: int
    label: str | None
    trace: Path | None
    rank_of: tuple[int, int] | None
    run: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]


def is_record(path: str) -> bool:
    """Whether a path is named as records are."""
    return path.endswith(ENDING)


def trace_of(path: str) -> str | None:
    """The trace of the record at `path`, if it can be read and the trace lies beside it."""
    try:
        record = read(Path(path)) if is_record(path) else None
    except TraceqError:
        return None
    return str(record.trace) if record and record.trace else None


def find(path: str) -> Record | None:
    """The record at `path` or beside the trace `path`; None if there is none. Raises TraceqError (input) as `read`."""
    if is_record(path):
        return read(Path(path))
    beside = Path(TRACE_ENDING.sub("", path) + ENDING)
    return read(beside) if path != "-" and TRACE_ENDING.search(path) and beside.is_file() else None


def read(path: Path) -> Record:
    """The record in a file. Raises TraceqError (input) naming the file, the field, and what it should be."""
    try:
        data = path.read_bytes()
        values = _record("the record", json.loads(data, parse_constant=_no_number))
    except OSError as error:
        raise TraceqError(f"{path}: {error.strerror}", status=Status.INPUT) from error
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"no JSON: {error}") from error
    except _FaultError as fault:
        raise _broken(path, str(fault)) from fault
    rank, size = values["rank"], values["world_size"]
    trace = path.parent / values["trace"] if values["trace"] else None
    return Record(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        label=values["label"],
        trace=trace if trace and trace.exists() else None,
        rank_of=None if rank is None else (rank, size if size is not None else rank + 1),
        run=_run(values),
        tables={
            "timings": values["timings"],
            **{name: rows for name, rows in (values["facts"] or {}).items() if rows is not None},
        },
    )


def write(con: duckdb.DuckDBPyConnection, record: Record, rank_of: tuple[int, int] | None) -> None:
    """Put a record into the scratch store of its trace, or one without a trace; `rank_of` is rank and world size."""
    rank, world_size = rank_of or (None, None)
    file = {
        "world_size": world_size,
        "path": path_as_text(record.path),
        "sha256": record.sha256,
        "size_bytes": record.size_bytes,
        "has_facts": {"graph_breaks", "recompiles", "compile_phases"} <= record.tables.keys(),
    }
    tables = {"captures": [file], **record.tables}
    captures.write(con, record.run, {table: [{"rank": rank, **row} for row in rows] for table, rows in tables.items()})


def _run(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of `runs`; fields of the record that no table holds are the details."""
    columns = {name: values[name] for name in ("command", "mode", "torch_version", "triton_version", "gpu")}
    for kind in ("pipelined", "synced"):
        step = values[f"step_{kind}_ns"] or {}
        columns |= {f"step_{kind}_ns": step.get("median")}
        columns |= {f"step_{kind}_{end}_ns": step.get(end) for end in ("low", "high")}
    details = {name: value for name, value in values.items() if name not in ELSEWHERE and value not in (None, [], {})}
    return columns | {"peak_memory_bytes": values["peak_memory_bytes"], "details": captures.as_json(details)}


# What a record may say ------------------------------------------------------------------------------------------------


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _FaultError(f"{place} is no text")
    return value.encode("utf-8", "replace").decode()  # half a surrogate pair is no text


def _nearest(place: str, value: Any) -> int:
    """A time in ns, to the nearest; a median of whole ones may have a fraction."""
    return _whole(place, round(value) if isinstance(value, float) else value)


def _whole(place: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST:
        raise _FaultError(f"{place} is no whole number from 0 on")
    return value


def _any(place: str, value: Any) -> Any:
    return value


def _one_of(*words: str) -> Check:
    def check(place: str, value: Any) -> str:
        if value not in words:
            raise _FaultError(f"{place} is none of {', '.join(words)}")
        return str(value)

    return check


def _maybe(check: Check) -> Check:
    return lambda place, value: None if value is None else check(place, value)


def _list(check: Check) -> Check:
    def checked(place: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _FaultError(f"{place} is no list")
        return [check(f"{place}[{number}]", item) for number, item in enumerate(value)]

    return checked


def _object(fields: Mapping[str, Check]) -> Check:
    """An object with these fields and no others; one that is missing is null."""

    def check(place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _FaultError(f"{place} is no object")
        if unknown := sorted(set(value) - set(fields)):
            raise _FaultError(f"{place} has a field that no record has: {unknown[0]}")
        return {name: inner(f"{place}.{name}", value.get(name)) for name, inner in fields.items()}

    return check


def _flops(place: str, value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _FaultError(f"{place} is no object")
    return {_text(place, name): _whole(f"{place}.{name}", number) for name, number in value.items()}


def _names(place: str, value: Any) -> str:
    return captures.as_json(_list(_text)(place, value))


PLACE = {"file": _maybe(_text), "line": _maybe(_whole), "function": _maybe(_text)}
FACTS: dict[str, dict[str, Check]] = {
    "graph_breaks": {"reason": _text, **PLACE, "count": _whole},
    "recompiles": {**PLACE, "guard": _maybe(_text), "count": _whole},
    "compile_phases": {"phase": _text, "ns": _whole, "count": _whole},
    "kernel_sources": {
        "kernel": _text,
        "hash": _maybe(_text),
        "language": _text,
        "source": _text,
        **dict.fromkeys(("num_warps", "num_stages", "registers", "spills", "shared_bytes"), _maybe(_whole)),
        "ops": _maybe(_names),
    },
}
INTERVAL = _object(
    {"median": _nearest, "low": _maybe(_nearest), "high": _maybe(_nearest)}
)  # of one block there is none
ELSEWHERE = {
    *("format", "version", "label", "trace", "rank", "world_size", "timings", "facts"),
    *("command", "mode", "torch_version", "triton_version", "gpu", "peak_memory_bytes"),
    *("step_pipelined_ns", "step_synced_ns"),
}
FIELDS: dict[str, Check] = {
    **dict.fromkeys(("command", "mode", "label", "torch_version", "triton_version", "gpu", "trace"), _maybe(_text)),
    **dict.fromkeys(("rank", "world_size", "peak_memory_bytes"), _maybe(_whole)),
    **dict.fromkeys(("step_pipelined_ns", "step_synced_ns"), _maybe(INTERVAL)),
    **dict.fromkeys(("seed", "status", "outputs"), _any),
    "timings": _list(_object({"kind": _one_of("pipelined", "synced"), "block": _whole, "steps": _whole, "ns": _whole})),
    "facts": _maybe(_object({table: _maybe(_list(_object(fields))) for table, fields in FACTS.items()})),
    "peaks": _maybe(
        _object({"gpu": _text, "uuid": _maybe(_text), "bytes_per_s": _maybe(_whole), "flops": _maybe(_flops)})
    ),
    "notes": _list(_text),
}


def _record(place: str, value: Any) -> dict[str, Any]:
    """All fields checked; those that this version does not know are kept as they are."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _FaultError(f"it does not say that its format is {FORMAT}")
    if value.get("version") != VERSION:
        raise _FaultError(f"its version is {value.get('version')!r}, and this traceq reads {VERSION}")
    empty: dict[str, Any] = {"timings": [], "notes": []}
    known = {name: check(name, value.get(name, empty.get(name))) for name, check in FIELDS.items()}
    if known["trace"] and ("/" in known["trace"] or known["trace"] in (".", "..")):
        raise _FaultError("trace is no name of a file beside the record")
    return {**value, **known}


def _no_number(word: str) -> float:
    raise _FaultError(f"{word} is no number")


def _broken(path: Path, what: str) -> TraceqError:
    hint = "capture again, or move the record away to ingest its trace alone"
    return TraceqError(f"{path}: no record of a capture: {what}", hint, Status.INPUT)
