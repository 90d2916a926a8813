"""Is this tree ready to be released? And the open wheel: saccade without weights trained on research-only data.

    python tools/release.py check         # prints a line for each check, builds the packages into dist, tries them
    python tools/release.py open dist/saccade_attention-0.2.0-py3-none-any.whl --out dist

The open wheel leaves out the model folders whose ``config.json`` says ``research_only``. Its version has the suffix
``+open``, and ``saccade/zoo/left_out.json`` names what it lacks, so that ``saccade list`` and ``saccade.load`` can say.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ZOO = "saccade/zoo/"
SUFFIX = "+open"
DATA = {".png", ".jpg", ".jpeg", ".webp", ".npz", ".npy", ".bin", ".safetensors", ".csv", ".txt", ".gz"}
LOOK = ["look", "--example", "digits", "--ask", "7", "--model", "hattnet-ctx-sparse-mref", "--json"]


def open_wheel(wheel: Path, folder: Path) -> Path:
    """The open wheel in ``folder``, made of the full one."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    configs = {name.split("/")[2]: json.loads(data) for name, data in files.items() if _is_config(name)}
    closed = {name: config["licence"] for name, config in configs.items() if config.get("research_only")}
    distribution, version, *tags = wheel.stem.split("-")
    before, after = (f"{distribution}-{number}.dist-info/" for number in (version, version + SUFFIX))
    kept = {
        name.replace(before, after, 1): data
        for name, data in files.items()
        if not (name.startswith(ZOO) and name.split("/")[2] in closed) and name != f"{before}RECORD"
    }
    kept[f"{ZOO}left_out.json"] = (json.dumps(closed, indent=2, ensure_ascii=False) + "\n").encode()
    kept[f"{after}METADATA"] = re.sub(rb"(?m)^(Version: .*)$", rb"\1+open", kept[f"{after}METADATA"], count=1)
    kept[f"{after}RECORD"] = _record(kept, f"{after}RECORD")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join((distribution, version + SUFFIX, *tags))}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in kept.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return path


def _is_config(name: str) -> bool:
    return name.startswith(ZOO) and name.count("/") == 3 and name.endswith("/config.json")


def _record(files: dict[str, bytes], own: str) -> bytes:
    """The list of files with their digests, which every wheel has."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((own, "", ""))
    return text.getvalue().encode()


def wrong_in_tree(root: Path) -> Iterator[str]:
    """What keeps the tree from a release: changes, versions that differ, files and models that NOTICE does not name."""
    if _run(["git", "status", "--porcelain"], root):
        yield "something is not committed"
    version = _version(root)
    texts = {name: (root / name).read_text("utf-8") for name in ("CITATION.cff", "CHANGELOG.md", "NOTICE")}
    if f'__version__ = "{version}"' not in (root / "src/saccade/__init__.py").read_text("utf-8"):
        yield f"src/saccade/__init__.py is not of {version}"
    if f"version: {version}" not in texts["CITATION.cff"] or f"\n## {version} – " not in texts["CHANGELOG.md"]:
        yield f"CITATION.cff or CHANGELOG.md does not name {version}"
    if texts["CHANGELOG.md"].partition("## Unreleased")[2].partition("\n## ")[0].strip():
        yield "CHANGELOG.md has lines under Unreleased"
    package, lines = root / "src" / "saccade", texts["NOTICE"].splitlines()
    for path in sorted(package.rglob("*")):
        here = path.relative_to(root)
        is_named = any(folder.as_posix() in lines for folder in (here, *here.parents))
        if path.suffix in DATA and not path.is_relative_to(package / "zoo") and not is_named:
            yield f"NOTICE does not name {here}"
    free, _, closed = texts["NOTICE"].partition("Research only.")
    for path in sorted((package / "zoo").glob("*/config.json")):
        part = closed if json.loads(path.read_text("utf-8")).get("research_only") else free
        if path.parent.name not in re.findall(r"[\w-]+", part):
            yield f"NOTICE does not name {path.parent.name}, or in the wrong group"


def wrong_in_packages(root: Path, out: Path) -> Iterator[str]:
    """Builds sdist, wheel and open wheel, and what does not work of the wheels in empty environments."""
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(out.resolve())], root)
    wheel = out / f"saccade_attention-{_version(root)}-py3-none-any.whl"
    for package in (wheel, open_wheel(wheel, out)):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            python = str(place / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python")
            _run([sys.executable, "-m", "venv", str(place / "venv")], place)
            constraints = ["-c", str(root / "constraints.txt")]
            _run([python, "-m", "pip", "install", "--quiet", *constraints, str(package.resolve())], place)
            _run([python, "-m", "saccade", "doctor"], place)
            if json.loads(_run([python, "-m", "saccade", *LOOK], place))["answer"] != "red":
                yield f"{package.name}: look at the example does not say red"
            if (package != wheel) != ("Not in this open copy" in _run([python, "-m", "saccade", "list"], place)):
                yield f"{package.name}: list does not say what is left out"


def _version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _run(words: list[str], where: Path) -> str:
    """What a command prints, without the PYTHONPATH of this process: a new environment is to see no other saccade."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, cwd=where, stdout=subprocess.PIPE, text=True, env=alone, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "open"])
    parser.add_argument("wheel", type=Path, nargs="?", help="the full wheel")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    if options.what == "open":
        print(open_wheel(options.wheel, options.out))
        return 0
    wrong = [*wrong_in_tree(ROOT), *wrong_in_packages(ROOT, options.out)]
    print("\n".join(wrong) or "ready")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
