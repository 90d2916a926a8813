"""The equations of Show, Attend and Tell, one by one, and that computing them at once changes nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.models import caption_decoder
from saccade.models.caption_decoder import CaptionDecoder, EncodedImage, LstmState, SatConfig, WordLstm, WordOutput

CHANNELS, GRID, UNITS, VOCABULARY = 6, (2, 3), 5, 7


def new_decoder(seed: int = 0, **changes: Any) -> CaptionDecoder:
    torch.manual_seed(seed)
    config = SatConfig(
        **{"vocabulary": VOCABULARY, "embed": 4, "hidden": UNITS, "attention": 8, "dropout": 0.0, **changes}
    )
    return CaptionDecoder(config, CHANNELS).double().eval()


def cells(count: int = 3, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, GRID[0] * GRID[1], CHANNELS, generator=generator, dtype=torch.float64)


WORDS = torch.tensor([[3, 4, 2, 0], [5, 0, -1, -1], [2, 2, 0, -1]])


def test_the_memory_is_an_lstm() -> None:
    """The same as torch's, whose gates come in the order i f g o."""
    torch.manual_seed(0)
    ours, theirs = WordLstm(4, 6, 5).double(), nn.LSTMCell(10, 5).double()

    def reordered(matrix: Tensor) -> Tensor:
        i, f, o, g = matrix.chunk(4)
        return torch.cat([i, f, g, o])

    with torch.no_grad():
        theirs.weight_ih.copy_(reordered(torch.cat([ours.from_word.weight, ours.from_context.weight], dim=1)))
        theirs.weight_hh.copy_(reordered(ours.from_hidden.weight))
        theirs.bias_ih.copy_(reordered(ours.from_word.bias))
        theirs.bias_hh.zero_()
    word, context = torch.randn(3, 1, 4).double(), torch.randn(3, 1, 6).double()
    memory = LstmState(torch.randn(3, 1, 5).double(), torch.randn(3, 1, 5).double())
    found = ours(ours.from_word(word), context, memory)
    hidden, cell = theirs(torch.cat([word, context], dim=-1)[:, 0], (memory.hidden[:, 0], memory.cell[:, 0]))
    torch.testing.assert_close(found.hidden[:, 0], hidden)
    torch.testing.assert_close(found.cell[:, 0], cell)


def by_hand() -> tuple[CaptionDecoder, EncodedImage, LstmState]:
    """Two cells of two channels, scored log 3 and 0; β = σ(0) = 1/2."""
    decoder = CaptionDecoder(
        SatConfig(vocabulary=3, embed=1, hidden=1, attention=1, attention_kind="hard", dropout=0.0), 2
    )
    features = torch.tensor([[[[4.0, 8.0]], [[1.0, 2.0]]]])  # a_1 = (4, 1), a_2 = (8, 2): (1,2,1,2)
    with torch.no_grad():
        decoder.gate.weight.zero_()  # type: ignore[union-attr]
    return decoder, EncodedImage(features, None), LstmState(torch.ones(1, 1, 1), torch.zeros(1, 1, 1))


SCORES = torch.tensor([[[[math.log(3), 0.0]]]])


def test_the_expected_context_by_hand() -> None:
    decoder, scene, memory = by_hand()
    looked = decoder.look(scene, memory, SCORES)
    torch.testing.assert_close(looked.weights, torch.tensor([[[[0.75, 0.25]]]]))
    torch.testing.assert_close(looked.gain, torch.tensor([[0.5]]))
    torch.testing.assert_close(looked.context, torch.tensor([[[2.5, 0.625]]]))  # (3·4 + 8)/4 · β, (3 + 2)/4 · β
    assert looked.choice is None


def test_hard_contexts_by_hand() -> None:
    decoder, scene, memory = by_hand()
    best = decoder.look(scene, memory, SCORES, pick="best")
    assert best.choice.tolist() == [[0]]  # type: ignore[union-attr]
    torch.testing.assert_close(best.context, torch.tensor([[[2.0, 0.5]]]))
    noise = torch.tensor([[[0.0, 9.0]]])
    drawn = decoder.look(scene, memory, SCORES, pick="drawn", noise=noise)
    assert drawn.choice.tolist() == [[1]]  # type: ignore[union-attr]
    torch.testing.assert_close(drawn.context, torch.tensor([[[4.0, 1.0]]]))
    even_so = decoder.look(scene, memory, SCORES, pick="drawn", noise=noise, expected=torch.tensor([True]))
    torch.testing.assert_close(even_so.context, torch.tensor([[[2.5, 0.625]]]))


def test_scores_are_those_of_a_tanh_twice_as_wide() -> None:
    """Eq. (4): Σ v tanh(W_a a + W_h h) from the same weights, halved, but for a shift that a softmax does not see."""
    decoder, annotations = new_decoder(), cells()
    scene, memory = decoder.init_state(annotations, GRID)
    scorer = decoder.scorer
    assert scorer is not None
    seen = annotations @ (scorer.from_features.weight.flatten(1) / 2).T  # (B,L,A)
    asked = memory.hidden @ (scorer.from_query.weight / 2).T  # (B,1,A)
    scores = (seen + asked).tanh() @ (scorer.to_score.weight.flatten() / 2)  # (B,L)
    weights = decoder.look(scene, memory, decoder.cell_scores(scene, memory)).weights
    torch.testing.assert_close(weights.flatten(1), scores.softmax(-1))


def test_without_attention_the_mean_is_seen() -> None:
    decoder = new_decoder(attention_kind="none", gate=False)
    assert decoder.scorer is None
    said = decoder.teacher_force(*decoder.init_state(cells(), GRID), WORDS)
    torch.testing.assert_close(said.looked.weights, torch.full((3, 4, *GRID), 1 / 6).double())
    torch.testing.assert_close(said.looked.context, cells().mean(1, keepdim=True).expand(-1, 4, -1))


def test_the_state_begins_with_the_mean_of_the_cells() -> None:
    decoder = new_decoder()
    _, memory = decoder.init_state(cells(), GRID)
    mean = cells().mean(1)
    torch.testing.assert_close(memory.hidden[:, 0], decoder.first_hidden(mean))
    torch.testing.assert_close(memory.cell[:, 0], decoder.first_cell(mean))
    assert not torch.equal(memory.hidden, memory.cell)
    _, shuffled = decoder.init_state(cells().flip(1), GRID)
    torch.testing.assert_close(shuffled.hidden, memory.hidden)


def test_deep_output_by_hand() -> None:
    """Eq. (7) with all matrices 1: L_o tanh(E y + h + z), and a word of nothing adds nothing."""
    output = WordOutput(SatConfig(vocabulary=3, embed=1, hidden=1, dropout=0.0), 1)
    with torch.no_grad():
        for parameter in output.parameters():
            parameter.fill_(0.0 if parameter.dim() == 1 else 1.0)
    logits = output(torch.tensor([0.1]), torch.tensor([0.2]), torch.tensor([0.3]))
    torch.testing.assert_close(logits, torch.full((3,), math.tanh(0.6)))


def word_by_word(decoder: CaptionDecoder, annotations: Tensor, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As it is often written: everything of a picture anew for each word, one row of the vocabulary at a time."""
    logits, weights, contexts = [], [], []
    _, memory = decoder.init_state(annotations, GRID)
    for step in range(words.shape[1]):
        scene, _ = decoder.init_state(annotations, GRID)
        before = words[:, step - 1 : step] if step else torch.full_like(words[:, :1], -1)
        said = decoder.next_word(scene, memory, before)
        memory = said.memory
        logits.append(said.logits)
        weights.append(said.looked.weights)
        contexts.append(said.looked.context)
    return torch.cat(logits, 1), torch.cat(weights, 1), torch.cat(contexts, 1)


@pytest.mark.parametrize("changes", [{}, {"gate": False}, {"deep_output": False}, {"attention_kind": "none"}])
def test_a_whole_caption_is_its_words_one_by_one(changes: dict[str, Any]) -> None:
    """To 1e-6 in single precision: outputs and the gradient of every parameter."""
    decoder = new_decoder(**changes).float()
    annotations = cells().float()
    said = decoder.teacher_force(*decoder.init_state(annotations, GRID), WORDS)
    logits, weights, contexts = word_by_word(decoder, annotations, WORDS)
    for found, expected in ((said.logits, logits), (said.looked.weights, weights), (said.looked.context, contexts)):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    parameters = list(decoder.parameters())
    at_once, one_by_one = (
        torch.autograd.grad(F.cross_entropy(each.flatten(0, 1), WORDS.flatten(), ignore_index=-1), parameters)
        for each in (said.logits, logits)
    )
    for found, expected in zip(at_once, one_by_one):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_captions_side_by_side_do_not_see_each_other() -> None:
    decoder = new_decoder()
    scene, memory = decoder.init_state(cells(), GRID)
    three = LstmState(*(torch.randn(3, 3, UNITS).double() for _ in memory))
    before = torch.tensor([[2, 3, -1], [4, 5, 6], [2, 2, 2]])
    together = decoder.next_word(scene, three, before)
    for place in range(3):
        alone = decoder.next_word(
            scene, LstmState(*(part[:, place : place + 1] for part in three)), before[:, place][:, None]
        )
        torch.testing.assert_close(together.logits[:, place], alone.logits[:, 0])
        torch.testing.assert_close(together.looked.weights[:, place], alone.looked.weights[:, 0])


def test_blocks_of_pictures_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = new_decoder()
    scene, memory = decoder.init_state(cells(7), GRID)
    before = torch.full((7, 1), 3)
    whole = decoder.next_word(scene, memory, before).logits  # gradients are on: in one go
    monkeypatch.setattr(caption_decoder, "BLOCK", 2 * 6 * 8)  # two pictures at a time
    with torch.no_grad():
        torch.testing.assert_close(decoder.next_word(scene, memory, before).logits, whole)


def over_cells(decoder: CaptionDecoder, annotations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logits of the first word with each cell alone (L,V), with the expected context (V,), and α (L,)."""
    scene, memory = decoder.init_state(annotations, GRID)
    before = torch.full((1, 1), -1)
    soft = decoder.next_word(scene, memory, before)
    alone = []
    for cell in range(annotations.shape[1]):
        noise = F.one_hot(torch.tensor([[cell]]), annotations.shape[1]) * 1e9
        alone.append(decoder.next_word(scene, memory, before, pick="drawn", noise=noise).logits[0, 0])
    return torch.stack(alone), soft.logits[0, 0], soft.looked.weights[0, 0].flatten()


def test_the_normalised_geometric_mean_is_the_softmax_of_the_mean_logits() -> None:
    """NWGM[p(y = k)] = Π_i p_ik^α_i / Σ_j Π_i p_ij^α_i = softmax(E[n])_k, by enumeration."""
    logits, _, alpha = over_cells(new_decoder(attention_kind="hard"), cells(1))
    powers = (logits.exp() ** alpha.unsqueeze(1)).prod(0)  # (V,)
    torch.testing.assert_close(powers / powers.sum(), (alpha @ logits).softmax(-1))


@pytest.mark.parametrize("seed", range(4))
def test_the_expected_context_approximates_the_marginal(seed: int) -> None:
    """softmax at E[ẑ] against E[p] over all cells: cells half as far apart leave a quarter of the error."""
    decoder = new_decoder(seed, attention_kind="hard")
    centre = cells(1, seed).mean(1, keepdim=True)
    errors = []
    for spread in (0.2, 0.1, 0.05):
        logits, soft, alpha = over_cells(decoder, centre + spread * (cells(1, seed) - centre))
        marginal = alpha @ logits.softmax(-1)
        errors.append((soft.softmax(-1) - marginal).abs().max().item())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.15)
    farthest = (logits.softmax(-1) - marginal).abs().max()
    assert errors[2] < farthest / 20  # far nearer than what one cell says
