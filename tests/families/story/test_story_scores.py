"""Scores, causal tests and edited weights of story models: one that knows the truth, one that draws, a constant."""

from dataclasses import replace

import pytest
import torch

from saccade.families.story import tensors as story_tensors
from saccade.families.story.causal import (
    CausalTests,
    names_in,
    weight_edits,
)
from saccade.families.story.scores import (
    StoryScoring,
    sample_questions,
    story_numbers,
)
from saccade.families.story.stories import StoryExample
from saccade.families.story.tensors import as_tensors, batch_for, is_right, respond, sentence_weights
from saccade.models.dmn import DMNModel
from saccade.models.memn2n import MemN2NModel
from saccade.models.story import StoryLSTMModel
from saccade.tasks.evaluate import evaluate
from story_stubs import (
    LOOKS,
    Constant,
    Noise,
    Oracle,
    StubModel,
    toy_gifts,
    toy_questions,
    toy_words,
)
from tiny_models import tiny_config, tiny_model

ASKED = toy_questions(40)
WORDS = toy_words(ASKED)


def summary(model, asked=ASKED, causal=0):
    return evaluate(StoryScoring(model, asked, WORDS, None, causal))


def test_the_truth_scores_one_and_a_constant_as_the_uniform_baseline():
    truth, constant = summary(Oracle(WORDS)), summary(Constant(WORDS))
    assert truth["metrics"] == {"accuracy": 1, "accuracy_qa1": 1, "mean_error": 0, "failed_tasks": 0}
    for score in ("support_hit", "support_rank", "support_mass"):
        assert truth["attention"][score] == pytest.approx(1)
        assert constant["attention"][score] == pytest.approx(constant["baselines"]["uniform"][score])
    assert truth["attention"]["support_found"] == 1
    assert truth["attention"]["empty_mass"] == 0
    assert set(truth["attention"]["by_look"]) == {"hop1", "hop2"}
    assert set(truth["baselines"]) == {"recency", "uniform", "word_overlap", "random_looks"}
    assert set(truth["baselines"]["random_looks"]) == {"support_found"}
    chance = constant["baselines"]["uniform"]["support_found"]
    assert chance == pytest.approx(1 / 6), "one of six sentences"
    assert constant["attention"]["support_found"] == pytest.approx(1 - (5 / 6) ** 2), "two looks, ties are shared"
    assert constant["baselines"]["random_looks"]["support_found"] == pytest.approx(1 - (5 / 6) ** 2)
    assert constant["metrics"]["failed_tasks"] == 1
    assert constant["metrics"]["mean_error"] == pytest.approx(1 - constant["metrics"]["accuracy"])


def test_every_task_counts_alike_in_the_mean_error():
    other = [StoryExample(each.sentences, each.question, "garden", each.supporting, "qa2") for each in ASKED[:8]]
    wrong = sum(each.answer != "garden" for each in ASKED[:8]) / 8
    found = summary(Oracle(WORDS), [*ASKED, *other])
    assert found["metrics"]["mean_error"] == pytest.approx(wrong / 2)
    assert found["metrics"]["failed_tasks"] == 1
    assert found["counts"]["accuracy_qa2"] == 8
    low, high = found["intervals"]["mean_error"]
    assert low <= wrong / 2 <= high


@pytest.mark.parametrize(("wrong", "failed"), [(1, 0), (2, 1)])
def test_a_task_with_exactly_five_percent_error_has_not_failed(wrong, failed):
    told = [replace(each, answer="nowhere") if at < wrong else each for at, each in enumerate(ASKED[:20])]
    assert summary(Oracle(WORDS), told, causal=0)["metrics"]["failed_tasks"] == failed


def test_questions_that_go_on_with_a_story_are_one_group():
    first = StoryExample(("A.", "B."), "?", "x", (), "qa1")
    goes_on = StoryExample(("A.", "B.", "C."), "?", "x", (), "qa1")
    another = StoryExample(("A.", "D."), "?", "x", (), "qa1")
    other_task = StoryExample(("A.", "D."), "?", "x", (), "qa2")
    assert story_numbers([first, goes_on, another, another, other_task]).tolist() == [0, 0, 1, 1, 2]


def five_a_story(tasks=4, stories=200):
    """Stories of five questions. Places 1 to 5 are right with 1, .95, .9, .85, .8, less .1 in each next task."""
    found = []
    for task in range(1, tasks + 1):
        for story in range(stories):
            told = tuple(f"Sentence {story} {number}." for number in range(10))
            for place in range(5):
                right = story % 20 < 20 - place - 2 * (task - 1)
                found.append(StoryExample(told[: 2 * place + 2], "?", "yes" if right else "no", (), f"qa{task}"))
    return found


@pytest.mark.parametrize("limit", [100, 1000, 1013])
def test_a_limit_draws_whole_stories_and_every_task_has_its_share(limit):
    """Every fifth question is the first of its story, the easiest one; the first questions are of the first task."""
    asked = five_a_story()
    accuracy = sum(each.answer == "yes" for each in asked) / len(asked)
    assert accuracy == pytest.approx(0.9 - 0.15)
    drawn = sample_questions(asked, limit)
    assert len(drawn) == limit
    tasks = [sum(each.task == f"qa{task}" for each in drawn) for task in range(1, 5)]
    assert max(tasks) - min(tasks) <= 1
    places = [sum(len(each.sentences) == 2 * place + 2 for each in drawn) for place in range(5)]
    assert max(places) - min(places) <= 4, "at most one story of each task is not whole"
    found = sum(each.answer == "yes" for each in drawn) / limit
    assert found == pytest.approx(accuracy, abs=3 * (0.75 * 0.25 / (limit / 5)) ** 0.5)
    stories = len({(each.task, each.sentences[0]) for each in drawn})
    assert limit / 5 <= stories <= limit / 5 + 4


def test_an_answer_is_right_when_all_its_words_are_said_and_no_more():
    answer = torch.tensor([[3, 0], [3, 4], [3, 4], [5, 0]])
    said = torch.tensor([[3, 0, 0], [3, 4, 0], [3, 4, 1], [6, 0, 0]])
    assert is_right(said, answer).tolist() == [True, True, False, False]
    assert is_right(torch.tensor([[3]]), torch.tensor([[3, 4]])).tolist() == [False], "one word is missing"
    assert is_right(torch.tensor([[7]]), torch.tensor([[-1]])).tolist() == [False], "an answer that it cannot say"


@pytest.mark.parametrize("kind", [MemN2NModel, DMNModel, StoryLSTMModel], ids=lambda kind: kind.__name__)
def test_every_model_of_stories_is_scored(kind):
    torch.manual_seed(0)
    settings = {**tiny_config(kind).__dict__, "words": len(WORDS), "memory": 6}
    model = kind(kind.Config(**settings | ({"longest": 5, "times": 8} if kind is MemN2NModel else {}))).eval()
    found = summary(model, causal=6)
    looks = found["attention"].get("by_look", {})
    assert tuple(looks) == model.look_names
    assert ("empty_mass" in found["attention"], "end_mass" in found["attention"]) == {
        MemN2NModel: (True, False), DMNModel: (False, True), StoryLSTMModel: (False, False)
    }[kind]  # fmt: skip
    assert "swap_hold" in found["attention"], "answers are tested without looks too"


def test_stories_of_like_length_are_read_together_with_the_same_result(monkeypatch):
    torch.manual_seed(0)
    model = tiny_model(DMNModel, words=len(WORDS), memory=9, gate="softmax").eval()
    asked = [replace(each, sentences=each.sentences[: 1 + at % 6], supporting=()) for at, each in enumerate(ASKED)]
    tensors = as_tensors(model, [*asked, StoryExample((), "Where is Mary?", "garden")], WORDS)
    batch = batch_for(model, tensors, torch.arange(tensors.size))
    with torch.no_grad():
        whole = respond(model, batch)
        given = {"pass1": whole.acts["pass1"].weights.scatter(1, torch.zeros(41, 1, dtype=torch.long), 0.0)}
        edited = respond(model, batch, given)
        seen = []
        monkeypatch.setattr(story_tensors, "PART", 8)
        forward = model.forward_raw

        def watched(story, *more, **options):
            seen.append(story.shape[1])
            return forward(story, *more, **options)

        monkeypatch.setattr(model, "forward_raw", watched)
        for expected, found in ((whole, respond(model, batch)), (edited, respond(model, batch, given))):
            assert found.acts.keys() == expected.acts.keys()
            assert torch.allclose(found.logits, expected.logits, atol=1e-5)
            for name, act in expected.acts.items():
                assert torch.allclose(found.acts[name].weights, act.weights, atol=1e-5), name
                assert torch.allclose(found.acts[name].scores, act.scores, atol=1e-5), name
    assert seen[0] < seen[5] == 6, "no batch has the nine slots of the memory"


def test_a_pass_that_chooses_the_end_is_no_look_at_a_sentence():
    """Two passes of three facts: the first looks at sentence 1, the second at the end, which is in slot 2."""
    model = tiny_model(DMNModel, gate="softmax", memory=2)
    story = torch.ones(1, 2, 2, dtype=torch.long)
    raw = model.forward_raw(story, story[:, 0])
    raw.acts["pass1"].weights, raw.acts["pass2"].weights = torch.tensor([[[0.2, 0.7, 0.1]], [[0.1, 0.2, 0.7]]])
    seen = sentence_weights(model, raw, story)
    assert seen.has_end
    assert [bool(each) for each in seen.active.values()] == [True, False]
    assert seen.total[0].tolist() == pytest.approx([0.2, 0.7, 0.1])
    weak = tiny_model(DMNModel, memory=2)
    assert all(sentence_weights(weak, raw, story).active.values()), "gates that are no choice always count"


GIFTS = toy_gifts(40)
GIFT_WORDS = toy_words(GIFTS)


@pytest.fixture(scope="module")
def means():
    found = {}
    for kind in (Oracle, Noise, Constant):
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


@pytest.mark.parametrize(("kind", "expected"), [(Oracle, 1), (Constant, 0), (Noise, 0)])
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


def test_names_are_what_opens_sentences_and_is_never_small():
    told = [
        STORY,
        StoryExample(("Wolves are afraid of mice.", "Mice are afraid of wolves.", "Then he left."), "?", "a"),
    ]
    assert names_in(told, {"mary", "john", "sandra", "moved", "garden", "wolves", "mice", "then", "he"}) == {
        "mary",
        "john",
    }


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
