"""Results as tables and records for people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceq.query import Column, Result
from traceq.show.text import KERNEL_NAMES, heading, printable, short_name
from traceq.units import show_value

PIPE_WIDTH = 160
TEXT_WIDTH = 24  # what a text column may be cut to before whole columns are left out
GAP = 2  # columns between two: one of padding, one of the box
LONGEST = 400
WHERE = {"run", "rank", "device", "stream", "step", "a_run", "b_run"}


def console(out: IO[str], is_wide: bool = False) -> Console:
    """A console for results: as wide as the terminal, as `$COLUMNS` says, or 160 columns in a pipe."""
    width = None if out.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(
        file=out, width=10_000 if is_wide else width, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


def show(result: Result, out: IO[str], is_wide: bool = False) -> list[str]:
    """Draw `result`; returns the names of the columns that did not fit."""
    screen = console(out, is_wide)
    if result.layout == "record":
        _records(result, screen)
        return []
    is_raw = result.layout == "raw"
    overflow: Literal["fold", "ellipsis"] = "fold" if result.layout == "wrap" else "ellipsis"
    cells = [[_cell(v, c, is_raw) for v, c in zip(row, result.columns, strict=True)] for row in result.rows]
    columns, headings, needs = result.columns, *_measured(result.columns, cells, is_raw)
    dull: list[str] = []
    if not is_raw and sum(_least(columns, needs)) + GAP * (len(columns) - 1) > screen.width:
        kept = [place for place, c in enumerate(columns) if not _is_dull(c, [row[place] for row in cells])]
        dull = [c.name for place, c in enumerate(columns) if place not in kept]
        columns, cells = tuple(columns[p] for p in kept), [[row[p] for p in kept] for row in cells]
        headings, needs = _measured(columns, cells, is_raw)
    widths = _fitting(columns, needs, screen.width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name, column, width in zip(headings, columns, widths, strict=False):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        wraps = result.layout == "wrap" and column is columns[len(widths) - 1]
        table.add_column(Text(name), justify=justify, width=width, no_wrap=not wraps, style=_style(column))
    for row in cells:
        shown = [_cut(cell, c, w) for cell, c, w in zip(row, columns, widths, strict=False)]
        table.add_row(*(Text(cell, overflow=overflow) for cell in shown))
    screen.print(table)
    return [*dull, *(c.name for c in columns[len(widths) :])]


def _measured(columns: Sequence[Column], cells: Sequence[Sequence[str]], is_raw: bool) -> tuple[list[str], list[int]]:
    headings = [c.name if is_raw else heading(c.name, c.unit) for c in columns]
    return headings, [max(map(_width, [name, *(row[p] for row in cells)])) for p, name in enumerate(headings)]


def _is_dull(column: Column, cells: Sequence[str]) -> bool:
    """Whether a column only says where the rows are from, and the same of all: the first to go where room is short."""
    return column.name in WHERE and len(set(cells)) == 1


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _cut(text: str, column: Column, width: int) -> str:
    """A kernel's name where it would be cut is shortened; other text is left to Rich."""
    return short_name(text, width) if column.name in KERNEL_NAMES else text


def _records(result: Result, screen: Console) -> None:
    """Each row as a list of names and values, as many rows side by side as fit; values are never cut."""
    names = [heading(c.name, c.unit) for c in result.columns]
    rows = [[_cell(v, c) for v, c in zip(row, result.columns, strict=True)] for row in result.rows]
    widths = [max(map(_width, row)) for row in rows]
    while rows:
        count, used = 0, max(map(cell_len, names))
        while count < len(rows) and (not count or used + GAP + widths[count] <= screen.width):
            used += GAP + widths[count]
            count += 1
        table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        for _ in range(count):
            table.add_column(justify="right", overflow="fold")
        for place, name in enumerate(names):
            table.add_row(Text(name), *(Text(row[place]) for row in rows[:count]))
        screen.print(table)
        rows, widths = rows[count:], widths[count:]
        if rows:
            screen.print()


def _fitting(columns: Sequence[Column], needs: Sequence[int], width: int) -> list[int]:
    """Widths of the columns that fit, the first ones first; text may be cut, numbers may not."""
    least = _least(columns, needs)
    widths: list[int] = []
    while len(widths) < len(least) and (not widths or sum(widths) + least[len(widths)] + GAP * len(widths) <= width):
        widths.append(least[len(widths)])
    spare = width - sum(widths) - GAP * (len(widths) - 1)
    for place, need in enumerate(needs[: len(widths)]):
        more = max(0, min(need - widths[place], spare))
        widths[place] += more
        spare -= more
    return widths


def _least(columns: Sequence[Column], needs: Sequence[int]) -> list[int]:
    return [n if c.is_number else min(n, TEXT_WIDTH) for n, c in zip(needs, columns, strict=True)]


def _cell(value: object, column: Column, is_raw: bool = False) -> str:
    if is_raw and isinstance(value, float):
        text = f"{value:,.3f}".rstrip("0").rstrip(".")
    elif is_raw and isinstance(value, str):
        text = "\n".join(map(printable, value.split("\n")))
    else:
        text = printable(show_value(value, column.unit))
    return text if len(text) <= LONGEST or is_raw else f"{text[:LONGEST]}…"


def _style(column: Column) -> str:
    return "" if column.is_number else "cyan"
