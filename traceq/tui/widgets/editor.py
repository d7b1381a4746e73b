"""Where SQL is typed: coloured as DuckDB reads it, with names to choose from while one types."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option
from textual.widgets.text_area import TextAreaTheme

from traceq.show.text import printable

MOST_WORDS = 8
WIDTH = 44
WORD = re.compile(r"(?:(\w+)\.)?(\w*)$")
NO_ALIAS = r"(?!(?:JOIN|LEFT|WHERE|ON|USING|GROUP|ORDER|QUALIFY|LIMIT|UNION)\b)"
SOURCE = re.compile(rf"\b(?:FROM|JOIN)\s+(\w+)(?:\s+(?:AS\s+)?{NO_ALIAS}(\w+))?", re.I)
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "USING", "WITH",
    "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "BETWEEN", "UNION ALL", "QUALIFY", "OVER", "PARTITION BY",
    "FILTER", "count", "sum", "avg", "median", "quantile_cont", "min", "max", "arg_max", "coalesce", "nullif", "round",
    "DESCRIBE", "EXPLAIN", "PIVOT", "SUMMARIZE", "DESC",
)  # fmt: skip
COLOURS = {
    True: {"keyword": "#4dabf7", "string_const": "#8ce99a", "numeric_const": "#ffb224", "comment": "#868e96"},
    False: {"keyword": "#0b66c3", "string_const": "#2b8a3e", "numeric_const": "#b35900", "comment": "#6c757d"},
}


@dataclass(frozen=True)
class Names:
    """What can be named: the columns (name, type) of each table."""

    tables: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def matching(self, before: str, text: str) -> list[tuple[str, str]]:
        """(word, what it is) for the word that ends `before`, the likeliest first; `text` is the whole statement."""
        found = WORD.search(before)
        assert found
        qualifier, start = str(found[1] or ""), str(found[2]).lower()
        sources = {(alias or table).lower(): table for table, alias in SOURCE.findall(text)}
        if qualifier:
            table = sources.get(qualifier.lower(), qualifier)
            words = self._columns([table])
        elif not start or start.isdigit():
            return []
        elif re.search(r"\b(?:FROM|JOIN)\s+\w*$", before, re.I):
            words = [(table, "table") for table in self.tables]
        else:
            named = [table for table in sources.values() if table in self.tables]
            words = [*self._columns(named or list(self.tables)), *((table, "table") for table in self.tables)]
            words += [(word, "") for word in KEYWORDS]
        known = {word: what for word, what in words if start in word.lower()}
        if any(word.lower() == start for word in known):
            return []  # it is a name already
        first = sorted((word for word in known if word.lower().startswith(start)), key=lambda word: (len(word), word))
        return [(word, known[word]) for word in dict.fromkeys([*first, *known])]

    def _columns(self, tables: Sequence[str]) -> list[tuple[str, str]]:
        return [column for table in tables for column in self.tables.get(table, [])]


class Editor(TextArea):
    """SQL, and the list `words` of names; posts `Ran` when the statement is to be run, `Back` for an older one."""

    DEFAULT_CSS = """
    Editor { height: 1fr; border: round $foreground 35%; padding: 0 1; background: $surface;
        border-title-color: $foreground; border-subtitle-color: $text-muted; }
    Editor:focus { border: round $accent; border-title-color: $accent; }
    """
    BINDINGS = [
        Binding("ctrl+r", "run", "Run"),
        Binding("f5", "run", "Run", show=False),
        Binding("ctrl+up", "older(1)", "History", key_display="^↑ ^↓"),
        Binding("alt+up", "older(1)", "Older", show=False),
        Binding("ctrl+down,alt+down", "older(-1)", "Newer", show=False),
        Binding("ctrl+l", "empty", "Empty", show=False),
    ]

    class Ran(Message):
        """The statement is to be run."""

    class Older(Message):
        """Another statement of the history is wanted: so many older."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, words: OptionList, id: str | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.names = Names()
        self._words = words
        self._given: list[str] = []
        self._is_typed = self._is_picked = False

    def on_mount(self) -> None:
        """Colours for both grounds."""
        for is_dark, colours in COLOURS.items():
            styles = {name: Style(color=colour, bold=name == "keyword") for name, colour in colours.items()}
            self.register_theme(TextAreaTheme(f"traceq-{is_dark}", syntax_styles=styles))
        self._set_ground()
        self.watch(self.app, "theme", self._set_ground, init=False)

    def _set_ground(self) -> None:
        self.theme = f"traceq-{self.app.current_theme.dark}"

    def put(self, text: str) -> None:
        """Another statement, the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.close_words()

    # Colours

    def _build_highlight_map(self) -> None:
        self._line_cache.clear()
        self._highlights.clear()
        for line, start, end, name in tokens(self.text):
            self._highlights[line].append((start, end, name))

    # Names

    @property
    def is_choosing(self) -> bool:
        """Whether there is a list to choose from."""
        return bool(self._words.display)

    def close_words(self) -> None:
        """Choose nothing."""
        self._words.display = False

    async def _on_key(self, event: events.Key) -> None:
        takes = ("tab", "enter") if self._is_picked else ("tab",)  # enter ends a line, unless one has chosen
        if self.is_choosing and event.key in ("up", "down", "escape", *takes):
            event.stop()
            event.prevent_default()
            if event.key == "escape":
                self.close_words()
            elif event.key in ("up", "down"):
                self._is_picked = True
                (self._words.action_cursor_up if event.key == "up" else self._words.action_cursor_down)()
            else:
                self._choose()
            return
        self._is_typed = event.is_printable or event.key == "backspace"

    def on_text_area_changed(self) -> None:
        """Offer names for the word that is being typed."""
        if not self._is_typed:
            self.close_words()
            return
        self._is_typed = self._is_picked = False
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        earlier = "\n".join(self.document.lines[:row])
        found = self.names.matching(f"{earlier}\n{before}", self.text)[:MOST_WORDS]
        self._given = [word for word, _ in found]
        self._words.clear_options()
        for word, what in found:
            self._words.add_option(Option(Text.assemble(printable(word), (f"  {printable(what)}", "dim"))))
        self._words.display = bool(found)
        if found:
            self._words.highlighted = 0
            self._words.styles.offset = self._beside(len(found))

    def _beside(self, tall: int) -> tuple[int, int]:
        """Below the cursor, or above it where there is no room."""
        at, size = self.cursor_screen_offset, self.app.size
        top = at.y + 1 if at.y + 1 + tall < size.height else max(at.y - tall, 0)
        left = max(0, min(at.x, size.width - WIDTH))
        return left, top

    def _choose(self) -> None:
        place = self._words.highlighted
        if place is None or place >= len(self._given):
            self.close_words()
            return
        row, column = self.cursor_location
        found = WORD.search(self.document.get_line(row)[:column])
        assert found
        self.replace(self._given[place], (row, column - len(found[2])), (row, column))
        self.close_words()

    # Keys

    def action_run(self) -> None:
        """Run the statement."""
        self.close_words()
        self.post_message(self.Ran())

    def action_older(self, by: int) -> None:
        """An older statement, or a newer one."""
        self.post_message(self.Older(by))

    def action_empty(self) -> None:
        """Begin anew."""
        self.put("")

    def action_cursor_up(self, select: bool = False) -> None:
        """From the first line on, older statements."""
        if self.cursor_at_first_line and not select:
            self.action_older(1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """From the last line on, newer statements."""
        if self.cursor_at_last_line and not select:
            self.action_older(-1)
        else:
            super().action_cursor_down(select)


def tokens(text: str) -> Iterator[tuple[int, int, int, str]]:
    """(line, first byte, byte after the last, kind) of each piece that DuckDB sees; a piece of several lines is cut."""
    import duckdb

    whole = text.encode("utf-8", "replace")
    starts = [0, *(place + 1 for place, byte in enumerate(whole) if byte == ord("\n"))]
    found = duckdb.tokenize(whole.decode())
    ends = [*(start for start, _ in found[1:]), len(whole)]
    for (start, kind), end in zip(found, ends, strict=False):
        for line in range(bisect_right(starts, start) - 1, bisect_left(starts, end)):
            at = starts[line]
            till = starts[line + 1] - 1 if line + 1 < len(starts) else len(whole)
            yield line, max(start, at) - at, min(end, till) - at, kind.name
