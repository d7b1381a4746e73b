#!/usr/bin/env python3
"""Make a big trace from a small one: `python benchmarks/repeat_trace.py TRACE.json[.gz] 1GB OUT.json`.

The events are written again and again, each copy later in time and with ids of its own, in the text layout in
which Kineto wrote them; what a trace has once (names of processes and threads, the span of the recording) is
written once. Only digits change, as whole integers. The result is read back and compared with the source.
Memory: below 100 MB whatever the sizes.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

BATCH_BYTES = 4 * 10**6

# Numbers that move from copy to copy. Fields of one group share a number space, so they move by the same
# stride and what refers to what still does. An id of 0 means "none" in the groups of ZERO_MEANS_NONE.
GROUP_OF_FIELD = {
    b"ts": "ts",
    b"correlation": "launch",
    b"wait_on_cuda_event_record_corr_id": "launch",
    b"External id": "external",
    b"external id": "external",
    b"Ev Idx": "event",
    b"Python id": "python",
    b"Python parent id": "python",
    b"Sequence number": "sequence",
    b"Record function id": "record",
}
ZERO_MEANS_NONE = {"launch", "external", "record"}
NUMBERS = re.compile(
    rb'"(?P<field>' + b"|".join(GROUP_OF_FIELD) + rb')": (?P<value>\d+)'
    rb'|(?P<flow>"ph": "[sft]", "id": )(?P<flow_id>\d+)'
    rb"|ProfilerStep#(?P<step>\d+)"
)
TIMES = re.compile(rb'"ts": (\d+)(?:\.(\d+))?(?:, "dur": (\d+)(?:\.(\d+))?)?')
KERNEL = re.compile(rb'"cat": "[Kk]ernel",\s+"name": [^\n]*\n\s*"ts": [\d.]+, "dur": (\d+)(?:\.(\d+))?')
KERNEL_CORRELATION = re.compile(rb'"cat": "[Kk]ernel",.*?"correlation": (\d+)', re.DOTALL)
ONCE = (b'"ph": "M"', b'"cat": "Trace"', b'"s": "g"')
FIRST_EVENT = re.compile(rb'"traceEvents": \[(\n[ \t]*)\{\n[^\n]+, "')


class LayoutError(Exception):
    """The text is not laid out as Kineto lays it out, or stops short."""


@dataclass
class Facts:
    """What one pass finds out: `ids` are (lowest, highest) by group, `once` the events to write once."""

    events: int = 0
    once: list[bytes] = field(default_factory=list)
    ids: dict[str, tuple[int, int]] = field(default_factory=dict)
    start_ns: int | None = None
    end_ns: int = 0
    kernels: int = 0
    kernel_ns: int = 0
    correlations: set[int] = field(default_factory=set)


class Layout:
    """The text around and between the events of a trace that Kineto wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_trace(path) as stream:
            text = stream.read(BATCH_BYTES)
        found = FIRST_EVENT.search(text)
        if found is None:
            raise LayoutError(f"{path}: not in Kineto's own text layout, which repeating needs")
        newline_indent = found.group(1)
        self.head = text[: found.end(1)]
        self.closing = newline_indent + b"}"
        self.separator = b"," + newline_indent
        self.tail = b""

    def batches(self) -> Iterator[bytes]:
        """Text of whole events, some MB at a time; at the end sets `tail`, the text after the last event."""
        boundary = self.closing + self.separator + b"{"
        with open_trace(self.path) as stream:
            stream.read(len(self.head))
            rest = b""
            while block := stream.read(BATCH_BYTES):
                rest += block
                cut = rest.rfind(boundary)
                if cut >= 0:
                    cut += len(self.closing)
                    yield rest[:cut]
                    rest = rest[cut + len(self.separator) :]
        cut = rest.rfind(self.closing + b"\n")
        if cut < 0:
            raise LayoutError(f"{self.path}: the list of events does not end; is the file cut off?")
        cut += len(self.closing)
        self.tail = rest[cut:]
        yield rest[:cut]

    def split(self, batch: bytes) -> list[bytes]:
        first, *others = batch.split(self.closing + self.separator + b"{")
        events = [first, *(b"{" + other for other in others)]
        return [event + self.closing for event in events[:-1]] + events[-1:]

    def sort_out(self, batch: bytes) -> tuple[bytes, list[bytes]]:
        """The batch without the events that a trace has once, and those."""
        if not any(mark in batch for mark in ONCE):
            return batch, []
        kept, once = [], []
        for event in self.split(batch):
            (once if any(mark in event for mark in ONCE) else kept).append(event)
        return self.separator.join(kept), once

    def count(self, body: bytes) -> int:
        return body.count(self.closing + self.separator + b"{") + 1


def open_trace(path: Path) -> BinaryIO:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


# ---- one pass over a trace ---------------------------------------------------------------------------------


def scan(layout: Layout) -> Facts:
    facts = Facts()
    for batch in layout.batches():
        body, once = layout.sort_out(batch)
        facts.once += once
        if body:
            facts.events += layout.count(body)
            scan_ids(body, facts.ids)
            scan_times(body, facts)
            scan_kernels(body, facts)
    return facts


def scan_ids(body: bytes, ids: dict[str, tuple[int, int]]) -> None:
    seen: dict[str, set[int]] = {}
    for name, value, flow, flow_id, step in NUMBERS.findall(body):
        group = GROUP_OF_FIELD[name] if name else "launch" if flow else "step"
        seen.setdefault(group, set()).add(int(value or flow_id or step))
    for group, values in seen.items():
        if group in ZERO_MEANS_NONE:
            values.discard(0)
        if group != "ts" and values:
            low, high = ids.get(group, (min(values), max(values)))
            ids[group] = (min(low, *values), max(high, *values))


def scan_times(body: bytes, facts: Facts) -> None:
    for ts, ts_part, dur, dur_part in TIMES.findall(body):
        start_ns = to_ns(ts, ts_part)
        if facts.start_ns is None or start_ns < facts.start_ns:
            facts.start_ns = start_ns
        facts.end_ns = max(facts.end_ns, start_ns + (to_ns(dur, dur_part) if dur else 0))


def scan_kernels(body: bytes, facts: Facts) -> None:
    durations = KERNEL.findall(body)
    facts.kernels += len(durations)
    facts.kernel_ns += sum(to_ns(*dur) for dur in durations)
    facts.correlations.update(map(int, KERNEL_CORRELATION.findall(body)))


def to_ns(whole_us: bytes, fraction: bytes) -> int:
    return int(whole_us) * 1000 + int((fraction + b"000")[:3])


# ---- writing the copies ------------------------------------------------------------------------------------


def strides_of(facts: Facts) -> dict[str, int]:
    """By how much each number grows from one copy to the next; `ts` in whole microseconds."""
    strides = {group: high - low + 1 for group, (low, high) in facts.ids.items()}
    span_ns = facts.end_ns - (facts.start_ns or 0)
    strides["ts"] = (span_ns // 10**6 + 1) * 1000
    return strides


def shift(body: bytes, copy: int, strides: dict[str, int]) -> bytes:
    if not copy:
        return body
    moves = {name: copy * strides.get(group, 0) for name, group in GROUP_OF_FIELD.items()}
    keeps_zero = {name for name, group in GROUP_OF_FIELD.items() if group in ZERO_MEANS_NONE}
    flow_move, step_move = copy * strides.get("launch", 0), copy * strides.get("step", 0)

    def replace(match: re.Match[bytes]) -> bytes:
        name, value, flow, flow_id, step = match.groups()
        if name:
            number = int(value)
            return b'"%b": %d' % (name, number + moves[name] if number or name not in keeps_zero else 0)
        if flow:
            return b"%b%d" % (flow, int(flow_id) + flow_move if int(flow_id) else 0)
        return b"ProfilerStep#%d" % (int(step) + step_move)

    return NUMBERS.sub(replace, body)


def stretch(event: bytes, added_us: int) -> bytes:
    """An event that the trace has once, made to span all copies where it tells how long the recording was."""

    def add(match: re.Match[bytes]) -> bytes:
        return b"%b%d" % (match[1], int(match[2]) + added_us)

    if b'"cat": "Trace"' in event:
        return re.sub(rb'("dur": )(\d+)', add, event, count=1)
    if b'"name": "Record Window End"' in event:
        return re.sub(rb'("ts": )(\d+)', add, event, count=1)
    return event


def write_copies(layout: Layout, strides: dict[str, int], wanted_bytes: int, out: BinaryIO) -> int:
    """Whole copies until `wanted_bytes` are reached; returns how many."""
    written_bytes, copies, separator = out.write(layout.head), 0, b""
    while not copies or written_bytes < wanted_bytes:
        for batch in layout.batches():
            body, _ = layout.sort_out(batch)
            if body:
                written_bytes += out.write(separator) + out.write(shift(body, copies, strides))
                separator = layout.separator
        copies += 1
    return copies


def check(one: Facts, many: Facts, copies: int, strides: dict[str, int]) -> list[str]:
    """What of the repeated trace is not exactly `copies` times its source; empty when all is."""
    pairs = {
        "events": (one.events * copies, many.events),
        "events that stay single": (len(one.once), len(many.once)),
        "kernels": (one.kernels * copies, many.kernels),
        "kernel time (ns)": (one.kernel_ns * copies, many.kernel_ns),
        "distinct kernel correlations": (len(one.correlations) * copies, len(many.correlations)),
        "first start (ns)": (one.start_ns, many.start_ns),
        "last end (ns)": (one.end_ns + (copies - 1) * strides["ts"] * 1000, many.end_ns),
    }
    for group, (low, high) in one.ids.items():
        pairs[f"{group} ids"] = ((low, high + (copies - 1) * strides[group]), many.ids.get(group))
    return [f"{what}: {wanted} wanted, {found} found" for what, (wanted, found) in pairs.items() if wanted != found]


def repeat(source: Path, wanted_bytes: int, target: Path) -> dict[str, object]:
    """Write `target`: the events of `source`, in whole copies until the file has at least `wanted_bytes`.

    Returns what was written; `faults` lists what the check of the written file found wrong.
    """
    started_s = time.monotonic()
    layout = Layout(source)
    one = scan(layout)
    if not one.events:
        raise LayoutError(f"{source}: no events to repeat")
    strides = strides_of(one)
    part = target.with_name(target.name + ".part")
    with part.open("wb") as out:
        copies = write_copies(layout, strides, wanted_bytes, out)
        for event in one.once:
            out.write(layout.separator + stretch(event, (copies - 1) * strides["ts"]))
        out.write(layout.tail)
    written_s = time.monotonic()
    many = scan(Layout(part))
    faults = check(one, many, copies, strides)
    part.replace(target)
    return {
        "bytes": target.stat().st_size,
        "copies": copies,
        "events": many.events + len(many.once),
        "kernels": many.kernels,
        "kernel_ns": many.kernel_ns,
        "period_us": strides["ts"],
        "write_s": round(written_s - started_s, 1),
        "check_s": round(time.monotonic() - written_s, 1),
        "faults": faults,
    }


# ---- command line ------------------------------------------------------------------------------------------


def size_in_bytes(text: str) -> int:
    units = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "MIB": 2**20, "GIB": 2**30}
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip(), re.IGNORECASE | re.ASCII)
    if match is None or match[2].upper() not in units:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 1GB, 200MB or 1000000")
    return int(match[1]) * units[match[2].upper()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Repeat a torch.profiler trace until it has a given size.")
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("size", type=size_in_bytes, metavar="SIZE", help="such as 1GB")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    try:
        made = repeat(options.trace, options.size, options.out)
    except (LayoutError, OSError, EOFError) as error:
        print(f"repeat_trace.py: {error}", file=sys.stderr)
        return 2
    faults = made.pop("faults")
    print("repeated: " + ", ".join(f"{name} {value}" for name, value in made.items()), file=sys.stderr)
    for fault in faults:
        print(f"the repeated trace is not what it should be: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
