"""The timeline: its cells are those of the query at any zoom, it moves by keys and mouse, long traces are cut once."""

import asyncio
import json
from pathlib import Path

import pytest
from clirun import shared, traceq
from textual import events
from tuirun import drive, press, seen, settle

from traceq.ingest.pipeline import Options, ingest
from traceq.show.palette import sign
from traceq.show.text import short_name
from traceq.tui.access import AT_ONCE, Access, Asked, Statement
from traceq.tui.screens import timeline
from traceq.tui.tiles import COARSE, Tiles
from traceq.tui.widgets.gantt import Gantt
from traceq.tui.widgets.named import Named

FIXTURES = Path(__file__).parents[1] / "fixtures"
EAGER = FIXTURES / "demo" / "eager.json.gz"
RANKS = [FIXTURES / "made" / f"ranks-{n}.json" for n in (0, 1)]
NSYS = FIXTURES / "nsys" / "reduce-overhead-node.sqlite"
CPU = FIXTURES / "cases" / "hand-33-launches-but-no-kernels" / "input.json"
HOSTILE = FIXTURES / "cases" / "hand-69-tui-names-that-look-like-markup" / "input.json"
SLOW = Statement("SELECT count(*) FROM range(1000000000) AS a, range(1000) AS b WHERE a.range * b.range % 7 = 3")
FIRST_STEP = 3
SIZE = (120, 40)


def make(folder):
    for label, paths in (
        ("ranks", RANKS), ("nsys", [NSYS]), ("cpu", [CPU]), ("[/bold] a[/", [HOSTILE]), ("eager", [EAGER]),
    ):  # fmt: skip
        outcomes, _ = ingest([str(path) for path in paths], folder / "traceq.duckdb", Options(label=label))
        assert [o.error for o in outcomes if o.error] == []


@pytest.fixture
def store(tmp_path_factory, monkeypatch):
    """A store of real and made traces, which is the default one of the folder."""
    monkeypatch.chdir(shared(tmp_path_factory, "tui-timeline", make))
    monkeypatch.setenv("TRACEQ_DEBUG", "1")
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    return Path("traceq.duckdb")


def on_timeline(store, *keys, run="eager", size=SIZE, look=None):
    """What `look(app, gantt)` gives after these keys on the timeline."""

    async def steps(app, pilot):
        await press(pilot, "5", *keys)
        gantt = app.screen.query_one(Gantt)
        return look(app, gantt) if look else (gantt, seen(app))

    return drive(store, steps, size=size, run=run)


def answers(command):
    done = traceq(*command.split()[1:], "--json")
    assert done.status == 0, done
    return json.loads(done.out)["rows"]


def place(name, **params):
    given = [word for key, value in params.items() for word in ("-p", f"{key}={value}")]
    done = traceq("query", "timeline_places", "--run", "eager", "-p", f"place={name}", *given, "--json")
    return json.loads(done.out)["rows"][0]


def lines_of(gantt):
    """{lane: what is drawn in its cells}, of the lanes in sight, without the cursor's arrow."""
    drawn = gantt.copied().splitlines()[1:-1]
    start = gantt._label + 1
    return {
        (row["kind"], row["lane"], row["depth"]): line[start:].ljust(gantt.span.cells)
        for row, line in zip(gantt.lanes[gantt._top :], drawn, strict=False)
    }


ZOOMS = [[], ["0"], ["k", *["plus"] * 6], ["n", *["plus"] * 12], ["k", *["plus"] * 24], ["end", "minus"]]


@pytest.mark.parametrize("keys", ZOOMS, ids=["step", "all", "kernel", "gap", "nanoseconds", "end"])
def test_the_cells_drawn_are_those_of_the_query(store, keys):
    """A cell is drawn exactly where the query has a row, with the letter of what fills most of it."""
    command, span, drawn = on_timeline(
        store, *keys, size=(150, 60), look=lambda app, g: (app.screen.subject().command(), g.span, lines_of(g))
    )
    rows = answers(command)
    assert rows
    assert command.startswith(f"traceq query timeline_cells --run eager -p start_ns={span.start_ns} ")
    cells = {}
    for row in rows:
        cells.setdefault((row["kind"], row["lane"], row["depth"]), {}).setdefault(row["cell"], []).append(row)
    assert set(cells) <= set(drawn)
    for lane, line in drawn.items():
        mine = cells.get(lane, {})
        inked = {cell for cell, glyph in enumerate(line) if glyph != " "}
        assert inked <= set(mine)
        for cell, rows_here in mine.items():
            if not is_alone(rows_here):  # else a name may stand there
                first = rows_here[0]
                letter = sign(first["kind"], first["what"])
                assert line[cell] == (letter.upper() if first["covered_pct"] >= 50 else letter)


def is_alone(rows):
    return len(rows) == 1 and rows[0]["item"] is not None


def named_and_seen(app, gantt):
    return app.screen.query_one(Named).rows[0], seen(app)


def test_something_alone_in_several_cells_has_its_letter_and_name_there(store):
    row, text = on_timeline(store, "0", "k", "enter", look=named_and_seen)
    line = next(line for line in text.splitlines() if row["lane"] in line)
    assert f"{sign('stream', row['what']).upper()} {short_name(row['name'], 200)[:20]}" in line


def test_it_opens_on_the_first_good_step_and_0_shows_everything(store):
    step, whole = place("step"), place("all")
    opened = on_timeline(store, look=lambda app, g: (g.span, seen(app)))
    assert (step["step"], opened[0].start_ns) == (FIRST_STEP, step["start_ns"])
    assert opened[0].dur_ns >= step["dur_ns"] > opened[0].dur_ns - opened[0].cells
    assert "ProfilerStep#3" in opened[1]
    span = on_timeline(store, "0", look=lambda app, g: g.span)
    assert span.start_ns == 0
    assert span.dur_ns >= whole["dur_ns"]


def test_0_wins_over_a_jump_that_is_under_way(store):
    async def steps(app, pilot):
        await press(pilot, "5")
        app.screen.action_jump("next_step")  # keys in haste: its answer comes after the next key
        app.screen.action_all()
        await settle(pilot)
        return app.screen.query_one(Gantt).span.start_ns

    assert drive(store, steps, size=SIZE, run="eager") == 0


def inked(gantt):
    return {lane: set(cells) for lane, cells in gantt._cells.items()}


@pytest.mark.parametrize("key", ["plus", "minus", "l", "0"])
def test_a_key_draws_at_once_what_is_here_and_then_its_own_cells(store, key):
    """While no question gets its turn, a cell of the new span is drawn as the old one that its middle lies in."""

    async def steps(app, pilot):
        await press(pilot, "5", "plus", "l")
        gantt = app.screen.query_one(Gantt)
        pictures = [(gantt.span, inked(gantt), str(gantt.border_subtitle))]
        busy = [asyncio.create_task(app.access.answer(SLOW)) for _ in range(AT_ONCE)]
        await pilot.pause(0.1)
        await pilot.press(key)
        pictures.append((gantt.span, inked(gantt), str(gantt.border_subtitle)))
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await settle(pilot)
        return [*pictures, (gantt.span, inked(gantt), str(gantt.border_subtitle))], app.screen.subject().command()

    pictures, command = drive(store, steps, size=(150, 60), run="eager")
    (old, old_ink, _), (span, ink, told), (last, last_ink, told_last) = pictures
    assert span != old
    for lane, cells in ink.items():
        middles = {cell: old.cell_of(span.at(cell) + span.cell_ns // 2) for cell in range(span.cells)}
        assert cells == {cell for cell, place in middles.items() if place in old_ink[lane]}
    assert (told.startswith("… "), told_last) == (True, told.removeprefix("… "))
    assert last == span
    answered = {}
    for row in answers(command):
        answered.setdefault((row["kind"], row["lane"], row["depth"]), set()).add(row["cell"])
    assert {lane: cells for lane, cells in last_ink.items() if cells} == answered


def test_s_goes_from_step_to_step_and_says_when_there_is_no_more(store):
    starts = [place("step", step=n)["start_ns"] for n in (3, 4, 5)]
    for keys, at in ((["s"], 1), (["s", "s"], 2), (["s", "s", "s"], 2), (["s", "s", "S"], 1)):
        assert on_timeline(store, *keys, look=lambda app, g: g.span.start_ns) == starts[at]


def test_n_goes_from_gap_to_gap_and_names_the_cause(store):
    async def steps(app, pilot):
        await press(pilot, "5", "plus", "plus", "plus", "plus")
        gantt, found = app.screen.query_one(Gantt), []
        for key in ("n", "n", "n", "N", "N"):
            await press(pilot, key)
            found.append((app.screen.query_one(Named).rows[0], gantt.place["kind"]))
        return found, gantt.wanted.cell_ns

    found, cell_ns = drive(store, steps, size=SIZE, run="eager")
    assert {kind for _, kind in found} == {"idle"}
    starts = [row["start_ns"] for row, _ in found]
    assert starts[0] < starts[1] < starts[2]
    assert starts[3:] == [starts[1], starts[0]]
    gaps = {row["start_ns"]: row for row in answers("traceq query longest_gaps --run eager -p top=NULL")}
    assert all(gaps[at]["dur_ns"] >= cell_ns for at in starts if at in gaps)


def test_after_zooming_in_the_next_gap_is_the_one_after_the_cursor(store):
    async def steps(app, pilot):
        await press(pilot, "5", *["plus"] * 4)
        gantt = app.screen.query_one(Gantt)
        before = gantt.span.at(gantt.cursor)
        await press(pilot, "n")
        return before, app.screen.query_one(Named).rows[0]["start_ns"], gantt.span

    before, after, span = drive(store, steps, size=SIZE, run="eager")
    wanted = place("next_gap", at_ns=before, least_ns=span.cell_ns)
    assert after == wanted["start_ns"] > before


def test_k_finds_the_longest_kernel_in_sight_and_enter_makes_it_large(store):
    row, span = on_timeline(store, "k", "enter", look=lambda app, g: (app.screen.query_one(Named).rows[0], g.span))
    first = place("step")
    longest = place("longest_kernel", at_ns=first["start_ns"], end_ns=first["start_ns"] + first["dur_ns"])
    assert (row["name"], row["start_ns"]) == (longest["name"], longest["start_ns"])
    assert span.start_ns <= longest["start_ns"]
    assert longest["start_ns"] + longest["dur_ns"] <= span.end_ns <= longest["start_ns"] + 3 * longest["dur_ns"]


def test_keys_in_haste_are_all_answered_each_from_where_the_one_before_arrived(store):
    async def steps(app, pilot):
        await press(pilot, "5")
        gantt, places = app.screen.query_one(Gantt), []
        for hasty in (False, True):
            await press(pilot, "0", "home", *["plus"] * 9)
            for action in ("next_gap", "next_gap", "next_gap", "previous_gap"):
                app.screen.action_jump(action)
                if not hasty:
                    await settle(pilot)
            app.screen.action_longest()
            if not hasty:
                await settle(pilot)
            app.screen.action_fit()
            await settle(pilot)
            places.append((gantt.span, gantt.cursor, gantt.place, app.screen.query_one(Named).rows[0]["item"]))
        return places

    one_by_one, in_haste = drive(store, steps, size=SIZE, run="eager")
    assert in_haste == one_by_one
    assert one_by_one[2]["kind"] == "stream"


def test_it_zooms_to_single_nanoseconds_and_no_further(store):
    kernel = place("longest_kernel")
    span, text = on_timeline(store, "0", "k", *["plus"] * 30, look=lambda app, g: (g.span, seen(app)))
    assert span.cell_ns == 1
    assert kernel["start_ns"] < span.start_ns < span.end_ns < kernel["start_ns"] + kernel["dur_ns"]
    assert "a cell is 1 ns" in text


def test_zooming_out_ends_with_the_whole_trace(store):
    span = on_timeline(store, *["minus"] * 20, look=lambda app, g: g.span)
    assert span.start_ns == 0
    assert 0 <= span.dur_ns - place("all")["dur_ns"] < span.cells


def test_the_picture_pans_and_the_cursor_pans_it_at_the_edge(store):
    async def steps(app, pilot):
        await press(pilot, "5", "plus", "plus")
        gantt = app.screen.query_one(Gantt)
        spans = [gantt.span]
        for key in ("l", "h", "right", "left", "home", "left"):
            await press(pilot, key)
            spans.append(gantt.span)
        return spans

    first, *rest = drive(store, steps, size=SIZE, run="eager")
    assert [s.start_ns - first.start_ns for s in rest[:2]] == [first.cells // 4 * first.cell_ns, 0]
    assert rest[2] == rest[3] == first
    assert rest[4].start_ns == rest[5].start_ns == 0


def test_the_mouse_zooms_drags_and_points(store):
    async def steps(app, pilot):
        await press(pilot, "5")
        gantt = app.screen.query_one(Gantt)
        first, left = gantt.span, gantt._label + 3  # border, padding, and the space behind the label
        await pilot.click(Gantt, offset=(left + 20, 4))
        await settle(pilot)
        pointed = gantt.cursor, gantt.place["kind"], app.screen.query_one(Named).rows
        await pilot._post_mouse_events([events.MouseScrollUp], Gantt, offset=(left + 20, 4))
        await settle(pilot)
        zoomed = gantt.span
        await pilot.mouse_down(Gantt, offset=(left + 20, 4))
        await pilot.hover(Gantt, offset=(left + 10, 4))
        await pilot.mouse_up(Gantt, offset=(left + 10, 4))
        await settle(pilot)
        return first, pointed, zoomed, gantt.span

    first, (cursor, kind, rows), zoomed, dragged = drive(store, steps, size=SIZE, run="eager")
    assert (cursor, kind) == (20, "idle")
    assert all(row["kind"] == "idle" for row in rows)
    assert zoomed.cell_ns == first.cell_ns // 2
    assert abs(zoomed.at(20) - first.at(20)) <= first.cell_ns
    assert dragged == zoomed.panned(10)


def test_a_gap_of_the_screen_of_gaps_is_shown_with_what_is_around_it(store):
    async def steps(app, pilot):
        await press(pilot, "4", "down", "enter")
        gantt = app.screen.query_one(Gantt)
        return app.screen.NAME, gantt.span, app.screen.query_one(Named).rows, gantt.place["lane"]

    name, span, (row, *_), lane = drive(store, steps, size=SIZE, run="eager")
    gap = answers("traceq query longest_gaps --run eager -p top=2")[1]
    assert (name, lane, row["kind"]) == ("timeline", "GPU 0 idle", "idle")
    assert span.start_ns < gap["start_ns"] < gap["start_ns"] + gap["dur_ns"] < span.end_ns
    assert gap["start_ns"] <= row["start_ns"] < gap["start_ns"] + gap["dur_ns"]


def test_a_launch_of_a_kernel_is_shown_on_its_stream(store):
    async def steps(app, pilot):
        await press(pilot, "3", "enter", "enter")
        return app.screen.query_one(Gantt).place["lane"], app.screen.query_one(Named).rows[0]["name"], app.screen.NAME

    lane, name, screen = drive(store, steps, size=SIZE, run="eager")
    first = answers("traceq query top_kernels --run eager -p top=1")[0]
    assert (screen, lane, name) == ("timeline", "GPU 0 stream 7", first["name"])


def test_ranks_are_gone_through(store):
    def look(app, gantt):
        return app.screen.crumb, {row["rank"] for row in gantt.rows}

    assert on_timeline(store, run="ranks", look=look) == ("Timeline, rank 0", {0})
    assert on_timeline(store, "right_square_bracket", run="ranks", look=look) == ("Timeline, rank 1", {1})


def test_without_gpu_work_the_threads_are_shown(store):
    kinds, text = on_timeline(store, "down", run="cpu", look=lambda app, g: ([r["kind"] for r in g.lanes], seen(app)))
    assert kinds == ["ops", "calls"]
    assert "L launch" in text


def test_a_store_without_runs_says_what_to_do(tmp_path):
    from traceq.store.files import connect, create

    con = connect(tmp_path / "empty.duckdb")
    create(con)
    con.close()

    async def steps(app, pilot):
        await press(pilot, "5", "0", "n", "k", "enter", "plus")
        return seen(app)

    assert "traceq ingest" in drive(tmp_path / "empty.duckdb", steps, size=(100, 24))


def test_an_export_has_its_streams_and_ranges(store):
    kinds = on_timeline(store, "0", run="nsys", look=lambda app, g: {row["kind"] for row in g.rows})
    assert {"stream", "idle", "calls"} <= kinds


def test_hostile_names_are_named_as_they_are(store):
    names = {e["name"] for e in json.loads(HOSTILE.read_text())["traceEvents"] if e.get("cat") == "kernel"}
    found = on_timeline(store, "0", "k", run="[/bold] a[/", look=lambda app, g: app.screen.query_one(Named).rows[0])
    assert found["name"] in names


@pytest.mark.parametrize("width", [1, 3, COARSE, COARSE * 5])
def test_tiles_say_what_the_query_says(store, width):
    """Cells of any number of tiles, from any tile on, are the cells that the question itself has."""

    async def both(run, duration_ns):
        access = Access(store.absolute())
        tiles = Tiles(access, run, None, duration_ns)
        await tiles.make()
        for start in (0, 16 * 40, 16 * 999):
            span = {"start_ns": start * tiles.tile_ns, "cell_ns": width * tiles.tile_ns, "cells": 60}
            asked = Asked("timeline_cells", {"run": run, **span})
            merged, whole = await tiles.answer(asked), await access.answer(asked, limit=None)
            yield merged, whole
        tiles.close()
        access.close()

    async def all_of(run, duration_ns):
        return [pair async for pair in both(run, duration_ns)]

    for run in ("eager", "nsys"):
        found = asyncio.run(all_of(run, 10**8))
        assert sum(len(whole.rows) for _, whole in found) > 100
        for merged, whole in found:
            assert [c.name for c in merged.columns] == [c.name for c in whole.columns]
            assert merged.rows == whole.rows


def test_a_long_trace_is_cut_into_tiles_and_looks_the_same(store, monkeypatch):
    def look(app, gantt):
        return app.screen.subject().command(), [tuple(row.values()) for row in gantt.rows], app.screen._tiles

    monkeypatch.setattr(timeline, "MANY", 1000)
    command, rows, tiles = on_timeline(store, "0", look=look)
    assert tiles.is_made
    assert rows == [tuple(row.values()) for row in answers(command)]
