"""The rules by which kernels are classified: the built-in ones, a user's file of more, and applying them to a store.

A user's file is TOML or CSV. TOML: one `[[rule]]` with `pattern` and `category`, and optionally `origin`, `decisive`,
`applies_to`, `priority`, `note`; CSV: a header with the same names.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import duckdb
import platformdirs

from traceq.errors import Status, TraceqError
from traceq.store.build import CLASSIFY, READ_RULES, RULES

CATEGORIES = (
    "gemm", "conv", "attention", "rnn", "norm", "softmax", "pool", "reduction", "elementwise", "copy", "indexing",
    "embedding", "rng", "sort", "quantize", "moe", "fft", "loss", "fused_pointwise", "fused_reduction", "fused_foreach",
    "comm", "other",
)  # fmt: skip
NAMES = ("rules.toml", "rules.csv")
KEYS = {"priority", "pattern", "category", "origin", "decisive", "applies_to", "note"}
HINT = "traceq reclassify --help shows a file of rules"
# The kernels of a whole store, as derive/70_classify.sql wants them.
TO_CLASSIFY = """
CREATE OR REPLACE TABLE stage.to_classify AS
SELECT
    a.trace_id, a.activity_id, a.name, c.role AS launch_role, c.name AS launch_name, o.name AS op_name,
    o.kernel_file, o.details AS op_details
FROM gpu_activities AS a
LEFT JOIN api_calls AS c ON c.trace_id = a.trace_id AND c.call_id = a.launch_id
LEFT JOIN ops AS o ON o.trace_id = a.trace_id AND o.op_id = a.op_id
WHERE a.kind = 'kernel'
"""
CHANGED = """
CREATE OR REPLACE TABLE stage.changed AS
SELECT c.* FROM stage.classified AS c JOIN gpu_activities AS a USING (trace_id, activity_id)
WHERE (a.category, a.category_by_name, a.category_source, a.origin)
    IS DISTINCT FROM (c.category, c.category_by_name, c.category_source, c.origin)
"""
UPDATE = """
UPDATE gpu_activities AS a
SET category = c.category, category_by_name = c.category_by_name, category_source = c.category_source, origin = c.origin
FROM stage.changed AS c WHERE c.trace_id = a.trace_id AND c.activity_id = a.activity_id
"""


@dataclass(frozen=True)
class Rule:
    """A row of the table rules."""

    priority: int
    pattern: str
    category: str
    origin: str
    decisive: bool
    applies_to: str
    note: str | None


def user_file() -> Path | None:
    """The file of rules in the user's configuration folder, if there is one."""
    folder = platformdirs.user_config_path("traceq")
    return next((path for name in NAMES if (path := folder / name).is_file()), None)


def read(path: Path) -> list[Rule]:
    """The rules of a user's file, in its order. Raises TraceqError (usage) naming the rule that is wrong, and why."""
    try:
        rows = _csv(path) if path.suffix.lower() == ".csv" else _toml(path)
    except OSError as error:
        raise TraceqError(f"{path}: {error.strerror}", HINT, Status.USAGE) from error
    except (ValueError, csv.Error, RecursionError) as error:  # tomllib raises ValueError for numbers of 5000 digits
        raise TraceqError(f"{path}: {error}", HINT, Status.USAGE) from error
    rules = [_rule(row, number, f"{path}: rule {number}") for number, row in enumerate(rows, 1)]
    taken: dict[int, int] = {}
    for number, rule in enumerate(rules, 1):
        if (other := taken.setdefault(rule.priority, number)) != number:
            raise _wrong(f"{path}: rule {number}", f"its priority {rule.priority} is also that of rule {other}")
    return rules


def replace_users(con: duckdb.DuckDBPyConnection, rules: Iterable[Rule]) -> None:
    """Put `rules` in the place of the user's rules of the store on `con`."""
    con.execute("DELETE FROM rules WHERE source = 'user'")
    built_in = {p for (p,) in con.execute("SELECT priority FROM rules").fetchall()}
    for rule in rules:
        if rule.priority in built_in:
            raise _wrong(f"the rule {rule.pattern!r}", f"its priority {rule.priority} is that of a built-in rule")
        con.execute("INSERT INTO rules VALUES (?, ?, ?, ?, ?, ?, ?, 'user')", astuple(rule))


def replace_built_in(con: duckdb.DuckDBPyConnection) -> None:
    """Put this version's own rules in the place of those that the store on `con` was made with."""
    con.execute("DELETE FROM rules WHERE source = 'built-in'")
    try:
        con.execute(READ_RULES, [str(RULES)])
    except duckdb.ConstraintException as error:
        what = "a rule of yours has the priority of a built-in one"
        raise TraceqError(what, "give it another in the table rules, below 1000", Status.STORE) from error


def users(con: duckdb.DuckDBPyConnection) -> list[Rule]:
    """The user's rules in the store on `con`."""
    found = con.execute("SELECT * EXCLUDE (source) FROM rules WHERE source = 'user' ORDER BY priority")
    return [Rule(*row) for row in found.fetchall()]


def reclassify(con: duckdb.DuckDBPyConnection) -> int:
    """Apply the table rules to every kernel of the store on `con`; the number of kernels that changed.

    `con` is on the private copy of `publishing`. Its transaction ends here and a new one begins: one transaction can
    write to one database only.
    """
    con.execute("COMMIT; ATTACH ':memory:' AS stage")
    con.execute(TO_CLASSIFY)
    con.execute(CLASSIFY.read_text("utf-8"))
    con.execute(CHANGED)
    found = con.execute("SELECT count(*) FROM stage.changed").fetchall()
    con.execute(UPDATE)
    con.execute("DETACH stage; BEGIN")
    return int(found[0][0])


def _toml(path: Path) -> list[dict[str, Any]]:
    found = tomllib.loads(path.read_text("utf-8-sig"))
    rules = found.pop("rule", [])
    if found or not isinstance(rules, list) or not all(isinstance(r, dict) for r in rules):
        raise TraceqError(f"{path}: a file of rules has [[rule]] tables and nothing else", HINT, Status.USAGE)
    return rules


def _csv(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, restkey="more than the header names")
        names = list(reader.fieldnames or [])
        if missing := {"pattern", "category"} - set(names):
            raise TraceqError(f"{path}: its header names no {max(missing)}", HINT, Status.USAGE)
        if len(set(names)) < len(names):
            raise TraceqError(f"{path}: its header has a name twice", HINT, Status.USAGE)
        rows = list(reader)
    return [{k: v for k, v in row.items() if v not in (None, "")} for row in rows]


def _rule(row: dict[str, Any], number: int, where: str) -> Rule:
    if unknown := set(row) - KEYS:
        raise _wrong(where, f"{min(unknown)!r} is no key of a rule")
    for key in ("pattern", "category"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise _wrong(where, f"it has no {key}")
    for key in ("origin", "note"):
        if not isinstance(row.get(key, "x"), str) or not row.get(key, "x"):
            raise _wrong(where, f"its {key} is {row[key]!r}, not text")
    rule = Rule(
        _whole(row.get("priority", number), where), row["pattern"], row["category"], str(row.get("origin", "custom")),
        _truth(row.get("decisive", True), where), str(row.get("applies_to", "kernel")), row.get("note"),
    )  # fmt: skip
    if rule.category not in CATEGORIES:
        raise _wrong(where, f"{rule.category!r} is no category; there are {', '.join(CATEGORIES)}")
    if rule.applies_to not in ("kernel", "op"):
        raise _wrong(where, f"applies_to is kernel or op, not {rule.applies_to!r}")
    _check_pattern(rule.pattern, where)
    return rule


def _check_pattern(pattern: str, where: str) -> None:
    try:
        duckdb.execute("SELECT regexp_matches('', ?)", [pattern])
    except duckdb.Error as error:
        why = str(error).splitlines()[0].removeprefix("Invalid Input Error: ")
        raise _wrong(where, f"{pattern!r} is no regular expression (RE2): {why}") from error


def _whole(value: object, where: str) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 0 < number < 2**31:
        raise _wrong(where, f"its priority is {str(value)[:40]!r}, not a whole number from 1 to 2147483647")
    return number


def _truth(value: object, where: str) -> bool:
    if (text := str(value).lower()) not in ("true", "false"):
        raise _wrong(where, f"decisive is true or false, not {value!r}")
    return text == "true"


def _wrong(where: str, why: str) -> TraceqError:
    return TraceqError(f"{where}: {why}", HINT, Status.USAGE)
