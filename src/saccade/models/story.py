"""The interface of all story models: a story and a question in, an answer out.

A story is word ids (B,S,J): S sentences in order, each of at most J words, 0 where there is no word. A question is word
ids (B,Q). Logits are over the whole vocabulary, whose word 0 is the empty one: (B,V), or (B,A,V) for an answer of
several words, which ends with word 0.

**Control** (:class:`StoryLSTMModel`): an LSTM over all words of story and question, without memory and attention, the
baseline of Weston et al. 2015 (arXiv:1502.05698) and Sukhbaatar et al. 2015 (arXiv:1503.08895).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from saccade.models.base import AskedModel, Given, Sentences, Units, Words, attention_kwargs
from saccade.trace import ModelOutput


class StoryModel(AskedModel):
    """Base of models that answer a question about a story."""

    answers_word_by_word: bool = False
    """Whether answers are several words; otherwise several words are one entry of the vocabulary."""
    training_inputs: ClassVar[tuple[str, ...]] = ()
    """Further arguments of ``forward_raw`` that training gives where it has them: ``times`` of sentences, ``bags`` and
    ``query_bags`` of words, ``length`` in words of the longest story, numbers of sentences in ``rows`` and of
    questions in ``query_row``, words ``said`` before, number of ``passes``."""
    reading_inputs: ClassVar[tuple[str, ...]] = ()
    """Those of them that ``encode`` takes; ``ask`` takes the others."""
    switches: ClassVar[tuple[str, ...]] = ()
    """Switches of ``forward_raw`` that a phase may set: ``linear``."""
    slots_include_past: ClassVar[bool] = False
    """Whether a slot holds its sentence and those before it, not that sentence alone."""

    def forward_raw(
        self, story: Tensor, query: Tensor, *, attention: Given | None = None, **options: Any
    ) -> ModelOutput:
        """Stories (B,S,J) and questions (B,Q) → plain tensors; the options are those of ``encode`` and ``ask``."""
        reading = {name: options.pop(name) for name in self.reading_inputs if name in options}
        return self.ask(self.encode(story, **reading), query, **options, **attention_kwargs(attention))


def in_one_run(words: Tensor) -> Tensor:
    """Word ids (B,N) without the gaps between them: the words first, in their order, and 0 after the last."""
    is_word = words != 0
    place = torch.where(is_word, is_word.cumsum(1) - 1, words.shape[1])  # (B,N); padding goes to an extra column
    run = words.new_zeros(words.shape[0], words.shape[1] + 1)
    return run.scatter(1, place, words)[:, :-1]  # (B,N)


def last_state(states: Tensor, words: Tensor) -> Tensor:
    """The states (N,J,n) of a net after the last of the words (N,J): (N,n)."""
    last = ((words != 0).sum(1) - 1).clamp(min=0)  # (N,)
    return states.gather(1, last.view(-1, 1, 1).expand(-1, 1, states.shape[-1]))[:, 0]


@dataclass(frozen=True)
class StoryConfig:
    """Settings of all story models."""

    words: Words = 30
    """Words of the vocabulary, including the empty one; set from the data."""
    memory: Sentences = 50
    """The last so many sentences of a story are read."""


@dataclass(frozen=True)
class StoryLSTMConfig(StoryConfig):
    """Sizes of the network."""

    size: Units = 50
    embedding: Units = 50


class StoryLSTMModel(StoryModel):
    """Stories (B,S,J) and questions (B,Q) → logits over the vocabulary (B,V); it has no looks."""

    Config = StoryLSTMConfig
    config: StoryLSTMConfig

    def __init__(self, config: StoryLSTMConfig) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(config.words, config.embedding, padding_idx=0)
        self.reader = nn.LSTM(config.embedding, config.size, batch_first=True)
        self.answer = nn.Linear(config.size, config.words)

    def encode(self, story: Tensor) -> Tensor:
        """The stories themselves (B,S,J): the question is read after them, in one go."""
        return story

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """Read the story, then the question, then answer."""
        self.given(attention, "", ())  # it has no looks: whatever is given is refused
        words = torch.cat([encoding.flatten(1), query], 1)  # (B,L)
        states, _ = self.reader(self.embed(in_one_run(words)))  # (B,L,n)
        return ModelOutput(self.answer(last_state(states, words)))
