"""Questions in a probe: by hand, and planted so that only who is told the question can win."""

from __future__ import annotations

import pytest
import torch

from saccade.probing.data import Examples, Questions, Split, some_of
from saccade.probing.features import Features
from saccade.probing.probe import ProbeResult, probe
from saccade.probing.trials import Material, Plan, habit_trial, habits, neighbour_trial

QUESTIONS = Questions(
    ("upper", "lower"), torch.tensor([0, 1, 0, 1, 1, 0, 1]), torch.tensor([0, 0, 1, 2, 1, 3, 3])
)  # pictures 0, 1 and 3 are asked both


def test_examples_are_found_by_their_pictures() -> None:
    examples, asked = QUESTIONS.about(torch.tensor([3, 0]))
    assert examples.tolist() == [5, 6, 0, 1]
    assert asked.picture.tolist() == [0, 0, 1, 1]
    assert asked.query.tolist() == [0, 1, 0, 1]
    first, second = QUESTIONS.parts(torch.tensor([6, 2, 3]), 2)  # pictures 3, 1, 2: two, then one
    assert first.pictures.tolist() == [1, 2]
    assert first.places.tolist() == [1, 2]
    assert first.asked.picture.tolist() == [0, 1]
    assert second.pictures.tolist() == [3]
    assert second.places.tolist() == [0]
    assert QUESTIONS.pictures_of(torch.tensor([0, 1, 4])).tolist() == [0, 1]


def test_habits_by_hand() -> None:
    """Question 0 is mostly answered 1, question 1 mostly 2, and question 2 is never asked in training."""
    labels = torch.tensor([1, 1, 0, 2, 2, 0, 2])
    rows, kinds = torch.arange(7), torch.tensor([0, 0, 0, 1, 1, 1, 1])
    assert habits(labels, rows, kinds, 3).tolist() == [1, 2, 2]
    questions = Questions(("a", "b"), torch.tensor([0, 0, 1, 1, 0, 1]), torch.arange(6))
    split = Split(torch.tensor([0, 1, 2, 3]), torch.tensor([4]), torch.tensor([4, 5]))
    trial = habit_trial("prior", torch.tensor([1, 1, 0, 0, 1, 1]), [split], questions.query)
    assert trial.test == [[0.5]]  # question a: 1, right; question b: 0, wrong
    assert trial.val == [1.0]


def test_neighbours_vote_among_those_that_are_asked_the_same() -> None:
    """Picture 2 looks like picture 0; what it is asked decides which answer of picture 0 counts."""
    pooled = torch.tensor([[1.0, 0.1], [0.1, 1.0], [1.0, 0.2]])
    questions = Questions(("a", "b"), torch.tensor([0, 1, 0, 1, 0, 1]), torch.tensor([0, 0, 1, 1, 2, 2]))
    labels = torch.tensor([0, 1, 1, 0, 0, 1])
    held = Features(lambda numbers: pooled[numbers][:, :, None, None], 3)
    split = Split(torch.arange(4), torch.tensor([4]), torch.tensor([4, 5]))
    assert neighbour_trial(
        Material(held, Examples(labels, ("no", "yes"), range(6), questions), PLAN), [split]
    ).test == [[1.0]]


def test_a_share_of_the_pictures_brings_all_their_questions() -> None:
    split = Split(torch.arange(7), torch.tensor([], dtype=torch.long), torch.tensor([], dtype=torch.long))
    some = some_of(split, 0.5, torch.zeros(7, dtype=torch.long), QUESTIONS)
    pictures = {*QUESTIONS.picture[some].tolist()}
    assert len(pictures) == 2
    assert len(some) == sum(int(each) in pictures for each in QUESTIONS.picture)


N, SIDE = 90, 4
PLAN = Plan(splits=3, seeds=1, steps=150, rates=(3e-2, 1e-1), linear_rates=(3e-2, 1e-1), decays=(1e-2,), shares=(0.5,),
            hidden=8, queries=2)  # fmt: skip


def planted() -> tuple[torch.Tensor, Examples]:
    """Two cells have a sign each: channel 0 marks the one of the first question, channel 1 that of the second.

    Their mean tells the sum of the signs and not whose sign it is.
    """
    generator = torch.Generator().manual_seed(0)
    features = 0.5 * torch.randn(N, 6, SIDE * SIDE, generator=generator)
    signs = torch.randint(2, (N, 2), generator=generator)  # of both questions
    cells = torch.rand(N, SIDE * SIDE, generator=generator).argsort(1)[:, :2]  # (N,2)
    every = torch.arange(N)
    for question in range(2):
        features[every, question, cells[:, question]] += 8
        features[every, 2, cells[:, question]] += 6 * (2.0 * signs[:, question] - 1)
    questions = Questions(("left", "right"), torch.arange(2 * N) % 2, torch.arange(2 * N) // 2)
    examples = Examples(signs.flatten(), ("minus", "plus"), sorted([*range(N)] * 2), questions)
    return features.reshape(N, 6, SIDE, SIDE), examples


@pytest.fixture(scope="module")
def asked() -> ProbeResult:
    features, examples = planted()
    held = Features(lambda numbers: features[numbers], N)
    return probe(examples, held, plan=PLAN, heads=("linear", "cross"))


def test_who_is_told_the_question_and_looks_wins(asked: ProbeResult) -> None:
    rows = asked.trials
    assert [*rows] == ["majority", "prior", "knn", "linear", "cross"]
    assert rows["cross"].score.mean > 0.9
    assert rows["linear"].score.mean < 0.85
    assert rows["cross"].difference is not None
    assert rows["cross"].difference.low > 0
    questions = asked.examples.questions
    for split in asked.splits:  # pictures with all their questions stay on one side
        train, val, test = ({*questions.picture[part].tolist()} for part in split)
        assert not train & val | train & test | val & test


def test_scores_of_questions_add_up_to_the_whole(asked: ProbeResult) -> None:
    found = asked.by_question()
    assert [*found] == ["left", "right"]
    right = sum(each["n"] * each["cross"] for each in found.values())
    probabilities = asked.trials["cross"].probabilities
    assert probabilities is not None
    assert right == pytest.approx(float((probabilities.argmax(1) == asked.examples.labels).sum()))
    assert asked.to_json()["examples"] == 2 * N
