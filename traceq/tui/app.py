"""The app: screens by number, the run that is looked at, the store that may change under it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App
from textual.binding import Binding

from traceq.errors import TraceqError
from traceq.show.text import printable
from traceq.store.path import DEFAULT
from traceq.tui.access import Access, Ask, Asked, ClosedError, explain
from traceq.tui.moment import Moment
from traceq.tui.palette import Palette
from traceq.tui.screens.diff import Diff
from traceq.tui.screens.gaps import Gaps
from traceq.tui.screens.kernels import Kernels
from traceq.tui.screens.library import Library
from traceq.tui.screens.overview import Overview
from traceq.tui.screens.runs import Runs
from traceq.tui.screens.sql import Sql
from traceq.tui.screens.timeline import Timeline
from traceq.tui.themes import DARK, LIGHT
from traceq.tui.view import View
from traceq.tui.work import background

SCREENS: dict[int, type[View]] = {1: Runs, 2: Overview, 3: Kernels, 4: Gaps, 5: Timeline, 6: Diff, 7: Sql, 8: Library}
WATCH_S = 1.0
EAGER = "eager"


class TraceqApp(App[None]):
    """`traceq tui`: looks at one store; `run` is the label to begin with.

    `trace` is the file that the store was made of for this time only: commands begin with reading it.
    """

    TITLE = "traceq"
    COMMANDS = App.COMMANDS | {Palette}
    MODES = {screen.NAME: screen for screen in SCREENS.values()}
    DEFAULT_MODE = SCREENS[1].NAME
    BINDINGS = [
        *(Binding(str(number), f"go('{screen.NAME}')", screen.TITLE, show=False) for number, screen in SCREENS.items()),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("r", "reload", "Reload"),
        Binding("ctrl+p", "command_palette", "Palette", show=False),
        Binding("t", "ground", "Light or dark", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, store: Path, run: str | None = None, trace: Path | None = None) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.access = Access(store)
        self.trace = trace
        self.run_label = run
        self.runs: list[dict[str, Any]] = []
        self._marked: tuple[str, str] | None = None
        self._is_swapped = False
        self.trouble: tuple[str, str] | None = None
        self.moment: Moment | None = None
        self.is_open = False
        self.has_changed = False
        self._generation = 0

    # What screens ask

    @property
    def tabs(self) -> list[tuple[int, str, str]]:
        """Number, name and title of every numbered screen."""
        return [(number, screen.NAME, screen.TITLE) for number, screen in SCREENS.items()]

    @property
    def context(self) -> object:
        """What the screens show depends on this: when it is another, they ask again."""
        return self._generation, self.run_label, self.pair

    @property
    def named_store(self) -> Path | None:
        """The store as commands must name it; None where they find it themselves."""
        path = self.access.path
        return None if self.trace or str(path) == (os.environ.get("TRACEQ_STORE") or DEFAULT) else path

    @property
    def looked_at(self) -> str:
        """What a person calls the file that is looked at."""
        return (self.trace or self.access.path).name

    def command(self, asked: Ask) -> str:
        """The command that answers the same."""
        first = f"{shlex.join(['traceq', 'ingest', str(self.trace)])} && " if self.trace else ""
        return first + asked.command(self.named_store)

    def lack(self, needs: str) -> tuple[str, str] | None:
        """Why a screen that needs this cannot show it, and what to do."""
        if needs == "store":
            return None
        if not self.runs:
            return "The store is empty: nothing was ingested yet.", f"traceq ingest TRACE.json.gz{self._store_option()}"
        if needs == "pair" and len(self.runs) < 2:
            return "Two runs are compared, and the store has one.", "ingest another, or mark two on the screen of runs"
        found = next((row for row in self.runs if row["run"] == self.run_label), None)
        if needs == "gpu" and found and not found["traces"]:
            return f"{self.run_label} has no trace, only what was measured.", "traceq capture records one, too"
        if needs == "gpu" and found and found["busy_pct"] is None and not found["kernels"]:
            return (
                f"{self.run_label} has no GPU work: the recording holds only what the CPU did.",
                "record again with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            )
        return None

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two runs that are compared: those marked, else the run in view and one like it."""
        found = self._marked or pair_of([str(row["run"]) for row in self.runs], self.run_label)
        return (found[1], found[0]) if found and self._is_swapped else found

    def mark(self, pair: tuple[str, str] | None) -> None:
        """Compare these from now on, the first as what was before; None: whatever goes with the run in view."""
        self._marked, self._is_swapped = pair, False

    def swap(self) -> None:
        """Compare the other way round."""
        self._is_swapped = not self._is_swapped
        self._tell()

    def choose(self, run: str) -> None:
        """Look at another run; a stretch of time of the one before is nothing to show of it."""
        if run != self.run_label:
            self.run_label, self.moment = run, None
            self._is_swapped = self._is_swapped and self._marked is not None
        self._tell()

    def show_moment(self, moment: Moment) -> None:
        """Show a stretch of time on the timeline, which reads `self.moment` when it is shown."""
        self.moment = moment
        self.action_go("timeline")

    def copy(self, text: str) -> None:
        """Put text into the clipboard of the terminal (OSC 52)."""
        if text:
            self.copy_to_clipboard(text)
            self.notify(f"copied: {printable(text.splitlines()[0])[:60]}", timeout=2, markup=False)

    # Life

    def on_mount(self) -> None:
        """The first paint comes before the first question."""
        self.call_after_refresh(self._begin)
        self.set_interval(WATCH_S, self._watch)

    def _begin(self) -> None:
        background(self, self._opened, "open")

    async def _opened(self) -> None:
        """Read which runs there are; then the screens may ask."""
        try:
            found = await self.access.answer(Asked("runs", {}), limit=None)
        except ClosedError:
            return
        except (TraceqError, OSError) as error:
            self.trouble = explain(error, self.access.path)
            self._tell()
            return
        names = [c.name for c in found.columns]
        self.runs = [dict(zip(names, row, strict=True)) for row in found.rows]
        labels = [str(row["run"]) for row in self.runs]
        self.trouble = None
        if self.run_label is not None and labels and self.run_label not in labels:
            self.notify(f"no run is called {printable(self.run_label)}", severity="warning", markup=False)
            self.run_label = None
        if self.run_label is None and labels:
            self.run_label = next((str(row["run"]) for row in reversed(self.runs) if row["traces"]), labels[-1])
        if self._marked and not set(self._marked) <= set(labels):
            self.mark(None)
        self.is_open = True
        self._tell()

    def _tell(self) -> None:
        if isinstance(self.screen, View):
            self.screen.refreshed()

    def _watch(self) -> None:
        if self.access.has_changed() != self.has_changed:
            self.has_changed = not self.has_changed
            self._tell()

    def on_unmount(self) -> None:
        """Let go of the store."""
        self.access.close()

    # Keys

    def action_go(self, name: str) -> None:
        """Show a numbered screen; from deeper in it, its top."""
        if isinstance(self.screen, View) and name in self.MODES:
            if self.current_mode == name:
                while len(self.screen_stack) > 1:
                    self.pop_screen()
            else:
                self.switch_mode(name)

    def action_help(self) -> None:
        """Explain the screen."""
        from traceq.tui.screens.help import Help

        if isinstance(self.screen, View):
            self.push_screen(Help(self.screen))

    def action_ground(self) -> None:
        """A dark ground or a light one."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_reload(self) -> None:
        """Close every handle, then read the store anew."""
        background(self, self._reloaded, "open")

    async def _reloaded(self) -> None:
        await self.access.reopen()
        self._generation += 1
        self.has_changed = False
        await self._opened()

    def open_question(self, name: str) -> None:
        """Show a canned question with its form."""
        from traceq.tui.screens.question import Question

        self.push_screen(Question(name, self.run_label))

    def _store_option(self) -> str:
        return f" --store {self.named_store}" if self.named_store else ""


def pair_of(labels: Sequence[str], run: str | None) -> tuple[str, str] | None:
    """What a run is compared with: another mode of its script (`NAME/…`), else the run after it, else that before it.

    The eager one is what was before; else the one that stands first in the store.
    """
    if run is None or run not in labels or len(labels) < 2:
        return None
    script, place = run.rpartition("/")[:2], labels.index(run)
    modes = [label for label in labels if script[0] and label.rpartition("/")[:2] == script and label != run]
    others = sorted(modes, key=_is_compiled) or [*labels[place + 1 :], labels[place - 1]]
    first, second = sorted((run, others[0]), key=lambda label: (_is_compiled(label), labels.index(label)))
    return first, second


def _is_compiled(label: str) -> bool:
    return label.rpartition("/")[2] != EAGER
