"""What is built is what works: the wheel holds everything that the package needs at run time."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_wheel_builds_and_doctor_runs_from_it(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    for needed in (
        "saccade/py.typed",
        "saccade/families/question/recipes/soft-mref.yaml",
        "saccade/zoo/soft-mref/model.safetensors",
    ):
        assert needed in names
    zoo = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/saccade/zoo").rglob("*.*") if path.is_file()}
    assert {name for name in zoo if not name.endswith(".pyc")} <= set(names)
    results = {str(path.relative_to(ROOT / "docs" / "results")) for path in (ROOT / "docs" / "results").rglob("*.json")}
    assert {f"saccade/recorded/results/{path}" for path in results} <= set(names)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "SACCADE_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-m", "saccade", "doctor"], capture_output=True, text=True, cwd=tmp_path,
                          env=environment)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "soft-mref" in done.stdout
    load = "import saccade; print(saccade.load('hsal-mnist-multiset', 'cpu').facts.beside.name)"
    leaning = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, cwd=tmp_path,
                             env=environment)  # fmt: skip
    assert leaning.stdout.strip() == "hsal-mnist-set", leaning.stderr  # found beside it, in the wheel as well
    where = subprocess.run([sys.executable, "-c", "import saccade; print(saccade.__file__)"], capture_output=True,
                           text=True, cwd=tmp_path, env=environment)  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(tmp_path / "site")
    read = "from saccade import recorded; print(recorded.results_folder(), len(recorded.recorded_runs()))"
    recorded = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, cwd=tmp_path,
                              env=environment)  # fmt: skip
    folder, count = recorded.stdout.split()
    assert Path(folder) == tmp_path / "site" / "saccade" / "recorded" / "results"
    assert int(count) == len(list((ROOT / "docs" / "results").glob("*.json"))) > 0
