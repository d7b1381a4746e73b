"""Each screen: driven through its main path on real traces, its numbers against --json, and pictures of it.

    python tests/test_tui_screens.py   # draw the pictures in tests/snapshots/ anew; look at what changed

A picture is the SVG that textual exports, without what differs from one export to the next.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from clirun import shared, traceq
from rich.cells import cell_len
from tuirun import drive, press, seen, settle

from traceq.ingest.pipeline import Options, ingest
from traceq.tui.app import SCREENS, pair_of
from traceq.tui.screens import sql
from traceq.tui.screens.kernel import Kernel
from traceq.tui.view import Drawn
from traceq.tui.widgets.answer import Answer
from traceq.tui.widgets.bars import Bars
from traceq.tui.widgets.grid import Grid
from traceq.tui.widgets.prose import Prose
from traceq.units import show_value

FIXTURES = Path(__file__).parents[1] / "fixtures"
SNAPSHOTS = Path(__file__).parent / "snapshots"
TRACES = {
    "graphs": (FIXTURES / "h200" / "cudagraph__manual.json.gz", None),
    "compiled": (FIXTURES / "demo" / "default.json.gz", 28_190_109),
    "eager": (FIXTURES / "demo" / "eager.json.gz", 43_534_535),
}
SIZES = {"80x24": (80, 24), "160x45": (160, 45)}
KEYS = {
    "runs": ["1"],
    "overview": ["2"],
    "kernels": ["3"],
    "kernel": ["3", "down", "enter"],
    "gaps": ["4"],
    "timeline": ["5"],
    "kernel-in-time": ["5", "k", "enter"],
    "diff": ["6"],
    "sql": ["7", "ctrl+r", "escape"],
    "queries": ["8"],
    "question": ["8", "down", "down", "enter"],
    "help": ["3", "question_mark"],
    "filter": ["3", "slash", *"elementwise"],
}
KERNEL = "rmsnorm_residual"  # of usertriton__triton.json.gz
# What widgets draw of their rows; a strip names the row under its cursor, the others every row.
DRAWN = {
    "busy": ["busy_ns", "idle_ns"],
    "categories": ["category", "kernel_ns", "pct_of_kernel"],
    "causes": ["cause", "idle_ns", "pct_of_idle"],
    "steps": ["step", "gpu_busy_ns", "kernels"],
    "facts": ["gpu", "step_ns", "steps", "kernels", "kernel_ns", "gemm_pct_of_kernel", "launches"],
    "trust": ["note"],
    "sizes": ["kernels"],  # the labels may stand on two lines
}


def make(folder):
    for label, (file, step_ns) in TRACES.items():
        outcomes, _ = ingest([str(file)], folder / "traceq.duckdb", Options(label=label, step_ns=step_ns))
        assert [o.error for o in outcomes] == [None]


@pytest.fixture
def store(tmp_path_factory, monkeypatch):
    """A store of three real traces, which is the default one of the folder."""
    monkeypatch.chdir(shared(tmp_path_factory, "tui-screens", make))
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    return Path("traceq.duckdb")


def picture(store, keys, size):
    sql.clock = lambda: 0  # how long a statement took differs

    async def steps(app, pilot):
        await press(pilot, *keys)
        return app.export_screenshot()

    drawn = drive(store, steps, size=size, run="eager")
    drawn = re.sub(r"terminal-\d+", "terminal", drawn)
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.S)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", KEYS)
def test_the_screen_looks_as_it_did(store, name, size, tmp_path):
    drawn = picture(store, KEYS[name], SIZES[size])
    kept = SNAPSHOTS / f"{name}-{size}.svg"
    assert kept.exists(), "python tests/test_tui_screens.py draws it"
    if drawn != kept.read_text("utf-8"):
        (tmp_path / kept.name).write_text(drawn, "utf-8")
        pytest.fail(f"{kept.name} is another now: see {tmp_path / kept.name}")


def test_every_screen_has_a_picture():
    assert {screen.NAME for screen in SCREENS.values()} <= set(KEYS)


def asked_on(app):
    return [w for w in app.screen.query("#body *") if isinstance(w, Drawn) and w.asked and w.id]


def answers(command):
    done = traceq(*command.split()[1:], "--json")
    assert done.status == 0, done
    return json.loads(done.out)


@pytest.mark.parametrize("key", ["1", "2", "3", "4"])
def test_numbers_on_the_screen_are_those_of_the_query(store, key):
    async def steps(app, pilot):
        await press(pilot, key)
        found = []
        for widget in asked_on(app):
            if isinstance(widget, Grid):
                found.append((widget.id, widget.asked.command(), await widget.sheet.page(0, 10**6)))
            else:
                found.append((widget.id, widget.asked.command(), widget.copied()))
        return found

    for name, command, shown in drive(store, steps, size=(200, 60), run="eager"):
        answer = answers(command)
        if isinstance(shown, list):
            assert shown == [tuple(row.values()) for row in answer["rows"]], name
            continue
        if name == "verdict":
            ceilings, expected = answer["ceilings"].values(), answer["expected"].values()
            times = [v for v in ceilings if isinstance(v, float)] + [e["likely"] for e in expected]
            assert len(times) >= 4
            assert [v for v in times if f"{v:,.2f}×" not in shown] == []
            assert answer["because"] in unwrapped(shown)
            continue
        units = {c["name"]: c["unit"] for c in answer["columns"]}
        for row in answer["rows"][:1] if name == "steps" else answer["rows"]:
            for column in DRAWN[name]:
                if row[column] is not None:
                    assert show_value(row[column], units[column]).split("\n")[0] in unwrapped(shown), (name, column)


def test_of_a_compiled_run_only_what_is_left_is_held_out(store):
    async def steps(app, pilot):
        await press(pilot, "2")
        return app.screen.query_one("#verdict").copied()

    text = drive(store, steps, run="compiled")
    assert "so far it is compiled without CUDA graphs" in unwrapped(text)
    assert "bound, any mode" in text
    assert "expected, reduce-overhead" in text
    assert "expected, default" not in text
    assert answers("traceq advise compiled")["is_compiled"]
    assert "expected, default" not in traceq("advise", "compiled").out


def unwrapped(text):
    return re.sub(r"\s*\n\s*", " ", text) + "\n" + text


def test_a_drawn_line_of_the_grid_says_what_its_row_says(store):
    async def steps(app, pilot):
        await press(pilot, "3")
        grid = app.screen.query_one(Grid)
        row = grid.row
        return seen(app), row, {c.name: c.unit for c in grid.sheet.columns}

    text, row, units = drive(store, steps, size=(200, 40), run="eager")
    line = next(line for line in text.splitlines() if show_value(row["total_ns"], "ns") in line)
    for column in ("category", "origin", "kernels", "total_ns", "pct_of_kernel", "mean_ns"):
        assert show_value(row[column], units[column]) in line


def test_the_diff_screen_has_the_parts_of_traceq_diff(store):
    async def steps(app, pilot):
        app.mark(("eager", "compiled"))
        await press(pilot, "6")
        return app.screen.query_one("#parts").result.rows, app.screen.query_one("#kernels").sheet, seen(app)

    rows, _, text = drive(store, steps, size=(160, 60))
    found = answers("traceq diff eager compiled")
    assert rows == [tuple(row.values()) for row in found["rows"]]
    assert found["sentence"] in text


def test_x_swaps_the_pair_and_u_the_clock(store):
    async def steps(app, pilot):
        app.mark(("eager", "compiled"))
        await press(pilot, "6")
        first = app.screen.query_one("#parts").clock
        await press(pilot, "u")
        second = app.screen.query_one("#parts").clock
        await press(pilot, "x")
        return first, second, app.pair

    first, second, pair = drive(store, steps, size=(160, 60))
    assert (first[0], second[0]) == ("a_estimate_ns", "a_ns")
    assert pair == ("compiled", "eager")


def test_two_runs_are_marked_and_compared(store):
    async def steps(app, pilot):
        await press(pilot, "end", "space", "up", "space", "6")
        return app.pair, app.screen.NAME

    assert drive(store, steps) == (("eager", "compiled"), "diff")


MODES = {"longjob/default": "compiled", "longjob/eager": "eager", "lone": "graphs"}


@pytest.fixture
def modes(tmp_path_factory, monkeypatch):
    """The same traces as two modes of one script and a run of another."""

    def make_modes(folder):
        for label, name in MODES.items():
            file, step_ns = TRACES[name]
            outcomes, _ = ingest([str(file)], folder / "traceq.duckdb", Options(label=label, step_ns=step_ns))
            assert [o.error for o in outcomes] == [None]

    monkeypatch.chdir(shared(tmp_path_factory, "tui-modes", make_modes))
    monkeypatch.delenv("TRACEQ_STORE", raising=False)
    return Path("traceq.duckdb")


@pytest.mark.parametrize(
    ("labels", "run", "pair"),
    [
        (["a/default", "a/eager", "b/default", "b/eager"], "b/eager", ("b/eager", "b/default")),
        (["a/default", "a/eager", "b/default", "b/eager"], "b/default", ("b/eager", "b/default")),
        (["a/max", "a/eager", "a/default"], "a/default", ("a/eager", "a/default")),
        (["a/one", "a/two", "b"], "a/two", ("a/one", "a/two")),
        (["a/eager", "b/default", "c"], "b/default", ("b/default", "c")),
        (["a/eager", "b/default", "c"], "c", ("b/default", "c")),
        (["graphs", "compiled", "eager"], "eager", ("eager", "compiled")),
        (["graphs", "compiled", "eager"], "compiled", ("eager", "compiled")),
        (["graphs", "compiled", "eager"], "graphs", ("graphs", "compiled")),
        (["train", "infer"], "infer", ("train", "infer")),
        (["alone"], "alone", None),
        ([], None, None),
    ],
)
def test_a_run_is_compared_with_one_like_it(labels, run, pair):
    assert pair_of(labels, run) == pair


def test_the_run_in_view_is_compared_until_two_are_marked(modes):
    async def steps(app, pilot):
        await press(pilot, "6")
        first = app.pair
        await press(pilot, "x")
        swapped = app.pair
        app.choose("lone")
        await settle(pilot)
        other = app.pair
        app.mark(("longjob/default", "lone"))
        await press(pilot, "x")
        app.choose("longjob/eager")
        await settle(pilot)
        return first, swapped, other, app.pair, app.screen.crumb

    first, swapped, other, marked, crumb = drive(modes, steps, run="longjob/eager")
    assert (first, swapped) == (("longjob/eager", "longjob/default"), ("longjob/default", "longjob/eager"))
    assert other == ("longjob/eager", "lone")
    assert marked == ("lone", "longjob/default")
    assert crumb == "lone → longjob/default"


def test_a_kernel_of_another_run_does_not_stay_open(modes):
    async def steps(app, pilot):
        await press(pilot, "3", "enter")
        deep = app.screen.crumb
        await press(pilot, "1", "home", "enter", "3")
        found = type(app.screen).__name__, app.run_label, seen(app).splitlines()[1]
        await press(pilot, "enter")
        app.choose("lone")  # as the palette does, with the kernel in sight
        await settle(pilot)
        return deep, found, (type(app.screen).__name__, seen(app).splitlines()[1])

    deep, (screen, run, crumbs), (after, crumbs_after) = drive(modes, steps, size=(160, 45), run="longjob/eager")
    assert run != "longjob/eager"
    assert (screen, after) == ("Kernels", "Kernels")
    assert deep not in crumbs
    assert crumbs.endswith(f"{run} › Kernels")
    assert crumbs_after.endswith("lone › Kernels")


def test_a_kernel_stays_open_while_its_run_is_looked_at(modes):
    async def steps(app, pilot):
        await press(pilot, "3", "enter", "4", "3")
        return type(app.screen)

    assert drive(modes, steps, run="longjob/eager") is Kernel


def test_rows_of_another_run_are_sorted_and_filtered_as_the_screen_says(modes):
    async def steps(app, pilot):
        await press(pilot, "3", *["right"] * 3, "s", "s", "slash", *"elementwise", "enter")
        app.choose("lone")
        await settle(pilot)
        grid = app.screen.query_one(Grid)
        names = [column.name for column in grid.sheet.columns]
        rows = [dict(zip(names, row, strict=True)) for row in await grid.sheet.page(0, 1000)]
        return grid.sorted_by, grid.words, rows, grid.sheet.total

    column, words, rows, total = drive(modes, steps, size=(160, 45), run="longjob/eager")
    assert (column, words) == ("kernels", "elementwise")
    assert 1 < len(rows) < total
    assert all("elementwise" in f"{row['name']} {row['category']}".lower() for row in rows)
    assert [row["kernels"] for row in rows] == sorted(row["kernels"] for row in rows)


def test_a_statement_with_fewer_columns_can_be_sorted(modes):
    async def steps(app, pilot):
        await press(pilot, "7", "ctrl+r", "escape", *["right"] * 3, "s")
        app.screen._run("SELECT 2 AS only UNION ALL SELECT 3")
        await settle(pilot)
        grid = app.screen.query_one(Grid)
        first = grid.sorted_by
        await press(pilot, "s")
        return first, grid.sorted_by, await grid.sheet.page(0, 10)

    assert drive(modes, steps, run="lone") == (None, "only", [(3,), (2,)])


def test_a_question_follows_the_run_unless_another_was_typed(modes):
    async def steps(app, pilot):
        app.open_question("top_kernels")
        await settle(pilot)
        app.choose("lone")
        await settle(pilot)
        followed = app.screen.subject().command()
        line = next(i for i in app.screen.query("#form Input") if i.name == "run")
        line.focus()
        line.value = "longjob/eager"
        await press(pilot, "enter")
        app.choose("longjob/default")
        await settle(pilot)
        return followed, app.screen.subject().command()

    followed, typed = drive(modes, steps, run="longjob/eager")
    assert followed == "traceq query top_kernels --run lone"
    assert typed == "traceq query top_kernels --run longjob/eager"


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_nothing_of_the_run_before_stands_under_the_new_name(modes, number):
    async def steps(app, pilot):
        await press(pilot, str(number))
        panels = [w for w in app.screen.query("#body *") if isinstance(w, Drawn) and w.asked]
        before = [w.copied() for w in panels if w.copied()]
        release = asyncio.Event()
        app.access = Held(app.access, release)
        app.choose("lone")
        await pilot.pause(0.05)
        during = seen(app)
        held = [getattr(w, "rows", None) or getattr(w, "sheet", None) for w in panels]
        release.set()
        await settle(pilot)
        return before, during.splitlines()[1], held

    before, crumbs, held = drive(modes, steps, size=(160, 60), run="longjob/eager")
    assert before
    assert "lone" in crumbs
    assert not any(held)


class Held:
    """A store that does not answer until it is let go."""

    def __init__(self, access, release):
        self._access, self._release = access, release

    def __getattr__(self, name):
        found = getattr(self._access, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def later(*args, **more):
            await self._release.wait()
            return await found(*args, **more)

        return later


@pytest.mark.parametrize("width", [160, 80])
def test_figures_of_two_runs_are_whole_and_say_what_traceq_diff_says(modes, width):
    async def steps(app, pilot):
        await press(pilot, "6")
        panel = app.screen.query_one("#measures")
        return panel.render().plain.splitlines(), panel.content_size.width, panel.rows

    (head, *lines), room, rows = drive(modes, steps, size=(width, 60), run="longjob/eager")
    assert head.split() == ["…eager", "…default", "change", "%"]
    rows = [row for row in rows if row["a"] is not None or row["b"] is not None]
    told = traceq("diff", "longjob/eager", "longjob/default").out
    for line, row in zip(lines, rows, strict=True):
        assert cell_len(line) <= room
        assert line.rstrip().endswith(row["verdict"] or "")
        name = line[: line.index("  ")]
        assert name == row["measure"] or (name.endswith("…") and row["measure"].startswith(name[:-1]))
        if row["delta"]:
            assert f"{row['delta_pct']:+.1f}" in line
        words = [w for w in line.removeprefix(name).split() if w not in "●≈"]
        assert " ".join(words) in " ".join(told.split())


def test_a_gain_and_its_range_stand_on_one_line(store):
    async def steps(app, pilot):
        await press(pilot, "2")
        panel = app.screen.query_one("#verdict")
        mode, expected = next(iter(panel.found.prospects.items()))
        panel.found.expected[mode] = dataclasses.replace(expected, likely=10.26, low=5.15, high=18.32)
        panel.refresh(layout=True)
        await settle(pilot)
        return seen(app)

    assert "10.26×  (5.15 to 18.32)" in drive(store, steps, size=(160, 45), run="eager")


def test_a_row_without_room_ends_in_an_ellipsis(store):
    async def steps(app, pilot):
        await press(pilot, "6")
        panel = app.screen.query_one("#measures")
        return panel.render().plain.splitlines(), panel.content_size.width

    lines, width = drive(store, steps, size=(40, 24))
    assert [line for line in lines[1:] if not (len(line) == width and line.endswith("…"))] == []


def test_a_kernel_opens_on_its_launches_and_its_ncu_command_is_copied(store):
    async def steps(app, pilot):
        await press(pilot, "3", "enter")
        name = app.screen._kernel
        launches = app.screen.query_one("#launches", Grid).count
        app.screen.query_one("#ncu", Prose).focus()
        await press(pilot, "y")
        return type(app.screen), name, launches, app.clipboard

    screen, name, launches, copied = drive(store, steps, size=(120, 40), run="eager")
    assert screen is Kernel
    assert launches == len(answers_of("kernel_launches", name))
    assert copied == answers_of("ncu_command", name)[0]["command"]
    assert copied.startswith("ncu --set full")


def test_the_source_that_capture_kept_stands_beside_the_launches(tmp_path):
    """A record as `traceq capture` writes it beside the trace."""
    trace = tmp_path / "captured.json.gz"
    shutil.copy(FIXTURES / "h200" / "usertriton__triton.json.gz", trace)
    source = {"kernel": KERNEL, "language": "triton", "source": "@triton.jit\ndef [/bold] swish(x):\n    pass\n"}
    facts = {"graph_breaks": [], "recompiles": [], "compile_phases": [], "kernel_sources": [source]}
    record = {"format": "traceq-capture", "version": 1, "label": "captured", "trace": trace.name, "facts": facts}
    (tmp_path / "captured.capture.json").write_text(json.dumps(record))
    outcomes, _ = ingest([str(trace)], tmp_path / "captured.duckdb", Options())
    assert [o.error for o in outcomes] == [None]

    async def steps(app, pilot):
        app.push_screen(Kernel(KERNEL, app.run_label))
        await settle(pilot)
        return seen(app)

    text = drive(tmp_path / "captured.duckdb", steps, size=(140, 40))
    assert "@triton.jit" in text
    assert "def [/bold] swish(x):" in text


def answers_of(query, name):
    done = traceq("query", query, "--run", "eager", "-p", f"name={name}", "-p", "top=NULL", "--json")
    return json.loads(done.out)["rows"]


def test_a_filter_that_finds_nothing_says_so(store):
    async def steps(app, pilot):
        await press(pilot, "3", "slash", *"zzz")
        return seen(app)

    assert "no row has 'zzz': esc clears the filter" in drive(store, steps, run="eager")


def test_a_form_asks_again_with_other_values_and_tells_bad_ones(store):
    async def steps(app, pilot):
        app.open_question("top_kernels")
        await settle(pilot)
        line = next(i for i in app.screen.query("#form Input") if i.name == "top")
        line.focus()
        line.value = "3"
        await press(pilot, "enter")
        three, command = app.screen.query_one(Grid).count, app.screen.subject().command()
        line.focus()
        line.value = "many"
        await press(pilot, "enter")
        return three, command, seen(app)

    three, command, text = drive(store, steps, size=(120, 40), run="eager")
    assert three == 3
    assert command == "traceq query top_kernels --run eager -p top=3"
    assert "top='many' is no BIGINT" in text


def test_a_run_without_gpu_work_is_explained(tmp_path):
    case = FIXTURES / "cases" / "hand-33-launches-but-no-kernels" / "input.json"
    ingest([str(case)], tmp_path / "cpu.duckdb", Options(label="cpu"))

    async def steps(app, pilot):
        await press(pilot, "2")
        return seen(app)

    text = drive(tmp_path / "cpu.duckdb", steps, size=(110, 24))
    assert "cpu has no GPU work" in text
    assert "ProfilerActivity.CUDA" in text


def test_hostile_names_are_shown_as_they_are(tmp_path):
    case = FIXTURES / "cases" / "hand-69-tui-names-that-look-like-markup" / "input.json"
    names = {e["name"] for e in json.loads(case.read_text())["traceEvents"] if e.get("cat") == "kernel"}
    ingest([str(case)], tmp_path / "hostile.duckdb", Options(label="[/bold] a[/"))

    async def steps(app, pilot):
        await press(pilot, "3")
        kernels = seen(app)
        await press(pilot, "ctrl+p", *"Run", "colon")
        await pilot.pause(0.6)  # the palette gathers what it finds
        return kernels, seen(app)

    kernels, palette = drive(tmp_path / "hostile.duckdb", steps, size=(250, 40))
    assert [name for name in names if name not in kernels] == []
    assert "Run: [/bold] a[/" in palette


def test_no_colour_leaves_no_colour(store, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    drawn = picture(store, ["2"], (80, 24))
    colours = {c.lower() for c in re.findall(r"#[0-9a-fA-F]{6}", drawn)} - {"#ff5f57", "#febc2e", "#28c840"}
    assert all(c[1:3] == c[3:5] == c[5:7] for c in colours if c not in WINDOW)


def test_a_mark_cuts_no_label(store):
    async def steps(app, pilot):
        await press(pilot, "1", "home", "space", "down", "space")
        return seen(app), [row["run"] for row in app.runs]

    text, labels = drive(store, steps, size=(80, 24))
    assert f"a {labels[0]} " in text
    assert f"b {labels[1]} " in text


def test_a_comparison_begins_with_its_sentence(store):
    async def steps(app, pilot):
        await press(pilot, "6")
        await pilot.pause(0.1)
        return seen(app).splitlines()[2]

    assert drive(store, steps, size=(80, 24)).lstrip()[0] in "▼▲=?"


@pytest.mark.parametrize("number", [n for n in SCREENS if n != 7])  # there the editor has the letters
def test_the_keys_that_explain_the_others_are_in_sight_in_forty_columns(store, number):
    async def steps(app, pilot):
        await press(pilot, str(number))
        return seen(app).splitlines()[-1]

    assert "? Help  q Quit" in drive(store, steps, size=(40, 12))


@pytest.mark.parametrize("number", [2, 3, 4, 6])
def test_what_a_panel_draws_fits_it(store, number):
    async def steps(app, pilot):
        await press(pilot, str(number))
        panels = [p for p in app.screen.query(Answer) if p.rows and not p._is_prose() and p.content_size.width]
        return [
            (panel.id, line)
            for panel in panels
            for line in panel.draw(*panel.content_size).plain.splitlines()
            if cell_len(line.rstrip()) > panel.content_size.width
        ]

    assert drive(store, steps, size=(80, 60)) == []


def test_the_hint_of_a_fault_stands_below_it():
    panel = Bars("Shares", "name", "share")
    panel.fail("no \x1b step\nhint: record three")
    assert panel.render().plain == "no \\x1b step\nhint: record three"


def test_rows_of_bars_are_cut_and_not_wrapped(store):
    async def steps(app, pilot):
        await press(pilot, "4")
        causes = app.screen.query_one("#causes")
        return causes.render().plain.splitlines(), causes.rows, causes.content_size.width

    lines, rows, width = drive(store, steps, size=(40, 24))
    assert len(lines) == 1 + len(rows)
    assert max(map(len, lines)) <= width


WINDOW = {"#292929", "#c5c8c6"}  # the frame that the export draws around the screen


if __name__ == "__main__":
    import tempfile

    SNAPSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.pop("TRACEQ_STORE", None)
        os.environ["XDG_STATE_HOME"] = folder
        make(Path(folder))
        for name in sys.argv[1:] or KEYS:
            for size in SIZES:
                (SNAPSHOTS / f"{name}-{size}.svg").write_text(picture(Path("traceq.duckdb"), KEYS[name], SIZES[size]))
