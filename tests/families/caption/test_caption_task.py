"""Training captioners: batches, every loss, own words and their rewards, kept features, and every verb."""

from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from caption_stubs import captioned_files, short_splits
from saccade.engine.recipe import Phase
from saccade.errors import ConfigError
from saccade.families.caption.task import (
    DRAWS,
    OWN_WORDS,
    CaptionTask,
    Hard,
    HardCode,
    HardToGo,
    Loss,
    SelfCritical,
    Soft,
)
from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
)
from saccade.losses.policy import self_critical_loss
from saccade.metrics.text.ngrams import cider_scores
from saccade.metrics.text.tokens import ptb_tokens
from saccade.trace import CaptionOutput

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
    return CaptionTask(model=model, model_config={**SMALL, "longest": 6}, data=settings, seed=seed)


def first_batches(task: CaptionTask, count: int, start: int = 0, size: int = 4, **options: str) -> list[dict]:
    return list(islice(task.train_batches(start, batch_size=size, **options), count))


def taught(task: CaptionTask, loss: Loss) -> tuple[dict, dict, dict]:
    torch.manual_seed(0)
    (batch,) = first_batches(task, 1)
    raw = task.model.train().forward_raw(**task.inputs(batch))
    return task.loss(raw, batch, loss), raw, batch


def test_soft_attention_is_taught_by_equation_14() -> None:
    found, raw, batch = taught(on_scenes(), Soft(penalty=0.25))
    likelihood = caption_cross_entropy(raw.logits, batch["words"])
    penalty = doubly_stochastic(raw.acts["word"].weights, batch["words"])
    assert float(found["loss"].detach()) == pytest.approx(float((likelihood + 0.25 * penalty).detach()), rel=1e-5)
    steps = int((batch["words"] >= 0).sum())
    assert float(found["log_likelihood"].detach()) == pytest.approx(-float(likelihood.detach()) * 4 / steps, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
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


def judged_loss(task: CaptionTask, loss: SelfCritical | None = None) -> tuple[dict[str, Tensor], CaptionOutput, dict]:
    torch.manual_seed(0)
    (batch,) = first_batches(task, 1, data=OWN_WORDS)
    raw = task.model.train().forward_raw(**task.inputs(batch))
    return task.loss(raw, batch, loss or SelfCritical()), raw, batch


def test_the_truth_earns_what_the_score_of_sentences_says(tmp_path: Path) -> None:
    """Sentences with "end" as their last word, by all training captions; said is the first caption of each."""
    task = on_files(tmp_path / "files")
    data = task.split("train")
    judged = task.training_split(OWN_WORDS)
    numbers = torch.arange(data.picture_count)
    references = judged.references(numbers)  # (P,R,T)
    found = judged.rewards(references[:, :1], references, SelfCritical())[:, 0]

    def closed(caption: str) -> str:
        return " ".join([*ptb_tokens(caption), "end"])

    texts = [tuple(map(closed, data.references(number))) for number in numbers.tolist()]
    expected = cider_scores([each[0] for each in texts], texts)
    torch.testing.assert_close(10 * found.double(), expected, atol=1e-4, rtol=1e-5)
    assert float(found.min()) > 0.3


def test_drawn_captions_are_judged_beside_others_of_their_picture(tmp_path: Path) -> None:
    task = on_files(tmp_path / "files")
    found, raw, batch = judged_loss(task, task.phase_loss(Phase(steps=1, data=OWN_WORDS)))
    judged = task.training_split(OWN_WORDS)
    words, log_prob = (drawn.view(4, DRAWS, -1) for drawn in (raw.acts["word"].emits, raw.log_prob))
    drawn = judged.rewards(words, batch["references"], SelfCritical())  # (B,K)
    torch.testing.assert_close(found["loss"], self_critical_loss(log_prob, drawn))
    assert float(found["reward"]) == pytest.approx(float(drawn.mean()))
    assert float(found["best_reward"]) == pytest.approx(float(drawn.max(1).values.mean()))
    assert float(found["words"]) == pytest.approx(float((words > 0).sum()) / (4 * DRAWS))
    found["loss"].backward()
    learns = {name.split(".")[0] for name, p in task.model.named_parameters() if p.grad is not None and p.grad.any()}
    assert learns == {"backbone", "decoder"}  # soft attention is differentiable all the way


def test_of_hard_attention_cells_are_judged_where_they_were_drawn_and_said_something(tmp_path: Path) -> None:
    task = on_files(tmp_path / "files", "sat-hard")
    found, raw, batch = judged_loss(task)
    judged = task.training_split(OWN_WORDS)
    drawn = judged.rewards(raw.acts["word"].emits.view(4, DRAWS, -1), batch["references"], SelfCritical())  # (B,K)
    others = (drawn.sum(1, keepdim=True) - drawn) / (DRAWS - 1)
    advantage = (drawn - others).flatten()
    expected = 0.0
    for row in range(4 * DRAWS):
        log_prob = 0.0
        for step, word in enumerate(raw.acts["word"].emits[row].tolist()):
            if word >= 0:
                log_prob += float(raw.log_prob[row, step].detach())
                log_prob += 0 if raw.expected[row] else float(raw.acts["word"].log_prob[row, step].detach())
        expected -= float(advantage[row]) * log_prob / (4 * DRAWS)
    assert float(found["loss"].detach()) == pytest.approx(expected, rel=1e-4)
    assert 0 < int(raw.expected.sum()) < 4 * DRAWS
