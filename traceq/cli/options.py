"""Options that verbs share, and the one writer of results."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click

from traceq.errors import Status, TraceqError
from traceq.query import Result
from traceq.show import formats, narrate
from traceq.store import files, rules

TABLE_ROWS = 50
ENDINGS = {
    ".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".md": "markdown", ".parquet": "parquet", ".xml": "junit",
}  # fmt: skip
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Draw = Callable[[IO[str]], None]


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--store FILE`."""
    text = "The store; else $TRACEQ_STORE, else ./traceq.duckdb."
    return click.option("--store", "store", metavar="FILE", type=click.Path(path_type=Path), help=text)(function)


def rules_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--rules FILE`; else the file in the configuration folder, if there is one."""
    text = "Kernel rules of yours, TOML or CSV; else rules.toml or rules.csv in the configuration folder."
    return click.option(
        "--rules", "rules_file", metavar="FILE", type=click.Path(path_type=Path), default=rules.user_file, help=text
    )(function)


def output_options_with(*formats_too: str) -> Decorator:
    """The options that say how a result is written, and formats of the verb's own; it gets them as one `output`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--format",
            "format_",
            type=click.Choice((*formats.FORMATS, *formats_too)),
            help="How to write; else as -o ends, else a table.",
        )
        @click.option("--json", "is_json", is_flag=True, help="Short for --format json.")
        @click.option(
            "--limit",
            type=click.IntRange(min=-1),
            help=f"At most N rows; -1 for all. A table shows {TABLE_ROWS}, the others all.",
        )
        @click.option("--wide", "is_wide", is_flag=True, help="Draw a table at its full width.")
        @click.option("-o", "--output", "path", metavar="FILE", type=click.Path(path_type=Path), help="Write there.")
        @click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No notes on standard error.")
        @functools.wraps(function)
        def wrapped(
            *args: Any,
            format_: str | None,
            is_json: bool,
            limit: int | None,
            is_wide: bool,
            path: Path | None,
            is_quiet: bool,
            **more: Any,
        ) -> Any:
            known = (*formats.FORMATS, *formats_too)
            ending = ENDINGS.get(path.suffix if path else "", "table")
            chosen = "json" if is_json else format_ or (ending if ending in known else "table")
            output = Output(chosen, limit, is_wide, path, is_quiet)
            return function(*args, output=output, **more)

        return wrapped

    return decorate


output_options = output_options_with()


class Output:
    """How and where a result is written."""

    def __init__(
        self,
        format_: str = "table",
        limit: int | None = None,
        is_wide: bool = False,
        path: Path | None = None,
        is_quiet: bool = False,
    ) -> None:
        self.format = format_
        self.is_wide = is_wide
        self.path = path
        self.is_quiet = is_quiet
        self.asked = limit if limit is not None and limit >= 0 else None
        self.limit = (TABLE_ROWS if format_ == "table" else None) if limit is None else (None if limit < 0 else limit)

    def write(
        self, result: Result, draw: Draw | None = None, own: Mapping[str, Draw] | None = None, **more: object
    ) -> None:
        """Write `result`: a table by `draw`, formats of the verb by `own`. Notes on it go to standard error."""
        hidden: list[str] = []
        is_drawn = (draw and self.format == "table") or self.format in (own or {})
        if self.asked is not None and len(result.rows) > self.asked and not is_drawn:
            result = replace(result, rows=result.rows[: self.asked], truncated=True)
        try:
            if self.format == "parquet":
                with self._bytes() as file:
                    formats.to_parquet(result, file)
            else:
                with self._text() as out:
                    writer = (own or {}).get(self.format) or (draw if self.format == "table" else None)
                    hidden = self._write(result, out, writer, more)
                    out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise TraceqError(f"{self.path or 'standard output'}: {error.strerror}", "is there room?") from error
        if not self.is_quiet:
            self._narrate(result, hidden, bool(more))

    def _write(self, result: Result, out: IO[str], draw: Draw | None, more: dict[str, object]) -> list[str]:
        if draw:
            draw(out)
        elif self.format == "json":
            formats.to_json(result, out, **more)
        elif self.format == "table":
            from traceq.show import table  # it brings rich, which the other formats do without

            return table.show(result, out, self.is_wide)
        else:
            writers = {"jsonl": formats.to_jsonl, "csv": formats.to_csv, "markdown": formats.to_markdown}
            writers[self.format](result, out)
        return []

    def _narrate(self, result: Result, hidden: list[str], has_more: bool) -> None:
        if not result.rows and not has_more:
            narrate.note(f"no rows: none occurred, or it was not recorded (traceq query {result.query} --help)")
        if result.truncated:
            narrate.note(f"the first {len(result.rows):,} rows are shown; --limit -1 shows all")
        if hidden:
            which = f"{len(hidden)} columns do" if len(hidden) > 1 else "a column does"
            narrate.note(f"{which} not fit: {', '.join(hidden)}; --wide or --format csv shows all")
        if self.format != "json":
            narrate.trust(result.trust)

    @contextlib.contextmanager
    def _text(self) -> Iterator[IO[str]]:
        if self.path is None:
            yield sys.stdout
            return
        with self._open("w", encoding="utf-8", errors="replace", newline="") as file:
            yield file

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[IO[bytes]]:
        if self.path is None and sys.stdout.isatty():
            raise TraceqError("Parquet is not for a terminal", "-o FILE.parquet", Status.USAGE)
        if self.path is None:
            yield sys.stdout.buffer
            return
        with self._open("wb") as file:
            yield file

    def _open(self, mode: str, **how: Any) -> Any:
        assert self.path is not None
        if files.is_database(self.path):
            raise TraceqError(f"{self.path}: -o would overwrite a store", "name another file", Status.USAGE)
        try:
            return open(self.path, mode, **how)
        except OSError as error:
            raise TraceqError(
                f"{self.path}: {error.strerror}", "-o names a file that can be written", Status.USAGE
            ) from error
