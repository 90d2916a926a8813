"""How pictures are dealt into folds: groups stay whole, and classes are in every fold."""

from __future__ import annotations

import torch

from saccade.probing.data import Questions, deal, some_of, splits_of

LABELS = [0] * 20 + [1] * 10


def test_classes_are_dealt_evenly() -> None:
    fold = deal(LABELS, [*range(30)], 5)
    for number in range(5):
        held = [label for label, at in zip(LABELS, fold, strict=True) if at == number]
        assert (held.count(0), held.count(1)) == (4, 2)


def test_a_group_stays_on_one_side() -> None:
    groups = [number // 3 for number in range(30)]  # 20 is not a multiple of 3: one group has both classes
    fold = deal(LABELS, groups, 5)
    for group in set(groups):
        assert len({at for at, own in zip(fold, groups, strict=True) if own == group}) == 1
    for split in splits_of(fold, 5):
        sides = [{groups[number] for number in part.tolist()} for part in split]
        assert not sides[0] & sides[1]
        assert not sides[0] & sides[2]
        assert not sides[1] & sides[2]


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
