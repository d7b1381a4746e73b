"""Which interval of a host thread lies inside which: one linear pass per thread, whose memory is one batch.

The same pass serves operators, ranges, Python frames and module frames, and tells for every API call and allocator
event which of them it happened in. Only Python can do it: clock noise makes intervals cross, and each clipped end
depends on the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import duckdb

from traceq.ingest import arrow

BATCH_ROWS = 100_000
NOBODY = -1
ROOT_MARK = 8
INTERVAL = 0

Row = tuple[int, int, int, int, int, int]
Held = tuple[list[list[int]], list[tuple[int, int, int, int]]]

THREADS = """
CREATE OR REPLACE TABLE stage.threads AS
SELECT row_number() OVER (ORDER BY pid, tid) AS lane, pid, tid
FROM (
    SELECT pid, tid FROM stage.ops UNION SELECT pid, tid FROM stage.ranges
    UNION SELECT pid, tid FROM stage.calls UNION SELECT pid, tid FROM stage.python_calls
)
"""
# Points (kind > 0) have no length: they only ask what they are in. Of what starts together the longer is outside; a
# point is inside all that starts with it.
FEED = """
SELECT f.kind, f.id, t.lane, f.start_ns, f.end_ns, f.marks
FROM ({}) AS f JOIN stage.threads AS t ON t.pid IS NOT DISTINCT FROM f.pid AND t.tid IS NOT DISTINCT FROM f.tid
ORDER BY t.lane, f.start_ns, f.kind, f.end_ns DESC, f.id
"""
CALLS = """
UNION ALL SELECT 1, call_id, pid, tid, start_ns, start_ns, 0 FROM stage.calls
"""
# The marks are inherited by all inside: 1 backward, 2 optimizer, 4 data loading; 8 is a backward node of its own.
PHASE_MARKS = """
CASE WHEN starts_with(name, 'Optimizer.') AND regexp_matches(name, '^Optimizer\\.(step|zero_grad)#') THEN 2 ELSE 0 END
    + CASE WHEN starts_with(name, 'enumerate(DataLoader)#') THEN 4 ELSE 0 END
"""
OPS = f"""
SELECT 0 AS kind, op_id AS id, pid, tid, start_ns, start_ns + dur_ns AS end_ns,
    CASE WHEN starts_with(name, 'autograd::engine::') OR regexp_matches(name, 'Backward[0-9]*$') THEN 1 ELSE 0 END
    + {PHASE_MARKS}
    + CASE WHEN forward_thread > 0 AND sequence IS NOT NULL THEN {ROOT_MARK} ELSE 0 END AS marks
FROM stage.ops {CALLS}
UNION ALL SELECT 2, event_id, pid, tid, start_ns, start_ns, 0 FROM stage.memory_events
"""
RANGES = f"""
SELECT CASE WHEN dur_ns IS NULL THEN 1 ELSE 0 END AS kind, range_id AS id, pid, tid, start_ns,
    start_ns + coalesce(dur_ns, 0) AS end_ns, {PHASE_MARKS} AS marks
FROM stage.ranges WHERE kind <> 'window'
"""
PYTHON = f"""
SELECT 0 AS kind, call_id AS id, pid, tid, start_ns, start_ns + dur_ns AS end_ns, 0 AS marks
FROM stage.python_calls {CALLS}
"""
# Of the sources of modules the first that a file has: frames of nn.Module, Module Hierarchy, the user's own ranges.
MODULES = """
SELECT 0 AS kind, frame_id AS id, pid, tid, start_ns, end_ns, 0 AS marks FROM stage.module_frames
"""
MODULE_FRAMES = """
CREATE OR REPLACE TABLE stage.module_frames AS
WITH modules AS (
    SELECT call_id AS frame_id, pid, tid, start_ns, start_ns + dur_ns AS end_ns, substr(name, 12) AS name
    FROM stage.python_calls WHERE starts_with(name, 'nn.Module: ')
)
FROM modules
UNION ALL
SELECT range_id, pid, tid, start_ns, start_ns + dur_ns, name
FROM stage.ranges AS r
WHERE
    kind IN ('record_function', 'push_pop') AND dur_ns IS NOT NULL AND NOT EXISTS (FROM modules)
    AND NOT EXISTS (SELECT 1 FROM stage.ops WHERE module IS NOT NULL)
    AND NOT EXISTS (
        FROM stage.step_ranges AS s WHERE s.start_ns = r.start_ns AND s.dur_ns = r.dur_ns AND s.name = r.name
    )
    AND NOT regexp_matches(
        name, '^Optimizer\\..*#|^enumerate\\(DataLoader\\)#|^## Call |^Torch-Compiled Region|\\(dynamo_timed\\)|^nccl:|'
        || '^TorchDynamo|^Pregraph|^AOTDispatcher|^ProfilerStep|^DistributedDataParallel|^dynamo|^inductor'
    )
"""
INTERVAL_COLUMNS = ("id", "parent_id", "depth", "self_ns", "end_ns", "root_id", "marks", "lane", "start_ns")
POINT_COLUMNS = ("kind", "id", "holder_id", "marks")


def nest_ranges(con: duckdb.DuckDBPyConnection) -> int:
    """Fill stage.threads, stage.nested_ranges and stage.inside_ranges; see `nest_rest`."""
    con.execute(THREADS)
    return _nest(con, "ranges", RANGES)


def nest_rest(con: duckdb.DuckDBPyConnection) -> int:
    """Fill stage.nested_<what> and stage.inside_<what> for ops, python_calls and modules; how many of the first two
    were clipped.

    nested_*: id, parent_id (-1: none), depth, self_ns, end_ns (clipped), root_id, marks, lane, start_ns.
    inside_*: kind and id of a point, the id of its innermost interval and the marks it inherits; no row if in none.
    """
    con.execute(MODULE_FRAMES)
    _nest(con, "modules", MODULES)
    return _nest(con, "ops", OPS) + _nest(con, "python_calls", PYTHON)


def _nest(con: duckdb.DuckDBPyConnection, what: str, rows: str) -> int:
    for table, columns in ((f"nested_{what}", INTERVAL_COLUMNS), (f"inside_{what}", POINT_COLUMNS)):
        con.execute(f"CREATE OR REPLACE TABLE stage.{table} ({', '.join(f'{c} BIGINT' for c in columns)})")
    source = con.cursor()
    try:
        source.execute(FEED.format(rows))
        batches = iter(lambda: source.fetchmany(BATCH_ROWS), [])
        nesting = Nesting()
        for closed, points in nesting.walk(batches):
            _insert(con, f"nested_{what}", INTERVAL_COLUMNS, closed)
            _insert(con, f"inside_{what}", POINT_COLUMNS, points)
        return nesting.clipped
    finally:
        source.close()


class Nesting:
    """The pass over one kind of interval; `clipped` counts those that would have outlived what they are inside."""

    def __init__(self) -> None:
        self.clipped = 0

    def walk(self, batches: Iterable[Sequence[Row]]) -> Iterator[Held]:
        """Yields (closed intervals, points) for each batch of rows and once more at the end.

        `batches` hold (kind, id, lane, start, end, marks) by lane, start, kind, longest first, id. An interval that
        has closed is [id, parent, depth, own time, clipped end, root, marks, lane, start]; a point is (kind, id,
        holder, marks).
        """
        stack: list[list[int]] = []
        here = NOBODY
        for batch in batches:
            closed: list[list[int]] = []
            points: list[tuple[int, int, int, int]] = []
            for kind, key, lane, start, end, marks in batch:
                if lane != here:
                    closed += reversed(stack)
                    stack.clear()
                    here = lane
                while stack and stack[-1][4] <= start:
                    closed.append(stack.pop())
                if kind != INTERVAL:
                    if stack:
                        points.append((kind, key, stack[-1][0], stack[-1][6]))
                    continue
                root = key if marks & ROOT_MARK else NOBODY
                if not stack:
                    stack.append([key, NOBODY, 0, end - start, end, root, marks, lane, start])
                    continue
                top = stack[-1]
                if end > top[4]:
                    end = top[4]
                    self.clipped += 1
                top[3] -= end - start
                root = top[5] if root == NOBODY else root
                stack.append([key, top[0], len(stack), end - start, end, root, marks | top[6], lane, start])
            yield closed, points
        yield stack[::-1], []


def _insert(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
    if rows:
        con.register("nested", arrow.Stream([arrow.whole_numbers(columns, rows)]))
        con.execute(f"INSERT INTO stage.{table} FROM nested")
        con.unregister("nested")
