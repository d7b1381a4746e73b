"""The command palette: screens, runs, questions and actions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from traceq.show.text import printable

if TYPE_CHECKING:
    from traceq.tui.app import TraceqApp


class Palette(Provider):
    """Everything that has a name. Names of runs are other people's text: they go into a `Content`, not into markup."""

    async def discover(self) -> Hits:
        """All of it, before anything was typed."""
        for name, help_text, action in self._entries():
            yield DiscoveryHit(Content(name), action, text=name, help=help_text)

    async def search(self, query: str) -> Hits:
        """What matches."""
        matcher = self.matcher(query)
        for name, help_text, action in self._entries():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, Content(name), action, text=name, help=help_text)  # highlight() reads markup

    def _entries(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        from traceq import query

        app = cast("TraceqApp", self.app)
        for _, name, title in app.tabs:
            yield f"Screen: {title}", "Go there", partial(app.action_go, name)
        for row in app.runs:
            yield f"Run: {printable(str(row['run']))}", "Look at this run", partial(app.choose, str(row["run"]))
        yield "Reload the store", "Close it and read it anew", app.action_reload
        for question in query.all_queries():
            name = f"Question: {question.title} ({question.name})"
            yield name, question.what, partial(app.open_question, question.name)
