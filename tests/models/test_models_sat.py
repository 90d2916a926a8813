"""Show, Attend and Tell: the decoder equation by equation, beam search, drawn cells and captions, the estimators."""

import itertools
import math
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.hard import log_prob_of
from saccade.errors import ConfigError
from saccade.losses.captions import hard_attention_loss, word_log_likelihood
from saccade.losses.policy import self_critical_loss
from saccade.models.caption_decoder import (
    CaptionDecoder,
    EncodedImage,
    LookStep,
    LstmState,
    SatConfig,
    WordLstm,
    WordOutput,
    WordStep,
)
from saccade.models.caption_decoding import END, NOTHING, Decoded, SampledCaptions, decode, sample_captions
from saccade.models.sat import SatModel
from saccade.trace import CaptionOutput
from tiny_models import example_batch, tiny_model

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
    result = ours(ours.from_word(word), context, memory)
    hidden, cell = theirs(torch.cat([word, context], dim=-1)[:, 0], (memory.hidden[:, 0], memory.cell[:, 0]))
    torch.testing.assert_close(result.hidden[:, 0], hidden)
    torch.testing.assert_close(result.cell[:, 0], cell)


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
    for result, expected in ((said.logits, logits), (said.looked.weights, weights), (said.looked.context, contexts)):
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-6)
    parameters = list(decoder.parameters())
    at_once, one_by_one = (
        torch.autograd.grad(F.cross_entropy(each.flatten(0, 1), WORDS.flatten(), ignore_index=-1), parameters)
        for each in (said.logits, logits)
    )
    for result, expected in zip(at_once, one_by_one):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)


class Count(NamedTuple):
    """A memory: how many words were said, and the number of the picture."""

    words: Tensor
    picture: Tensor


class Table:
    """log p of the next word by picture and word before, (B,V+1,V), the last row for nothing before.

    It looks at cell (word before + words said) mod 6, and β is 1/(1 + words said).
    """

    def __init__(self, log_prob: Tensor, *, chooses: bool = False) -> None:
        self.log_prob, self.chooses = log_prob, chooses

    def init_state(self, encoding: Tensor) -> tuple[Tensor, Count]:
        rows = encoding[:, :1].long()  # each picture carries its number: (B,1)
        return rows, Count(torch.zeros_like(rows), rows)

    def next_word(self, scene: Tensor, memory: Count, before: Tensor) -> WordStep:
        logits = self.log_prob[memory.picture, before]  # -1 is the last row: (B,K,V)
        cell = (before + memory.words) % (GRID[0] * GRID[1])  # (B,K)
        weights = torch.nn.functional.one_hot(cell, GRID[0] * GRID[1]).double().unflatten(-1, GRID)  # (B,K,h,w)
        gain = 1 / (1.0 + memory.words)
        looked = LookStep(weights.flatten(2), weights, weights, gain, cell if self.chooses else None)
        return WordStep(logits, looked, Count(memory.words + 1, memory.picture))


def random_table(pictures: int, vocabulary: int, seed: int) -> Table:
    generator = torch.Generator().manual_seed(seed)
    return Table(torch.randn(pictures, vocabulary + 1, vocabulary, generator=generator).mul(2).log_softmax(-1))


def pictures(count: int) -> Tensor:
    return torch.arange(count, dtype=torch.float32).unsqueeze(1)


def said(decoded: Decoded, picture: int, which: int = 0) -> list[int]:
    return decoded.words[picture, which].tolist()


def log_prob_by_table(table: Table, picture: int, words: list[int]) -> float:
    total, before = 0.0, NOTHING
    for word in (word for word in words if word != NOTHING):
        total += float(table.log_prob[picture, before, word])
        before = word
    return total


def every_caption(vocabulary: int, longest: int) -> list[list[int]]:
    """All that may be said: words, and the end if there is room for it."""
    result = []
    for length in range(1, longest + 1):
        for words in itertools.product(range(2, vocabulary), repeat=length):
            result.append([*words] if length == longest else [*words, END])
    return result


def padded(words: list[int], longest: int) -> list[int]:
    return words + [NOTHING] * (longest - len(words))


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    table = torch.full((1, 5, 4), -9.0)
    table[0, NOTHING, 3] = table[0, 3, 2] = table[0, 2, END] = 0.0
    result = decode(Table(table), pictures(1), longest=6)
    assert said(result, 0) == [3, 2, END, -1, -1, -1]
    assert result.lengths.tolist() == [[2]]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_there_are_captions_finds_the_best_of_all(seed: int, length_penalty: float) -> None:
    vocabulary, longest = 4, 3
    table, captions = random_table(2, vocabulary, seed), every_caption(vocabulary, longest)
    result = decode(table, pictures(2), width=40, captions=3, longest=longest, length_penalty=length_penalty)
    for picture in range(2):
        ranked = sorted(captions, key=lambda w: -log_prob_by_table(table, picture, w) / len(w) ** length_penalty)
        for which in range(3):
            assert said(result, picture, which) == padded(ranked[which], longest)
            assert result.log_prob[picture, which].item() == pytest.approx(
                log_prob_by_table(table, picture, ranked[which]), abs=1e-5
            )


@pytest.mark.parametrize(("width", "captions"), [(1, 1), (4, 3)])
def test_many_pictures_are_found_as_one_by_one(width: int, captions: int) -> None:
    """Though some end early and others are cut."""
    table = random_table(12, 7, 3)
    options = {"width": width, "captions": captions, "longest": 9}
    together = decode(table, pictures(12), **options)
    assert len(set(together.lengths[:, 0].tolist())) > 1
    for number in range(12):
        alone = decode(table, pictures(12)[number : number + 1], **options)
        for one, whole in zip(alone, together):
            assert one is whole is None or torch.equal(one, whole[number : number + 1])


@pytest.mark.parametrize("captions", [1, 4])
def test_attention_belongs_to_the_words_it_was_paid_for(captions: int) -> None:
    """Each look of this model tells the word before it and its place."""
    table = Table(random_table(3, 6, 1).log_prob, chooses=True)
    result = decode(table, pictures(3), width=captions, captions=captions, longest=8)
    for picture, which in itertools.product(range(3), range(captions)):
        before = NOTHING
        for place, word in enumerate(said(result, picture, which)):
            weights, gain = result.weights[picture, which, place], result.gains[picture, which, place]
            if word == NOTHING:
                assert weights.sum() == gain == 0
                continue
            cell = (before + place) % 6
            assert weights.flatten().argmax() == cell == result.choices[picture, which, place]
            assert gain == pytest.approx(1 / (1 + place))
            before = word


def test_a_length_penalty_that_is_no_number_is_said() -> None:
    with pytest.raises(ConfigError, match="length_penalty"):
        decode(random_table(1, 4, 0), pictures(1), length_penalty=float("nan"))


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


SAT_VOCABULARY, SAT_CHANNELS, SAT_GRID, STEPS = 4, 3, (1, 2), 2
CAPTIONS = [(first, second) for first in (2, 3) for second in (0, 2, 3)]
"""All that can be said in two words: no end first, never the unknown word."""
REWARDS = {caption: 0.1 + 0.13 * number for number, caption in enumerate(CAPTIONS)}


def decoder(kind: str = "soft", seed: int = 0) -> CaptionDecoder:
    torch.manual_seed(seed)
    made = CaptionDecoder(
        SatConfig(vocabulary=SAT_VOCABULARY, embed=3, hidden=4, attention=3, attention_kind=kind, dropout=0.0),
        SAT_CHANNELS,
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))  # words and cells that are not all alike
    return made.double()


def told(made: CaptionDecoder, words: tuple[int, ...], cells: tuple[int, ...] | None = None) -> SampledCaptions:
    """A draw that comes out as ``words`` and ``cells``: their noise drowns all else."""
    features = torch.linspace(-1, 1, 2 * SAT_CHANNELS, dtype=torch.float64).view(1, 2, SAT_CHANNELS)  # (1,L,D)
    scene, memory = made.init_state(features, SAT_GRID)
    noise = torch.zeros(1, STEPS, SAT_VOCABULARY, dtype=torch.float64)
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


def sat_pictures(count: int = 6) -> Tensor:
    return example_batch(SatModel, count, 0)[0]["images"]


def test_captions_of_a_picture_are_drawn_side_by_side_each_as_likely_as_when_it_is_given() -> None:
    model, images = build().eval(), sat_pictures()
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
    model, images = build(attention_kind="hard", expected_share=0.5), sat_pictures(32)
    before = model.baseline.clone()
    raw = model.train().forward_raw(images, None)
    assert 0 < int(raw.expected.sum()) < 32
    assert raw.acts["word"].choice.shape == raw.acts["word"].log_prob.shape == raw.acts["word"].emits.shape
    assert torch.equal(model.baseline, before)  # it is about given words
    raw = model.eval().forward_raw(images, None)
    assert raw.expected is raw.acts["word"].choice is None
