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
from traceq.show.text import heading, printable
from traceq.units import show_value

PIPE_WIDTH = 160
TEXT_WIDTH = 24  # what a text column may be cut to before whole columns are left out
GAP = 2  # columns between two: one of padding, one of the box
LONGEST = 400


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
    cells = [[_cell(v, c) for v, c in zip(row, result.columns, strict=True)] for row in result.rows]
    needs = [
        max([cell_len(heading(column.name, column.unit)), *(cell_len(row[place]) for row in cells)])
        for place, column in enumerate(result.columns)
    ]
    widths = _fitting(result.columns, needs, screen.width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(result.columns, widths, strict=False):
        justify: Literal["left", "right"] = "right" if _is_number(column) else "left"
        table.add_column(
            Text(heading(column.name, column.unit)), justify=justify, width=width, no_wrap=True, style=_style(column)
        )
    for row in cells:
        table.add_row(*(Text(row[place], overflow="ellipsis") for place in range(len(widths))))
    screen.print(table)
    return [c.name for c in result.columns[len(widths) :]]


def _records(result: Result, screen: Console) -> None:
    """Each row as a list of names and values, the rows side by side as columns."""
    table = Table(
        box=box.SIMPLE,
        show_header=False,
        pad_edge=False,
        show_edge=False,
        padding=(0, GAP, 0, 0),
        collapse_padding=True,
    )
    table.add_column(style="bold", no_wrap=True)
    for _ in result.rows:
        table.add_column(justify="right", overflow="ellipsis")
    for place, column in enumerate(result.columns):
        table.add_row(
            Text(heading(column.name, column.unit)), *(Text(_cell(row[place], column)) for row in result.rows)
        )
    screen.print(table)


def _fitting(columns: Sequence[Column], needs: Sequence[int], width: int) -> list[int]:
    """Widths of the columns that fit, the first ones first; text may be cut, numbers may not."""
    least = [n if _is_number(c) else min(n, TEXT_WIDTH) for n, c in zip(needs, columns, strict=True)]
    widths: list[int] = []
    while len(widths) < len(least) and (not widths or sum(widths) + least[len(widths)] + GAP * len(widths) <= width):
        widths.append(least[len(widths)])
    spare = width - sum(widths) - GAP * (len(widths) - 1)
    for place, need in enumerate(needs[: len(widths)]):
        more = max(0, min(need - widths[place], spare))
        widths[place] += more
        spare -= more
    return widths


def _cell(value: object, column: Column) -> str:
    text = printable(show_value(value, column.unit))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _is_number(column: Column) -> bool:
    return column.type not in ("VARCHAR", "BOOLEAN") and not column.type.startswith(("STRUCT", "MAP"))


def _style(column: Column) -> str:
    return "" if _is_number(column) else "cyan"
