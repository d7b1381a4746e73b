"""How many steps a script is going to take, read off the loops that it is in: an estimate, only to plan by.

A script of twenty steps must not spend them all on timing. Only names, constants, attributes that are plain values and
lengths are looked up; nothing of the script is called but `len`.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

MOST = 1 << 40
SOME_IN_A_ROW = 40
ALWAYS = ast.Constant(True)
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.NotEq: ast.Eq}
OTHER_LENGTH = re.compile(r"loader|batch|chunk|cycle|repeat|count|slice|filter|window|group|product|zip", re.I)


class _UnknownError(Exception):
    """A loop whose length cannot be read off."""


@dataclass(frozen=True)
class Expected:
    """Steps in all, and those that come one after the other, with nothing but the loop between them."""

    steps: int
    in_a_row: int


@dataclass
class Loops:
    """The loops that were looked at so far, from the inside out: rounds in all, and what limits them and the steps."""

    rounds: int = 1
    most_rounds: int = MOST
    most_steps: int = MOST
    every: int = 1
    in_a_row: int = 1
    has_any: bool = False
    count_rounds: set[str] = field(default_factory=set)
    count_steps: set[str] = field(default_factory=set)

    @property
    def steps(self) -> int:
        return min(min(self.rounds, self.most_rounds) // self.every, self.most_steps)


def expected(code: str | None = None) -> Expected | None:
    """The product of the lengths of all loops around the caller; None if there is none, or one that is not known.

    Under `if i % 4 == 3`, as where gradients accumulate, it is a fourth. A loop that is left by `if step >= 50: break`
    has at most 50 steps, if each of its rounds adds to `step`; one that may be left any time has an unknown number, but
    if there are loops inside it, once through those. Between two rounds of an outer loop there may be an evaluation,
    say: only the inner loops' steps are in a row, as many of these loops as make some. `code` is the text of a script
    given by `-c`.
    """
    loops = Loops()
    try:
        for frame in _frames():
            for block in _blocks(frame, code):
                if isinstance(block, ast.If):
                    loops.every *= _turn(block.test, frame)
                    loops.count_steps |= _counted(block)
                else:
                    _add(block, frame, loops)
    except _UnknownError:
        return None
    return Expected(loops.steps, min(loops.in_a_row, loops.steps)) if loops.has_any else None


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("torch.", "traceq.", "runpy", "importlib")):
            yield frame
        frame = frame.f_back


def _blocks(frame: FrameType, code: str | None) -> Iterator[ast.For | ast.While | ast.If]:
    """The loops and conditions of a frame's function whose body its current line is in, from the inside out."""
    name = frame.f_code.co_filename
    try:
        if name == "<string>" and code is not None:
            text = code
        else:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return
    first, at = frame.f_code.co_firstlineno, frame.f_lineno
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.While | ast.If)
        and node.lineno >= first
        and node.body[0].lineno <= at <= (node.body[-1].end_lineno or 0)
    ]
    yield from reversed(around)  # ast.walk goes from the outside in


def _add(loop: ast.For | ast.While, frame: FrameType, to: Loops) -> None:
    """One more loop around those; the counters that end it are heeded: in `while step < 50` that is `step`."""
    own, over, names, ends = MOST, None, set(), list(_ends(loop.body))
    if isinstance(loop, ast.For):
        over, names = loop.iter, {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    elif end := _negated(loop.test):
        ends.append(end)
    to.count_rounds |= _counted(loop)
    for test in ends:
        try:
            counter, limit = _limit(test, frame)
        except _UnknownError:
            counter, limit = None, 1
        if counter in names or counter is ALWAYS:
            own = min(own, limit)
        elif counter in to.count_rounds:
            to.most_rounds = min(to.most_rounds, limit)
        elif counter in to.count_steps:
            to.most_steps = min(to.most_steps, limit)
        elif to.has_any:  # it may be left any time: once through the inner loops
            own = 1
        else:
            raise _UnknownError
    try:
        own = min(own, _length(over, frame))
    except _UnknownError:
        if min(own, to.most_rounds, to.most_steps) == MOST:
            raise
    to.rounds = min(to.rounds * own, MOST)
    to.in_a_row = to.in_a_row if to.in_a_row >= SOME_IN_A_ROW else to.steps
    to.has_any = True


def _counted(block: ast.For | ast.While | ast.If) -> set[str]:
    """The names that each round of a loop, or each time under a condition, adds to."""
    added = [node for node in block.body if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)]
    return {node.target.id for node in added if isinstance(node.target, ast.Name)}


def _negated(test: ast.expr) -> ast.expr | None:
    """`step >= 50` for `step < 50`: what ends a loop that goes on while that holds; None for other conditions."""
    if isinstance(test, ast.Compare) and type(test.ops[0]) in NEGATED:
        return ast.Compare(test.left, [NEGATED[type(test.ops[0])](), *test.ops[1:]], test.comparators)
    return None


def _ends(body: list[ast.stmt], test: ast.expr | None = ALWAYS, is_inner: bool = False) -> Iterator[ast.expr | None]:
    """The condition of each `break` and `return` in a loop's body; None if it is not that of an `if` alone."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and not is_inner):
            yield test
        elif isinstance(node, ast.If):
            yield from _ends(node.body, node.test, is_inner)
            yield from _ends(node.orelse, None, is_inner)
        elif isinstance(node, ast.For | ast.While):
            yield from _ends(node.body, None, True)
            yield from _ends(node.orelse, None, is_inner)
        elif isinstance(node, ast.With):
            yield from _ends(node.body, test, is_inner)
        elif isinstance(node, ast.Try):
            for part in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                yield from _ends(part, None, is_inner)


def _limit(test: ast.expr | None, frame: FrameType) -> tuple[str | ast.expr, int]:
    """The counter of `step >= 50`, `step + 1 == 50` or `many and step > 49`, and what it lacks; else ALWAYS and 1."""
    if test is ALWAYS:
        return ALWAYS, 1
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            with contextlib.suppress(_UnknownError):
                return _limit(part, frame)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.GtE | ast.Gt):
        name = test.left.left if isinstance(test.left, ast.BinOp) else test.left
        now, limit = _value(test.left, frame), _value(test.comparators[0], frame)
        if isinstance(name, ast.Name) and isinstance(now, int) and isinstance(limit, int):
            lacks = limit - now + isinstance(test.ops[0], ast.Gt)
            if lacks > 0:
                return name.id, lacks
    raise _UnknownError


def _turn(test: ast.expr, frame: FrameType) -> int:
    """4 for a condition that holds each fourth time: `i % 4 == 3`, `not i % 4`; 1 for any other."""
    for node in ast.walk(test):
        counted = None
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            counted = node.left
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            counted = node.operand
        if isinstance(counted, ast.BinOp) and isinstance(counted.op, ast.Mod):
            every = _value(counted.right, frame)
            return every if isinstance(every, int) and every > 0 else 1
    return 1


def _length(over: ast.expr | None, frame: FrameType) -> int:
    """How often a loop over an expression goes round; `while` has none."""
    if isinstance(over, ast.Call):
        if isinstance(over.func, ast.Name) and over.func.id == "range":
            with contextlib.suppress(TypeError, ValueError):
                return len(range(*(_value(arg, frame) for arg in over.args)))
            raise _UnknownError
        if not over.args or OTHER_LENGTH.search(ast.unparse(over.func)):  # not as long as what it is given
            raise _UnknownError
        over = over.args[0]
        if isinstance(over, ast.Call):
            return _length(over, frame)  # enumerate(range(…)), tqdm(enumerate(…))
    if over is None:
        raise _UnknownError
    if isinstance(over, ast.List | ast.Tuple) and not any(isinstance(item, ast.Starred) for item in over.elts):
        return len(over.elts)
    try:
        return len(_value(over, frame))
    except Exception as error:
        raise _UnknownError from error


def _value(node: ast.expr, frame: FrameType) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Attribute):
        with contextlib.suppress(TypeError, KeyError):
            return vars(_value(node.value, frame))[node.attr]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        if node.func.id == "len":
            return len(_value(node.args[0], frame))
        if node.func.id == "int":
            return int(_inner(node.args[0], frame))
    if isinstance(node, ast.Subscript):
        return _inner(node, frame)
    if isinstance(node, ast.BinOp):
        a, b = _value(node.left, frame), _value(node.right, frame)
        if isinstance(a, int) and isinstance(b, int):
            if isinstance(node.op, ast.Add):
                return a + b
            if isinstance(node.op, ast.Sub):
                return a - b
            if isinstance(node.op, ast.Mult):
                return a * b
    raise _UnknownError


def _inner(node: ast.expr, frame: FrameType) -> Any:
    """An element of a plain list or tuple, as in `sys.argv[1]`; else a value."""
    if isinstance(node, ast.Subscript):
        held, at = _argv_or_value(node.value, frame), _value(node.slice, frame)
        if isinstance(held, list | tuple) and isinstance(at, int) and -len(held) <= at < len(held):
            return held[at]
        raise _UnknownError
    return _value(node, frame)


def _argv_or_value(node: ast.expr, frame: FrameType) -> Any:
    is_argv = isinstance(node, ast.Attribute) and node.attr == "argv" and isinstance(node.value, ast.Name)
    return sys.argv if is_argv else _value(node, frame)
