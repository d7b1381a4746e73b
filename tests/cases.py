"""The example cases: reading the values of an `expected.md`, and how traceq answers each quantity.

fixtures/cases/CONVENTIONS.md defines the quantities. `ANSWERS` has a function for each: it takes a `Case`, whose store
holds the case's files, and the tag of the file that is meant (None: the only one).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from traceq import query as queries
from traceq.ingest.pipeline import Options, ingest
from traceq.store.files import open_store


class Raw(str):
    """Text that goes into a file as it is, JSON or not."""


def dump(value, comma=", ", colon=": "):
    """A value as JSON text; numbers given as Decimal keep all their digits."""
    if isinstance(value, Raw | Decimal):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(k)}{colon}{dump(v, comma, colon)}" for k, v in value.items())
        return f"{{{comma.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


FOLDER = Path(__file__).parents[1] / "fixtures" / "cases"
BLOCK = re.compile(r"^```values\n(.*?)^```$", re.M | re.S)
LINE = re.compile(r"(?P<name>\w+)(?:\.(?P<tag>[\w-]+))? = (?P<value>.+)")
VALUE = re.compile(r"n/a|-?\d+(\.\d+)?|\[(-?\d+(, -?\d+)*)?\]")


def values(text):
    """{(quantity, tag or None): its value as written} of the one `values` block. Raises ValueError for anything odd."""
    (block,) = BLOCK.findall(text)
    found = {}
    for line in block.splitlines():
        parts = LINE.fullmatch(line)
        if not parts or not VALUE.fullmatch(parts["value"]) or parts.group("name", "tag") in found:
            raise ValueError(line)
        found[parts.group("name", "tag")] = parts["value"]
    return found


def written(value, like):
    """`value` as the cases write it, with as many decimals as `like` has."""
    if value is None:
        return "n/a"
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, int):
        return str(value)
    decimals = len(like.partition(".")[2])
    return str(round(Decimal(repr(value)), decimals)) if decimals else repr(value).removesuffix(".0")


def names():
    """The folders of all cases that are here."""
    return sorted(p.name for p in FOLDER.glob("hand-*"))


def inputs(name, made=None):
    """{tag: file} of a case; the tag of a single `input.json` is empty. What a script builds goes to `made`."""
    builder = FOLDER / name / "build_sqlite.py"
    if builder.exists():
        subprocess.run([sys.executable, str(builder), str(made)], check=True)
        return {"": Path(made) / "input.sqlite"}
    return {tag_of(p): p for p in sorted((FOLDER / name).glob("input*"))}


def tag_of(path):
    """What stands behind `input-` in a file's name."""
    return path.name.split(".")[0].removeprefix("input").removeprefix("-")


def expected(name):
    """The text of a case's `expected.md`."""
    return (FOLDER / name / "expected.md").read_text("utf-8")


def remarks(outcome):
    """What the reader says about a file, and about the run it went to."""
    return [*outcome.notes, *([outcome.placed] if outcome.placed else [])]


class Case:
    """Files in a store of their own: what became of each, and a read-only connection (None where nothing came in)."""

    def __init__(self, paths, store, options=None):
        self.paths = list(paths)
        self.outcomes, _ = ingest([str(p) for p in self.paths], store, options or Options())
        self.con = open_store(store) if store.exists() else None
        self._asked = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.con:
            self.con.close()

    @property
    def notes(self):
        """Everything that the reader says about the files, and everything that qualifies the numbers."""
        trust = queries.trust(self.con, []).values() if self.con else []
        return [note for o in self.outcomes for note in remarks(o)] + [note for t in trust for note in t["notes"]]

    def of(self, tag=None):
        """The outcomes of the file with that tag; of all files without one."""
        return [o for o, p in zip(self.outcomes, self.paths, strict=True) if not tag or tag_of(p) == tag]

    def run(self, tag=None):
        """The label of the file with that tag."""
        (found,) = {o.run for o in self.of(tag)}
        return found

    def ask(self, name, **params):
        """The rows of a canned query, as dictionaries."""
        key = (name, *params.items())
        if key not in self._asked:
            query = queries.load(name)
            columns, rows, _ = queries.fetch(self.con, query.sql, queries.bind(query, params), None)
            self._asked[key] = [dict(zip((c.name for c in columns), row, strict=True)) for row in rows]
        return self._asked[key]

    def query(self, name, tag=None):
        """The same for one file."""
        return self.ask(name, run=self.run(tag))

    def diff(self):
        """The rows of `diff_categories`, eager against compiled, or the first file against the last."""
        runs = {tag_of(p): o.run for p, o in zip(self.paths, self.outcomes, strict=True)}
        a, b = runs.get("eager", self.outcomes[0].run), runs.get("compiled", self.outcomes[-1].run)
        return self.ask("diff_categories", a=a, b=b)

    def column(self, sql, tag=None):
        """The first column of a statement, in which `$mine` stands for the trace of one file."""
        mine = self.con.execute("SELECT trace_id FROM labels WHERE run = ?", [self.run(tag)]).fetchall()[0][0]
        return [row[0] for row in self.con.execute(sql, {"mine": mine} if "$mine" in sql else None).fetchall()]

    def one(self, sql, tag=None):
        """The only value of such a statement."""
        (value,) = self.column(sql, tag)
        return value


def _sql(statement):
    return lambda case, tag: case.one(statement, tag)


def _list(statement):
    return lambda case, tag: case.column(statement, tag)


def _total(name):
    """A column of `summary`, over the devices; None where there is none."""

    def answer(case, tag):
        found = [row[name] for row in case.query("summary", tag) if row[name] is not None]
        return sum(found) if found else None

    return answer


def _first(query, name, **where):
    def answer(case, tag):
        for row in case.query(query, tag):
            if where.items() <= row.items():
                return row[name]
        return None

    return answer


def _step_column(name):
    return lambda case, tag: [row[name] for row in case.query("steps", tag)]


def _share(case, tag):
    percent = _first("gemm_share", "gemm_pct_of_kernel", origin="all")(case, tag)
    return None if percent is None else percent / 100


def _events_kept(case, tag):
    return sum(o.kept for o in case.of(tag))


def _kernels_in_file(case, tag):
    return ANSWERS["kernels"](case, tag) + ANSWERS["kernels_bad_time"](case, tag)


def _missing_names(case, _):
    (count,) = set(re.findall(r"(\d+) names? (?:is|are) missing", "\n".join(case.notes)))
    return int(count)


def answer(case, quantity, tag):
    """The answer for a quantity; a tag `devN` asks about one device of the only file."""
    if device := DEVICE.fullmatch(tag or ""):
        return case.one(OF_DEVICE[quantity].format(device=device[1]))
    return ANSWERS[quantity](case, tag)


def _recorded(option):
    return _sql(f"SELECT (metadata->>'$.{option}')::BIGINT FROM traces WHERE trace_id = $mine")


def _diff(name):
    def answer(case, _):
        (row,) = [row for row in case.diff() if row["category"] == "all"]
        return row[name]

    return answer


def _per_step(name):
    def answer(case, tag):
        good = [row[name] for row in case.query("steps", tag) if row["flags"] is None]
        return sum(good) / len(good)

    return answer


KERNELS = "FROM gpu_activities WHERE trace_id = $mine AND kind = 'kernel'"
LATENCY = "FROM launches WHERE trace_id = $mine AND kind = 'kernel'"
# Kernel intervals alone: what is left when copies and fills are not looked at.
KERNEL_GAPS = f"""
WITH ordered AS (
    SELECT device, start_ns, max(start_ns + dur_ns) OVER (
        PARTITION BY device ORDER BY start_ns, dur_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
    {KERNELS} AND dur_ns > 0
)
SELECT start_ns - before_ns FROM ordered WHERE start_ns > before_ns ORDER BY start_ns
"""
DEVICE = re.compile(r"dev(\d+)")
FIRST_LATENCY = f"SELECT min(latency_ns) {LATENCY} GROUP BY call_id ORDER BY min(start_ns)"

ANSWERS = {
    "events_kept": _events_kept,
    "kernels": _total("kernels"),
    "kernels_in_file": _kernels_in_file,
    "kernels_bad_time": _sql(
        "SELECT coalesce(sum(lost), 0)::BIGINT FROM event_counts "
        "WHERE trace_id = $mine AND category IN ('kernel', 'CUPTI_ACTIVITY_KIND_KERNEL')"
    ),
    "kernels_bad_row": lambda case, tag: ANSWERS["kernels_bad_time"](case, tag),
    "missing_names": _missing_names,
    "processes": _sql("SELECT count(*) FROM processes WHERE trace_id = $mine"),
    "kernel_names": _sql(f"SELECT count(DISTINCT name) {KERNELS}"),
    "kernel_time_ns": _total("kernel_ns"),
    "kernel_durations_ns": _list(f"SELECT dur_ns {KERNELS} ORDER BY start_ns, activity_id"),
    "first_kernel_start_ns": _sql(
        f"SELECT min(start_ns) + (SELECT origin_ns FROM traces WHERE trace_id = $mine) {KERNELS}"
    ),
    "gpu_rows": _sql("SELECT count(*) FROM gpu_activities WHERE trace_id = $mine"),
    "gpu_busy_ns": _total("busy_ns"),
    "gpu_span_ns": _total("window_ns"),
    "gaps": lambda case, tag: sum(row["gaps"] for row in case.query("launch_gaps", tag)),
    "gaps_ns": _list("SELECT dur_ns FROM gaps WHERE trace_id = $mine ORDER BY start_ns"),
    "gap_sum_ns": _total("idle_ns"),
    "gap_min_ns": _sql("SELECT min(dur_ns) FROM gaps WHERE trace_id = $mine"),
    "gap_max_ns": lambda case, tag: max(row["max_ns"] for row in case.query("launch_gaps", tag)),
    "kernel_gaps_ns": _list(KERNEL_GAPS),
    "memcpy": _total("memcpys"),
    "memcpy_bytes": _total("memcpy_bytes"),
    "memcpy_time_ns": _total("memcpy_ns"),
    "memset": _total("memsets"),
    "memset_time_ns": _total("memset_ns"),
    "devices": lambda case, tag: len(case.query("summary", tag)),
    "gemm_kernels": _first("gemm_share", "kernels", origin="all"),
    "gemm_time_ns": _first("gemm_share", "gemm_ns", origin="all"),
    "gemm_share": _share,
    "launch_calls": _first("summary", "launches"),
    "graph_launch_calls": _first("summary", "graph_launches"),
    "launch_api_time_ns": _first("summary", "launch_call_ns"),
    "kernels_from_graphs": _sql(f"SELECT count(*) {LATENCY} AND role = 'graph_launch'"),
    "kernels_launched_directly": _sql(f"SELECT count(*) {LATENCY} AND role = 'launch'"),
    "linked_kernels": _sql(f"SELECT count(launch_id) {KERNELS}"),
    "unlinked_kernels": _sql(f"SELECT count(*) {KERNELS} AND launch_id IS NULL"),
    "launch_latency_ns": _list(f"SELECT latency_ns {LATENCY} ORDER BY start_ns, activity_id"),
    "launch_latency_all_ns": _sql(f"SELECT DISTINCT latency_ns {LATENCY}"),
    "first_kernel_latency_ns": _list(FIRST_LATENCY),
    "kernels_before_launch": _first("launch_latency", "before_launch", basis="activity"),
    "cpu_ops": _sql("SELECT count(*) FROM ops WHERE trace_id = $mine"),
    "python_function_events": _sql("SELECT count(*) FROM python_calls WHERE trace_id = $mine"),
    "steps": _first("summary", "steps"),
    "step_ids": _step_column("step"),
    "kernels_by_step": _step_column("kernels"),
    "kernel_time_by_step_ns": _step_column("kernel_ns"),
    "gemm_time_by_step_ns": _step_column("gemm_ns"),
    "per_step_ns": _per_step("kernel_ns"),
    "kernels_per_step": _per_step("kernels"),
    "delta_per_step_ns": _diff("delta_ns"),
    "delta_percent": _diff("delta_pct"),
    "rank": _sql("SELECT rank FROM traces WHERE trace_id = $mine"),
    "world_size": _sql("SELECT world_size FROM traces WHERE trace_id = $mine"),
    "with_stack": _recorded("with_stack"),
    "record_shapes": _recorded("record_shapes"),
    "profile_memory": _recorded("profile_memory"),
}
OF_DEVICE = {
    "gpu_busy_ns": "SELECT sum(dur_ns)::BIGINT FROM gpu_busy WHERE device = {device}",
    "gpu_span_ns": "SELECT max(start_ns + dur_ns) - min(start_ns) FROM gpu_activities WHERE device = {device}",
    "gaps_ns": "SELECT list(dur_ns ORDER BY start_ns) FROM gaps WHERE device = {device}",
}
