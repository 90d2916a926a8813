"""The training side of the attribute task: batches by number, the loss, what is refused, the model folder."""

import itertools
import math

import pytest
import torch

import saccade.data.scenes.stream as stream
import saccade.families.question.scenes as attributes
from saccade.errors import ConfigError
from saccade.families.question.task import CrossEntropy, Default, QuestionTask, Reinforce
from saccade.trace import QuestionOutput

SMALL = {"channels": 4, "hidden": 4, "dropout": 0.0}
TRIPLES = 50


@pytest.fixture(autouse=True)
def _small_splits(monkeypatch):
    """Few scenes are made at a time, and finite splits are short."""
    monkeypatch.setitem(stream._CHUNK, "cpu", 16)
    monkeypatch.setitem(attributes._SIZES["authors"], "train", TRIPLES)
    monkeypatch.setitem(attributes._SIZES["unlimited"], "val", 23)


def new_task(*, protocol="unlimited", seed=0, **data) -> QuestionTask:
    return QuestionTask(
        model="soft", model_config=SMALL, data={"name": "mref", "glyphs": "pack", **data}, protocol=protocol, seed=seed
    )


def batches(task, count, *, start=0, **options):
    return list(itertools.islice(task.train_batches(start, **options), count))


def triples(task, numbers, batch_size):
    """Which triples a finite task's batches hold."""
    return torch.cat([task._members(task.split("train"), number, batch_size) for number in numbers]).tolist()


def test_a_picture_that_is_asked_several_times_comes_once():
    once, thrice = new_task(), new_task(asks=3)
    (plain,), (batch,) = batches(once, 1, batch_size=4), batches(thrice, 1, batch_size=12)
    assert torch.equal(batch["images"], plain["images"])
    assert batch["images"].is_contiguous(memory_format=torch.channels_last)
    assert (len(batch["query"]), len(batch["label"])) == (12, 12)
    assert torch.equal(batch["query"][::3], plain["query"])
    found = thrice.loss(thrice.model.forward_raw(**thrice.inputs(batch)), batch, Default())
    assert found["loss"].requires_grad
    with pytest.raises(ConfigError, match="a batch of 10 cannot be split into scenes that are asked 3 times"):
        batches(thrice, 1, batch_size=10)


def test_an_epoch_visits_each_triple_at_most_once_and_the_next_in_another_order():
    task = new_task(protocol="authors")
    per_epoch = task.steps_per_epoch(8)
    assert per_epoch == TRIPLES // 8
    first, second = (triples(task, range(epoch * per_epoch, (epoch + 1) * per_epoch), 8) for epoch in (0, 1))
    for order in (first, second):
        assert len(set(order)) == len(order) == per_epoch * 8
        assert set(order) <= set(range(TRIPLES))
    assert first != second
    assert first != sorted(first)
    assert triples(new_task(protocol="authors"), [0], TRIPLES) != list(range(TRIPLES))
    assert sorted(triples(task, [0], TRIPLES)) == list(range(TRIPLES))


@pytest.mark.parametrize("loss", [Default(), CrossEntropy()])
def test_loss_hand_worked(loss):
    """Equal logits: log 2 of two answers. Odds 3:1 for the wrong one: −log 1/4. Arg-max right once in two."""
    raw = QuestionOutput(**{"logits": torch.tensor([[1.0, 1.0], [math.log(3), 0.0]])})
    found = new_task().loss(raw, {"label": torch.tensor([0, 1])}, loss)
    assert set(found) == {"loss", "accuracy"}
    assert float(found["loss"]) == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert float(found["accuracy"]) == 0.5


def drawn(probabilities, log_prob=(-1.0, -2.0)):
    """What a model that draws two locations gives for one picture: the share of the right answer at each."""
    shares = torch.tensor([[[share, 1 - share] for share in probabilities]])
    sampled = torch.tensor([log_prob], requires_grad=True)
    return QuestionOutput(
        logits=shares[:, 0].log(),
        sampled_logits=shares.log().requires_grad_(),
        sampled_log_prob=sampled,
        entropy=torch.tensor([math.log(4)]),
    )


@pytest.mark.parametrize("loss", [Default(), Reinforce()])
def test_drawn_locations_are_taught_by_what_they_answer(loss):
    """Shares 1/2 and 1/8 of the right answer: rewards −log 2 and −log 8, each the other's baseline, 2·log 2 apart.

    The bound is their mean, −2·log 2; four cells equally likely have an entropy of 2·log 2, weighed with 0.002.
    """
    raw = drawn((0.5, 0.125))
    found = new_task().loss(raw, {"label": torch.tensor([0])}, loss)
    assert found["loss"].item() == pytest.approx(2 * math.log(2) * (1 - 0.002))
    found["loss"].backward()
    advantage = 2 * math.log(2)
    assert raw.sampled_log_prob.grad.tolist() == [pytest.approx([-advantage / 2, advantage / 2])]
    assert raw.sampled_logits.grad.abs().sum() > 0
