"""Policy gradients: REINFORCE against the exact gradient of its own objective, the bound Σ_s p(s) log p(y|s), on a grid
of four cells; with a baseline, and self-critical, by hand. And losses of maps, by hand and through models.

The expectation over draws is taken exactly, by enumerating them, wherever that is possible; by drawing once.
"""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from saccade.attention.hard import cell_entropy, log_marginal, log_prob_of
from saccade.errors import ConfigError
from saccade.families.question.task import Default, QuestionTask
from saccade.losses.captions import caption_cross_entropy, doubly_stochastic, hard_attention_loss, word_log_likelihood
from saccade.losses.maps import (
    evidence_loss,
    overlap_loss,
    proposal_loss,
    rank_loss,
    scale_losses,
    true_class_probability,
)
from saccade.losses.policy import policy_gradient, reinforce, rewards_to_go, self_critical_loss
from saccade.metrics.maps.localisation import total_variation, true_positive_strength
from saccade.models.hattnet import HAttNetModel
from saccade.models.soft import SoftModel
from saccade.models.stn import StnModel
from saccade.tasks.picture_task import MapLosses
from saccade.trace import Act, CaptionOutput
from tiny_models import example_batch, tiny_config, tiny_model

Near = Callable[..., None]
Gradients = tuple[Tensor, ...]

CELLS, ANSWERS, LABEL = 4, 3, 1


class Example:
    """One picture of 2×2 cells: scores (4,) and logits (4,K) with the objectives written out."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.scores = torch.randn(CELLS, dtype=torch.float64, generator=generator).requires_grad_()
        self.logits = torch.randn(CELLS, ANSWERS, dtype=torch.float64, generator=generator).mul(2).requires_grad_()

    @property
    def weights(self) -> Tensor:
        return self.scores.softmax(0).view(1, 2, 2)

    @property
    def log_likelihood(self) -> Tensor:
        """log p(y|s) of each cell: (4,)."""
        return self.logits.log_softmax(1)[:, LABEL]

    def bound(self) -> Tensor:
        return sum((self.scores.softmax(0)[s] * self.log_likelihood[s] for s in range(CELLS)), torch.zeros(()))

    def marginal(self) -> Tensor:
        answers = self.logits.log_softmax(1).T.reshape(1, ANSWERS, 2, 2)
        return log_marginal(self.weights, answers)[0, LABEL]

    def loss(self, cells: Tensor, **options: object) -> Tensor:
        """The surrogate of given draws (S,)."""
        log_prob = log_prob_of(self.weights, cells[None])
        return reinforce(self.log_likelihood[cells][None], log_prob, **options)  # type: ignore[arg-type]

    def gradients(self, objective: Tensor) -> Gradients:
        return torch.autograd.grad(objective, (self.scores, self.logits), allow_unused=False)

    def expected_gradients(self, draws: int, **options: object) -> Gradients:
        """The exact mean of the surrogate's gradient over all 4^S ways to draw."""
        total = [torch.zeros_like(self.scores), torch.zeros_like(self.logits)]
        for cells in itertools.product(range(CELLS), repeat=draws):
            chosen = torch.tensor(cells)
            chance = self.scores.softmax(0)[chosen].prod().detach()
            for kept, gradient in zip(total, self.gradients(self.loss(chosen, **options))):
                kept += chance * gradient
        return tuple(total)


def assert_same(result: Gradients, expected: Gradients) -> None:
    for one, other in zip(result, expected):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("baseline", [0.0, -1.5, 40.0])
@pytest.mark.parametrize("draws", [1, 2])
def test_with_any_fixed_baseline_the_mean_gradient_is_that_of_the_bound(draws: int, baseline: float) -> None:
    case = Example(0)
    result = case.expected_gradients(draws, baseline=torch.tensor(baseline, dtype=torch.float64))
    assert_same(result, case.gradients(-case.bound()))


@pytest.mark.parametrize("draws", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_leaving_one_out_does_not_bias(draws: int, seed: int) -> None:
    case = Example(seed)
    assert_same(case.expected_gradients(draws), case.gradients(-case.bound()))


def test_entropy_adds_its_own_gradient() -> None:
    case = Example(2)
    entropy = cell_entropy(case.weights)
    objective = -case.bound() - 0.3 * -(case.scores.softmax(0) * case.scores.log_softmax(0)).sum()
    total = torch.zeros_like(case.scores)
    for cell in range(CELLS):
        loss = case.loss(torch.tensor([cell]), baseline=torch.zeros(()), entropy=entropy, entropy_weight=0.3)
        total += case.scores.softmax(0)[cell].detach() * torch.autograd.grad(loss, case.scores, retain_graph=True)[0]
    torch.testing.assert_close(total, torch.autograd.grad(objective, case.scores)[0])


def test_value_and_gradient_by_hand(assert_near: Near) -> None:
    """Rewards −1 and −3, baselines of each other: advantages 2 and −2. Value: the mean of 1 and 3."""
    log_likelihood = torch.tensor([[-1.0, -3.0]], requires_grad=True)
    log_prob = torch.tensor([[-0.5, -0.9]], requires_grad=True)
    loss = reinforce(log_likelihood, log_prob)
    assert_near(loss, 2.0)
    loss.backward()
    assert_near(log_likelihood.grad, [[-0.5, -0.5]])
    assert_near(log_prob.grad, [[-1.0, 1.0]])


COUNTS = torch.tensor([[True, True], [True, False]])


def test_a_baseline_by_hand(assert_near: Near) -> None:
    log_prob, value = torch.tensor([[-1.0, -2.0], [-0.5, -9.0]]), torch.tensor([[0.5, 0.0], [1.0, 7.0]])
    reward = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    policy, baseline = policy_gradient(log_prob, reward, value, COUNTS)
    assert_near(policy, (-1.0 * -0.5 + -2.0 * 1.0 + -0.5 * 0.0) / 2)  # log p · (V − R), over two examples
    assert_near(baseline, (0.25 + 1.0 + 0.0) / 3)  # over three actions


def test_rewards_do_not_learn_and_the_baseline_learns_by_its_error_alone() -> None:
    log_prob, reward, value = (torch.randn(2, 2, requires_grad=True) for _ in range(3))
    loss = policy_gradient(log_prob, reward, value, COUNTS)
    assert torch.autograd.grad(loss.policy, (reward, value), retain_graph=True, allow_unused=True) == (None, None)
    assert torch.autograd.grad(loss.value, (log_prob, reward), allow_unused=True, retain_graph=True) == (None, None)
    (gradient,) = torch.autograd.grad(loss.value, (value,))
    assert gradient[1, 1] == 0
    assert (gradient[COUNTS] != 0).all()


def test_rewards_to_go_by_hand() -> None:
    reward = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    counts = torch.tensor([[True, True, True], [True, True, False]])
    assert rewards_to_go(reward, counts).tolist() == [[7.0, 6.0, 4.0], [3.0, 2.0, 0.0]]


def test_self_critical_by_hand() -> None:
    """Rewards 0.7, 0.1 and 0.1 against 0.1, 0.4 and 0.4 of the others, on log p of −3, −2 and −1."""
    log_prob = torch.tensor([[[-1.0, -2.0], [-2.0, 0.0], [-1.0, 0.0]]], requires_grad=True)
    loss = self_critical_loss(log_prob, torch.tensor([[0.7, 0.1, 0.1]]))
    assert float(loss.detach()) == pytest.approx((0.6 * 3 - 0.3 * 2 - 0.3 * 1) / 3)
    loss.backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([[[-0.2, -0.2], [0.1, 0.1], [0.1, 0.1]]]))


def test_a_caption_costs_the_sum_of_its_words_and_a_batch_the_mean() -> None:
    logits = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0]], [[0.0, math.log(4)], [9.0, -9.0]]])
    words = torch.tensor([[1, 0], [0, -1]])  # p: 1/2 · 3/4, and 1/5
    expected = -(math.log(1 / 2 * 3 / 4) + math.log(1 / 5)) / 2
    assert caption_cross_entropy(logits, words).item() == pytest.approx(expected)


def test_padding_earns_nothing_and_has_no_gradient() -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    words = torch.tensor([[3, 0, -1], [0, -1, -1]])
    earned = word_log_likelihood(logits, words)
    assert (earned[words < 0] == 0).all()
    assert (earned[words >= 0] < 0).all()
    earned.sum().backward()
    assert (logits.grad[words < 0] == 0).all()
    assert (logits.grad[words >= 0].abs().sum(-1) > 0).all()


def test_the_penalty_by_hand() -> None:
    """Cells get 0.5 + 0.25 and 0.5 + 0.75 in two words: (1 − 0.75)² + (1 − 1.25)²; and 1, 0 in one: 0 + 1."""
    weights = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]], [[[1.0, 0.0]], [[0.3, 0.7]]]])  # (B,T,1,2)
    words = torch.tensor([[5, 0], [0, -1]])
    assert doubly_stochastic(weights, words).item() == pytest.approx((0.125 + 1.0) / 2)


def test_of_what_was_expected_no_draw_is_judged() -> None:
    raw = CaptionOutput(
        torch.randn(1, 2, 3),
        {"word": Act(log_prob=torch.randn(1, 2))},
        entropy=torch.zeros(1, 2),
        expected=torch.tensor([True]),
    )
    loss = hard_attention_loss(raw, torch.tensor([[1, 0]]), torch.tensor(0.0), entropy_weight=0.0)
    assert loss["policy_loss"] == 0
    assert loss["loss"] == loss["cross_entropy"]


def test_parts_by_hand() -> None:
    """p(y) = 1/2 and 1/4, p(s) = 1/2 each, b = −1, in one caption of two words and a padding."""
    raw = CaptionOutput(
        torch.tensor([[[0.0, 0.0], [0.0, math.log(3)], [5.0, 0.0]]]),
        {"word": Act(log_prob=torch.tensor([[math.log(0.5), math.log(0.5), math.log(0.1)]]))},
        entropy=torch.tensor([[0.3, 0.5, 9.0]]),
        expected=torch.tensor([False]),
    )
    words = torch.tensor([[1, 0, -1]])
    earned = math.log(1 / 2) + math.log(1 / 4)
    advantage = earned + 2
    result = hard_attention_loss(raw, words, torch.tensor(-1.0), reward_weight=0.5, entropy_weight=0.1)
    assert result["cross_entropy"].item() == pytest.approx(-earned)
    assert result["policy_loss"].item() == pytest.approx(-advantage * 2 * math.log(0.5), abs=1e-6)
    assert result["entropy"].item() == pytest.approx(0.8)
    assert result["reward"].item() == pytest.approx(earned / 2)
    expected = -earned - 0.5 * advantage * 2 * math.log(0.5) - 0.1 * 0.8
    assert result["loss"].item() == pytest.approx(expected)
    each = hard_attention_loss(raw, words, torch.tensor(-1.0), per_word=True)
    assert each["policy_loss"].item() == pytest.approx(-advantage * math.log(0.5), abs=1e-6)


def test_evidence_by_hand() -> None:
    """Shares 1/4 and 1/2 on the evidence, a third map without evidence: L = (ln 4 + ln 2) / 2."""
    weights = torch.tensor([[[1.0, 3.0]], [[0.5, 0.5]], [[1.0, 0.0]]])
    on = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])
    result = evidence_loss(weights, on, torch.ones(1, 1, 2))
    assert float(result) == pytest.approx((math.log(4) + math.log(2)) / 2, abs=1e-6)
    assert float(evidence_loss(weights[2:], on[2:], torch.ones(1, 1, 2))) == 0
    assert math.isfinite(float(evidence_loss(torch.zeros(1, 1, 2), on[:1], torch.ones(1, 1, 2))))


@pytest.mark.parametrize("kind", [SoftModel, HAttNetModel])
def test_of_a_model_it_is_the_score_of_its_total_map(kind: type) -> None:
    """One look, on cells; and a product of gates, on pixels: exp(-L) is the true-positive strength of the trace."""
    torch.manual_seed(0)
    model = kind(tiny_config(kind)).eval()
    inputs, _ = example_batch(kind, 1, 0)
    raw = model.forward_raw(**inputs)
    images = inputs["images"]
    size = (images.shape[-2], images.shape[-1])
    evidence = torch.zeros(1, *size, dtype=torch.bool)
    evidence[:, 3:11, 5:20] = True
    result = MapLosses().evidence(model, raw, evidence)
    wanted = true_positive_strength(model.wrap(raw, size).trace.image_map("total").detach(), evidence)
    assert float((-result.detach()).exp()) == pytest.approx(float(wanted), rel=1e-4)
    assert result.requires_grad


def test_a_model_whose_look_is_a_crop_is_refused() -> None:
    torch.manual_seed(0)
    model = tiny_model(StnModel).eval()
    inputs, _ = example_batch(StnModel, 1, 0)
    raw = model.forward_raw(**inputs)
    with pytest.raises(ConfigError, match="teach maps on a fixed grid"):
        MapLosses().evidence(model, raw, torch.ones(1, *inputs["images"].shape[-2:], dtype=torch.bool))


def test_overlap_by_hand() -> None:
    """Shares (1, 0), (¼, ¾) and (0, 1): minima ¼, 0 and ¾, so ⅓ in the mean; a second picture without overlap."""
    maps = torch.tensor([[[2.0, 0.0]], [[1.0, 3.0]], [[0.0, 5.0]]])
    assert float(overlap_loss(maps, 3)) == pytest.approx(1 / 3)
    apart = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert float(overlap_loss(apart, 2)) == 0
    assert float(overlap_loss(torch.cat([apart, apart[:1], apart[:1]]), 2)) == pytest.approx(0.5)
    assert float(overlap_loss(torch.zeros(2, 1, 2), 2)) == 0


@pytest.mark.parametrize("kind", [SoftModel, HAttNetModel])
def test_of_a_model_it_reads_the_total_map(kind: type) -> None:
    """One look on its cells; a product of gates on pixels, as the trace lays it."""
    torch.manual_seed(0)
    model = kind(tiny_config(kind)).eval()
    images = example_batch(kind, 1, 0)[0]["images"][:1]
    size = (images.shape[-2], images.shape[-1])
    raw = model.forward_raw(images, torch.tensor([0, 2]), asks=2)
    result = MapLosses().overlap(model, raw, size, 2)
    trace = model.wrap(raw, size).trace
    maps = trace.image_map("total") if kind is HAttNetModel else trace.looks[0].weights
    assert float(result.detach()) == pytest.approx(float(1 - total_variation(*maps.detach().split(1))), abs=1e-4)
    assert result.requires_grad


def task(**data: object) -> QuestionTask:
    settings = {"name": "mref", "glyphs": "pack", **data}
    return QuestionTask(model="soft", model_config={"channels": 4, "hidden": 4}, data=settings)


def test_a_phase_pays_for_it() -> None:
    chosen = task(asks=2)
    batch = chosen.batch(chosen.split("train"), torch.arange(4), 0)
    raw = chosen.model.train().forward_raw(**chosen.inputs(batch))
    without, priced = (chosen.loss(raw, batch, Default(overlap_weight=weight)) for weight in (0.0, 3.0))
    assert "overlap" not in without
    assert float(priced["loss"].detach()) == pytest.approx(float((without["loss"] + 3 * priced["overlap"]).detach()))


def test_rank_loss_by_hand() -> None:
    """Eq. (9): 0.5 → 0.6 is enough (−0.05, so 0); 0.6 → 0.4 costs 0.25; equal scales cost the margin each."""
    assert float(rank_loss(torch.tensor([[0.5, 0.6, 0.4]]))) == pytest.approx(0.25)
    assert float(rank_loss(torch.tensor([[0.3, 0.3, 0.3]]))) == pytest.approx(0.10)
    assert float(rank_loss(torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.3, 0.3]]))) == pytest.approx(0.05)
    assert float(rank_loss(torch.tensor([[0.3, 0.2]]), margin=0.0)) == pytest.approx(0.1)


def test_rank_loss_has_no_gradient_where_the_ranking_holds() -> None:
    """A pair that is apart by the margin is left alone; of the other, the finer scale goes up alone."""
    probability = torch.tensor([[0.2, 0.5, 0.4]], requires_grad=True)
    rank_loss(probability).backward()
    assert probability.grad.tolist() == [[0.0, 0.0, -1.0]]


def test_probabilities_and_cross_entropies_by_hand() -> None:
    """Two classes, logits ln 3 apart: p_t is ¾ or ¼; the mean of a batch for each scale."""
    logits = torch.tensor([[[math.log(3.0), 0.0], [0.0, 0.0]], [[math.log(3.0), 0.0], [0.0, math.log(3.0)]]])
    labels = torch.tensor([0, 1])
    probability = true_class_probability(logits, labels)
    assert probability.flatten().tolist() == pytest.approx([0.75, 0.5, 0.25, 0.75])
    expected = [-(math.log(0.75) + math.log(0.25)) / 2, -(math.log(0.5) + math.log(0.75)) / 2]
    assert scale_losses(logits, labels).tolist() == pytest.approx(expected)


def test_proposal_loss_by_hand() -> None:
    """Smooth L1 with its bend at 0.1: 0.05 → ½·0.05²/0.1 = 0.0125; 0.3 → 0.3 − 0.05 = 0.25."""
    boxes, targets = torch.tensor([[0.5, 0.5, 0.25]]), torch.tensor([[0.55, 0.2, 0.25]])
    assert float(proposal_loss(boxes, targets)) == pytest.approx(0.2625)
