"""Handing rows to DuckDB through the Arrow C interface, without pyarrow and without a Python object per value."""

from __future__ import annotations

import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

import nanoarrow as na
from nanoarrow.c_array_stream import CArrayStream


class Stream:
    """Arrays of one schema, for `con.register`. DuckDB's threads share the arrays out, so several small ones are faster
    than a large one."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = arrays

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        stream = CArrayStream.from_c_arrays(self.arrays, self.arrays[0].schema, validate=False)
        return stream.__arrow_c_stream__(requested_schema=requested_schema)


def row(values: dict[str, bytes | int]) -> Any:
    """An array of a single row; texts must be UTF-8 (`utf8`)."""
    schema = na.struct({name: na.int64() if isinstance(v, int) else na.large_string() for name, v in values.items()})
    return na.c_array_from_buffers(schema, 1, [None], children=[_single(v) for v in values.values()])


def _single(value: bytes | int) -> Any:
    if isinstance(value, int):
        return na.c_array_from_buffers(na.int64(), 1, [None, array.array("q", [value])])
    return na.c_array_from_buffers(na.large_string(), 1, [None, array.array("q", [0, len(value)]), value])


def whole_numbers(names: Sequence[str], rows: Sequence[Sequence[int]]) -> Any:
    """An array of rows of whole numbers."""
    flat = array.array("q", chain.from_iterable(rows))
    columns = [
        na.c_array_from_buffers(na.int64(), len(rows), [None, flat[place :: len(names)]]) for place in range(len(names))
    ]
    schema = na.struct({name: na.int64() for name in names})
    return na.c_array_from_buffers(schema, len(rows), [None], children=columns)


def utf8(text: bytes) -> bytes:
    """`text` itself when it is UTF-8 (Arrow's strings must be), else with U+FFFD in place of what is not."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode()
    return text
