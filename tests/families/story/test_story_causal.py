"""Causal tests of models of stories, on a model that knows the truth, on one that draws, and on a constant."""

import pytest
import torch

from saccade.families.story.causal import CausalTests
from story_stubs import Constant, Noise, Oracle, toy_questions, toy_words

ASKED = toy_questions(60)
WORDS = toy_words(ASKED)


@pytest.fixture(scope="module")
def means():
    found = {}
    for kind in (Oracle, Noise, Constant):
        scores = CausalTests(kind(WORDS), ASKED, WORDS).scores()
        assert all(values.shape == (len(ASKED),) for values in scores.values())
        found[kind] = {name: float(values.nanmean()) for name, values in scores.items()}
        found[kind, "n"] = {name: int((~values.isnan()).sum()) for name, values in scores.items()}
    return found


def test_the_truth_follows_and_holds(means):
    truth = means[Oracle]
    ones = ["causal_change", "causal_follow", "weight_follow", "swap_follow", "swap_weights_hold"]
    ones += [
        f"{score}{way}"
        for score in ("causal_hold", "weights_hold")
        for way in ("", "_removed", "_reworded", "_replaced")
    ]
    ones += ["edit_agrees_hop1", "edit_agrees_hop2", "edit_agrees_all", "edit_agrees_where"]
    assert {name: truth[name] for name in ones} == dict.fromkeys(ones, pytest.approx(1.0))
    assert truth["weight_to_nothing"] == 0
    counts = means[Oracle, "n"]
    assert 0 < counts["causal_change"] < counts["change_rate"] == len(ASKED), "some facts are the only ones"


def test_a_constant_never_follows_and_always_holds(means):
    constant = means[Constant]
    assert (constant["causal_change"], constant["change_rate"]) == (0, 0)
    assert constant["causal_follow"] < 0.5, "right by chance, where the new answer is the kitchen"
    assert (constant["causal_hold"], constant["swap_follow"], constant["weights_hold"]) == (1, 1, pytest.approx(1))
    assert constant["weight_follow"] == pytest.approx(1 / 5), "one of the five sentences that are left"
    assert constant["edit_agrees_all"] == 1
    assert means[Constant, "n"]["edit_agrees_where"] == 0, "no sentence matters"


def test_noise_does_neither(means):
    noise = means[Noise]
    assert noise["change_rate"] > 0.8
    assert noise["causal_follow"] < 0.3
    assert noise["causal_hold"] < 0.3
    assert 0.5 < noise["weights_hold"] < 0.85, "two independent maps"
    assert noise["edit_agrees_all"] == pytest.approx(1), "it is a function of what it reads"


def test_a_memory_that_drops_the_start_of_a_story_compares_the_right_sentences():
    """Of six sentences the last four are in memory; without one of them, the one before them comes in."""
    scores = CausalTests(Oracle(WORDS, memory=4), ASKED, WORDS).scores()
    is_in_memory = torch.tensor([each.supporting[0] >= 2 for each in ASKED])
    for name in ("weights_hold_removed", "causal_hold_removed", "swap_weights_hold"):
        assert float(scores[name][is_in_memory].nanmean()) == pytest.approx(1), name
    assert scores["change_rate"].isnan().tolist() == (~is_in_memory).tolist()
    assert 0 < int(is_in_memory.sum()) < len(ASKED)


def test_what_is_drawn_is_a_function_of_the_seed():
    one, two, other = (CausalTests(Noise(WORDS), ASKED, WORDS, seed=seed).scores() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], two[name]) or bool(one[name].isnan().any()) for name in one)
    assert torch.equal(one["weights_hold"].nan_to_num(), two["weights_hold"].nan_to_num())
    assert not torch.equal(one["weights_hold"].nan_to_num(), other["weights_hold"].nan_to_num())
