"""How pictures are dealt into folds, and how examples are found by their pictures."""

from __future__ import annotations

import torch

from saccade.probing.examples import Questions, Split, deal, some_of, splits_of

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
    some = some_of(Split(torch.arange(7), none, none), 0.5, torch.zeros(7, dtype=torch.long), QUESTIONS)
    pictures = {*QUESTIONS.picture[some].tolist()}
    assert len(pictures) == 2
    assert len(some) == sum(int(picture) in pictures for picture in QUESTIONS.picture)  # with all their questions
