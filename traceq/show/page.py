"""What a verdict is written on: a terminal, or Markdown to be pasted. The words and the tables are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Literal, Protocol

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from traceq.show.table import GAP, console
from traceq.show.text import COMMON, escape, printable

Justify = Literal["left", "right"]
Heads = Sequence[tuple[str, Justify]]
LEFT: Justify = "left"
RIGHT: Justify = "right"
BEFORE_A_UNIT = re.compile(r"(?<=[0-9]) (?=(?:[nµm]?s|[KMGTP]?i?B)\b|%)")
UNBROKEN = "\ue000"  # one column wide, not a space to rich, and in no text that is printable
LABEL = 12
NARROW = 100


class Page(Protocol):
    """A sentence, what belongs to it, titles, lists and tables."""

    @property
    def is_narrow(self) -> bool:
        """Whether a table must do without some columns."""

    def heads(self, first: str, second: str) -> list[str]:
        """Two labels as heads of columns."""

    def say(self, text: str, style: str = "") -> None:
        """A sentence, a paragraph of its own."""

    def under(self, lines: Iterable[str]) -> None:
        """What belongs to the sentence above."""

    def title(self, title: str, more: str) -> None:
        """What follows, and how it is to be read."""

    def bullets(self, lines: Iterable[str]) -> None:
        """A list."""

    def draw(self, heads: Heads, rows: Sequence[Sequence[Text]], does_wrap: bool = False) -> None:
        """A table; no rows, none."""


Draw = Callable[[IO[str]], None]


def drawn(write: Callable[[Page], None], is_wide: bool) -> tuple[Draw, dict[str, Draw]]:
    """`write` as what draws a table, and by the name of each format that says all a table says."""
    return lambda out: write(Screen(out, is_wide)), {"markdown": lambda out: write(Markdown(out))}


class Screen:
    """A page as wide as the terminal."""

    def __init__(self, out: IO[str], is_wide: bool) -> None:
        self._console = console(out, is_wide)

    @property
    def is_narrow(self) -> bool:
        return self._console.width < NARROW

    def heads(self, first: str, second: str) -> list[str]:
        return heads_of(first, second)

    def say(self, text: str, style: str = "") -> None:
        """Lines as wide as the screen; a number and its unit stay together."""
        glued = Text(BEFORE_A_UNIT.sub(UNBROKEN, printable(text)), style=style)
        for line in glued.wrap(self._console, self._console.width):
            self._console.print(Text(line.plain.replace(UNBROKEN, " ").rstrip(), style=style))

    def under(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(f"  {line}")

    def title(self, title: str, more: str) -> None:
        self._console.print()
        self._console.print(Text.assemble((title, "bold"), (f"  {more}", "dim")))

    def bullets(self, lines: Iterable[str]) -> None:
        grid = Table.grid(padding=(0, 1, 0, 0))
        for line in lines:
            grid.add_row("•", Text(printable(line)))
        self._console.print(grid)

    def draw(self, heads: Heads, rows: Sequence[Sequence[Text]], does_wrap: bool = False) -> None:
        """A table in which text is cut where room is short (the last column: wrapped), and numbers never."""
        if not rows:
            return
        widths = [max(cell_len(head), *(row[n].cell_len for row in rows)) for n, (head, _) in enumerate(heads)]
        room = self._console.width - GAP * (len(heads) - 1)
        texts = sorted((n for n, (_, justify) in enumerate(heads) if justify == LEFT), key=lambda n: widths[n])
        left = room - sum(width for n, width in enumerate(widths) if n not in texts)
        for place, n in enumerate(texts):
            widths[n] = max(min(widths[n], left // (len(texts) - place)), 1)
            left -= widths[n]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for (head, justify), width in zip(heads, widths, strict=True):
            table.add_column(Text(head), justify=justify, width=width, no_wrap=not does_wrap)
        for row in rows:
            cells = [_fitted(cell, width) for cell, width in zip(row, widths, strict=True)]
            table.add_row(*cells[:-1], row[-1] if does_wrap else cells[-1])
        self._console.print(table)


class Markdown:
    """A page to be pasted: nothing is cut."""

    is_narrow = False

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def heads(self, first: str, second: str) -> list[str]:
        return [printable(first), printable(second)]

    def say(self, text: str, style: str = "") -> None:
        mark = "**" if "bold" in style else ""
        self._out.write(f"{mark}{_escaped(text)}{mark}\n\n")

    def under(self, lines: Iterable[str]) -> None:
        self.bullets(lines)

    def title(self, title: str, more: str) -> None:
        self._out.write(f"### {_escaped(title)}\n\n")
        if more:
            self.say(more)

    def bullets(self, lines: Iterable[str]) -> None:
        if items := "".join(f"- {_escaped(line)}\n" for line in lines):
            self._out.write(f"{items}\n")

    def draw(self, heads: Heads, rows: Sequence[Sequence[Text]], does_wrap: bool = False) -> None:
        if not rows:
            return
        lines = [[head for head, _ in heads], *([cell.plain for cell in row] for row in rows)]
        drawn = [f"| {' | '.join(map(_cell, line))} |\n" for line in lines]
        drawn.insert(1, f"|{'|'.join('---' if justify == LEFT else '---:' for _, justify in heads)}|\n")
        self._out.write("".join(drawn) + "\n")


def _escaped(text: str) -> str:
    return escape(printable(text))


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _fitted(cell: Text, width: int) -> Text:
    return cell if cell.cell_len <= width else Text(_middle(cell.plain, width), cell.style)


def heads_of(first: str, second: str) -> list[str]:
    """Two labels as heads of columns: where one is too long, without the words that both begin or end with."""
    texts = [printable(label) for label in (first, second)]
    if all(cell_len(text) <= LABEL for text in texts) or first == second:
        return [_middle(text, LABEL) for text in texts]
    begin, end = _shared(texts), _shared([text[::-1] for text in texts])
    own = [text[begin : len(text) - end] for text in texts]
    if all(own):
        texts = [f"{'…' if begin else ''}{text}{'…' if end else ''}" for text in own]
    cut = [_middle(text, LABEL) for text in texts]
    return cut if cut[0] != cut[1] else [f"{n} {_middle(text, LABEL - 2)}" for n, text in zip("AB", texts, strict=True)]


def _shared(texts: Sequence[str]) -> int:
    """The length of the whole words, with what parts them, that all begin with."""
    one, two = texts
    alike = next((n for n, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two)))
    return len(re.sub(r"[^\W_]+$", "", one[:alike]))


def _middle(text: str, width: int) -> str:
    """A name that is too long, cut in its middle: what kernels' names have in common goes first."""
    if cell_len(text) <= width:
        return text
    text = COMMON.sub("", text)
    if cell_len(text) <= width:
        return text
    tail = max(width - 1, 0) // 3
    start, end = text[: max(width - 1, 0) - tail], text[len(text) - tail :]
    while cell_len(start) > max(width - 1, 0) - tail:  # characters that are two columns wide
        start = start[:-1]
    while cell_len(end) > tail:
        end = end[1:]
    return f"{start}…{end}"
