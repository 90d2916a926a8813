"""Training captions: batches of one length, losses by phase, kept features, validation, settings that do not fit."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch

from caption_stubs import SENTENCES, captioned_files, short_splits
from saccade.engine.recipe import Phase
from saccade.errors import ConfigError
from saccade.families.caption.scenes import SCENE_VOCABULARY, scene_vocabulary
from saccade.families.caption.task import CaptionTask, Hard, HardCode, HardToGo, Loss, Soft
from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
)

SMALL = {"backbone": "small", "through": "stage2", "embed": 4, "hidden": 8, "attention": 4, "dropout": 0.0}
SCENES = {"name": "scenes", "glyphs": "pack", "size": (40, 40)}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    with short_splits():
        yield


def on_scenes(model: str = "sat-soft", seed: int = 0, **config: object) -> CaptionTask:
    return CaptionTask(model=model, model_config={**SMALL, **config}, data=SCENES, seed=seed)


def on_files(folder: Path, model: str = "sat-soft", seed: int = 0, **data: object) -> CaptionTask:
    settings = {"name": f"csv:{captioned_files(folder, 16)}", "size": (40, 48), "at_least": 1, **data}
    return CaptionTask(model=model, model_config=SMALL, data=settings, seed=seed)


def first_batches(task: CaptionTask, count: int, features: str = "auto", start: int = 0, size: int = 4) -> list[dict]:
    return list(islice(task.train_batches(start, batch_size=size, features=features), count))


def test_the_data_decide_words_and_sizes(tmp_path: Path) -> None:
    task = on_scenes()
    assert (task.model.config.vocabulary, task.model.config.input_size) == (23, (40, 40))
    assert task.answers == ("<end>", "<unknown>", *scene_vocabulary(empty=False).words)
    files = on_files(tmp_path / "files")
    assert set(files.answers[2:]) == {word for sentence in SENTENCES for word in sentence.split()}
    assert files.portable_settings({"name": f"csv:{tmp_path}/x.csv"})["name"] == "csv"  # no paths


def test_a_model_of_empty_scenes_can_say_so_and_is_told_to() -> None:
    task = CaptionTask(model="sat-soft", model_config=SMALL, data={**SCENES, "empty": 0.5})
    assert task.model.config.vocabulary == 24
    assert task.answers == ("<end>", "<unknown>", *SCENE_VOCABULARY.words)
    (batch,) = first_batches(task, 1, size=16)
    bare = ~batch["images"].flatten(1).any(1)
    assert 2 < int(bare.sum()) < 14
    assert batch["words"][bare].tolist() == [[23, 0, *[-1] * 9]] * int(bare.sum())
    assert not (batch["words"][~bare] == 23).any()
    assert 0 <= task.validate(task.model.eval())["exact_match"] <= 1


def test_a_batch_has_captions_of_nearly_one_length(tmp_path: Path) -> None:
    """Captions have 3 or 6 words; sorted and cut into batches of four, at most one batch of an epoch mixes them."""
    task = on_files(tmp_path / "files")
    data = task.split("train")
    steps = task.steps_per_epoch(4)
    mixed = 0
    for epoch in range(3):
        lengths = [
            set((batch["words"] >= 0).sum(1).tolist()) for batch in first_batches(task, steps, start=epoch * steps)
        ]
        mixed = max(mixed, sum(len(each) > 1 for each in lengths))
    assert mixed <= 1
    assert set(data.lengths.tolist()) == {4, 7}


def taught(task: CaptionTask, loss: Loss) -> tuple[dict, dict, dict]:
    torch.manual_seed(0)
    (batch,) = first_batches(task, 1)
    raw = task.model.train().forward_raw(**task.inputs(batch))
    return task.loss(raw, batch, loss), raw, batch


@pytest.mark.parametrize(("loss", "weight"), [(Soft(), 1.0), (Soft(penalty=0.25), 0.25), (Soft(penalty=0.0), 0.0)])
def test_soft_attention_is_taught_by_equation_14(loss: Soft, weight: float) -> None:
    found, raw, batch = taught(on_scenes(), loss)
    likelihood = caption_cross_entropy(raw.logits, batch["words"])
    penalty = doubly_stochastic(raw.acts["word"].weights, batch["words"])
    assert float(found["loss"].detach()) == pytest.approx(float((likelihood + weight * penalty).detach()), rel=1e-5)
    steps = int((batch["words"] >= 0).sum())
    assert float(found["log_likelihood"].detach()) == pytest.approx(-float(likelihood.detach()) * 4 / steps, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (Hard(), {}),
        (Hard(entropy=0.5), {"entropy_weight": 0.5}),
        (HardToGo(), {"to_go": True}),
        (HardCode(), {"reward_weight": 0.1, "per_word": True}),
    ],
)
def test_hard_attention_is_taught_by_equations_10_to_12(loss: Hard, options: dict) -> None:
    found, raw, batch = taught(on_scenes("sat-hard"), loss)
    expected = hard_attention_loss(raw, batch["words"], raw.baseline, **options)
    assert float(found["loss"].detach()) == pytest.approx(float(expected["loss"].detach()), rel=1e-5)
    assert {"policy_loss", "entropy", "reward", "gate"} <= set(found)


def test_losses_that_cannot_be_are_refused() -> None:
    for loss, named in (
        ({"name": "soft", "penalti": 1}, "'penalty'"),
        ({"name": "soft", "penalty": float("nan")}, "penalty"),
        ("self_critical", "own_words"),
        ({"name": "hard_code", "entropy": 1}, "sat-hard"),
    ):
        with pytest.raises(ConfigError, match=named):
            on_scenes().phase_loss(Phase(steps=1, loss=loss))


def test_the_decoder_learns_from_kept_features(tmp_path: Path) -> None:
    """What is kept is what the encoder says in eval mode, to half precision, and it is read back, not made again."""
    task = on_files(tmp_path / "files")
    task.model.train()
    batches = first_batches(task, 3, "kept")
    assert task.model.backbone.training  # as it was
    plain = first_batches(task, 3)
    task.model.eval()
    for kept, whole in zip(batches, plain):
        assert torch.equal(kept["words"], whole["words"])
        torch.testing.assert_close(kept["features"], task.model.encode(whole["images"]), atol=5e-3, rtol=5e-3)
        one, other = (task.model.forward_raw(**task.inputs(batch)).logits for batch in (kept, whole))
        torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-2)
    shards = sorted((tmp_path / "home" / "features").rglob("*.f16"))
    assert shards
    written = [shard.stat().st_mtime_ns for shard in shards]
    again = on_files(tmp_path / "files")
    assert torch.equal(first_batches(again, 1, "kept")[0]["features"], batches[0]["features"])
    assert [shard.stat().st_mtime_ns for shard in shards] == written


def test_features_are_kept_of_an_encoder_that_stays_as_it_is(tmp_path: Path) -> None:
    """What a phase freezes is what it says, so that a phase cannot train what it does not see."""
    task = on_files(tmp_path / "files")
    kept = Phase(steps=1, features="kept")
    names = [name for name, _ in task.model.named_parameters()]
    decoder = [name for name in names if not name.startswith("backbone.")]
    assert task.phase_loss(kept, decoder) == Soft()
    assert task.phase_loss(Phase(steps=1, features="fresh"), names) == Soft()
    with pytest.raises(ConfigError, match="backbone"):
        task.phase_loss(kept, names)
    with pytest.raises(ConfigError, match="own_words"):
        task.phase_loss(Phase(steps=1, features="kept", data="own_words", loss="self_critical"), decoder)


def test_the_log_likelihood_is_that_of_a_word(tmp_path: Path) -> None:
    task = on_files(tmp_path / "files")
    model = task.model.eval()
    data = task.split("val")
    batch = data.of_pictures(torch.arange(data.picture_count))
    with torch.no_grad():
        logits = model.forward_raw(batch.images, batch.words).logits.log_softmax(-1)
    each = [
        float(logits[row, step, word])
        for row, line in enumerate(batch.words.tolist())
        for step, word in enumerate(line)
        if word >= 0
    ]
    assert task.validate(model)["log_likelihood"] == pytest.approx(sum(each) / len(each), rel=1e-5)
