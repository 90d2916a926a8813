"""Scores of attention over sentences: on the truth, on noise, on a constant, and on cases worked out by hand."""

import pytest
import torch

from saccade.metrics.slots import (
    mass_elsewhere,
    moved_to,
    recency,
    support_found,
    support_hit,
    support_mass,
    support_rank,
    uniform,
    weights_hold,
    word_overlap,
)

COUNT, SLOTS = 4000, 8
SCORES = (support_hit, support_rank, support_mass)


@pytest.fixture
def stories():
    """Stories of 8 slots: 5 sentences, of which 2 are supporting facts drawn at random."""
    generator = torch.Generator().manual_seed(3)
    present = (torch.arange(SLOTS) < 5).expand(COUNT, SLOTS)
    chosen = torch.rand(COUNT, 5, generator=generator).argsort(1)[:, :2]
    supporting = torch.zeros(COUNT, SLOTS, dtype=torch.bool).scatter(1, chosen, True)
    return supporting, present, generator


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
def test_the_truth_scores_one(score, stories):
    supporting, present, _ = stories
    assert score(supporting.double() / 2, supporting, present).eq(1).all()


@pytest.mark.parametrize(
    ("score", "expected"),
    [(support_hit, 0.4), (support_rank, 1 / 2.5), (support_mass, 0.4)],
    ids=["hit", "rank", "mass"],
)
def test_a_constant_scores_what_chance_gives(score, expected, stories):
    """Of five equal sentences two are right; three others share the ranks before, which is 1 + 1.5."""
    supporting, present, _ = stories
    assert score(torch.full((COUNT, SLOTS), 0.125), supporting, present).allclose(torch.tensor(expected).double())


@pytest.mark.parametrize(
    ("score", "expected"),
    [(support_hit, 0.4), (support_mass, 0.4), (support_rank, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)],
    ids=["hit", "mass", "rank"],
)
def test_noise_scores_what_chance_gives_on_the_mean(score, expected, stories):
    """A fact is equally likely to have 0, 1, 2 or 3 of the three others before it."""
    supporting, present, generator = stories
    found = score(torch.rand(COUNT, SLOTS, generator=generator), supporting, present)
    assert float(found.mean()) == pytest.approx(expected, abs=0.02)


def test_no_fact_in_memory_and_no_weight_have_no_score():
    present = torch.tensor([[True, True, False]])
    none, last = torch.zeros(1, 3, dtype=torch.bool), torch.tensor([[False, False, True]])
    for supporting in (none, last):  # a fact in an empty slot is none
        for score in SCORES:
            assert score(torch.ones(1, 3), supporting, present).isnan().all()
    fact = torch.tensor([[True, False, False]])
    for score in SCORES:
        assert score(torch.tensor([[0.0, 0.0, 1.0]]), fact, present).isnan().all(), "all weight is on an empty slot"
    assert mass_elsewhere(torch.zeros(1, 3), present).isnan().all()
    assert weights_hold(torch.zeros(1, 3), torch.ones(1, 3), torch.tensor([[0, 1, 2]])).isnan().all()


def test_equal_sentences_share_what_a_look_finds(stories):
    """Two facts among five equal sentences: one look finds each with 1/5, two looks with 1 - (4/5)²."""
    supporting, present, generator = stories
    even = present.double()
    assert support_found([even], supporting, present).allclose(torch.tensor(1 / 5).double())
    assert support_found([even, even], supporting, present).allclose(torch.tensor(1 - 0.8**2).double())
    noise = [torch.rand(COUNT, SLOTS, generator=generator) for _ in range(2)]
    assert float(support_found(noise, supporting, present).mean()) == pytest.approx(1 - 0.8**2, abs=0.02)


def test_baselines_sum_to_one_and_are_what_they_say():
    story = torch.tensor([[[5, 2, 0], [6, 3, 2], [5, 3, 0], [0, 0, 0]]])
    present = (story != 0).any(-1)
    assert uniform(present).tolist() == [[1 / 3, 1 / 3, 1 / 3, 0]]
    assert recency(present)[0].tolist() == pytest.approx([1 / 7, 2 / 7, 4 / 7, 0])
    assert word_overlap(story, torch.tensor([[5, 3, 5, 0]]))[0].tolist() == [0.25, 0.25, 0.5, 0]
    assert word_overlap(story, torch.tensor([[9, 0]])).tolist() == uniform(present).tolist(), "nothing is shared"
    assert uniform(torch.zeros(1, 3, dtype=torch.bool)).isnan().all()


def test_a_map_that_moves_with_its_sentences_holds_and_a_constant_does_too():
    before = torch.tensor([[0.1, 0.6, 0.2, 0.1]])
    kept = torch.tensor([[1, 2, 3, -1]])  # the first of four sentences was taken out
    assert weights_hold(before, torch.tensor([[0.6, 0.2, 0.1, 0.1]]), kept).item() == pytest.approx(1)
    assert weights_hold(torch.ones(1, 4), torch.ones(1, 4), kept).item() == pytest.approx(1)
    assert weights_hold(before, torch.tensor([[0.0, 0.0, 1.0, 0.0]]), kept).item() == pytest.approx(1 / 9)


def test_where_weight_went():
    before = torch.tensor([[0.7, 0.2, 0.1, 0.0]])
    after = torch.tensor([[0.5, 0.3, 0.2, 0.0]])  # the first is gone; the others gained 0.3 and 0.2, an empty slot 0.2
    kept = torch.tensor([[1, 2, -1, -1]])
    slots = torch.eye(4, dtype=torch.bool)
    found = [moved_to(before, after, kept, slots[[number]]).item() for number in range(4)]
    assert found == pytest.approx([0.3 / 0.7, 0.2 / 0.7, 0.2 / 0.7, 0])
    still = moved_to(before, before, torch.tensor([[0, 1, 2, 3]]), slots[[0]])
    assert still.tolist() == [0], "nothing moved, so nothing follows"
