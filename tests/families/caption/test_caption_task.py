"""Training captioners: batches, every loss, own words and their rewards, kept features, and every verb."""

import json
from itertools import islice
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from typer.testing import CliRunner

import saccade
from caption_stubs import captioned_files, short_splits
from saccade.commands.door import app
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
from saccade.losses.captions import caption_cross_entropy, doubly_stochastic, hard_attention_loss
from saccade.losses.policy import self_critical_loss
from saccade.metrics.text.ngrams import cider_scores
from saccade.metrics.text.tokens import ptb_tokens
from saccade.models.facts import read_facts
from saccade.trace import CaptionOutput

SMALL = {"backbone": "small", "through": "stage2", "embed": 4, "hidden": 8, "attention": 4, "dropout": 0.0}
SCENES = {"name": "scenes", "glyphs": "pack", "size": (40, 40)}


@pytest.fixture(autouse=True, scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory):
    with short_splits(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
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


SIZES = "embed: 4, hidden: 8, attention: 4, dropout: 0.0, longest: 12"
TINY = (
    "data.glyphs=pack",
    "data.size=[48, 48]",
    f"model.config={{backbone: small, through: stage2, {SIZES}}}",
    "batch_size=4",
    "log_every=2",
    "checkpoint_every=1",
    "phases.0.steps=4",
    "phases.0.validate_every=2",
    "phases.0.schedule.warmup=0",
)
FILES = (
    "data.size=[40, 48]",
    "data.at_least=1",
    f"model.config={{backbone: small, through: stage2, pretrained: false, {SIZES}}}",
    "batch_size=4",
    "log_every=1",
    "phases.0.epochs=2",
)
runner = CliRunner()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "sat"
    return saccade.train("sat-soft-scenes", out=out, overrides=TINY, device="cpu", quiet=True).out


def test_files_are_trained_on_kept_features_and_scored(tmp_path: Path) -> None:
    table = f"csv:{captioned_files(tmp_path / 'files', 16)}"
    out = saccade.train("sat-hard", data=table, out=tmp_path / "run", overrides=FILES, device="cpu", quiet=True).out
    states = [load_file(next(path.glob("*.safetensors"))) for path in sorted((out / "checkpoints").iterdir())]
    changed = {
        name.split("/")[1].split(".")[0]
        for name in states[0]
        if name.startswith("model/") and not torch.equal(states[0][name], states[-1][name])
    }
    assert changed == {"decoder", "baseline"}  # the encoder rests
    facts = read_facts(out / "model")
    assert facts.data["name"] == facts.recipe["data"]["name"] == "csv"
    with pytest.raises(ConfigError, match="give `data=csv:PATH`"):
        saccade.evaluate(out, device="cpu")
    found = saccade.evaluate(out, data=table, device="cpu")
    assert (found["data"], found["protocol"], found["beam"]) == ("csv", "official", 5)
    assert found["counts"]["altered_pictures"] == found["n"] == 2
    words = len(facts.answers) - 2  # but for the end and the unknown word
    assert f", {words} words; an epoch is " in (out / "log.txt").read_text(encoding="utf-8").splitlines()[0]


def test_look_prints_captions_and_writes_strips(run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (80, 60), "grey").save(tmp_path / "a.png")
    command = ["look", f"{tmp_path / 'a.png'}", "--model", f"{run}", "--device", "cpu", "--captions", "3"]
    told = runner.invoke(app, [*command, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert found["answer"] == " ".join(entry["word"] for entry in found["words"])
    assert len(found["other_captions"]) == 2
    shown = runner.invoke(app, [*command, "--out", str(tmp_path / "out"), "--cells"])
    assert shown.exit_code == 0, shown.output
    assert "asked" not in shown.output
    assert shown.output.count("a.png") == 3  # a row for every caption
    names = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert names == ["a-caption-2.png", "a-caption-3.png", "a.png"]
