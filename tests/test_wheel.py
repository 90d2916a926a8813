"""What is built is what works: the wheel holds everything that the package needs at run time."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    done = subprocess.run(build, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_builds_and_doctor_runs_from_it(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    for needed in (
        "saccade/py.typed",
        "saccade/families/question/recipes/soft.yaml",
        "saccade/zoo/soft-mref/model.safetensors",
    ):
        assert needed in names
    zoo = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/saccade/zoo").rglob("*.*") if path.is_file()}
    assert {name for name in zoo if not name.endswith(".pyc")} <= set(names)
    assert {f"saccade/results/{path.name}" for path in (ROOT / "results").glob("*.csv")} <= set(names)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "SACCADE_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-m", "saccade", "doctor"], capture_output=True, text=True, cwd=tmp_path,
                          env=environment)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "soft-mref" in done.stdout
    where = subprocess.run([sys.executable, "-c", "import saccade; print(saccade.__file__)"], capture_output=True,
                           text=True, cwd=tmp_path, env=environment)  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(tmp_path / "site")
    read = "from saccade.papers import results; print(results.results_folder(), len(results.recorded_runs()))"
    recorded = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, cwd=tmp_path,
                              env=environment)  # fmt: skip
    folder, count = recorded.stdout.split()
    assert Path(folder) == tmp_path / "site" / "saccade" / "results"
    assert int(count) > 300
