"""What a screen shows, and its keys."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from traceq.tui.view import View

SCROLLING = ("scroll_", "page_left", "page_right", "screen.")


class Help(ModalScreen[None]):
    """The help of one screen."""

    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close")]
    CSS = """
    Help { align: center middle; }
    Help > VerticalScroll { width: 76; max-width: 100%; height: 80%; border: round $accent;
        padding: 1 2; background: $surface; }
    """

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        """The screen's own words, then every key that does something there."""
        with VerticalScroll() as box:
            box.border_title = f"{self._view.TITLE} (esc closes)"
            yield Static(self._text())

    def _text(self) -> Text:
        text = Text(f"{self._view.HELP}\n\n")
        keys: dict[str, list[str]] = {}
        for _, binding, is_enabled, _ in self._view.active_bindings.values():
            if is_enabled and binding.description and not binding.action.startswith(SCROLLING):
                keys.setdefault(binding.description, []).append(self.app.get_key_display(binding))
        for description, names in keys.items():
            text.append(f"{' '.join(dict.fromkeys(names)):>16}  ", style="bold")
            text.append(f"{description}\n")
        text.append("\nThe line above the keys is the command that answers the same; Y copies it. ", style="dim")
        text.append("Everything shown is the answer of a file in queries/.", style="dim")
        return text
