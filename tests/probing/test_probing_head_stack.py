"""Heads trained side by side: each comes out as it does alone with torch's own optimiser."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from saccade.backbones.stages import Level
from saccade.models.probe_heads import HEADS, HeadName, ProbeHead, new_head
from saccade.probing.data import Questions
from saccade.probing.head_stack import (
    HeadStack,
    Places,
    batches_of,
    fresh_heads,
    members_at_once,
    rate_factor,
    train_heads,
)

N, C, H, W, K = 20, 5, 2, 3, 3
STEPS, BATCH = 8, 8


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(N, C, H, W, generator=generator), torch.randint(K, (N,), generator=generator)


LEVELS = (Level("fine", 1, 2), Level("last", 1, 1))
"""Of a pyramid whose folded map has C = 1·2² + 1 channels."""


def heads_of(name: HeadName, seeds: list[int]) -> list[ProbeHead]:
    return fresh_heads(lambda: new_head(name, C, K, hidden=4, queries=2, levels=LEVELS), seeds)


def test_a_pyramid_pools_each_stage_by_its_own_map() -> None:
    features, _ = data()
    head = heads_of("pyramid", [0])[0]
    logits, acts = head(features)
    assert {name: tuple(act.weights.shape) for name, act in acts.items()} == {"fine": (N, 4, 6), "last": (N, 2, 3)}
    fine = F.pixel_shuffle(features[:, :4], 2)  # (N,1,4,6)
    weights = (fine * head.ask[0].weight).flatten(1).softmax(-1)
    context = torch.stack([(fine.flatten(1) * weights).sum(1), acts["last"].context[:, 0]], 1)
    torch.testing.assert_close(logits, head.classify(context))


@pytest.mark.parametrize("name", HEADS)
def test_a_stack_answers_as_its_members_do(name: HeadName) -> None:
    features, _ = data()
    heads = heads_of(name, [0, 1, 2])
    alone = torch.stack([head(features)[0] for head in heads])  # (M,B,K)
    torch.testing.assert_close(HeadStack(heads).logits(features), alone)


@pytest.mark.parametrize("name", HEADS)
def test_a_stack_looks_as_its_members_do(name: HeadName) -> None:
    features, _ = data()
    heads = heads_of(name, [0, 1, 2])
    found = HeadStack(heads).maps(features)
    if name in ("linear", "pyramid"):  # no place; several grids
        assert found is None
        return
    each = [torch.stack([act.weights for act in head(features)[1].values()]).mean(0) for head in heads]  # (B,H,W)
    torch.testing.assert_close(found, torch.stack(each))


@pytest.mark.parametrize("name", [name for name in HEADS if name not in ("linear", "pyramid")])
def test_heads_are_taught_where_to_look(name: HeadName) -> None:
    """Evidence is the first cell, which channel 0 marks."""
    features, labels = data()
    features[:, 0, 0, 0] += 4
    on = torch.zeros(N, H, W)
    on[:, 0, 0] = 1
    learns = torch.ones(1, N, dtype=torch.bool)
    options = {"questions": Questions.none(N), "decays": [0.0], "rates": [0.1], "steps": 40, "batch_size": N, "seed": 1}
    taught, plain = (
        train_heads(heads_of(name, [0]), lambda numbers: features[numbers], labels, learns, places=places, **options)[0]
        for places in (Places(on, torch.ones(1, H, W), 5.0), None)
    )
    found, other = (
        float(torch.stack([act.weights[:, 0, 0].detach() for act in head(features)[1].values()]).mean())
        for head in (taught, plain)
    )
    assert found > 0.75
    assert found > other + 0.2


def test_only_pictures_that_a_member_learns_from_teach_it() -> None:
    """Two pictures with shares 1/2 and 1/4 on the evidence; the first member learns from both, the second from one."""
    maps = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]]]).expand(2, -1, -1, -1)  # (M,B,1,2)
    places = Places(torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]), torch.ones(1, 1, 2), 1.0)
    found = places.missed(maps, torch.tensor([0, 1]), torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    torch.testing.assert_close(found.exp(), torch.tensor([8**0.5, 4.0]))


@pytest.mark.parametrize("name", HEADS)
def test_stacked_training_equals_the_single_training(name: HeadName) -> None:
    """Three members with settings and training pictures of their own, against torch.optim.AdamW on each alone.

    In double precision: AdamW makes steps of full size along gradients that are rounding alone, such as that of a bias
    which moves all scores alike.
    """
    features, labels = data()
    features = features.double()
    heads = [head.double() for head in heads_of(name, [0, 1, 1])]
    rates, decays = [0.1, 0.02, 0.05], [0.01, 1.0, 0.1]
    learns = torch.ones(3, N, dtype=torch.bool)
    learns[1, ::3] = False
    learns[2, 10:] = False
    options = {
        "questions": Questions.none(N),
        "rates": rates,
        "decays": decays,
        "steps": STEPS,
        "batch_size": BATCH,
        "seed": 7,
    }
    trained = train_heads(heads, lambda numbers: features[numbers], labels, learns, **options)
    for number, found in enumerate(trained):
        alone = trained_alone(heads[number], learns[number], rates[number], decays[number])
        for key, wanted in alone.state_dict().items():
            torch.testing.assert_close(found.state_dict()[key], wanted, rtol=1e-6, atol=1e-7)
        assert not torch.equal(found.classify.weight, heads[number].classify.weight)  # it did learn


def trained_alone(head: ProbeHead, learns: torch.Tensor, rate: float, decay: float) -> ProbeHead:
    """The plain loop: one model, torch's AdamW, the same batches, the loss of the pictures it learns from."""
    features, labels = data()
    features = features.double()
    model = copy.deepcopy(head)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    for step, numbers in enumerate(batches_of(torch.arange(N), BATCH, STEPS, 7)):
        optimiser.param_groups[0]["lr"] = rate * rate_factor(step, STEPS)
        own = numbers[learns[numbers]]
        optimiser.zero_grad()
        F.cross_entropy(model(features[own])[0], labels[own]).backward()
        optimiser.step()
    return model


def test_pictures_that_nobody_learns_from_are_never_asked_for() -> None:
    features, labels = data()
    learns = torch.zeros(1, N, dtype=torch.bool)
    learns[0, :6] = True
    asked: set[int] = set()

    def batch(numbers: torch.Tensor) -> torch.Tensor:
        asked.update(numbers.tolist())
        return features[numbers]

    train_heads(
        heads_of("linear", [0]),
        batch,
        labels,
        learns,
        rates=[0.1],
        decays=[0.0],
        steps=5,
        batch_size=4,
        questions=Questions.none(N),
    )
    assert asked == set(range(6))


def test_large_heads_are_trained_a_few_at_once() -> None:
    small = members_at_once(heads_of("hard", [0])[0], (C, 7, 7), 10, 64)
    large = members_at_once(heads_of("hard", [0])[0], (C, 7, 7), 2000, 64)
    assert small > large >= 1
