"""A table of any length: only the pages in sight are read, in a thread; sorting and filtering are DuckDB's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from traceq.errors import TraceqError
from traceq.show.text import KERNEL_NAMES, heading, printable, short_name
from traceq.tui.access import ClosedError
from traceq.tui.colours import shade
from traceq.tui.widgets.answer import NOTHING, fit
from traceq.tui.work import background
from traceq.units import show_value

if TYPE_CHECKING:
    from traceq.query import Column
    from traceq.tui.access import Ask, Sheet

PAGE = 128
MOST_PAGES = 64
MOST_TEXT = 60
LONG_NAMES = KERNEL_NAMES | {"a_name", "b_name", "next_work", "function"}
LONGEST = 4000  # characters of a value that are looked at: a name may have any length
GAP = 2
MARK = 2  # cells of a sign and the space after it
COLOURED = {"category", "cause", "origin", "launch_state", "phase", "role"}
KEEP = 24  # columns that a text column is not pressed below


class Grid(ScrollView, can_focus=True):
    """Rows of a `Sheet`, with a header that stays, a cursor, and a column to sort by.

    The view gives it a sheet with `show`; `columns` picks and orders what is drawn (none: all), `marks` are values of
    the first drawn column that get a sign. Posts `Picked` on enter.
    """

    DEFAULT_CSS = """
    Grid { height: 1fr; overflow-x: hidden; border: round $foreground 35%;
        border-title-color: $foreground; border-subtitle-color: $text-muted; }
    Grid:focus { border: round $accent; border-title-color: $accent; }
    """
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
        Binding("left", "column(-1)", "Column", show=False),
        Binding("right", "column(1)", "Column", show=False),
        Binding("s", "sort", "Sort"),
        Binding("enter", "pick", "Open"),
    ]

    class Picked(Message):
        """A row was chosen."""

        def __init__(self, grid: Grid, row: dict[str, Any]) -> None:
            super().__init__()
            self.grid, self.row = grid, row

        @property
        def control(self) -> Grid:
            """The grid, for `on(…, "#id")`."""
            return self.grid

    def __init__(
        self, title: str = "", columns: Sequence[str] = (), id: str | None = None, empty: str = NOTHING
    ) -> None:
        super().__init__(id=id)
        self.heading = title
        self.border_title = Text(title)
        self.asked: Ask | None = None
        self.error: str | None = None
        self.sheet: Sheet | None = None
        self.cursor = 0
        self.sorted_by: str | None = None
        self.is_descending = True
        self.words = ""
        self.marks: dict[object, str] = {}
        self._picked = tuple(columns)
        self._empty = empty
        self._at = 0  # the column under the cursor
        self._left = 0  # the first column drawn
        self._pages: OrderedDict[int, list[tuple[Any, ...]]] = OrderedDict()
        self._widths: dict[str, int] = {}

    # What it shows

    def show(self, sheet: Sheet, rows: list[tuple[Any, ...]]) -> None:
        """Draw `sheet`, whose first page is `rows`; a page for which the old sheet was open is forgotten."""
        if self.sheet is not None and self.sheet is not sheet:
            self.sheet.close()
            self.cursor = 0
        self.sheet, self.error = sheet, None
        self._pages = OrderedDict({0: rows})
        last = max(len(self.shown_columns) - 1, 0)
        self._at, self._left = min(self._at, last), min(self._left, last)
        self._measure(rows)
        self._resize()

    async def take_order(self, sheet: Sheet) -> None:
        """Sort and filter a sheet that is to be shown as this grid says that its rows are."""
        names = [column.name for column in sheet.columns]
        if self.sorted_by not in names:
            self.sorted_by = None
        if self.sorted_by or self.words:
            await sheet.arrange(self.sorted_by, self.is_descending, self.words)

    def forget(self) -> None:
        """Draw nothing until the next answer."""
        self._drop(None)

    def fail(self, text: str) -> None:
        """Say why there is nothing to draw."""
        self._drop(text)

    def _drop(self, error: str | None) -> None:
        if self.sheet is not None:
            self.sheet.close()
        self.sheet, self.error, self.cursor = None, error, 0
        self._pages.clear()
        self._resize()

    @property
    def count(self) -> int:
        """Rows that the filter leaves."""
        return self.sheet.count if self.sheet else 0

    @property
    def row(self) -> dict[str, Any] | None:
        """The row under the cursor, once its page is here."""
        found = self._row(self.cursor)
        return dict(zip((c.name for c in self._all()), found, strict=True)) if found else None

    @property
    def shown_columns(self) -> list[Column]:
        """The columns drawn, in their order."""
        columns = {c.name: c for c in self._all()}
        return [columns[name] for name in self._picked if name in columns] or list(columns.values())

    def copied(self) -> str:
        """What `y` puts into the clipboard: the row under the cursor, tabs between its values."""
        return "\t".join("" if v is None else str(v) for v in (self.row or {}).values())

    def place(self, row: Mapping[str, Any]) -> None:
        """Move the cursor to the first row here that has these values."""
        names = [c.name for c in self._all()]
        for number, page in self._pages.items():
            for offset, values in enumerate(page):
                if row.items() <= dict(zip(names, values, strict=True)).items():
                    self._go(number * PAGE + offset)
                    return

    def _all(self) -> tuple[Column, ...]:
        return self.sheet.columns if self.sheet else ()

    def _row(self, place: int) -> tuple[Any, ...] | None:
        page = self._pages.get(place // PAGE)
        return page[place % PAGE] if page and place % PAGE < len(page) else None

    # Moving

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by what is in sight."""
        self._go(self.cursor + by * max(self.size.height - 2, 1))

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._go(0)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._go(self.count - 1)

    def action_column(self, by: int) -> None:
        """Move to another column, and bring it into sight."""
        self._at = max(0, min(self._at + by, len(self.shown_columns) - 1))
        if self._at < self._left:
            self._left = self._at
        while self._at > self._left and self._at not in [p for p, _ in self._laid_out()]:
            self._left += 1
        self.refresh()

    def action_sort(self) -> None:
        """Sort by the column under the cursor: downwards, upwards, then as the question orders."""
        if not self.shown_columns:
            return
        name = self.shown_columns[self._at].name
        if self.sorted_by != name:
            self.sorted_by, self.is_descending = name, self.shown_columns[self._at].is_number
        elif self.is_descending == self.shown_columns[self._at].is_number:
            self.is_descending = not self.is_descending
        else:
            self.sorted_by = None
        self.rearrange()

    def action_pick(self) -> None:
        """Choose the row under the cursor."""
        if row := self.row:
            self.post_message(self.Picked(self, row))

    def filter(self, words: str) -> None:
        """Keep rows that have each of `words` in some text."""
        if words != self.words:
            self.words = words
            self.rearrange()

    def rearrange(self) -> None:
        """Sort and filter anew, in a thread; a newer wish ends an older one."""
        if self.sheet:
            background(self, partial(self._arranged, self.sheet), "arrange")

    async def _arranged(self, sheet: Sheet) -> None:
        try:
            await sheet.arrange(self.sorted_by, self.is_descending, self.words)
            rows = await sheet.page(0, PAGE)
        except ClosedError:
            return
        except TraceqError as error:
            self.fail(error.message)
            return
        if sheet is self.sheet:
            self.cursor = 0
            self._pages = OrderedDict({0: rows})
            self.scroll_to(y=0, animate=False)
            self._resize()

    async def _read(self, sheet: Sheet, pages: list[int]) -> None:
        try:
            for page in pages:
                if page not in self._pages:
                    rows = await sheet.page(page * PAGE, PAGE)
                    if sheet is not self.sheet:
                        return
                    self._pages[page] = rows
                    if len(self._pages) > MOST_PAGES:
                        self._pages.popitem(last=False)
                    self.refresh()
        except (ClosedError, TraceqError):
            return

    def _go(self, place: int) -> None:
        self.cursor = max(0, min(place, self.count - 1))
        top, tall = round(self.scroll_offset.y), max(self.size.height - 1, 1)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + tall:
            self.scroll_to(y=self.cursor - tall + 1, animate=False, force=True)
        self._fetch()
        self.refresh()

    def _fetch(self) -> None:
        """Read the pages in sight that are not here."""
        if self.sheet and self.count:
            first, tall = round(self.scroll_offset.y), self.size.height
            wanted = {first // PAGE, (first + tall) // PAGE, self.cursor // PAGE}
            missing = sorted(p for p in wanted if p not in self._pages and p * PAGE < self.count)
            if missing:
                background(self, partial(self._read, self.sheet, missing), "page")

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Scrolled: other pages are in sight."""
        super().watch_scroll_y(old, new)
        self._fetch()

    def on_click(self, event: events.Click) -> None:
        """The header sorts, a row is where the cursor goes, a second click opens it."""
        place = event.get_content_offset(self)
        if place is None:
            return
        if place.y == 0:
            for number, (start, width) in self._starts().items():
                if start <= place.x < start + width + GAP:
                    self._at = number
                    self.action_sort()
        elif (row := place.y - 1 + round(self.scroll_offset.y)) < self.count:
            is_again = row == self.cursor and event.chain > 1
            self._go(row)
            if is_again:
                self.action_pick()

    # Drawing

    def _resize(self) -> None:
        self.virtual_size = Size(self.size.width, self.count + 1)
        more = f" of {self.sheet.total:,}" if self.sheet and self.sheet.total != self.count else ""
        order = f"by {self.sorted_by} {'▼' if self.is_descending else '▲'}" if self.sorted_by else ""
        words = [f"{self.count:,}{more} rows" if self.count != 1 else f"1{more} row", order] if self.sheet else []
        self.border_subtitle = Text(printable(" · ".join(w for w in words if w)))
        self.refresh()

    def _measure(self, rows: list[tuple[Any, ...]]) -> None:
        """Widths from the first page: later pages keep them, so nothing jumps while scrolling."""
        places = {c.name: place for place, c in enumerate(self._all())}
        for column in self.shown_columns:
            cells = [self._cell(row[places[column.name]], column) for row in rows]
            need = max([cell_len(self._heading(column)) + 2, *map(cell_len, cells)])
            self._widths[column.name] = need if column.is_number else min(need, MOST_TEXT)

    def _laid_out(self) -> list[tuple[int, int]]:
        """(number, width) of the columns from the first drawn on that fit; texts share what the numbers leave."""
        columns = self.shown_columns
        wide = dict(self._widths)
        if columns and self.marks:
            wide[columns[0].name] += MARK
        room = self.scrollable_content_region.width
        keep = {c.name: max(KEEP, room // 3) if c.name in LONG_NAMES else KEEP for c in columns}
        least = [wide[c.name] if c.is_number else min(wide[c.name], keep[c.name]) for c in columns]
        taken: list[tuple[int, int]] = []
        used = 0
        for place in range(self._left, len(columns)):
            if taken and used + GAP + least[place] > room:
                break
            used += least[place] + (GAP if taken else 0)
            taken.append((place, min(least[place], room)))
        spare = room - used
        for number, (place, width) in enumerate(taken):
            more = max(0, min(wide[columns[place].name] - width, spare))
            taken[number] = (place, width + more)
            spare -= more
        return taken

    def _starts(self) -> dict[int, tuple[int, int]]:
        start, found = 0, {}
        for place, width in self._laid_out():
            found[place] = (start, width)
            start += width + GAP
        return found

    def _heading(self, column: Column) -> str:
        return heading(column.name, column.unit)

    @staticmethod
    def _cell(value: object, column: Column) -> str:
        return printable(show_value(value[:LONGEST] if isinstance(value, str) else value, column.unit))

    def render_line(self, y: int) -> Strip:
        """The header, or the row that is scrolled to that line."""
        width = self.scrollable_content_region.width
        if self.error or self.sheet is None or not self.count:
            text = self.error if self.error else "…" if self.sheet is None else self._nothing()
            return self._plain(text, y, width)
        if y == 0:
            return self._header(width)
        return self._line(y - 1 + round(self.scroll_offset.y), width)

    def _nothing(self) -> str:
        return f"no row has {self.words!r}: esc clears the filter" if self.words else self._empty

    def _plain(self, text: str, y: int, width: int) -> Strip:
        """Line `y` of a text that is wrapped."""
        lines = Text("\n".join(map(printable, text.split("\n")))).wrap(self.app.console, max(width, 1))
        line = lines[y].plain if y < len(lines) else ""
        return Strip([Segment(fit(line, width), self.rich_style + Style(dim=True))], width)

    def _header(self, width: int) -> Strip:
        parts = []
        for place, size in self._laid_out():
            column = self.shown_columns[place]
            sign = ("▼" if self.is_descending else "▲") if column.name == self.sorted_by else ""
            text = fit(f"{self._heading(column)}{sign}", size)
            if column.is_number:
                text = text.rstrip().rjust(size)
            style = Style(bold=True, underline=place == self._at and self.has_focus)
            parts += [Segment(text, self.rich_style + style), Segment(" " * GAP, self.rich_style)]
        return Strip(parts).adjust_cell_length(width, self.rich_style)

    def _line(self, place: int, width: int) -> Strip:
        base = self.rich_style
        if place >= self.count:
            return Strip.blank(width, base)
        if place == self.cursor:
            base = base + (Style(reverse=True) if self.has_focus else Style(bold=True))
        values = self._row(place)
        if values is None:
            return Strip([Segment(fit("…", width), base + Style(dim=True))], width)
        places = {c.name: number for number, c in enumerate(self._all())}
        parts = []
        for number, size in self._laid_out():
            column = self.shown_columns[number]
            value = values[places[column.name]]
            text = self._cell(value, column)
            if column.name in LONG_NAMES:
                text = short_name(text, size)
            if number == 0 and isinstance(value, str) and value in self.marks:  # a list is no key
                text = f"{self.marks[value]} {text}"
            text = text.rjust(size) if column.is_number else fit(text, size)
            style = base
            if column.name in COLOURED and value is not None and place != self.cursor:
                style = base + Style(color=shade(str(value), self.app.current_theme.dark))
            parts += [Segment(text, style), Segment(" " * GAP, base)]
        return Strip(parts).adjust_cell_length(width, base)

    def on_resize(self) -> None:
        """More or fewer rows are in sight."""
        self._resize()
        self._fetch()

    def on_unmount(self) -> None:
        """The rows are nobody's now."""
        if self.sheet:
            self.sheet.close()
