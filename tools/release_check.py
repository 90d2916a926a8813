"""Is this tree ready to be released? ``make release-check`` runs every check and prints one line for each.

=========  =======================================================================================================
tree       nothing is uncommitted
version    pyproject.toml, ``saccade.__version__``, CITATION.cff and the first entry of CHANGELOG.md agree
changelog  nothing stands under Unreleased
licences   NOTICE names every shipped file of data and every shipped model, in the right group
smoke      docs/benchmarks/smoke-VERSION.json was recorded on a GPU and is ok
build      wheel, sdist and open wheel are built, into ``--out`` (dist)
install    the wheel is installed into an empty environment; ``saccade --version``, ``doctor`` and ``look`` run there
open       so is the open wheel; it says what it lacks
=========  =======================================================================================================

``--skip smoke,install`` leaves some out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from open_wheel import SUFFIX, open_wheel

ROOT = Path(__file__).parent.parent
ENTRY = re.compile(r"^## (\d+\.\d+\.\d+) – (\d{4}-\d\d-\d\d)$", re.MULTILINE)
DATA_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".npz", ".npy", ".bin", ".safetensors", ".csv", ".txt", ".gz"}
MODEL = "hattnet-ctx-sparse-mref"


class Failed(Exception):  # noqa: N818 - the outcome of a check
    """A check that does not hold, and what to do."""


@dataclass(frozen=True)
class Tree:
    """What is checked, and where what is built goes."""

    root: Path
    out: Path

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self.root / path).read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        """As pyproject.toml has it."""
        return str(tomllib.loads(self.read("pyproject.toml"))["project"]["version"])

    def wheel(self, suffix: str = "") -> Path:
        """The wheel that :func:`build` made."""
        path = self.out / f"saccade_attention-{self.version}{suffix}-py3-none-any.whl"
        if not path.is_file():
            raise Failed(f"no {path.name} in {self.out}: the check 'build' comes first")
        return path


def clean(tree: Tree) -> str:
    """Nothing is uncommitted."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=tree.root, capture_output=True, text=True, check=True)
    if changed := done.stdout.splitlines():
        raise Failed(f"{len(changed)} files are not committed: {', '.join(line[3:] for line in changed[:5])}")
    return "nothing is uncommitted"


def version(tree: Tree) -> str:
    """One version everywhere, and the changelog has it with a date."""
    entry = ENTRY.search(tree.read("CHANGELOG.md"))
    citation = tree.read("CITATION.cff")
    said = {
        "pyproject.toml": tree.version,
        "src/saccade/__init__.py": _found(r'^__version__ = "(.*)"$', tree.read("src/saccade/__init__.py")),
        "CITATION.cff": _found(r"^version: (.*)$", citation),
        "CHANGELOG.md": entry[1] if entry else "none",
    }
    if len(set(said.values())) > 1:
        raise Failed("versions differ: " + ", ".join(f"{file} {number}" for file, number in said.items()))
    released = _found(r'^date-released: "?([\d-]+)"?$', citation)
    if entry is None or entry[2] != released:
        raise Failed(f"CHANGELOG.md dates {tree.version} {entry and entry[2]}, CITATION.cff {released}")
    return f"{tree.version} of {released}, everywhere"


def changelog(tree: Tree) -> str:
    """What was changed since the last release has a version."""
    waiting = tree.read("CHANGELOG.md").partition("## Unreleased")[2].partition("\n## ")[0].strip()
    if waiting:
        raise Failed("CHANGELOG.md has lines under Unreleased: give them a version")
    return "nothing under Unreleased"


def licences(tree: Tree) -> str:
    """NOTICE names all that is shipped; models stand in the group that their config says."""
    notice = tree.read("NOTICE")
    missing = [str(path) for path in shipped_data(tree.root) if not _is_named(path, notice)]
    open_part, _, closed_part = notice.partition("Research only.")
    words = {part: set(re.findall(r"[\w-]+", part)) for part in (open_part, closed_part)}
    models = {path.parent.name: json.loads(path.read_text("utf-8")) for path in tree.root.glob(f"{_ZOO}/*/config.json")}
    for name, held in sorted(models.items()):
        part = closed_part if held.get("research_only") else open_part
        missing += [] if name in words[part] and held.get("licence") else [name]
    if missing:
        raise Failed(f"NOTICE does not name, or not in the right group: {', '.join(missing)}")
    closed = sum(bool(held.get("research_only")) for held in models.values())
    return f"{len(models)} models, {closed} of them for research only"


_ZOO = "src/saccade/zoo"


def shipped_data(root: Path) -> Iterator[Path]:
    """Every file of data in the package that is not part of a model folder, relative to ``root``."""
    for path in sorted((root / "src" / "saccade").rglob("*")):
        if path.suffix in DATA_SUFFIXES and not path.is_relative_to(root / _ZOO):
            yield path.relative_to(root)


def _is_named(path: Path, notice: str) -> bool:
    """Whether a line of NOTICE is the path of the file, or of a folder that holds it."""
    lines = notice.splitlines()
    return any(each.as_posix() in lines for each in (path, *path.parents))


def smoke(tree: Tree) -> str:
    """The smoke run of this version on a GPU."""
    path = tree.root / "docs" / "benchmarks" / f"smoke-{tree.version}.json"
    how = "run `PYTHONPATH=src python benchmarks/gpu.py --smoke` on a GPU"
    if not path.is_file():
        raise Failed(f"{path.name} is missing: {how}")
    found = json.loads(path.read_text(encoding="utf-8"))
    if not found["ok"] or found["version"] != tree.version or not found["on_gpu"]:
        raise Failed(f"{path.name} is not a good run of {tree.version} on a GPU: {how}")
    return f"{found['machine']['device']}, {found['seconds']} s"


def build(tree: Tree) -> str:
    """Wheel, sdist and open wheel."""
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(tree.out.resolve())], tree.root)
    sdist = tree.out / f"saccade_attention-{tree.version}.tar.gz"
    if not sdist.is_file():
        raise Failed(f"no {sdist.name} was built")
    made = (tree.wheel(), sdist, open_wheel(tree.wheel(), tree.out))
    return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in made)


def install(tree: Tree) -> str:
    """The wheel in an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder), tree.wheel(), tree.root / "constraints.txt")
        said = _run([python, "-m", "saccade", "--version"], Path(folder))
        if said.split() != ["saccade", tree.version]:
            raise Failed(f"--version prints {said.strip()!r}")
        _run([python, "-m", "saccade", "doctor"], Path(folder))
        return f"--version, doctor; look says {_looked(python, Path(folder))}"


def open_install(tree: Tree) -> str:
    """The open wheel in an empty environment: it works, and says what it lacks."""
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder), tree.wheel(SUFFIX), tree.root / "constraints.txt")
        answer = _looked(python, Path(folder))
        if "Not in this open copy" not in _run([python, "-m", "saccade", "list"], Path(folder)):
            raise Failed("`saccade list` does not say what the open wheel lacks")
        return f"look says {answer}; list says what is left out"


def _environment(folder: Path, wheel: Path, constraints: Path) -> str:
    """The Python of a new environment with ``wheel`` and what it needs."""
    _run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = str(folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    _run([python, "-m", "pip", "install", "--quiet", "-c", str(constraints), str(wheel)], folder)
    return python


def _looked(python: str, folder: Path) -> str:
    """The answer about the example of digits."""
    words = [python, "-m", "saccade", "look", "--example", "digits", "--ask", "7", "--model", MODEL]
    said = json.loads(_run([*words, "--out", str(folder / "out"), "--json"], folder))
    if said["answer"] != "red" or not any((folder / "out").rglob("*.png")):
        raise Failed(f"look --example digits answers {said['answer']!r}, not 'red', or writes no picture")
    return str(said["answer"])


def _run(words: list[str], where: Path) -> str:
    """What a command prints, without the PYTHONPATH of this process: a new environment is to see no other saccade."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=where, capture_output=True, text=True, env=alone)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-600:]
        raise Failed(f"{' '.join(words[1:])} ended with {done.returncode}: {said}")
    return done.stdout


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else "none"


CHECKS: dict[str, Callable[[Tree], str]] = {
    "tree": clean,
    "version": version,
    "changelog": changelog,
    "licences": licences,
    "smoke": smoke,
    "build": build,
    "install": install,
    "open": open_install,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip", default="", help=f"some of {','.join(CHECKS)}")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    skipped = {name for name in options.skip.split(",") if name}
    if unknown := skipped - set(CHECKS):
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    failed = False
    for name, check in CHECKS.items():
        if name in skipped:
            print(f"skip  {name}")
            continue
        try:
            print(f"ok    {name}: {check(Tree(ROOT, options.out))}", flush=True)
        except Failed as error:
            failed = True
            print(f"FAIL  {name}: {error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
