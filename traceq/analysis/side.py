"""One run, per step: where its time goes on the profiled clock, and how long a step takes without the profiler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import duckdb

from traceq.analysis import stats
from traceq.analysis.ask import Row, ask
from traceq.analysis.constants import HEAVY, OWN_KERNELS_PCT
from traceq.analysis.match import Kernel
from traceq.analysis.shares import per_step, split

Lane = tuple[int | None, int | None]
Place = tuple[str, str]
EXACT = ("peak_memory_bytes",)  # counted by the allocator, the same each time: one measurement tells it


@dataclass(frozen=True)
class Gpu:
    """One GPU of one rank, in whole ns of a mean period."""

    period_ns: int
    busy_ns: int
    comm_ns: int


@dataclass(frozen=True)
class Side:
    """One run, per step: `parts` (by part and what) sum to `period_ns`; None where there are no periods."""

    label: str
    facts: Row
    steps: Sequence[Row]
    skipped: tuple[int, ...]
    periods: int
    period_ns: int | None
    busy_ns: int | None
    parts: Mapping[Place, int]
    kernels: Sequence[Kernel]
    gpus: Mapping[Lane, Gpu]
    timed: Mapping[str, Sequence[float]]

    @property
    def step(self) -> stats.Estimate | None:
        return self.estimate("step", "pipelined")

    @property
    def synced(self) -> stats.Estimate | None:
        return self.estimate("synced", "synced")

    @property
    def peer_wait_ns(self) -> int:
        """Of the communication in a period, about how long ranks waited for one another: its share in the steps."""
        comm: int = sum(r["comm_ns"] or 0 for r in self.steps)
        waited: int = sum(r["peer_wait_ns"] or 0 for r in self.steps)
        mean_ns = sum(ns for (part, _), ns in self.parts.items() if part == "comm")
        return mean_ns * waited // comm if comm else 0

    @property
    def is_disturbed(self) -> bool:
        """Whether its un-profiled step times contradict each other."""
        return bool(self.facts["is_disturbed"])

    def estimate(self, column: str, kind: str) -> stats.Estimate | None:
        """An un-profiled step time: of its measurements, where there are some, else as it was told."""
        if len(self.timed.get(kind, ())) > 1:
            return stats.bootstrap_median(self.timed[kind])
        value, low, high = (self.facts[f"{column}{end}_ns"] for end in ("", "_low", "_high"))
        return None if value is None else stats.Estimate(value, low, high)


def told(facts: Row, column: str) -> stats.Estimate | None:
    """A figure that a run has once; without an interval unless it is the same each time."""
    value = facts[column]
    if value is None:
        return None
    return stats.Estimate(value, value, value) if column in EXACT else stats.Estimate(value)


def warm_up(con: duckdb.DuckDBPyConnection, run: str) -> tuple[int, ...]:
    """Steps at the beginning that are unlike all later ones: warm-up, or the search for the fastest kernel."""
    rows = ask(con, "unlike_steps", run=run)
    ranks: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        ranks[row["rank"]].append(row)
    found: set[int] = set()
    for mine in ranks.values():
        unlike = [(row["own_pct"] or 0) > OWN_KERNELS_PCT for row in mine]
        leading = unlike.index(False) if False in unlike else 0
        if len(mine) - leading >= 2:
            found |= {row["step"] for row in mine[:leading]}
    return tuple(sorted(found))


def side_of(con: duckdb.DuckDBPyConnection, facts: Row, by_name: bool, only: set[Lane] | None) -> Side:
    run = facts["run"]
    skipped = warm_up(con, run)
    given = {"run": run, "skip": ",".join(map(str, skipped)) or None, "by_name": by_name}
    ranks = None if only is None else {rank for rank, _ in only}
    rows = [r for r in ask(con, "period_parts", **given) if only is None or (r["rank"], r["device"]) in only]
    totals: dict[Place, int] = defaultdict(int)
    periods = 0
    for row in rows:
        if row["part"] == "period":
            periods += row["steps"]
        else:
            totals[row["part"], row["what"]] += row["total_ns"]
    places = sorted(totals)
    parts = dict(zip(places, per_step([totals[p] for p in places], periods), strict=True)) if periods else {}
    kernels = [r for r in ask(con, "period_kernels", **given) if only is None or (r["rank"], r["device"]) in only]
    return Side(
        label=run,
        facts=facts,
        steps=[r for r in ask(con, "step_measures", **given) if ranks is None or r["rank"] in ranks],
        skipped=skipped,
        periods=periods,
        period_ns=sum(parts.values()) if parts else None,
        busy_ns=sum(ns for (part, _), ns in parts.items() if part != "idle") if parts else None,
        parts=parts,
        kernels=_kernels(kernels, parts, periods) if parts else (),
        gpus={lane: _gpu([r for r in rows if (r["rank"], r["device"]) == lane]) for lane in _lanes(rows)},
        timed=timed(con, run),
    )


def _lanes(rows: Sequence[Row]) -> list[Lane]:
    return list(dict.fromkeys((r["rank"], r["device"]) for r in rows))


def _gpu(rows: Sequence[Row]) -> Gpu:
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[row["part"]] += row["total_ns"]
    steps = sum(row["steps"] for row in rows if row["part"] == "period")
    period, idle, comm = (round(Fraction(totals[part], steps)) for part in ("period", "idle", "comm"))
    return Gpu(period, period - idle, comm)


def timed(con: duckdb.DuckDBPyConnection, run: str) -> dict[str, list[float]]:
    """The un-profiled measurements of a step, by kind."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in ask(con, "timings", run=run):
        found[row["kind"]].append(row["step_ns"])
    return found


def part_of(category: str) -> str:
    """The part of a period that a kernel of `category` is in."""
    return "heavy" if category in HEAVY else "comm" if category == "comm" else "fusible"


def _kernels(rows: Sequence[Row], parts: Mapping[Place, int], periods: int) -> list[Kernel]:
    """The kernels of a step; those of a category sum to its part."""
    by_category: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_category[row["category"]].append(row)
    made = []
    for category, mine in by_category.items():
        shares = split(parts.get((part_of(category), category), 0), [r["total_ns"] for r in mine])
        made += [
            Kernel(
                category, r["origin"], r["name"] or "", r["short_name"] or "", r["phase"], r["op"], r["module"],
                r["shapes"], r["types"], Fraction(r["kernels"], periods), ns, r["largest"], r["elements"],
                r["mean_start_ns"],
            )
            for r, ns in zip(mine, shares, strict=True)
        ]  # fmt: skip
    return made


def unprofiled(side: Side, rows: Sequence[tuple[Place, int]]) -> list[int | None]:
    """The parts of the un-profiled step: busy as traced, the rest idle by the trace's causes; last what does not fit.

    The GPU's own work is not slowed by profiling, the host is; and so is a rank that waits for another: that time is
    taken like idle time. Where busy exceeds the step no idle time is left.
    """
    if side.step is None or side.busy_ns is None:
        return [None] * (len(rows) + 1)
    waiting = split(side.peer_wait_ns, [ns if part == "comm" else 0 for (part, _), ns in rows])
    idle = [ns if part == "idle" else wait for ((part, _), ns), wait in zip(rows, waiting, strict=True)]
    busy = [ns - slack for (_, ns), slack in zip(rows, idle, strict=True)]
    left = round(side.step.value) - sum(busy)
    shares = split(left, idle) if left > 0 and any(idle) else [0] * len(rows)
    return [*(ns + share for ns, share in zip(busy, shares, strict=True)), left - sum(shares)]
