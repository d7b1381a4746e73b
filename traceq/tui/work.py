"""Work in the background of a widget or screen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from textual.dom import DOMNode


def background(node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
    """Do `work` while the node lives; a newer one of the group ends it.

    A function and no coroutine: one that is cancelled before it begins would be said to have been forgotten.
    """
    node.run_worker(cast(Any, work), group=group, exclusive=True)
