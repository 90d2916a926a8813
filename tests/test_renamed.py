"""Names of 0.1.0 still work, and say what they are called now."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from saccade.families.contract import load_target
from saccade.families.reading import InputReader
from saccade.renamed import METHODS, NAMES

OLD_NAMES = [(module, old, new) for module, names in NAMES.items() for old, new in names.items()]


@pytest.mark.parametrize(("module", "old", "new"), OLD_NAMES)
def test_an_old_name_is_the_new_thing_and_warns(module: str, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{old} is now called {new}; .* 0\.3\.0") as said:
        exec(f"from {module} import {old} as found", given := {})
    assert given["found"] is getattr(importlib.import_module(module), new)
    assert [each.filename for each in said] == ["<string>"]  # the line that has to change


@pytest.mark.parametrize("module", NAMES)
def test_a_name_that_never_was_is_an_import_error(module: str) -> None:
    with pytest.raises(ImportError, match="lode"):
        exec(f"from {module} import lode")


@pytest.mark.parametrize("base", METHODS)
def test_methods_are_there_by_their_new_names_alone(base: str) -> None:
    for old, new in METHODS[base].items():
        assert hasattr(load_target(base), new)
        assert not hasattr(load_target(base), old)


def test_a_reader_written_for_the_old_names_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"Old\.described is now called input_spec") as said:

        class Old(InputReader):
            def read(self, source: Any) -> Any:
                return source

            def prepare(self, items: Any, facts: Any) -> Any:
                return items

            def described(self, facts: Any) -> dict[str, Any]:
                return {"old": True}

    assert Old().input_spec(None) == {"old": True}
    assert [each.filename for each in said] == [__file__]
