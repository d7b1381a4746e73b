"""Reading a Chrome trace of torch.profiler (Kineto) into the table `stage.events`, exactly and in bounded memory.

Pieces of whole events go through Arrow into DuckDB's JSON reader with declared types: numbers are read from their text
(DECIMAL(20,3) for µs, so ns are exact), a value of the wrong type is NULL, a piece that does not parse leaves no row
and is then read event by event. kineto.sql says what each event becomes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from traceq.errors import Status, TraceqError
from traceq.ingest import arrow
from traceq.ingest.cut import LIMIT_BYTES, PIECE_BYTES, Cutter, NotATraceError, Piece, Salvage
from traceq.ingest.source import Source

SQL = Path(__file__).with_name("kineto.sql")
BATCH_PIECES = 32
SHAPE = json.dumps(
    [
        {"ph": "VARCHAR", "cat": "VARCHAR", "name": "VARCHAR", "pid": "VARCHAR", "tid": "VARCHAR"}
        | {"ts": "DECIMAL(20,3)", "dur": "DECIMAL(20,3)", "args": "JSON"}
    ]
)
CREATE = """
CREATE OR REPLACE TABLE stage.events (
    pos BIGINT, ph VARCHAR, cat VARCHAR, name VARCHAR, pid VARCHAR, tid VARCHAR,
    ts_ns BIGINT, dur_ns BIGINT, args VARCHAR)
"""
LOAD = f"""
INSERT INTO stage.events
SELECT pos, e.ph, e.cat, e.name, e.pid, e.tid, TRY_CAST(e.ts * 1000 AS BIGINT), TRY_CAST(e.dur * 1000 AS BIGINT), e.args
FROM (SELECT pos, unnest(TRY(from_json(j, '{SHAPE}'))) AS e FROM batch)
"""
LISTED_DEVICES = """
CREATE OR REPLACE TABLE stage.listed_devices (
    device BIGINT, name VARCHAR, uuid VARCHAR, sm_count BIGINT, memory_bytes BIGINT, compute_capability VARCHAR,
    peak_bytes_per_s BIGINT);
CREATE OR REPLACE TABLE stage.listed_ordinals (pid VARCHAR, ordinal BIGINT, device BIGINT);
"""
PRIVATE = re.compile(
    r"host|user|environ|^env|path|^(tw|mast)_|^trace_?name$|cluster|^job|token|secret|command|argv", re.I
)
ANOTHER_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
LOG_LEVELS = {"INFO", "WARNING", "ERROR", "VERBOSE", "STAGE"}


@dataclass
class Reading:
    """What reading one file found besides the rows in `stage.events`.

    `lost` has the positions of stretches that are no event, `cut` says why the file is not whole (None: it is),
    `metadata` the top-level keys without events, logs and what names a person or a machine.
    """

    lost: list[int] = field(default_factory=list)
    repaired: int = 0
    cut: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def read(con: duckdb.DuckDBPyConnection, source: Source, piece_bytes: int = PIECE_BYTES) -> Reading:
    """Fill `stage.events` from `source`. Raises TraceqError (input) for what is no trace or more than one."""
    con.execute(CREATE)
    cutter = Cutter(source, source.name, piece_bytes)
    loader = _Loader(con, source.name)
    pieces = iter(cutter)

    def next_batch() -> list[Piece]:
        return list(islice(pieces, BATCH_PIECES))

    with ThreadPoolExecutor(1) as reader:  # reads and cuts ahead while DuckDB parses
        ahead = reader.submit(next_batch)
        while batch := ahead.result():
            ahead = reader.submit(next_batch)
            loader.load(batch)
    reading = loader.finish(cutter.head, source.cut)
    if con.execute("SELECT count(*) > 0 AND count(ph) = 0 FROM stage.events").fetchall() == [(True,)]:
        raise NotATraceError(f"{source.name}: not a torch.profiler trace: nothing in its list is an event")
    return reading


def sort(con: duckdb.DuckDBPyConnection, reading: Reading, step_range: str | None) -> None:
    """Turn `stage.events` into the base tables and the staged ones that the derivation reads (kineto.sql)."""
    con.execute("CREATE OR REPLACE TABLE stage.options AS SELECT ?::VARCHAR AS step_range", [step_range])
    con.execute(LISTED_DEVICES)
    if devices := _listed_devices(reading.metadata):
        con.executemany("INSERT INTO stage.listed_devices VALUES (?, ?, NULL, ?, ?, ?, NULL)", devices)
    con.execute(SQL.read_text("utf-8"))
    if reading.lost:
        con.execute(
            "INSERT INTO event_counts VALUES (1, NULL, NULL, NULL, 0, 0, ?, 'unreadable text')", [len(reading.lost)]
        )


def _listed_devices(metadata: dict[str, Any]) -> list[tuple[int, str | None, int | None, int | None, str | None]]:
    """The rows of `deviceProperties` that have an id; torch 2.13's own exporter leaves numSms out."""
    listed = metadata.get("deviceProperties")
    rows = {}
    for d in listed if isinstance(listed, list) else []:
        if isinstance(d, dict) and (device := _count(d.get("id"))) is not None:
            capability = f"{d['computeMajor']}.{d.get('computeMinor', 0)}" if "computeMajor" in d else None
            name = str(d["name"]) if "name" in d else None
            rows[device] = (device, name, _count(d.get("numSms")), _count(d.get("totalGlobalMem")), capability)
    return list(rows.values())


def _count(value: object) -> int | None:
    """A whole number that a BIGINT holds, or nothing."""
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


class _SecondListError(Exception):
    """Another list of events stands among the metadata."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(key == "traceEvents" and isinstance(value, list) and value for key, value in pairs):
        raise _SecondListError
    return dict(pairs)


METADATA = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_object,
    parse_float=lambda text: number if isfinite(number := float(text)) else None,
    parse_constant=lambda _: None,
)


class _Loader:
    """Loads batches of pieces and reads those that did not parse; a run of broken pieces may span batches."""

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        self.con = con
        self.name = name
        self.reading = Reading()
        self.salvage = Salvage()
        self.broken: Piece | None = None
        self.tail = bytearray()

    def load(self, batch: Sequence[Piece]) -> None:
        whole = [p for p in batch if not p.last]
        parsed = self._insert([(p.at, b"[" + arrow.utf8(p.text) + b"]") for p in whole])
        for piece in batch:
            is_broken = piece.last or piece.at not in parsed
            if self.broken:
                self._read_broken(self.broken, joins_next=is_broken)
            self.broken = piece if is_broken else None
            if not is_broken and self.salvage.tail is not None:
                raise self._second_document(piece.at)

    def finish(self, head: bytes, cut: str | None) -> Reading:
        if self.broken:
            self._read_broken(self.broken, joins_next=False)
        reading, tail = self.reading, self.salvage.tail
        reading.lost, reading.repaired = self.salvage.lost, self.salvage.repaired
        is_bare = not head.strip()
        if cut or (tail is None and (reading.lost or not is_bare)):
            reading.cut = cut or "truncated: the list of events never ends"
        self._read_metadata(head.decode("utf-8", "replace"), (tail or "") + self.tail.decode("utf-8", "replace"))
        return reading

    def _read_broken(self, piece: Piece, joins_next: bool) -> None:
        if self.salvage.tail is not None:
            if len(self.tail) > LIMIT_BYTES:
                raise self._second_document(piece.at)
            self.tail += piece.joint + piece.text
            return
        self.salvage.read(piece, joins_next)
        if self.salvage.lost and (second := ANOTHER_LIST.search(piece.text)):
            raise self._second_document(piece.at + second.start())
        events, self.salvage.events = self.salvage.events, []
        if not events or self._insert([(piece.at, _join(events))]):
            return
        ones = [(piece.at + n, _join([event])) for n, event in enumerate(events)]
        parsed = self._insert(ones)
        self.salvage.lost += [at for at, _ in ones if at not in parsed]

    def _insert(self, rows: Sequence[tuple[int, bytes]]) -> set[int]:
        """Positions of the rows that parsed."""
        if not rows:
            return set()
        self.con.register("batch", arrow.Stream([arrow.row({"pos": at, "j": text}) for at, text in rows]))
        self.con.execute(LOAD)
        self.con.unregister("batch")
        found = self.con.execute(
            "SELECT DISTINCT pos FROM stage.events WHERE pos BETWEEN ? AND ?",
            [min(at for at, _ in rows), max(at for at, _ in rows)],
        )
        return {pos for (pos,) in found.fetchall()}

    def _second_document(self, at: int) -> TraceqError:
        return TraceqError(
            f"{self.name}: more than one document in the file: another begins near byte {at:,}",
            "several processes probably wrote to one path; record each rank to a file of its own",
            Status.INPUT,
        )

    def _read_metadata(self, head: str, tail: str) -> None:
        if not head.strip():
            if tail.strip():
                raise self._second_document(self.salvage.tail_at + len(tail) - len(tail.lstrip()))
            return
        text = f'{head.lstrip()}"traceEvents": []{tail or "}"}'
        try:
            found, end = METADATA.raw_decode(text)
        except (ValueError, RecursionError):
            cut = "truncated: the file's own metadata (deviceProperties, distributedInfo, …) is cut or unreadable"
            self.reading.cut = self.reading.cut or cut
            return
        except _SecondListError:
            raise TraceqError(
                f"{self.name}: more than one traceEvents list in the file",
                "several recordings were put together; ingest each of its own",
                Status.INPUT,
            ) from None
        if (rest := text[end:].strip()) and not set(rest) <= {"}"}:
            raise self._second_document(self.salvage.tail_at + len(tail) - len(text[end:].lstrip()))
        self.reading.metadata = {k: v for k, v in found.items() if not (k == "traceEvents" or _is_private(k))}


def _is_private(key: str) -> bool:
    """Whether a top-level key holds log lines or may name a person, a machine or a path."""
    return key in LOG_LEVELS or PRIVATE.search(key) is not None


def _join(events: Iterable[str]) -> bytes:
    return f"[{','.join(events)}]".encode("utf-8", "replace")
