"""What CONTRIBUTING.md shows is true: its model, its reader and its family, each tried in a temporary folder."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import saccade
from saccade import families as registry
from saccade.data import read_table
from saccade.data.tables.readers import Reader
from saccade.families import ModelSpec, families, model_spec
from saccade.families.classify.data import LABEL_READERS
from saccade.families.question import MODELS

ROOT = Path(__file__).parents[1]
TINY = {"phases.0.steps": 2, "phases.0.validate_every": 1, "batch_size": 4}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules are imported."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in {"yours", *(name for name in sys.modules if name.split(".")[0] == "dots")} - before:
        sys.modules.pop(name, None)


def shown(heading: str, package: Path, **names: object) -> tuple[str, Any]:
    """Write the file that a section shows; the entry that its one line makes, in which ``names`` are known."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    file, line, *_ = (textwrap.dedent(code) for code in re.findall(r" *```python\n(.*?)```", section, re.DOTALL))
    (package / "yours.py").write_text(file, encoding="utf-8")
    known = {**vars(__import__("yours")), **names}
    ((name, made),) = eval(f"{{{line.replace('models.', '')}}}", known).items()
    return name, made


def test_a_model_is_a_file_and_a_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, spec = shown("Add a model", package, ModelSpec=ModelSpec)
    monkeypatch.setitem(MODELS, name, spec)
    assert model_spec(name).load().__module__ == "yours"
    done = saccade.train(
        "soft-mref", out=package / "run", overrides={**TINY, "model.name": name, "data.glyphs": "pack"}, device="cpu"
    )
    assert saccade.load(done.out).model.look_names


def test_a_reader_is_a_function_and_a_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, reader = shown("Add a reader", package, Reader=Reader)
    monkeypatch.setitem(LABEL_READERS, name, reader)
    for number in range(30):
        label = "red" if number % 2 else "dark"
        Image.new("RGB", (20, 20), (8 * number, 0, 0)).save(package / f"{label}_{number}.png")
    table = read_table(f"{name}:{package}")
    assert (table.answers, len(table.rows)) == (("dark", "red"), 30)


def test_a_family_is_a_folder_and_a_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples" / "dots" / "dots", package / "dots")
    point = EntryPoint("dots", "dots.family:FAMILY", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    families.cache_clear()
    try:
        done = saccade.train("dots", out=package / "run", overrides=TINY, device="cpu")
        assert 0 <= saccade.evaluate(done.out, limit=20, device="cpu")["metrics"]["accuracy"] <= 1
    finally:
        families.cache_clear()
