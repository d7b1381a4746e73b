"""Draw the pictures of the terminal interface in docs/images/ from the bundled H200 traces.

python docs/screenshots.py          # look at them before committing them
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import tempfile
from pathlib import Path

from traceq.ingest.pipeline import Options, ingest
from traceq.tui.app import TraceqApp
from traceq.tui.screens import sql
from traceq.tui.themes import DARK, LIGHT
from traceq.units import parse_duration_ns

HERE = Path(__file__).parent
DEMO = HERE.parent / "fixtures" / "demo"
SIZE = (120, 36)
TALL = {"overview": (120, 51), "diff": (120, 50)}  # what would scroll
SHOTS = {
    "runs": ["1"],
    "overview": ["2"],
    "kernels": ["3"],
    "kernel": ["3", "enter"],
    "gaps": ["4"],
    "timeline": ["5"],
    "moment": ["5", "k", "enter"],
    "diff": ["6"],
    "sql": ["7", "ctrl+r", "escape"],
    "queries": ["8"],
    "question": ["8", "slash", *"gemm_shapes", "enter", "enter"],
}
BOTH = {"overview", "kernels", "timeline", "diff"}
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def make(store: Path) -> None:
    """A store of the bundled pair."""
    for trace in json.loads((DEMO / "demo.json").read_text("utf-8")):
        ingest(
            [str(DEMO / trace["file"])], store, Options(label=trace["run"], step_ns=parse_duration_ns(trace["step"]))
        )


async def draw(store: Path, keys: list[str], theme: str, size: tuple[int, int]) -> str:
    """The screen after `keys`, as SVG that loads no fonts."""
    app = TraceqApp(store, "eager")
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        for key in ["", *keys]:
            if key:
                await pilot.press(key)
            await pilot.pause(0.2)
            while any(not worker.is_finished for worker in app.workers):
                await pilot.pause(0.05)
        svg = app.export_screenshot()
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)
    return re.sub(r"terminal-\d+", "terminal", svg).replace("Fira Code, monospace", FONTS)


def main() -> None:
    sql.clock = lambda: 0  # how long a statement took differs
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["XDG_STATE_HOME"] = folder
        store = Path("traceq.duckdb")
        make(store)
        for name, keys in SHOTS.items():
            for theme, ground in ((DARK.name, "dark"), *([(LIGHT.name, "light")] if name in BOTH else [])):
                drawn = asyncio.run(draw(store, keys, theme, TALL.get(name, SIZE)))
                (HERE / "images" / f"tui-{name}-{ground}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    (HERE / "images").mkdir(exist_ok=True)
    main()
