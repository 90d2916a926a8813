"""Write docs/public_names.txt: every public name, what it is, and its arguments.

python tools/public_names.py            # write it
python tools/public_names.py --check    # exit with 1 where it differs
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).parents[1] / "docs/public_names.txt"
PACKAGES = (
    "saccade",
    "saccade.attention",
    "saccade.backbones",
    "saccade.data",
    "saccade.families",
    "saccade.metrics",
    "saccade.models",
    "saccade.scale",
)
_ADDRESS = re.compile(r"<(?:function|bound method) ([\w.<>]+)(?: of .*?)?(?: at 0x[0-9a-f]+)?>")


def lines() -> list[str]:
    """``module.name: kind signature``, sorted."""
    return sorted(line for package in PACKAGES for line in _of_package(package))


def _of_package(package: str) -> Iterator[str]:
    module = import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        yield f"{package}.{name}: {kind_of(thing)}"
        if inspect.isclass(thing):
            for member, value in sorted(vars(thing).items()):
                if not member.startswith("_") and (
                    inspect.isfunction(value) or isinstance(value, (property, classmethod))
                ):
                    yield f"{package}.{name}.{member}: {kind_of(value)}"


def kind_of(thing: Any) -> str:
    """What a name stands for, and how it is called."""
    if isinstance(thing, ModuleType):
        return "module"
    if isinstance(thing, property):
        return "property"
    if isinstance(thing, classmethod):
        return f"classmethod {_signature(thing.__func__)}"
    if inspect.isclass(thing):
        return f"class {_signature(thing)}" if not issubclass(thing, Exception) else "exception"
    if callable(thing) and not _is_alias(thing):
        return f"function {_signature(thing)}"
    return f"value {thing!r}" if isinstance(thing, (tuple, str, int, float)) else "type"


def _is_alias(thing: Any) -> bool:
    return getattr(thing, "__module__", "") == "typing" or hasattr(thing, "__origin__")


def _signature(thing: Any) -> str:
    """Names, kinds and defaults of arguments; types are for type checkers."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(…)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return _ADDRESS.sub(lambda match: match.group(1).rpartition(".")[2].strip("<>"), text)


def main() -> int:
    """Write the file, or compare it."""
    text = "\n".join(lines()) + "\n"
    if "--check" in sys.argv[1:]:
        return int(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
