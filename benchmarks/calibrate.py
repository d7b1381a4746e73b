"""How advice fares on recorded pairs: the tables of docs/verdict.md.

    python benchmarks/calibrate.py FOLDER             # print the table
    python benchmarks/calibrate.py FOLDER --write     # put it into docs/verdict.md, where FOLDER's name is marked

FOLDER holds NAME__eager.json.gz and NAME__MODE.ref.json with `unprofiled.wall_ms_per_step`, the truth: record_pairs.py
makes both.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from traceq.analysis.advise import Advice, advise
from traceq.analysis.constants import LARGE_FROM, NONE_BELOW
from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import open_store
from traceq.units import parse_duration_ns

PAGE = Path(__file__).parents[1] / "docs" / "verdict.md"
BEGIN, END = "<!-- calibration {}: benchmarks/calibrate.py writes from here -->", "<!-- to here -->"
MODES = {"default": "default", "reduce": "reduce-overhead", "maxauto": "reduce-overhead"}
HEAD = "| program | mode | reached | bound | expected (likely) | in range | class: expected, reached | recommendation |"


def main() -> int:
    """Print or write the table; 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="into docs/verdict.md")
    asked = parser.parse_args()
    lines, broken, _ = table(asked.folder)
    text = "\n".join(lines)
    if asked.write:
        page, begin = PAGE.read_text("utf-8"), BEGIN.format(asked.folder.resolve().name)
        start = page.index(begin) + len(begin)
        end = page.index(END, start)
        PAGE.write_text(f"{page[:start]}\n{text}\n{page[end:]}", "utf-8")
    print(text)
    return 1 if broken else 0


def table(folder: Path) -> tuple[list[str], int, int]:
    """The lines, how many bounds are broken, and how many classes are wrong."""
    programs = pairs(folder)
    lines, broken, wrong, inside, judged = [HEAD, "|---|---|---:|---:|---:|---|---|---|"], 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, times in programs.items():
            found = advice(folder, name, times["eager"], Path(scratch))
            reached = {mode: times["eager"] / ns for mode, ns in times.items() if mode in MODES}
            true_class = class_of(max(reached.values()))
            wrong += found.gain_class != true_class
            for mode, speedup in reached.items():
                e = found.expected[MODES[mode]]
                is_in = e.low <= speedup <= e.high
                broken += speedup > (found.ceilings.both or 0)
                inside += is_in
                judged += 1
                lines.append(row(name, mode, speedup, found, is_in, true_class))
    lines += [
        "",
        f"{judged} modes of {len(programs)} programs: {broken} bounds broken, {inside} of {judged} in the expected "
        f"range, {wrong} of {len(programs)} classes wrong.",
    ]
    return lines, broken, wrong


def row(name: str, mode: str, speedup: float, found: Advice, is_in: bool, true_class: str) -> str:
    e = found.expected[MODES[mode]]
    conditional = " (conditional)" if found.ceilings.conditional else ""
    cells = (
        *(name, mode, f"{speedup:.2f}×", f"{found.ceilings.both:.2f}×{conditional}"),
        f"{e.low:.2f} to {e.high:.2f}× ({e.likely:.2f}×)",
        *("yes" if is_in else "**no**", f"{found.gain_class}, {true_class}", found.recommendation),
    )
    return f"| {' | '.join(cells)} |"


def pairs(folder: Path) -> dict[str, dict[str, float]]:
    """Un-profiled step times by program and mode, of programs recorded eagerly and compiled."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for path in sorted(folder.glob("*__*.ref.json")):
        name, mode = path.name.removesuffix(".ref.json").split("__")
        step = json.loads(path.read_text("utf-8")).get("unprofiled", {}).get("wall_ms_per_step")
        if step:
            found[name][mode] = step
    return {name: times for name, times in found.items() if "eager" in times and MODES.keys() & times.keys()}


def advice(folder: Path, name: str, step_ms: float, scratch: Path) -> Advice:
    """What traceq says from the eager trace alone."""
    store = scratch / f"{name}.duckdb"
    options = Options(label="eager", step_ns=parse_duration_ns(f"{step_ms:.6f}ms"))
    ingest([str(folder / f"{name}__eager.json.gz")], store, options)
    with open_store(store) as con:
        return advise(con, "eager")


def class_of(speedup: float) -> str:
    return "none" if speedup < NONE_BELOW else "large" if speedup > LARGE_FROM else "some"


if __name__ == "__main__":
    sys.exit(main())
