"""Rewards of saying what is looked at, worked by hand on a row of cells, and against every rollout of 2×2 cells."""

from __future__ import annotations

import torch
from test_losses_hsal import CLASSES, LABELS, Enumerated, assert_same, rows
from torch import Tensor

from saccade.losses.multiset import LookedRewards, hsal_expected_loss, hsal_loss, looked_rewards, multiset_rewards
from saccade.trace import MultisetOutput

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
    found = rewards([2, 2, 0], [[0, 3], [1, 4], [4, 4]], [1, 2, 2], boxes)
    e = 0.25
    assert found.classes[0].tolist() == [
        [-1, e, 1, -1, -1],  # the last glimpse is on the second 2; the 1 is there too
        [-1, e, 1, -1, -1],  # the last glimpse is on nothing, the one before it on the first 2
        [-1, 1, -1, -1, -1],  # no glimpse is on a free label: any will do
    ]
    assert found.glimpses[0, :, 0].tolist() == [
        [e, e, e, 1, e],  # the second 2 was said, and is taken
        [e, 1, 1, e, e],  # the first 2 was said
        [1, e, e, e, e],  # nothing free was said: a free label is the place to look
    ]


def test_without_boxes_and_without_labels_the_rewards_are_the_published_ones() -> None:
    nowhere = on()
    found = rewards([1, 1, 3], [[0], [1], [2]], [1, 2, -1], [nowhere] * 3)
    said, labels = torch.tensor([[1, 1, 3]]), torch.tensor([[1, 2, -1]])
    assert torch.equal(found.classes, multiset_rewards(said, labels, STOP + 1))
    assert (found.glimpses == 1).all()
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


def test_the_class_gradient_of_the_mean_is_that_of_the_draws() -> None:
    """Every parameter that a class teaches and a glimpse does not; a class has one reward, whatever is said later."""
    case = Enumerated(2)
    drawn, mean = (case.gradients(each) for each in drawn_and_mean(case))
    saying = {name for name in mean if not name.startswith("controller.locate")}
    assert_same({name: mean[name] for name in saying}, {name: drawn[name] for name in saying})
    assert max(mean[name].abs().max() for name in saying) > 1e-3


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
    found = hsal_expected_loss(one, labels, looked=told, log_glimpses=True)["policy_loss"]
    assert_near(found, -(named + glimpsed))
    below = looked(one, labels, -0.5)
    named = (one.logits.softmax(-1)[0, :2] * below.classes[0, :2]).sum()
    found = hsal_expected_loss(one, labels, looked=below, log_glimpses=True)["policy_loss"]
    assert_near(found, -(named + glimpsed))
