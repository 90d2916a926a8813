"""The public names: this list, few of them, loaded lazily, and all of them real."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import saccade
from saccade.errors import DISTRIBUTION

PUBLIC = {
    "load", "example", "trace_of", "compare", "evaluate", "train", "average", "score", "tour",
    "Predictor", "Sighting", "read_picture",
    "AttentionTrace", "Look", "Output", "Record", "read_record", "write_record",
    "SoftAttention", "AdditiveScorer",
    "SaccadeError", "ConfigError", "DataError", "CheckpointError", "OutputError", "MissingExtraError", "ShapeError",
}  # fmt: skip


def test_the_list_is_the_list() -> None:
    assert set(saccade.__all__) == PUBLIC
    assert len(PUBLIC) <= 30
    assert set(dir(saccade)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_name_is_there_and_documented(name: str) -> None:
    thing = getattr(saccade, name)
    assert thing.__name__ == name
    assert thing.__doc__
    assert getattr(saccade, name) is thing


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="lode"):
        saccade.lode  # noqa: B018


def test_importing_saccade_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, saccade; dir(saccade); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert saccade.__version__ == project["version"]


def test_the_name_for_pip_is_told_everywhere_and_torch_is_bound_by_the_constraints_alone() -> None:
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    (torch,) = (line for line in project["dependencies"] if line.startswith("torch"))
    assert "<" not in torch
    assert "\ntorch<" in (root / "constraints.txt").read_text()
    texts = [root / "README.md", *root.glob("docs/*.md"), *root.glob("src/saccade/**/*.py")]
    wrong = [path for path in texts if re.search(r"pip install '?saccade(?!-attention)", path.read_text())]
    assert wrong == []
    installs = re.findall(r"pip install .*-e .*", (root / "Makefile").read_text())
    assert len(installs) == 2
    assert all("-c constraints.txt" in line for line in installs)
