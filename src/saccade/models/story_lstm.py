"""A control for models of stories: an LSTM over all words of story and question, without memory and attention.

Paper: the baseline of Weston et al. 2015 (arXiv:1502.05698) and Sukhbaatar et al. 2015 (arXiv:1503.08895).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.models.base import Given
from saccade.models.ranges import Sentences, Units, Words
from saccade.models.story import TOY_WORDS, StoryModel, in_one_run, toy_stories
from saccade.outputs import ModelOutput


@dataclass(frozen=True)
class StoryLSTMConfig:
    """Sizes of the network."""

    words: Words = 30
    """Words of the vocabulary, including the empty one; set from the data."""
    memory: Sentences = 50
    """Sentences that it reads: the last so many of a story."""
    size: Units = 50
    embedding: Units = 50


class StoryLSTMModel(StoryModel):
    """Stories (B,S,J) and questions (B,Q) → logits over the vocabulary (B,V); it has no looks."""

    Config = StoryLSTMConfig
    config: StoryLSTMConfig

    def __init__(self, config: StoryLSTMConfig) -> None:
        super().__init__()
        self.config = config
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
        last = ((words != 0).sum(1) - 1).clamp(min=0)  # (B,)
        state = states.gather(1, last.view(-1, 1, 1).expand(-1, 1, states.shape[-1]))[:, 0]  # (B,n)
        return ModelOutput(self.answer(state))

    def forward_raw(self, story: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """Stories (B,S,J) and questions (B,Q) → plain tensors."""
        return self.ask(self.encode(story), query, attention=attention)

    @classmethod
    def tiny(cls) -> StoryLSTMConfig:
        """A size for tests."""
        return StoryLSTMConfig(words=TOY_WORDS, memory=4, size=16, embedding=12)

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`; see :func:`saccade.models.story.toy_stories`."""
        story, query, label = toy_stories(count, seed)
        return {"story": story, "query": query}, label
