"""Training by the model's own captions: what they earn, what is judged, which phases and losses go together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from caption_stubs import captioned_files, short_splits
from saccade.engine.recipe import Phase
from saccade.errors import ConfigError
from saccade.families.caption.task import DRAWS, OWN_WORDS, CaptionTask, SelfCritical
from saccade.families.caption.vocabulary import END, UNKNOWN
from saccade.losses.policy import self_critical_loss
from saccade.metrics.text.ngrams import cider_each
from saccade.metrics.text.tokens import ptb_tokens
from saccade.trace import CaptionOutput

SMALL = {"backbone": "small", "through": "stage2", "embed": 4, "hidden": 8, "attention": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    with short_splits():
        yield


@pytest.fixture
def table(tmp_path: Path) -> str:
    return f"csv:{captioned_files(tmp_path / 'files', 16)}"


def on_files(
    table: str, model: str = "sat-soft", data: Mapping[str, object] | None = None, **config: object
) -> CaptionTask:
    settings = {"name": table, "size": (40, 48), "at_least": 1, **(data or {})}
    return CaptionTask(model=model, model_config={**SMALL, "longest": 6, **config}, data=settings)


def batches(task: CaptionTask, count: int, start: int = 0, **material: str) -> list[dict]:
    return list(islice(task.train_batches(start, batch_size=4, **material), count))


def taught(task: CaptionTask, loss: SelfCritical | None = None) -> tuple[dict[str, Tensor], CaptionOutput, dict]:
    torch.manual_seed(0)
    (batch,) = batches(task, 1, data=OWN_WORDS)
    raw = task.model.train().forward_raw(**task.inputs(batch))
    return task.loss(raw, batch, loss or SelfCritical()), raw, batch


def test_the_truth_earns_what_the_score_of_sentences_says(table: str) -> None:
    """Sentences with "end" as their last word, by all training captions; said is the first caption of each."""
    task = on_files(table)
    data = task.split("train")
    judged = task.training_split(OWN_WORDS)
    numbers = torch.arange(data.picture_count)
    references = judged.references(numbers)  # (P,R,T)
    found = judged.rewards(references[:, :1], references, SelfCritical())[:, 0]

    def closed(caption: str) -> str:
        return " ".join([*ptb_tokens(caption), "end"])

    texts = [tuple(map(closed, data.references(number))) for number in numbers.tolist()]
    expected = cider_each([each[0] for each in texts], texts)
    torch.testing.assert_close(10 * found.double(), expected, atol=1e-4, rtol=1e-5)
    assert float(found.min()) > 0.3


def test_a_batch_holds_pictures_and_all_that_was_said_of_them(table: str) -> None:
    task = on_files(table)
    data = task.split("train")
    (batch,) = batches(task, 1, data=OWN_WORDS)
    assert set(batch) == {"images", "references"}
    assert set(task.inputs(batch)) == {"images", "words", "draws"}
    assert task.inputs(batch)["words"] is None
    every = data.of_pictures(torch.arange(data.picture_count))
    for image, references in zip(batch["images"], batch["references"]):
        (number,) = [row for row, other in enumerate(every.images) if torch.equal(image, other)]
        said = [data.vocabulary.decode(row) for row in references.tolist()]
        assert said == [" ".join(ptb_tokens(caption)) for caption in data.references(number)]


def test_references_are_the_words_that_scores_compare(tmp_path: Path) -> None:
    """Pictures 0 and 1 train; "#" and "mr." are scored words that no model says, and so the unknown word."""
    captions = {0: ["Mr. Fox's # 7.", "A fox"], 1: ["A cannot-do fox", "a fox , a fox", "fox"], 2: ["A fox"]}
    rows = [("image", "caption", "split")]
    for number, said in captions.items():
        Image.new("RGB", (20, 24), (40 * number, 0, 0)).save(tmp_path / f"{number}.png")
        rows += [(f"{number}.png", f'"{caption}"', "val" if number == 2 else "train") for caption in said]
    (tmp_path / "t.csv").write_text("\n".join(",".join(row) for row in rows))
    task = on_files(f"csv:{tmp_path / 't.csv'}")
    judged = task.training_split(OWN_WORDS)
    number = task.vocabulary.number
    a, fox = number("a"), number("fox")
    assert "mr" in task.vocabulary
    first = [[UNKNOWN, fox, number("'s"), UNKNOWN, number("7"), END], [a, fox, END, -1, -1, -1]]
    assert judged.references(torch.tensor([0])).tolist() == [first]
    nothing = [-1] * 6
    second = [[a, number("cannot-do"), fox, END, -1, -1], [a, fox, a, fox, END, -1], [fox, END, -1, -1, -1, -1]]
    assert judged.references(torch.tensor([1, 0])).tolist() == [second, [*first, nothing]]
    assert judged.references(torch.tensor([1])).shape == (1, 3, 5)  # no larger than it needs to be


@pytest.mark.parametrize("loss", ["self_critical", "default"])
def test_drawn_captions_are_judged_beside_others_of_their_picture(table: str, loss: str) -> None:
    task = on_files(table)
    found, raw, batch = taught(task, task.phase_loss(Phase(steps=1, data=OWN_WORDS, loss=loss)))
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


def test_of_hard_attention_cells_are_judged_where_they_were_drawn_and_said_something(table: str) -> None:
    task = on_files(table, "sat-hard")
    found, raw, batch = taught(task)
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


def test_it_learns_what_people_say(table: str) -> None:
    """From nothing, on four pictures of which sixteen captions are drawn at a time."""
    task = on_files(table, embed=32, hidden=32)
    (batch,) = batches(task, 1, data=OWN_WORDS)
    features = task.model.encode(batch["images"]).detach()
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(task.model.decoder.parameters(), lr=1e-2)
    earned = []
    for _ in range(130):
        found = task.loss(
            task.model.train().forward_raw(None, None, features=features, draws=16), batch, SelfCritical()
        )
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        earned.append(float(found["reward"]))
    assert earned[0] < 0.1
    assert earned[-1] > 0.4


def own_words(loss: dict | str) -> Phase:
    return Phase(steps=1, data=OWN_WORDS, loss=loss)


def test_the_material_and_the_loss_go_together(table: str) -> None:
    task = on_files(table)
    for loss in ("soft", "hard"):
        with pytest.raises(ConfigError, match="own_words"):
            task.phase_loss(own_words(loss))
    assert task.phase_loss(own_words("default")) == SelfCritical()
    both = task.phase_loss(own_words({"name": "self_critical", "bleu": 0.5, "meteor": 0.2}))
    assert both == SelfCritical(bleu=0.5, meteor=0.2)
    assert task.phase_loss(own_words({"name": "self_critical", "meteor": 1})) == SelfCritical(bleu=0.0, meteor=1.0)
