"""Hard attention: the marginal and the posterior by hand, as loops, and by enumeration; draws that follow the prior."""

import math
from collections.abc import Callable

import torch

from saccade.attention.hard import (
    cell_entropy,
    log_marginal,
    posterior,
    sample_cells,
)

Near = Callable[..., None]

WEIGHTS = torch.tensor([[[0.1, 0.2], [0.3, 0.4]]], dtype=torch.float64)
FIRST = torch.tensor([[0.5, 1.0], [0.2, 0.1]], dtype=torch.float64)
"""p(y=0) of four cells; p(y=1) is the rest."""
ANSWERS = torch.stack([FIRST, 1 - FIRST])[None].clamp_min(1e-300).log()


def test_the_marginal_by_hand(assert_near: Near) -> None:
    """0.1·0.5 + 0.2·1 + 0.3·0.2 + 0.4·0.1 = 0.35, and the other answer has the rest."""
    assert_near(log_marginal(WEIGHTS, ANSWERS).exp(), [[0.35, 0.65]])


def test_many_labels_are_marginalised_one_by_one(assert_near: Near) -> None:
    """Sigmoids 1/2 and 3/4 of two cells, prior 0.2 and 0.8: 0.1 + 0.6 = 0.7; and 1/4, 1/2: 0.05 + 0.4 = 0.45."""
    logits = torch.tensor([[[[0.0, math.log(3)]], [[-math.log(3), 0.0]]]])
    weights = torch.tensor([[[0.2, 0.8]]])
    assert_near(log_marginal(weights, torch.nn.functional.logsigmoid(logits)).exp(), [[0.7, 0.45]])
    assert_near(log_marginal(weights, torch.nn.functional.logsigmoid(-logits)).exp(), [[0.3, 0.55]])


def test_the_gradient_is_that_of_the_enumerated_sum() -> None:
    """∇ log Σ_s α_s p(y|s) for the scores and the logits of a 2×2 grid, each term written out."""
    torch.manual_seed(1)
    scores = torch.randn(4, dtype=torch.float64, requires_grad=True)
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    enumerated = sum(scores.softmax(0)[cell] * logits[cell].softmax(0)[1] for cell in range(4))
    expected = torch.autograd.grad(enumerated.log(), (scores, logits))
    result = log_marginal(scores.softmax(0).view(1, 2, 2), logits.log_softmax(1).T.reshape(1, 3, 2, 2))[0, 1]
    for one, other in zip(torch.autograd.grad(result, (scores, logits)), expected):
        torch.testing.assert_close(one, other)


def test_a_prior_that_has_underflowed_stays_finite() -> None:
    scores = torch.tensor([[[0.0, 500.0]]], requires_grad=True)
    weights = scores.flatten(1).softmax(1).view_as(scores)
    assert weights[0, 0, 0] == 0
    answers = torch.tensor([[[[0.0, -1e3]], [[-1e3, 0.0]]]])
    result = log_marginal(weights, answers)
    assert result.isfinite().all()
    (result[0, 0] + cell_entropy(weights).sum()).backward()
    assert scores.grad.isfinite().all()


def test_the_posterior_by_hand(assert_near: Near) -> None:
    """α·p = 0.05, 0.2, 0.06, 0.04 of 0.35 for the first answer; 0.05, 0, 0.24, 0.36 of 0.65 for the second."""
    expected = [[0.05 / 0.35, 0.2 / 0.35], [0.06 / 0.35, 0.04 / 0.35]]
    assert_near(posterior(WEIGHTS, ANSWERS, torch.tensor([0])), [expected])
    expected = [[0.05 / 0.65, 0.0], [0.24 / 0.65, 0.36 / 0.65]]
    assert_near(posterior(WEIGHTS, ANSWERS, torch.tensor([1])), [expected])


def test_draws_follow_the_prior() -> None:
    """40,000 draws over four cells: each share within 4 standard errors."""
    count = 40_000
    torch.manual_seed(0)
    cells = sample_cells(WEIGHTS, count)[0]
    shares = torch.bincount(cells, minlength=4).double() / count
    errors = (WEIGHTS.flatten() * (1 - WEIGHTS.flatten()) / count).sqrt()
    assert ((shares - WEIGHTS.flatten()).abs() < 4 * errors).all()


def test_entropy_by_hand(assert_near: Near) -> None:
    weights = torch.tensor([[[0.5, 0.25], [0.25, 0.0]], [[0.25, 0.25], [0.25, 0.25]], [[0.0, 1.0], [0.0, 0.0]]])
    assert_near(cell_entropy(weights), [1.5 * math.log(2), 2 * math.log(2), 0.0])
