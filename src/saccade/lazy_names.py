"""Packages whose names are imported on first use, so that ``import saccade`` brings neither torch nor numpy.

The names are written once, as imports that type checkers and editors see::

    if TYPE_CHECKING:
        from saccade.attention.soft import SoftAttention as SoftAttention
    else:
        __getattr__, __dir__ = lazy_names(__name__)

A package that gives no ``__all__`` has all of them in it.

At run time the block is read, not executed: ``saccade.attention.SoftAttention`` imports ``saccade.attention.soft``.
Type checkers do not see ``__getattr__``, so a misspelt name is an error for them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from saccade.errors import nearest
from saccade.quick_imports import quick_imports
from saccade.renamed import NAMES, renamed_attribute


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package`` (PEP 562), which is its ``__name__``.

    Old names that :data:`saccade.renamed.NAMES` has of it work too, with a warning that says the new one.
    """
    homes: dict[str, tuple[str, str]] = {}
    old = NAMES.get(package, {})

    def read_homes() -> dict[str, tuple[str, str]]:
        if not homes:
            homes.update(_imports_of(package))
        return homes

    def get(name: str) -> Any:
        namespace = vars(sys.modules[package])
        if name == "__all__":
            return sorted(read_homes())
        if name in old:
            return renamed_attribute(package, name, stacklevel=4)
        if name.startswith("_") or name not in read_homes():  # the import system asks for dunders and submodules
            hint = "" if name.startswith("_") else f"; {nearest(name, homes, listed_by=f'dir({package})')}"
            raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}")
        home, its_name = homes[name]
        with quick_imports():
            value = import_module(f"{home}.{name}") if home == package else _imported(home, its_name)
        namespace[name] = value  # found once, found for good
        return value

    def names() -> list[str]:
        namespace = vars(sys.modules[package])
        return sorted(
            {*(namespace.get("__all__") or read_homes()), *(name for name in namespace if name.startswith("__"))}
        )

    return get, names


def _imports_of(package: str) -> dict[str, tuple[str, str]]:
    """Name → (module, its name there), of the imports for type checkers."""
    spec = find_spec(package)
    # loaders of packages in files have it
    source = spec.loader.get_source(package) if spec is not None and spec.loader is not None else None  # type: ignore[attr-defined]
    if source is None:
        raise ImportError(f"{package}: its source is needed to find its names")
    found: dict[str, tuple[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and str(each.module).split(".")[0] == package.split(".")[0]:
                    found |= {alias.asname or alias.name: (str(each.module), alias.name) for alias in each.names}
    return found


def _imported(home: str, name: str) -> Any:
    """An attribute of a module, or a module of a package."""
    module = import_module(home)
    try:
        return getattr(module, name)
    except AttributeError:
        return import_module(f"{home}.{name}")
