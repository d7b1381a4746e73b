"""Cutting the text of a Chrome trace at events, and reading broken text event by event.

A Chrome trace is a JSON object whose `traceEvents` is a list of events, or that list alone; the list alone may end
without its bracket (Trace Event Format, "JSON Array Format"). Everything here is bytes and text: what an event means
is the business of kineto.sql.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traceq.errors import Status, TraceqError
from traceq.ingest.source import Readable

PIECE_BYTES = 1 << 20
LIMIT_BYTES = 64 << 20  # the most that may stand before, behind or between whole events
CARRY_BYTES = 8 << 20  # the longest event that is looked for across cuts in broken text
LOOK_BACK = 1 << 16
BOM = b"\xef\xbb\xbf"
LIST = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
CUT = re.compile(rb"\}\s*,\s*(?=\{)")
KINETO_CUT = b"\n  },\n  {"


class NotATraceError(TraceqError):
    """The file is something else, so that a folder may hold it beside traces."""

    def __init__(
        self, message: str, hint: str = "record one with torch.profiler.profile(...) and export_chrome_trace(PATH)"
    ) -> None:
        super().__init__(message, hint, Status.INPUT)


@dataclass(frozen=True)
class Piece:
    """Whole events without the list's brackets, `at` bytes into the decompressed file.

    `joint` is what stood between this piece and the one before; the `last` one still has the file's tail.
    """

    at: int
    text: bytes
    joint: bytes = b""
    last: bool = False


@dataclass
class Cutter:
    """Iterates over the pieces of a trace; `head` is the text before the list, known once the first piece is out.

    A cut is a guess (`},{` may stand inside a string): it was right if both sides parse as lists.
    """

    file: Readable
    name: str
    piece_bytes: int = PIECE_BYTES
    head: bytes = b""

    def __iter__(self) -> Iterator[Piece]:
        at, rest = self._skip_head()
        joint = b""
        while more := self.file.read(self.piece_bytes):
            rest += more
            if len(rest) < self.piece_bytes or not (found := _last_cut(rest)):
                continue
            end, skip = found
            yield Piece(at, rest[:end], joint)
            at, joint, rest = at + skip, rest[end:skip], rest[skip:]
        yield Piece(at, rest, joint, last=True)

    def _skip_head(self) -> tuple[int, bytes]:
        text, searched, dropped = b"", 0, 0
        while not (found := LIST.search(text, searched)):
            searched = max(0, len(text) - 64)
            if len(text) > LIMIT_BYTES or not (more := self.file.read(self.piece_bytes)):
                raise self._no_list(text)
            if not text and more.startswith(BOM):
                dropped, more = len(BOM), more[len(BOM) :]
            text += more
        self.head = text[: found.start()]
        return dropped + found.end(), text[found.end() :]

    def _no_list(self, text: bytes) -> TraceqError:
        what = "it has no traceEvents list" if text.lstrip()[:1] == b"{" else "it is no JSON"
        seen = f"{len(text):,} bytes looked at"
        return NotATraceError(
            f"{self.name}: not a torch.profiler trace: {what if text.strip() else 'it is empty'} ({seen})"
        )


def _last_cut(text: bytes) -> tuple[int, int] | None:
    """End of the last event that another seems to follow, and where that next one starts."""
    if (at := text.rfind(KINETO_CUT)) > 0:
        return at + 4, at + 5
    if cuts := list(CUT.finditer(text, max(0, len(text) - LOOK_BACK))):
        return cuts[-1].start() + 1, cuts[-1].end()
    return None


DECODER = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=str)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=[:\[,\s])[+-]?(?:infinity|inf|nan|n/a)(?=\s*[,}\]])', re.I | re.S)
ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
CONTROL = re.compile(r"[\x00-\x1f]")
NEXT = re.compile(r'\}\s*,\s*(?=\{\s*"[^"\\]{1,40}"\s*:)')
LIST_END = re.compile(r'\]\s*(?:\Z|,\s*"|\}|[\[{])')
BEFORE_LIST_END = re.compile(r'\}\s*(?=\]\s*(?:\Z|,\s*"|\}\s*\Z))')
BETWEEN = re.compile(r"[\s,]*")
DEBRIS = re.compile(r"[\s,\]}]*")


@dataclass
class Salvage:
    """Events taken one by one from text that did not parse as a list; each is strict JSON text again.

    `lost` has the position of each stretch that is no event (bytes; characters where the text is not ASCII), `repaired`
    counts the strings and numbers put right, `tail` is what follows the list's bracket (None while the list is open)
    and `tail_at` where that is.
    """

    events: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    repaired: int = 0
    tail: str | None = None
    tail_at: int = 0
    _carry: str = ""
    _carry_at: int = 0

    def read(self, piece: Piece, joins_next: bool) -> None:
        """Take the events of `piece`, behind what an earlier piece left over when it was cut inside an event.

        `joins_next`: the piece behind is broken too, so an event that stops at the end of this text may go on there.
        """
        at, text = piece.at, piece.text.decode("utf-8", "replace")
        if self._carry:
            at, text = self._carry_at, self._carry + piece.joint.decode() + text
            self._carry = ""
        text = text.rstrip()
        is_adrift = False  # behind a loss, what looks like the next event may be an object inside the lost one
        pos = _behind(BETWEEN, text, 0)
        while pos < len(text):
            if LIST_END.match(text, pos):
                if not is_adrift or (piece.last and _closes(text, pos)):
                    self.tail, self.tail_at = text[pos + 1 :], at + pos + 1
                    return
                pos = _behind(DEBRIS, text, pos)
                continue
            end, error = self._take(text, pos)
            if error:
                if joins_next and _stops_at_end(text, error) and len(text) - pos < CARRY_BYTES:
                    self._carry, self._carry_at = text[pos:], at + pos
                    return
                self.lost.append(at + pos)
                is_adrift = True
                end = _next_event(text, pos + 1)
            pos = _behind(BETWEEN, text, end)

    def _take(self, text: str, pos: int) -> tuple[int, Exception | None]:
        """Add the event that starts at `pos`; returns where it ends, or why there is none.

        Only the stretch up to the next event is repaired: a quote too many would turn all text behind it inside out.
        """
        try:
            end = DECODER.raw_decode(text, pos)[1]
            self.events.append(TOKEN.sub(self._mend, text[pos:end]))
        except (ValueError, RecursionError) as error:
            until = _next_event(text, pos + 1)
            mended = TOKEN.sub(self._mend, text[pos:until].rstrip().rstrip(","))
            try:
                length = DECODER.raw_decode(mended)[1]
            except (ValueError, RecursionError):
                return pos, error
            if mended[length:].strip():
                return pos, error
            self.events.append(mended)
            return until, None
        return end, None

    def _mend(self, found: re.Match[str]) -> str:
        token = found[0]
        if token[0] != '"':
            mended = "null"
        else:
            mended = ESCAPE.sub(lambda e: e[0] if e[1] else r"\\", token) if "\\" in token else token
            mended = CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", mended)
        self.repaired += mended != token
        return mended


def _behind(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos


def _next_event(text: str, pos: int) -> int:
    """Where reading goes on behind what is no event: at the next event, the list's end, or the end of the text."""
    found = NEXT.search(text, pos) or BEFORE_LIST_END.search(text, pos)
    return found.end() if found else len(text)


def _closes(text: str, pos: int) -> bool:
    """Whether the bracket at `pos` ends the list of events: what follows is the end of a trace."""
    rest = text[pos + 1 :]
    if not rest.strip():
        return True
    try:
        json.loads('{"":[]' + rest, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _stops_at_end(text: str, error: Exception) -> bool:
    """Whether a decoder's complaint is that the text stops, and not that something inside it is wrong."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text)
