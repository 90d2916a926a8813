"""Soft and hard attention by hand: Seo et al. (2016), marginals, draws; gradients, given weights of all mechanisms."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade import geometry
from saccade.attention import CrossAttention, GaussianMixtureAttention, ProgressiveAttention, SoftAttention
from saccade.attention.hard import cell_entropy, log_marginal, posterior, sample_cells
from saccade.attention.scores import AdditiveScorer, spatial_softmax
from saccade.trace import AttentionTrace

Near = Callable[..., None]


def by_loops(scorer: AdditiveScorer, features: Tensor, query: Tensor) -> Tensor:
    """Eq. (2) and (9) written out: s_ij = v · relu(Σ_neighbours W f + b + U q) + c, zero beyond the border."""
    batch, channels, height, width = features.shape
    weight, bias = scorer.from_features.weight, scorer.from_features.bias
    reach = weight.shape[-1] // 2
    scores = torch.zeros(batch, height, width, dtype=features.dtype)
    for b in range(batch):
        for i in range(height):
            for j in range(width):
                hidden = scorer.from_query.weight @ query[b] + bias
                for di in range(-reach, reach + 1):
                    for dj in range(-reach, reach + 1):
                        if 0 <= i + di < height and 0 <= j + dj < width:
                            for c in range(channels):
                                hidden = hidden + weight[:, c, reach + di, reach + dj] * features[b, c, i + di, j + dj]
                scores[b, i, j] = scorer.to_score.weight.flatten() @ hidden.clamp(min=0) + scorer.to_score.bias[0]
    return scores


def test_equation_3_by_hand(assert_near: Near) -> None:
    """Scores ln 1, ln 2, ln 3, ln 4: weights 0.1, 0.2, 0.3, 0.4."""
    scores = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]).log()
    assert_near(spatial_softmax(scores), [[[0.1, 0.2], [0.3, 0.4]]])


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 3]),
    st.integers(0, 2**31),
)  # fmt: skip
def test_against_loops(batch: int, channels: int, height: int, width: int, context: int, seed: int) -> None:
    torch.manual_seed(seed)
    scorer = AdditiveScorer(channels, 3, hidden=4, context=context).double()
    features = torch.randn(batch, channels, height, width, dtype=torch.float64)
    query = torch.randn(batch, 3, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(scorer(features, query), by_loops(scorer, features, query))


@pytest.mark.parametrize("context", [1, 3, 4, 5])
def test_gradients(context: int) -> None:
    """Finite differences against autograd; the seed keeps every unit away from the kink of the rectifier."""
    torch.manual_seed(3)
    scorer = AdditiveScorer(2, 3, hidden=4, context=context).double()
    features = torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(scorer, (features, query))
    assert torch.autograd.gradcheck(lambda f, q: spatial_softmax(scorer(f, q)), (features, query))


@pytest.mark.parametrize("context", [1, 3, 4, 5])
def test_a_cell_sees_its_neighbourhood_and_nothing_else(context: int) -> None:
    """An even window has one cell more behind: 4 reads cells −1 to +2."""
    scorer = AdditiveScorer(3, 2, hidden=64, context=context)
    features = torch.randn(1, 3, 9, 9, requires_grad=True)
    scorer(features, torch.randn(1, 2))[0, 4, 4].backward()
    seen = (features.grad[0].abs().sum(0) > 0).nonzero()  # (N,2) cells with a gradient
    window = range(4 - (context - 1) // 2, 5 + context // 2)
    expected = [[i, j] for i in window for j in window]
    assert seen.tolist() == expected


def with_scores(attention: SoftAttention, scores: Tensor) -> SoftAttention:
    """The same attention, its scorer replaced by given scores."""
    attention.scorer.forward = lambda features, query: scores  # type: ignore[method-assign]
    return attention


def test_equation_4_by_hand(assert_near: Near) -> None:
    """Weights 0.1, 0.2, 0.3, 0.4 on features (10, 20; 30, 40): 1 + 4 + 9 + 16 = 30; on (0, 0; 0, 5): 2."""
    attention = with_scores(SoftAttention(2, 1), torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]).log())
    features = torch.tensor([[[[10.0, 20.0], [30.0, 40.0]], [[0.0, 0.0], [0.0, 5.0]]]])
    attended = attention.attend(features, torch.zeros(1, 1))
    assert_near(attended.weights, [[[0.1, 0.2], [0.3, 0.4]]])
    assert_near(attended.context, [[30.0, 2.0]])


def test_equation_1_by_hand(assert_near: Near) -> None:
    """Features 0, 1, 2; q = (1, 1, 1, 1) and k = f·(log 3)/2·(1, 1, 1, 1): q·k/√4 = f·log 3, so that odds are 1:3:9."""
    attention = CrossAttention(1, 1, hidden=4)
    with torch.no_grad():
        attention.to_query.weight.fill_(1.0)
        attention.to_key.weight.fill_(math.log(3) / 2)
    features = torch.tensor([[[[0.0, 1.0, 2.0]]]])
    attended = attention.attend(features, torch.ones(1, 1))
    assert_near(attended.scores, [[[0.0, math.log(3), 2 * math.log(3)]]])
    assert_near(attended.weights, [[[1 / 13, 3 / 13, 9 / 13]]])
    assert_near(attended.context, [[21 / 13]])


def test_equations_5_and_6_by_hand(assert_near: Near) -> None:
    """Odds 1, 3, 1/3 and 4 to one: α = 1/2, 3/4, 1/4, 4/5. Each multiplies its cell in both channels."""
    odds = torch.tensor([[[1.0, 3.0], [1 / 3, 4.0]]])
    gate = with_scores(ProgressiveAttention(2, 1), odds.log())
    features = torch.tensor([[[[10.0, 20.0], [40.0, 5.0]], [[-2.0, 0.0], [4.0, 1.0]]]])
    attended = gate.attend(features, torch.zeros(1, 1))
    assert_near(attended.weights, [[[0.5, 0.75], [0.25, 0.8]]])
    assert_near(attended.context, [[[[5.0, 15.0], [10.0, 4.0]], [[-1.0, 0.0], [1.0, 0.8]]]])
    assert_near(attended.scores, odds.log())


def test_a_gate_starts_where_it_is_told(assert_near: Near) -> None:
    """The odds of every opening are multiplied alike: by 3 for a start at 3/4; a half leaves what was drawn."""
    features, query = torch.rand(2, 4, 3, 3), torch.rand(2, 3)
    openings = {}
    for start in (0.25, 0.5, 0.75):
        torch.manual_seed(5)
        openings[start] = ProgressiveAttention(4, 3, start=start).attend(features, query).weights
    torch.manual_seed(5)
    drawn = ProgressiveAttention(4, 3).attend(features, query).weights
    assert torch.equal(openings[0.5], drawn)
    odds = drawn / (1 - drawn)
    assert_near(openings[0.75], 3 * odds / (1 + 3 * odds))
    assert_near(openings[0.25], odds / (3 + odds))


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


FEATURES = torch.tensor([[[[10.0, 20.0], [30.0, 40.0]], [[0.0, 0.0], [0.0, 5.0]]]], dtype=torch.float64)  # (1,2,2,2)
GIVEN_WEIGHTS = torch.tensor([[[0.5, 0.0], [2.0, -1.0]]], dtype=torch.float64)  # (1,2,2); they add up to 1.5
QUERY = torch.zeros(1, 3, dtype=torch.float64)
SUMS = {
    "soft": lambda: SoftAttention(2, 3, hidden=4),
    "cross": lambda: CrossAttention(2, 3, hidden=4),
    "gaussian": lambda: GaussianMixtureAttention(3, components=2),
}
"""Mechanisms whose context is Σ weights · features."""
every_sum = pytest.mark.parametrize("name", SUMS)
EVERY = {
    **SUMS,
    "soft in context": lambda: SoftAttention(2, 3, hidden=4, context=3),
    "gate": lambda: ProgressiveAttention(2, 3, hidden=4),
    "gate in context": lambda: ProgressiveAttention(2, 3, hidden=4, context=3),
}
every_mechanism = pytest.mark.parametrize("name", EVERY)


def built(name: str) -> nn.Module:
    return EVERY[name]().double()


@every_mechanism
def test_the_look_is_what_was_used(name: str, assert_near: Near) -> None:
    attention, frame = built(name), geometry.scale_shift((16, 16), (15, 15))
    features, query = torch.randn(2, 2, 5, 6).double(), torch.randn(2, 3).double()
    context, look = attention(features, query, frame=frame, name="stage1")
    AttentionTrace((look,)).validate()
    assert (look.name, look.role, look.kind) == ("stage1", "multiplier", "gate" if "gate" in name else "soft")
    assert look.frame is frame
    assert attention(features, query)[1].frame is None
    assert_near(look.rebuild(features), context)
    if name == "gaussian":
        weights = look.scores.exp()
    else:
        weights = look.scores.sigmoid() if "gate" in name else look.scores.flatten(1).softmax(1).view(2, 5, 6)
    assert_near(weights, look.weights)
    assert look.norm == ("softmax" if "soft" in name or name == "cross" else "sigmoid")


@every_mechanism
def test_gradients_of_every_mechanism(name: str) -> None:
    torch.manual_seed(3)
    attention = built(name)
    features = torch.randn(2, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, q: attention.attend(f, q).context, (features, query))


@every_sum
def test_the_context_is_the_sum_with_the_given_weights(name: str, assert_near: Near) -> None:
    """½·10 + 0·20 + 2·30 − 1·40 = 25, and −1·5 = −5: nothing is normalised, nothing is clipped."""
    attended = built(name).attend(FEATURES, QUERY, weights=GIVEN_WEIGHTS)
    assert_near(attended.context, [[25.0, -5.0]])
    assert torch.equal(attended.weights, GIVEN_WEIGHTS)


def test_a_gate_multiplies_by_the_given_weights(assert_near: Near) -> None:
    attended = built("gate").attend(FEATURES, QUERY, weights=GIVEN_WEIGHTS)
    assert_near(attended.context, [[[[5.0, 0.0], [60.0, -40.0]], [[0.0, 0.0], [0.0, -5.0]]]])
    assert torch.equal(attended.weights, GIVEN_WEIGHTS)
