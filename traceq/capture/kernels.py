"""The sources of the kernels that this process compiled, with what Triton knows of them.

Inductor writes a Python file for each graph; it holds the source of each kernel as text and, once loaded, the kernel.
The text is kept when it is loaded, for a fresh cache takes the file away, and read when all is done. Kernels written by
hand in Triton are found by what they were compiled to.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from traceq.capture.faults import Note, told

ATEN = re.compile(r"#.*Original ATen: \[(.*)\]")
LIBRARY_CALL = re.compile(r"\b(extern_kernels|torch\.ops)\.")
CACHE_FOLDER = re.compile(r"[^\s\"'<>]*torchinductor_[^/\s\"']+/")
NOT_KNOWN = dict.fromkeys(("num_warps", "num_stages", "registers", "spills", "shared_bytes"))
Kernel = dict[str, Any]

_graphs: dict[str, ModuleType] = {}


def watch(note: Note) -> None:
    """Keep the graphs that Inductor will load; its module for them has been imported."""
    cache = sys.modules["torch._inductor.codecache"].PyCodeCache
    load = cache.load_by_key_path

    def watched(*args: Any, **kwargs: Any) -> Any:
        module = load(*args, **kwargs)
        with told(note, "the kernels of a graph were not kept"):
            text = Path(str(module.__file__)).read_text("utf-8")
            if "async_compile" in text:
                _graphs.setdefault(text, module)
        return module

    cache.load_by_key_path = staticmethod(watched)


def sources(note: Note) -> list[Kernel]:
    """Each kernel once: name, hash, language, source, the configuration it runs with, the operators it computes."""
    found: dict[tuple[str, str | None, str], Kernel] = {}
    for some in (*(_of_graph(module, text) for text, module in _graphs.items()), _by_hand()):
        with told(note, "the sources of kernels are recorded in part"):  # a version that keeps them elsewhere
            for kernel in some:
                key = kernel["kernel"], kernel["hash"], kernel["source"]
                if key not in found or found[key]["num_warps"] is None:
                    found[key] = kernel
    return list(found.values())


def short_path(file: str | None, folder: str) -> str | None:
    """A path below `folder` from there, else from where Python found it, else the name alone: no home folder shows."""
    if not file or not os.path.isabs(file):
        return file
    roots = [folder, *sorted((p for p in sys.path if p and os.path.isabs(p)), key=len, reverse=True)]
    for root in roots:
        if root != "/" and file.startswith(root.rstrip("/") + "/"):
            return file[len(root.rstrip("/")) + 1 :]
    return os.path.basename(file)


def is_torchs(file: str) -> bool:
    """Whether a file is part of torch."""
    at = getattr(sys.modules.get("torch"), "__file__", None)
    return bool(at) and file.startswith(os.path.dirname(str(at)) + "/")


def _of_graph(module: ModuleType, text: str) -> Iterator[Kernel]:
    """The kernels in the file of one graph: `NAME = async_compile.LANGUAGE(…, SOURCE, …)` each."""
    made = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and (call := _compiled(statement.value)):
            (target,) = statement.targets
            made[ast.unparse(target)] = call
    ops = _operators(text, set(made))
    for name, (language, source) in made.items():
        known = getattr(module, name, None)
        file = getattr(known, "filename", None)
        yield {
            "kernel": name,
            "hash": Path(str(file)).stem if file else None,
            "language": language,
            "source": _without_folders(source),
            **_launched(known),
            "ops": ops.get(name),
        }


def _compiled(value: ast.expr) -> tuple[str, str] | None:
    """Language and source, if an expression compiles a kernel."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return None
    if ast.unparse(value.func.value) != "async_compile":
        return None
    texts = [a.value for a in value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    language = "cpp" if value.func.attr.startswith("cpp") else value.func.attr
    return (language, max(texts, key=len).strip("\n") + "\n") if texts else None


def _operators(text: str, names: set[str]) -> dict[str, list[str]]:
    """What the comment above a kernel says that it computes."""
    found: dict[str, list[str]] = {}
    said: list[str] | None = None
    for line in text.splitlines():
        if comment := ATEN.search(line):
            said = [op.strip() for op in comment[1].split(",") if op.strip()]
        elif said is not None and (word := re.match(r"\s*(\w+)(\.run\(|\(| = async_compile\.)", line)):
            if word[1] in names:
                found.setdefault(word[1], said)
            said = None
        elif LIBRARY_CALL.search(line):
            said = None
    return found


def _launched(autotuner: Any) -> Kernel:
    """The one configuration that Inductor's autotuner has decided for; nothing while there are several."""
    launchers = getattr(autotuner, "launchers", None) or []
    if len(launchers) != 1:
        return NOT_KNOWN
    (launcher,) = launchers
    config = getattr(launcher, "config", None)
    return {
        "num_warps": _count(getattr(config, "num_warps", None)),
        "num_stages": _count(getattr(config, "num_stages", None)),
        "registers": _count(getattr(launcher, "n_regs", None)),
        "spills": _count(getattr(launcher, "n_spills", None)),
        "shared_bytes": _count(getattr(launcher, "shared", None)),
    }


def _by_hand() -> Iterator[Kernel]:
    """Functions of Triton that were launched themselves; each variant that was compiled is one."""
    kind = getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None)
    if kind is None:
        return
    for function in [thing for thing in gc.get_objects() if type(thing) is kind]:
        for compiled in _variants(function):
            meta = compiled.metadata
            yield {
                "kernel": str(getattr(compiled, "name", None) or function.__name__),
                "hash": str(compiled.hash) if getattr(compiled, "hash", None) else None,
                "language": "triton",
                "source": _without_folders(str(function.src)),
                "num_warps": _count(getattr(meta, "num_warps", None)),
                "num_stages": _count(getattr(meta, "num_stages", None)),
                "registers": _count(getattr(compiled, "n_regs", None)),
                "spills": _count(getattr(compiled, "n_spills", None)),
                "shared_bytes": _count(getattr(meta, "shared", None)),
                "ops": None,
            }


def _variants(function: Any) -> Iterator[Any]:
    """What a function was compiled to, on any device; Triton 3.3 changed where that is kept."""
    if hasattr(function, "device_caches"):
        caches = [found[0] for found in dict(function.device_caches).values()]
    else:
        caches = list(dict(getattr(function, "cache", {})).values())
    for cache in caches:
        yield from (made for made in cache.values() if hasattr(made, "metadata") and hasattr(made, "asm"))


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def _without_folders(source: str) -> str:
    """A source without the folders of this machine: who ran it is nobody's business."""
    return CACHE_FOLDER.sub("torchinductor/", source).replace(str(Path.home()) + "/", "~/")
