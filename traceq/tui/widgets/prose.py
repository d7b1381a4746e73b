"""Values as running text: a command line ready to copy, the source of a kernel."""

from __future__ import annotations

from rich.text import Text

from traceq.show.text import UNSAFE
from traceq.tui.widgets.answer import Answer


class Prose(Answer):
    """The column `column`, a line each row, wrapped; `y` copies exactly it. `language` is what it is coloured as."""

    DEFAULT_CSS = """
    Prose { overflow-y: auto; }
    """

    def __init__(self, title: str, column: str, language: str = "", id: str | None = None, empty: str = "–") -> None:
        super().__init__(title, id, empty)
        self._column, self._language = column, language

    def draw(self, width: int, height: int) -> Text:
        """The text, harmless to the terminal."""
        text = "\n".join(UNSAFE.sub("�", line.expandtabs(4)) for line in self.copied().split("\n"))
        if not self._language:
            return Text(text, overflow="fold")
        from rich.syntax import Syntax

        theme = "ansi_dark" if self.app.current_theme.dark else "ansi_light"
        found = Syntax(text, self._language, theme=theme, background_color="default").highlight(text)
        found.no_wrap = True
        return found

    def copied(self) -> str:
        """The value as it is."""
        return "\n".join(str(row[self._column]) for row in self.rows)

    def _is_prose(self) -> bool:
        return True
