"""What torch.compile did in this process: graph breaks, recompilations, the time of its phases, its kernels.

    compiler.watch(note)      # once torch is imported (or before): hooks for modules that are not imported yet
    ...                       # the script compiles, or does not
    compiler.facts()          # dict of lists, as the record of a capture holds them; None for what failed

Watching imports nothing and turns no log on: what the script prints stays the same. The hooks wrap a few functions of
torch, call them as they were called, and write down what passes; what a version of torch does not have is left out.
Nothing here raises into the script: what fails is given to `note`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from traceq.capture import kernels
from traceq.capture.faults import Note, told
from traceq.capture.imports import when_imported

METRICS_KEPT = 4096  # torch keeps the last 64 compilations
RESUMED = re.compile(r"(?:torch_dynamo_resume_in_)+(.+?)_at_\d+$")
CACHE_ENTRY = re.compile(r"^\d+/\d+(?:_\d+)?: ")
GUARD_ENDS = re.compile(r"\s{2,}#|\s+# .*:\d+ in ")

# Events of torch's own clock by the phase they belong to; one that is not here belongs to the phase around it.
PHASES = (
    (
        "autotune",
        r"CachingAutotuner\.(benchmark|coordinate|combo)|_template_(precompiling|autotuning)$|benchmark_fused|do_bench",
    ),
    ("cudagraphs", r"cudagraph"),
    (
        "kernels",
        r"async_compile|CachingAutotuner|StaticAutotuner|TritonBundler|reload_kernel_in_parent|triton_|compile_file$",
    ),
    (
        "inductor",
        r"inductor|compile_fx|^fx_|GraphLowering|Scheduler|WrapperCodegen|WrapperCodeGen|^code_gen$|^_recursive_post",
    ),
    (
        "aot_autograd",
        r"^aot_|^create_aot|AOTAutograd|^_recursive_joint|min_cut|^backward\._backward_impl$|^entire_backward",
    ),
    ("backend", r"^backend_compile$|call_user_compiler$|^_recursive_pre_grad"),
    (
        "dynamo",
        r"^dynamo$|^entire_frame_compile$|compile_inner$|^compile_attempt|^build_guards$|^bytecode_|^pgo\.|^gc$",
    ),
)
# Where torch has no events (2.4): the functions it times, what runs inside them taken off.
TIMED = {
    "dynamo": (("_compile.<locals>.compile_inner",), ("OutputGraph.call_user_compiler",)),
    "aot_autograd": (("create_aot_dispatcher_function",), ("compile_fx.<locals>.fw_compiler_base",)),
    "inductor": (("compile_fx.<locals>.fw_compiler_base", "compile_fx.<locals>.bw_compiler"), ()),
}


def watch(note: Note) -> None:
    """Begin to write down what the compiler does. Call it once, before the script compiles; it is cheap."""
    if _seen.is_watched:
        return
    _seen.is_watched = True
    _seen.note = note
    for module, begin in {
        "torch._dynamo.utils": _watch_phases,
        "torch._dynamo.output_graph": _watch_breaks,
        "torch._dynamo.convert_frame": _watch_recompiles,
        "torch._inductor.codecache": kernels.watch,
    }.items():
        when_imported(module, partial(_begin, module, begin))


def facts() -> dict[str, list[dict[str, Any]] | None]:
    """What was seen so far, ready for the record of a capture; empty lists where nothing was compiled."""
    found: dict[str, list[dict[str, Any]] | None] = {}
    questions: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "graph_breaks": _graph_breaks,
        "recompiles": _recompiles,
        "compile_phases": _compile_phases,
        "kernel_sources": partial(kernels.sources, _seen.note),
    }
    for name, ask in questions.items():
        found[name] = None
        with told(_seen.note, f"{name.replace('_', ' ')} of the compiler were not recorded"):
            found[name] = ask()
    return found


class _Seen:
    """What the hooks wrote down."""

    def __init__(self) -> None:
        self.is_watched = False
        self.note: Note = lambda _: None
        self.folder = os.getcwd()
        self.breaks: list[tuple[str, Any]] = []
        self.recompiles: list[tuple[Any, str | None]] = []
        self.clock = _Clock()


class _Clock:
    """Time of each phase without what ran inside it; of threads that compile at once only the first counts.

    The others work for it: while they do, it waits. So the sum over all phases is time that passed on the wall.
    """

    def __init__(self) -> None:
        self.ns: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self._owner: int | None = None
        self._open: list[tuple[str, str, int, list[int]]] = []
        self._lock = threading.Lock()

    def start(self, event: str, at_ns: int) -> None:
        """An event of torch's clock begins on this thread."""
        me = threading.get_ident()
        with self._lock:
            if self._owner not in (None, me):
                return
            self._owner = me
            around = self._open[-1][1] if self._open else "other"
            phase = next((name for name, pattern in PHASES if re.search(pattern, event)), around)
            if phase != around or not self._open:
                self.runs[phase] += 1
            self._open.append((event, phase, at_ns, [0]))

    def end(self, event: str, at_ns: int) -> None:
        """It ends; so do those inside it that were never said to end."""
        with self._lock:
            if self._owner != threading.get_ident() or event not in (name for name, *_ in self._open):
                return
            is_ended = False
            while not is_ended:
                name, phase, began_ns, inside = self._open.pop()
                took = max(at_ns - began_ns, 0)
                self.ns[phase] += max(took - inside[0], 0)
                if self._open:
                    self._open[-1][3][0] += took
                is_ended = name == event
            if not self._open:
                self._owner = None


_seen = _Seen()


# Hooks ----------------------------------------------------------------------------------------------------------------


def _begin(module: str, begin: Callable[[Note], None]) -> None:
    with told(_seen.note, f"what the compiler does in {module} cannot be watched"):
        begin(_seen.note)


def _before(owner: Any, name: str, see: Callable[..., None]) -> None:
    """Let `see` have the arguments of every call of a function, if there is one of that name."""
    real = getattr(owner, name, None)
    if real is None:
        return

    def watched(*args: Any, **kwargs: Any) -> Any:
        with told(_seen.note, f"what the compiler did in {name} is recorded in part"):
            see(*args, **kwargs)
        return real(*args, **kwargs)

    setattr(owner, name, watched)


def _watch_phases(_: Note) -> None:
    utils = sys.modules["torch._dynamo.utils"]
    if hasattr(utils, "set_compilation_metrics_limit"):
        utils.set_compilation_metrics_limit(METRICS_KEPT)
    if events := getattr(utils, "ChromiumEventLogger", None):
        _before(events, "log_event_start", _began)
        _before(events, "log_event_end", _ended)


def _began(_: Any, event_name: str, time_ns: int, *args: Any, **kwargs: Any) -> None:
    _seen.clock.start(event_name, time_ns)


def _ended(_: Any, event_name: str, time_ns: int, *args: Any, **kwargs: Any) -> None:
    _seen.clock.end(event_name, time_ns)


def _watch_breaks(_: Note) -> None:
    def see(reason: Any) -> None:
        if reason.graph_break:
            _seen.breaks.append((str(reason.reason), _users_line(reason.user_stack)))

    _before(sys.modules["torch._dynamo.output_graph"].GraphCompileReason, "__post_init__", see)


def _watch_recompiles(_: Note) -> None:
    frames = sys.modules["torch._dynamo.convert_frame"]
    for name in ("get_and_maybe_log_recompilation_reasons", "get_and_maybe_log_recompilation_reason"):
        if real := getattr(frames, name, None):
            setattr(frames, name, _noting_reasons(real))


def _noting_reasons(real: Callable[..., Any]) -> Callable[..., Any]:
    def watched(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        reasons = real(entries, frame, *args, **kwargs)
        with told(_seen.note, "the recompilations are recorded in part"):
            said = [reasons] if isinstance(reasons, str) else list(reasons or [])
            _seen.recompiles.append((frame.f_code, str(said[0]) if said else None))
        return reasons

    return watched


# Facts ----------------------------------------------------------------------------------------------------------------


def _graph_breaks() -> list[dict[str, Any]]:
    """Breaks that split a frame in two, and those for which a whole frame was left to Python."""
    found = [(_reason(reason), *place) for reason, place in _seen.breaks]
    found += [(_reason(m.fail_reason), *_place_of(m)) for m in _metrics() if _is_break(m)]
    return _counted(("reason", "file", "line", "function"), found)


def _is_break(metrics: Any) -> bool:
    """Whether a compilation failed for what the code does; frames without any work for a graph break nothing."""
    kind, reason = metrics.fail_type, metrics.fail_reason or ""
    return kind == "Unsupported" or (kind == "SkipFrame" and "graph break" in reason)


def _recompiles() -> list[dict[str, Any]]:
    found = [
        (_function(code.co_name), kernels.short_path(code.co_filename, _seen.folder), code.co_firstlineno, _guard(text))
        for code, text in _seen.recompiles
    ]
    return _counted(("function", "file", "line", "guard"), found)


def _compile_phases() -> list[dict[str, Any]]:
    clock = _seen.clock
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    called = {"kernels": "triton" if cuda and cuda.is_initialized() else "cpp"}
    if clock.runs:
        return [
            {"phase": called.get(name, name), "ns": clock.ns[name], "count": clock.runs[name]}
            for name in sorted(clock.runs)
        ]
    utils = sys.modules.get("torch._dynamo.utils")
    timed: dict[str, list[float]] = getattr(utils, "compilation_time_metrics", {})
    return list(_timed_phases(timed))


def _timed_phases(timed: dict[str, list[float]]) -> Iterator[dict[str, Any]]:
    for phase, (outer, inner) in TIMED.items():
        runs = [s for name in outer for s in timed.get(name, [])]
        if runs:
            inside = sum(s for name in inner for s in timed.get(name, []))
            yield {"phase": phase, "ns": max(round((sum(runs) - inside) * 1e9), 0), "count": len(runs)}


def _metrics() -> Iterable[Any]:
    utils = sys.modules.get("torch._dynamo.utils")
    return utils.get_compilation_metrics() if utils else ()


def _counted(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [{**dict(zip(names, row, strict=True)), "count": count} for row, count in Counter(rows).items()]


def _users_line(stack: Any) -> tuple[str | None, int | None, str | None]:
    """File, line and function of the innermost frame that is not torch's own."""
    frames = list(stack or [])
    theirs = [f for f in frames if not kernels.is_torchs(f.filename)] or frames
    if not theirs:
        return None, None, None
    return kernels.short_path(theirs[-1].filename, _seen.folder), theirs[-1].lineno, _function(theirs[-1].name)


def _place_of(metrics: Any) -> tuple[str | None, int | None, str | None]:
    file = metrics.fail_user_frame_filename or metrics.co_filename
    line = metrics.fail_user_frame_lineno or metrics.co_firstlineno
    return kernels.short_path(file, _seen.folder), line, _function(metrics.co_name)


def _function(name: str | None) -> str | None:
    """The user's function; what Dynamo makes of the rest after a break bears its name."""
    found = RESUMED.match(name or "")
    return found[1] if found else name


def _reason(text: str | None) -> str:
    first = next((line.strip() for line in (text or "").splitlines() if line.strip()), "unknown")
    return "Data-dependent branching" if first.startswith("generic_jump") else first


def _guard(text: str | None) -> str | None:
    """The guard alone: without the cache entry it is of, and without the comment that says where it comes from."""
    if not text:
        return None
    return GUARD_ENDS.split(CACHE_ENTRY.sub("", text.strip().splitlines()[0]))[0].strip()
