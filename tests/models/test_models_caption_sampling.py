"""Captions that are drawn: what can be said, how likely it was, and the gradient of what it earns by enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.hard import log_prob_of
from saccade.losses.policy import self_critical_loss
from saccade.models.caption_decoder import CaptionDecoder, SatConfig
from saccade.models.caption_decoding import SampledCaptions, sample_captions
from saccade.models.sat import SatModel
from tiny_models import example_batch, tiny_model

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
    found = torch.autograd.grad(value, list(made.parameters()), allow_unused=True, retain_graph=True)
    return torch.cat(
        [torch.zeros(p.numel()).double() if g is None else g.flatten() for g, p in zip(found, made.parameters())]
    )


def cell_log_prob(drawn: SampledCaptions) -> Tensor:
    weights, choice = drawn.looked.weights, drawn.looked.choice
    assert choice is not None
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


def build(**changes: Any) -> SatModel:
    torch.manual_seed(0)
    return tiny_model(SatModel, **changes)


def pictures(count: int = 6) -> Tensor:
    return example_batch(SatModel, count, 0)[0]["images"]


def test_a_model_without_captions_draws_its_own() -> None:
    model, images = build().eval(), pictures(64)
    raw = model.forward_raw(images, None)
    words, log_prob = raw.acts["word"].emits, raw.log_prob
    assert words.shape == log_prob.shape == (64, 4)
    assert ((words >= 0) == raw.acts["word"].active).all()
    assert (words[:, 0] > 1).all()
    assert not (words == 1).any()
    for row in words.tolist():
        end = row.index(0) if 0 in row else len(row)
        assert all(word > 1 for word in row[:end])
        assert all(word == -1 for word in row[end + 1 :])
    assert (log_prob[words < 0] == 0).all()
    assert (log_prob[words >= 0] < 0).all()
    assert len(set(map(tuple, words.tolist()))) > 3


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


def test_captions_are_drawn_as_by_a_model_at_rest() -> None:
    model, images = build(dropout=0.6), pictures()
    model.eval()
    torch.manual_seed(3)
    expected = model.forward_raw(images, None).logits
    model.decoder.train()
    torch.manual_seed(3)
    raw = model.forward_raw(images, None)
    torch.testing.assert_close(raw.logits, expected)
    assert model.decoder.training
    assert model.decoder.output.dropout.training
    assert not model.backbone.training  # whose statistics may be frozen
    assert raw.log_prob.requires_grad


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_everything_learns_from_a_draw_under_autocast(kind: str) -> None:
    model = build(attention_kind=kind).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        raw = model.forward_raw(pictures(8), None)
    assert raw.log_prob.dtype == torch.float32
    raw.log_prob.sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


def test_hard_attention_draws_cells_in_training_alone() -> None:
    model, images = build(attention_kind="hard", expected_share=0.5), pictures(32)
    before = model.baseline.clone()
    raw = model.train().forward_raw(images, None)
    assert 0 < int(raw.expected.sum()) < 32
    assert raw.acts["word"].choice.shape == raw.acts["word"].log_prob.shape == raw.acts["word"].emits.shape
    assert torch.equal(model.baseline, before)  # it is about given words
    raw = model.eval().forward_raw(images, None)
    assert raw.expected is raw.acts["word"].choice is None
