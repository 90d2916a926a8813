"""What holds for the task of every family: batches by number, seeds, validation, settings, and scenes on disk."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

import caption_stubs
import multiset_stubs
import saccade.families.question.scenes as questions
from labelled_files import class_folders
from saccade.config import from_dict
from saccade.data.pictures import labelled
from saccade.errors import ConfigError, DataError
from saccade.families import family
from saccade.families.caption.data import CaptionDataConfig
from saccade.families.classify.data import LabelDataConfig
from saccade.families.multiset.data import MultisetDataConfig
from saccade.tasks.task import Task

SAT = {"backbone": "small", "through": "stage2", "embed": 4, "hidden": 8, "attention": 4, "dropout": 0.0}
COUNTS = {"backbone": "small", "through": "stage2", "hidden": 8}
SOFT = {"channels": 4, "hidden": 4, "dropout": 0.0}
SCENES = {"name": "scenes", "glyphs": "pack"}
MREF = {"name": "mref", "glyphs": "pack"}
RESNET = {"widths": [8, 8, 8, 8], "units": [1, 1, 1], "last": 1}
STORIES = {"name": "stories", "tasks": [1], "questions": 60, "noise": 0.4}
VARIED = {"area": [0.7, 0.9]}
GENERATED: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "question": ("question", "soft", SOFT, MREF),
    "finite": ("question", "soft", SOFT, {**MREF, "protocol": "authors", "augment": VARIED}),
    "multiset": ("multiset", "hsal", multiset_stubs.SMALL, multiset_stubs.PACK),
    "counts": ("multiset", "multiset-counts", COUNTS, multiset_stubs.PACK),
    "caption": ("caption", "sat-soft", SAT, {**SCENES, "size": [40, 40]}),
    "classify": ("classify", "resnet", RESNET, {"name": "details", "size": [224, 224]}),
    "story": ("story", "memn2n", {"dim": 6, "hops": 2}, STORIES),
}
"""Family, model, its settings, and those of the data."""
FILES = {"captions": "caption", "labels": "classify"}
EVERY = [*GENERATED, *FILES]


@pytest.fixture(autouse=True)
def _short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Held-out splits of a few examples, and a finite set of fifty."""
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(questions._SIZES, "authors", {"train": 50, "val": 23, "test": 23})
    monkeypatch.setitem(questions._SIZES["unlimited"], "val", 23)
    monkeypatch.setattr(labelled, "SIZES", {"train": None, "val": 4, "test": 4})
    with caption_stubs.short_splits(), multiset_stubs.short_splits():
        yield


def task_of(which: str, folder: Path, **changes: Any) -> Task:
    """A new task on generated data, or on files in the folder."""
    if which == "captions":
        kind, model, config = "caption", "sat-soft", SAT
        table = caption_stubs.captioned_files(folder / "captions", 16)
        data: dict[str, Any] = {"name": f"csv:{table}", "size": [40, 48], "at_least": 1, "augment": VARIED}
    elif which == "labels":
        kind, model, config = "classify", "resnet", RESNET
        top = folder / "classes"
        top = top if top.exists() else class_folders(top, splits=("train", "val"))
        data = {"name": f"folder:{top}", "size": [16, 16], "shift": {"pixels": 2}}
    else:
        kind, model, config, data = GENERATED[which]
    made: Any = {"model": model, "model_config": config, "data": data, **changes}
    return family(kind).task()(**made)


def batches(task: Task, count: int, start: int = 0, **options: Any) -> list[dict[str, Any]]:
    return list(islice(task.train_batches(start, **{"batch_size": 6, **options}), count))


def same(one: object, other: object) -> bool:
    try:
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("which", EVERY)
def test_batch_n_is_a_function_of_its_number(which: str, tmp_path: Path) -> None:
    """Started anywhere, in another task, across the border of an epoch; the next one is another."""
    whole = batches(task_of(which, tmp_path), 10)
    for start in (2, 7, 9):
        again = batches(task_of(which, tmp_path), 10 - start, start=start)
        assert all(same(one, other) for one, other in zip(whole[start:], again, strict=True))
    assert not same(whole[0], whole[1])


def test_ranks_together_see_the_batch_of_one(tmp_path: Path) -> None:
    task = task_of("finite", tmp_path, data={**MREF, "protocol": "authors"})
    for number, one in enumerate(batches(task, 5, batch_size=12)):
        parts = [batches(task, 1, number, batch_size=4, rank=rank, world_size=3)[0] for rank in range(3)]
        assert all(torch.equal(torch.cat([part[name] for part in parts]), one[name]) for name in one)


@pytest.mark.parametrize("which", EVERY)
def test_seeds_draw_other_training_and_never_what_is_scored(which: str, tmp_path: Path) -> None:
    zero, one = (task_of(which, tmp_path, seed=seed) for seed in (0, 1))
    assert not same(*(batches(task, 1) for task in (zero, one)))
    for split in ("val",) if which in FILES else ("val", "test"):
        held = [task.split(split).take(torch.arange(3)) for task in (zero, one)]
        assert same(*(each["story"] if which == "story" else each.images for each in held))


@pytest.mark.parametrize("which", EVERY)
def test_validation_tells_the_metrics_that_it_names_and_draws_nothing(which: str, tmp_path: Path) -> None:
    task = task_of(which, tmp_path)
    found = task.validate(task.model.eval())
    assert set(found) == set(task.metric_names())
    assert task.validate(task.model) == found
    assert ("exact_match" in found) == (which in ("caption", "multiset", "counts"))


@pytest.mark.parametrize("which", EVERY)
def test_models_are_a_function_of_their_seed_and_leave_the_generator_alone(which: str, tmp_path: Path) -> None:
    before = torch.get_rng_state()
    task = task_of(which, tmp_path, seed=3)
    again, other = task.new_model(3), task.new_model(4)
    assert torch.equal(torch.get_rng_state(), before)
    state = task.model.state_dict()
    assert same(state, again.state_dict())
    assert not same(state, other.state_dict())


@pytest.mark.parametrize("which", ["multiset", "caption"])
def test_written_scenes_are_read_again(which: str, tmp_path: Path) -> None:
    kind, _, _, data = GENERATED[which]
    settings = {**data, **({"options": {"empty_held_out": 0.2}} if which == "multiset" else {"seed": 3})}
    task = family(kind).task()
    out = task.write_split(settings, "val", 6, tmp_path / "made", start=2)
    size = {"size": settings["size"], "at_least": 1} if which == "caption" else {}
    made = task.open(task.configure(settings), "val")
    again = task.open(task.configure({"name": f"jsonl:{out / 'scenes.jsonl'}", **size}), "val")
    assert [each.truth for each in again.shown(6)] == [each.truth for each in made.shown(8)[2:]]
    one, other = again.take(torch.arange(6)), made.take(torch.arange(2, 8))
    assert torch.equal(one.images, other.images)
    if which == "multiset":
        assert torch.equal(one.boxes.nan_to_num(-1), other.boxes.nan_to_num(-1))
    with pytest.raises(DataError, match="read, not generated"):
        task.write_split({"name": "csv:x"}, "val", 1, tmp_path / "more")


@pytest.mark.parametrize(
    ("which", "changes", "named"),
    [
        ("question", {"model": "sfot"}, "'soft'"),
        ("question", {"seed": 1 << 40}, "seed"),
        ("multiset", {"data": {}}, "data="),
        ("multiset", {"model": "soft", "model_config": {}}, "soft"),
        ("multiset", {"model_config": {**multiset_stubs.SMALL, "classes": 7}}, "classes: found 7"),
    ],
)
def test_wrong_settings_of_a_task_are_named(which: str, changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        task_of(which, tmp_path, **changes)


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        (CaptionDataConfig, {"options": {"captions": 3}}, "captions"),
        (MultisetDataConfig, {"name": "csv:t.csv", "size": 4097}, "size"),
        (MultisetDataConfig, {"name": "svhn:x", "options": {"kind": "set"}}, "options.kind"),
        (LabelDataConfig, {"name": "cifar10", "options": {"strict": True}}, "has none"),
        (LabelDataConfig, {"shift": {}, "augment": {}}, "one of them"),
    ],
)
def test_wrong_settings_of_data_are_named(kind: type, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        from_dict(kind, settings)
