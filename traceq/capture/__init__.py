"""From a script to evidence: `traceq capture` runs it in a child process, times it, profiles it and ingests the trace.

The parent (`launch`) never imports torch. The child (`child`) runs the script as Python would and, once the script
itself has imported torch, counts its steps (`steps`), times them (`course`) and profiles a few (`profiling`).
"""

from __future__ import annotations

import sys


def step() -> None:
    """Mark the end of a step by hand, for scripts whose steps neither an optimizer nor a module shows.

    Does nothing outside `traceq capture`. The first call makes the marks by hand the only ones.
    """
    counting = sys.modules.get("traceq.capture.steps")
    if counting is not None:
        counting.by_hand()
