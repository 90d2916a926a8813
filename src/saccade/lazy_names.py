"""Packages whose names are imported on first use, so that ``import saccade`` brings neither torch nor numpy.

The names are written once, as imports that type checkers and editors see::

    if TYPE_CHECKING:
        from saccade.attention.soft import SoftAttention as SoftAttention
    else:
        __getattr__, __dir__ = lazy_names(__name__)

A package that gives no ``__all__`` has all of them in it.

At run time the block is read, not executed: ``saccade.attention.SoftAttention`` imports ``saccade.attention.soft``.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package`` (PEP 562), which is its ``__name__``."""

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        return _imports_of(package)

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name.startswith("_") or name not in homes():  # the import system asks for dunders and submodules
            # with these, Python names the nearest
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=sys.modules[package])
        home, its_name = homes()[name]
        is_module = home == package or not hasattr(import_module(home), its_name)
        value = import_module(f"{home}.{its_name}") if is_module else getattr(import_module(home), its_name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    def names() -> list[str]:
        namespace = vars(sys.modules[package])
        public = namespace.get("__all__") or homes()
        return sorted({*public, *(name for name in namespace if name.startswith("__"))})

    return get, names


def _imports_of(package: str) -> dict[str, tuple[str, str]]:
    """Name → (module, its name there), of the imports for type checkers."""
    blocks = (node for node in ast.parse(inspect.getsource(sys.modules[package])).body if isinstance(node, ast.If))
    imports = (node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}
