"""Reading a Chrome trace: every valid layout gives the same rows, and no text gives more than a TraceqError."""

import contextlib
import gzip
import hashlib
import io
import json
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import cases
import duckdb
import pytest
from cases import Raw, dump
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from recorded import SLOW, slow

from traceq import query as queries
from traceq.errors import Status, TraceqError
from traceq.ingest import cut, kineto
from traceq.ingest.pipeline import Options, derive, ingest
from traceq.ingest.source import Source
from traceq.store.build import CONFIG, create, trace_tables

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECES = (300, 700, 1500)
WHOLE = cut.PIECE_BYTES
SIZES = (*PIECES, WHOLE)
CASES = ("01", "02", "05", "07", "09", "19", "71", "73")


QUICK = [Phase.explicit, Phase.generate, Phase.shrink]


def some(examples, phases=QUICK):
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, phases=phases, deadline=None, database=None, derandomize=True, suppress_health_check=slow
    )


def few(examples):
    """For what fills a whole store: half of them, and all with TRACEQ_SLOW.

    A failure is shown as found, since shrinking it takes minutes.
    """
    return some(examples if SLOW else (examples + 1) // 2, QUICK[:2])


# Events, and ways to write them --------------------------------------------------------------------------------------

NASTY = ['},{"ph":"X"', "\n  },\n  {", '"traceEvents": [', "]}", "\\", '\\"', "a,b: c", "\x01\t\n", "核 é 🎉", *'{["']
text = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
micros = st.builds(
    lambda whole, decimals: Decimal(f"{whole}.{decimals}" if decimals else whole),
    st.integers(0, 2 * 10**15),
    st.text("0123456789", max_size=6),
)
ids = st.integers(-1, 5 * 10**9) | text
args = st.dictionaries(text, text | st.integers(0, 2**53) | st.lists(st.integers(0, 9)) | st.none(), max_size=3)
events = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from("XiMCsf")},
        optional={"cat": text, "name": text, "pid": ids, "tid": ids, "ts": micros, "dur": micros, "args": args},
    ),
    max_size=12,
)
# Events that mean something, close enough together to touch, overlap and tie.
small = st.integers(0, 40)
work = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(
            ["kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "user_annotation", "python_function"]
        ),
        "name": st.sampled_from(
            ["gemm", "cudaLaunchKernel", "cudaGraphLaunch", "ProfilerStep#1", "ProfilerStep#2", "f"]
        ),
        "pid": st.sampled_from([0, 1, "1"]),
        "tid": st.sampled_from([7, 8]),
        "ts": small,
        "dur": small,
        "args": st.fixed_dictionaries({"device": st.sampled_from([0, 1]), "correlation": st.integers(0, 9)}),
    }
)


@dataclass(frozen=True)
class Layout:
    """How a file is put together; `pack` makes bytes of its text."""

    head: str
    tail: str
    joint: str = ",\n"
    write: Callable = dump
    pack: Callable = str.encode

    def data(self, events):
        return self.pack(self.head + self.joint.join(map(self.write, events)) + self.tail)

    def ends(self, events):
        """Where each event ends in the file, which must not be compressed."""
        texts = [self.head + self.joint.join(map(self.write, events[: n + 1])) for n in range(len(events))]
        return [len(t.encode()) for t in texts]


def compact(event):
    return dump(event, ",", ":")


def backwards(event):
    return dump(dict(reversed(event.items())))


def indented(event):
    """As libkineto writes it."""
    lines = ",\n    ".join(f"{json.dumps(k)}: {dump(v, ', ', ': ')}" for k, v in event.items())
    return f"  {{\n    {lines}\n  }}"


def members(text, pack=gzip.compress, count=3):
    raw = text.encode()
    size = -(-len(raw) // count)
    return b"".join(pack(raw[at : at + size]) for at in range(0, len(raw), size))


HEAD = '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU [0]"}], "traceEvents": ['
TAIL = '], "traceName": "a]}, {b", "distributedInfo": {"rank": 0}}'
LAYOUTS = {
    "one line": Layout('{"schemaVersion":1,"traceEvents":[', '],"x":{"y":[{}]}}', ",", compact),
    "indented": Layout('{\n  "schemaVersion": 1,\n  "traceEvents": [\n', '\n  ],\n  "x": 1\n}\n', ",\n", indented),
    "bare list": Layout("[", "]"),
    "bare list without an end": Layout("[\n", ",\n"),
    "keys in another order": Layout(HEAD, TAIL, " , ", backwards),
    "events last": Layout(HEAD, "]}"),
    "events first": Layout('{"traceEvents":[', TAIL),
    "gzip": Layout(HEAD, TAIL, pack=lambda text: gzip.compress(text.encode())),
    "gzip members": Layout(HEAD, TAIL, pack=members),
    "zstd": Layout(HEAD, TAIL, pack=lambda text: zstd.compress(text.encode())),
    "zstd frames": Layout(HEAD, TAIL, pack=lambda text: members(text, zstd.compress)),
    "byte-order mark": Layout("\ufeff\n\n \n" + HEAD, TAIL),
}
PLAIN = ["one line", "indented", "bare list", "keys in another order"]


# Reading -------------------------------------------------------------------------------------------------------------


class Reader:
    """A store in memory that reads one text after another."""

    def __init__(self, path):
        self.path = path
        self.con = duckdb.connect(config=dict(CONFIG))
        create(self.con)
        self.con.execute("ATTACH ':memory:' AS stage")

    def read(self, data, piece_bytes=WHOLE):
        """What `kineto.read` says about it; the events are in the store then."""
        self.path.write_bytes(data)
        with Source(str(self.path)) as source:
            return kineto.read(self.con, source, piece_bytes)

    def unpacked(self, raw):
        self.path.write_bytes(raw)
        with Source(str(self.path)) as source:
            return b"".join(iter(lambda: source.read(WHOLE), b""))

    def rows(self, data, piece_bytes=WHOLE):
        self.read(data, piece_bytes)
        found = self.con.execute("SELECT ph, cat, name, pid, tid, ts_ns, dur_ns, args FROM stage.events").fetchall()
        return in_order([*row[:-1], row[-1] and json.loads(row[-1], strict=False)] for row in found)

    @contextlib.contextmanager
    def derived(self, data, piece_bytes=WHOLE):
        """The text as a store, for as long as the context lasts."""
        try:
            kineto.sort(self.con, self.read(data, piece_bytes), None)
            derive(self.con)
            yield
        finally:
            for name in trace_tables(self.con):
                self.con.execute(f"DELETE FROM {name}")

    def tables(self, data, piece_bytes=WHOLE):
        """All rows of all tables."""
        with self.derived(data, piece_bytes):
            return {name: in_order(self._fetch(f"FROM {name}")) for name in trace_tables(self.con)}

    def ask(self, data, piece_bytes=WHOLE):
        """Have every canned question answered."""
        with self.derived(data, piece_bytes):
            for name in queries.names():
                query = queries.load(name)
                queries.fetch(self.con, query.sql, queries.bind(query, {}), None)

    def _fetch(self, sql):
        return [[plain(value) for value in row] for row in self.con.execute(sql).fetchall()]


def in_order(rows):
    return sorted((list(row) for row in rows), key=repr)


def plain(value):
    """JSON text with its keys in order."""
    if isinstance(value, str) and value.startswith("{"):
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(value, strict=False), sort_keys=True)
    return value


WORDS = ("ph", "cat", "name", "pid", "tid")


def word(value):
    return None if value is None else str(value)


def ns(value):
    return None if value is None else int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))


def times(event):
    return [ns(event.get("ts")), ns(event.get("dur"))]


def expected(events):
    return in_order(
        [*map(e.get, WORDS[:3]), *map(word, map(e.get, WORDS[3:])), *times(e), e.get("args")] for e in events
    )


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    reader = Reader(tmp_path_factory.mktemp("reading") / "x.json")
    yield reader
    reader.con.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@given(events=events)
@some(8)
def test_every_layout_gives_the_same_rows(layout, reader, events):
    data = LAYOUTS[layout].data(events)
    for size in SIZES:
        assert reader.rows(data, size) == expected(events)


@given(events=st.lists(work, min_size=1, max_size=25))
@few(5)
def test_every_layout_gives_the_same_store(reader, events):
    first = reader.tables(Layout(HEAD, TAIL).data(events))
    for write in (compact, indented, backwards):
        assert reader.tables(Layout(HEAD, TAIL, write=write).data(events), 300) == first


@given(events=st.lists(work, min_size=1, max_size=25), shuffle=st.randoms(use_true_random=False))
@few(5)
def test_the_order_of_events_does_not_matter(reader, events, shuffle):
    first = reader.tables(LAYOUTS["one line"].data(events))
    shuffle.shuffle(events)
    assert reader.tables(LAYOUTS["one line"].data(events)) == first


@given(found=st.lists(micros, min_size=1, max_size=40))
@some(20)
def test_times_are_exact(reader, found):
    listed = [{"ph": "X", "ts": t, "dur": t} for t in found]
    assert reader.rows(LAYOUTS["one line"].data(listed)) == expected(listed)


@pytest.mark.parametrize(
    ("written", "right"),
    [
        *[("1719876543210987.123", 1719876543210987123), ("8796093022208.0015", 8796093022208002), ("2", 2000)],
        *[("0.0005", 1), ("0.0004", 0), ("0.00049999", 0), ("0.0014999", 1), ("-3.5", -3500), ("1e3", 1000000)],
        *[('"10.5"', 10500), ('"x"', None), ("null", None), ("[1]", None), ("1e30", None)],
    ],
)
def test_a_time_as_written(reader, written, right):
    found = reader.rows(f'[{{"ph": "X", "ts": {written}}}, {{"ph": "X", "ts": {written}}}]'.encode(), 300)
    assert [row[5] for row in found] == [right] * 2


# Cut and damaged text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", PLAIN)
@given(events=events, where=st.floats(0, 1))
@some(25)
def test_a_cut_keeps_the_whole_events_before_it(layout, reader, events, where):
    layout = LAYOUTS[layout]
    data, ends = layout.data(events), layout.ends(events)
    at = int(where * len(data))
    whole = [e for e, end in zip(events, ends, strict=True) if end <= at]
    for size in SIZES:
        if at < len(layout.head.rstrip()):
            with pytest.raises(TraceqError):
                reader.read(data[:at], size)
            continue
        assert reader.rows(data[:at], size) == expected(whole)


@given(events=events, where=st.floats(0, 1))
@some(25)
def test_a_cut_of_an_object_is_told(reader, events, where):
    layout = LAYOUTS["one line"]
    data = layout.data(events)
    end = len(data) - len(layout.tail)
    at = len(layout.head) + int(where * (end - len(layout.head)))
    reading = reader.read(data[:at])
    assert reading.cut
    assert len(reading.lost) <= 1


def unpacked(raw):
    """What zlib gets out of a gzip file, however damaged its end is."""
    found, rest = b"", raw
    while rest.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(31)
        with contextlib.suppress(zlib.error):
            found += stream.decompress(rest)
        rest = stream.unused_data
    return found


@pytest.mark.parametrize("layout", ["gzip", "gzip members"])
@given(events=events.filter(bool), where=st.floats(0.3, 1))
@few(25)
def test_a_cut_gzip_keeps_what_can_be_unpacked(layout, reader, events, where):
    raw = LAYOUTS[layout].data(events * 10)
    raw = raw[: int(where * len(raw))]
    assert reader.unpacked(raw) == unpacked(raw)


place = st.floats(0, 1)
changes = st.lists(st.tuples(place, st.sampled_from(["flip", "insert", "delete"]), st.integers(0, 255)), max_size=4)
swaps = st.lists(st.tuples(place, st.sampled_from('{}[]",:\\\n x0')), max_size=4)


def changed(data, changes):
    for where, how, byte in changes:
        at = int(where * len(data))
        rest = data[at:] if how == "insert" else data[at + 1 :]
        data = data[:at] + (b"" if how == "delete" else bytes([byte])) + rest
    return data


@pytest.mark.parametrize("layout", LAYOUTS)
@given(events=events, changes=changes)
@some(15)
def test_changed_bytes_raise_nothing_else(layout, reader, events, changes):
    data = changed(LAYOUTS[layout].data(events), changes)
    for size in SIZES:
        with contextlib.suppress(TraceqError):
            reader.read(data, size)


@given(events=st.lists(work, min_size=1, max_size=12), swaps=swaps)
@few(10)
def test_changed_syntax_raises_nothing_else_on_the_way_to_the_store(reader, events, swaps):
    changes = [(where, "flip", ord(byte)) for where, byte in swaps]
    with contextlib.suppress(TraceqError):
        reader.ask(changed(LAYOUTS["indented"].data(events), changes), 700)


@given(noise=st.binary(max_size=300) | st.text('{}[]",: \n\\x1', max_size=300).map(str.encode))
@some(60)
def test_noise_raises_nothing_else(reader, noise):
    for data in (noise, b'{"traceEvents": [' + noise, b"[" + noise):
        with contextlib.suppress(TraceqError):
            reader.read(data, 300)


BREAKAGE = {
    "a quote is missing": ('"name":', 'name":'),
    "a quote too many": ('"name":', '""name":'),
    "raw quotes in a name": ('"k5"', '"k "5" x"'),
    "a colon is missing": ('"ts":', '"ts"'),
    "a word for a number": ("50", "fifty"),
    "a bracket too many": ("50", "50]"),
}


@pytest.mark.parametrize("layout", PLAIN)
@pytest.mark.parametrize("breakage", BREAKAGE)
def test_a_broken_event_costs_itself_alone(breakage, layout, reader):
    layout = LAYOUTS[layout]
    texts = [layout.write({"ph": "X", "name": f"k{n}", "pid": 0, "ts": n * 10}) for n in range(12)]
    texts[5] = texts[5].replace(*BREAKAGE[breakage])
    for size in SIZES:
        reading = reader.read((layout.head + layout.joint.join(texts) + layout.tail).encode(), size)
        found = reader.con.execute("SELECT name FROM stage.events ORDER BY ts_ns").fetchall()
        assert [name for (name,) in found] == [f"k{n}" for n in range(12) if n != 5]
        assert len(reading.lost) == 1


@pytest.mark.parametrize("number", CASES)
def test_the_size_of_the_pieces_does_not_matter(number, reader):
    (path,) = cases.FOLDER.glob(f"hand-{number}-*/input*")
    whole = reader.tables(path.read_bytes())
    for size in PIECES:
        assert reader.tables(path.read_bytes(), size) == whole


# Cutting, and the bytes of a file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", PLAIN)
@given(events=events, size=st.integers(20, 2000))
@some(25)
def test_pieces_are_the_list_cut_between_events(layout, events, size):
    data = LAYOUTS[layout].data(events)
    cutter = cut.Cutter(io.BytesIO(data), "x.json", size)
    pieces = list(cutter)
    assert data.endswith(b"".join(piece.joint + piece.text for piece in pieces))
    assert all(data[piece.at : piece.at + len(piece.text)] == piece.text for piece in pieces)
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert data.startswith(cutter.head)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_source_hashes_and_counts_the_bytes_of_the_file(layout, tmp_path):
    path = tmp_path / "any name"
    data = LAYOUTS[layout].data([{"ph": "X", "name": f"k{n}"} for n in range(2000)])
    path.write_bytes(data)
    with Source(str(path)) as source:
        source.read(10)
        assert source.sha256() == hashlib.sha256(data).hexdigest()
        assert source.raw_bytes == len(data)


OTHERS = {
    "SQLite": b"SQLite format 3\0" + bytes(84),
    "ZIP": b"PK\x03\x04" + bytes(30),
    "UTF-16": '{"traceEvents": []}'.encode("utf-16"),
    "empty": b"",
    "no JSON": b"hello, world\n",
    "no traceEvents": b'{"a": [1, 2]}',
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_trace_is_refused_by_name(what, reader):
    with pytest.raises(TraceqError) as caught:
        reader.read(OTHERS[what])
    assert caught.value.status is Status.INPUT
    assert str(reader.path) in caught.value.message
    assert what in caught.value.message


# Values that no profiler should write --------------------------------------------------------------------------------

STEP, CALL, KERNEL, COPY, OP, MARK, SYNC = (
    {"ph": "X", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 9, "args": {"correlation": n, "External id": n}} | fields
    for n, fields in enumerate(
        [
            {"cat": "user_annotation", "name": "ProfilerStep#1", "dur": 99},
            {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": 2}},
            {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7},
            {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7},
            {"cat": "cpu_op", "name": "aten::mm"},
            {"ph": "i", "name": "[memory]"},
            {"cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7},
        ]
    )
)
EVENTS = [STEP, CALL, KERNEL, COPY, OP, MARK, SYNC]
HUGE = [2**63 - 1, -(2**63), 2**70, *(Raw(n) for n in ("9e15", "-9e15", "9223372036854775", "1e17", "1e70", "1e400"))]
ODD = [*HUGE, "", "x", "12", None, True, [], [1], {}, {"a": 1}, Raw("NaN"), Raw("-Infinity"), "\0", "inf", 0.5, -1, 0]
FIELDS = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]
ARGS = ["device", "stream", "correlation", "bytes", "External id", "grid", "Device Id", "Bytes", "graph id", "context"]


def together_or_alone(names):
    """All of them in one file; with TRACEQ_SLOW each in a file of its own as well."""
    return [pytest.param(names, id="all"), *(pytest.param([name], id=name, marks=slow) for name in names)]


@pytest.mark.parametrize("fields", together_or_alone(FIELDS))
def test_odd_values_of_a_field_raise_nothing(fields, reader):
    odd = [e | {field: value} for field in fields for value in ODD for e in EVENTS]
    reader.ask(LAYOUTS["bare list"].data(EVENTS + odd))


@pytest.mark.parametrize("fields", together_or_alone(ARGS))
def test_odd_values_of_an_argument_raise_nothing(fields, reader):
    odd = [e | {"args": e["args"] | {field: value}} for field in fields for value in ODD for e in EVENTS]
    reader.ask(LAYOUTS["bare list"].data(EVENTS + odd))


@pytest.mark.parametrize("name", [f"ProfilerStep#{n}" for n in (10**20, "", "007", "-1")])
def test_odd_step_names_raise_nothing(name, reader):
    reader.ask(LAYOUTS["bare list"].data([STEP | {"name": name}, *EVENTS[1:]]))


METADATA = {
    "NaN": {"x": Raw("NaN")},
    "infinity": {"x": {"y": Raw("-Infinity")}},
    "a number that is too large": {"x": Raw("1e999")},
    "half a surrogate pair": {"x": Raw(r'"\ud800"')},
    "NUL": {"x": "\0"},
    "a huge rank": {"distributedInfo": {"rank": 2**70, "world_size": 2}},
    "a huge world": {"distributedInfo": {"rank": 0, "world_size": 2**70}},
    "a rank in quotes": {"distributedInfo": {"rank": "0", "world_size": "2"}},
    "a huge base": {"baseTimeNanoseconds": 2**70},
    "a huge negative base": {"baseTimeNanoseconds": -(2**70)},
    "a base in quotes": {"baseTimeNanoseconds": "1700000000000000000"},
    "a huge device": {"deviceProperties": [{"id": 2**70, "name": "x"}]},
    "a huge memory": {"deviceProperties": [{"id": 0, "totalGlobalMem": 2**70}]},
    "a list of numbers of SMs": {"deviceProperties": [{"id": 0, "numSms": [1]}]},
    "devices that are no list": {"deviceProperties": {"id": 0}},
    "deep lists": {"x": Raw("[" * 2000 + "]" * 2000)},
}


@pytest.mark.parametrize("what", METADATA)
def test_odd_metadata_costs_no_event(what, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(dump(METADATA[what])[:-1] + f', "traceEvents": [{dump(CALL)}, {dump(KERNEL)}]}}', "utf-8")
    ((outcome,), _) = ingest([str(path)], tmp_path / "s.duckdb", Options())
    assert (outcome.result, outcome.kept, outcome.lost) == ("ingested", 2, 0)
