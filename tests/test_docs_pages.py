"""Pages of the documentation do what they say: Python runs, commands are real, links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from doc_blocks import DOCS, GENERATED, ROOT, Block, blocks, commands, images, is_run, pages, run_python
from PIL import Image
from typer.core import TyperGroup
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app
from saccade.engine.recipe import load_recipe
from saccade.zoo import resolve, shipped

EXPORT = "docs/how-to/export.md"
"""Its blocks need exported models, see below."""
OTHERS = ["README.md", "CONTRIBUTING.md", "TESTING.md", "SECURITY.md"]
SMALLER = {
    "docs/how-to/score-maps.md": {
        "one_per_scene(100)": "one_per_scene(4)",
        "--count 50 ": "--count 3 ",
        "--count 20 ": "--count 3 ",
    },
    "docs/how-to/scenes.md": {
        "--count 10000 ": "--count 3 ",
        "--count 500 ": "--count 2 ",
        "--count 100 ": "--count 2 ",
    },
    "docs/how-to/own-pictures.md": {"torch.arange(32)": "torch.arange(2)"},
}
"""Numbers of a page that a test makes smaller: page → old → new."""
ELSEWHERE = {
    "timm:": "needs the extra timm and published weights",
    "hf:": "needs the extra transformers and published weights",
    "cub:": "needs CUB-200-2011",
    "flickr8k:": "needs Flickr8k",
    "svhn:": "needs SVHN",
    "ray": "needs a cluster",
    "s3://": "needs a store",
    "runs/": "needs a run of the reader's",
    "dots": "needs the family of examples/dots, see tests/families/test_families_dots.py",
}
"""Words of commands that cannot run here, and why."""
NOT_RUN = {"import ray": "needs Ray"}
"""Python blocks that cannot run here: a line in them, and why."""


@pytest.fixture(scope="session")
def readers_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that a reader is said to have: pictures, tables, stories."""
    folder = tmp_path_factory.mktemp("reader")
    digits, cat = saccade.example("digits"), saccade.example("cat")
    shutil.copy(digits, folder / "scene.png")
    with Image.open(cat) as photo:
        small = photo.convert("RGB").resize((120, 90))
    small.save(folder / "photo.jpg")
    small.save(folder / "photo.png")
    (folder / "pictures").mkdir()
    for number in range(2):
        shutil.copy(digits, folder / "pictures" / f"{number}.png")
    for kind in ("cat", "dog"):
        (folder / "photos" / kind).mkdir(parents=True)
        for number in range(8):
            part = small.rotate(10 * number + (kind == "dog"))
            part.save(folder / "photos" / kind / f"{number}.jpg")
    rows = [f"photos/{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(8)]
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    table = [
        f"{row},crown,{'red' if 'cat' in row else 'black'},{splits[n % 8]},5 5 60 60" for n, row in enumerate(rows)
    ]
    for name in ("my", "birds", "my_birds"):
        (folder / f"{name}.csv").write_text("\n".join(["image,query,label,split,box", *table]) + "\n")
    labels = [f"{row},cup; cup,{splits[n % 8]}" for n, row in enumerate(rows)]
    (folder / "shelf.csv").write_text(
        "\n".join(["image,labels,split", *labels]).replace("cup; cup", "cup; plate") + "\n"
    )
    story = "Mary took the apple.\nMary went to the kitchen.\n"
    (folder / "story.txt").write_text(story)
    (folder / "stories").mkdir()
    (folder / "stories" / "one.txt").write_text(story)
    (folder / "runs" / "soft").mkdir(parents=True)
    shutil.copytree(resolve("soft-mref"), folder / "runs" / "soft" / "model")
    return folder


def text_of(page: str, block: Block) -> str:
    """The block with smaller numbers."""
    text = block.text
    for old, new in SMALLER.get(page, {}).items():
        text = text.replace(old, new)
    return text


def test_the_numbers_that_are_made_smaller_are_on_their_pages() -> None:
    for page, changes in SMALLER.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [old for old in changes if old not in text] == [], page


WITH_PYTHON = [page for page in pages() if any(block.language == "python" for block in blocks(page)) and page != EXPORT]


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_its_code_runs(
    page: str, readers_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From top to bottom, in a reader's folder: every block of Python, and the quick commands between them."""
    folder = tmp_path / "reader"
    shutil.copytree(readers_files, folder)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python" and not any(line in block.text for line in NOT_RUN):
            run_python(Block("python", text_of(page, block), block.line), page, names)
        elif block.language == "bash":
            for words in commands(text_of(page, block)):
                if is_run(words) and not any(part in " ".join(words) for part in ELSEWHERE):
                    done = CliRunner().invoke(app, [part for word in words for part in sorted(glob(word)) or [word]])
                    assert done.exit_code == 0, f"{page}: saccade {' '.join(words)}\n{done.output}"
    for name, kept in images(page).items():
        made, stored = (Image.open(each).convert("RGB") for each in (name, kept))
        assert made.size == stored.size, f"{kept}: run tools/tutorials.py"
        difference = np.abs(np.asarray(made, float) - np.asarray(stored, float)).mean()
        assert difference < 4, f"{kept} differs from what its page draws by {difference:.1f}: run tools/tutorials.py"
    CHECKS.get(page, lambda names, printed: None)(names, capsys.readouterr().out)


def check_scored_maps(names: dict[str, Any], printed: str) -> None:
    """Maps with more on their masks point there; gradients mark the digit better than an even map."""
    assert Path("scored/report.html").is_file()
    told = json.loads(Path("causal-scores/scores.json").read_text())
    assert told["scene"]["scores"]["map_turn"]["mean"] == 0
    lines = printed.splitlines()
    marked, even = (
        float(re.search(r"([\d.]+) \(", next(each for each in lines if each.startswith(name)))[1])  # type: ignore[index]
        for name in ("gradient × input", "even")
    )
    assert marked > 5 * even
    assert names["found"]["attention"]["true_positive_strength"] == pytest.approx(marked, abs=5e-4)


def check_own_network(names: dict[str, Any], printed: str) -> None:
    """The frame is that of the layers, and a transformer has a look for each layer and head."""
    assert names["look"].frame.tolist() == [[16, 0, -7.5], [0, 16, -7.5]]
    trace = names["trace"]
    assert len(trace.looks) == 3 * 4 + 1
    assert trace.look("rollout").role == "derived"


CHECKS = {"docs/how-to/score-maps.md": check_scored_maps, "docs/how-to/own-network.md": check_own_network}
"""What must hold after a page was run, beyond that nothing failed."""


@cache
def whole_command() -> Any:
    """The command line."""
    return typer.main.get_command(app)


def read_as_the_verb_does(words: list[str]) -> dict[str, Any]:
    """The settings that a verb would be called with; it is not."""
    command = whole_command()
    while isinstance(command, TyperGroup):
        command = command.commands[words.pop(0)]
    return command.make_context("saccade", words).params


@pytest.mark.parametrize("page", ["README.md", *pages()])
def test_commands_name_verbs_options_recipes_phases_and_models_that_there_are(page: str) -> None:
    for words in (words for block in blocks(page) if block.language == "bash" for words in commands(block.text)):
        if any("dots" in word for word in words):
            continue  # of a family that is not installed
        told = read_as_the_verb_does(list(words))
        for name in told["recipe"] or [] if words[0] == "train" else []:
            recipe = load_recipe(name, protocol=told["protocol"], overrides=told["overrides"] or [])
            assert {*(told["phases"] or [])} <= {phase.name for phase in recipe.phases}, words
        elsewhere = ("runs/", "timm:", "hf:")  # what a reader trained, and models of other libraries
        models = [told.get("model"), told.get("start"), *(told.get("models") or [])]
        named = {model for model in models if isinstance(model, str) and not model.startswith(elsewhere)}
        assert named <= {*shipped()}, words


def test_there_are_many_commands() -> None:
    """So that a search which finds none is noticed."""
    assert sum(len(list(commands(block.text))) for page in pages() for block in blocks(page)) > 100
    assert len(WITH_PYTHON) > 15


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in plain}


@pytest.mark.parametrize("page", [*OTHERS, *pages(), *sorted(GENERATED)])
def test_links_and_named_files_exist(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if target.startswith(("http", "mailto")):
            continue
        place = (ROOT / page).parent / target if target else ROOT / page
        assert place.exists(), f"{page} links to {target}"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{page} links to {target}#{anchor}"
    rooms = "|".join(path.name for path in (ROOT / "src" / "saccade").iterdir() if path.is_dir())
    for named in re.findall(rf"`((?:{rooms})/[\w/-]+\.\w+)`", text):
        assert (ROOT / "src" / "saccade" / named).exists(), f"{page} names {named}"


def test_every_verb_has_its_options_in_the_reference() -> None:
    command = whole_command()
    there = {f"{name} {below}".strip() for name, each in command.commands.items() for below in _below(each)}
    told = re.findall(r"```\{verb\} (.+)", (DOCS / "reference" / "commands.md").read_text(encoding="utf-8"))
    assert set(told) == there


def _below(command: Any) -> list[str]:
    return [*command.commands] if isinstance(command, TyperGroup) else [""]


def test_every_family_has_its_keys_in_the_reference() -> None:
    from saccade.families import families

    text = (DOCS / "reference" / "recipes.md").read_text(encoding="utf-8")
    for directive in ("losses", "models"):
        assert set(re.findall(rf"```\{{{directive}\}} (\w+)", text)) == set(families()), directive


def tiny_export(folder: Path, name: str, **facts: Any) -> Any:
    """A small model of the catalog with random weights, exported into ``folder``; the model itself, to compare with."""
    from saccade.commands.export import export
    from saccade.config import to_dict
    from saccade.families import family_of_model, models
    from saccade.models.io.folder import save_model
    from tiny_models import tiny_facts

    spec = models()[name]
    torch.manual_seed(0)
    model = spec.resolve()(spec.tiny()).eval()
    with torch.no_grad():
        for parameter in (each for name, each in model.named_parameters() if name == "decoder.words.weight"):
            parameter.mul_(30)  # so that the words of a caption differ
    known = {"architecture": name, "family": family_of_model(name).name, "model": to_dict(model.config)}
    save_model(model, folder / "source", tiny_facts(**{**known, "queries": ()} | facts))
    export(folder / "source", folder / "out")
    return saccade.load(folder / "source", "cpu")


@pytest.mark.slow
@pytest.mark.usefixtures("one_onnx_registry")
def test_exported_models_run_as_the_page_runs_them(tmp_path, monkeypatch, capsys):
    """The script of the page, word for word, says what the models themselves say."""
    pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
    pytest.importorskip("onnxscript", reason="needs the extra 'export'")
    words = ("", "apple", "is", "kitchen", "mary", "the", "took", "went", "where")
    kinds = {
        "question": ("soft", {"queries": ("7", "1", "2", "north")}),
        "classifier": ("probe", {}),
        "captioner": ("sat-soft", {"answers": ("", "(unknown)", "red", "green", "blue"), "sentences": True}),
        "story": ("memn2n", {"answers": words, "preprocessing": None}),
    }
    models = {}
    (tmp_path / "onnx").mkdir()
    for kind, (name, facts) in kinds.items():
        models[kind] = tiny_export(tmp_path / kind, name, **facts)
        (tmp_path / kind / "out").rename(tmp_path / "onnx" / kind)
    monkeypatch.chdir(tmp_path)
    for seed, file in enumerate(("scene.png", "photo.png")):
        pixels = np.random.default_rng(seed).integers(0, 256, (31, 34, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    names: dict[str, Any] = {}
    for block in (each for each in blocks(EXPORT) if each.language == "python"):
        run_python(block, EXPORT, names)
    printed = capsys.readouterr().out.splitlines()
    seen = models["question"].look("scene.png", "7")
    assert printed[0].split()[0] == seen.answer
    assert float(printed[0].split()[1]) == pytest.approx(seen.confidence, abs=1e-4)
    assert printed[2] == models["classifier"].look("photo.png").answer
    said = models["captioner"].look("scene.png", beam=1)
    assert printed[3] == said.answer
    told = models["story"].look(["Mary took the apple.", "Mary went to the kitchen."], "Where is the apple?")
    assert printed[4] == told.answer
    last = names["seen"][names["told"]["looks"][-1]["outputs"]["weights"]][0]
    np.testing.assert_allclose(last, told.trace.looks[-1].weights[0].numpy(), atol=1e-4)
