"""Attribute triples: protocols and their borders, truth, counterfactuals, and the cache behind them."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.config import to_dict
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.sampler import scene_counts
from saccade.families.question.scenes import NOT_THERE, SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.task import QuestionTask
from saccade.models.facts import read_facts
from saccade.models.soft import SoftModel
from tiny_models import tiny_config

UNLIMITED = SceneDataConfig(glyphs="pack")
AUTHORS = SceneDataConfig(glyphs="pack", protocol="authors")


@pytest.fixture(scope="module")
def batch() -> SceneBatch:
    return SceneData(UNLIMITED, "train").take(torch.arange(48))


def same(a: SceneBatch, b: SceneBatch) -> bool:
    return all(torch.equal(getattr(a, n), getattr(b, n)) for n in ("images", "query", "label", "object", "scene"))


def test_a_batch_tells_the_truth(batch):
    assert batch.images.shape == (48, 3, 100, 100)
    assert batch.images.dtype == torch.float32
    assert batch.images.min() >= 0
    assert 0.5 < batch.images.max() <= 1
    rows = torch.arange(48)
    assert torch.equal(batch.layout.classes[rows, batch.object], batch.query)
    assert torch.equal(batch.layout.colour[rows, batch.object], batch.label)
    assert torch.equal(batch.evidence(), batch.layout.masks()[rows, batch.object])
    assert torch.equal(batch.scale, batch.layout.scale[rows, batch.object])
    assert batch.layout.present[rows, batch.object].all()
    assert len(batch) == 48


def test_authors_triples_are_every_digit_in_order():
    data = SceneData(AUTHORS, "train")
    counts = scene_counts(data.spec, data.seed, torch.arange(5))
    first = int(counts[:3].sum())
    batch = data.take(torch.arange(first))
    assert batch.scene.tolist() == [scene for scene in range(3) for _ in range(int(counts[scene]))]
    assert batch.object.tolist() == [slot for scene in range(3) for slot in range(int(counts[scene]))]


def test_merged_authors_cut_one_stream_in_three(monkeypatch):
    """Triple 0 of val follows triple 29,999 of train, in the same scene or the next."""
    monkeypatch.setattr("saccade.families.question.scenes.glyphs_for", lambda *_, **__: glyphs_for("train", "pack"))
    config = SceneDataConfig(glyphs="merged", protocol="authors")
    train, val, test = (SceneData(config, split) for split in ("train", "val", "test"))
    assert train.seed == val.seed == test.seed
    for before, last, after in ((train, 29_999, val), (val, 9_999, test)):
        (scene, slot), (next_scene, next_slot) = (
            [int(part) for part in data._locate(torch.tensor([number]))]
            for data, number in ((before, last), (after, 0))
        )
        assert (next_scene, next_slot) in ((scene, slot + 1), (scene + 1, 0))
    total = scene_counts(test.spec, test.seed, torch.arange(test.stream.length)).sum()
    assert 50_000 <= int(total) < 50_009


def test_recolouring_the_target_changes_answer_and_evidence_only(batch):
    changed = batch.recolour_target()
    assert (changed.label != batch.label).all()
    assert torch.equal(changed.query, batch.query)
    different = (changed.images != batch.images).any(dim=1)
    assert (different.flatten(1).any(dim=1)).all()
    assert not (different & ~batch.evidence()).any()
    assert torch.equal(batch.objects() & batch.evidence(), batch.evidence())  # the target is one of the objects
    assert torch.equal(batch.recolour_target().label, changed.label)
    # Every colour change is drawn about as often.
    steps = torch.bincount((changed.label - batch.label) % 5, minlength=5)
    assert steps[0] == 0
    assert (steps[1:] >= 4).all()


@pytest.mark.parametrize("edit", [SceneBatch.recolour_other, SceneBatch.remove_other])
def test_changing_another_digit_leaves_the_answer(batch, edit):
    changed = edit(batch)
    assert torch.equal(changed.label, batch.label)
    assert torch.equal(changed.query, batch.query)
    different = (changed.images != batch.images).any(dim=1)
    assert different.flatten(1).any(dim=1).all()
    assert not (different & batch.evidence()).any()
    masks = batch.layout.masks()
    touched = (masks & different[:, None]).flatten(2).any(dim=-1)  # (B, N)
    assert (touched.sum(dim=1) == 1).all()
    assert torch.equal(changed.evidence(), batch.evidence())


def test_a_fresh_scene_is_asked_for_several_of_its_digits():
    one, three = (SceneData(SceneDataConfig(glyphs="pack", asks=asks), "train") for asks in (1, 3))
    single, several = one.take(torch.arange(40)), three.take(torch.arange(120))
    assert torch.equal(several.scene, torch.arange(40).repeat_interleave(3))
    assert torch.equal(several.images[::3], single.images)  # asking more draws no other scenes
    assert torch.equal(several.query[::3], single.query)
    asked = several.query.view(40, 3)
    assert all(len(set(row)) == 3 for row in asked.tolist())
    assert torch.equal(several.layout.classes.gather(1, several.object[:, None])[:, 0], several.query)
    assert bool(several.layout.present.gather(1, several.object[:, None]).all())
    assert several.scene[three.one_per_scene(5)].tolist() == [0, 1, 2, 3, 4]


CONFIG = SceneDataConfig(glyphs="pack", absent=0.3, asks=4)


def small(**changes: object) -> dict[str, object]:
    config = to_dict(tiny_config(SoftModel, queries=10, answers=6))
    return {**config, **changes}


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_share_of_the_questions_is_for_a_digit_that_is_not_in_the_scene(split: str) -> None:
    batch = SceneData(CONFIG, split).take(torch.arange(800))  # type: ignore[arg-type]
    is_absent = batch.label == len(COLOURS)
    there = ((batch.layout.classes == batch.query[:, None]) & batch.layout.present).any(1)
    assert torch.equal(is_absent, ~there)
    assert 0.24 < float(is_absent.float().mean()) < 0.36
    assert len(batch.query[is_absent].unique()) == 10  # any digit may be missing
    plain = SceneData(dataclasses.replace(CONFIG, absent=0.0), split).take(torch.arange(800))  # type: ignore[arg-type]
    assert torch.equal(batch.images, plain.images)
    assert torch.equal(batch.label[there], plain.label[there])


def test_the_model_has_one_answer_more_and_is_scored_on_both_kinds(tmp_path: Path) -> None:
    task = QuestionTask(model="soft", model_config=small(), data=to_dict(CONFIG))
    assert task.answers == (*COLOURS, NOT_THERE)
    with torch.no_grad():
        task.model.head.classify.bias.copy_(torch.tensor([0, 0, 0, 0, 0, 1e4]))  # it always says "not there"
    task.save_model(task.model, tmp_path / "model", {})
    assert read_facts(tmp_path / "model").answers[-1] == NOT_THERE
    found = QuestionTask.evaluate(task.model.eval(), to_dict(CONFIG), "val", limit=40, sweeps=0)
    assert found["metrics"]["accuracy_absent"] == 1
    assert found["metrics"]["accuracy"] == 0  # of questions for digits that are there


PACK = {"name": "mref", "glyphs": "pack", "seed": 3}


def test_files_hold_what_the_generator_made(tmp_path):
    seen = []
    out = QuestionTask.write_split(
        PACK, "val", 5, tmp_path / "a" / "scenes", start=7, on_progress=lambda *report: seen.append(report)
    )
    lines = [json.loads(line) for line in (out / "scenes.jsonl").read_text().splitlines()]
    layout, images = SceneData(SceneDataConfig(**PACK), "val").stream.scenes(torch.arange(7, 12))
    assert [line["index"] for line in lines] == [7, 8, 9, 10, 11]
    assert seen == [("pictures", 5, 5)]
    assert {path.name for path in out.iterdir()} == {"scenes.jsonl", *(line["file"] for line in lines)}
    for b, line in enumerate(lines):
        picture = np.asarray(Image.open(out / line["file"]))
        assert np.array_equal(picture, images[b].permute(1, 2, 0).numpy())
        assert (line["seed"], line["split"], line["glyphs"], line["background"]) == (3, "val", "pack-val-200", "black")
        assert line["objects"] == layout[b : b + 1].facts()[0]
