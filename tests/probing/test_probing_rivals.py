"""Planted features: attention must win where one cell decides, not where the mean does; and how pictures are dealt."""

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F

from saccade.backbones.stages import Level
from saccade.errors import ConfigError
from saccade.models.probe_heads import HEADS
from saccade.probing.examples import ProbedExamples, ProbeSplit, Questions, deal, some_of, splits_of
from saccade.probing.features import CLASS_TOKEN, Features
from saccade.probing.folder import low_shot_section
from saccade.probing.heads import Material, head_trial
from saccade.probing.plan import Plan
from saccade.probing.rivals import ProbeResult, compare_rivals, habit_trial, neighbour_trial, sentence

LABELS = [0] * 20 + [1] * 10
QUESTIONS = Questions(
    ("upper", "lower"), torch.tensor([0, 1, 0, 1, 1, 0, 1]), torch.tensor([0, 0, 1, 2, 1, 3, 3])
)  # pictures 0, 1 and 3 are asked both


def test_folds_have_every_class_and_keep_groups_whole() -> None:
    fold = deal(LABELS, [*range(30)], 5)
    for number in range(5):
        labels = [label for label, at in zip(LABELS, fold, strict=True) if at == number]
        assert (labels.count(0), labels.count(1)) == (4, 2)
    groups = [number // 3 for number in range(30)]  # 20 is not a multiple of 3: one group has both classes
    for split in splits_of(deal(LABELS, groups, 5), 5):
        train, val, test = ({groups[number] for number in part.tolist()} for part in split)
        assert not train & val | train & test | val & test


def test_every_picture_is_tested_once_and_chooses_once() -> None:
    splits = splits_of(deal(LABELS, [*range(30)], 5), 5)
    for part in ("val", "test"):
        numbers = torch.cat([getattr(split, part) for split in splits])
        assert sorted(numbers.tolist()) == [*range(30)]
    assert all(len(split.train) + len(split.val) + len(split.test) == 30 for split in splits)


def test_a_share_keeps_every_class_and_is_inside_the_next_larger() -> None:
    (split, *_) = splits_of(deal(LABELS, [*range(30)], 5), 5)
    labels = torch.tensor(LABELS)
    quarter, half = (set(some_of(split, share, labels, Questions.none(30)).tolist()) for share in (0.25, 0.5))
    assert quarter < half < set(split.train.tolist())
    assert {LABELS[number] for number in quarter} == {0, 1}
    assert len(half) == len(split.train) // 2
    none = torch.tensor([], dtype=torch.long)
    some = some_of(ProbeSplit(torch.arange(7), none, none), 0.5, torch.zeros(7, dtype=torch.long), QUESTIONS)
    pictures = {*QUESTIONS.picture[some].tolist()}
    assert len(pictures) == 2
    assert len(some) == sum(int(picture) in pictures for picture in QUESTIONS.picture)  # with all their questions


N, CHANNELS, SIDE = 120, 6, 4
PLAN = Plan(splits=4, seeds=1, steps=40, rates=(3e-2, 1e-1), linear_rates=(3e-2, 1e-1), decays=(1e-2,), shares=(0.5,),
            hidden=8, queries=2)  # fmt: skip
Where = Literal["cell", "mean", "nowhere"]


def planted(where: Where) -> tuple[torch.Tensor, torch.Tensor]:
    """Features (N,C,H,W) and two classes.

    ``cell``: a cell that channel 0 marks has the sign of the class in channel 1, and another cell has the opposite, so
    that their mean says nothing. ``mean``: every cell has the sign of the class.
    """
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(N, CHANNELS, SIDE * SIDE, generator=generator)
    labels = torch.arange(N) % 2
    sign = (2 * labels - 1).float()
    cells = torch.rand(N, SIDE * SIDE, generator=generator).argsort(1)  # (N,cells)
    every = torch.arange(N)
    if where == "cell":
        features[every, 0, cells[:, 0]] += 8
        features[every, 1, cells[:, 0]] += 6 * sign
        features[every, 1, cells[:, 1]] -= 6 * sign
    elif where == "mean":
        features[:, 1] += 0.7 * sign[:, None]
    return features.reshape(N, CHANNELS, SIDE, SIDE), labels


def examples_of(labels: torch.Tensor) -> ProbedExamples:
    return ProbedExamples(labels, ("no", "yes"), range(len(labels)), Questions.none(len(labels)))


def probed(where: Where, heads: tuple[str, ...] = HEADS[:2], **plan: Any) -> ProbeResult:
    features, labels = planted(where)
    held = Features(lambda numbers: features[numbers], N)
    return compare_rivals(examples_of(labels), held, plan=replace(PLAN, **plan), heads=heads)


def test_attention_wins_where_one_cell_decides() -> None:
    result = probed("cell")
    soft = result.trials["soft"]
    assert soft.difference.low > 0.1
    assert soft.score.mean > 0.9
    assert result.trials["linear"].score.mean < 0.7
    assert result.kept == "soft"
    assert "better by" in result.verdict


def test_attention_ties_where_the_mean_decides_and_the_results_are_whole() -> None:
    result = probed("mean", ("linear", "queries"))
    assert result.trials["linear"].score.mean > 0.9
    assert not result.trials["queries"].difference.is_beyond_zero
    assert "no difference detected" in result.verdict
    values = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert values["kept"]["head"] == "queries"
    rivals = values["rivals"]
    assert set(rivals) == {"majority", "knn", "linear", "queries"}
    expected = rivals["queries"]["accuracy"] - rivals["linear"]["accuracy"]
    assert rivals["queries"]["difference"] == pytest.approx(expected)
    assert sum(map(sum, values["confusion"]["matrix"])) == N  # every picture was tested once
    assert set(rivals["linear"]["learning_curve"]) == {"0.5"}
    assert values["verdict"] == sentence(result.trials, "queries")


def test_the_verdict_says_that_nothing_is_there() -> None:
    assert "not detectably better" in probed("nowhere").verdict


def test_few_pictures_of_each_class_are_learned_from() -> None:
    result = probed("mean", shots=True)
    curve = result.to_json()["rivals"]["linear"]["low_shot"]
    assert [*curve] == ["1", "2", "5", "10"]
    means = [sum(scores) / len(scores) for scores in curve.values()]
    assert means[0] < means[-1] <= 1
    split = ProbeSplit(torch.arange(12), torch.tensor([0]), torch.tensor([1]))
    some = some_of(split, 2, torch.arange(12) % 3, Questions.none(12))
    assert torch.bincount(some % 3).tolist() == [2, 2, 2]
    section = low_shot_section(result)
    assert "<polyline" in section.blocks[0].image
    assert low_shot_section(replace(result, plan=PLAN)) is None


def test_test_pictures_choose_nothing() -> None:
    """With the labels of the test pictures of split 0 turned round, split 0 chooses and trains the same heads."""
    features, labels = planted("mean")
    held = Features(lambda numbers: features[numbers], N)
    split = splits_of(deal(labels.tolist(), [*range(N)], 4), 4)[0]
    turned = labels.clone()
    turned[split.test] = 1 - turned[split.test]
    first, second = (head_trial("soft", Material(held, examples_of(own), PLAN), [split]) for own in (labels, turned))
    assert first.settings == second.settings
    torch.testing.assert_close(first.trained[0].head.state_dict(), second.trained[0].head.state_dict())
    assert first.val == second.val
    assert first.test[0][0] == pytest.approx(1 - second.test[0][0])


def test_the_class_token_is_a_rival_of_its_own() -> None:
    """The maps say nothing; the first cell of the row below them has the class."""
    features, labels = planted("nowhere")
    row = torch.zeros(N, CHANNELS, 1, SIDE)
    row[:, 2, 0, 0] = 2.0 * labels - 1
    held = Features(lambda numbers: torch.cat([features, row], 2)[numbers], N, token=True)
    assert torch.equal(held.map.take(torch.arange(N)), features)  # no head sees the row
    result = compare_rivals(examples_of(labels), held, plan=PLAN, heads=("linear", "soft", CLASS_TOKEN))
    assert result.trials[CLASS_TOKEN].score.mean == 1
    assert result.trials["soft"].score.mean < 0.7
    assert result.kept == "soft"  # a model looks somewhere


def test_a_pyramid_finds_what_a_finer_stage_has() -> None:
    """One cell in sixteen of a finer map decides, and another cancels it in the mean."""
    fine, labels = planted("cell")  # (N,C,4,4)
    coarse = torch.randn(N, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    levels = (Level("fine", CHANNELS, 2), Level("last", 3, 1))
    folded = F.pixel_unshuffle(fine, 2)
    held = Features(lambda numbers: coarse[numbers], N, folded=lambda numbers: folded[numbers], levels=levels)
    plan = replace(PLAN, steps=60, rates=(0.3,))
    result = compare_rivals(examples_of(labels), held, plan=plan, heads=("linear", "soft", "pyramid"))
    assert result.trials["pyramid"].score.mean > 0.75
    assert result.trials["soft"].score.mean < 0.6
    assert result.kept == "pyramid"
    assert held.encoded("pyramid", torch.tensor([3])).shape == (1, 4 * CHANNELS + 3, 2, 2)
    with pytest.raises(ConfigError, match="pyramid"):
        Features(lambda numbers: coarse[numbers], N).view("pyramid")


def test_habits_by_hand() -> None:
    """Question a is mostly answered 1, question b always 0, and question c is never asked in training."""
    labels, query = torch.tensor([1, 1, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 0, 1, 2])
    examples = ProbedExamples(labels, ("no", "yes"), range(7), Questions(("a", "b", "c"), query, torch.arange(7)))
    split = ProbeSplit(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([4]), torch.tensor([4, 5, 6]))
    trial = habit_trial("prior", examples, [split], query)
    assert trial.probabilities.argmax(1)[4:].tolist() == [1, 0, 1]  # of question c the commonest of all
    assert trial.test == [[pytest.approx(2 / 3)]]
    assert trial.val == [1.0]


def test_neighbours_vote_among_those_that_are_asked_the_same() -> None:
    """Picture 2 looks like picture 0; what it is asked decides which answer of picture 0 counts."""
    pooled = torch.tensor([[1.0, 0.1], [0.1, 1.0], [1.0, 0.2]])
    questions = Questions(("a", "b"), torch.tensor([0, 1, 0, 1, 0, 1]), torch.tensor([0, 0, 1, 1, 2, 2]))
    examples = ProbedExamples(torch.tensor([0, 1, 1, 0, 0, 1]), ("no", "yes"), range(6), questions)
    held = Features(lambda numbers: pooled[numbers][:, :, None, None], 3)
    split = ProbeSplit(torch.arange(4), torch.tensor([4]), torch.tensor([4, 5]))
    assert neighbour_trial(Material(held, examples, PLAN), [split]).test == [[1.0]]
