import math

import torch

from saccade.metrics import accuracy, accuracy_by_scale, correct


def ids(*values):
    return torch.tensor(values)


def test_correct_is_per_example_and_accuracy_its_mean():
    answers, truth = ids(1, 2, 3, 4), ids(1, 2, 0, 4)
    assert correct(answers, truth).tolist() == [1, 1, 0, 1]
    assert accuracy(answers, truth) == 0.75


def test_bins_are_closed_on_the_right_and_the_first_also_on_the_left():
    """Scales 0.5 and 1.0 fall into the first bin, 1.0001 into the second, 3.0 into the last."""
    scales = torch.tensor([0.5, 1.0, 1.0001, 1.5, 3.0])
    bins = accuracy_by_scale(ids(0, 1, 0, 0, 0), ids(0, 0, 0, 0, 0), scales)
    assert [(b.low, b.high) for b in bins] == [(0.5, 1), (1, 1.5), (1.5, 2), (2, 2.5), (2.5, 3)]
    assert [b.n for b in bins] == [2, 2, 0, 0, 1]
    assert [b.accuracy for b in bins[:2]] == [0.5, 1.0]
    assert math.isnan(bins[2].accuracy)
    assert bins[4].accuracy == 1.0
