"""The example notebooks: committed with their outputs, small, without an error, and their code still runs."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import saccade

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SMALL = {"SCENES": 6, "PICTURES": 40, "EPOCHS": 2}
"""Sizes at which the code runs in seconds; what it says then is worth nothing."""

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_there_are_few_and_all_are_pages_of_the_site() -> None:
    assert 1 <= len(NOTEBOOKS) <= 6
    listed = re.findall(r"^\.\./notebooks/(\w+)$", (FOLDER.parent / "how-to" / "notebooks.md").read_text(), re.M)
    assert sorted(listed) == [path.stem for path in NOTEBOOKS]


@each
def test_it_is_small_and_was_run_from_top_to_bottom(path: Path) -> None:
    assert path.stat().st_size < 240_000
    assert [cell["execution_count"] for cell in cells(path)] == list(range(1, len(cells(path)) + 1))
    kinds = [output["output_type"] for cell in cells(path) for output in cell["outputs"]]
    assert len(kinds) >= 4
    assert "error" not in kinds


@each
def test_a_cell_that_ends_in_a_value_shows_it(path: Path) -> None:
    for cell in cells(path):
        last = ast.parse(source(cell)).body[-1]
        printed = isinstance(last, ast.Expr) and getattr(getattr(last.value, "func", None), "id", "") == "print"
        if isinstance(last, ast.Expr) and not printed:
            assert cell["outputs"][-1]["output_type"] == "execute_result", source(cell)


@each
def test_it_shows_a_picture_and_names_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert '"image/png"' in text
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", text)


@each
def test_its_first_line_gives_the_reason_to_read_it(path: Path) -> None:
    first = source(cells(path, "markdown")[0]).splitlines()[0]
    assert re.match(r"# .*(?:\?|:|whether)", first), first


@each
@pytest.mark.slow
@pytest.mark.filterwarnings("error::FutureWarning")
def test_its_code_still_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # read the environment again
    names: dict[str, Any] = {"__name__": path.stem}
    for number, cell in enumerate(cells(path), start=1):
        code = re.sub(
            r"^([A-Z]+) = (\d+)$", lambda line: f"{line[1]} = {SMALL.get(line[1], line[2])}", source(cell), flags=re.M
        )
        exec(compile(code, f"{path.name}, cell {number}", "exec"), names)


@each
def test_it_imports_names_from_their_short_places(path: Path) -> None:
    """What a package offers is imported from there, not from the module that defines it."""
    packages = [saccade, *(importlib.import_module(f"saccade.{name}") for name in ("attention", "data", "losses"))]
    packages += [importlib.import_module(f"saccade.{name}") for name in ("metrics", "models")]
    long = []
    for node in ast.walk(ast.parse("\n".join(map(source, cells(path))))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saccade."):
            for name in (alias.name for alias in node.names):
                short = [package.__name__ for package in packages if name in package.__all__]
                long += [(node.module, name, short)] if short and node.module not in short else []
    assert not long
