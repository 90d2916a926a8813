"""Every example in a docstring is run, module by module; a module whose extra is missing is skipped by name."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import saccade
from saccade.errors import MissingExtraError

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(saccade.__path__, "saccade.", onerror=lambda name: None)
    if not module.name.endswith("__main__")
)
EXTRAS = {"timm", "torchvision", "fastapi", "uvicorn", "pydantic", "onnx", "onnxruntime", "captum", "h5py", "ray"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")
    result = doctest.testmod(module, optionflags=FLAGS)
    assert result.failed == 0


def test_examples_are_found() -> None:
    """The core has examples, so a search that finds none is broken."""
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module("saccade.errors"))
    assert sum(len(test.examples) for test in found) >= 1
    assert {"saccade.geometry", "saccade.models.soft", "saccade.attention.scores"} <= set(MODULES)
