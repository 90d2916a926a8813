"""Every example in a docstring is run, module by module; a module whose extra is missing is skipped by name."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import saccade
from saccade.errors import MissingExtraError

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGE = Path(saccade.__file__).parent
MODULES = sorted(
    ".".join(("saccade", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text("utf-8").splitlines())
)
"""The modules with examples that run, found by their text: no other module is imported."""
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
    assert result.attempted > 0, "the examples of this module are in no docstring"
    assert result.failed == 0


def test_modules_with_examples_are_found() -> None:
    """The core has examples, so a search that finds none is broken."""
    assert {"saccade.errors", "saccade.config", "saccade.attention.soft"} <= set(MODULES)
