"""What belongs to what, and why the GPU was idle: every trace at hand, row by row against golden/explain.py.

That script takes the rules literally and shares nothing with traceq. Rows are matched by what the file records of them.
Where two rows of a thread start and last alike, no reader can tell which is inside which; the script is told traceq's
order then.
"""

import json
import re
from collections import Counter, defaultdict

import pytest
from cases import Case
from recorded import FIXTURES, RECORDED, digest, expensive, parameters, recorded, stored

import explain  # isort: skip

UNREADABLE = {  # by plain json, or by what the script expects of an event
    "hand-02-trailing-comma",
    "hand-05-control-characters",
    "hand-07-windows-backslashes",
    "hand-09-nan-infinity-na",
    "hand-11-gzip-named-json",
    "hand-15-truncated-gzip",
    "hand-73-bare-array-with-mixed-types",
}
VERSION = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")
HOST = "pid, tid, start_ns, coalesce(dur_ns, 0), name"
GAPS = """
SELECT device, {stream}, start_ns, part, dur_ns, after_id, launch_state, host_ns, cause, ns, op_id, call_id,
    CASE WHEN cause = 'sync' THEN evidence END
FROM {what}gaps JOIN {what}gap_parts USING (trace_id, gap_id)
"""


def files():
    found = [p for p in FIXTURES.rglob("*.json*") if p.name != "demo.json" and ".capture." not in p.name]
    return [p for p in found if not p.parent.name.startswith("pairs")]


def readable():
    return [p for p in files() if p.parent.name not in UNREADABLE]


def others():
    """Recorded traces that are no fixtures."""
    fixtures = set(map(digest, files()))
    return [p for p in recorded() if digest(p) not in fixtures]


def text(value):
    return None if value is None else str(value)


def load(path):
    """The rows of a file, with process and thread ids as traceq has them."""
    trace = explain.load(path)
    for row in [*trace.ops, *trace.ranges, *trace.marks, *trace.frames, *trace.calls, *trace.work]:
        row.pid, row.tid = text(row.pid), text(row.tid)
    for event in trace.memory:
        event.lane = tuple(map(text, event.lane))
    trace.threads = {tuple(map(text, lane)): name for lane, name in trace.threads.items()}
    return trace


class Compared:
    """The store of a trace beside what the script finds in it; the script's rows have traceq's ids."""

    def __init__(self, con, path):
        self.con = con
        trace = load(path)
        self.ops = self.paired(
            trace.ops,
            lambda r: (*on_host(r), r.number("External id", "external id"), r.sequence, r.number("Fwd thread id")),
            f"SELECT op_id, {HOST}, external_id, sequence, forward_thread FROM ops ORDER BY op_id",
        )
        self.ranges = self.paired(
            trace.ranges + trace.marks,
            lambda r: (*on_host(r), r.kind),
            f"SELECT range_id, {HOST}, kind FROM ranges WHERE kind <> 'window' ORDER BY range_id",
        )
        self.frames = self.paired(trace.frames, on_host, f"SELECT call_id, {HOST} FROM python_calls ORDER BY call_id")
        self.calls = self.paired(
            trace.calls,
            lambda r: (*on_host(r), r.number("correlation"), r.number("External id", "external id")),
            f"SELECT call_id, {HOST.replace('name', 'recorded_name')}, correlation_id, external_id FROM api_calls "
            "ORDER BY call_id",
        )
        self.work = self.paired(
            trace.work,
            lambda r: (r.device, r.stream, r.start, r.dur, r.name, r.number("correlation"), r.external),
            "SELECT activity_id, device, stream, start_ns, dur_ns, name, correlation_id, nullif(external_id, 0) "
            "FROM gpu_activities ORDER BY activity_id",
        )
        for rows in (trace.ops, trace.ranges, trace.marks, trace.frames, trace.calls, trace.work):
            rows.sort(key=lambda r: r.order)
        self.trace = explain.derive(trace)

    def paired(self, rows, key, statement):
        """{row: id}. Rows that are recorded alike have their ids in the file's order; all are in the order of ids."""
        found = self.con.execute(statement).fetchall()
        assert Counter(map(key, rows)) == Counter(tuple(fields) for _, *fields in found)
        ids = defaultdict(list)
        for number, *fields in reversed(found):
            ids[tuple(fields)].append(number)
        pairs = {row: ids[key(row)].pop() for row in rows}
        for row, number in pairs.items():
            row.place = number
        return {None: None, **pairs}

    def table(self, statement):
        """{id: the rest} of a statement's rows."""
        return {number: tuple(rest) for number, *rest in self.con.execute(statement).fetchall()}

    def check(self):
        """Everything but categories."""
        self.check_nesting()
        self.check_links()
        for gaps, what in ((self.trace.device_gaps, ""), (self.trace.stream_gaps, "stream_")):
            assert_equal(self.parts(gaps), self.found_parts(what))
        found = self.con.execute("SELECT clipped_rows, op_disagreements FROM traces").fetchall()
        assert found == [(self.trace.clipped, self.trace.disagreements)]

    def check_nesting(self):
        ops, ranges, frames = self.ops, self.ranges, self.frames
        assert_equal(
            {
                ops[r]: (ops[r.parent], r.depth, r.self_ns, ops[r.forward], r.phase, r.phase == "backward", r.module)
                for r in self.trace.ops
            },
            self.table("SELECT op_id, parent_id, depth, self_ns, forward_op_id, phase, is_backward, module FROM ops"),
        )
        assert_equal(
            {ranges[r]: (ranges[r.parent], r.depth) for r in self.trace.ranges},
            self.table("SELECT range_id, parent_id, depth FROM ranges WHERE kind NOT IN ('mark', 'window')"),
        )
        assert_equal(
            {ranges[r]: (ranges[r.parent],) for r in self.trace.marks},
            self.table("SELECT range_id, parent_id FROM ranges WHERE kind = 'mark'"),
        )
        assert_equal(
            {frames[r]: (frames[r.parent], r.depth, r.self_ns) for r in self.trace.frames},
            self.table("SELECT call_id, parent_id, depth, self_ns FROM python_calls"),
        )

    def check_links(self):
        ops, ranges, frames, calls = self.ops, self.ranges, self.frames, self.calls
        assert_equal(
            {calls[c]: (ops[c.op], ranges[c.range], frames[c.frame], c.role) for c in self.trace.calls},
            self.table("SELECT call_id, op_id, range_id, python_call_id, role FROM api_calls"),
        )
        assert_equal(
            {self.work[w]: (calls[w.launch], ops[w.op], w.phase) for w in self.trace.work},
            self.table("SELECT activity_id, launch_id, op_id, phase FROM gpu_activities"),
        )
        events = self.con.execute("SELECT pid, tid, at_ns, op_id FROM memory_events").fetchall()
        assert Counter((*e.lane, e.at, ops[e.op]) for e in self.trace.memory) == Counter(events)

    def parts(self, gaps):
        return {
            (g.device, g.stream, g.start, p.part): (
                *(g.dur, self.work[g.after], g.state, g.host_ns if g.after and g.after.launch else None),
                *(p.cause, p.ns, self.ops[p.op], self.calls[p.call]),
                VERSION.sub("", p.evidence) if p.cause == "sync" else None,
            )
            for g in gaps
            for p in g.parts
        }

    def found_parts(self, what):
        rows = self.con.execute(GAPS.format(what=what, stream="stream" if what else "NULL")).fetchall()
        return {row[:4]: row[4:] for row in rows}

    def check_categories(self):
        """Categories, and where they come from."""
        found = self.table(
            "SELECT activity_id, category, category_by_name, category_source FROM gpu_activities WHERE kind = 'kernel'"
        )
        expected = {self.work[w]: categories(w, *found[self.work[w]]) for w in self.trace.kernels}
        assert_equal(expected, found)


def categories(work, category, by_name, source):
    """What the script says of a kernel, given what the store does.

    Where it knows an operator and not the name, any name will do; and where name and operator say the same, either
    source.
    """
    if work.category_by_name != "other" or not work.category_by_op:
        by_name = work.category_by_name
    if by_name != work.category_by_op or source == "none":
        source = work.category_source
    return work.category, by_name, source


def on_host(row):
    return row.pid, row.tid, row.start, row.dur, row.name


def assert_equal(expected, found):
    """Equal, or the first few that are not."""
    assert expected.keys() == found.keys()
    wrong = [key for key in expected if expected[key] != found[key]]
    assert [(key, expected[key], found[key]) for key in wrong[:5]] == [], f"{len(wrong)} of {len(expected)} differ"


@pytest.mark.parametrize("path", [expensive(p) for p in parameters(others(), RECORDED)])
def test_recorded_trace(path, tmp_path_factory):
    with stored(path, tmp_path_factory) as case:
        compared = Compared(case.con, path)
        compared.check()
        if path.parent.name == "h200":
            compared.check_categories()


@pytest.mark.parametrize("path", parameters(readable(), FIXTURES))
def test_fixture(path, tmp_path_factory):
    with stored(path, tmp_path_factory) as case:
        compared = Compared(case.con, path)
        compared.check()
        compared.check_categories()


# External id of the operator around (or before) the launch, of the launch and of the kernel; 0 is none.
EXTERNAL = {
    "an operator without one": (50, {"External id": 0}, {}, {"External id": 1}),
    "a kernel without one": (5, {"External id": 3}, {"External id": 3}, {"External id": 0}),
    "a kernel that says nothing": (5, {"External id": 3}, {"External id": 3}, {}),
    "a launch that says another": (50, {"External id": 3}, {"External id": 4}, {}),
    "a kernel that says another": (50, {"External id": 3}, {"External id": 3}, {"External id": 4}),
    "a kernel that alone says so": (5, {"External id": 3}, {}, {"External id": 3}),
}


@pytest.mark.parametrize("name", EXTERNAL)
def test_external_ids(name, tmp_path):
    dur, op, launch, kernel = EXTERNAL[name]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": dur, "args": op},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20, "dur": 5}
        | {"args": {"correlation": 2, **launch}},
        {"ph": "X", "cat": "kernel", "name": "mine", "pid": 0, "tid": 7, "ts": 30, "dur": 5}
        | {"args": {"device": 0, "stream": 7, "correlation": 2, **kernel}},
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    with Case([path], tmp_path / "s.duckdb") as case:
        Compared(case.con, path).check()


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_the_script_cannot_read(name):
    (path,) = (FIXTURES / "cases" / name).glob("input*")
    with pytest.raises((ValueError, EOFError, KeyError, TypeError)):
        explain.load(path)
