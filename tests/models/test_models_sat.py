"""Show, Attend and Tell as a model: drawn cells and captions, the baseline, the estimators, and the looks."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.hard import log_prob_of
from saccade.losses.captions import hard_attention_loss, word_log_likelihood
from saccade.losses.policy import self_critical_loss
from saccade.models.caption_decoder import CaptionDecoder, SatConfig
from saccade.models.caption_decoding import SampledCaptions, sample_captions
from saccade.models.sat import SatModel
from saccade.trace import CaptionOutput
from tiny_models import example_batch, tiny_model


def build(seed: int = 0, **changes: Any) -> SatModel:
    torch.manual_seed(seed)
    return tiny_model(SatModel, **changes)


def batch(count: int = 4) -> tuple[Tensor, Tensor]:
    inputs, words = example_batch(SatModel, count, 0)
    return inputs["images"], words


def test_annotation_vectors_come_row_by_row() -> None:
    model = build().eval()
    images, _ = batch()
    features = model.backbone(images)  # (B,D,h,w)
    encoding = model.encode(images)
    rows, columns = model.grid
    for row, column in itertools.product(range(rows), range(columns)):
        assert torch.equal(encoding[:, row * columns + column], features[:, :, row, column])


@pytest.mark.parametrize("pick", ["best", "drawn"])
def test_of_hard_attention_one_cell_is_seen(pick: str) -> None:
    model = build(attention_kind="hard", pick=pick).eval()
    images, words = batch()
    output = model(images, words)
    (look,) = output.trace.validate().looks
    assert look.role == "policy"
    cells = output.aux.acts["word"].values.flatten(2).transpose(1, 2)  # (B,L,D)
    picked = cells.gather(1, look.choice.unsqueeze(-1).expand(-1, -1, cells.shape[-1]))  # (B,T,D)
    torch.testing.assert_close(picked * look.gain.unsqueeze(-1), output.aux.acts["word"].context)
    chosen = look.weights.flatten(2).gather(2, look.choice.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(look.log_prob, chosen.log())
    if pick == "best":
        assert torch.equal(look.choice, look.weights.flatten(2).argmax(-1))


def test_the_baseline_is_the_moving_average_of_a_word() -> None:
    model = build(attention_kind="hard").train()
    images, words = batch(6)
    features = model.encode(images)
    noise = torch.zeros(*words.shape, features.shape[1])
    expected = torch.tensor([True, False, True, False, False, True])
    start = -math.log(5)
    assert model.baseline.item() == pytest.approx(start)
    model._chances = lambda *_: (noise, expected)
    raw = model.teacher_force(features, words)
    assert raw.baseline.item() == pytest.approx(start)  # this batch is not in it
    earned = word_log_likelihood(raw.logits, words)[~expected]
    mean = (earned.sum() / (words[~expected] >= 0).sum()).item()
    assert model.baseline.item() == pytest.approx(0.9 * start + 0.1 * mean)
    assert not model.baseline.requires_grad


CELLS, STEPS = 4, 2
DRAWS = tuple(itertools.product(range(CELLS), repeat=STEPS))


class Enumerated:
    """A whole model on a grid of 2×2 cells and captions of two words: every draw there is."""

    def __init__(self, seed: int) -> None:
        settings = {"attention_kind": "hard", "input_size": (10, 11), "through": "stage2"}
        self.model = build(seed, **settings, embed=3, hidden=4, attention=3).double().train()
        assert self.model.grid == (1, 1)
        self.model.grid = (2, 2)  # the cells are given
        generator = torch.Generator().manual_seed(seed)
        self.features = torch.randn(1, CELLS, self.model.channels, generator=generator, dtype=torch.float64)
        self.words = torch.tensor([[3, 0]])
        self.parameters = [p for name, p in self.model.named_parameters() if name.startswith("decoder")]

    def raw(self, cells: tuple[int, ...]) -> CaptionOutput:
        """The rollout that draws these cells."""
        noise = torch.nn.functional.one_hot(torch.tensor([cells]), CELLS) * 1e9
        self.model._chances = lambda *_: (noise, torch.tensor([False]))
        raw = self.model.teacher_force(self.features, self.words)
        assert raw.acts["word"].choice.tolist() == [list(cells)]
        return raw

    def outcomes(self) -> tuple[Tensor, Tensor]:
        """p(s) and log p(y|s) of every draw, (16,)."""
        raws = [self.raw(cells) for cells in DRAWS]
        probability = torch.stack([raw.acts["word"].log_prob.sum().exp() for raw in raws])
        return probability, torch.stack([word_log_likelihood(raw.logits, self.words).sum() for raw in raws])

    def gradients(self, objective: Tensor) -> list[Tensor]:
        result = torch.autograd.grad(objective, self.parameters, allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, result)]


@pytest.mark.parametrize("to_go", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_gradient_of_the_loss_is_unbiased_for_the_bound(seed: int, to_go: bool) -> None:
    """Eq. (10)-(12) through the whole decoder: the mean over all draws is the exact gradient of −Σ p(s) log p(y|s)."""
    tiny = Enumerated(seed)
    probability, log_likelihood = tiny.outcomes()
    exact = tiny.gradients(-(probability * log_likelihood).sum())
    total = [torch.zeros_like(parameter) for parameter in tiny.parameters]
    for cells, chance in zip(DRAWS, probability.detach()):
        loss = hard_attention_loss(
            tiny.raw(cells), tiny.words, torch.tensor((-0.7, 5.0)[seed]), entropy_weight=0.0, to_go=to_go
        )["loss"]
        for sum_, gradient in zip(total, tiny.gradients(loss)):
            sum_ += chance * gradient
    for result, wanted in zip(total, exact):
        torch.testing.assert_close(result, wanted)
    assert sum(float(gradient.abs().sum()) for gradient in exact) > 0.1


VOCABULARY, CHANNELS, GRID, STEPS = 4, 3, (1, 2), 2
CAPTIONS = [(first, second) for first in (2, 3) for second in (0, 2, 3)]
"""All that can be said in two words: no end first, never the unknown word."""
REWARDS = {caption: 0.1 + 0.13 * number for number, caption in enumerate(CAPTIONS)}


def decoder(kind: str = "soft", seed: int = 0) -> CaptionDecoder:
    torch.manual_seed(seed)
    made = CaptionDecoder(
        SatConfig(vocabulary=VOCABULARY, embed=3, hidden=4, attention=3, attention_kind=kind, dropout=0.0), CHANNELS
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))  # words and cells that are not all alike
    return made.double()


def told(made: CaptionDecoder, words: tuple[int, ...], cells: tuple[int, ...] | None = None) -> SampledCaptions:
    """A draw that comes out as ``words`` and ``cells``: their noise drowns all else."""
    features = torch.linspace(-1, 1, 2 * CHANNELS, dtype=torch.float64).view(1, 2, CHANNELS)  # (1,L,D)
    scene, memory = made.init_state(features, GRID)
    noise = torch.zeros(1, STEPS, VOCABULARY, dtype=torch.float64)
    for step, word in enumerate(words):
        noise[0, step, word] = 1e6
    if cells is None:
        return sample_captions(made, scene, memory, noise)
    cell_noise = 1e6 * torch.nn.functional.one_hot(torch.tensor([cells]), 2).double()
    expected = torch.tensor([False])
    return sample_captions(made, scene, memory, noise, pick="drawn", cell_noise=cell_noise, expected=expected)


def gradient_of(value: Tensor, made: CaptionDecoder) -> Tensor:
    result = torch.autograd.grad(value, list(made.parameters()), allow_unused=True, retain_graph=True)
    return torch.cat(
        [torch.zeros(p.numel()).double() if g is None else g.flatten() for g, p in zip(result, made.parameters())]
    )


def cell_log_prob(drawn: SampledCaptions) -> Tensor:
    weights, choice = drawn.looked.weights, drawn.looked.choice
    return log_prob_of(weights.flatten(0, 1), choice.flatten().unsqueeze(1)).reshape(choice.shape)  # (1,T)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_on_average_the_gradient_is_that_of_the_expected_reward(kind: str) -> None:
    """Over all pairs of captions, and of hard attention over all cells that can be drawn before their words."""
    made = decoder(kind)
    cells = list(itertools.product((0, 1), repeat=STEPS)) if kind == "hard" else [None]
    log_probs, rewards = [], []
    for caption, seen in itertools.product(CAPTIONS, cells):
        drawn = told(made, caption, seen)
        log_probs.append(drawn.log_prob if seen is None else drawn.log_prob + cell_log_prob(drawn))  # (1,T)
        rewards.append(REWARDS[caption])
    every, earned = torch.cat(log_probs), torch.tensor(rewards, dtype=torch.float64)  # (N,T), (N,)
    chances = every.sum(1).exp()  # (N,)
    assert float(chances.detach().sum()) == pytest.approx(1.0)
    exact = gradient_of(-(chances * earned).sum(), made)
    pairs = torch.cartesian_prod(*2 * [torch.arange(len(earned))])  # (N²,2)
    both = chances.detach()[pairs].prod(1)  # (N²,)
    judged = [self_critical_loss(every[pair][None], earned[pair][None]) for pair in pairs]
    estimate = gradient_of((both * torch.stack(judged)).sum(), made)
    assert exact.norm() > 1e-3
    torch.testing.assert_close(estimate, exact)


def pictures(count: int = 6) -> Tensor:
    return example_batch(SatModel, count, 0)[0]["images"]


def test_captions_of_a_picture_are_drawn_side_by_side_each_as_likely_as_when_it_is_given() -> None:
    model, images = build().eval(), pictures()
    raw = model.forward_raw(images, None, draws=3)
    words = raw.acts["word"].emits
    assert words.shape == raw.log_prob.shape == (18, 4)
    given = model.forward_raw(images.repeat_interleave(3, dim=0), words)
    active = raw.acts["word"].active
    torch.testing.assert_close(raw.logits[active], given.logits[active])
    torch.testing.assert_close(raw.acts["word"].values, given.acts["word"].values)
    torch.testing.assert_close(raw.acts["word"].weights[active], given.acts["word"].weights[active])
    logits = given.logits.clone()
    logits[..., 1] = logits[:, 0, 0] = -torch.inf  # what is never said
    expected = logits.log_softmax(-1).gather(-1, words.clamp_min(0).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(raw.log_prob[active], expected[active])
    assert any(len(set(map(tuple, of_one))) > 1 for of_one in words.view(6, 3, 4).tolist())
    model.wrap(raw, (31, 34)).trace.validate()


def test_hard_attention_draws_cells_in_training_alone() -> None:
    model, images = build(attention_kind="hard", expected_share=0.5), pictures(32)
    before = model.baseline.clone()
    raw = model.train().forward_raw(images, None)
    assert 0 < int(raw.expected.sum()) < 32
    assert raw.acts["word"].choice.shape == raw.acts["word"].log_prob.shape == raw.acts["word"].emits.shape
    assert torch.equal(model.baseline, before)  # it is about given words
    raw = model.eval().forward_raw(images, None)
    assert raw.expected is raw.acts["word"].choice is None
