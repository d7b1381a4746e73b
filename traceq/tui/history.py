"""The statements that were run, kept in the user's state folder."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

import platformdirs

MOST = 500


class History:
    """Statements from old to new; one that is run again becomes the newest."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or platformdirs.user_state_path("traceq") / "sql_history.jsonl"
        self._place = 0  # how many from the newest; 0 is what is being typed
        self._draft = ""

    def add(self, text: str) -> None:
        """Keep a statement; where nothing can be written, nothing is."""
        self._place = 0
        kept = [other for other in self.texts() if other != text][-(MOST - 1) :]
        lines = "".join(json.dumps(one) + "\n" for one in [*kept, text])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".sql_history")  # for the user's eyes alone
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(lines)
            os.replace(name, self._path)

    def texts(self) -> list[str]:
        """All statements; a line that is none is left out."""
        try:
            lines = self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [text for text in found if isinstance(text, str)]

    def older(self, by: int, now: str) -> str | None:
        """The statement so many older than the one shown; None where there is none. `now` is what stands there."""
        texts = self.texts()
        place = self._place + by
        if not 0 <= place <= len(texts):
            return None
        if self._place == 0:
            self._draft = now
        self._place = place
        return self._draft if place == 0 else texts[-place]
