"""The traces at hand, and one store of each for all tests that only read it.

The traces recorded elsewhere lie in `shared/data` beside the checkout and are no part of the project; the tests of them
skip where it is absent.
"""

import hashlib
import os
import sys
from pathlib import Path

import pytest
from cases import Case
from clirun import shared

from traceq.store.files import open_store

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHARED = Path(__file__).parents[2] / "shared"
RECORDED = SHARED / "data"
LONG = "gptlong"  # the largest trace
SLOW = bool(os.environ.get("TRACEQ_SLOW"))
sys.path.append(str(Path(__file__).parent / "golden"))

absent = pytest.mark.skip(reason="the recorded traces are not here")
slow = pytest.mark.skipif(not SLOW, reason="TRACEQ_SLOW is not set")
needs_recorded = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded traces are not here")


def recorded(pattern="**/*.json.gz"):
    """The traces recorded elsewhere, from the largest on."""
    return largest_first(RECORDED.glob(pattern))


def largest_first(paths):
    return sorted(paths, key=lambda p: (-p.stat().st_size, p))


def parameters(paths, root):
    """Parameters of a test for each path, named by their place in `root`; one that is skipped where there is none."""
    return [pytest.param(p, id=str(p.relative_to(root))) for p in largest_first(paths)] or [
        pytest.param(None, marks=absent)
    ]


def expensive(parameter):
    """Leave out what takes long, unless it is asked for."""
    (path,) = parameter.values
    if path is None or LONG not in path.name:
        return parameter
    return pytest.param(path, id=parameter.id, marks=slow)


def name_of(path):
    """A short name of a recorded trace."""
    return str(path.relative_to(RECORDED)).removesuffix(".json.gz")


class Stored(Case):
    """A case that is in a store already."""

    def __init__(self, path, store):
        self.paths, self.outcomes, self._asked = [path], [], {}
        self.con = open_store(store)


def digest(path):
    """What tells a file's content from others."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def stored(path, tmp_path_factory):
    """A trace in a store of its own, which is made once for all tests and workers."""

    def make(folder):
        with Case([path], folder / "store.duckdb") as case:
            assert [o.error for o in case.outcomes] == [None]

    return Stored(path, shared(tmp_path_factory, f"trace-{digest(path)}", make) / "store.duckdb")
