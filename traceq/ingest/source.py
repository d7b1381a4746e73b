"""The bytes of an input file, decompressed by what they are and not by what the file is called."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from isal import isal_zlib

from traceq.errors import Status, TraceqError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

READ_BYTES = 1 << 18
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
SKIPPABLE = b"\x2a\x4d\x18"  # a zstd frame that holds no data begins with 0x50 to 0x5F and these
TRAILER_BYTES = 8  # checksum and length at the end of a gzip member
FEED_BYTES = 1 << 16
NOT_TRACES = (  # signatures at the start of a file, or of a DuckDB file behind the checksum of its first block
    (b"DUCK", "a DuckDB file", "a store is asked, not ingested: traceq runs --store FILE"),
    (b"SQLite format 3\0", "an SQLite database", "an export of Nsight Systems is read from a file, by its name"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it and ingest the files inside"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first: xz -dk FILE"),
    (b"BZh", "a bzip2 file", "unpack it first: bunzip2 -k FILE"),
    (b"PAR1", "a Parquet file", "of an nsys export (--type parquetdir) name the folder: traceq ingest FOLDER"),
    (b"\xff\xfe", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
)
Progress = Callable[[int, int | None], None]
DAMAGED: Any = (isal_zlib.error, zstd.ZstdError)


class Readable(Protocol):
    """What the cutter of traces needs: up to `size` bytes at a time, empty only at the end."""

    def read(self, size: int) -> bytes: ...


class Source:
    """A stream of decompressed bytes that hashes and counts the raw ones as they pass.

    `cut` says why the data ended early (None while it has not): a gzip or zstd stream that stops in the middle is the
    end of the input, not an error. gzip with any number of members (RFC 1952) and zstd with any number of frames
    (RFC 8878) are told by their first bytes. Raises TraceqError (input) for what cannot be opened, is empty, or is
    known to be something else.
    """

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        self.name = "standard input" if path == "-" else path
        self.cut: str | None = None
        self._raw = _Hashing(path, self.name, progress)
        buffered = io.BufferedReader(self._raw, READ_BYTES)
        head = buffered.peek(16)
        self._stream: Any = buffered
        if not head:
            raise TraceqError(f"{self.name}: the file is empty", "was the recording finished?", Status.INPUT)
        if head.startswith(GZIP):
            self._stream = _Gzip(buffered)
        elif head.startswith(ZSTD) or (head[1:4] == SKIPPABLE and 0x50 <= head[0] <= 0x5F):
            self._stream = zstd.ZstdFile(buffered)
        for magic, what, hint in NOT_TRACES:
            if head.startswith(magic) or (magic == b"DUCK" and head[8:12] == magic):
                raise TraceqError(f"{self.name}: not a trace but {what}", hint, Status.INPUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._raw.close()

    @property
    def raw_bytes(self) -> int:
        """Bytes of the file itself read so far."""
        return self._raw.count

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, empty only at the end; short reads so that damage costs no good bytes."""
        if self.cut:
            return b""
        try:
            return bytes(self._stream.read1(size))
        except EOFError:
            self.cut = "truncated: the compressed data stops in the middle"
        except DAMAGED as error:
            self.cut = f"damaged: the compressed data is wrong from some place on ({error})"
        except OSError as error:
            raise TraceqError(f"{self.name}: {error.strerror or error}", status=Status.INPUT) from error
        return b""

    def sha256(self) -> str:
        """The digest of the whole raw file; what was not read yet is read now."""
        while self._raw.read(READ_BYTES):
            pass
        return self._raw.sha.hexdigest()


class _Gzip:
    """gzip members one after another.

    What a truncated member still gives comes out before EOFError does, which the file objects of gzip and isal do not
    promise.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._pending = b""
        self._member: Any = None

    def read1(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, empty at the end.

        The last bytes of what was read are fed alone, so that a wrong checksum there costs none of the data before it.
        """
        while True:
            if len(self._pending) <= TRAILER_BYTES:
                self._pending += self._file.read1(READ_BYTES)
            if self._member is None:
                self._pending = self._pending.lstrip(b"\0")  # members may be padded with zeros
                if not self._pending:
                    return b""
                self._member = isal_zlib.decompressobj(wbits=31)
            if not self._pending:
                raise EOFError
            data = self._pending[: max(len(self._pending) - TRAILER_BYTES, 0)][:FEED_BYTES] or self._pending
            later = self._pending[len(data) :]
            found: bytes = self._member.decompress(data, size)
            rest: bytes = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            self._pending = rest + later
            if self._member.eof:
                self._member = None
            if found:
                return found


class _Hashing(io.RawIOBase):
    """The file as it lies on disk (or standard input), hashed on the way."""

    def __init__(self, path: str, name: str, progress: Progress | None) -> None:
        self.sha = hashlib.sha256()
        self.count = 0
        self._progress = progress
        if path == "-" and sys.stdin is None:
            raise TraceqError("standard input is closed", _where(name), Status.INPUT)
        try:
            self._file = os.fdopen(os.dup(0), "rb", 0) if path == "-" else io.FileIO(path)
            info = os.fstat(self._file.fileno())
        except OSError as error:
            raise TraceqError(f"{name}: {error.strerror or error}", _where(path), Status.INPUT) from error
        self._total = info.st_size if stat.S_ISREG(info.st_mode) else None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self.sha.update(memoryview(buffer)[:count])
        self.count += count
        if self._progress:
            self._progress(self.count, self._total)
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _where(path: str) -> str | None:
    return None if path == "-" else "traceq ingest PATH… takes files, folders, globs, or - for standard input"


def digest(files: Sequence[Path]) -> str:
    """The sha256 of a file as it lies on disk; of several, that of their digests and names."""
    if len(files) > 1:
        lines = "".join(f"{digest([file])}  {file.name}\n" for file in files)
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    with files[0].open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def path_as_text(path: str | Path) -> str:
    """A file's name as text: bytes of it that are no UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
