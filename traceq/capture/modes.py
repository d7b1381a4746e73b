"""The runs of one command: the script as it is, in several modes, or with one block compiled at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from traceq.capture import compiling, launch
from traceq.capture.distributed import World
from traceq.capture.launch import Ended
from traceq.capture.record import Spec
from traceq.errors import Status, TraceqError

SEED = 0
FOLDER = Path("traces")


@dataclass(frozen=True)
class Campaign:
    """What one command runs: the spec of the script as it is, and the modes it is to be run in.

    `modes` is empty for a plain capture. `output` is where the trace goes, if the user said so.
    """

    spec: Spec
    modes: tuple[str, ...] = ()
    has_blocks: bool = False
    output: Path | None = None
    wants_peaks: bool = True
    world: World | None = None

    def wanted(self, part: str | None) -> Path:
        """The trace's name that one run asks for; `part` is its mode or block."""
        label = "".join(c if c.isprintable() and c != "/" else "-" for c in self.spec.label)
        if self.world:
            return (self.output or FOLDER) / f"{label}-{self.world.job}" / f"rank{self.world.rank}.json.gz"
        name = self.output or FOLDER / f"{label}{launch.ENDING[self.spec.profiler]}"
        if part is None:
            return name
        ending = "".join(name.suffixes[-2:]) if name.suffix == ".gz" else name.suffix
        return name.with_name(f"{name.name.removesuffix(ending)}-{part.replace('/', '-')}{ending}")


def parse(text: str) -> tuple[str, ...]:
    """The modes in `eager,default,…`. Raises TraceqError (usage) for one that does not exist."""
    modes = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for mode in modes:
        if mode not in compiling.MODES:
            raise TraceqError(f"--compare: no mode {mode!r}", f"modes: {', '.join(compiling.MODES)}", Status.USAGE)
    if not modes:
        raise TraceqError("--compare: which modes?", f"modes: {', '.join(compiling.MODES)}", Status.USAGE)
    return modes


def run(campaign: Campaign, announce: Callable[[str, Path], None], heard: list[int]) -> Iterator[tuple[str, Ended]]:
    """Run the children of a campaign one after the other; `announce` is told each label and trace before it runs.

    `heard` gets the signals that ask for an end: after one of them no other child is begun.
    """
    if not campaign.modes:
        yield _run(campaign, None, announce, heard)
        return
    seeded = replace(campaign, spec=replace(campaign.spec, seed=SEED))
    blocks: list[str] = []
    for mode in campaign.modes:
        if heard:
            return
        label, ended = _run(_in(seeded, mode), mode, announce, heard)
        blocks = blocks or (ended.record.blocks if ended.record else [])
        yield label, ended
    for block in blocks if campaign.has_blocks else ():
        if heard:
            return
        part = f"only-{block}"
        yield _run(_in(seeded, "default", block), part, announce, heard)


def _in(campaign: Campaign, mode: str, block: str | None = None) -> Campaign:
    return replace(campaign, spec=replace(campaign.spec, mode=mode, block=block))


def _run(
    campaign: Campaign, part: str | None, announce: Callable[[str, Path], None], heard: list[int]
) -> tuple[str, Ended]:
    files = launch.reserve(campaign.wanted(part), campaign.spec.profiler)
    label = campaign.spec.label if part is None else f"{campaign.spec.label}/{part}"
    announce(label, files.trace)
    return label, launch.run(replace(campaign.spec, label=label), files, campaign.wants_peaks, heard)
