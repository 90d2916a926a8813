"""What a release must keep: one version, named licences, an open wheel that says what it lacks, files for strangers."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import release_check
import yaml
from open_wheel import open_wheel
from release_check import Failed, Tree
from typer.testing import CliRunner

import saccade
from saccade import zoo
from saccade.cli import app
from saccade.errors import CheckpointError
from saccade.families import families
from saccade.models.io.facts import read_facts

ROOT = Path(__file__).parent.parent
HERE = Tree(ROOT, ROOT / "dist")


def test_this_tree_has_one_version_and_names_its_licences() -> None:
    assert saccade.__version__ in release_check.version(HERE)
    assert f"{len(zoo.shipped())} models" in release_check.licences(HERE)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A small project that passes the checks that need no build."""
    for path, text in {
        "pyproject.toml": '[project]\nversion = "1.2.3"\n',
        "src/saccade/__init__.py": '__version__ = "1.2.3"\n',
        "CITATION.cff": 'version: 1.2.3\ndate-released: "2026-01-02"\n',
        "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 – 2026-01-02\n\n- a line\n",
        "NOTICE": "src/saccade/data/pack.png\nOpen:\n    soft-mref\nResearch only.\n    crown\n",
        "src/saccade/data/pack.png": "",
        "src/saccade/zoo/soft-mref/config.json": '{"licence": "Apache-2.0"}',
        "src/saccade/zoo/crown/config.json": '{"licence": "research", "research_only": true}',
        "docs/benchmarks/smoke-1.2.3.json": json.dumps(
            {"ok": True, "version": "1.2.3", "on_gpu": True, "seconds": 30.0, "machine": {"device": "a GPU"}}
        ),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return Tree(tmp_path, tmp_path / "dist")


def test_a_good_tree_passes(tree: Tree) -> None:
    assert release_check.version(tree) == "1.2.3 of 2026-01-02, everywhere"
    assert release_check.licences(tree) == "2 models, 1 of them for research only"
    assert release_check.smoke(tree) == "a GPU, 30.0 s"


@pytest.mark.parametrize(
    ("path", "old", "new", "check", "said"),
    [
        ("src/saccade/__init__.py", "1.2.3", "1.2.2", "version", "versions differ: .*__init__.py 1.2.2"),
        ("CITATION.cff", "01-02", "01-03", "version", "dates 1.2.3 2026-01-02, CITATION.cff 2026-01-03"),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n- new\n", "changelog", "under Unreleased"),
        ("CHANGELOG.md", "## 1.2.3 – 2026-01-02", "## 1.2.3", "version", "CHANGELOG.md none"),
        ("NOTICE", "src/saccade/data/pack.png\n", "", "licences", "pack.png"),
        ("NOTICE", "    crown\n", "", "licences", "group: crown"),
        ("NOTICE", "Open:\n", "Open:\n    crown\n", "licences", None),
        ("src/saccade/zoo/soft-mref/config.json", "}", ', "research_only": true}', "licences", "group: soft-mref"),
        ("docs/benchmarks/smoke-1.2.3.json", "true", "false", "smoke", "not a good run of 1.2.3 on a GPU"),
    ],
)
def test_what_is_wrong_is_said(tree: Tree, path: str, old: str, new: str, check: str, said: str | None) -> None:
    file = tree.root / path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    if said is None:  # it stands in the right group too
        release_check.CHECKS[check](tree)
        return
    with pytest.raises(Failed, match=said):
        release_check.CHECKS[check](tree)


def test_uncommitted_files_are_named(tree: Tree) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tree.root, check=True)
    with pytest.raises(Failed, match="NOTICE"):
        release_check.clean(tree)


def test_models_of_research_data_say_so_on_their_cards() -> None:
    for name, folder in zoo.shipped().items():
        facts = read_facts(folder)
        data = str(facts.data["name"])
        entry = families()[facts.family].data[data]
        photographs = "photographs" in facts.training  # of BSDS500, behind the digits
        assert facts.research_only == (entry.research_only or photographs), name
        card = (folder / "card.md").read_text(encoding="utf-8")
        assert ("for research only" in card) == facts.research_only, name
        assert facts.licence in card, name


def test_a_new_model_takes_the_terms_of_its_data() -> None:
    assert families()["question"].licence_of_weights("csv") == (
        "Code: Apache-2.0. Weights: yours, like the data they were trained on.",
        False,
    )
    told, research_only = families()["multiset"].licence_of_weights("svhn")
    assert research_only
    assert "svhn (pictures for non-commercial use only)" in told


def test_the_list_says_what_was_scored() -> None:
    """Dev pictures and a held-out part of train are not called test."""
    rows = json.loads(CliRunner().invoke(app, ["list", "zoo", "--json"]).stdout)["zoo"]
    assert rows["sat-soft-photos"]["scored on"] == "flickr8k dev pictures, n 1,000"
    assert rows["hsal-svhn-multiset"]["scored on"] == "svhn held-out training pictures, n 3,301"
    assert rows["soft-mref"]["scored on"] == "mref test, n 10,000"


def test_the_list_has_a_column_for_licences() -> None:
    rows = json.loads(CliRunner().invoke(app, ["list", "zoo", "--json"]).stdout)["zoo"]
    assert rows["crown-cub"]["licence"] == "research only"
    assert rows["soft-mref"]["licence"] == "open"
    listed = CliRunner().invoke(app, ["list"]).stdout
    marked = re.findall(r"^  (\S+) +†", listed, re.MULTILINE)
    assert sorted(marked) == sorted(name for name, row in rows.items() if row["licence"] == "research only")
    assert "† for research only" in listed


def small_wheel(folder: Path, beside: str | None = None) -> Path:
    """A wheel of two models, one for research only."""
    base = {"licence": "Apache-2.0", "research_only": False, "beside": beside and {"name": beside}}
    files = {
        "saccade/__init__.py": "",
        "saccade/zoo/__init__.py": "",
        "saccade/zoo/free/config.json": json.dumps(base),
        "saccade/zoo/free/model.safetensors": "weights",
        "saccade/zoo/closed/config.json": json.dumps({"licence": "for research", "research_only": True}),
        "saccade/zoo/closed/model.safetensors": "weights",
        "saccade_attention-1.2.3.dist-info/METADATA": "Metadata-Version: 2.4\nVersion: 1.2.3\n\nVersion: text\n",
        "saccade_attention-1.2.3.dist-info/RECORD": "",
    }
    path = folder / "saccade_attention-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_the_open_wheel_leaves_out_what_is_for_research_and_names_it(tmp_path: Path) -> None:
    made = open_wheel(small_wheel(tmp_path), tmp_path / "out")
    assert made.name == "saccade_attention-1.2.3+open-py3-none-any.whl"
    with zipfile.ZipFile(made) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert "saccade/zoo/free/model.safetensors" in files
    assert not any("closed/" in name for name in files)
    assert json.loads(files["saccade/zoo/left_out.json"]) == {"closed": "for research"}
    info = "saccade_attention-1.2.3+open.dist-info"
    assert b"Version: 1.2.3+open\n\nVersion: text" in files[f"{info}/METADATA"]
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(files[f"{info}/RECORD"].decode()))}
    assert set(rows) == set(files)
    for name, (digest, size) in rows.items():
        if name != f"{info}/RECORD":
            held = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={held}", len(files[name]))


def test_a_free_model_may_not_need_one_that_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="free needs weights of closed"):
        open_wheel(small_wheel(tmp_path, beside="closed"), tmp_path / "out")


def test_a_copy_without_models_says_which_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert zoo.left_out() == {}
    (tmp_path / "soft-mref").symlink_to(zoo.ZOO / "soft-mref")
    (tmp_path / zoo.LEFT_OUT).write_text('{"crown-cub": "trained on CUB-200-2011"}', encoding="utf-8")
    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    with pytest.raises(CheckpointError, match=r"built without 'crown-cub' \(trained on CUB-200-2011\)"):
        saccade.load("crown-cub")
    listed = CliRunner().invoke(app, ["list"]).stdout
    assert "Not in this open copy, as their training data is for research only: crown-cub" in listed
    assert "soft-mref" in listed


def makefile_target(name: str) -> list[str]:
    """The commands of a target, without the folder of the tools."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert found is not None, name
    return [line.strip().removeprefix("$(BIN)/") for line in found[1].splitlines()]


def test_pre_commit_runs_what_lint_runs() -> None:
    told = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"].removeprefix(".venv/bin/") for repo in told["repos"] for hook in repo["hooks"]]
    assert entries == [command.removesuffix(" .") for command in makefile_target("lint")]


def test_uv_and_pip_have_the_same_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert project["tool"]["uv"]["constraint-dependencies"] == [line for line in lines if line[:1].isalpha()]
    assert project["dependency-groups"]["dev"] == [f"{project['project']['name']}[dev]"]


def test_hosted_ci_runs_the_quick_tests_everywhere_and_the_readme_claims_linux_only() -> None:
    told = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    matrix = told["jobs"]["quick"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [step["run"] for job in told["jobs"].values() for step in job["steps"] if "run" in step]
    for target in re.findall(r"\bmake (?:--silent )?([\w-]+)", "\n".join(commands)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "no run on macOS or Windows is recorded" in " ".join((ROOT / "README.md").read_text("utf-8").split())


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_templates_are_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_citation_has_what_the_format_asks_for() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version", "date-released", "license"} <= set(told)
    assert told["license"] == "Apache-2.0"
