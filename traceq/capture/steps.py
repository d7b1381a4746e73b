"""Counting the steps of a script that knows nothing of it: by its optimizer, its outermost module, or by hand."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

CALLS_WITHOUT_OPTIMIZER = 4
NONE_SEEN = {
    None: "no optimizer stepped and no module was called on the main thread",
    "optimizer": "no optimizer stepped on the main thread",
    "forward": "no module was called on the main thread",
    "manual": "the script did not call traceq.capture.step() on its main thread",
}
_now: Steps | None = None


class Steps:
    """A counter that calls `act` when `due` is reached; `act` sets the next `due`. Else a step costs a comparison."""

    def __init__(
        self, source: str, act: Callable[[], None], on_module: Callable[[Any], None], on_restart: Callable[[], None]
    ) -> None:
        self.count = 0
        self.due = 1
        self.source = None if source == "auto" else source
        self.is_fixed = source != "auto"
        self._act = act
        self._on_module = on_module
        self._on_restart = on_restart
        self._pid = os.getpid()
        self._optimizer: weakref.ref[Any] | None = None  # what the script drops is not kept for it
        self._has_more_optimizers = False
        self._name = ""  # of what makes a step
        self._is_over = False
        self._undo: list[Callable[[], None]] = []
        self._has_optimizer = False
        self._uncount: Callable[[], None] = lambda: None

    def tick(self) -> None:
        """A step has ended."""
        self.count += 1
        if self.count >= self.due:
            self._act()

    @property
    def meaning(self) -> str:
        """What a step is here, in a sentence for the user."""
        if not self.count:
            return f"no steps were seen: {NONE_SEEN[self.source]}"
        if self.source == "manual":
            return "a step ends where the script calls traceq.capture.step()"
        if self.source == "forward":
            return f"a step is one call of {self._name}"
        first = ", the first of several" if self._has_more_optimizers else ""
        return f"a step ends when the optimizer {self._name} steps{first}"

    def begin(self, torch: Any) -> None:
        """Watch for the first module that is called and the first optimizer that steps."""
        global _now
        _now = self
        self._watch_optimizers(torch)
        self._watch_modules(torch)

    def end(self) -> None:
        """Leave no hook behind."""
        global _now
        _now = None
        self._is_over = True
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._uncount = lambda: None
        self.due = 1 << 62

    def restart(self, source: str) -> None:
        """Count steps of another kind from now on."""
        self.source = source
        self.count = 0
        self.due = 1
        self._on_restart()

    def _watch_optimizers(self, torch: Any) -> None:
        optimizer = torch.optim.Optimizer
        made = optimizer.__init__

        @functools.wraps(made)
        def init(this: Any, *args: Any, **kwargs: Any) -> None:
            self._has_optimizer = True
            made(this, *args, **kwargs)

        optimizer.__init__ = init
        self._undo.append(lambda: setattr(optimizer, "__init__", made))
        if self.source not in (None, "optimizer"):
            return

        is_traced = _tracing(torch)
        has_stepped = False

        def after(this: Any, args: Any, kwargs: Any) -> None:
            if is_traced():
                return  # part of what Dynamo traces: it would break the graph there
            nonlocal has_stepped
            has_stepped = True
            if self._is_over:
                return
            if self._optimizer is None:
                self._first_optimizer(this)
            elif this is self._optimizer():
                self.tick()
            else:
                self._has_more_optimizers = True

        hook = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(after)
        # A hook that is gone would fail guards, and compile again what was compiled with it.
        self._undo.append(lambda: None if "torch._dynamo" in sys.modules else hook.remove())
        scaler = torch.amp.GradScaler
        scaled = scaler.step

        @functools.wraps(scaled)
        def step(this: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal has_stepped
            has_stepped = False
            result = scaled(this, optimizer, *args, **kwargs)
            if not has_stepped:  # left out for an overflow: the script's step has ended all the same
                after(optimizer, args, kwargs)
            return result

        scaler.step = step
        self._undo.append(lambda: setattr(scaler, "step", scaled))

    def _first_optimizer(self, optimizer: Any) -> None:
        if self.source == "manual" or self._is_elsewhere():
            return
        self._optimizer = weakref.ref(optimizer)
        self._name = type(optimizer).__name__
        if self.source != "optimizer":
            self._uncount()
            self.restart("optimizer")
        self.tick()

    def _watch_modules(self, torch: Any) -> None:
        """Meet each module that is called from outside any other, until the step's own is known.

        `nn.Module.__call__` asks `_compiled_call_impl` first, which is None for all but compiled modules; so
        nothing that a script or Dynamo looks at is replaced, and nothing is left once the module is known.
        """
        module = torch.nn.Module
        compiled = module.compile
        met: set[int] = set()
        inside = threading.local()
        is_traced = _tracing(torch)

        def stop() -> None:
            module._compiled_call_impl = None
            module.compile = compiled

        def meet(this: Any) -> None:
            if getattr(inside, "is_so", False) or is_traced() or self._is_elsewhere():
                return
            has_parameters = next(module.parameters(this), None) is not None
            if has_parameters or id(this) in met:  # losses and transforms have none; a step without any repeats
                stop()
                self._on_module(this)
                self._count_calls(this, is_traced)
            met.add(id(this))

        def finder(this: Any, *args: Any, **kwargs: Any) -> Any:
            meet(this)
            is_inside = getattr(inside, "is_so", False)
            inside.is_so = True
            try:
                return (this.__dict__.get("_compiled_call_impl") or this._call_impl)(*args, **kwargs)
            finally:
                inside.is_so = is_inside

        @functools.wraps(compiled)
        def compile_and_meet(this: Any, *args: Any, **kwargs: Any) -> None:
            compiled(this, *args, **kwargs)
            call = this._compiled_call_impl

            def first(*args: Any, **kwargs: Any) -> Any:
                this.__dict__["_compiled_call_impl"] = call
                meet(this)
                return this._compiled_call_impl(*args, **kwargs)

            this.__dict__["_compiled_call_impl"] = first

        module._compiled_call_impl = finder
        module.compile = compile_and_meet
        self._undo.append(stop)

    def _count_calls(self, module: Any, is_traced: Callable[[], bool]) -> None:
        """Count the calls of a module, unless an optimizer is there to do better; one that is compiled has no hook."""
        if self.source not in (None, "forward"):
            return
        self._name = type(getattr(module, "_orig_mod", module)).__name__
        given = module.__dict__.get("_compiled_call_impl")
        call = given or module._call_impl
        if not self._has_optimizer:
            self.source = "forward"

        calls = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            result = call(*args, **kwargs)
            if is_traced():
                return result
            if self.source == "forward":
                self.tick()
            elif self.source is None:
                calls += 1
                if calls > CALLS_WITHOUT_OPTIMIZER:
                    self.source = "forward"
                    self.count = calls - 1
                    self.tick()
            return result

        counting = weakref.ref(module)

        def undo() -> None:
            own = getattr(counting(), "__dict__", {})
            if own.get("_compiled_call_impl") is counted:
                del own["_compiled_call_impl"]
                if given is not None:
                    own["_compiled_call_impl"] = given

        module.__dict__["_compiled_call_impl"] = counted
        self._uncount = undo
        self._undo.append(undo)

    def _is_elsewhere(self) -> bool:
        return threading.current_thread() is not threading.main_thread() or os.getpid() != self._pid


def _tracing(torch: Any) -> Callable[[], bool]:
    """Whether what is called now is only traced, by Dynamo or for TorchScript: nothing of it is a step."""
    is_compiling, is_tracing = torch.compiler.is_compiling, torch.jit.is_tracing
    return lambda: is_compiling() or is_tracing()


def by_hand() -> None:
    """A step has ended, says the script itself; from now on only it says so."""
    steps = _now
    if steps is None or steps._is_elsewhere():
        return
    if steps.source != "manual":
        if steps.is_fixed:
            return
        steps.is_fixed = True
        steps.restart("manual")
    steps.tick()
