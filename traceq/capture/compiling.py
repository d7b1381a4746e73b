"""torch.compile on a script that was not written for it: its outermost module, one block of it, its optimizers."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

OPTIONS: dict[str, dict[str, str]] = {
    "default": {},
    "reduce-overhead": {"mode": "reduce-overhead"},
    "max-autotune": {"mode": "max-autotune"},
    "max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs"},
}
EAGER = "eager"
MODES = (EAGER, *OPTIONS)
NO_FORWARD = "_forward_unimplemented"  # of a module that only holds others
WITH_GRAPHS = ("reduce-overhead", "max-autotune")


def blocks(module: Any) -> Iterator[tuple[str, list[Any]]]:
    """The child blocks of the outermost module by name; a list of layers is one block, compiled layer by layer."""
    for name, child in unwrapped(module).named_children():
        forward = getattr(type(child), "forward", None)  # TorchScript has none that can be looked at
        has_call = getattr(forward, "__name__", None) != NO_FORWARD
        parts = [child] if has_call else list(child.children())
        if parts:
            yield name, parts


def unwrapped(module: Any) -> Any:
    """The user's module inside a wrapper for distributed training."""
    children = dict(module.named_children())
    return children["module"] if list(children) == ["module"] else module


def compile_module(torch: Any, module: Any, mode: str, block: str | None, note: Callable[[str], None]) -> None:
    """Compile a module in place, or one block of it. Modules that the script compiled itself stay as they are."""
    if mode == EAGER:
        return
    if module._compiled_call_impl is not None or hasattr(module, "_torchdynamo_orig_callable"):
        note(f"the script compiles its model itself: it was not compiled again as {mode}")
        return
    for part in dict(blocks(module))[block] if block else [module]:
        _compile(torch, part, mode)
    if block is None:
        note(f"compiled is {type(module).__name__}, the module that the script called first, and no other")
    if mode in WITH_GRAPHS and block is None:
        _mark_iterations(torch, module)


def _compile(torch: Any, module: Any, mode: str) -> None:
    """Compile in place. Dynamo passes over the code of torch.nn itself, so that a module of it needs a frame around."""
    if not type(module).__module__.startswith("torch."):
        module.compile(**OPTIONS[mode])
        return
    forward = module.forward

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    module.forward = torch.compile(call, **OPTIONS[mode])


def compile_optimizers(torch: Any, mode: str) -> None:
    """Compile `step` of every optimizer from now on, whichever way the script calls it; hooks and mark stay outside."""
    optimizer = torch.optim.Optimizer
    made = optimizer.__init__

    @functools.wraps(made)
    def init(this: Any, *args: Any, **kwargs: Any) -> None:
        made(this, *args, **kwargs)
        hooked = type(this).step
        compiled = torch.compile(getattr(hooked, "__wrapped__", hooked), **OPTIONS[mode])
        this.step = types.MethodType(optimizer.profile_hook_step(compiled), this)

    optimizer.__init__ = init


def _mark_iterations(torch: Any, module: Any) -> None:
    """Tell CUDA graphs that outputs of the call before are no longer needed."""
    call = module.__dict__.get("_compiled_call_impl") or module._call_impl
    mark = torch.compiler.cudagraph_mark_step_begin

    def marked(*args: Any, **kwargs: Any) -> Any:
        mark()
        return call(*args, **kwargs)

    module.__dict__["_compiled_call_impl"] = marked
