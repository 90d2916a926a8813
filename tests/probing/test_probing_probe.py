"""Planted features: attention must win where one cell decides, and must not where the mean does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F

from saccade.backbones.stages import Level
from saccade.errors import ConfigError
from saccade.models.probe_heads import HEADS
from saccade.probing.data import Examples, Questions, deal, splits_of
from saccade.probing.features import CLASS_TOKEN, Features, View
from saccade.probing.probe import ProbeResult, checked_heads, probe, sentence
from saccade.probing.trials import Material, Plan, head_trial

N, CHANNELS, SIDE = 120, 6, 4
PLAN = Plan(
    splits=4,
    seeds=1,
    steps=40,
    rates=(3e-2, 1e-1),
    linear_rates=(3e-2, 1e-1),
    decays=(1e-2,),
    shares=(0.5,),
    hidden=8,
    queries=2,
)


def planted(where: Literal["cell", "mean", "nowhere"]) -> tuple[torch.Tensor, torch.Tensor]:
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


def examples_of(labels: torch.Tensor) -> Examples:
    every = range(len(labels))
    return Examples(labels, ("no", "yes"), every, Questions.none(len(labels)))


def probed(where: Literal["cell", "mean", "nowhere"], **options: Any) -> ProbeResult:
    features, labels = planted(where)
    held = Features(lambda numbers: features[numbers], N)
    return probe(examples_of(labels), held, plan=PLAN, **{"heads": HEADS[:2], **options})


def test_attention_wins_where_one_cell_decides() -> None:
    found = probed("cell")
    rows = found.trials
    difference = rows["soft"].difference
    assert difference is not None
    assert difference.low > 0.1
    assert rows["soft"].score.mean > 0.9
    assert rows["linear"].score.mean < 0.7
    assert found.kept.name == "soft"
    assert "better by" in found.verdict


@pytest.fixture(scope="module")
def in_the_mean() -> ProbeResult:
    return probed("mean", heads=checked_heads(["queries"]))


def test_attention_ties_where_the_mean_decides(in_the_mean: ProbeResult) -> None:
    rows = in_the_mean.trials
    assert rows["linear"].score.mean > 0.9
    assert rows["queries"].difference is not None
    assert not rows["queries"].difference.is_beyond_zero
    assert "no difference detected" in in_the_mean.verdict


def test_the_verdict_says_that_nothing_is_there() -> None:
    assert "not detectably better" in probed("nowhere").verdict


def test_the_results_are_plain_and_whole(in_the_mean: ProbeResult) -> None:
    result = json.loads(json.dumps(in_the_mean.to_json(), allow_nan=False))
    assert result["kept"]["head"] == "queries"
    rivals = result["rivals"]
    assert set(rivals) == {"majority", "knn", "linear", "queries"}
    expected = rivals["queries"]["accuracy"] - rivals["linear"]["accuracy"]
    assert rivals["queries"]["difference"] == pytest.approx(expected)
    assert sum(map(sum, result["confusion"]["matrix"])) == N  # every picture was tested once
    assert set(rivals["linear"]["learning_curve"]) == {"0.5"}
    assert result["verdict"] == sentence(in_the_mean.trials, "queries")


def test_test_pictures_choose_nothing() -> None:
    """With the labels of the test pictures of split 0 turned round, split 0 chooses and trains the same heads."""
    features, labels = planted("mean")
    held = Features(lambda numbers: features[numbers], N)
    split = splits_of(deal(labels.tolist(), [*range(N)], 4), 4)[0]
    turned = labels.clone()
    turned[split.test] = 1 - turned[split.test]
    first, second = (
        head_trial("soft", Material(held, examples_of(given), PLAN), [split]) for given in (labels, turned)
    )
    assert first.settings == second.settings
    torch.testing.assert_close(first.heads[0].state_dict(), second.heads[0].state_dict())
    assert first.val == second.val
    assert first.test[0][0] == pytest.approx(1 - second.test[0][0])


def test_the_class_token_is_a_rival_of_its_own() -> None:
    """The maps say nothing; the first cell of the row below them has the class."""
    features, labels = planted("nowhere")
    row = torch.zeros(N, CHANNELS, 1, SIDE)
    row[:, 2, 0, 0] = 2.0 * labels - 1
    held = Features(lambda numbers: torch.cat([features, row], 2)[numbers], N, token=True)
    assert held.map.shape == (CHANNELS, SIDE, SIDE)
    assert torch.equal(held.map.take(torch.arange(N)), features)  # no head sees the row
    found = probe(examples_of(labels), held, plan=PLAN, heads=("linear", "soft", CLASS_TOKEN))
    rows = found.trials
    assert rows[CLASS_TOKEN].score.mean == 1
    assert rows["soft"].score.mean < 0.7
    assert found.kept.name == "soft"  # a model looks somewhere
    assert rows[CLASS_TOKEN].title == "linear on the class token"


def test_a_pyramid_finds_what_a_finer_stage_has() -> None:
    """One cell in sixteen of a finer map decides, and another cancels it in the mean."""
    fine, labels = planted("cell")  # (N,C,4,4)
    coarse = torch.randn(N, 3, 2, 2, generator=torch.Generator().manual_seed(1))
    levels = (Level("fine", CHANNELS, 2), Level("last", 3, 1))
    folded = F.pixel_unshuffle(fine, 2)
    held = Features(lambda numbers: coarse[numbers], N, folded=lambda numbers: folded[numbers], levels=levels)
    plan = replace(PLAN, steps=120, rates=(0.1, 0.3))
    found = probe(examples_of(labels), held, plan=plan, heads=("linear", "soft", "pyramid"))
    rows = found.trials
    assert rows["pyramid"].score.mean > 0.75
    assert rows["soft"].score.mean < 0.6
    assert found.kept.name == "pyramid"
    assert held.encoded("pyramid", torch.tensor([3])).shape == (1, 4 * CHANNELS + 3, 2, 2)


@pytest.mark.parametrize(("heads", "named"), [((CLASS_TOKEN,), CLASS_TOKEN), (("pyramid",), "pyramid")])
def test_rivals_that_the_features_cannot_have_are_named(heads: tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        probed("mean", heads=("linear", "soft", *heads))


def test_features_are_standardised_once_or_batch_by_batch_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = planted("mean")
    numbers = torch.tensor([5, 3, 5])
    asked = []

    def read(some: torch.Tensor) -> torch.Tensor:
        asked.append(len(some))
        return features[some]

    once = View(read, N)
    batch = once.batches(*once.statistics(torch.arange(9)))
    asked.clear()
    found = batch(numbers)
    assert asked == []  # from memory
    for limit in ("STANDARDISED", "RESIDENT"):
        monkeypatch.setattr(f"saccade.probing.features.{limit}", 0)
    each = View(read, N)
    torch.testing.assert_close(found, each.batches(*each.statistics(torch.arange(9)))(numbers))
    assert asked[-1] == 3
