"""Where the files that ship with traceq lie: inside the wheel, or in the checkout of an editable install."""

from __future__ import annotations

from pathlib import Path

from traceq.errors import Status, TraceqError

PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """The folder `queries` or `demo`.

    In a wheel they are `traceq/_queries` and `traceq/_demo`; an editable install ignores hatch's force-include, so
    there they are the checkout's own `queries` and `fixtures/demo`.
    """
    for place in (PACKAGE / f"_{name}", PACKAGE.parent / name, PACKAGE.parent / "fixtures" / name):
        if place.is_dir():
            return place
    raise TraceqError(f"the folder {name!r} is missing from this installation", "reinstall traceq-gpu", Status.INTERNAL)
