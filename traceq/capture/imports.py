"""Being called when the script itself has imported a module; nothing is imported for its sake."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Call `then` once, as soon as the top-level module `name` has been imported."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """Finds one module as Python would until it has been imported; the module's loader is only borrowed."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in [other for other in sys.meta_path if other is not self]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Borrowed(spec.loader, self._leave)  # type: ignore[assignment]
                return spec
        return None

    def _leave(self) -> None:
        """The module is there, not only looked for."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._then()


class _Borrowed:
    """A loader that gives the module its real loader back before it runs, and calls when it has run."""

    def __init__(self, real: Any, then: Callable[[], None]) -> None:
        self._real = real
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        spec.loader = self._real
        try:
            return self._real.create_module(spec)  # type: ignore[no-any-return]
        finally:
            spec.loader = self  # type: ignore[assignment]

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._real
        self._real.exec_module(module)
        self._then()
