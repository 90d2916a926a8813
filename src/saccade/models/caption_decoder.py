"""A decoder that writes a caption word by word and looks at the picture before each word.

Paper: Xu et al., "Show, Attend and Tell", 2015 (arXiv:1502.03044), Sections 3.1.2 and 4; sizes and details from its
authors' released code.

===========  =====================================================================  ===============================
Eq. (1-3)    [i f o g] = (σ σ σ tanh) T[E y_t-1; h_t-1; ẑ_t], c_t = f⊙c + i⊙g, …     :class:`WordLstm`
Eq. (4)      e_ti = f_att(a_i, h_t-1)                                               :class:`.AdditiveScorer`
Eq. (5)      α_t = softmax_i(e_t)                                                   :func:`.spatial_softmax`
Eq. (6, 13)  ẑ_t = Σ_i α_ti a_i                                                     :meth:`CaptionDecoder.look`
Eq. (8, 9)   s_t ~ Categorical(α_t), ẑ_t = a_s                                      :meth:`CaptionDecoder.look`
Sec. 4.2.1   ẑ_t scaled by β_t = σ(f_β(h_t-1)); the paper does not number it        :meth:`CaptionDecoder.look`
Sec. 3.1.2   c_0 = f_init,c(mean_i a_i), h_0 = f_init,h(mean_i a_i)                 :meth:`CaptionDecoder.init_state`
Eq. (7)      p(y_t) ∝ exp(L_o(E y_t-1 + L_h h_t + L_z ẑ_t))                         :class:`WordOutput`
===========  =====================================================================  ===============================

W_a a of Eq. (4) is computed once for a picture; W E y and Eq. (7) of a given caption once for all its words.

Deviations from the paper, as in the released code: tanh before L_o; the gate β also on hard attention; dropout on h,
before L_o and in f_init; E y_0 is 0. Unlike that code, W_a a has no second nonlinearity, and σ replaces the tanh of the
score: tanh(x) = 2σ(2x) − 1, so the functions are the same, and on a CPU σ is six times as fast. The recurrent matrix
starts orthogonal, words from a narrow Gaussian, biases at zero.

Axes: B pictures, K captions of each side by side, T words, L = h·w cells, D channels, n units, m of an embedded word,
V words of the vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.hard import at_cells, gumbel_max, log_weights
from saccade.attention.scores import AdditiveScorer
from saccade.attention.soft import attend_with_scores
from saccade.config import Portion, Share, Within
from saccade.geometry import Size
from saccade.models.base import MAX_WORDS, BackboneConfig, Pixels, Steps, Units

BLOCK = 2**20  # numbers scored at a time without gradients: 4 MiB stay in a cache; the best of 2**16 … 2**23
EMBEDDING_SPREAD = 0.1  # deviation of a word's initial numbers: a sum of Eq. (7) beyond ±1 would be lost in the tanh
FIRST_WORD = 2  # id of the first word proper: 0 ends a caption, 1 is any unknown word

Kind = Literal["soft", "hard", "none"]
Pick = Literal["expected", "best", "drawn"]
"""What hard attention uses: all cells by their weights, the cell with the largest weight, or one drawn by them."""


@dataclass(frozen=True)
class SatConfig(BackboneConfig):
    """Sizes of the captioner; the defaults are the paper's, the dropout and the LSTM those of a middling size."""

    vocabulary: Annotated[int, Within(FIRST_WORD + 1, MAX_WORDS)] = 10_000
    """Number of ids, with the end (0) and the unknown word (1)."""
    backbone: str = "vgg19"
    """vgg19, mobilenetv2, resnet50, compact, small, timm:NAME …"""
    through: str | None = "conv5"
    """The last stage of the backbone, whose cells are attended; None: all stages."""
    input_size: Pixels = (224, 224)
    """(height, width) of every picture."""
    embed: Units = 512
    """m, numbers of an embedded word."""
    hidden: Units = 512
    """n, units of the LSTM."""
    attention: Units = 512
    """Units in which cells and state meet."""
    attention_kind: Kind = "soft"
    """soft: all cells by their weights; hard: one cell, drawn; none: the mean of all cells."""
    gate: bool = True
    """Whether a scalar β scales what was seen."""
    deep_output: bool = True
    """Whether the word before and what was seen reach the logits directly (Eq. 7), or through the state alone."""
    dropout: Portion = 0.5
    longest: Steps = 20
    """Words of the longest caption that is written."""
    expected_share: Share = 0.5
    """Share of the pictures that hard attention sees by expectation in training."""
    pick: Pick = "expected"
    """What hard attention uses outside training: all cells by their weights, the best, or one drawn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pick != "expected" and self.attention_kind != "hard":
            raise ValueError(f"pick: '{self.attention_kind}' attention has no one cell to pick; leave it 'expected'")


class EncodedImage(NamedTuple):
    """What every word needs of a picture, computed once."""

    features: Tensor  # (B,D,h,w)
    keys: Tensor | None = None  # (B,h,w,A): W_a a of Eq. (4); None without attention


class LstmState(NamedTuple):
    """The state of the LSTM."""

    hidden: Tensor  # (B,K,n)
    cell: Tensor  # (B,K,n)


class LookStep(NamedTuple):
    """One look before a word."""

    context: Tensor  # ẑ_t (B,K,D), the gate included
    weights: Tensor  # α_t (B,K,h,w)
    scores: Tensor  # e_t (B,K,h,w)
    gain: Tensor  # β_t (B,K); 1 without a gate
    choice: Tensor | None  # s_t (B,K), numbered row by row; None where all cells count


class WordStep(NamedTuple):
    """One more word of each caption, or all words of given ones."""

    logits: Tensor  # (B,K,V) of the next word; (B,T,V) of the words given
    looked: LookStep  # what was looked at for it; with T in place of K for the words given
    memory: LstmState  # after the last of them


class WordLstm(nn.Module):
    """Eq. (1)-(3); the caller applies the part of T that takes the words, to many words at once."""

    def __init__(self, embed: int, context: int, hidden: int) -> None:
        super().__init__()
        self.from_word = nn.Linear(embed, 4 * hidden)
        self.from_context = nn.Linear(context, 4 * hidden, bias=False)
        self.from_hidden = nn.Linear(hidden, 4 * hidden, bias=False)
        for gate in self.from_hidden.weight.chunk(4):
            nn.init.orthogonal_(gate)

    def forward(self, word: Tensor, context: Tensor, memory: LstmState) -> LstmState:
        """W E y_t-1 (B,K,4n), ẑ_t (B,K,D) and the state before → the state after."""
        gates = word + self.from_context(context) + self.from_hidden(memory.hidden)  # (B,K,4n)
        ifo, g = gates.tensor_split([3 * gates.shape[-1] // 4], dim=-1)  # of Eq. (1): (B,K,3n), (B,K,n)
        i, f, o = ifo.sigmoid().chunk(3, dim=-1)  # (B,K,n) each
        cell = torch.addcmul(f * memory.cell, i, g.tanh())  # Eq. (2)
        return LstmState(o * cell.tanh(), cell)  # Eq. (3)


class WordOutput(nn.Module):
    """Eq. (7): the logits of a word from the word before, the state and what was seen; or from the state alone."""

    def __init__(self, config: SatConfig, channels: int) -> None:
        super().__init__()
        embed, deep = config.embed, config.deep_output
        self.from_hidden = nn.Linear(config.hidden, embed) if deep else None
        self.from_context = nn.Linear(channels, embed, bias=False) if deep else None
        self.dropout = nn.Dropout(config.dropout)
        self.to_words = nn.Linear(embed if deep else config.hidden, config.vocabulary)

    def forward(self, embedded: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """E y_t-1 (…,m), h_t (…,n) and ẑ_t (…,D) → logits (…,V)."""
        state = self.dropout(hidden)
        if self.from_hidden is not None and self.from_context is not None:
            joined = embedded + self.from_hidden(state) + self.from_context(context)  # (…,m)
            state = self.dropout(joined.tanh())
        logits: Tensor = self.to_words(state)
        return logits


class CaptionDecoder(nn.Module):
    """Features of D ``channels`` (B,D,h,w) and the words so far → the logits of the next word, and its look."""

    def __init__(self, config: SatConfig, channels: int) -> None:
        super().__init__()
        embed, hidden = config.embed, config.hidden
        self.words = nn.Embedding(config.vocabulary, embed)
        self.scorer = None
        if config.attention_kind != "none":
            self.scorer = AdditiveScorer(channels, hidden, hidden=config.attention, activation=torch.sigmoid_)
        self.gate = nn.Linear(hidden, 1) if config.gate else None
        self.memory = WordLstm(embed, channels, hidden)
        self.first_hidden = _first(channels, hidden, config.dropout)
        self.first_cell = _first(channels, hidden, config.dropout)
        self.output = WordOutput(config, channels)
        nn.init.normal_(self.words.weight, std=EMBEDDING_SPREAD)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if self.scorer is not None:
            with torch.no_grad():
                for parameter in self.scorer.parameters():
                    parameter.mul_(2)  # 2v·σ(2x) starts where v·tanh(x) would

    def init_state(self, annotations: Tensor, grid: Size) -> tuple[EncodedImage, LstmState]:
        """What every word needs of the annotation vectors (B,L,D), and the state (B,1,n) before the first word."""
        mean = annotations.mean(1, keepdim=True)  # (B,1,D)
        memory = LstmState(self.first_hidden(mean), self.first_cell(mean))
        # a view, channels last
        features = annotations.transpose(1, 2).reshape(annotations.shape[0], annotations.shape[2], *grid)  # (B,D,h,w)
        keys = None if self.scorer is None else self.scorer.from_features(features).permute(0, 2, 3, 1)  # (B,h,w,A)
        return EncodedImage(features, keys), memory

    def embed_words(self, words: Tensor) -> Tensor:
        """E y of the words (…), of which -1 is nothing: (…,m)."""
        embedded: Tensor = self.words(words.clamp_min(0))
        return embedded * (words >= 0).unsqueeze(-1)

    def cell_scores(self, scene: EncodedImage, memory: LstmState) -> Tensor:
        """Eq. (4), from the state of the word before: e_t (B,K,h,w)."""
        if self.scorer is None or scene.keys is None:
            return torch.zeros_like(scene.features[:, :1]).expand(-1, memory.hidden.shape[1], -1, -1)
        return self.scorer.score_all(scene.keys, self.scorer.from_query(memory.hidden))

    def look(
        self,
        scene: EncodedImage,
        memory: LstmState,
        scores: Tensor,
        *,
        pick: Pick = "expected",
        noise: Tensor | None = None,
        expected: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> LookStep:
        """Eq. (5), (6), (8), (9) and (13), then the gate of Section 4.2.1, from the state of the word before.

        ``noise`` (B,K,L) draws a cell, but not of the pictures ``expected`` (B,), of which all cells count even so.
        ``weights`` (B,K,h,w) are given in place of α_t; a cell is then picked by them too.
        """
        hidden = memory.hidden
        attended = attend_with_scores(scores, scene.features, weights)  # Eq. (5), (13)
        context, alpha = attended.context, attended.weights  # (B,K,D), (B,K,h,w)
        choice = None
        if pick != "expected":
            likely = scores if weights is None else log_weights(alpha)  # (B,K,h,w)
            choice = gumbel_max(likely.flatten(2), noise)  # Eq. (8): (B,K)
            picked = at_cells(scene.features, choice)  # Eq. (9): (B,K,D)
            context = picked if expected is None else torch.where(expected[:, None, None], context, picked)
        gain = hidden.new_ones(hidden.shape[:2]) if self.gate is None else self.gate(hidden).squeeze(-1).sigmoid()
        return LookStep(context * gain.unsqueeze(-1), alpha, scores, gain, choice)

    def next_word(self, scene: EncodedImage, memory: LstmState, before: Tensor, **how: Any) -> WordStep:
        """One word more, for K captions of each picture side by side, after ``before`` (B,K); ``how``: :meth:`look`."""
        embedded = self.embed_words(before)  # (B,K,m)
        scores = self._scored_in_blocks(scene, memory)  # (B,K,h,w)
        looked = self.look(scene, memory, scores, **how)
        memory = self.memory(self.memory.from_word(embedded), looked.context, memory)  # (B,K,n)
        return WordStep(self.output(embedded, memory.hidden, looked.context), looked, memory)

    def teacher_force(
        self,
        scene: EncodedImage,
        memory: LstmState,
        words: Tensor,
        *,
        noise: Tensor | None = None,
        weights: Tensor | None = None,
        **how: Any,
    ) -> WordStep:
        """Teacher forcing: given words (B,T), each predicted from those before it.

        ``noise`` (B,T,L) and ``weights`` (B,t,h,w), for the first t words, go to :meth:`look` word by word.
        """
        before = F.pad(words[:, :-1], (1, 0), value=-1)  # y_t-1, and nothing before the first: (B,T)
        embedded = self.embed_words(before)  # (B,T,m)
        # split, not sliced: the gradient of slices would fill a tensor of all words for each word
        inputs = torch.split(self.memory.from_word(embedded), 1, dim=1)  # (B,1,4n) of each word
        draws = [None] * words.shape[1] if noise is None else torch.split(noise, 1, dim=1)  # (B,1,L) of each
        maps = () if weights is None else torch.split(weights, 1, dim=1)  # (B,1,h,w) of each
        looks, states = [], []
        for step, (word, draw) in enumerate(zip(inputs, draws)):
            alpha = maps[step] if step < len(maps) else None
            scores = self.cell_scores(scene, memory)  # (B,1,h,w)
            looked = self.look(scene, memory, scores, noise=draw, weights=alpha, **how)
            memory = self.memory(word, looked.context, memory)  # (B,1,n)
            looks.append(looked)
            states.append(memory.hidden)
        looked = stack_steps(looks)
        return WordStep(self.output(embedded, torch.cat(states, dim=1), looked.context), looked, memory)

    def _scored_in_blocks(self, scene: EncodedImage, memory: LstmState) -> Tensor:
        """:meth:`cell_scores`, a few pictures at a time where that is faster."""
        keys = scene.keys
        captured = torch.compiler.is_compiling()  # a graph holds for any number of pictures
        if self.scorer is None or keys is None or keys.device.type != "cpu" or torch.is_grad_enabled() or captured:
            return self.cell_scores(scene, memory)
        queries = self.scorer.from_query(memory.hidden)  # (B,K,A)
        pictures = max(1, BLOCK // (queries.shape[1] * math.prod(keys.shape[1:])))
        parts = zip(torch.split(keys, pictures), torch.split(queries, pictures))
        return torch.cat([self.scorer.score_all(*part) for part in parts])


def stack_steps(looks: list[LookStep]) -> LookStep:
    """Looks of one caption (B,1,…) after each other: (B,T,…)."""
    steps: list[Any] = [None if parts[0] is None else torch.cat(parts, dim=1) for parts in zip(*looks)]
    return LookStep(*steps)


def _first(channels: int, hidden: int, dropout: float) -> nn.Sequential:
    """f_init of Section 3.1.2: (…,D) → (…,n)."""
    return nn.Sequential(
        nn.Linear(channels, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.Tanh()
    )
