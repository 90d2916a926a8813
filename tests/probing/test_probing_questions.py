"""Questions in a probe: by hand, in a stack as alone, and planted so that only who is told the question can win."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from saccade.backbones.stages import Level
from saccade.models.probe_heads import HEADS, ExampleQueries, HeadName, ProbeHead, new_head
from saccade.probing.data import ProbedPictures, Questions, Split, deal, some_of, splits_of
from saccade.probing.features import Features
from saccade.probing.head_stack import HeadStack, batches_of, fresh_heads, logits_of, rate_factor, train_heads
from saccade.probing.probe import ProbeResult, probe
from saccade.probing.trials import Material, Plan, habit_trial, habits, head_trial, neighbour_trial

C, H, W, K, A = 5, 2, 3, 3, 2
LEVELS = (Level("fine", 1, 2), Level("last", 1, 1))
QUESTIONS = Questions(
    ("upper", "lower"), torch.tensor([0, 1, 0, 1, 1, 0, 1]), torch.tensor([0, 0, 1, 2, 1, 3, 3])
)  # pictures 0, 1 and 3 are asked both


def heads_of(name: HeadName, seeds: list[int]) -> list[ProbeHead]:
    heads = fresh_heads(lambda: new_head(name, C, K, hidden=4, queries=2, levels=LEVELS, asked=A), seeds)
    for number, head in enumerate(heads):  # a prior begins at 0, where it could not be seen to be used
        if head.prior is not None:
            torch.nn.init.normal_(head.prior.weight, generator=torch.Generator().manual_seed(number))
    return heads


def features_of(pictures: int) -> torch.Tensor:
    return torch.randn(pictures, C, H, W, generator=torch.Generator().manual_seed(0))


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


@pytest.mark.parametrize("name", HEADS)
def test_a_stack_answers_questions_as_its_members_do(name: HeadName) -> None:
    features, heads = features_of(4), heads_of(name, [0, 1, 2])
    asked = ExampleQueries(QUESTIONS.query, QUESTIONS.picture)
    alone = [head(features[QUESTIONS.picture], None, QUESTIONS.query) for head in heads]
    stack = HeadStack(heads)
    torch.testing.assert_close(stack.logits(features, asked), torch.stack([logits for logits, _ in alone]))
    maps = stack.maps(features, asked)
    if maps is not None:
        each = [torch.stack([act.weights for act in acts.values()]).mean(0) for _, acts in alone]
        torch.testing.assert_close(maps, torch.stack(each))
    assert (maps is None) == (name in ("linear", "pyramid"))
    other = heads[0](features[QUESTIONS.picture], None, 1 - QUESTIONS.query)[0]
    assert not torch.allclose(alone[0][0], other)  # the question counts


@pytest.mark.parametrize("name", HEADS)
def test_without_a_question_the_first_is_meant(name: HeadName) -> None:
    features, (head,) = features_of(4), heads_of(name, [0])
    none, first = head(features)[0], head(features, None, torch.zeros(4, dtype=torch.long))[0]
    torch.testing.assert_close(none, first)
    torch.testing.assert_close(HeadStack([head]).logits(features)[0], first)


def test_the_linear_rival_has_a_layer_for_each_question() -> None:
    features, (head,) = features_of(1), heads_of("linear", [0])
    weight, bias = head.classify.weight[K:], head.classify.bias[K:]  # of question 1
    found, _ = head(features, None, torch.tensor([1]))
    torch.testing.assert_close(found[0], weight @ features.mean((2, 3))[0] + bias)


@pytest.mark.parametrize("name", HEADS)
def test_stacked_training_on_questions_equals_the_single_training(name: HeadName) -> None:
    """Batches are pictures with all their questions; a member counts only what it may learn from."""
    features, heads = features_of(4).double(), [head.double() for head in heads_of(name, [0, 1])]
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    learns = torch.ones(2, 7, dtype=torch.bool)
    learns[1, :2] = False  # picture 0
    rates, decays, steps, size = [0.1, 0.03], [0.01, 1.0], 6, 2
    trained = train_heads(
        heads, lambda numbers: features[numbers], labels, learns, rates=rates, decays=decays, steps=steps,
        batch_size=size, seed=3, questions=QUESTIONS,
    )  # fmt: skip
    for number, found in enumerate(trained):
        model = copy.deepcopy(heads[number])
        optimiser = torch.optim.AdamW(model.parameters(), lr=rates[number], weight_decay=decays[number])
        for step, pictures in enumerate(batches_of(torch.arange(4), size, steps, 3)):
            optimiser.param_groups[0]["lr"] = rates[number] * rate_factor(step, steps)
            examples = torch.isin(QUESTIONS.picture, pictures) & learns[number]
            optimiser.zero_grad()
            if bool(examples.any()):
                logits, _ = model(features[QUESTIONS.picture[examples]], None, QUESTIONS.query[examples])
                F.cross_entropy(logits, labels[examples]).backward()
            optimiser.step()
        for key, wanted in model.state_dict().items():
            torch.testing.assert_close(found.state_dict()[key], wanted, rtol=1e-6, atol=1e-7)


def test_logits_come_in_the_order_that_was_asked_for() -> None:
    features, heads = features_of(4), heads_of("soft", [0, 1, 2])
    examples = torch.tensor([6, 0, 3, 5])
    found = logits_of(heads, lambda numbers: features[numbers], examples, 2, 2, QUESTIONS)
    for head, own in zip(heads, found):
        expected, _ = head(features[QUESTIONS.picture[examples]], None, QUESTIONS.query[examples])
        torch.testing.assert_close(own, expected)


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
    assert neighbour_trial(Material(held, labels, 2, PLAN, questions), [split]).test == [[1.0]]


def test_a_share_of_the_pictures_brings_all_their_questions() -> None:
    split = Split(torch.arange(7), torch.tensor([], dtype=torch.long), torch.tensor([], dtype=torch.long))
    some = some_of(split, 0.5, torch.zeros(7, dtype=torch.long), QUESTIONS)
    pictures = {*QUESTIONS.picture[some].tolist()}
    assert len(pictures) == 2
    assert len(some) == sum(int(each) in pictures for each in QUESTIONS.picture)


N, SIDE = 90, 4
PLAN = Plan(splits=3, seeds=1, steps=150, rates=(3e-2, 1e-1), linear_rates=(3e-2, 1e-1), decays=(1e-2,), shares=(0.5,),
            hidden=8, queries=2)  # fmt: skip


def planted() -> tuple[torch.Tensor, ProbedPictures]:
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
    names = tuple(Path(f"{number}.png") for number in range(N))
    groups = tuple(range(N)) * 2
    pictures = ProbedPictures(
        names, signs.flatten(), ("minus", "plus"), tuple(sorted(groups)), None, every, (), (), questions
    )  # type: ignore[arg-type]
    return features.reshape(N, 6, SIDE, SIDE), pictures


@pytest.fixture(scope="module")
def asked() -> ProbeResult:
    features, pictures = planted()
    held = Features(lambda numbers: features[numbers], N)
    return probe(pictures, held, plan=PLAN, heads=("linear", "cross"))


def test_who_is_told_the_question_and_looks_wins(asked: ProbeResult) -> None:
    rows = {row.name: row for row in asked.rows}
    assert [*rows] == ["majority", "prior", "knn", "linear", "cross"]
    assert rows["cross"].test.mean > 0.9
    assert rows["linear"].test.mean < 0.85
    assert rows["cross"].difference is not None
    assert rows["cross"].difference.low > 0
    assert "the commonest answer to the question alone is" in asked.verdict


def test_pictures_with_all_their_questions_stay_on_one_side(asked: ProbeResult) -> None:
    questions = asked.pictures.questions
    assert questions is not None
    for split in asked.splits:
        train, val, test = ({*questions.picture[part].tolist()} for part in split)
        assert not train & val
        assert not train & test
        assert not val & test


def test_scores_of_questions_add_up_to_the_whole(asked: ProbeResult) -> None:
    found = asked.by_question()
    assert [*found] == ["left", "right"]
    right = sum(each["n"] * each["cross"] for each in found.values())
    probabilities = asked.trials["cross"].probabilities
    assert probabilities is not None
    assert right == pytest.approx(float((probabilities.argmax(1) == asked.pictures.labels).sum()))
    told = asked.to_json()
    assert told["examples"] == 2 * N
    assert told["pictures"] == N
    assert all(each["asked"] in ("left", "right") for each in told["mistakes"])


def test_test_questions_choose_nothing() -> None:
    features, pictures = planted()
    held = Features(lambda numbers: features[numbers], N)
    labels = pictures.labels
    split = splits_of(deal(labels.tolist(), pictures.groups, 3), 3)[0]
    turned = labels.clone()
    turned[split.test] = 1 - turned[split.test]
    plan = replace(PLAN, steps=20)
    first, second = (
        head_trial("soft", Material(held, given, 2, plan, pictures.questions), [split]) for given in (labels, turned)
    )
    assert first.settings == second.settings
    torch.testing.assert_close(first.heads[0].state_dict(), second.heads[0].state_dict())
    assert first.test[0][0] == pytest.approx(1 - second.test[0][0])
