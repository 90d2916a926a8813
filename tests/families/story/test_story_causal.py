"""Causal tests of models of stories, on a model that knows the truth, on one that draws, and on a constant."""

import pytest
import torch

from saccade.families.story.causal import CausalTests
from saccade.families.story.stories import StoryExample
from story_stubs import (
    AlwaysMary,
    Constant,
    Noise,
    Oracle,
    QuestionBlind,
    StoryBlind,
    toy_gifts,
    toy_questions,
    toy_words,
)

ASKED = toy_questions(60)
WORDS = toy_words(ASKED)
GIFTS = toy_gifts(40)
GIFT_WORDS = toy_words(GIFTS)


@pytest.fixture(scope="module")
def means():
    found = {}
    for kind in (Oracle, Noise, Constant, StoryBlind, QuestionBlind):
        tests = CausalTests(kind(WORDS), ASKED, WORDS)
        scores = tests.scores
        found[kind, "rivals"] = {
            rival: {name: float(values.nanmean()) for name, values in own.items()}
            for rival, own in tests.rivals.items()
        }
        assert all(values.shape == (len(ASKED),) for values in scores.values())
        found[kind] = {name: float(values.nanmean()) for name, values in scores.items()}
        found[kind, "n"] = {name: int((~values.isnan()).sum()) for name, values in scores.items()}
    return found


def test_the_truth_follows_and_holds(means):
    truth = means[Oracle]
    ones = ["causal_change", "causal_follow", "weight_follow", "swap_hold", "swap_weights_hold"]
    ones += ["causal_hold", "weights_hold"]
    assert {name: truth[name] for name in ones} == dict.fromkeys(ones, pytest.approx(1.0))
    assert truth["weight_to_nothing"] == 0
    counts = means[Oracle, "n"]
    assert 0 < counts["causal_change"] < counts["change_rate"] == len(ASKED), "some facts are the only ones"


def test_a_constant_never_follows_and_always_holds(means):
    constant = means[Constant]
    assert (constant["causal_change"], constant["change_rate"]) == (0, 0)
    assert constant["causal_follow"] < 0.5, "right by chance, where the new answer is the kitchen"
    assert (constant["causal_hold"], constant["swap_hold"], constant["weights_hold"]) == (1, 1, pytest.approx(1))
    assert constant["weight_follow"] == pytest.approx(1 / 5), "one of the five sentences that are left"


def test_a_model_that_reads_no_story_holds_and_follows_nothing(means):
    blind = means[StoryBlind]
    assert (blind["causal_change"], blind["causal_hold"], blind["swap_weights_hold"]) == (0, 1, pytest.approx(1))
    assert blind["weight_follow"] < 0.25, "weights that stay count as 0"
    assert means[StoryBlind, "n"]["weight_follow"] == means[Oracle, "n"]["weight_follow"]


def test_a_model_that_reads_no_question_follows_less_than_the_truth(means):
    blind = means[QuestionBlind]
    assert blind["causal_follow"] < 0.5
    assert blind["weight_follow"] < 0.5
    assert blind["swap_hold"] == 1


def test_maps_that_need_no_model_are_scored_on_the_same_changes(means):
    rivals = means[Oracle, "rivals"]
    assert set(rivals) == {"recency", "uniform", "word_overlap"}
    constant = means[Constant]
    for name in ("weight_follow", "weights_hold", "swap_weights_hold"):
        assert rivals["uniform"][name] == pytest.approx(constant[name]), "it is the map of the constant"
        assert all(0 <= own[name] <= 1 for own in rivals.values())
    truth = means[Oracle]
    assert max(own["weight_follow"] for own in rivals.values()) < truth["weight_follow"] - 0.2
    assert rivals["recency"]["weights_hold"] < 1


@pytest.mark.parametrize(("kind", "expected"), [(Oracle, 1), (Constant, 0), (AlwaysMary, 0), (Noise, 0)])
def test_an_answer_that_is_a_name_goes_with_the_exchange(kind, expected):
    scores = CausalTests(kind(GIFT_WORDS), GIFTS, GIFT_WORDS).scores
    assert int((~scores["swap_follow"].isnan()).sum()) == len(GIFTS), "the answer is always one of the two"
    assert scores["swap_hold"].isnan().all()
    assert float(scores["swap_follow"].mean()) == pytest.approx(expected, abs=0.15 * (kind is Noise))


def test_noise_does_neither(means):
    noise = means[Noise]
    assert noise["change_rate"] > 0.8
    assert noise["causal_follow"] < 0.3
    assert noise["causal_hold"] < 0.3
    assert 0.5 < noise["weights_hold"] < 0.85, "two independent maps"


def test_a_memory_that_drops_the_start_of_a_story_compares_the_right_sentences():
    """Of six sentences the last four are in memory; without one of them, the one before them comes in."""
    scores = CausalTests(Oracle(WORDS, memory=4), ASKED, WORDS).scores
    is_in_memory = torch.tensor([each.supporting[0] >= 2 for each in ASKED])
    for name in ("weights_hold", "causal_hold", "swap_weights_hold"):
        assert float(scores[name][is_in_memory].nanmean()) == pytest.approx(1), name
    assert scores["change_rate"].isnan().tolist() == (~is_in_memory).tolist()
    assert 0 < int(is_in_memory.sum()) < len(ASKED)


def test_what_is_drawn_is_a_function_of_the_seed():
    one, two, other = (CausalTests(Noise(WORDS), ASKED, WORDS, seed=seed).scores for seed in (0, 0, 1))
    assert all(torch.equal(one[name], two[name]) or bool(one[name].isnan().any()) for name in one)
    assert torch.equal(one["weights_hold"].nan_to_num(), two["weights_hold"].nan_to_num())
    assert not torch.equal(one["weights_hold"].nan_to_num(), other["weights_hold"].nan_to_num())


@pytest.mark.parametrize(("supporting", "is_scored"), [((), False), ((0,), True)])
def test_nothing_holds_where_nobody_knows_which_sentences_matter(supporting, is_scored):
    told = ("Zork orbits the moon.", "Blip orbits mars.", "Quux orbits venus.")
    asked = [StoryExample(told, "What does zork orbit?", "moon", supporting, "own")] * 4
    words = toy_words(asked)
    scores = CausalTests(Constant(words), asked, words).scores
    assert bool((~scores["causal_hold"].isnan()).any()) == is_scored
