"""Show, Attend and Tell: a caption, and for each word where the model looked.

Paper: Xu et al., "Show, Attend and Tell: Neural Image Caption Generation with Visual Attention", 2015
(arXiv:1502.03044).

===============  ===============================================================  =================================
Section 3.1.1    a = {a_1 … a_L}, the cells of a late convolution                 :meth:`SatModel.encode`
Eq. (1-9), (13)  the words                                                        :mod:`.caption_decoder`
Section 4.1      s_t drawn; of half the pictures, drawn too, its expectation      :meth:`SatModel.teacher_force`
Section 4.1      b ← 0.9 b + 0.1 log p(y|s)                                       ``baseline``
Section 4.2      Σ_i α_i a_i instead of a draw                                    ``attention_kind: soft``
===============  ===============================================================  =================================

A caption is given as ids, then 0 (the end), then -1 (padding). The result is a :class:`~saccade.trace.CaptionOutput`
with one act, ``word``, whose context has the gate in it. Without a caption the model draws some for each picture
(:mod:`.caption_decoding`); B then counts the captions of the first picture, of the next …

Deviations from the paper, beside those of the decoder: the moving average is that of a word, not of a caption, so that
batches of long and of short captions can share it (as in the released code). It covers the pictures whose cells were
drawn, begins at log 1/V, and leaves out the present batch, which would bias the gradient. ``attention_kind: none`` is a
control that sees the mean of all cells.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor

from saccade.attention.hard import cell_entropy, gumbel_noise, log_prob_of
from saccade.backbones import build_backbone
from saccade.errors import ConfigError
from saccade.losses.captions import word_log_likelihood
from saccade.models.base import Given, ImageModel
from saccade.models.caption_decoder import CaptionDecoder, EncodedImage, LookStep, LstmState, Pick, SatConfig, WordStep
from saccade.models.caption_decoding import Decoded, decode, repeat_for_captions, sample_captions
from saccade.trace import SOFT, Act, AttentionTrace, CaptionOutput, LookSpec, ModelOutput

BASELINE_KEEPS = 0.9  # share of the moving average that a batch leaves as it was (Section 4.1)
WORD = "word"  # the name of the look


class SatModel(ImageModel):
    """Pictures (B,3,H,W) and captions (B,T) → logits (B,T,V) and the look ``word``; :meth:`caption` finds captions."""

    Config = SatConfig
    config: SatConfig
    sized_by = "input_size"
    total = "mean"
    answers_in_one_pass = False  # captions are searched for
    keeps_features = True

    baseline: Tensor

    def __init__(self, config: SatConfig) -> None:
        super().__init__(config)
        self.backbone = build_backbone(config.backbone, through=config.through)
        self.look_stage = self.backbone.names[-1]  # the stage whose cells are attended
        self.channels = self.backbone.channels[self.look_stage]
        self.grid = self.backbone.grid(config.input_size)[self.look_stage]
        self.decoder = CaptionDecoder(config, self.channels)
        self.is_hard = config.attention_kind == "hard"  # cells are drawn in training
        # without a choice the weights multiplied the cells
        kind = LookSpec("hard", "multiplier", "softmax", chosen="policy") if self.is_hard else SOFT
        self.look_specs = {WORD: kind.at(self.backbone.frames[self.look_stage])}
        if self.is_hard:
            self.register_buffer("baseline", torch.tensor(-math.log(config.vocabulary)))

    def encode(self, images: Tensor) -> Tensor:
        """The annotation vectors: (B,3,H,W) → a (B,L,D), row by row on the :attr:`grid`."""
        return super().encode(images).flatten(2).transpose(1, 2)

    def forward_raw(
        self,
        images: Tensor | None,
        words: Tensor | None,
        *,
        features: Tensor | None = None,
        draws: int = 1,
        attention: Given | None = None,
    ) -> CaptionOutput:
        """Pictures (B,3,H,W), or their ``features`` (B,L,D), and captions (B,T) → the likelihood of each word.

        Without captions the model draws its own, ``draws`` of each picture.
        """
        if features is None:
            features = self.encode(cast(Tensor, images))  # (B,L,D)
        if words is not None:
            return self.teacher_force(features, words, attention=attention)
        if attention is not None:
            raise ConfigError("attention: captions drawn for training use the model's own; give words or use caption()")
        return self.sample(features, draws)

    def respond(
        self, encoding: Tensor, query: Tensor | None = None, *, attention: Given | None = None
    ) -> CaptionOutput:
        """The words ``query`` (B,T) about encoded pictures (B,L,D); without them the greedy caption.

        Given attention is (B,T,h,w), a map for each word, or for the first ones; without words T is ``longest``.
        """
        if query is None:
            query = self.caption(encoding, attention=attention).words[:, 0]  # (B,T)
        return self.teacher_force(encoding, query, attention=attention)

    def _chances(self, features: Tensor, steps: int) -> tuple[Tensor | None, Tensor | None]:
        """Noise (B,T,L) for the draws of hard attention in training, and the pictures (B,) that use the expectation."""
        if not (self.training and self.is_hard):
            return None, None
        chance = torch.rand(features.shape[0], device=features.device)  # (B,)
        noise = gumbel_noise((features.shape[0], steps, features.shape[1]), like=features)  # (B,T,L)
        return noise, chance < self.config.expected_share

    def teacher_force(self, features: Tensor, words: Tensor, *, attention: Given | None = None) -> CaptionOutput:
        """The words (B,T) about encoded pictures (B,L,D).

        Hard attention in training draws cells, but for the pictures of which all cells count, and moves the baseline.
        """
        weights = self.given_steps(attention, WORD, (*words.shape, *self.grid))  # (B,t,h,w)
        noise, expected = self._chances(features, words.shape[-1])
        pick: Pick = "drawn" if noise is not None else self.config.pick
        if pick == "drawn" and noise is None:
            noise = gumbel_noise((*words.shape, features.shape[1]), like=features)  # (B,T,L)
        scene, memory = self.decoder.init_state(features, self.grid)
        logits, looked, _ = self.decoder.teacher_force(
            scene, memory, words, pick=pick, noise=noise, expected=expected, weights=weights
        )
        output = CaptionOutput(logits, {WORD: _act(looked, scene, words)})
        if expected is not None:
            output.entropy = cell_entropy(looked.weights.flatten(0, 1)).reshape(words.shape)  # (B,T)
            output.expected, output.baseline = expected, self.baseline.clone()
            self._move_baseline(logits, words, expected)
        return output

    @torch.no_grad()
    def _move_baseline(self, logits: Tensor, words: Tensor, expected: Tensor) -> None:
        """Section 4.1: b ← 0.9 b + 0.1 log p, over the words of the pictures whose cells were drawn."""
        counts = (words >= 0) & ~expected.unsqueeze(1)  # (B,T)
        many = counts.sum()
        reward = (word_log_likelihood(logits, words) * counts).sum() / many.clamp_min(1)
        moved = BASELINE_KEEPS * self.baseline + (1 - BASELINE_KEEPS) * reward
        self.baseline.copy_(torch.where(many > 0, moved, self.baseline))

    def logits_and_answer(self, output: ModelOutput) -> tuple[Tensor, Tensor]:
        """Logits (B,T,V) and the likeliest word at each place (B,T), -1 behind the end."""
        return output.logits, output.logits.argmax(-1).masked_fill(~output.acts[WORD].active, -1)

    def init_state(self, encoding: Tensor) -> tuple[EncodedImage, LstmState]:
        """What is computed once of encoded pictures (B,L,D), and the memory before the first word."""
        return self.decoder.init_state(encoding, self.grid)

    def next_word(
        self, scene: EncodedImage, memory: LstmState, before: Tensor, *, weights: Tensor | None = None
    ) -> WordStep:
        """One word more after ``before`` (B,K), -1 for none, for K captions of each picture side by side.

        ``weights`` (B,h,w) are given for all K captions in place of the model's own.
        """
        if weights is not None:
            weights = weights.unsqueeze(1).expand(-1, before.shape[1], -1, -1)  # (B,K,h,w)
        noise = None
        if self.config.pick == "drawn":
            shape = (*before.shape, self.grid[0] * self.grid[1])  # (B,K,L)
            noise = gumbel_noise(shape, like=scene.features)
        return self.decoder.next_word(scene, memory, before, pick=self.config.pick, noise=noise, weights=weights)

    def caption(self, encoding: Tensor, *, attention: Given | None = None, **options: Any) -> Decoded:
        """Captions of encoded pictures (B,L,D), at most ``longest`` words; options are those of :func:`.decode`.

        Given attention is (B,t,h,w), at most ``longest`` maps: the n-th is used for the n-th word of every caption of
        the picture, and later words use the model's own.
        """
        longest = options.pop("longest", self.config.longest)
        weights = self.given_steps(attention, WORD, (encoding.shape[0], longest, *self.grid))  # (B,t,h,w)
        return decode(self, encoding, longest=longest, weights=weights, **options)

    def sample(self, features: Tensor, draws: int = 1) -> CaptionOutput:
        """Captions drawn for encoded pictures (B,L,D), ``draws`` of each in a row; without dropout, as in use.

        Hard attention in training draws cells too, for each caption anew.
        """
        steps = self.config.longest
        was_training = self.decoder.training
        self.decoder.eval()
        try:
            scene, memory = (repeat_for_captions(part, draws) for part in self.init_state(features))
            features = features.repeat_interleave(draws, dim=0)  # (B·K,L,D)
            noise, expected = self._chances(features, steps)
            words, log_prob, logits, looked = sample_captions(
                self.decoder,
                scene,
                memory,
                gumbel_noise((features.shape[0], steps, self.config.vocabulary), like=features),  # (B·K,T,V)
                pick="expected" if noise is None else "drawn",
                cell_noise=noise,
                expected=expected,
            )
        finally:
            self.decoder.train(was_training)
        output = CaptionOutput(logits, {WORD: _act(looked, scene, words)}, log_prob=log_prob)
        if expected is not None:
            output.expected = expected
        return output

    def trace_of(self, decoded: Decoded, which: int = 0) -> AttentionTrace:
        """The trace of the caption number ``which`` of each picture, the best first."""
        words = decoded.words[:, which]  # (B,T)
        act = Act(weights=decoded.weights[:, which], gain=decoded.gains[:, which], active=words >= 0, emits=words)
        if decoded.choices is not None:
            act.choice = decoded.choices[:, which]
            act.log_prob = _log_prob(act.weights, act.choice)
        size = torch.tensor(self.config.input_size, device=words.device).expand(words.shape[0], 2)
        return AttentionTrace(
            looks=self.looks(CaptionOutput(acts={WORD: act})), answer=words, image_size=size, total=self.total
        )


def _act(looked: LookStep, scene: EncodedImage, words: Tensor) -> Act:
    """What was seen for each of the words (B,T), with the gate in its context."""
    act = Act(looked.context, looked.weights, looked.scores, scene.features, gain=looked.gain)
    act.active, act.emits = words >= 0, words.clone()  # (B,T) each
    if looked.choice is not None:
        act.choice, act.log_prob = looked.choice, _log_prob(looked.weights, looked.choice)  # (B,T) each
    return act


def _log_prob(weights: Tensor, choice: Tensor) -> Tensor:
    """The log α of each choice (B,T) under its weights (B,T,h,w): (B,T)."""
    return log_prob_of(weights.flatten(0, 1), choice.flatten().unsqueeze(1)).reshape(choice.shape)
