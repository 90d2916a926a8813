"""Every example in a docstring is run, but not in a module whose extra is missing."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import saccade
from saccade.errors import MissingExtraError

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGE = Path(saccade.__file__).parent
# The modules with examples that run, found by their text: no other module is imported.
MODULES = sorted(
    ".".join(("saccade", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if any(">>> " in line and "+SKIP" not in line for line in path.read_text("utf-8").splitlines())
)
EXTRAS = {"timm", "torchvision", "fastapi", "uvicorn", "pydantic", "onnx", "onnxruntime", "captum", "h5py", "ray"}


def test_examples() -> None:
    assert {"saccade.errors", "saccade.config", "saccade.attention.soft"} <= set(MODULES)
    wrong = []
    for name in MODULES:
        try:
            result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
        except (MissingExtraError, ModuleNotFoundError) as error:
            if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] not in EXTRAS:
                raise
            continue
        if result.failed or not result.attempted:
            wrong.append(name)
    assert wrong == []
