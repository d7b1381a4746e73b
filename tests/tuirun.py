"""Driving the terminal interface without a terminal."""

import asyncio
import time

from textual import _wait
from textual.widgets import Input

from traceq.tui.app import TraceqApp

PATIENCE_S = 30
# After a key textual's pilot looks every 20 ms whether the processor rests, which is half the time of these tests;
# `settle` knows better what there is to wait for.
_wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 0.005, 0.001


def drive(store, steps, size=(80, 24), run=None):
    """What `await steps(app, pilot)` gives on an app that looks at `store` and has come to rest."""

    async def whole():
        app = TraceqApp(store, run)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            return await steps(app, pilot)

    return asyncio.run(whole())


async def press(pilot, *keys):
    """Keys one after the other, each answered before the next."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def settle(pilot):
    """Until nothing is asked or drawn any more: twice in a row no worker runs, and no filter waits for more letters."""
    deadline, quiet = time.monotonic() + PATIENCE_S, 0
    while quiet < 2:
        assert time.monotonic() < deadline, list(pilot.app.workers)
        await pilot.pause(0.1 if isinstance(pilot.app.focused, Input) else 0.005)
        has_begun = pilot.app.is_open or pilot.app.trouble
        is_busy = any(not w.is_finished for w in pilot.app.workers)
        quiet = quiet + 1 if has_begun and not is_busy else 0


def seen(app):
    """The text on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
