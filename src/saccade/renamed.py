"""Names of 0.1.0 that have new ones: they work until 0.3.0, with a warning that says the new name.

A module with renamed names ends with::

    if not TYPE_CHECKING:  # type checkers know the new names only
        __getattr__ = renamed_names(__name__)

A package with :func:`~saccade.lazy_names.lazy_names` needs nothing: its old names are found in :data:`NAMES` too.

A base class whose methods were renamed calls :func:`adopt_renamed_methods` for each subclass, so that a family written
for 0.1.0 still loads. A function whose arguments were renamed has the decorator :func:`renamed_arguments`. How long old
names work is told in docs/stability.md.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

NAMES: dict[str, dict[str, str]] = {
    "saccade.attention.class_token": {"rolled_out": "attention_rollout"},
    "saccade.attention.soft": {"Attended": "AttentionOutput", "attend_by": "attend_with_scores"},
    "saccade.data.causal": {"read": "read_causal_set"},
    "saccade.families.reading": {"Reads": "InputReader"},
    "saccade.models.base": {"PictureModel": "ImageOnlyModel"},
    "saccade.models.caption_decoder": {"WordMemory": "WordLstm"},
    "saccade.models.picture_query": {"act": "look_tensors"},
}
"""Module → old name → new name."""

METHODS: dict[str, dict[str, str]] = {
    "saccade.families.reading:InputReader": {"described": "input_spec"},
    "saccade.models.base:AttentionModel": {"start_pretrained": "load_pretrained", "answer_meaning": "answer_format"},
    "saccade.tasks.task:Task": {
        "measures": "metric_names",
        "described": "summary",
        "words": "vocabularies",
        "scored_on": "eval_kwargs",
    },
}
"""Base class → old name of a method → new name."""


def renamed_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module: what an old name of it now stands for."""

    def find(name: str) -> Any:
        if name not in NAMES[module]:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        return renamed_attribute(module, name, stacklevel=4)

    return find


def renamed_attribute(module: str, name: str, *, stacklevel: int) -> Any:
    """What the old ``name`` of ``module`` now stands for, with a warning; ``stacklevel`` as of warnings.warn here.

    ``from package import old`` asks a package twice: the import system whether it has the name, then the statement
    itself for the value. The first is answered without a warning.
    """
    new = NAMES[module][name]
    if sys._getframe(stacklevel - 2).f_globals.get("__name__") != "importlib._bootstrap":
        warn_renamed(f"{module}.{name}", new, stacklevel=stacklevel)
    return getattr(sys.modules[module], new)


def adopt_renamed_methods(cls: type, base: str) -> None:
    """Give ``cls`` under their new names the methods that it defines under old ones; call it in ``__init_subclass__``.

    Args:
        cls: the subclass.
        base: the key of its base class in :data:`METHODS`.
    """
    own = vars(cls)
    for old, new in METHODS[base].items():
        if old in own and new not in own:
            warn_renamed(f"{cls.__qualname__}.{old}", new, stacklevel=5)  # the line of the class, behind ABCMeta
            setattr(cls, new, own[old])


def renamed_arguments(**old: str) -> Callable[[F], F]:
    """Let a function take arguments by their old names too: ``renamed_arguments(tell="on_progress")``."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for name in [name for name in old if name in given]:
                if old[name] in given:
                    raise TypeError(f"{function.__name__}() got '{old[name]}' and '{name}', which is its old name")
                warn_renamed(f"the argument {name} of {function.__name__}", old[name], stacklevel=3)
                given[old[name]] = given.pop(name)
            return function(*args, **given)

        return call  # type: ignore[return-value]  # it takes and gives what the function does

    return decorate


def warn_renamed(old: str, new: str, *, stacklevel: int) -> None:
    """Say what ``old`` is called now; ``stacklevel`` as of warnings.warn called here."""
    warnings.warn(f"{old} is now called {new}; the old name goes with 0.3.0", DeprecationWarning, stacklevel=stacklevel)
