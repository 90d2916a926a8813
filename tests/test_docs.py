"""The documents keep to what the code does and what was recorded."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.core import TyperGroup
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.engine.recipe import load_recipe
from saccade.zoo import shipped

ROOT = Path(__file__).parent.parent


def test_tables_are_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "tables.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_python_block_runs(tmp_path, monkeypatch, capsys):
    """The block of the README, word for word, in an empty folder: it prints what it says."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[0].split()
    told = re.search(r'# "(\w+)", ([\d.]+)', block)
    assert (printed[0], f"{float(printed[1]):.2f}") == told.groups()
    assert any((tmp_path / "out").glob("*.png"))


def test_the_guide_scores_a_method_of_ones_own(capsys):
    """The block of the guide on four scenes instead of a hundred: gradients mark the digit better than an even map."""
    text = (ROOT / "docs" / "guide.md").read_text().partition("### Score a method of your own")[2]
    block, at_once = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    assert block.count("one_per_scene(100)") == 1
    names = {}
    exec(compile(block.replace("one_per_scene(100)", "one_per_scene(4)"), "guide.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    marked, _, even, _, followed = (float(re.search(r"([\d.]+)(?: \(|, n )", line)[1]) for line in printed)
    assert marked > 5 * even
    assert 0 <= followed <= 1
    exec(compile(at_once, "guide.md", "exec"), names)
    selective, by_chance = map(float, capsys.readouterr().out.split())
    assert selective > 2 * by_chance
    assert names["found"]["attention"]["true_positive_strength"] == pytest.approx(marked, abs=5e-4)


def test_the_guide_scores_maps_of_any_tool(tmp_path, monkeypatch, capsys):
    """The script, the command and the lines of Python of the guide, word for word."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guide.md").read_text().partition("### Score maps of any tool")[2]
    script, causal_script, lines = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:3]
    exec(compile(script, "guide.md", "exec"), {})
    command = re.search(r"```bash\nsaccade (score maps .*)\n```", text)[1]
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    assert "20 of 20 scored" in done.stdout
    assert (tmp_path / "scored" / "report.html").is_file()
    make, score = (
        re.search(rf"```bash\nsaccade ({verb} .*)\n```", text)[1] for verb in ("data make causal", "score my-maps")
    )
    made = CliRunner().invoke(app, make.replace(" 50 ", " 3 ").split())
    assert made.exit_code == 0, made.output
    exec(compile(causal_script, "guide.md", "exec"), {})
    done = CliRunner().invoke(app, [*score.split(), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["scene"]["scores"]["map_turn"]["mean"] == 0
    assert told["counts"]["missing_twins"] == 0
    names = {}
    exec(compile(lines, "guide.md", "exec"), names)
    found = names["found"]
    assert found.scores["pointing"].mean == 1
    assert found.baselines["shuffled"]["pointing"] < 0.5
    assert "strength" in capsys.readouterr().out


def test_the_guide_puts_attention_into_a_network_of_ones_own():
    text = (ROOT / "docs" / "guide.md").read_text().partition("### Attention in a network of your own")[2]
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    names = {}
    exec(compile(block, "guide.md", "exec"), names)
    assert names["look"].frame.tolist() == [[16, 0, -7.5], [0, 16, -7.5]]


def test_the_guide_traces_a_transformer():
    text = (ROOT / "docs" / "guide.md").read_text().partition("### The attention of a transformer that you have")[2]
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    names = {}
    exec(compile(block, "guide.md", "exec"), names)
    trace = names["trace"]
    assert len(trace.looks) == 3 * 4 + 1
    assert trace.look("layer3.head1").weights.shape == (1, 14, 14)
    assert trace.image_map("layer3.head1").shape == (1, 224, 224)
    assert trace.look("rollout").role == "derived"


PAGES = ("README.md", "CONTRIBUTING.md", "TESTING.md", *(f"docs/{name}.md" for name in ("guide", "papers", "results")))


@pytest.mark.parametrize("page", [*PAGES, "docs/architecture.md"])
def test_links_and_named_files_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
    rooms = "|".join(path.name for path in (ROOT / "src" / "saccade").iterdir() if path.is_dir())
    for named in re.findall(rf"`((?:{rooms})/[\w/-]+\.\w+)`", text):
        assert (ROOT / "src" / "saccade" / named).exists(), f"{page} names {named}"


def commands(page: str) -> Iterator[list[str]]:
    """What stands behind ``saccade`` in the shell blocks of a page, one command at a time."""
    for block in re.findall(r"^```bash\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for command in " ".join(shlex.quote(word) for word in shlex.split(line, comments=True)).split(" '&&' "):
                words = shlex.split(command.split(" '>' ")[0])
                if words[:1] == ["saccade"]:
                    yield words[1:]


def read_as_the_verb_does(words: list[str]) -> dict[str, Any]:
    """The settings that a verb would be called with; it is not."""
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup):
        command = command.commands[words.pop(0)]
    return command.make_context("saccade", words).params


@pytest.mark.parametrize(("page", "least"), [("README.md", 6), ("docs/guide.md", 50)])
def test_commands_name_verbs_options_recipes_phases_and_models_that_there_are(page, least):
    found = list(commands(page))
    assert len(found) >= least
    for words in found:
        told = read_as_the_verb_does(list(words))
        for name in told["recipe"] or [] if words[0] == "train" else []:
            recipe = load_recipe(name, protocol=told["protocol"], overrides=told["overrides"] or [])
            assert {*(told["phases"] or [])} <= {phase.name for phase in recipe.phases}, words
        elsewhere = ("runs/", "timm:", "hf:")  # what a reader trained, and models of other libraries
        models = [told.get("model"), told.get("start"), *(told.get("models") or [])]
        named = {model for model in models if isinstance(model, str) and not model.startswith(elsewhere)}
        assert named <= {*shipped()}, words


DECLARED = {"answer.py", "families/question/family.py", "families/question/losses.py"}
"""Files that hold declarations and dataclasses: a walk passes them, and calls no function in them."""


def named_in(section: str) -> set[str]:
    """The files of the package that a section of docs/architecture.md names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return set(re.findall(r"`([\w/]+\.py)`", text.partition("\n## ")[0]))


def called_by(run: Callable[[], object]) -> set[str]:
    """The files of the package in which ``run`` calls a function, in whatever thread."""
    package, found = f"{Path(saccade.__file__).parent}/", set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename.removeprefix(package))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def test_a_look_passes_the_files_that_its_walk_names(tmp_path):
    from saccade.families.question.splits import write_split

    write_split({"name": "mref", "glyphs": "pack"}, "test", 1, tmp_path / "scenes")
    place = ["--model", "soft-mref", "--out", str(tmp_path / "out")]
    command = ["look", str(tmp_path / "scenes" / "00000000.png"), "--ask", "7", *place]
    passed = called_by(lambda: CliRunner().invoke(app, command, catch_exceptions=False))
    named = named_in("One picture through `saccade look`")
    assert len(named) > 20
    assert sorted(named - passed - DECLARED) == []


@pytest.mark.slow
def test_a_training_step_passes_the_files_that_its_walk_names(tmp_path, monkeypatch):
    from saccade.families.question.task import QuestionTask

    monkeypatch.setattr(QuestionTask, "validate", lambda task, model: {"accuracy": 0.0, "loss": 0.0})
    tiny = ["data.glyphs=pack", "phases.0.steps=1", "batch_size=8"]
    passed = called_by(
        lambda: saccade.train("soft-mref", out=tmp_path / "run", overrides=tiny, device="cpu", quiet=True)
    )
    named = named_in("One training step of `soft-mref`")
    assert len(named) > 25
    assert sorted(named - passed - DECLARED) == []


def tiny_export(folder: Path, name: str, **facts: Any) -> Any:
    """A small model of the catalog with random weights, exported into ``folder``; the model itself, to compare with."""
    from saccade.config import to_dict
    from saccade.families import family_of_model, models
    from saccade.models.io.folder import save_model
    from saccade.verbs.export import export
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
def test_the_guide_runs_exported_models(tmp_path, monkeypatch, capsys):
    """The script of the guide, word for word, says what the models themselves say."""
    pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
    pytest.importorskip("onnxscript", reason="needs the extra 'export'")
    text = (ROOT / "docs" / "guide.md").read_text().partition("## Run a model elsewhere")[2].partition("\n## ")[0]
    words = ("", "apple", "is", "kitchen", "mary", "the", "took", "went", "where")
    kinds = {
        "question": ("soft", {"queries": ("7", "1", "2", "north")}),
        "probe": ("probe", {}),
        "captioner": ("sat-soft", {"answers": ("", "(unknown)", "red", "green", "blue"), "sentences": True}),
        "story": ("memn2n", {"answers": words, "preprocessing": None}),
    }
    models = {}
    (tmp_path / "onnx").mkdir()
    for kind, (name, facts) in kinds.items():
        models[kind] = tiny_export(tmp_path / kind, name, **facts)
        (tmp_path / kind / "out").rename(tmp_path / "onnx" / kind)
    shutil.copytree(tmp_path / "onnx" / "probe", tmp_path / "onnx" / "classifier")  # both take the picture alone
    monkeypatch.chdir(tmp_path)
    for seed, file in enumerate(("scene.png", "photo.png")):
        pixels = np.random.default_rng(seed).integers(0, 256, (31, 34, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "guide.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    seen = models["question"].look("scene.png", "7")
    assert printed[0].split()[0] == seen.answer
    assert float(printed[0].split()[1]) == pytest.approx(seen.confidence, abs=1e-4)
    answer = models["probe"].look("photo.png").answer
    assert printed[2:4] == [f"classifier {answer}", f"probe {answer}"]
    said = models["captioner"].look("scene.png", beam=1)
    assert printed[4] == said.answer
    told = models["story"].look(["Mary took the apple.", "Mary went to the kitchen."], "Where is the apple?")
    assert printed[5] == told.answer
    last = names["seen"][names["told"]["looks"][-1]["outputs"]["weights"]][0]
    np.testing.assert_allclose(last, told.trace.looks[-1].weights[0].numpy(), atol=1e-4)
