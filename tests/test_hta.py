"""Idle time that waits for the host, per stream, against the rule of HTA's `get_idle_time_breakdown`.

The rule: of the rows of a stream in the order of their starts, the idle time before a row is its start minus the end
of the row before it; it is `host_wait` if the call that launched the row started after that end. What HTA calls
`kernel_wait` and `other` is the rest, told apart by length alone (meant as 30 ns, compared with µs, so 30 µs in
effect); traceq asks for causes instead, so only `host_wait` is compared.

Where they may differ, and who is right:

- A call that starts in the very ns in which the row before ends is no wait for HTA (`>`), and one for traceq (DESIGN
  4.6: "at or after"). traceq is right: when the stream ran dry the host had not asked for more. In whole µs it is
  common enough to be seen in two of these traces; there both are compared, with those gaps apart.
- HTA takes every row with a `stream` argument for GPU work: synchronisation records, and on ROCm the API calls
  themselves. traceq is right: these are no work, and as such hide idle time. Here the rule gets GPU work alone.
- HTA makes whole µs of all times, which moves its sums by up to 1 µs a row where a trace has ns. Here the rule gets
  the times as recorded; most of these traces have whole µs, where nothing is rounded.
- Where rows of a stream overlap, the row before need not be the one that ends last: HTA then counts time as idle in
  which the stream was busy, or less than no time. traceq is right to take the union. One stream here has such a row;
  no wait of the host comes of it.
- HTA splits idle time at a row of length zero, and traceq does not. None of these traces has one.
"""

from collections import defaultdict
from itertools import pairwise

import oracle
import pytest
from recorded import RECORDED, name_of, parameters, recorded, stored

WAITS = """
SELECT device, stream, start_ns, sum(ns)::BIGINT FROM stream_idle WHERE part IN ('host', 'launch') GROUP BY ALL
"""
# (waits whose call starts as the row before ends, ns in them); the others have none.
TIED = {
    "public/hta/negative_queue_length/rank0": (2, 74_000),
    "public/hta/old_flows/control": (45, 380_000),
}


def streams(path):
    """{(device, stream): its GPU work by start}, with the calls that launched it."""
    usable = oracle._usable(oracle.load(path))
    calls = [oracle._call(*row) for row in usable if oracle._category(row[0]) in oracle.CALLS]
    found = defaultdict(list)
    for row in usable:
        if activity := oracle._activity(row):
            found[activity["device"], oracle._args(row[0]).get("stream")].append(activity)
    oracle._link([activity for some in found.values() for activity in some], calls)
    return {where: sorted(some, key=lambda a: (a["start"], a["end"])) for where, some in found.items()}


def host_waits(some):
    """[(start, length)] of host_wait by HTA's rule, and of what is none only because call and gap start together."""
    waits, ties = [], []
    for before, row in pairwise(some):
        gap = before["end"], row["start"] - before["end"]
        if gap[1] > 0 and row["call"] and row["call"]["start"] >= before["end"]:
            (waits if row["call"]["start"] > before["end"] else ties).append(gap)
    return waits, ties


def traceq_waits(case, first):
    """The same as traceq has it: the parts of gaps whose launch began in them; `first` is the first start of all."""
    (origin,) = case.con.execute("SELECT coalesce(min(start_ns), 0) FROM gpu_activities").fetchone()
    found = defaultdict(list)
    for device, stream, start, ns in case.con.execute(WAITS).fetchall():
        found[device, stream].append((start - origin + first, ns))
    return {where: sorted(some) for where, some in found.items()}


@pytest.mark.parametrize("path", parameters(recorded("public/hta/**/*.json.gz"), RECORDED))
def test_waits_for_the_host(path, tmp_path_factory):
    work = streams(path)
    by_rule = {where: host_waits(some) for where, some in work.items()}
    first = min((a["start"] for some in work.values() for a in some), default=0)
    with stored(path, tmp_path_factory) as case:
        found = traceq_waits(case, first)
    assert found == {where: sorted(waits + ties) for where, (waits, ties) in by_rule.items() if waits or ties}
    tied = [ns for _, ties in by_rule.values() for _, ns in ties]
    assert (len(tied), sum(tied)) == TIED.get(name_of(path), (0, 0))
