"""The same app in a browser: textual-serve starts one for each page that is opened."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from traceq.errors import Status, TraceqError


def serve(store: Path, run: str | None, host: str, port: int) -> None:
    """Serve until interrupted."""
    try:
        from textual_serve.server import Server
    except ImportError as error:
        what = "--serve needs textual-serve, which is not installed"
        raise TraceqError(what, "install traceq-gpu[web]", Status.USAGE) from error
    words = [sys.executable, "-m", "traceq", "tui", str(store.absolute()), *(["--run", run] if run else [])]
    Server(shlex.join(words), host=host, port=port, title="traceq").serve()
