"""What the package says of itself: its version, and the name that pip knows it by."""

import re
import tomllib
from pathlib import Path

import saccade
from saccade.errors import DISTRIBUTION


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
