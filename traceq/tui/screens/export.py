"""Ask for a file and write an answer there."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from traceq.errors import TraceqError
from traceq.tui.access import Ask, ClosedError
from traceq.tui.work import background

if TYPE_CHECKING:
    from traceq.query import Result
    from traceq.tui.app import TraceqApp

ENDINGS = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".parquet": "parquet"}


class Export(ModalScreen[None]):
    """The name of a file, whose ending says the format; a file that is there is not written over."""

    BINDINGS = [Binding("escape", "dismiss", "Cancel")]
    CSS = """
    Export { align: center middle; }
    Export > Vertical { width: 64; max-width: 100%; height: auto; border: round $accent;
        padding: 0 1; background: $surface; }
    """

    def __init__(self, asked: Ask) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        """A line to type in, and one for faults."""
        with Vertical() as box:
            box.border_title = "Export"
            yield Static(f"{' '.join(ENDINGS)} says the format; enter writes, esc leaves", markup=False)
            yield Input(value=f"{getattr(self._asked, 'query', 'sql')}.csv", id="file")
            yield Static("", id="fault", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write."""
        background(self, partial(self._write, os.path.expanduser(event.value)), "write")

    async def _write(self, name: str) -> None:
        path, app = Path(name), cast("TraceqApp", self.app)
        fault = self.query_one("#fault", Static)
        try:
            if path.suffix not in ENDINGS:
                raise TraceqError(f"{path.name}: the ending is none of {' '.join(ENDINGS)}")
            if path.exists():
                raise TraceqError(f"{path} is there already")
            result = await app.access.whole(self._asked)
            await asyncio.to_thread(write, result, path)
        except (TraceqError, OSError, ClosedError) as error:
            fault.update(str(error) or "the store was closed meanwhile")
            return
        app.notify(f"{len(result.rows):,} rows in {path}", markup=False)
        self.dismiss()


def write(result: Result, path: Path) -> None:
    """Write a result as the ending says."""
    from traceq.show import formats

    kind = ENDINGS[path.suffix]
    if kind == "parquet":
        with open(path, "xb") as file:
            formats.to_parquet(result, file)
        return
    writers = {
        "csv": formats.to_csv,
        "json": formats.to_json,
        "jsonl": formats.to_jsonl,
        "markdown": formats.to_markdown,
    }
    with open(path, "x", encoding="utf-8", errors="replace", newline="") as out:
        writers[kind](result, out)
