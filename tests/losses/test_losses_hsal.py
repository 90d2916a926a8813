"""The objective of HSAL-RL on a picture of 2×2 cells, where every rollout can be enumerated.

Expectations are exact: all 144 ways to glimpse and to name in two meta steps, each weighted by its probability.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses.multiset import hsal_expected_loss, hsal_loss, multiset_reward, stop_cross_entropy
from saccade.models.hsal import HsalConfig, HsalModel
from saccade.trace import MultisetOutput

Near = Callable[..., None]
CELLS, CLASSES = 4, 2  # classes and stop: three things to say
LABELS = [0, 1]
FORCE = 1e6


class Enumerated:
    """Every rollout of one picture, side by side; the third meta step, which no reward judges, is held."""

    def __init__(self, seed: int = 0, **settings: object) -> None:
        torch.manual_seed(seed)
        config = HsalConfig(
            classes=CLASSES, most=2, glimpses=1, backbone="small", through="stage1", input_size=(6, 6), meta_hidden=4,
            hidden=5, location_hidden=3, **settings,  # type: ignore[arg-type]
        )  # fmt: skip
        self.model = HsalModel(config).double().train()
        for parameter in self.model.controller.parameters():
            parameter.data.mul_(2)  # far from even chances
        ways = itertools.product(range(CELLS), range(CLASSES + 1), range(CELLS), range(CLASSES + 1))
        chosen = torch.tensor(list(ways))  # (144,4)
        held = torch.zeros(len(chosen), dtype=torch.long)
        cells, said = (
            torch.stack([chosen[:, 0], chosen[:, 2], held], 1),
            torch.stack([chosen[:, 1], chosen[:, 3], held], 1),
        )
        volume = torch.rand(1, self.model.channels, 2, 2, dtype=torch.float64).expand(len(chosen), -1, -1, -1)
        self.raw = self.model.read(
            volume,
            F.one_hot(cells, CELLS).unsqueeze(2).double() * FORCE,
            F.one_hot(said, CLASSES + 1).double() * FORCE,
        )
        assert torch.equal(self.raw.location.squeeze(-1), cells)
        assert torch.equal(self.raw.said, said)
        self.labels = torch.tensor([LABELS]).expand(len(chosen), 2)
        self.log_chance = (self.raw.location_log_prob.squeeze(-1) + self.raw.said_log_prob)[:, :2].sum(1)  # (144,)
        self.chance = self.log_chance.exp().detach()

    def expected(self, part: str, **options: object) -> Tensor:
        """The mean of a part of the loss over all rollouts, each weighted with its probability held still."""
        losses = [hsal_loss(one, self.labels[:1], **options)[part] for one in rows(self.raw)]  # type: ignore[arg-type]
        return (self.chance * torch.stack(losses)).sum()

    def gradients(self, objective: Tensor) -> dict[str, Tensor]:
        named = dict(self.model.named_parameters())
        found = torch.autograd.grad(objective, list(named.values()), retain_graph=True, allow_unused=True)
        return {name: gradient for name, gradient in zip(named, found) if gradient is not None}


def rows(raw: MultisetOutput) -> list[MultisetOutput]:
    return [raw[i : i + 1] for i in range(len(raw.said))]


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name in found.keys() | expected.keys():
        one, other = (given.get(name, torch.zeros(1).double()) for given in (found, expected))
        torch.testing.assert_close(*torch.broadcast_tensors(one, other), rtol=1e-8, atol=1e-11, msg=name)


@pytest.fixture(scope="module")
def case() -> Enumerated:
    return Enumerated()


def test_the_chances_of_all_rollouts_sum_to_one(case: Enumerated) -> None:
    assert case.chance.sum().item() == pytest.approx(1)
    assert case.chance.max() > 0.03  # and they are not all alike


@pytest.mark.parametrize("settings", [{}, {"carry_state": False}])
def test_the_mean_gradient_is_that_of_the_myopic_objective(settings: dict[str, object]) -> None:
    """Of each action the reward that its whole distribution expects, given what went before."""
    case = Enumerated(1, **settings)
    priority = case.raw.acts["priority"].weights.detach()  # (144,T,2,2)
    looked = (case.raw.acts["glimpse"].weights * priority).sum((2, 3))  # E[P at the glimpse]: (144,T)
    shares = case.raw.logits.softmax(-1)  # (144,T,Y)
    objective = torch.zeros(())
    for t in range(2):
        for label in range(CLASSES + 1):
            said = case.raw.said.clone()
            said[:, t] = label
            reward = multiset_reward(said, case.labels)[:, t]  # (144,)
            objective = objective + (case.chance * shares[:, t, label] * reward).sum()
        objective = objective + (case.chance * looked[:, t]).sum()
    assert_same(case.gradients(case.expected("policy_loss")), case.gradients(-objective))


def test_with_rewards_to_go_it_is_that_of_the_total(case: Enumerated) -> None:
    rewards = multiset_reward(case.raw.said, case.labels)[:, :2].sum(1)
    rewards = (rewards + case.raw.location_reward[:, :2].sum((1, 2))).detach()  # (144,)
    total = (case.log_chance.exp() * rewards).sum()
    assert_same(case.gradients(case.expected("policy_loss", to_go=True)), case.gradients(-total))


@pytest.mark.parametrize("settings", [{}, {"carry_state": False}])
def test_the_mean_over_what_could_be_drawn_has_the_gradient_that_draws_estimate(settings: dict[str, object]) -> None:
    case = Enumerated(2, **settings)
    losses = [hsal_expected_loss(one, case.labels[:1])["policy_loss"] for one in rows(case.raw)]
    exact = case.gradients((case.chance * torch.stack(losses)).sum())
    assert_same(exact, case.gradients(case.expected("policy_loss")))
    assert max(gradient.abs().max() for gradient in exact.values()) > 1e-3


def test_the_baseline_learns_what_to_expect(case: Enumerated, assert_near: Near) -> None:
    """Its gradient is that of the squared error to the rewards of the two steps that count."""
    values = torch.stack([case.raw.location_value.squeeze(-1), case.raw.class_value], -1)[:, :2]  # (144,2,2)
    rewards = [case.raw.location_reward.squeeze(-1), multiset_reward(case.raw.said, case.labels)]
    error = (values - torch.stack(rewards, -1)[:, :2]).square().mean((1, 2))  # (144,)
    assert_near(case.expected("value_loss"), (case.chance * error).sum())


def test_an_empty_picture_is_taught_to_stop_and_nothing_else(case: Enumerated) -> None:
    empty = torch.full((1, 2), -1)
    loss = hsal_loss(rows(case.raw)[3], empty)
    assert (loss["policy_loss"], loss["value_loss"], loss["class_reward"], loss["entropy"]) == (0, 0, 0, 0)
    assert loss["loss"] == stop_cross_entropy(rows(case.raw)[3].logits, empty).mean()


def test_entropy_by_hand(assert_near: Near) -> None:
    """Even chances: ln 4 for the glimpse and ln 3 for the class, at the one step that counts."""
    case = Enumerated()
    for parameter in (*case.model.controller.locate[2].parameters(), *case.model.controller.classify.parameters()):
        parameter.data.zero_()
    raw = case.model.read(torch.rand(1, case.model.channels, 2, 2, dtype=torch.float64))
    labels = torch.tensor([[0, -1]])
    plain, priced = (hsal_loss(raw, labels, entropy_weight=weight) for weight in (0.0, 0.5))
    assert_near(plain["entropy"], math.log(4) + math.log(3))
    assert_near(plain["loss"] - priced["loss"], 0.5 * (math.log(4) + math.log(3)))


def test_the_loss_is_the_sum_of_its_parts(case: Enumerated, assert_near: Near) -> None:
    loss = hsal_loss(case.raw, case.labels)
    assert_near(loss["loss"], loss["policy_loss"] + loss["value_loss"] + loss["stop_loss"])
    assert all(value.dim() == 0 for value in loss.values())
    means = hsal_expected_loss(case.raw, case.labels, entropy_weight=0.5)
    assert_near(means["loss"], means["policy_loss"] + means["stop_loss"] - 0.5 * means["entropy"])
    assert {name: means[name] for name in means.keys() - {"loss", "policy_loss"}} == {
        name: loss[name] for name in loss.keys() - {"loss", "policy_loss", "value_loss"}
    }
