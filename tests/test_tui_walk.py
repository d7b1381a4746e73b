"""Every key of every screen, on stores in which something is missing or hostile: nothing may fall over."""

import contextlib
from pathlib import Path

import pytest
from clirun import shared
from recorded import slow
from textual.widgets import Input
from tuirun import drive, press, seen

from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import connect, create
from traceq.tui.app import SCREENS
from traceq.tui.view import View

FIXTURES = Path(__file__).parents[1] / "fixtures"
CASES = FIXTURES / "cases"
HOSTILE = CASES / "hand-69-tui-names-that-look-like-markup" / "input.json"
STORES = {
    "empty": [],
    "cpu": [CASES / "hand-33-launches-but-no-kernels" / "input.json"],
    "nsys": [FIXTURES / "nsys" / "reduce-overhead-node.sqlite"],
    "hostile": [HOSTILE, FIXTURES / "made" / "model.json"],
}
LEAVE = {"q", "ctrl+q", "ctrl+c", "ctrl+p", "r", "t"}  # what ends the app, or is the same everywhere
DEEPER = {1: [], 2: [], 3: ["enter"], 4: [], 5: [], 6: [], 7: [], 8: ["enter"]}
LABELS = {HOSTILE: "[/bold] a[/"}


def store(name, tmp_path_factory):
    def make(folder):
        path = folder / "store.duckdb"
        if not STORES[name]:
            with contextlib.closing(connect(path)) as con:
                create(con)
        for file in STORES[name]:
            outcomes, _ = ingest([str(file)], path, Options(label=LABELS.get(file)))
            assert [o.error for o in outcomes] == [None]

    return shared(tmp_path_factory, f"tui-{name}", make) / "store.duckdb"


async def every_key(app, pilot, steps_to):
    """Press each key that does something here, coming back to the screen before the next."""
    await steps_to()
    home = app.screen
    keys = sorted({key for key, active in home.active_bindings.items() if active.enabled} - LEAVE)
    for key in keys:
        await press(pilot, key)
        assert seen(app)
        if isinstance(app.focused, Input):
            await press(pilot, "escape")
        for _ in range(3):
            if app.screen is not home and (not isinstance(app.screen, View) or len(app.screen_stack) > 1):
                await press(pilot, "escape")
        if app.screen is not home:
            await steps_to()
            home = app.screen
    return keys


@pytest.mark.parametrize("number", SCREENS)
@pytest.mark.parametrize(
    "name", ["empty", "hostile", pytest.param("cpu", marks=slow), pytest.param("nsys", marks=slow)]
)
def test_every_key_of_every_screen(name, number, tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEQ_DEBUG", "1")  # a fault ends the app, and with it the test

    async def steps(app, pilot):
        async def top():
            await press(pilot, str(number))

        async def deep():
            await press(pilot, str(number), *DEEPER[number])

        keys = await every_key(app, pilot, top)
        if DEEPER[number]:
            keys += await every_key(app, pilot, deep)
        return keys

    assert len(drive(store(name, tmp_path_factory), steps)) > 10
