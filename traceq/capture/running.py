"""Running a script, a module or a piece of code as Python itself would, down to the traceback."""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import runpy
import sys
import types
import zipfile
from collections.abc import Callable
from typing import Any

PASSING_ON = ("steps.py", "outputs.py", "compiling.py", "compiler.py", "kernels.py", "imports.py")
OWN_FILES = os.path.dirname(os.path.abspath(__file__)) + os.sep


def compile_target(kind: str, target: str) -> types.CodeType | None:
    """The code of a script or of `-c`; None for a module, which is found when it runs. Raises what Python raises."""
    if kind == "module" or is_package(kind, target):
        return None
    if kind == "code":
        return compile(target, "<string>", "exec", dont_inherit=True)
    path = _whole(target)
    if path.endswith(".pyc"):
        return importlib.machinery.SourcelessFileLoader("__main__", path).get_code("__main__")
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def is_package(kind: str, target: str) -> bool:
    """Whether a script is a folder or an archive: Python runs the `__main__` in it."""
    return kind == "script" and (os.path.isdir(target) or zipfile.is_zipfile(target))


def _whole(script: str) -> str:
    """The path by which Python calls a script: from the root, and otherwise as it was given."""
    return os.path.join(os.getcwd(), script)


def prepare(kind: str, target: str, argv: list[str]) -> Callable[[], None]:
    """Set `sys.argv`, `sys.path[0]` and `__main__` as Python does, and return what runs the target."""
    code = compile_target(kind, target)
    words = {"script": [target], "module": ["-m", target], "code": ["-c", target]}[kind]
    sys.orig_argv[:] = [*sys.orig_argv[: -len(sys.argv)], *words, *argv]
    name = {"script": target, "module": "-m", "code": "-c"}[kind]
    sys.argv[:] = [name, *argv]
    is_packed = is_package(kind, target)
    if is_packed:
        sys.path.insert(0, _whole(target))
    elif not sys.flags.safe_path:
        folder = {"script": os.path.dirname(os.path.realpath(target)), "module": os.getcwd(), "code": ""}
        sys.path.insert(0, folder[kind])
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if "__annotations__" in sys.modules["__main__"].__dict__:  # until Python 3.13 every program has them
        main.__dict__.update(__annotations__={})
    sys.modules["__main__"] = main
    if kind == "module":
        return lambda: _run_module(target)
    if is_packed:
        return lambda: _run_module("__main__", alter_argv=False)
    assert code is not None
    if kind == "script":
        path = _whole(target)
        main.__file__ = path
        kinds = importlib.machinery
        loader = kinds.SourcelessFileLoader if path.endswith(".pyc") else kinds.SourceFileLoader
        main.__loader__ = loader("__main__", path)
        main.__dict__["__cached__"] = None
    else:
        main.__loader__ = importlib.machinery.BuiltinImporter
    return lambda: exec(code, main.__dict__)


def _run_module(name: str, alter_argv: bool = True) -> None:
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def forget_shadowed(folder: str, at_start: frozenset[str]) -> None:
    """Let the script import what stands beside it, even where this process uses a module of that name already.

    `at_start` are the modules that every Python has loaded before the first line of a script.
    """
    try:
        with os.scandir(folder or ".") as entries:
            beside = {_module_name(entry) for entry in entries}
    except OSError:
        return
    for name in set(sys.modules) - at_start:
        if name.partition(".")[0] in beside - {"traceq"}:
            del sys.modules[name]


def _module_name(entry: os.DirEntry[str]) -> str | None:
    if entry.name.endswith(".py"):
        return entry.name[:-3]
    return entry.name if os.path.exists(os.path.join(entry.path, "__init__.py")) else None


def without_our_frames(error: BaseException) -> BaseException:
    """The exception, and those that it came of, with the traceback that it has in a plain run."""
    chain: list[BaseException | None] = [error]
    seen: set[int] = set()
    while chain:
        this = chain.pop()
        if this is not None and id(this) not in seen:
            seen.add(id(this))
            chain += [this.__cause__, this.__context__]
            _strip(this)
    return error


def _strip(error: BaseException) -> None:
    """Leave out what only passes a call on; where an interrupt met work of traceq itself, the traceback ends."""
    at, kept = error.__traceback__, []
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if not name.startswith(OWN_FILES):
            kept.append(at)
        elif kept and os.path.basename(name) not in PASSING_ON:
            break
        at = at.tb_next
    for this, following in zip(kept, [*kept[1:], None], strict=True):
        this.tb_next = following
    error.__traceback__ = kept[0] if kept else None


def show(error: BaseException) -> None:
    """Tell of an uncaught exception as the interpreter does; `SystemExit` it tells itself when it ends."""
    if not isinstance(error, SystemExit):
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        sys.excepthook(type(error), error, error.__traceback__)
        sys.excepthook = _told


def _told(*_: Any) -> None:
    """The exception has been told already."""
