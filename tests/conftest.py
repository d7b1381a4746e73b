"""What several test files share."""

import json
import signal
from pathlib import Path

import pytest
from clirun import shared

from traceq.ingest.pipeline import Options, ingest

# A shell that runs the tests in the background has them ignore Ctrl-C, and with them what they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
TESTS = Path(__file__).parent
FIXTURES = TESTS.parent / "fixtures"


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that the golden rows describe: the runs of golden/store.json, each ingested on its own.

    Made once for all workers of pytest-xdist. Only for reading.
    """

    def make(folder: Path) -> None:
        for run in json.loads((TESTS / "golden" / "store.json").read_text("utf-8")):
            paths = [str(FIXTURES / file) for file in run["files"]]
            options = Options(label=run["label"], step_ns=run.get("step_ns"))
            outcomes, _ = ingest(paths, folder / "store.duckdb", options)
            for outcome in outcomes:
                assert (outcome.result, outcome.run) == ("ingested", run["label"]), outcome

    return shared(tmp_path_factory, "golden", make) / "store.duckdb"


@pytest.fixture(autouse=True)
def _state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the terminal interface remembers is kept out of the home of whoever runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
