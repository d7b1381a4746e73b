"""The one exception that reaches a user, and the exit statuses it may carry."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Exit statuses of every command; scripts depend on them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INPUT = 3
    STORE = 4
    THRESHOLD = 5
    PARTIAL = 6
    INTERNAL = 70
    INTERRUPTED = 130


class TraceqError(Exception):
    """A fault told in one line: `message` names the file, the place and the reason, `hint` the command that helps."""

    def __init__(self, message: str, hint: str | None = None, status: Status = Status.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
