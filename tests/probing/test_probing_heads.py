"""Heads trained side by side: each comes out as it does alone with torch's own optimiser."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from saccade.backbones.stages import Level
from saccade.models.probe_heads import HEADS, HeadName, ProbeHead, new_head
from saccade.probing.data import Examples, Questions
from saccade.probing.heads import (
    Places,
    Setting,
    batches_of,
    fresh_heads,
    logits_of,
    members_at_once,
    rate_factor,
    stacked,
    train_heads,
)

P, C, H, W, K = 8, 5, 2, 3, 3
LEVELS = (Level("fine", 1, 2), Level("last", 1, 1))
"""Of a pyramid whose folded map has C = 1·2² + 1 channels."""
PLAIN = Questions.none(P)
ASKED = Questions(("upper", "lower"), torch.tensor([0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1]), torch.arange(11) % P)
EACH = pytest.mark.parametrize("questions", [PLAIN, ASKED], ids=["labels", "questions"])
EVERY = pytest.mark.parametrize("name", HEADS)


def features_of(pictures: int) -> torch.Tensor:
    return torch.randn(pictures, C, H, W, generator=torch.Generator().manual_seed(0)).double()


def heads_of(name: HeadName, seeds: list[int], questions: Questions = PLAIN) -> list[ProbeHead]:
    sizes = {"hidden": 4, "queries": 2, "levels": LEVELS, "asked": len(questions.words)}
    heads = [head.double() for head in fresh_heads(lambda: new_head(name, C, K, **sizes), seeds)]
    for number, head in enumerate(heads):  # a prior begins at 0, where it could not be seen to be used
        if head.prior is not None:
            torch.nn.init.normal_(head.prior.weight, generator=torch.Generator().manual_seed(number))
    return heads


def alone(head: ProbeHead, questions: Questions, examples: torch.Tensor):
    """What a head says of examples by itself: logits, and its acts."""
    return head(features_of(P)[questions.picture[examples]], None, questions.query[examples])


def test_a_pyramid_pools_each_stage_by_its_own_map() -> None:
    features = features_of(P)
    head = heads_of("pyramid", [0])[0]
    logits, acts = head(features)
    assert {name: tuple(act.weights.shape) for name, act in acts.items()} == {"fine": (P, 4, 6), "last": (P, 2, 3)}
    fine = F.pixel_shuffle(features[:, :4], 2)  # (P,1,4,6)
    weights = (fine * head.ask[0].weight).flatten(1).softmax(-1)
    context = torch.stack([(fine.flatten(1) * weights).sum(1), acts["last"].context[:, 0]], 1)
    torch.testing.assert_close(logits, head.classify(context))


@EVERY
@EACH
def test_a_stack_answers_and_looks_as_its_members_do(name: HeadName, questions: Questions) -> None:
    heads, features = heads_of(name, [0, 1, 2], questions), features_of(P)
    examples, asked = questions.about(torch.tensor([3, 0, 1]))
    each = [alone(head, questions, examples) for head in heads]
    pictures = features[torch.tensor([3, 0, 1])]
    weights = stacked(heads)
    found = heads[0].stacked(weights, pictures, asked)
    torch.testing.assert_close(found, torch.stack([logits for logits, _ in each]))
    maps = heads[0].stacked_maps(weights, pictures, asked)
    assert (maps is None) == (name in ("linear", "pyramid"))  # no place; several grids
    if maps is not None:
        own = [torch.stack([act.weights for act in acts.values()]).mean(0) for _, acts in each]  # (R,H,W)
        torch.testing.assert_close(maps, torch.stack(own))
    some = torch.tensor([6, 0, 3, 5])  # logits come in the order that was asked for
    found = logits_of(heads, lambda numbers: features[numbers], some, 2, 2, questions)
    torch.testing.assert_close(found, torch.stack([alone(head, questions, some)[0] for head in heads]))


@EVERY
@EACH
def test_stacked_training_equals_the_single_training(name: HeadName, questions: Questions) -> None:
    """Members with settings and examples of their own, two in a stack, against torch's AdamW on each alone.

    In double precision: AdamW makes steps of full size along gradients that are rounding alone, such as that of a bias
    which moves all scores alike. Pictures that no member learns from are never asked for.
    """
    features, heads = features_of(P), heads_of(name, [0, 1, 1], questions)
    labels = torch.arange(len(questions.query)) % K
    learns = torch.ones(3, len(labels), dtype=torch.bool)
    learns[1, ::3] = False
    learns[:, questions.picture == 2] = False
    rates, decays, steps, seen = [0.1, 0.02, 0.05], [0.01, 1.0, 0.1], 8, set[int]()

    def batch(numbers: torch.Tensor) -> torch.Tensor:
        seen.update(numbers.tolist())
        return features[numbers]

    examples = Examples(labels, range(K), range(len(labels)), questions)
    settings = [*map(Setting, rates, decays)]
    trained = train_heads(heads, batch, examples, learns, settings, steps=steps, batch_size=3, seed=7, at_once=2)
    assert seen == {*range(P)} - {2}
    pictures = questions.pictures_of(learns.any(0).nonzero()[:, 0])
    for number, found in enumerate(trained):
        model = copy.deepcopy(heads[number])
        optimiser = torch.optim.AdamW(model.parameters(), lr=rates[number], weight_decay=decays[number])
        for step, numbers in enumerate(batches_of(pictures, 3, steps, 7)):
            optimiser.param_groups[0]["lr"] = rates[number] * rate_factor(step, steps)
            own = (torch.isin(questions.picture, numbers) & learns[number]).nonzero()[:, 0]
            optimiser.zero_grad()
            (
                F.cross_entropy(alone(model, questions, own)[0], labels[own], reduction="sum") / max(len(own), 1)
            ).backward()
            optimiser.step()
        for key, wanted in model.state_dict().items():
            torch.testing.assert_close(found.state_dict()[key], wanted, rtol=1e-6, atol=1e-7)
        assert not torch.equal(found.classify.weight, heads[number].classify.weight)  # it did learn


@pytest.mark.parametrize("name", [name for name in HEADS if name not in ("linear", "pyramid")])
def test_heads_are_taught_where_to_look(name: HeadName) -> None:
    """Evidence is the first cell, which channel 0 marks."""
    features, on = features_of(P), torch.zeros(P, H, W)
    features[:, 0, 0, 0] += 4
    on[:, 0, 0] = 1
    options = {"steps": 40, "batch_size": P, "seed": 1}
    shares = []
    for places in (Places(on, torch.ones(1, H, W), 5.0), None):
        learns = torch.ones(1, P, dtype=torch.bool)
        examples, settings = Examples(torch.arange(P) % K, range(K), range(P), PLAIN), [Setting(0.1, 0.0)]
        heads, batch = heads_of(name, [0]), lambda numbers: features[numbers]
        head, *_ = train_heads(heads, batch, examples, learns, settings, places=places, **options)
        shares.append(float(torch.stack([act.weights[:, 0, 0].detach() for act in head(features)[1].values()]).mean()))
    assert shares[0] > 0.75
    assert shares[0] > shares[1] + 0.2


def test_only_pictures_that_a_member_learns_from_teach_it() -> None:
    """Two pictures with shares 1/2 and 1/4 on the evidence; the first member learns from both, the second from one."""
    maps = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]]]).expand(2, -1, -1, -1)  # (M,B,1,2)
    places = Places(torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]), torch.ones(1, 1, 2), 1.0)
    found = places.missed(maps, torch.tensor([0, 1]), torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    torch.testing.assert_close(found.exp(), torch.tensor([8**0.5, 4.0]))


def test_large_heads_are_trained_a_few_at_once() -> None:
    small, large = (members_at_once(heads_of("hard", [0])[0], (C, 7, 7), answers, 64) for answers in (10, 2000))
    assert small > large >= 1
