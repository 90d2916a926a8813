import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.errors import DataError
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


def test_ties_share_the_point():
    maps = torch.tensor([[[1.0, 1.0, 0.2, 1.0]]])
    evidence = torch.tensor([[[True, False, True, False]]])
    assert pointing(maps, evidence).item() == pytest.approx(1 / 3)


def test_empty_evidence_is_undefined_and_only_there():
    maps, evidence = batch(0)
    evidence[2] = False
    for scores in (*(score(maps, evidence) for score in SCORES), selectivity(maps, evidence, evidence)):
        assert scores.isnan().tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5])
def test_a_broken_map_is_an_error_that_names_the_picture(value):
    maps, evidence = batch(1)
    maps[3, 2, 2] = value
    for call in (
        *(lambda s=score: s(maps, evidence) for score in SCORES),
        lambda: selectivity(maps, evidence, evidence),
    ):
        with pytest.raises(DataError, match=r"picture 3 .*1 of 6"):
            call()


@given(seed=st.integers(0, 10_000), factor=st.floats(1e-6, 1e6))
@settings(max_examples=50, deadline=None)
def test_any_positive_factor_keeps_strength_and_selectivity(seed, factor):
    maps, evidence = batch(seed)
    torch.testing.assert_close(true_positive_strength(maps * factor, evidence), true_positive_strength(maps, evidence))
    objects = torch.ones_like(evidence)
    torch.testing.assert_close(selectivity(maps * factor, evidence, objects), selectivity(maps, evidence, objects))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_one_by_one_equals_together_and_order_does_not_matter(seed):
    maps, evidence = batch(seed)
    order = torch.randperm(len(maps), generator=torch.Generator().manual_seed(seed))
    for score in (*SCORES, lambda m, e: selectivity(m, e, e.roll(1, -1))):
        together = score(maps, evidence)
        alone = torch.cat([score(maps[i : i + 1], evidence[i : i + 1]) for i in range(len(maps))])
        torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)
        torch.testing.assert_close(score(maps[order], evidence[order]), together[order], rtol=1e-6, atol=0)
        assert bool(((together >= 0) & (together <= 1 + 1e-6)).all())


def test_all_attention_on_the_evidence_is_a_share_of_exactly_one() -> None:
    generator = torch.Generator().manual_seed(0)
    evidence = torch.rand(64, 100, 100, generator=generator) < 0.3
    maps = torch.rand(64, 100, 100, generator=generator) * evidence
    assert torch.equal(true_positive_strength(maps, evidence), torch.ones(64))
