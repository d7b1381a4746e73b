"""The process that runs the user's script: started as `python child.py SPEC.json`, so that it is its own small program.

Under nsys the script's standard output and error come as two more numbers: those streams are for what nsys says itself.
Nothing but what a plain Python has loaded may be imported before `main`: the script may bring modules of any name.
"""

from __future__ import annotations

import os
import sys

AT_START = frozenset(sys.modules)


def _own_imports() -> None:
    """Load traceq even where only the parent's folder made it importable, and leave the path as it was."""
    if not sys.flags.safe_path:
        sys.path.pop(0)  # the folder of this file
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)).rpartition("traceq")[0])
    import traceq.capture.session  # noqa: F401

    sys.path.pop(0)


def main(spec_path: str, *streams: str) -> None:
    """Run the script of the spec and end as it ends."""
    for number, kept in enumerate(map(int, streams), 1):
        os.dup2(kept, number)
        os.close(kept)
    _own_imports()
    from traceq.capture.session import run

    run(spec_path, AT_START)


if __name__ == "__main__":
    main(*sys.argv[1:])
