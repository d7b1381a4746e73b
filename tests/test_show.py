"""Units, text, tables and formats, without a store."""

import contextlib
import datetime
import decimal
import io
import json
import os
import re
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from traceq.query import Column, Result
from traceq.show import formats, table
from traceq.show.text import heading, printable
from traceq.units import parse_duration_ns, show_bytes, show_ns, show_value

# The same examples every time, and nothing written into the checkout.
settings.register_profile("fixed", database=None, derandomize=True, deadline=None)
settings.load_profile("fixed")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
any_text = st.text(st.characters(codec=None), max_size=40)
real_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("12.3ms", 12_300_000),
        ("1s", 10**9),
        ("0.1s", 10**8),
        ("7 us", 7000),
        (" 1.5µs ", 1500),
        ("42ns", 42),
        ("43.53453525ms", 43_534_535),
        ("4398046511.104s", 4_398_046_511_104_000_000),
    ],
)
def test_a_duration_is_exact(text, ns):
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "12", "ms", "-1ms", "1e3ms", "1.ms", ".5ms", "1,5ms", "1 h", "1ms 2", "nan s", "1MS"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration_ns(text)


@given(st.integers(0, 999 * 10**9))
def test_a_shown_time_is_within_half_its_last_digit(ns):
    shown = show_ns(ns)
    unit = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}[shown.split()[1]]
    assert abs(parse_duration_ns(shown) - ns) <= unit / 2000 + 1
    assert unit == 1 or ns >= unit


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (276.7, "276.7 ns"),
        (1000, "1.000 µs"),
        (13500, "13.500 µs"),
        (999_999, "999.999 µs"),
        (1_000_000, "1.000 ms"),
        (-4_480_123, "-4.480 ms"),
        (3_661 * 10**9, "3,661.000 s"),
    ],
)
def test_show_ns(ns, shown):
    assert show_ns(ns) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (-2048, "-2.00 KiB"),
        (1 << 30, "1.00 GiB"),
        (150_109_880_320, "139.80 GiB"),
        (1 << 62, "4,096.00 PiB"),
    ],
)
def test_show_bytes(count, shown):
    assert show_bytes(count) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "ns", "–"),
        (None, None, "–"),
        ("text", "ns", "text"),
        (True, "count", "True"),
        (1500, "ns", "1.500 µs"),
        (2048, "bytes", "2.00 KiB"),
        (89.96, "percent", "90.0 %"),
        (1.567, "ratio", "1.57×"),
        (12345, "count", "12,345"),
        (12345, None, "12,345"),
        (0.123456, None, "0.1235"),
    ],
)
def test_show_value(value, unit, shown):
    assert show_value(value, unit) == shown


@given(any_text)
def test_printable_has_no_control_character_and_is_utf8(text):
    shown = printable(text)
    assert not CONTROL.search(shown)
    shown.encode()
    assert printable(shown) == shown
    assert shown == text or CONTROL.search(text) or re.search("[\u200e\u200f]", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("void k<int>(float*) é 漢 😀", "void k<int>(float*) é 漢 😀"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\r\nb\tc\0", "a\\x0d\\x0ab\\x09c\\x00"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egpj", "\\u202egpj"),
        ("\udcff", "\\udcff"),
        ("[red]x[/]", "[red]x[/]"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("name", "unit", "shown"),
    [
        ("run", None, "run"),
        ("total_ns", "ns", "total"),
        ("gemm_pct_of_kernel", "percent", "gemm % of kernel"),
        ("size_bytes", "bytes", "size bytes"),
        ("gemm_ns_per_step", "ns", "gemm per step"),
        ("ns", None, "ns"),
    ],
)
def test_heading(name, unit, shown):
    assert heading(name, unit) == shown


@contextlib.contextmanager
def terminal(columns):
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


CELLS = {
    "VARCHAR": st.none() | real_text | st.text("漢😀é[]/", max_size=60),
    "BIGINT": st.none() | st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.none() | st.floats(),
    "BOOLEAN": st.none() | st.booleans(),
}


@st.composite
def results(draw):
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=8))
    units = [
        draw(st.sampled_from([None, "ns", "bytes", "percent"])) if t in ("BIGINT", "DOUBLE") else None for t in types
    ]
    columns = tuple(Column(f"c{n}" * n, t, u) for n, (t, u) in enumerate(zip(types, units, strict=True), 1))
    rows = draw(st.lists(st.tuples(*(CELLS[t] for t in types)), max_size=4))
    return Result("made", {}, columns, rows, layout=draw(st.sampled_from(["table", "record"])))


@given(results(), st.sampled_from([40, 80, 132]))
def test_a_table_fits_and_says_what_it_left_out(result, width):
    out = io.StringIO()
    with terminal(width):
        hidden = table.show(result, out)
    text = out.getvalue()
    assert max(map(cell_len, text.split("\n"))) <= width
    assert not CONTROL.search(text.replace("\n", ""))
    assert hidden == [c.name for c in result.columns][len(result.columns) - len(hidden) :]


def test_a_table_keeps_its_numbers_whole_and_cuts_text():
    columns = (Column("name", "VARCHAR"), Column("n", "BIGINT"), Column("more", "BIGINT"), Column("last", "VARCHAR"))
    result = Result("made", {}, columns, [("x" * 100, 123456789, 987654321, "y" * 30)])
    out = io.StringIO()
    with terminal(60):
        hidden = table.show(result, out)
    assert hidden == ["last"]
    assert "123,456,789" in out.getvalue()
    assert "987,654,321" in out.getvalue()
    assert "…" in out.getvalue()
    wide = io.StringIO()
    with terminal(60):
        assert table.show(result, wide, is_wide=True) == []
    assert "x" * 100 in wide.getvalue()


@given(st.lists(st.sampled_from(["a", "b", "a_2", "a_2_2", ""]), max_size=8))
def test_unique_names_keep_what_came_first(names):
    made = formats.unique(names)
    assert len(set(made)) == len(names)
    assert all(new.startswith(old) for new, old in zip(made, names, strict=True))
    assert formats.unique(made) == made


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | real_text
    | st.binary(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.timedeltas()
    | st.uuids(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(real_text | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_plain_values_are_json(value):
    text = json.dumps(formats.plain(value), allow_nan=False)
    assert json.loads(text) == formats.plain(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        ([1, float("nan")], [1, None]),
        ({"a": {"b": float("inf")}}, {"a": {"b": None}}),
        (decimal.Decimal("1.50"), 1.5),
        (decimal.Decimal("12"), 12),
        (2**100, 2**100),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
        (b"\xff\x00", "ff00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (True, True),
    ],
)
def test_plain(value, plain):
    assert formats.plain(value) == plain
    assert type(formats.plain(value)) is type(plain)


TWINS = Result(
    "made",
    {},
    (Column("a", "BIGINT", "ns"), Column("a", "VARCHAR"), Column("b", "BOOLEAN")),
    [(1500, 'x,"|', True), (None, None, None)],
)


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (formats.to_jsonl, '{"a": 1500, "a_2": "x,\\"|", "b": true}\n{"a": null, "a_2": null, "b": null}\n'),
        (formats.to_csv, 'a,a_2,b\n1500,"x,""|",true\n,,\n'),
        (formats.to_markdown, '| a time | a | b |\n|---:|---|---:|\n| 1.500 µs | x,"\\| | True |\n| – | – | – |\n'),
    ],
    ids=["jsonl", "csv", "markdown"],
)
def test_twins_commas_quotes_bars_and_nulls(write, text):
    out = io.StringIO()
    write(TWINS, out)
    assert out.getvalue() == text
