import pytest
import torch

from saccade.metrics import iou, pointing, selectivity, true_positive_strength

SCORES = [true_positive_strength, pointing, iou]


def batch(seed, pictures=6, size=(9, 7)):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.rand(pictures, *size, generator=generator)
    evidence = torch.rand(pictures, *size, generator=generator) < 0.3
    evidence[:, 0, 0] = True
    return maps, evidence


def test_a_map_worked_by_hand():
    """Mass on the mask: 4 + 2 of 4 + 2 + 3 + 1 = 0.6; peak 4 inside; at least half of 4: {4, 2, 3}, mask {4, 2}."""
    maps = torch.tensor([[[4.0, 2.0], [3.0, 1.0]]])
    mask = torch.tensor([[[True, True], [False, False]]])
    assert true_positive_strength(maps, mask).item() == pytest.approx(0.6)
    assert pointing(maps, mask).item() == 1
    assert iou(maps, mask).item() == pytest.approx(2 / 3)


def test_selectivity_by_hand():
    """Target holds 4, the other object 1, the background 15: 4 / (4 + 1), whatever the background holds."""
    maps = torch.tensor([[[4.0, 1.0], [10.0, 5.0]]])
    target = torch.tensor([[[True, False], [False, False]]])
    objects = torch.tensor([[[True, True], [False, False]]])
    assert selectivity(maps, target, objects).item() == pytest.approx(0.8)
    assert selectivity(maps, target, objects & ~target).item() == pytest.approx(0.8)  # the target is added


@pytest.mark.parametrize("score", SCORES)
def test_perfect_inverted_constant_and_zero_maps(score):
    evidence = torch.zeros(1, 5, 4, dtype=torch.bool)
    evidence[0, 1:3, 1:4] = True  # 6 of 20 pixels
    assert score(evidence.float(), evidence).item() == 1
    assert score((~evidence).float(), evidence).item() == 0
    assert score(torch.full((1, 5, 4), 0.37), evidence).item() == pytest.approx(0.3)
    assert score(torch.zeros(1, 5, 4), evidence).item() == 0


def test_selectivity_of_perfect_inverted_constant_and_zero_maps():
    target = torch.zeros(1, 4, 4, dtype=torch.bool)
    target[0, 0, :2] = True
    objects = target.clone()
    objects[0, 3] = True  # 2 pixels of the target, 6 of all objects
    assert selectivity(target.float(), target, objects).item() == 1
    assert selectivity((objects & ~target).float(), target, objects).item() == 0
    assert selectivity(torch.ones(1, 4, 4), target, objects).item() == pytest.approx(1 / 3)
    assert selectivity(torch.zeros(1, 4, 4), target, objects).item() == 0
    assert selectivity((~objects).float(), target, objects).item() == 0  # only the background is attended


def test_empty_evidence_is_undefined_and_only_there():
    maps, evidence = batch(0)
    evidence[2] = False
    for scores in (*(score(maps, evidence) for score in SCORES), selectivity(maps, evidence, evidence)):
        assert scores.isnan().tolist() == [False, False, True, False, False, False]
