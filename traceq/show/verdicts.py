"""The verdicts for people: a sentence first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from traceq.analysis import tables
from traceq.analysis.advise import Advice, Blocker
from traceq.analysis.check import Judgement
from traceq.analysis.diff import Diff, Part
from traceq.query import Result
from traceq.show.page import LEFT, RIGHT, Page
from traceq.show.palette import colour
from traceq.show.text import printable
from traceq.units import show_change, show_value

GOOD, BAD = "green", "red"
DIRECTIONS = {"faster": GOOD, "slower": BAD}
MOST = 8
SMALL_PCT = 0.5  # rows that change less than this of the larger step are summed up in one line


def diff(found: Diff, page: Page) -> None:
    """Draw a comparison."""
    page.say(found.sentence, f"bold {DIRECTIONS.get(found.direction, '')}".strip())
    page.under(found.also)
    for line in found.caveats:
        page.say(f"note: {line}", "yellow")
    labels = page.heads(found.first.label, found.second.label)
    if any(m.first or m.second for m in found.measures):
        page.title("Per step", "medians; un-profiled times say how fast it is, others are traced")
        _measures(page, found, labels)
    if found.parts:
        page.title("Where the difference comes from", _means(found))
        _parts(page, found, labels)
        _anchor(page, found)
    _gpus(page, tables.gpus(found), labels)
    if shown := tables.categories(found).rows:
        per = found.safe[0]["per"] if found.safe else "step"
        page.title("Kernel time", f"per {per}, by category and origin")
        _categories(page, shown, labels)
    _fused(page, tables.fused(found))
    _unfused(page, tables.unfused(found), dict(zip((found.first.label, found.second.label), labels, strict=True)))
    if found.breaks:
        page.title("Graph breaks", "as captured")
        page.bullets(map(_break, found.breaks))


LOOK = {  # parts of a step in the order in which one should look
    "data": "idle: the input pipeline is late",
    "launch": "idle: the host launches too slowly",
    "sync": "idle: the host had waited for the GPU",
    "other_idle": "idle: other causes",
    "heavy": "matrix products, convolutions, attention, RNNs",
    "fusible": "other kernels, which a compiler can merge",
    "memops": "copies and memsets",
    "comm": "communication, waiting for peers included",
    "other_busy": "replays recorded as a whole, less what runs at the same time",
    "residual": "busy time beyond the step",
}
CLASSES = {"none": "no gain to expect", "some": "some gain to expect", "large": "a large gain to expect"}


def advise(found: Advice, page: Page) -> None:
    """Draw advice."""
    page.say(f"{found.run}: {found.recommendation}: {found.because}", "bold")
    page.under(_gain(found))
    clock = (
        "profiled period: no un-profiled step time is known" if found.is_profiled else "un-profiled step, an estimate"
    )
    page.title("Where the step goes", f"{show_value(found.step_ns, 'ns')}, {clock}")
    rows = [
        [Text(part), Text(show_value(ns, "ns")), Text(f"{100 * ns / found.step_ns:.1f} %"), Text(LOOK[part])]
        for part, ns in found.split_ns.items()
        if ns
    ]
    page.draw([("", LEFT), ("time", RIGHT), ("of step", RIGHT), ("", LEFT)], rows)
    if found.fusible_floor_ns:
        floor = show_value(found.fusible_floor_ns, "ns")
        known = found.fusible_known_pct or 0
        which = "" if known >= 99.5 else f", as far as known (of {known:.0f} % of their time)"
        page.say(f"What the fusible kernels read and write takes {floor} at the memory's peak{which}.")
    _bounds(page, found)
    if found.blockers:
        page.title("What stands in the way", "and caps what to expect")
        page.bullets(map(_blocker, found.blockers))
    for title, lines in (("Evidence", found.evidence), ("Not visible", found.not_visible)):
        page.title(title, "")
        page.bullets(lines)


def _gain(found: Advice) -> list[str]:
    said = [f"{CLASSES[found.gain_class]} from torch.compile; confidence {found.confidence}"]
    if r := found.reached:
        left = f"; {r.left:.2f}× would be left to the bound" if r.left is not None else ""
        said.append(f"{r.run} reached {r.speedup:.2f}×{left}")
    return said


def _bounds(page: Page, found: Advice) -> None:
    page.title("How much faster", "bounds cannot be beaten, expectations are a model's")
    c = found.ceilings
    rows = [
        ["bound, any mode", "", "", _times(c.both), "heavy kernels alone"],
        ["bound, graphs alone", "", "", _times(c.graphs), "these kernels, never idle"],
        ["bound, of GPU busy", "", "", _times(c.fusion_busy), "not of the step"],
    ]
    rows += [
        [f"expected, {mode}", _times(e.low), _times(e.likely), _times(e.high), "of the step"]
        for mode, e in found.prospects.items()
    ]
    heads = [("", LEFT), ("low", RIGHT), ("likely", RIGHT), ("high", RIGHT), ("", LEFT)]
    page.draw(heads, [[Text(cell) for cell in row] for row in rows])
    for reason in c.conditional:
        page.say(f"The bound on any mode is conditional: {reason}.", "yellow")


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}×"


def _blocker(b: Blocker) -> str:
    often = f", {b.per_step:.3g} times a step" if b.per_step else ""
    where = f" ({b.where})" if b.where else ""
    clock = "" if b.kind == "data" else ", profiled"  # that of data is a part of the step as told
    cost = f": {show_value(b.cost_ns, 'ns')} of GPU idle time a step{clock}" if b.cost_ns else ""
    return f"{b.what}{where}{often}{cost}"


STATUSES = {"ok": GOOD, "crossed": BAD, "not judged": "yellow", "not recorded": BAD}
UNSAID = ("within the threshold", "the difference is real")  # of a status that says as much


def check(compared: str, judged: Sequence[Judgement], page: Page) -> None:
    """Draw judgements: those that fail first in words, then all."""
    crossed, unsure, missing = (
        sum(j.status == status for j in judged) for status in ("crossed", "not judged", "not recorded")
    )
    more = [f"{count} {words}" for count, words in ((unsure, "cannot be judged"), (missing, "not recorded")) if count]
    what = f"{crossed} of {len(judged)} thresholds crossed" if crossed else "no threshold is crossed"
    page.say(f"{compared}: {'; '.join([what, *more])}", f"bold {BAD if crossed or missing else GOOD}")
    heads = [
        ("", LEFT),
        ("allowed", LEFT),
        ("base", RIGHT),
        ("new", RIGHT),
        ("change", RIGHT),
        ("%", RIGHT),
        ("", LEFT),
    ]
    rows = []
    for j in judged:
        t, d = j.threshold, j.difference
        values = [Text(show_value(value, j.unit)) for value in (j.base, j.new)]
        pct = "" if j.pct is None else f"{j.pct:+.1f}"
        changed = [Text(show_change(d.value if d else None, j.unit)), Text(pct)]
        reason = "" if j.reason in UNSAID else f" {j.reason}" if j.status == "not recorded" else f": {j.reason}"
        status = Text(f"{j.status}{reason}", STATUSES[j.status])
        rows.append([Text(t.measure), Text(f"{t.kind} {t.text.partition('=')[2]}"), *values, *changed, status])
    page.draw(heads, rows, does_wrap=True)


def _means(found: Diff) -> str:
    counts = [side.periods for side in (found.first, found.second)]
    many = f"{counts[0]}" if counts[0] == counts[1] else f"{counts[0]} and {counts[1]}"
    return f"mean of {many} periods; the parts sum exactly"


def _measures(page: Page, found: Diff, labels: Sequence[str]) -> None:
    heads = [("", LEFT), *((label, RIGHT) for label in labels), ("change", RIGHT), ("%", RIGHT), ("", LEFT)]
    rows: list[list[Text]] = []
    for m in tables.measures(found):
        if m["a"] is None and m["b"] is None:
            continue
        style = _good_or_bad(m["delta"]) if m["verdict"] == "real" else ""
        pct = "" if m["delta_pct"] is None else f"{m['delta_pct']:+.1f}"
        cells = [Text(show_value(m[side], m["unit"])) for side in ("a", "b")]
        changed = [Text(show_change(m["delta"], m["unit"]), style), Text(pct, style)]
        rows.append([Text(m["measure"]), *cells, *changed, Text(m["verdict"] or "")])
    page.draw(heads, rows)


def _parts(page: Page, found: Diff, labels: Sequence[str]) -> None:
    has_estimate = any(p.delta_estimate_ns is not None for p in found.parts)
    is_narrow = page.is_narrow
    heads = [("", LEFT), ("", LEFT), *((label, RIGHT) for label in labels), ("change", RIGHT)]
    if has_estimate:
        heads += [] if is_narrow else [(f"{label}*", RIGHT) for label in labels]
        heads += [("change*", RIGHT)]
    least = max(found.first.period_ns or 0, found.second.period_ns or 0) * SMALL_PCT / 100
    small = [
        p for p in found.parts if p.part != "heavy" and max(abs(p.delta_ns), abs(p.delta_estimate_ns or 0)) < least
    ]
    rows = [_part(p, p.part, p.what, has_estimate, is_narrow) for p in found.parts if p not in small]
    if len(small) == 1:
        rows.append(_part(small[0], small[0].part, small[0].what, has_estimate, is_narrow))
    elif small:
        rows.append(_part(_sum(small), "others", f"{len(small)} that change little", has_estimate, is_narrow))
    rows.append(_part(_sum(found.parts), "sum", "", has_estimate, is_narrow, "bold"))
    page.draw(heads, rows)
    if has_estimate:
        page.say("* of the un-profiled step, an estimate: GPU work as traced, the rest by the trace's causes", "dim")


def _sum(parts: Sequence[Part]) -> Part:
    columns = [[getattr(p, name) for p in parts] for name in ("first_estimate_ns", "second_estimate_ns")]
    estimates = [None if None in column else sum(column) for column in columns]
    return Part("", "", sum(p.first_ns for p in parts), sum(p.second_ns for p in parts), *estimates)


def _part(p: Part, part: str, what: str, has_estimate: bool, is_narrow: bool, style: str = "") -> list[Text]:
    cells = [Text(part, style), Text(what, colour(what) if p.what else style)]
    cells += [Text(show_value(ns, "ns"), style) for ns in (p.first_ns, p.second_ns)]
    cells.append(Text(show_change(p.delta_ns, "ns"), f"{style} {_good_or_bad(p.delta_ns)}".strip()))
    if has_estimate:
        both = () if is_narrow else (p.first_estimate_ns, p.second_estimate_ns)
        delta = p.delta_estimate_ns
        cells += [Text(show_value(ns, "ns"), style) for ns in both]
        cells.append(Text(show_change(delta, "ns"), f"{style} {_good_or_bad(delta)}".strip()))
    return cells


def _anchor(page: Page, found: Diff) -> None:
    anchor = found.anchor
    if anchor is None:
        page.say("Heavy anchor: no matrix, convolution, attention or RNN kernels on either side.")
        return
    times = f"{show_value(anchor.first_ns, 'ns')} → {show_value(anchor.second_ns, 'ns')} a step"
    if anchor.holds:
        page.say(f"Heavy anchor holds: {times}.", GOOD)
        return
    page.say(f"Heavy anchor does not hold: {times}. What changed:", "yellow")
    page.under(anchor.changes)


def _gpus(page: Page, result: Result, labels: Sequence[str]) -> None:
    """Which GPU differs most, where there are several."""
    if len(result.rows) < 2:
        return
    page.title("Each GPU", "busy a period, of it communication; the greatest change first")
    heads = [("rank:GPU", LEFT), *((label, RIGHT) for label in labels), ("change", RIGHT), ("communication", RIGHT)]
    rows = []
    for rank, device, _, _, a, b, delta, *comm in result.rows[:MOST]:
        times = [Text(show_value(ns, "ns")) for ns in (a, b)]
        waits = Text(" → ".join(show_value(ns, "ns") for ns in comm) if any(comm) else "–")
        name = Text(f"{'-' if rank is None else rank}:{device}")
        rows.append([name, *times, Text(show_change(delta, "ns"), _good_or_bad(delta)), waits])
    page.draw(heads, rows)
    _more(page, len(result.rows) - MOST)


def _categories(page: Page, rows: Sequence[tuple[Any, ...]], labels: Sequence[str]) -> None:
    heads = [("", LEFT), ("", LEFT), *((label, RIGHT) for label in labels), ("change", RIGHT), ("kernels", RIGHT)]
    drawn = []
    for category, origin, a, b, delta, m, n in rows[: 2 * MOST]:
        times = [Text(show_value(ns, "ns")) for ns in (a, b)]
        both = [show_value(count, "count") for count in (m, n)]
        counts = both[0] if m == n else " → ".join(both)
        change = Text(show_change(delta, "ns"), _good_or_bad(delta))
        drawn.append([Text(category, colour(category)), Text(origin or ""), *times, change, Text(counts)])
    page.draw(heads, drawn)
    _more(page, len(rows) - 2 * MOST)


FUSED = "by change; shares of kernels of one operator are estimates"


def _fused(page: Page, result: Result) -> None:
    if not result.rows:
        return
    page.title("What was fused", FUSED)
    heads = [("kernel", LEFT), ("its time", RIGHT), ("theirs", RIGHT), ("change", RIGHT), ("replaced", LEFT)]
    rows = []
    for name, _, replaced, count, made, _, was, delta in result.rows[:MOST]:
        times = [Text(show_value(ns, "ns")) for ns in (made, was)]
        change = Text(show_change(delta, "ns"), _good_or_bad(delta))
        rows.append([Text(printable(f"{count:.3g}× {name}")), *times, change, Text(printable(replaced))])
    page.draw(heads, rows, does_wrap=True)
    _more(page, len(result.rows) - MOST)


REASONS = {
    "custom kernel": "your own kernel",
    "custom operator": "custom operator",
    "input copy": "input of a graph",
    "library call": "library call",
    "wrapper": "around a graph",
    "graph break": "graph break",
    "optimizer": "eager optimizer",
    "outside": "not compiled",
}


def _break(row: dict[str, Any]) -> str:
    where = f"{row['file']}:{row['line']}" if row["file"] else "unknown place"
    return f"{row['run']}: {where}: {row['reason']}" + (f" ({row['graphs']} graphs)" if row["graphs"] > 1 else "")


def _unfused(page: Page, result: Result, shown: Mapping[str, str]) -> None:
    if not result.rows:
        return
    page.title("What stayed unfused", "by time in a step, with the likely reason")
    heads = [("kernel", LEFT), ("operator", LEFT), ("time", RIGHT), ("reason", LEFT)]
    rows = [
        [Text(printable(name)), Text(printable(op or "–")), Text(show_value(ns, "ns")), Text(REASONS[reason])]
        for _, name, _, op, reason, _, ns in result.rows[:MOST]
    ]
    if len({run for run, *_ in result.rows}) > 1:
        heads = [("run", LEFT), *heads]
        rows = [[Text(shown[run]), *row] for (run, *_), row in zip(result.rows, rows, strict=False)]
    page.draw(heads, rows)
    _more(page, len(result.rows) - MOST)


# Words and cells ---------------------------------------------------------------------------------------------------


def _more(page: Page, count: int) -> None:
    if count > 0:
        page.say(f"… {count} more (--json has all)", "dim")


def _good_or_bad(delta: float | None) -> str:
    return "" if not delta else GOOD if delta < 0 else BAD
