"""The summary, what a model is worth in one line, and whether its answers need the evidence."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from saccade.metrics.intervals import Values
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.result import summarise
from saccade.metrics.verdict import (
    Altered,
    Answered,
    EvidenceReliance,
    against_chance,
    against_random_order,
    against_rivals,
    donors,
    verdict,
)


def rights(share: float, count: int = 200) -> torch.Tensor:
    return (torch.arange(count) < share * count).double()


def against(right: Tensor, more: object = None, **rivals: Tensor) -> dict[str, object]:
    """A model beside its rivals, each example a picture of its own."""
    return against_rivals(Answered(right, rivals, torch.arange(len(right)))._replace(**more or {}))


def test_a_model_that_lost_to_guessing_is_told() -> None:
    found = against(rights(0.3), training_prior=rights(0.4), training_prior_by_query=rights(0.6))
    assert found["rival"] == "training_prior_by_query"  # the better of the two
    assert found["says"].startswith(
        "30.0 % against 60.0 % by guessing from the question: it has lost to guessing (-30.0"
    )
    assert found["interval"][1] < 0


def test_a_model_that_beats_guessing_and_one_of_which_it_cannot_be_told() -> None:
    assert "it beats guessing by 40.0 points (+" in against(rights(0.9), commonest_label=rights(0.5))["says"]
    level = against(rights(0.52), commonest_label=rights(0.5))
    assert "no difference from guessing detected" in level["says"]
    assert level["interval"][0] < 0 < level["interval"][1]
    for others, is_beaten in ((0.5, True), (0.88, False)):
        says = against(rights(0.9), {"instead": "take the other head"}, linear=rights(others))["says"]
        assert ("take the other head" in says) != is_beaten
    assert "too few pictures" in against(rights(1, 1), commonest_label=rights(0, 1))["says"]
    assert against(rights(0.5)) == {}


def test_a_linear_classifier_that_wins_is_named_whatever_guessing_has() -> None:
    found = against(rights(0.9), linear=rights(0.98), training_prior=rights(0.1))
    assert (found["rival"], found["rival_accuracy"]) == ("linear", 0.98)
    assert "98.0 % by a linear classifier on the same backbone: it has lost to it (-8.0 points" in found["says"]
    oracle = against(rights(1.0), linear=rights(0.8), training_prior=rights(0.1))
    assert "it beats it by 20.0 points" in oracle["says"]


def test_deletion_is_better_where_it_is_lower_and_insertion_where_it_is_higher() -> None:
    own, random = Values(), Values()
    pictures = torch.arange(200)
    own.add_values({"deletion": rights(0.2), "insertion": rights(0.2)})
    random.add_values({"deletion": rights(0.6), "insertion": rights(0.6)})
    part = against_random_order(own, random, pictures)
    assert "deletion 20.0 % against 60.0 % in random order (better" in part["says"]
    assert "insertion 20.0 % against 60.0 % in random order (worse" in part["says"]
    same = against_random_order(own, own, pictures)
    assert same["says"].count("no difference detected") == 2
    one = Values()
    one.add_values({"deletion": rights(0.2, 1), "insertion": rights(0.2, 1)})
    assert "too few" in against_random_order(one, one, pictures[:1])["says"]
    assert against_random_order(Values(), Values(), pictures[:0]) == {}
    answered = Answered(rights(0.9), {"commonest_label": rights(0.5)}, pictures)
    assert part["says"] in verdict(answered, in_order=part)["verdict"]
    assert "no boxes" in verdict(answered, unseen=True)["verdict"]
    assert "no boxes" not in verdict(answered)["verdict"]


QUESTIONS = ("breed", "species")


def asked_both(breed: Tensor, species: Tensor, same: Tensor, **rivals: Tensor) -> dict[str, object]:
    """Each picture is asked for its breed, then for its species."""
    right = torch.stack([breed, species], 1).flatten()
    query, pictures = torch.arange(len(right)) % 2, torch.arange(len(right)) // 2
    return against_rivals(Answered(right, rivals, pictures, query, QUESTIONS, same.repeat_interleave(2)))


def test_a_model_that_ignores_the_question_gets_no_praise() -> None:
    """It always says the breed, and guessing is right in two cases of ten."""
    blind = asked_both(rights(1.0), rights(0.0), rights(1.0), training_prior=rights(0.2, 400))
    assert blind["difference"] > 0.2
    assert blind["interval"][0] > 0
    assert "beats" not in blind["says"]
    assert "it gives the same answer to both questions about a picture in 100 % of 400 cases" in blind["says"]
    assert blind["same_answer"] == 1.0
    asking = asked_both(rights(1.0), rights(1.0), rights(0.0), training_prior=rights(0.2, 400))
    assert "it beats guessing" in asking["says"]
    assert "same answer" not in asking["says"]
    half = asked_both(rights(1.0), rights(0.5), rights(0.5), training_prior=rights(0.2, 400))
    assert "same answer" not in half["says"]  # chance can explain more than half


def test_each_of_a_few_questions_has_its_own_comparison() -> None:
    linear = torch.stack([rights(0.9), rights(0.9)], 1).flatten()
    found = asked_both(rights(1.0), rights(0.8), rights(0.0), linear=linear)
    assert "no difference from it detected" in found["says"]
    assert found["says"].endswith("it has lost on species")
    assert {word: part["n"] for word, part in found["by_question"].items()} == {"breed": 200, "species": 200}
    assert found["by_question"]["breed"]["difference"] == pytest.approx(0.1)
    assert found["by_question"]["species"]["interval"][1] < 0


def scorer(chance: str) -> MapScorer:
    """40 maps that peak on the evidence in 3 of 4 cases; the baseline ``chance`` does so in every second."""
    evidence = torch.zeros(40, 4, 4, dtype=torch.bool)
    evidence[:, 0, 0] = True
    maps, blind = torch.zeros(40, 4, 4), torch.zeros(40, 4, 4)
    maps[:30, 0, 0], maps[30:, 3, 3] = 1.0, 1.0
    blind[::2, 0, 0], blind[1::2, 3, 3] = 1.0, 1.0
    found = MapScorer(scores=("pointing",), baselines=("uniform", "centre_gaussian"))
    found.add(maps, evidence, beside={chance: Baseline(blind, torch.ones(40, dtype=torch.bool))})
    return found


@pytest.mark.parametrize("name", ["box_centre", "part_prior"])
def test_chance_is_the_best_of_centre_box_and_part_prior(name: str) -> None:
    found = against_chance(scorer(name))
    assert (found["chance"], found["chance_value"], found["value"]) == (name, 0.5, 0.75)
    assert "1.5 × as often as by chance" in found["says"]


N, SIDE = 60, 8


def test_donors_are_other_pictures_with_other_answers_to_the_same_question() -> None:
    pictures = torch.tensor([0, 0, 1, 1, 2])
    labels = torch.tensor([3, 4, 3, 5, 4])
    kinds = torch.tensor([0, 1, 0, 1, 0])
    found = donors(pictures, labels, kinds).tolist()
    assert found[:4] == [4, 3, 4, 1]
    assert found[4] in (0, 2)
    assert donors(torch.tensor([0, 0]), torch.tensor([1, 2])).tolist() == [-1, -1]  # the same picture
    assert donors(torch.tensor([0, 1]), torch.tensor([1, 1])).tolist() == [-1, -1]  # the same answer


def asked(answer: Callable[[Tensor], Tensor], labels: Tensor, images: Tensor, evidence: Tensor) -> EvidenceReliance:
    rests = EvidenceReliance()
    right, numbers = (lambda some, rows: answer(some) == labels[rows]), torch.arange(len(labels))
    rests.add(Altered(images, evidence, right, labels, numbers, labels == 0))
    return rests


def pictures_of(count: int = N) -> tuple[Tensor, Tensor, Tensor]:
    """Class k has the value k in the evidence, at the right, and in the corner."""
    labels = torch.arange(count) % 3
    images = torch.full((count, 3, SIDE, SIDE), 5.0)
    evidence = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    evidence[:, :, 4:] = True
    images[:, :, :, 4:] = labels[:, None, None, None].float()
    images[:, :, :2, :2] = labels[:, None, None, None].float()
    return images, labels, evidence


def reads_corner(images: Tensor) -> Tensor:
    return images[:, 0, 0, 0].round().long()


def test_nothing_is_said_where_it_cannot_be_told() -> None:
    images, labels, evidence = pictures_of(6)
    assert asked(reads_corner, labels, images, evidence).sentence() == ""  # six pictures are too few
    images, labels, evidence = pictures_of()
    guess = asked(lambda some: torch.zeros(len(some), dtype=torch.int64), labels, images, evidence)
    assert guess.sentence() == ""  # it knows nothing, with the evidence or without
    assert asked(reads_corner, labels, images, torch.zeros_like(evidence)).summary() == {}
    assert asked(reads_corner, labels, images, torch.ones_like(evidence)).summary() == {}


def two_maps(evidence=True, **more):
    """Two maps of 1×2 pixels, one right and one wrong, of two pictures."""
    found = MapScorer(scores=("pointing",), baselines=("uniform",))
    masks = torch.tensor([[[True, False]], [[True, False]]]) & evidence
    found.add(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]), masks, **more)
    return found


def test_what_no_example_has_is_left_out_or_null():
    values = Values()
    values.add_values({"swapped": torch.full((2,), math.nan), "right": torch.tensor([1.0, math.nan])})
    given = {"maps": two_maps(False, looks=[("one", torch.ones(2, 1, 2))]), "measured": [(values, torch.arange(2))]}
    found = summarise(**given)
    assert found["attention"] == {"by_look": {"one": {}}}
    assert found["baselines"] == {}
    assert found["counts"] == {"right": 1}
    assert found["intervals"] == {"right": [None, None]}  # one picture says nothing of the spread
    kept = summarise(**given, keep_undefined=True)
    assert kept["attention"] == {"pointing": None, "by_look": {"one": {"pointing": None}}}
    assert kept["baselines"] == {"uniform": {"pointing": None}}
    assert kept["counts"] == {"pointing": 0, "swapped": 0, "right": 1}
    assert kept["intervals"] == {name: [None, None] for name in ("pointing", "swapped", "right")}
