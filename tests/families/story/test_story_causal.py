"""Causal tests of models of stories: on a model that knows the truth, on one that draws, and on a constant."""

from __future__ import annotations

import random

import pytest
import torch

from saccade.families.story.causal import (
    CausalTests,
    _reduced,
    exchanged,
    names_in,
    pairs_of_names,
    removed,
    rules_know,
    weight_edits,
)
from saccade.families.story.stories import StoryExample
from story_stubs import (
    LOOKS,
    AlwaysMary,
    Constant,
    Noise,
    Oracle,
    QuestionBlind,
    StoryBlind,
    StubModel,
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


STORY = StoryExample(
    ("Mary moved to the garden.", "John went to the office.", "Mary travelled to the kitchen."),
    "Where is Mary?", "kitchen", (2,), "qa1",
)  # fmt: skip


def test_without_a_sentence_the_rules_say_what_the_answer_is_then():
    edit = removed(STORY, 2)
    assert (edit.kept, edit.truth, edit.facts) == ((0, 1), "garden", (0,))
    assert edit.asked.supporting == (), "the fact is gone"
    assert removed(removed(STORY, 2).asked, 0).truth is None, "nothing is told of Mary"
    assert removed(STORY, 0).asked.supporting == (1,), "it moved up"
    assert rules_know(STORY)
    assert not rules_know(StoryExample(STORY.sentences, "Where is Mary?", "garden"))


def test_names_are_what_opens_sentences_and_is_never_small():
    told = [
        STORY,
        StoryExample(("Wolves are afraid of mice.", "Mice are afraid of wolves.", "Then he left."), "?", "a"),
    ]
    assert names_in(told, {"mary", "john", "sandra", "moved", "garden", "wolves", "mice", "then", "he"}) == {
        "mary",
        "john",
    }


def test_names_are_exchanged_everywhere():
    asked = StoryExample(("Jeff gave the milk to Fred.", "Bill got it."), "Who gave the milk to fred?", "Jeff", (0,))
    edit = exchanged(asked, "jeff", "fred")
    assert edit.asked.sentences == ("Fred gave the milk to Jeff.", "Bill got it.")
    assert (edit.asked.question, edit.asked.answer, edit.names) == (
        "Who gave the milk to jeff?",
        "Fred",
        ("jeff", "fred"),
    )
    assert edit.truth == "fred"
    pairs = pairs_of_names(asked, {"jeff", "fred", "bill", "mary"}, random.Random(0))
    assert {one for one, _ in pairs} == {"jeff", "fred"}
    assert {two for _, two in pairs} == {"jeff", "fred", "bill"}, "names that the story has"
    for seed in range(8):
        first = pairs_of_names(asked, {"jeff", "fred", "bill", "mary"}, random.Random(seed))[:3]
        assert all("jeff" in pair for pair in first), "the answer"
    alone = StoryExample(("Jason is thirsty.",), "Where will jason go?", "kitchen", (0,))
    assert pairs_of_names(alone, {"jason", "yann"}, random.Random(0)) == [("jason", "yann")]


def edits(model: type[StubModel]) -> dict:
    return weight_edits(model(WORDS), ASKED, WORDS, torch.arange(len(ASKED))).interventions()["model"]


def test_an_oracle_needs_its_facts_and_they_are_enough() -> None:
    """Without its facts in weights it says what it says without them in the story; with them alone it is right."""
    found = edits(Oracle)
    changed = found["edits"]["changed"]["all"]
    assert found["scores"]["edit_necessity"] == pytest.approx(1)
    assert found["scores"]["edit_sufficiency"] == pytest.approx(1)
    assert changed["zero_target"] == changed["target_removed"] > 0.5
    assert changed["zero_random"] == changed["keep_target"] == changed["target_alone"] == 0
    assert found["baselines"]["random_cells"]["edit_necessity"] == 0
    assert set(found["edits"]["changed"]) == {
        "all",
        f"{LOOKS[0]}, later recomputed",
        f"{LOOKS[0]}, later frozen",
        LOOKS[1],
    }


def test_a_constant_answer_never_changes() -> None:
    changed = edits(Constant)["edits"]["changed"]
    assert all(share == 0 for by in changed.values() for share in by.values())


def test_noise_needs_any_sentence_as_much_as_its_facts() -> None:
    found = edits(Noise)
    assert found["scores"]["edit_necessity"] == pytest.approx(
        found["baselines"]["random_cells"]["edit_necessity"], abs=0.15
    )


def test_a_story_without_its_facts_and_with_them_alone() -> None:
    asked = ASKED[0]
    without, alone = _reduced(asked, keeps=False), _reduced(asked, keeps=True)
    assert len(without.sentences) + len(alone.sentences) == len(asked.sentences)
    assert list(alone.sentences) == [asked.sentences[at] for at in sorted(asked.supporting)]
