"""The timeline of a long trace, cut once into fine tiles that are then merged into cells of any greater length.

What `timeline_cells` says of neighbouring tiles together is what it would say of them as one cell: lengths and counts
add up, and an item is the only one if all of them have no other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from traceq.tui.access import Access, Asked, Sheet

if TYPE_CHECKING:
    from traceq.query import Result

TILES = 65536
COARSE = 16  # tiles that a coarse one is made of
MERGE = """
SELECT
    run, rank, kind, lane, depth, cell, $start_ns::BIGINT + cell * $cell_ns::BIGINT AS start_ns,
    $cell_ns::BIGINT AS dur_ns, what, what_ns, (sum(what_ns) OVER lanes)::BIGINT AS covered_ns,
    100.0 * (sum(what_ns) OVER lanes) / $cell_ns::BIGINT AS covered_pct, begins, item, name
FROM (
    SELECT
        run, rank, kind, lane, depth, (start_ns - $start_ns::BIGINT) // $cell_ns::BIGINT AS cell, what,
        sum(what_ns)::BIGINT AS what_ns, sum(begins)::BIGINT AS begins,
        CASE WHEN count(item) = count(*) AND min(item) = max(item) THEN min(item) END AS item,
        CASE WHEN count(item) = count(*) AND min(item) = max(item) THEN min(name) END AS name
    FROM {tiles}
    WHERE start_ns >= $start_ns::BIGINT AND start_ns < $start_ns::BIGINT + $cell_ns::BIGINT * $cells::BIGINT
    GROUP BY ALL
)
WINDOW lanes AS (PARTITION BY kind, lane, depth, cell)
ORDER BY kind, lane, depth, cell, what_ns DESC, what
"""


class Tiles:
    """The tiles of one trace, kept by DuckDB on a connection of its own."""

    def __init__(self, access: Access, run: str | None, rank: int | None, duration_ns: int) -> None:
        self.tile_ns = max(-(-duration_ns // TILES), 1)
        self._access = access
        self._asked = Asked(
            "timeline_cells", {"run": run, "rank": rank, "start_ns": 0, "cell_ns": self.tile_ns, "cells": TILES}
        )
        self.is_begun = False
        self.is_settled = asyncio.Event()  # made, or not to be had
        self._sheet: Sheet | None = None

    async def make(self) -> None:
        """Cut the trace; takes as long as reading all of it."""
        from traceq import query

        whole = {"start_ns": 0, "cell_ns": self.tile_ns * COARSE, "cells": TILES // COARSE}
        text = f"CREATE TEMP TABLE coarse AS {MERGE.format(tiles='base')}"
        try:
            sheet = await self._access.sheet(self._asked)
            await sheet.use(lambda con: query.fetch(con, text, whole, None))
            self._sheet = sheet
        finally:
            self.is_settled.set()

    @property
    def is_made(self) -> bool:
        """Whether it can answer."""
        return self._sheet is not None

    def unit(self, cell_ns: int) -> int:
        """What cells of about that length must be a multiple of; 1 where they are finer than tiles."""
        if cell_ns < self.tile_ns:
            return 1
        return self.tile_ns * COARSE if cell_ns >= self.tile_ns * COARSE else self.tile_ns

    async def answer(self, asked: Asked) -> Result:
        """All rows of `timeline_cells`, whose cells are multiples of a tile."""
        from traceq import query

        assert self._sheet
        columns, tiles = self._sheet.columns, "base"
        params = {name: int(str(asked.params[name])) for name in ("start_ns", "cell_ns", "cells")}
        if params["cell_ns"] >= self.tile_ns * COARSE:
            tiles = "coarse"
        text = MERGE.format(tiles=tiles)
        _, rows, _ = await self._sheet.use(lambda con: query.fetch(con, text, params, None))
        return query.Result(asked.query, query.bind(query.load(asked.query), asked.params), columns, rows)

    def close(self) -> None:
        """Let go of the tiles."""
        if self._sheet:
            self._sheet.close()
