"""The lint of query files, held by DuckDB's own parser and binder on an empty store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from traceq.query import Query, all_queries
from traceq.store.files import empty_store

UNITS = {None, "ns", "bytes", "count", "percent", "ratio"}
TIME = re.compile(r"(_ns|^start|^end|^at)$")
DIVISIONS = {"/", "//", "%", "divide", "fdiv", "mod", "fmod"}
INEQUALITIES = {
    "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHAN",
    "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_BETWEEN",
}
Node = dict[str, Any]


def check_all() -> list[str]:
    """Faults of all query files, each as `area/name: what`."""
    queries = list(all_queries())
    twice = {q.name for q in queries if sum(o.name == q.name for o in queries) > 1}
    faults = [f"{name}: two files have this name" for name in sorted(twice)]
    with empty_store() as con:
        for query in queries:
            faults += [f"{query.area}/{query.name}: {fault}" for fault in check(con, query)]
    return faults


def check(con: duckdb.DuckDBPyConnection, query: Query) -> list[str]:
    """Faults of one query on a store that `con` is open on."""
    try:
        found = con.extract_statements(query.sql)
        if [s.type for s in found] != [duckdb.StatementType.SELECT]:
            return ["not exactly one SELECT"]
        declared = {p.name for p in query.params}
        faults = [f"placeholder and param differ: {name}" for name in sorted(set(found[0].named_parameters) ^ declared)]
        faults += _columns(con, query) if not faults else []
        ((text,),) = con.execute("SELECT json_serialize_sql(?)", [query.sql]).fetchall()
    except duckdb.Error as error:
        return [str(error).splitlines()[0]]
    tree = json.loads(text)
    if tree.get("error"):
        return [*faults, f"cannot be checked: {tree.get('error_message')}"]
    return [*faults, *_header(query), *_tree(tree)]


def _header(query: Query) -> Iterator[str]:
    if query.title.endswith(".") or not query.what.endswith("."):
        yield "title has no full stop, what has one"
    for column in query.columns:
        if column.unit not in UNITS:
            yield f"column {column.name}: unknown unit {column.unit}"
        if ("ns" in column.name.split("_")) != (column.unit == "ns"):
            yield f"column {column.name}: a time has ns in its name and as its unit"
    for example in query.examples:
        if not example.startswith("traceq "):
            yield f"example is no traceq command: {example}"


def _columns(con: duckdb.DuckDBPyConnection, query: Query) -> Iterator[str]:
    declared = [(c.name, c.type) for c in query.columns]
    for values in ({p.name: p.default for p in query.params}, {p.name: None for p in query.params}):
        found = [(row[0], row[1]) for row in con.execute(f"DESCRIBE {query.sql}", values or None).fetchall()]
        for (name, kind), (is_name, is_kind) in zip(declared, found, strict=False):
            if (name, kind) != (is_name, is_kind):
                yield f"column {name} {kind} is declared, {is_name} {is_kind} comes"
        if len(declared) != len(found):
            yield f"{len(declared)} columns are declared, {len(found)} come"


def _tree(tree: Node) -> Iterator[str]:
    if any(n.get("class") == "STAR" for select in _final(tree["statements"][0]["node"]) for n in select["select_list"]):
        yield "no * in the final SELECT"
    for node in _walk(tree):
        if node.get("function_name") in DIVISIONS and not _is_safe(_argument(node, 1)):
            yield "a divisor is neither a literal nor nullif(…)"
        if (
            node.get("class") == "WINDOW"
            and node.get("filter_expr")
            and node["function_name"] in ("count", "count_star")
        ):
            yield "count(*) FILTER … OVER is quadratic: use sum(CASE …) OVER"
        if node.get("type") == "SELECT_NODE" and _time_inequalities(node) >= 2:
            yield "a join on two time inequalities is quadratic: use ASOF JOIN or a window"


def _final(node: Node) -> list[Node]:
    """The SELECTs whose columns are the result's: one, or those that a set operation puts together."""
    if node.get("type") != "SET_OPERATION_NODE":
        return [node]
    sides = [node[side] for side in ("left", "right") if node.get(side)] or node["children"]
    return [select for side in sides for select in _final(side)]


def _argument(node: Node, place: int) -> Node:
    argument: Node = (node.get("arguments") or node["children"])[place]
    inner: Node = argument.get("expression", argument)
    return inner


def _is_safe(divisor: Node) -> bool:
    """Whether a divisor is a literal other than 0, also behind a cast, or nullif."""
    if divisor.get("class") == "CAST":
        child: Node = divisor["child"]
        return _is_safe(child.get("expression", child))
    if divisor.get("type") == "VALUE_CONSTANT":
        return divisor["value"].get("value") not in (None, 0)
    return divisor.get("function_name") == "nullif"


def _time_inequalities(select: Node) -> int:
    """Comparisons of times of two relations in the conditions of one SELECT's join; ASOF joins have their own rule."""
    joins = [n for n in _walk(select.get("from_table"), into_selects=False) if n.get("type") == "JOIN"]
    conditions = [n.get("condition") for n in joins if n.get("ref_type") != "ASOF"] + [select.get("where_clause")]
    return sum(
        2 if n["type"] == "COMPARE_BETWEEN" else 1
        for condition in conditions
        for n in _walk(condition, into_selects=False)
        if str(n.get("type")) in INEQUALITIES and _compares_times(n)
    )


def _compares_times(comparison: Node) -> bool:
    columns = [n["column_names"] for n in _walk(comparison, into_selects=False) if n.get("class") == "COLUMN_REF"]
    return len({tuple(c[:-1]) for c in columns}) > 1 and all(TIME.search(c[-1]) for c in columns)


def _walk(node: Any, into_selects: bool = True) -> Iterator[Node]:
    if isinstance(node, dict):
        if not into_selects and node.get("type") == "SELECT_NODE":
            return
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _walk(child, into_selects)
