"""Heads trained side by side: each comes out as it does alone with torch's own optimiser."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map

from saccade.backbones.stages import Level
from saccade.models.probe import standardised
from saccade.models.probe_heads import HEADS, HeadName, ProbeHead
from saccade.probing.examples import ProbedExamples, Questions
from saccade.probing.features import Features, Reading
from saccade.probing.heads import EvidenceCells, Material, Training, batches_of, rate_factor, stacked
from saccade.probing.plan import Plan, Setting

P, C, H, W, K = 8, 5, 2, 3, 3
LEVELS = (Level("fine", 1, 2), Level("last", 1, 1))
"""Of a pyramid whose folded map has C = 1·2² + 1 channels."""
PLAIN = Questions.none(P)
ASKED = Questions(("upper", "lower"), torch.tensor([0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1]), torch.arange(11) % P)
EACH = pytest.mark.parametrize("questions", [PLAIN, ASKED], ids=["labels", "questions"])
EVERY = pytest.mark.parametrize("name", HEADS)


@pytest.fixture(autouse=True)
def _in_double() -> Iterator[None]:
    """AdamW makes steps of full size along gradients that are rounding alone, as of a bias that moves all scores."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def training_of(
    name: HeadName, questions: Questions = PLAIN, places: EvidenceCells | None = None, **plan: int
) -> Training:
    """Heads of one kind on random features; the prior of the question is not 0, where it could not be seen."""
    maps = torch.randn(P, C, H, W, generator=torch.Generator().manual_seed(0))
    maps[:, 0, 0, 0] += 4
    features = Features(lambda numbers: maps[numbers], P)
    if name == "pyramid":
        features = Features(lambda n: maps[n][:, 4:], P, folded=lambda n: maps[n][:, :4], levels=LEVELS)
    examples = ProbedExamples(
        torch.arange(len(questions.query)) % K, range(K), range(len(questions.query)), questions
    )  # fmt: skip
    training = Training(
        name, Material(features, examples, Plan(hidden=4, queries=2, **plan), places), torch.arange(4), seed=7
    )
    fresh = training.new

    def new() -> ProbeHead:
        head = fresh()
        if head.prior is not None:
            torch.nn.init.normal_(head.prior.weight)
        return head

    training.new = new
    return training


def heads_of(training: Training, seeds: list[int]) -> list[ProbeHead]:
    heads = []
    for seed in seeds:
        torch.manual_seed(seed)
        heads.append(training.new())
    return heads


def alone(training: Training, head: ProbeHead, examples: torch.Tensor):
    """What a head says of examples by itself: logits, and its acts."""
    questions = training.material.examples.questions
    return head(folded_input(training, questions.picture[examples]), None, questions.query[examples])


def folded_input(training: Training, pictures: torch.Tensor) -> torch.Tensor:
    """The standardised features (B,C,H,W), those of a pyramid as one map."""
    return standardised(training.material.features.view(training.name).take(pictures), *training.statistics)


def test_a_pyramid_pools_each_stage_by_its_own_map() -> None:
    training = training_of("pyramid")
    features = folded_input(training, torch.arange(P))
    (head,) = heads_of(training, [0])
    logits, acts = head(features)
    assert {name: tuple(act.weights.shape) for name, act in acts.items()} == {"fine": (P, 4, 6), "last": (P, 2, 3)}
    fine = F.pixel_shuffle(features[:, :4], 2)  # (P,1,4,6)
    weights = (fine * head.ask[0].weight).flatten(1).softmax(-1)
    context = torch.stack([(fine.flatten(1) * weights).sum(1), acts["last"].context[:, 0]], 1)
    torch.testing.assert_close(logits, head.classify(context))


@EVERY
@EACH
def test_a_stack_answers_and_looks_as_its_members_do(name: HeadName, questions: Questions) -> None:
    training = training_of(name, questions, batch_size=2)
    training.at_once, heads, pictures = 2, heads_of(training, [0, 1, 2]), torch.tensor([3, 0, 1])
    examples, asked = questions.about(pictures)
    single = [alone(training, head, examples) for head in heads]
    weights, features = stacked(heads), training.batch(pictures)
    logits = heads[0].stacked(weights, features, asked)
    torch.testing.assert_close(logits, torch.stack([logits for logits, _ in single]))
    maps = heads[0].stacked_maps(weights, features, asked)
    assert isinstance(features, list) == (name == "pyramid")  # its levels are unfolded once, and not in every step
    assert (maps is None) == (name in ("linear", "pyramid"))  # no place; several grids
    if maps is not None:
        own = [torch.stack([act.weights for act in acts.values()]).mean(0) for _, acts in single]  # (R,H,W)
        torch.testing.assert_close(maps, torch.stack(own))
    some = torch.tensor([6, 0, 3, 5])  # logits come in the order that was asked for
    expected = torch.stack([alone(training, head, some)[0] for head in heads])
    torch.testing.assert_close(training.logits(heads, some), expected)


@EVERY
@EACH
def test_stacked_training_equals_the_single_training(name: HeadName, questions: Questions) -> None:
    """Members with settings of their own, two in a stack, against torch's AdamW on each alone."""
    training, steps, seen = training_of(name, questions, steps=8, batch_size=3), 8, set[int]()
    training.at_once, batch, count = 2, training.batch, len(questions.query)
    learns = torch.ones(count, dtype=torch.bool)
    learns[::3] = False
    learns[questions.picture == 2] = False

    def watched(numbers: torch.Tensor) -> torch.Tensor:
        seen.update(numbers.tolist())
        return batch(numbers)

    training.batch = watched
    rates, decays, seeds = [0.1, 0.02, 0.05], [0.01, 1.0, 0.1], [0, 1, 1]
    trained = training.run(seeds, [*map(Setting, rates, decays)], learns.nonzero()[:, 0])
    labels, pictures = training.material.examples.labels, torch.unique(questions.picture[learns])
    assert seen == {*pictures.tolist()}  # others are never asked for
    for number, (model, result) in enumerate(zip(heads_of(training, seeds), trained, strict=True)):
        first = copy.deepcopy(model)
        optimiser = torch.optim.AdamW(model.parameters(), lr=rates[number], weight_decay=decays[number])
        for step, numbers in enumerate(batches_of(pictures, 3, steps, 7)):
            optimiser.param_groups[0]["lr"] = rates[number] * rate_factor(step, steps)
            own = (torch.isin(questions.picture, numbers) & learns).nonzero()[:, 0]
            optimiser.zero_grad()
            F.cross_entropy(alone(training, model, own)[0], labels[own]).backward()
            optimiser.step()
        torch.testing.assert_close(result.state_dict(), model.state_dict(), rtol=1e-6, atol=1e-7)
        assert not torch.equal(result.classify.weight, first.classify.weight)  # it did learn


@EVERY
@EACH
def test_heads_learn_where_the_features_are(name: HeadName, questions: Questions, monkeypatch: Any) -> None:
    """On the device ``meta``, which refuses any product of tensors of two devices; numbers stay in main memory."""
    training = training_of(name, questions, steps=1)
    take = training.batch

    def elsewhere(numbers: torch.Tensor) -> Any:
        return tree_map(lambda values: values.to("meta"), take(numbers))

    training.batch, training.device = elsewhere, torch.device("meta")
    monkeypatch.setattr(ProbeHead, "load_state_dict", lambda head, state: seen.append(state))
    seen: list[dict[str, torch.Tensor]] = []
    training.run([0, 1], [Setting(0.1, 0.1)] * 2, torch.arange(4))
    assert all(weights.device.type == "meta" for state in seen for weights in state.values())
    assert len(seen) == 2


@pytest.mark.parametrize("name", ["hard", "queries"])
def test_heads_are_taught_where_to_look(name: HeadName) -> None:
    """Evidence is the first cell, which channel 0 marks."""
    on = torch.zeros(P, H, W)
    on[:, 0, 0] = 1
    shares = []
    for places in (EvidenceCells(on, torch.ones(1, H, W), 5.0), None):
        training = training_of(name, PLAIN, places, steps=40, batch_size=P)
        (head,) = training.run([0], [Setting(0.1, 0.0)], torch.arange(P))
        acts = alone(training, head, torch.arange(P))[1].values()
        shares.append(float(torch.stack([act.weights[:, 0, 0].detach() for act in acts]).mean()))
    assert shares[0] > max(0.75, shares[1] + 0.2)


def test_only_examples_that_are_learned_from_teach_where_to_look() -> None:
    """Two examples with shares 1/2 and 1/4 on the evidence, of which both or only the second count."""
    maps = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]]])  # (M,R,1,2)
    places = EvidenceCells(torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]), torch.ones(1, 1, 2), 1.0)
    missed = [places.missed(maps, torch.tensor([0, 1]), torch.tensor(counts)) for counts in ([1.0, 1.0], [0.0, 1.0])]
    torch.testing.assert_close(torch.cat(missed).exp().double(), torch.tensor([8**0.5, 4.0]))


def test_features_are_standardised_once_or_batch_by_batch_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    features, numbers, asked = torch.randn(30, C, H, W), torch.tensor([5, 3, 5]), []

    def read(some: torch.Tensor) -> torch.Tensor:
        asked.append(len(some))
        return features[some]

    once = Reading(read, 30)
    batch = once.batches(*once.statistics(torch.arange(9)))
    asked.clear()
    values = batch(numbers)
    assert asked == []  # from memory
    monkeypatch.setattr("saccade.probing.features.RESIDENT", 0)
    view = Reading(read, 30)
    torch.testing.assert_close(values, view.batches(*view.statistics(torch.arange(9)))(numbers))
    assert asked[-1] == 3
