"""The objective of HSAL-RL on a picture of 2×2 cells, where every rollout can be enumerated.

Expectations are exact: all 144 ways to glimpse and to name in two meta steps, each weighted by its probability.
"""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses.multiset import (
    LookedRewards,
    hsal_expected_loss,
    hsal_loss,
    looked_rewards,
    multiset_reward,
    multiset_rewards,
    stop_cross_entropy,
)
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
        result = torch.autograd.grad(objective, list(named.values()), retain_graph=True, allow_unused=True)
        return {name: gradient for name, gradient in zip(named, result) if gradient is not None}


def rows(raw: MultisetOutput) -> list[MultisetOutput]:
    return [raw[i : i + 1] for i in range(len(raw.said))]


def assert_same(result: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name in result.keys() | expected.keys():
        one, other = (given.get(name, torch.zeros(1).double()) for given in (result, expected))
        torch.testing.assert_close(*torch.broadcast_tensors(one, other), rtol=1e-8, atol=1e-11, msg=name)


@pytest.fixture(scope="module")
def case() -> Enumerated:
    return Enumerated()


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


STOP = 4


def on(*cells: int) -> list[list[bool]]:
    """A box on some cells of a row of five."""
    return [[cell in cells for cell in range(5)]]


def rewards(said, location, labels, boxes, elsewhere: float = 0.25) -> LookedRewards:
    given = (torch.tensor([each]) for each in (said, location, labels, boxes))
    return looked_rewards(*given, classes=STOP + 1, elsewhere=elsewhere)


def test_by_hand() -> None:
    """Labels 1, 2, 2 on cells 0, 1–2 and 3; cell 4 is empty."""
    boxes = [on(0), on(1, 2), on(3)]
    result = rewards([2, 2, 0], [[0, 3], [1, 4], [4, 4]], [1, 2, 2], boxes)
    e = 0.25
    assert result.classes[0].tolist() == [
        [-1, e, 1, -1, -1],  # the last glimpse is on the second 2; the 1 is there too
        [-1, e, 1, -1, -1],  # the last glimpse is on nothing, the one before it on the first 2
        [-1, 1, -1, -1, -1],  # no glimpse is on a free label: any will do
    ]
    assert result.glimpses[0, :, 0].tolist() == [
        [e, e, e, 1, e],  # the second 2 was said, and is taken
        [e, 1, 1, e, e],  # the first 2 was said
        [1, e, e, e, e],  # nothing free was said: a free label is the place to look
    ]


def test_without_boxes_and_without_labels_the_rewards_are_the_published_ones() -> None:
    nowhere = on()
    result = rewards([1, 1, 3], [[0], [1], [2]], [1, 2, -1], [nowhere] * 3)
    said, labels = torch.tensor([[1, 1, 3]]), torch.tensor([[1, 2, -1]])
    assert torch.equal(result.classes, multiset_rewards(said, labels, STOP + 1))
    assert (result.glimpses == 1).all()
    empty = rewards([1], [[0]], [-1, -1], [nowhere] * 2)
    assert (empty.classes == -1).all()
    assert (empty.glimpses == 1).all()


ELSEWHERE = -0.25
INSIDE = torch.tensor([[[[True, False], [False, False]], [[False, False], [True, True]]]])
"""The first label on the first of 2×2 cells, the second on the lower two."""


def looked(raw: MultisetOutput, labels: Tensor, elsewhere: float = ELSEWHERE) -> LookedRewards:
    inside = INSIDE.expand(len(labels), -1, -1, -1)
    return looked_rewards(raw.said, raw.location, labels, inside, classes=CLASSES + 1, elsewhere=elsewhere)


def drawn_and_mean(case: Enumerated) -> tuple[Tensor, Tensor]:
    """The mean of both losses over all rollouts, each weighted with its probability held still."""
    both = []
    for loss in (hsal_loss, hsal_expected_loss):
        each = [
            loss(one, case.labels[:1], looked=looked(one, case.labels[:1]))["policy_loss"] for one in rows(case.raw)
        ]
        both.append((case.chance * torch.stack(each)).sum())
    return both[0], both[1]


def test_the_gradient_of_the_draws_is_that_of_the_expected_rewards() -> None:
    """By enumeration: a reward is a constant of its rollout; a glimpse's depends on the class drawn after it."""
    case = Enumerated(2)
    told = looked(case.raw, case.labels)
    worth = told.classes.gather(-1, case.raw.said.unsqueeze(-1)).squeeze(-1)  # (144,T)
    there = told.glimpses.flatten(2).gather(2, case.raw.location).squeeze(-1)  # (144,T)
    there = there * case.raw.location_reward.squeeze(-1)  # (144,T)
    scored = case.raw.said_log_prob * worth + case.raw.location_log_prob.squeeze(-1) * there  # (144,T)
    objective = (case.chance * scored[:, :2].sum(1)).sum()
    drawn = case.gradients(drawn_and_mean(case)[0])
    saying = {name for name in drawn if not name.startswith("controller.value")}
    with_baseline = {name: drawn[name] for name in saying}
    assert_same(with_baseline, {name: each for name, each in case.gradients(-objective).items() if name in saying})


def test_where_to_look_learns_from_every_cell_given_what_was_said(assert_near) -> None:
    """One rollout by hand: the first step says the label 0, so that only the first cell is worth its priority."""
    case = Enumerated(2)
    number = int((case.raw.said[:, :2] == torch.tensor(LABELS)).all(1).nonzero()[0])
    one = rows(case.raw)[number]
    labels, told = case.labels[:1], looked(one, case.labels[:1], 0.0)
    looks, priority = (one.acts[name].weights[0].flatten(1) for name in ("glimpse", "priority"))  # (T,4) each
    glimpsed = looks[0, 0] * priority[0, 0] + (looks[1, 2:] * priority[1, 2:]).sum()
    named = (one.logits.softmax(-1)[0, :2] * told.classes[0, :2]).sum()
    assert_near(hsal_expected_loss(one, labels, looked=told)["policy_loss"], -(named + glimpsed))


def test_the_log_of_the_mean_reward_by_hand(assert_near) -> None:
    """Labels 0 and 1 said in their order; each glimpse is worth P + 0.05 on the box of its label, nothing beside it."""
    case = Enumerated(2)
    number = int((case.raw.said[:, :2] == torch.tensor(LABELS)).all(1).nonzero()[0])
    one, labels = rows(case.raw)[number], case.labels[:1]
    looks, priority = (one.acts[name].weights[0].flatten(1) for name in ("glimpse", "priority"))  # (T,4) each
    lower = priority[1, 2:] + 0.05  # (2,)
    glimpsed = looks[0, 0].log() + ((looks[1, 2:] * lower).sum() / lower.max()).log()
    told = looked(one, labels, 0.0)
    named = (one.logits.softmax(-1)[0, :2] * told.classes[0, :2]).sum()
    result = hsal_expected_loss(one, labels, looked=told, log_glimpses=True)["policy_loss"]
    assert_near(result, -(named + glimpsed))
    below = looked(one, labels, -0.5)
    named = (one.logits.softmax(-1)[0, :2] * below.classes[0, :2]).sum()
    result = hsal_expected_loss(one, labels, looked=below, log_glimpses=True)["policy_loss"]
    assert_near(result, -(named + glimpsed))
