"""The table worked out by hand in fixtures/made/README.md against what golden/explain.py finds in causes.json.

test_explained.py holds the product to explain.py on the same file.
"""

import re

from recorded import FIXTURES

import explain  # isort: skip

MADE = FIXTURES / "made"
ORIGIN_NS = 1_000_000
LINE = re.compile(r"\| (\d) \| (\d+) \| (\d+) \| ([a-z_0-9, ]+) \| .* \|")


def by_hand():
    """(device, start, end, parts) in ns from the first event."""
    found = map(LINE.fullmatch, (MADE / "README.md").read_text("utf-8").splitlines())
    return [(int(m[1]), ns(m[2]), ns(m[3]), parts(m[4])) for m in found if m]


def ns(us):
    return int(us) * 1000 - ORIGIN_NS


def parts(text):
    words = [part.split(" ") for part in text.split(", ")]
    return [(cause, int(us) * 1000) for cause, us in words]


def test_each_line_adds_up():
    lengths = [end - start for _, start, end, _ in by_hand()]
    assert lengths == [sum(ns for _, ns in some) for *_, some in by_hand()]
    assert len(lengths) == 35


def test_explain_finds_the_same():
    gaps = explain.explain(MADE / "causes.json").device_gaps
    assert [(g.device, g.start, g.end, [(p.cause, p.ns) for p in g.parts]) for g in gaps] == by_hand()
