"""End-to-end memory network: a story is a memory of sentences, read in hops.

Paper: Sukhbaatar et al., "End-To-End Memory Networks", 2015 (arXiv:1503.08895).

============  ======================================================================================
Section 2.1   one hop: p, o, â = softmax(W(o + u))            :func:`saccade.attention.memory.memory_hop`
Section 2.2   u^{k+1} = u^k + o^k; adjacent tying A^{k+1} = C^k, B = A^1, Wᵀ = C^K; layer-wise tying
              A^1 = … = A^K, C^1 = … = C^K, u^{k+1} = H u^k + o^k
Section 4.1   temporal encoding: m_i += T_A(i), c_i += T_C(i), counted back from the question
============  ======================================================================================

Deviations from the paper:

- Words are weighted by the position code of the authors' code, not by the paper's formula; ``encoding`` has both.
- The time of a sentence is its own embedding, as in the paper; in the authors' code it is one more word, which the
  position code weights.
- Empty slots take part in the softmax as in the authors' code, unless ``mask`` is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from saccade.attention.memory import HOP, Code, SentenceCode, memory_hop
from saccade.models.base import Encoding, Given, Hops, Sentences, Steps, Units
from saccade.models.story import StoryConfig, StoryModel
from saccade.trace import Act, ModelOutput

INIT_STD = 0.1


@dataclass(frozen=True)
class MemN2NConfig(StoryConfig):
    """Sizes of the network."""

    times: Sentences = 50
    """How many times there are, counted back from the question; earlier sentences share the last."""
    longest: Steps = 12
    """Words of the longest sentence; the position code of the authors' code needs it."""
    dim: Units = 20
    """d, the size of an embedding."""
    hops: Hops = 3
    tying: Literal["adjacent", "layerwise"] = "adjacent"
    encoding: Code = "position-code"
    mask: bool = False
    """Give no weight to empty slots; the authors' code gives them some."""


class MemN2NModel(StoryModel):
    """Stories (B,S,J) and questions (B,Q) → logits over the vocabulary (B,V) and one look for each hop."""

    Config = MemN2NConfig
    config: MemN2NConfig
    training_inputs = ("times", "bags", "query_bags")
    reading_inputs = ("times", "bags")
    switches = ("linear",)

    def __init__(self, config: MemN2NConfig) -> None:
        super().__init__(config)
        self.look_specs = {f"hop{number}": HOP for number in range(1, config.hops + 1)}
        self.code = SentenceCode(config.encoding, config.longest)
        # Adjacent: embeddings 0..K, of which hop k reads keys from k−1 and values from k. Layer-wise: keys and values.
        count = config.hops + 1 if config.tying == "adjacent" else 2
        self.embed = nn.ParameterList(_normal(config.words, config.dim) for _ in range(count))
        self.time = nn.ParameterList(_normal(config.times, config.dim) for _ in range(count))
        if config.tying == "layerwise":
            self.carry = nn.Parameter(_normal(config.dim, config.dim))  # H
            self.output = nn.Parameter(_normal(config.words, config.dim))  # Wᵀ

    def encode(self, story: Tensor, times: Tensor | None = None, bags: Tensor | None = None) -> Encoding:
        """The memory: ``vectors0``, … (B,S,d) under each embedding; ``present`` (B,S), which slots hold a sentence.

        Of stories (B,S,J); ``times`` (B,S) say how far back each sentence is, the last one 1, else they are in order.
        """
        config = self.config
        present = (story != 0).any(-1)  # (B,S)
        if times is None:
            times = present.sum(-1, keepdim=True) - torch.arange(story.shape[1], device=story.device)  # (B,S): last 1
        bags = self.bags(story) if bags is None else bags
        row = torch.where(present, times.clamp(1, config.times), 0)  # (B,S); 0: no sentence, no time
        time = row.unsqueeze(-1) == torch.arange(1, config.times + 1, device=row.device)  # (B,S,T)
        sentences = torch.cat([bags, time], -1).to(self.embed[0])  # (B,S,W+T)
        vectors = [sentences @ self.code.matrix(a, t) for a, t in zip(self.embed, self.time)]  # E × (B,S,d)
        return {"present": present, **{f"vectors{number}": vector for number, vector in enumerate(vectors)}}

    def bags(self, words: Tensor) -> Tensor:
        """Sentences of word ids (…,J) as weighted bags (…,W), which depend on no weight of the model."""
        return self.code.bags(words, self.config.words)

    def ask(
        self,
        encoding: Encoding,
        query: Tensor,
        *,
        query_bags: Tensor | None = None,
        linear: bool = False,
        attention: Given | None = None,
    ) -> ModelOutput:
        """Read the memory in hops for questions (B,Q); ``linear`` leaves the softmaxes out, as at first in training."""
        present = encoding["present"]  # (B,S)
        memories = [encoding[f"vectors{number}"] for number in range(len(self.embed))]  # E × (B,S,d)
        bags = self.bags(query) if query_bags is None else query_bags
        state = bags.to(self.embed[0]) @ self.code.matrix(self.embed[0])  # u^1 (B,d); B = A^1
        acts: dict[str, Act] = {}
        is_adjacent = self.config.tying == "adjacent"
        for number, name in enumerate(self.look_names):
            keys, values = memories[number : number + 2] if is_adjacent else memories  # (B,S,d) each
            hop = acts[name] = memory_hop(
                state,
                keys,
                values,
                present=present if self.config.mask else None,
                linear=linear,
                weights=self.given(attention, name, present.shape),
            )
            if self.config.mask:  # a masked memory that is empty is not looked at
                hop.active = present.any(-1)  # (B,)
            state = (state if is_adjacent else state @ self.carry.T) + hop.context  # u^{k+1} (B,d)
        output = self.embed[-1] if is_adjacent else self.output
        # The empty word has no vector: its logit is 0, and its row of the embedding is never used.
        return ModelOutput(torch.nn.functional.pad(state @ output[1:].T, (1, 0)), acts)  # (B,V)


def _normal(*shape: int) -> Tensor:
    return nn.Parameter(torch.randn(*shape) * INIT_STD)
