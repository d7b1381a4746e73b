"""The stretch of time that a timeline shows, in cells of whole nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Span:
    """`cells` cells of `cell_ns` from `start_ns` on."""

    start_ns: int
    cell_ns: int
    cells: int

    @property
    def dur_ns(self) -> int:
        """Its length."""
        return self.cell_ns * self.cells

    @property
    def end_ns(self) -> int:
        """Where it ends."""
        return self.start_ns + self.dur_ns

    def at(self, cell: int) -> int:
        """Where a cell begins."""
        return self.start_ns + cell * self.cell_ns

    def cell_of(self, ns: int) -> int:
        """The cell of a moment; outside of 0 to `cells` where it is out of sight."""
        return (ns - self.start_ns) // self.cell_ns

    def panned(self, cells: int) -> Span:
        """So many cells later."""
        return replace(self, start_ns=self.start_ns + cells * self.cell_ns)

    def resized(self, cell_ns: int, cell: int) -> Span:
        """With cells of another length, so that the middle of cell number `cell` stays where it is."""
        middle = self.at(cell) + self.cell_ns // 2
        return Span(middle - cell * cell_ns - cell_ns // 2, cell_ns, self.cells)

    def widened(self, cells: int) -> Span:
        """As many cells of the same length."""
        return replace(self, cells=cells)

    def centred(self, ns: int) -> Span:
        """Moved by whole cells so that a moment is in its middle, if it is out of sight."""
        return self if 0 <= self.cell_of(ns) < self.cells else self.panned(self.cell_of(ns) - self.cells // 2)

    def aligned(self, unit_ns: int) -> Span:
        """Begin and length of cells as multiples of `unit_ns`, no shorter than they were."""
        cell_ns = -(-self.cell_ns // unit_ns) * unit_ns
        return Span(self.start_ns // unit_ns * unit_ns, cell_ns, self.cells)

    def within(self, duration_ns: int) -> Span:
        """Moved and cut so that it shows some of a trace of that length, and no more than all of it."""
        cell_ns = min(self.cell_ns, max(-(-duration_ns // self.cells), 1))
        last_ns = max(duration_ns - cell_ns * self.cells, 0)
        return Span(max(0, min(self.start_ns, last_ns)), cell_ns, self.cells)


def fitted(start_ns: int, dur_ns: int, cells: int) -> Span:
    """A span that shows a stretch of time as large as it can."""
    return Span(start_ns, max(-(-dur_ns // cells), 1), cells)
