"""The base of all screens.

A screen is a subclass of `View` in `traceq/tui/screens/`, listed in `traceq.tui.app.SCREENS`. It says

- `NAME`, its mode and the word after its number; `TITLE`, what the breadcrumb calls it; `HELP`, what `?` says of it;
- `NEEDS`: `"gpu"` (a run with GPU work), `"run"` (any run), `"pair"` (two runs), `"store"` (nothing but a store);
- `body()`: its widgets;
- `load()`: asks its questions, with `self.ask(widget, "query_name", run=self.app.run_label, …)`. It is called when the
  screen is first shown, when another run was chosen, and after a reload: never without what `NEEDS` says.

`ask` runs the question in a thread, replaces an older one of the same widget (whose query is interrupted), shows the
spinner after 0.2 s, and then calls `widget.show(result)`; a `Grid` gets a sheet; `then` gets what the widget got. A
fault of the store is explained in place of the body, a fault of one question in its widget. The widget in focus says
which question `e` exports, `y` copies from, and the command line below names: its `asked`. A screen whose widgets are
not `Answer` or `Grid` keeps that contract by the attributes `asked`, `show`, `forget`, `fail` and `copied` (`Drawn`),
or by overriding `subject()` and `copied()`. Deeper screens are pushed with `self.app.push_screen(OtherView(…))`; escape
returns; one that shows something that only one run has keeps that run in `of_run`, and closes when another is looked
at. Work that is not one question awaits `self.app.access` in `background(…)`, inside `self.outcome(…)`.

A screen holds no SQL and computes nothing: it names queries and draws their rows. Text from a trace goes into a rich
`Text` (through `printable`), never into a string that textual could read as markup.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from traceq.errors import Status, TraceqError
from traceq.show.text import printable
from traceq.tui.access import Ask, Asked, ClosedError, explain
from traceq.tui.widgets.grid import PAGE, Grid
from traceq.tui.work import background

if TYPE_CHECKING:
    from traceq.query import Value
    from traceq.tui.app import TraceqApp

T = TypeVar("T")
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PATIENCE_S = 0.2
FRAME_S = 0.1
FILTER_S = 0.08
FIRST = {"help", "quit"}  # where a line is too short for all keys, these explain the others, and end


@runtime_checkable
class Drawn(Protocol):
    """A widget that shows the answer to one question."""

    asked: Ask | None

    def show(self, *found: Any) -> None:
        """Draw this from now on."""

    def forget(self) -> None:
        """Draw nothing until the next answer."""

    def fail(self, text: str) -> None:
        """Say why there is nothing to draw."""

    def copied(self) -> str:
        """What `y` copies."""


class View(Screen[None]):
    """A screen: tabs and breadcrumb above, keys and the equivalent command below."""

    NAME: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    HELP: ClassVar[str] = ""
    NEEDS: ClassVar[str] = "run"
    BINDINGS = [
        Binding("slash", "filter", "Filter", key_display="/", priority=True),  # before letters that follow at once
        Binding("escape", "back", "Back"),
        Binding("e", "export", "Export"),
        Binding("y", "copy", "Copy"),
        Binding("Y", "copy_command", "Copy command", show=False),
        Binding("tab", "app.focus_next", "Next panel", show=False),
        Binding("shift+tab", "app.focus_previous", "Previous panel", show=False),
    ]
    DEFAULT_CSS = """
    View { layout: vertical; }
    #tabs, #crumbs, #command, #keys {
        height: 1; width: 100%; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        link-color: $foreground; link-background: transparent; link-style: none;
    }
    #tabs { background: $panel; }
    #command, #keys { background: $panel; }
    #command { color: $text-muted; }
    #body { height: 1fr; }
    #trouble { height: 1fr; padding: 2 4; display: none; }
    #filter, #filter:focus { height: 1; border: none; padding: 0 1; display: none; background: $accent 30%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown_for: object = None
        self.of_run: str | None = None
        self._waiting = 0
        self._spinner: Timer | None = None
        self._frame = 0

    @property
    def app(self) -> TraceqApp:  # type: ignore[override]
        """The app, by its own type."""
        return cast("TraceqApp", super().app)

    # What a screen defines

    def body(self) -> ComposeResult:
        """The widgets of the screen."""
        raise NotImplementedError

    def load(self) -> None:
        """Ask the questions of the screen."""
        raise NotImplementedError

    @property
    def crumb(self) -> str:
        """What the breadcrumb calls it."""
        return self.TITLE

    def subject(self) -> Ask | None:
        """The question in focus: exported, and named as a command. Else the first of the screen."""
        for widget in [*self._focus_chain(), *self.query("#body *")]:
            if isinstance(widget, Drawn) and widget.asked:
                return widget.asked
        return None

    def command(self) -> str:
        """The `traceq` command that answers what is in focus."""
        asked = self.subject()
        return self.app.command(asked) if asked else ""

    def copied(self) -> str:
        """What `y` copies."""
        for widget in [*self._focus_chain(), *self.query("#body *")]:
            if isinstance(widget, Drawn) and widget.asked:
                return widget.copied()
        return ""

    # What a screen calls

    def ask(self, widget: Widget, query: str, then: Callable[[Any], None] | None = None, **params: Value) -> None:
        """Let `widget` show the answer to a canned question."""
        self.put(widget, Asked(query, params), then)

    def put(self, widget: Widget, asked: Ask, then: Callable[[Any], None] | None = None) -> None:
        """Let `widget` show the answer to `asked`."""
        cast(Drawn, widget).asked = asked
        self._tell_command()
        work = partial(self._answered, cast(Drawn, widget), asked, then)
        background(self, work, f"ask-{id(widget)}")

    async def outcome(self, work: Awaitable[T], widget: Drawn | None = None) -> T | None:
        """What `work` gives; None where the store was closed meanwhile, or after a fault, which is told on screen."""
        try:
            with self.waiting():
                return await work
        except ClosedError:
            return None
        except Exception as error:  # a fault of ours is told where it shows, and ends nothing
            if os.environ.get("TRACEQ_DEBUG") == "1" and not isinstance(error, TraceqError):
                raise
            self.failed(error, widget)
            return None

    async def _answered(self, widget: Drawn, asked: Ask, then: Callable[[Any], None] | None) -> None:
        found = await self.outcome(self._shown(widget, asked), widget)
        if found is not None and then:
            then(found)

    async def _shown(self, widget: Drawn, asked: Ask) -> Any:
        if not isinstance(cast(Widget, widget), Grid):
            result = await self.app.access.answer(asked)
            widget.show(result)
            return result
        sheet = await self.app.access.sheet(asked)
        await cast(Grid, widget).take_order(sheet)
        widget.show(sheet, await sheet.page(0, PAGE))
        return sheet

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While something is waited for, the spinner turns."""
        self._waiting += 1
        if self._waiting == 1:
            self._spinner = self.set_timer(PATIENCE_S, self._spin)
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting and self._spinner:
                self._spinner.stop()  # it would be early for what is waited for next
                self._tell_crumbs()

    @property
    def is_spinning(self) -> bool:
        """Whether something has been waited for long enough to say so."""
        return bool(self._waiting and self._frame)

    def failed(self, error: Exception, widget: Drawn | None = None) -> None:
        """Explain an error: in the widget, or, where it is the store's, in place of everything."""
        message, hint = explain(error, self.app.access.path)
        if widget is None or (isinstance(error, TraceqError) and error.status == Status.STORE):
            self.trouble(message, hint)
        else:
            widget.fail(f"{message}\nhint: {hint}")

    def trouble(self, message: str, hint: str) -> None:
        """Show this in place of the body."""
        text = Text(printable(message) + "\n\n", style="bold")
        text.append("what to do: ", style="not bold")
        text.append(printable(hint), style="not bold")
        text.append("\n\nr tries again · 1 runs · q quits", style="dim not bold")
        self.query_one("#trouble", Static).update(text)
        self._set_trouble(True)

    def _set_trouble(self, is_trouble: bool) -> None:
        self.query_one("#trouble").display = is_trouble
        self.query_one("#body").display = not is_trouble

    # Life

    def compose(self) -> ComposeResult:
        """Tabs, breadcrumb, body, filter, command, keys."""
        yield Static(id="tabs")
        yield Static(id="crumbs")
        yield Static(id="trouble")
        with Vertical(id="body"):
            yield from self.body()
        yield Input(id="filter", placeholder="filter: words, all of which a row has")
        yield Static(id="command")
        yield Static(id="keys")

    def on_screen_resume(self) -> None:
        """Shown again: what changed since is asked anew, after the first paint."""
        if not self._closes():
            self._tell()
            self.call_after_refresh(self.refreshed)

    def refreshed(self) -> None:
        """Ask again if the run, the pair or the store is another than what is shown."""
        if not self.is_mounted or not self.is_current or self._closes():
            return
        self._tell()
        if self.app.trouble:
            self._shown_for = None
            self.trouble(*self.app.trouble)
        elif self.app.is_open and self._shown_for != (key := self.app.context):
            self._shown_for = key
            self._forget()
            lack = self.app.lack(self.NEEDS)
            self._set_trouble(False)
            self.trouble(*lack) if lack else self.load()
            self._tell_command()

    def _closes(self) -> bool:
        """Whether it was about another run than the one that is looked at now, and so returns to what is below it."""
        is_outdated = self.is_current and self.of_run not in (None, self.app.run_label)
        if is_outdated:
            self.app.pop_screen()
        return is_outdated

    def _forget(self) -> None:
        """Until answers come, nothing of another run stands under this one's name."""
        for widget in self.query("#body *") if self.NEEDS != "store" else ():
            if isinstance(widget, Drawn):
                widget.forget()

    def on_descendant_focus(self) -> None:
        """Another widget is in focus: its command is shown."""
        self._tell_command()

    def _focus_chain(self) -> list[Any]:
        return [self.focused, *self.focused.ancestors] if self.focused else []

    def _spin(self) -> None:
        if self._waiting and self.is_running:
            self._frame += 1
            self._tell_crumbs()
            self._spinner = self.set_timer(FRAME_S, self._spin)

    def _tell(self) -> None:
        tabs = Text(no_wrap=True, overflow="ellipsis")
        for number, name, title in self.app.tabs:
            is_here = name == self.app.current_mode
            tabs.append(f"{'▸' if is_here else ' '}{number} {title}", style="bold" if is_here else "dim")
            tabs.append(" ")
        self._say("#tabs", tabs)
        self._tell_crumbs()
        self._tell_command()

    def _tell_crumbs(self) -> None:
        spinner = f"{SPINNER[self._frame % len(SPINNER)]} esc stops " if self.is_spinning else ""
        if not self._waiting:
            self._frame = 0
        words = [
            self.app.looked_at,
            *([self.app.run_label] if self.app.run_label and self.NEEDS in ("run", "gpu") else []),
        ]
        words += [view.crumb for view in self.app.screen_stack if isinstance(view, View)]
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(spinner, style="bold")
        text.append(" › ".join(map(printable, words)))
        if self.app.has_changed:
            text.append("  the store changed: r reads it", style="bold reverse")
        self._say("#crumbs", text)

    def _tell_command(self) -> None:
        command = self.command()
        command = command.replace("\n", " ")  # as one line here; `Y` copies it as it is
        self._say("#command", Text(printable(f"$ {command}" if command else ""), no_wrap=True, overflow="ellipsis"))

        self._tell_keys()

    def _tell_keys(self) -> None:
        """Keys that do something here, each of which can be clicked; textual's own footer is slow to change."""
        accent = self.app.current_theme.accent or ""
        text = Text(no_wrap=True, overflow="ellipsis")
        shown = [active.binding for active in self.active_bindings.values() if active.binding.show and active.enabled]
        for binding in sorted(shown, key=lambda binding: binding.action not in FIRST):
            clicked = Style(meta={"@click": f"simulate_key('{binding.key}')"})
            text.append(f"{self.app.get_key_display(binding)} ", Style(color=accent, bold=True))
            text.append(binding.description, clicked)
            text.append("  ")
        self._say("#keys", text)

    def _say(self, where: str, text: Text) -> None:
        for line in self.query(where).results(Static):  # none while the screen closes
            line.update(text)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something now; where text is typed, / is a letter."""
        return action != "filter" or (self.filtered() is not None and not isinstance(self.focused, Input | TextArea))

    def filtered(self) -> Widget | None:
        """What the filter narrows and what gets the keys after it, if there is such."""
        return next(iter(self.query(Grid)), None)

    def action_simulate_key(self, key: str) -> None:
        """A key that was clicked."""
        self.app.simulate_key(key)

    def action_filter(self) -> None:
        """Open the filter line."""
        line = self.query_one("#filter", Input)
        line.display = True
        self.set_focus(line)  # at once: focus() would let keys that follow quickly go elsewhere

    def action_back(self) -> None:
        """End what runs; else close the filter; else return to the screen before."""
        line = self.query_one("#filter", Input)
        if self.is_spinning:
            self.workers.cancel_node(self)
        elif line.display or line.value:
            line.value = ""
            line.display = False
            self._filter("")
            self.set_focus(self.filtered())
        elif len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def action_export(self) -> None:
        """Write the answer in focus to a file."""
        from traceq.tui.screens.export import Export

        if asked := self.subject():
            self.app.push_screen(Export(asked))

    def action_copy(self) -> None:
        """Copy what is in focus."""
        self.app.copy(self.copied())

    def action_copy_command(self) -> None:
        """Copy the command."""
        self.app.copy(self.command())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as one types, once typing pauses for a moment."""
        if event.input.id == "filter":
            line, words = event.input, event.value
            self.set_timer(FILTER_S, lambda: self._filter(words) if line.value == words else None)

    def _filter(self, words: str) -> None:
        for grid in self.query(Grid):
            grid.filter(words)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: the filter stays, the rows get the keys."""
        if event.input.id == "filter":
            event.input.display = False
            self.set_focus(self.filtered())

    def on_key(self, event: events.Key) -> None:
        """Down leaves the filter line for the rows."""
        line = self.query_one("#filter", Input)
        if event.key == "down" and self.focused is line:
            event.stop()
            self.set_focus(self.filtered())
