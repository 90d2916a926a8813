"""Scores of answers, their calibration, and attention over sentences: by hand, on the truth, noise and a constant."""

import math

import pytest
import torch

from saccade.metrics.labels import accuracy_by_scale, calibration_error, details_of, top_k_correct
from saccade.metrics.sets import (
    average_precisions,
    before_stop,
    exact_match,
    macro_f1,
    macro_f1_by_presence,
    multiset_counts,
    overall_precision,
    weighted_map,
)
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

BOTH = pytest.mark.parametrize("interpolation", ["11-point", "all-point"])


def ranked(*truth):
    """Scores that fall from example to example, and their truth."""
    return torch.arange(len(truth), 0, -1) / 10, torch.tensor(truth, dtype=torch.bool)


def average_precision(scores, truth, interpolation):
    return float(average_precisions(scores[:, None], truth[:, None], interpolation)[0])


def test_all_point_by_hand():
    """Truth 1 0 1 0 1: precision at the hits 1, 2/3, 3/5, each a third of the recall."""
    assert average_precision(*ranked(1, 0, 1, 0, 1), "all-point") == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_eleven_point_by_hand():
    """The same: recall 0, .1, .2, .3 → 1; .4, .5, .6 → 2/3; .7, .8, .9, 1 → 3/5."""
    assert average_precision(*ranked(1, 0, 1, 0, 1), "11-point") == pytest.approx((4 * 1 + 3 * 2 / 3 + 4 * 3 / 5) / 11)


@BOTH
def test_ties_are_called_together(interpolation):
    """Four examples with one score, one of them true: precision 1/4 whatever their order."""
    for place in range(4):
        truth = torch.arange(4) == place
        assert average_precision(torch.ones(4), truth, interpolation) == pytest.approx(0.25)


@BOTH
def test_without_a_positive_there_is_no_score(interpolation):
    assert math.isnan(average_precision(*ranked(0, 0), interpolation))
    assert math.isnan(average_precision(torch.zeros(0), torch.zeros(0, dtype=torch.bool), interpolation))


@BOTH
def test_attributes_are_weighted_by_their_positives(interpolation):
    """One attribute with three positives, all first (1); one with one positive, called second (1/2): (3 + 1/2) / 4."""
    scores = torch.tensor([[4.0, 3.0], [3.0, 4.0], [2.0, 1.0], [1.0, 2.0]])
    truth = torch.tensor([[1, 1], [1, 0], [1, 0], [0, 0]])
    assert average_precisions(scores, truth, interpolation).tolist() == pytest.approx([1, 0.5])
    assert weighted_map(scores, truth, interpolation) == pytest.approx(3.5 / 4)


def test_an_attribute_without_positives_does_not_count():
    scores = torch.tensor([[4.0, 3.0, 9.0], [3.0, 4.0, 8.0]])
    truth = torch.tensor([[True, False, False], [False, True, False]])
    assert average_precisions(scores, truth).isnan().tolist() == [False, False, True]
    assert weighted_map(scores, truth) == weighted_map(scores[:, :2], truth[:, :2]) == 1
    assert math.isnan(weighted_map(scores, torch.zeros_like(truth)))


STOP = 3
SAID = torch.tensor([[0, 0, STOP, 1], [1, 2, 2, 2], [STOP, 0, 0, 0]])
TRUE = torch.tensor([[0, 0, -1, -1], [2, 1, 2, -1], [-1, -1, -1, -1]])


def test_counts_end_at_the_first_stop_and_leave_out_padding() -> None:
    assert multiset_counts(SAID, STOP).tolist() == [[2, 0, 0], [0, 1, 3], [0, 0, 0]]
    assert multiset_counts(TRUE, STOP).tolist() == [[2, 0, 0], [0, 1, 2], [0, 0, 0]]
    assert before_stop(SAID, STOP).tolist() == [[True, True, False, False], [True] * 4, [False] * 4]


def test_exact_match_is_about_every_copy() -> None:
    said, true = multiset_counts(SAID, STOP), multiset_counts(TRUE, STOP)
    assert exact_match(said, true).tolist() == [1.0, 0.0, 1.0]  # a 2 too many; and nothing is rightly nothing


def test_macro_f1_pools_counts_by_class() -> None:
    """Class 0: 2 of 2. Class 1: 1 of 1. Class 2: 2 right of 3 said and 2 true, 2·2/(3+2)."""
    said, true = multiset_counts(SAID, STOP), multiset_counts(TRUE, STOP)
    assert macro_f1(said, true) == pytest.approx((1 + 1 + 0.8) / 3)


def test_a_class_that_does_not_occur_is_left_out_and_one_said_in_vain_is_not() -> None:
    true = torch.tensor([[1, 0, 0]])
    assert macro_f1(torch.tensor([[1, 0, 0]]), true) == 1.0
    assert macro_f1(torch.tensor([[1, 1, 0]]), true) == 0.5
    assert math.isnan(macro_f1(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long)))


def test_by_presence_forgives_what_is_said_of_absent_classes() -> None:
    """Class 0 is there twice, found once: recall 1/2, precision 1, F1 2/3. Class 1, said in vain, does not count."""
    said, true = torch.tensor([[1, 5]]), torch.tensor([[2, 0]])
    assert macro_f1_by_presence(said, true) == pytest.approx(2 / 3)
    assert macro_f1(said, true) == pytest.approx((2 / 3 + 0) / 2)


def test_overall_precision_and_recall_by_hand() -> None:
    """Said 3, 3, 8 of 3, 8, 8, then 1 of 1, 2: three of four said are right, three of five are found."""
    said = multiset_counts(torch.tensor([[3, 3, 8], [1, -1, -1]]), 10)
    true = multiset_counts(torch.tensor([[3, 8, 8], [1, 2, -1]]), 10)
    assert overall_precision(said, true) == pytest.approx(3 / 4)
    assert overall_precision(true, said) == pytest.approx(3 / 5)
    nothing = torch.zeros_like(said)
    assert math.isnan(overall_precision(nothing, true))
    assert overall_precision(true, nothing) == 0
    assert math.isnan(overall_precision(nothing, said))


def ids(*values):
    return torch.tensor(values)


def test_bins_are_closed_on_the_right_and_the_first_also_on_the_left():
    """Scales 0.5 and 1.0 fall into the first bin, 1.0001 into the second, 3.0 into the last."""
    scales = torch.tensor([0.5, 1.0, 1.0001, 1.5, 3.0])
    bins = accuracy_by_scale(ids(0, 1, 0, 0, 0), ids(0, 0, 0, 0, 0), scales)
    assert [(b.low, b.high) for b in bins] == [(0.5, 1), (1, 1.5), (1.5, 2), (2, 2.5), (2.5, 3)]
    assert [b.n for b in bins] == [2, 2, 0, 0, 1]
    assert [b.accuracy for b in bins[:2]] == [0.5, 1.0]
    assert math.isnan(bins[2].accuracy)
    assert bins[4].accuracy == 1.0


def test_among_the_first_by_hand() -> None:
    logits = torch.tensor([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5], [0.2, 0.3, 0.4]])
    truth = torch.tensor([1, 1, 0])
    assert top_k_correct(logits, truth, 1).tolist() == [1, 0, 0]
    assert top_k_correct(logits, truth, 2).tolist() == [1, 0, 0]
    assert top_k_correct(logits, truth, 3).tolist() == [1, 1, 1]


def test_equal_logits_are_no_gain() -> None:
    """Whoever says nothing is right as often as the first classes are true, not always."""
    assert top_k_correct(torch.zeros(4, 4), torch.arange(4), 2).tolist() == [1, 1, 0, 0]


def test_what_is_not_a_number_is_not_right() -> None:
    logits = torch.tensor([[math.nan, math.nan], [math.nan, 1.0], [2.0, math.nan], [2.0, 1.0]])
    assert top_k_correct(logits, torch.tensor([0, 1, 0, 0]), 2).tolist() == [0, 0, 0, 1]


def test_calibration_by_hand() -> None:
    """Bins (0.8, 0.867] with two answers, one right, and (0.533, 0.6] with one that is wrong."""
    confidence, right = torch.tensor([0.85, 0.83, 0.6]), torch.tensor([1.0, 0.0, 0.0])
    expected = (abs(1.68 - 1) + 0.6) / 3
    assert calibration_error(confidence, right) == pytest.approx(expected)


def test_confusion_has_a_row_for_each_true_class() -> None:
    half = torch.full((4,), 0.5)
    found = details_of(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), half, half, "abc")
    assert found["confusion"]["matrix"] == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]


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
