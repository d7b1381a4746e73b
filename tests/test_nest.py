"""Nesting: the linear pass against what it should find, told by looking at every pair of rows."""

from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceq.ingest.nest import ROOT_MARK, Nesting

INTERVAL, CALL, EVENT = 0, 1, 2
NONE = -1
MARKS = st.sampled_from([0, 0, 0, 1, 2, 4, ROOT_MARK, ROOT_MARK | 1])
# Few distinct times: rows touch, cross, repeat and last for no time at all.
ROW = st.tuples(
    st.sampled_from([INTERVAL, INTERVAL, INTERVAL, CALL, EVENT]),
    st.integers(1, 3),
    st.integers(0, 12),
    st.integers(0, 8),
    MARKS,
)


def as_fed(rows):
    """Rows (kind, lane, start, length, marks) with ids, in the order in which the pass gets them."""
    numbered = [
        (kind, number, lane, start, start + (length if kind == INTERVAL else 0), marks if kind == INTERVAL else 0)
        for number, (kind, lane, start, length, marks) in enumerate(rows)
    ]
    return sorted(numbered, key=lambda r: (r[2], r[3], r[0], -r[4], r[1]))


def naive(fed):
    """({interval: (parent, depth, own time, clipped end, root, marks)}, {point: (holder, marks)}, clipped)."""
    seen, ends, found, points, clipped = [], {}, {}, {}, 0
    for kind, number, lane, start, end, marks in fed:
        around = [row for row in seen if row[2] == lane and ends[row[1]] > start]  # outermost first
        inherited = [row[5] for row in around]
        if kind != INTERVAL:
            if around:
                points[kind, number] = (around[-1][1], union_of(inherited))
            continue
        ends[number] = min([end, *(ends[row[1]] for row in around)])
        clipped += ends[number] < end
        roots = [row[1] for row in [*around, (kind, number, lane, start, end, marks)] if row[5] & ROOT_MARK]
        parent = around[-1][1] if around else NONE
        own = ends[number] - start
        found[number] = [parent, len(around), own, ends[number], (roots or [NONE])[-1], union_of([*inherited, marks])]
        if around:
            found[parent][2] -= own
        seen.append((kind, number, lane, start, end, marks))
    return {number: tuple(values) for number, values in found.items()}, points, clipped


def union_of(marks):
    total = 0
    for mark in marks:
        total |= mark
    return total


def walked(fed, size):
    """The same of the pass, fed in batches of a size."""
    nesting = Nesting()
    closed, points = [], []
    for some_closed, some_points in nesting.walk(fed[n : n + size] for n in range(0, len(fed), size)):
        closed += some_closed
        points += some_points
    intervals = {number: (*rest[:5], rest[5]) for number, *rest in closed}
    assert len(intervals) == len(closed)
    where = {number: (lane, start) for _, number, lane, start, _, _ in fed}
    assert {number: tuple(rest[6:]) for number, *rest in closed} == {n: where[n] for n in intervals}
    return intervals, {(kind, number): (holder, marks) for kind, number, holder, marks in points}, nesting.clipped


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@given(st.lists(ROW, max_size=40))
@example(
    [(INTERVAL, 1, 0, 8, 0), (INTERVAL, 1, 0, 8, 0), (INTERVAL, 1, 4, 8, 0), (CALL, 1, 4, 0, 0)]
)  # equal, crossing
@example([(INTERVAL, 1, 0, 5, ROOT_MARK), (INTERVAL, 1, 5, 5, 0), (CALL, 1, 5, 0, 0), (EVENT, 1, 10, 0, 0)])  # touching
@example([(INTERVAL, 1, 3, 0, 1), (CALL, 1, 3, 0, 0), (INTERVAL, 1, 3, 0, 0), (INTERVAL, 1, 0, 3, 0)])  # of length zero
@example([(INTERVAL, 1, 0, 8, 1), (CALL, 2, 4, 0, 0), (INTERVAL, 2, 0, 3, 0)])  # another thread
def test_the_pass_finds_what_pairs_of_rows_say(size, rows):
    fed = as_fed(rows)
    assert walked(fed, size) == naive(fed)


@given(st.lists(ROW, max_size=40))
def test_own_times_sum_to_covered_time(rows):
    fed = as_fed(rows)
    intervals, _, _ = walked(fed, 1000)
    starts = {number: (lane, start) for kind, number, lane, start, _, _ in fed if kind == INTERVAL}
    covered = {
        (lane, moment)
        for number, (_, _, _, end, _, _) in intervals.items()
        for lane, start in [starts[number]]
        for moment in range(start, end)
    }
    assert sum(own for _, _, own, _, _, _ in intervals.values()) == len(covered)
    assert all(own >= 0 for _, _, own, _, _, _ in intervals.values())


@given(st.lists(ROW, max_size=40))
def test_a_child_lies_in_its_parent(rows):
    fed = as_fed(rows)
    intervals, points, _ = walked(fed, 1000)
    where = {(kind, number): (lane, start) for kind, number, lane, start, _, _ in fed}
    inside = [((INTERVAL, n), found[0], found[3]) for n, found in intervals.items() if found[0] != NONE]
    inside += [(point, holder, where[point][1]) for point, (holder, _) in points.items()]
    for row, holder, end in inside:
        lane, start = where[row]
        assert where[INTERVAL, holder][0] == lane
        assert where[INTERVAL, holder][1] <= start
        assert end <= intervals[holder][3]


def test_nothing_in_gives_nothing_out():
    assert list(chain.from_iterable(Nesting().walk([]))) == [[], []]
