"""How long the terminal interface takes on stores of 10 thousand, 1 million and 10 million GPU activities.

    python benchmarks/tui.py [--activities 10000 1000000 10000000] [--folder DIR]

The stores are made by SQL: 200 kernel names in 12 categories on two streams, a launch call each, a gap before each.
Printed are, in ms:

- first paint: from the start of a process to the first frame on a terminal, imports included
- first rows: until the first screen's rows are there
- each screen: from its key to its rows, and the longest time the interface did not answer meanwhile
- key: the longest of 200 cursor moves and page downs in the list of all gaps, drawn
- filter and sort of all gaps: until the rows are there, and the longest time the interface did not answer meanwhile
- timeline: from its key to its first picture; until the whole trace has been cut into tiles, meanwhile one can move
  and zoom in; then, from a key to the next picture (what is there, stretched; of a jump: nothing new yet) and to the
  one with the cells that it asks for, the longest and the median of zooming from the whole trace to nanoseconds and
  back, of panning at each of those zooms, and of jumping to gaps, steps and longest kernels
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import duckdb

from traceq.store.build import create
from traceq.store.files import connect
from traceq.tui.app import TraceqApp
from traceq.tui.screens.timeline import Timeline
from traceq.tui.widgets.gantt import Gantt
from traceq.tui.widgets.grid import Grid

MOST_ANSWER_MS = 100
TICK_S = 0.002
PANELS = {"overview": "#busy", "kernels": "#names", "gaps": "#gaps"}
FILL = """
INSERT INTO runs (run_id, label, created_at, gpu, step_pipelined_ns)
    VALUES (1, 'large', '2026-01-01', 'H200', 40000000);
INSERT INTO traces (trace_id, run_id, path, format, sha256, size_bytes, origin_ns, duration_ns, status, resolution_ns,
    invisible_replays, clipped_rows, op_disagreements)
    VALUES (1, 1, 'made', 'kineto', 'made', 1, 0, $n::BIGINT * 20000, 'complete', 1, 0, 0, 0);
INSERT INTO gpu_activities (trace_id, activity_id, kind, name, short_name, category, category_by_name, origin, phase,
    pid, device, stream, start_ns, dur_ns, correlation_id, launch_id, step)
    SELECT 1, i, 'kernel', 'void ns::kernel_' || (i * 7919 % 200) || '<float>(int)', 'kernel_' || (i * 7919 % 200),
        c, c, 'aten', 'forward', '1', 0, 7, i * 20000, 15000 + (i * 104729 % 3000), i, i, i // 2000
    FROM (SELECT range AS i, (['gemm', 'copy', 'norm', 'elementwise', 'reduction', 'softmax', 'conv', 'attention',
        'loss', 'indexing', 'embedding', 'other'])[1 + range * 7919 % 200 % 12] AS c FROM range(1, $n::BIGINT + 1));
INSERT INTO api_calls (trace_id, call_id, name, api, pid, tid, start_ns, dur_ns, correlation_id, step, role)
    SELECT 1, range, 'cudaLaunchKernel', 'runtime', '1', '1', range * 20000 - 9000, 5000, range, range // 2000,
        'launch'
    FROM range(1, $n::BIGINT + 1);
INSERT INTO gpu_busy (trace_id, device, start_ns, dur_ns) SELECT 1, 0, start_ns, dur_ns FROM gpu_activities;
INSERT INTO gaps (trace_id, device, gap_id, start_ns, dur_ns, before_id, after_id, step, launch_state, host_ns,
    after_launch_ns)
    SELECT 1, 0, activity_id, start_ns + dur_ns, 20000 - dur_ns, activity_id, activity_id + 1, step, 'queued', 0, 0
    FROM gpu_activities WHERE activity_id < $n::BIGINT;
INSERT INTO gap_parts (trace_id, gap_id, part, cause, ns)
    SELECT 1, gap_id, 'whole', (['cpu_ops', 'launch_latency', 'queue_latency', 'python'])[1 + gap_id % 4], dur_ns
    FROM gaps;
INSERT INTO steps (trace_id, step, name, pid, start_ns, dur_ns, gpu_start_ns, gpu_end_ns, period_ns, gpu_busy_ns,
    kernels, kernel_ns, launches, flags)
    SELECT 1, step, 'ProfilerStep#' || step, '1', min(start_ns) - 9000, 40000000, min(start_ns),
        max(start_ns + dur_ns), lead(min(start_ns)) OVER (ORDER BY step) - min(start_ns), sum(dur_ns), count(*),
        sum(dur_ns), count(*), []
    FROM gpu_activities GROUP BY step;
"""


def make(path: Path, activities: int) -> None:
    """A store of so many activities."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with contextlib.closing(connect(part)) as con:
        create(con)
        for statement in con.extract_statements(FILL):
            con.execute(statement, {"n": activities} if "$n" in statement.query else None)
    part.rename(path)


def first_paint_ms(store: Path) -> float:
    """From starting the command to the first frame in a pseudo-terminal: when the screen's title is written."""
    parent, child = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "traceq", "tui", str(store)], stdin=child, stdout=child, stderr=child, env=env
    ) as process:
        seen = b""
        while b"Overview" not in seen:
            if not select.select([parent], [], [], 30)[0]:
                raise SystemExit(f"nothing was drawn: {seen[-500:]!r}")
            seen += os.read(parent, 65536)
        took = time.perf_counter() - start
        process.kill()
    os.close(parent)
    os.close(child)
    return 1000 * took


class Watch:
    """The longest time for which the event loop did not come round."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Watch:
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task
        self._task.cancel()

    async def _look(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.longest_ms = max(self.longest_ms, 1000 * (time.perf_counter() - before - TICK_S))


async def timed(what: str, work: Callable[[], Awaitable[None]], until: Callable[[], bool]) -> None:
    """Print how long it takes until `until` holds, and the longest time nothing was answered."""
    async with Watch() as watch:
        start = time.perf_counter()
        await work()
        while not until():
            await asyncio.sleep(TICK_S)
        took = 1000 * (time.perf_counter() - start)
    flag = "" if watch.longest_ms <= MOST_ANSWER_MS else "  over 100 ms"
    print(f"  {what:<22} {took:9.1f} ms   longest without an answer {watch.longest_ms:6.1f} ms{flag}", flush=True)


async def measure(store: Path) -> None:
    """All but the first paint, in this process."""
    app = TraceqApp(store)
    start = time.perf_counter()
    async with app.run_test(size=(160, 45)) as _:

        def is_quiet() -> bool:
            return app.is_open and not any(not w.is_finished for w in app.workers)

        def has_rows() -> bool:
            return is_quiet() and any(grid.count for grid in app.screen.query(Grid))

        while not has_rows():
            await asyncio.sleep(TICK_S)
        print(f"  {'first rows':<22} {1000 * (time.perf_counter() - start):9.1f} ms")
        for key, name in (("2", "overview"), ("3", "kernels"), ("4", "gaps")):

            async def go(key: str = key) -> None:
                app.simulate_key(key)
                await asyncio.sleep(0)

            def is_there(name: str = name) -> bool:
                return is_quiet() and app.current_mode == name and any(w.asked for w in app.screen.query(PANELS[name]))

            await timed(name, go, is_there)
        grid = app.screen.query_one("#gaps", Grid)

        async def everything() -> None:
            app.simulate_key("a")
            await asyncio.sleep(0.1)

        await timed("all gaps", everything, is_quiet)
        moves = []
        for place in range(200):
            painted = asyncio.Event()
            before = time.perf_counter()
            app.simulate_key("pagedown" if place % 10 == 0 else "down")
            grid.call_after_refresh(painted.set)
            await painted.wait()
            moves.append(1000 * (time.perf_counter() - before))
        print(f"  {'key, longest of 200':<22} {max(moves):9.1f} ms   median {sorted(moves)[100]:.1f} ms")
        before_count = grid.count

        async def narrow() -> None:
            grid.filter("python")

        await timed("filter all gaps", narrow, lambda: grid.count != before_count and is_quiet())

        async def sort() -> None:
            grid.sorted_by, grid.is_descending = "start_ns", True
            grid.filter("")

        await timed("sort all gaps", sort, lambda: grid.count == before_count and is_quiet())

        async def end() -> None:
            grid.action_last()

        await timed("jump to the end", end, lambda: grid.row is not None)


async def measure_timeline(store: Path) -> None:
    """The timeline: opened, cut into tiles, zoomed, panned, jumped in."""
    app = TraceqApp(store)
    async with app.run_test(size=(160, 45)) as _:
        while not app.is_open:
            await asyncio.sleep(TICK_S)

        def is_drawn() -> bool:
            busy = [w for w in app.workers if not w.is_finished and w.group in ("cells", "jump")]
            return app.current_mode == "timeline" and not busy and any(g.rows for g in app.screen.query(Gantt))

        async def painted() -> None:
            done = asyncio.Event()
            app.screen.call_after_refresh(done.set)
            await done.wait()

        async def press(key: str) -> tuple[float, float]:
            before = time.perf_counter()
            app.simulate_key(key)
            await asyncio.sleep(TICK_S)
            await painted()
            first = time.perf_counter()
            while not is_drawn():
                await asyncio.sleep(TICK_S)
            await painted()
            return 1000 * (first - before), 1000 * (time.perf_counter() - before)

        async def go() -> None:
            app.simulate_key("5")
            await asyncio.sleep(0)

        await timed("timeline", go, is_drawn)
        screen = app.screen
        assert isinstance(screen, Timeline)
        if tiles := screen._tiles:
            await timed("tiles", tiles.is_settled.wait, lambda: True)
        await press("0")
        depth = 40
        async with Watch() as watch:
            took = {
                "zoom in": [await press("plus") for _ in range(depth)],
                "zoom out, pan": [await press(key) for _ in range(depth) for key in ("minus", "l", "h")],
                "gap": [await press("n") for _ in range(10)],
                "longest kernel": [await press("k") for _ in range(3)],
                "step": [await press("s") for _ in range(10)],
                "everything": [await press("0") for _ in range(3)],
            }
        for what, each in took.items():
            firsts, wholes = (sorted(times) for times in zip(*each, strict=True))
            middle = len(each) // 2
            print(
                f"  {what + f', longest of {len(each)}':<30} {firsts[-1]:7.1f} ms, median {firsts[middle]:.1f}; "
                f"with its own cells {wholes[-1]:7.1f} ms, median {wholes[middle]:.1f}"
            )
        print(f"  {'longest without an answer':<30} {watch.longest_ms:9.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--activities", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="Where the stores are kept; else a temporary folder.")
    given = parser.parse_args()
    print(f"duckdb {duckdb.__version__}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as temporary:
        for activities in given.activities:
            store = (given.folder or Path(temporary)) / f"activities-{activities}.duckdb"
            if not store.exists():
                make(store, activities)
            print(f"{activities:,} activities, {store.stat().st_size / 2**20:,.0f} MiB")
            paints = sorted(first_paint_ms(store) for _ in range(5))
            print(f"  {'first paint':<22} {paints[2]:9.1f} ms   of 5: {paints[0]:.1f} to {paints[-1]:.1f}")
            asyncio.run(measure(store))
            asyncio.run(measure_timeline(store))


if __name__ == "__main__":
    main()
