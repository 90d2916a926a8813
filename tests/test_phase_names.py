"""The name of a phase decides nothing: every recipe trains the same when its phases are called otherwise."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import caption_stubs
import multiset_stubs
import saccade
import saccade.data.scenes.stream as stream
import saccade.families.question.scenes.data as scene_data
from caption_stubs import captioned_files
from labelled_files import class_folders
from question_tables import write_table
from saccade.engine.learner import Learner
from saccade.engine.phases import apply_phase, train_mode
from saccade.engine.recipe import Phase, Recipe, load_recipe, packaged_recipes
from saccade.families import data_entries
from saccade.verbs.training.run import build_task

BATCH = 4  # divides into scenes that are asked four questions each

ONCE_MEANT_SOMETHING = {"multiset": ("activation",), "caption": ("decoder", "self_critical")}


@pytest.fixture(autouse=True, scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch, multiset_stubs.short_splits(), caption_stubs.short_splits():
        patch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setitem(stream._CHUNK, "cpu", 32)  # fewer scenes at a time, and fewer to validate on
        patch.setitem(scene_data._SIZES["unlimited"], "val", 30)
        patch.setitem(scene_data._SIZES["authors"], "train", 45)
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """For each family, overrides with which a recipe for picture files learns from a few small ones."""
    places = {family: tmp_path_factory.mktemp(family) for family in ("question", "multiset", "caption", "classify")}
    multisets = write_multisets(places["multiset"])
    return {
        "question": [f"data.name=csv:{write_table(places['question'])}", "data.options={}", "data.size=[64,64]"],
        "multiset": [f"data.name=csv:{multisets}", "data.options={}", "data.size=48"],
        "classify": [f"data.name=folder:{class_folders(places['classify'])}", "data.size=[32,32]"],
        "zoom": [f"data.name=csv:{write_boxes(places['multiset'])}"],
        "caption": [
            f"data.name=csv:{captioned_files(places['caption'], 16)}", "data.options={}", "data.size=[64,64]",
            "data.at_least=1",
        ],
    }  # fmt: skip


def write_multisets(folder: Path) -> Path:
    """A CSV of pictures with one or two labels and the boxes of these."""
    lines = ["image,labels,split,boxes"]
    for number in range(12):
        pixels = torch.randint(0, 256, (48, 48, 3), generator=torch.Generator().manual_seed(number))
        Image.fromarray(pixels.byte().numpy()).save(folder / f"{number}.png")
        split = ("train", "train", "val", "test")[number % 4]
        lines.append(f'{number}.png,red; blue,{split},"1 1 20 20; 24 24 40 40"')
    (folder / "table.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "table.csv"


def write_boxes(folder: Path) -> Path:
    """A CSV of the same pictures with one label each and its box."""
    lines = ["image,label,split,box"]
    for number in range(12):
        split = ("train", "train", "val", "test")[number % 4]
        lines.append(f"{number}.png,{('red', 'blue')[number % 2]},{split},1 1 20 20")
    (folder / "boxes.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "boxes.csv"


def resolved(name: str, files: dict[str, list[str]]) -> Recipe:
    """A packaged recipe on data that are at hand, without published weights."""
    plain = load_recipe(name)
    short = {"story": ["data.questions=20", "data.tasks=[1]"], "classify": []}
    entries = data_entries().get(str(plain.data.get("name")), ())
    is_made = any(entry.kind == "generator" for _, entry in entries)
    overrides = short.get(plain.family, ["data.glyphs=pack"]) if is_made else files[plain.family]
    if plain.model.name == "racnn" and not is_made:
        overrides = files["zoom"]  # pictures of its own size, with the boxes that a control crops by
    recipe = load_recipe(name, overrides=overrides)
    recipe.model.config.pop("pretrained", None)
    return recipe


def learnt(task: Any, phase: Phase) -> tuple[Any, frozenset[str], frozenset[str], list[dict[str, Any]]]:
    """The loss of a phase, what learns, which modules are in training mode, and its first batches."""
    learner = Learner(task.model)
    learning = apply_phase(learner, phase)
    train_mode(learner, phase)
    modes = frozenset(name for name, module in task.model.named_modules() if module.training)
    loss = task.phase_loss(phase, list(learning))
    batches = task.train_batches(3, batch_size=BATCH, data=phase.data, features=phase.features)
    return loss, frozenset(learning), modes, list(itertools.islice(batches, 2))


def assert_same_batches(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    for left, right in zip(one, other, strict=True):
        assert left.keys() == right.keys()
        for key, value in left.items():
            same = torch.equal(value.nan_to_num(-1), right[key].nan_to_num(-1)) if torch.is_tensor(value) else None
            assert same if same is not None else value == right[key], key


@pytest.mark.parametrize("name", packaged_recipes())
def test_phases_of_other_names_learn_the_same(name: str, files: dict[str, list[str]]) -> None:
    recipe = resolved(name, files)
    task: Any = build_task(recipe)
    for number, phase in enumerate(recipe.phases):
        loss, learning, modes, batches = learnt(task, phase)
        for other in (f"p{number}", *ONCE_MEANT_SOMETHING.get(recipe.family, ())):
            again = learnt(task, replace(phase, name=other))
            assert (type(again[0]), *again[:3]) == (type(loss), loss, learning, modes)
            assert_same_batches(batches, again[3])


def test_what_the_phases_of_a_recipe_learn_from_differs(files: dict[str, list[str]]) -> None:
    """So that the test above compares something: keys decide where names do not."""
    recipe = resolved("sat-soft-tuned", files)
    task: Any = build_task(recipe)
    found = [learnt(task, phase) for phase in recipe.phases]
    assert [set(batches[0]) for *_, batches in found] == [
        {"features", "words"},
        {"images", "words"},
        {"images", "references"},
    ]
    hsal = resolved("hsal-mnist-multiset", files)
    task = build_task(hsal)
    assert [learnt(task, phase)[3][0]["single"] for phase in hsal.phases] == [True, False]


SHORT = ("batch_size=4", "log_every=1", "keep_checkpoints=1")
RUNS: dict[str, tuple[str, ...]] = {
    "soft-mref": ("model.config.channels=4", "model.config.hidden=4", "data.glyphs=pack"),
    "hsal-mnist-multiset": (
        "model.config={backbone: small, through: stage2, hidden: 8, meta_hidden: 8, location_hidden: 8}",
        "data.glyphs=pack",
    ),
    "sat-soft-scenes": (
        "model.config={backbone: small, through: stage2, embed: 4, hidden: 8, attention: 4, dropout: 0.3, longest: 12}",
        "data.glyphs=pack",
    ),
    "sat-soft-tuned": (
        "model.config={backbone: compact, through: layer2, embed: 4, hidden: 8, attention: 4, longest: 7}",
    ),
    "attributes-head": ("model.config={backbone: compact, through: layer2, hidden: 4}",),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_ends_with_the_same_weights_whatever_its_phases_are_called(
    name: str, files: dict[str, list[str]], tmp_path: Path
) -> None:
    recipe = load_recipe(name)
    overrides = [*SHORT, *RUNS[name], *([] if "name" in recipe.data else files[recipe.family])]
    for number, phase in enumerate(recipe.phases):
        short = ("epochs=1", "validate_every=1") if phase.steps is None else ("steps=2", "validate_every=2")
        overrides += [f"phases.{number}.{setting}" for setting in (*short, "schedule.warmup=0")]
    renamed = [f"phases.{number}.name=p{number}" for number in range(len(recipe.phases))]
    ends = []
    for out, more in ((tmp_path / "one", []), (tmp_path / "other", renamed)):
        result = saccade.train(name, out=out, overrides=[*overrides, *more], device="cpu", quiet=True)
        assert result.phase == (f"p{len(recipe.phases) - 1}" if more else recipe.phases[-1].name)
        ends.append(load_file(next(result.checkpoint.glob("*.safetensors"))))
    one, other = ends
    assert one.keys() == other.keys()
    assert [key for key in one if not torch.equal(one[key], other[key])] == []
