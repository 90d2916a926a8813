"""Dynamic memory network: it reads a story word by word, then attends to its sentences in several passes.

Paper: Kumar et al., "Ask Me Anything: Dynamic Memory Networks for NLP", 2016 (arXiv:1506.07285).

============  =================================================================================================
Section 2.1   input: a GRU over all words of the story; facts are its states at the ends of sentences
Section 2.2   question: the last state of a GRU over its words
Section 2.3   episodes: :mod:`saccade.attention.episodes`; m⁰ = q, mⁱ = GRU(eⁱ, mⁱ⁻¹); an end-of-passes fact
Section 2.4   answer: a₀ = m, y_t = softmax(W a_t), a_t = GRU([y_{t−1}, q], a_{t−1})
============  =================================================================================================

A fact carries the sentences before it, so a gate is about a sentence and its past, not about that sentence alone.

Deviations from the paper:

- ``facts: sentences`` reads each sentence by itself, then all sentences in both directions, like the input fusion layer
  of DMN+ (Xiong et al. 2016, arXiv:1603.01417, Section 3.1). With 1,000 stories, a GRU over all words does not learn
  which of several similar sentences is the last.
- ``gate: softmax`` with ``episode: sum`` makes an episode the weighted sum of the facts.
- Story and question share the GRU and the embeddings, which begin at random.
- The first word comes from a₁ = GRU([0, q], m), so that every word comes from the same step.
- The end-of-passes fact is one learned vector after the last sentence. A model that is taught gates stops there; one
  that is not always makes all passes.
- Recurrent weights begin orthogonal. The input weights of an episode and of the memory begin as the identity, so that a
  gate can compare facts with the memory from the start. Dropout is on the embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from saccade.attention.episodes import AttentionGRU, EpisodeGate, GateNorm, WeightedSum, gates
from saccade.config import Portion
from saccade.models.base import Encoding, Given, Hops, Units
from saccade.models.story import StoryConfig, StoryModel, in_one_run, last_state
from saccade.trace import Act, LookSpec, ModelOutput


@dataclass(frozen=True)
class DMNConfig(StoryConfig):
    """Sizes of the network."""

    answer_words: Hops = 1
    """Most words of an answer; comes from the data."""
    size: Units = 64
    """n of facts, question and memory."""
    embedding: Units = 64
    passes: Hops = 3
    """Most passes; with ``stops`` the last one can only end."""
    facts: Literal["words", "sentences"] = "words"
    """words: one GRU over all words of the story; sentences: each is read by itself, then all in both directions."""
    gate: GateNorm = "sigmoid"
    episode: Literal["gru", "sum"] = "gru"
    """How gated facts become an episode: by a recurrent net, or as their weighted sum; the paper has both."""
    stops: bool = False
    """End the passes when the gate chooses the end-of-passes fact; for gates that are taught."""
    dropout: Portion = 0.0
    """On the table of embeddings."""

    def __post_init__(self) -> None:
        if self.episode == "sum" and self.gate != "softmax":
            raise ValueError("episode: sum needs gate: softmax, whose weights sum to 1")
        if self.stops and self.gate != "softmax":
            raise ValueError("stops needs gate: softmax, which chooses one fact in each pass")


class DMNModel(StoryModel):
    """Stories (B,S,J) and questions (B,Q) → logits (B,A,V) and one look for each pass."""

    Config = DMNConfig
    config: DMNConfig
    answers_word_by_word = True
    extra_slots = ("(end of passes)",)
    slots_include_past = True
    training_inputs = ("length", "rows", "query_row", "said", "passes")
    reading_inputs = ("length", "rows")

    def __init__(self, config: DMNConfig) -> None:
        super().__init__(config)
        # Gates switch a recurrent net, or end the passes; they need not be weights of a sum. A pass after the end is
        # not active, nor is a last pass that does not choose the end. What the pass that ends weighs, nothing reads.
        gated = LookSpec("slots", "input", config.gate)
        self.look_specs = {f"pass{number}": gated for number in range(1, config.passes + 1)}
        self.embed = nn.Embedding(config.words, config.embedding, padding_idx=0)
        self.dropout = nn.Dropout(config.dropout)
        self.reader = nn.GRU(config.embedding, config.size, batch_first=True)
        if config.facts == "sentences":
            half = config.size // 2
            self.before = nn.GRU(config.size, config.size - half, batch_first=True)
            self.after = nn.GRU(config.size, half, batch_first=True)
        self.end = nn.Parameter(torch.randn(config.size) / config.size**0.5)  # the end-of-passes fact
        self.gate = EpisodeGate(config.size, config.size)
        self.episode = AttentionGRU(config.size) if config.episode == "gru" else WeightedSum()
        self.remember = nn.GRUCell(config.size, config.size)
        self.speak = nn.GRUCell(config.words + config.size, config.size)
        self.answer = nn.Linear(config.size, config.words)
        for name, parameter in self.named_parameters():
            if "weight_hh" in name:
                for block in parameter.data.chunk(3):
                    nn.init.orthogonal_(block)
        _begin_as_identity(self.remember.weight_ih, self.remember.bias_ih)
        if isinstance(self.episode, AttentionGRU):
            _begin_as_identity(self.episode.cell.weight_ih, self.episode.cell.bias_ih)

    def encode(self, story: Tensor, length: int | None = None, rows: Tensor | None = None) -> Encoding:
        """The facts: ``facts`` (B,S+1,n), the end-of-passes fact after the last; ``present`` (B,S+1); ``count`` (B,).

        Of stories (B,S,J); ``length`` is that of the longest in words, else counted. ``rows`` (B,S) are numbers of the
        sentences, equal where sentences are; each is then read once.
        """
        batch, slots, _ = story.shape
        count = (story != 0).any(-1).sum(1)  # (B,)
        facts = self._read_words(story, length) if self.config.facts == "words" else self._fused(story, count, rows)
        slot = torch.arange(slots + 1, device=story.device)
        is_end = (slot == count.unsqueeze(1)).unsqueeze(-1)  # (B,S+1,1)
        facts = torch.cat([facts, facts.new_zeros(batch, 1, facts.shape[-1])], 1)  # (B,S+1,n)
        facts = torch.where(is_end, self.end.to(facts), facts)
        return {"facts": facts, "present": slot <= count.unsqueeze(1), "count": count}

    def ask(
        self,
        encoding: Encoding,
        query: Tensor,
        *,
        query_row: Tensor | None = None,
        said: Tensor | None = None,
        passes: Tensor | None = None,
        attention: Given | None = None,
    ) -> ModelOutput:
        """Go over the facts, then answer.

        ``query_row`` (B,) are numbers of the questions (B,Q), equal where questions are; each is then read once. For
        teaching, ``said`` (B,A) are the words of the answers, and ``passes`` (B,) how many passes update the memory.
        """
        facts, present, count = encoding["facts"], encoding["present"], encoding["count"]
        question = self._sentences(query, query_row)  # q (B,n)
        prepared = self.gate.prepare(facts, question)
        memory, active = question, torch.ones_like(count, dtype=torch.bool)  # m⁰ (B,n), (B,)
        acts: dict[str, Act] = {}
        for number, name in enumerate(self.look_names):
            scores = self.gate.score(prepared, memory).masked_fill(~present, -torch.inf)  # (B,S+1)
            gate = gates(scores, present, self.config.gate, self.given(attention, name, scores.shape))
            ends = gate.argmax(-1) == count  # (B,)
            acts[name] = Act(weights=gate, scores=scores, active=active)
            if self.config.stops and number == self.config.passes - 1:  # the last pass can only end
                acts[name].active = active & ends
                break
            if passes is not None:
                goes_on = number < passes
            elif self.config.stops:
                goes_on = active & ~ends
            else:
                goes_on = active
            episode = self.episode(facts, gate)  # eⁱ (B,n)
            memory = torch.where(goes_on.unsqueeze(-1), self.remember(episode, memory), memory)  # mⁱ
            active = goes_on if self.config.stops else active
        return ModelOutput(self._say(memory, question, said), acts)

    def _read_words(self, story: Tensor, length: int | None) -> Tensor:
        """Facts (B,S,n) of stories (B,S,J): states at the ends of sentences, of one run over all words."""
        words = (story != 0).sum(-1)  # (B,S)
        if length is None and torch.compiler.is_compiling():  # a graph that is captured reads all S·J places
            longest = story.shape[1] * story.shape[2]
        else:
            longest = max(1, int(words.sum(1).max()) if length is None else length)
        run = in_one_run(story.flatten(1))[:, :longest]  # (B,L)
        states, _ = self.reader(self._vectors(run))  # (B,L,n)
        ends = (words.cumsum(1) - 1).clamp(0, longest - 1)  # (B,S)
        facts: Tensor = states.gather(1, ends.unsqueeze(-1).expand(-1, -1, states.shape[-1]))  # (B,S,n)
        return facts

    def _fused(self, story: Tensor, count: Tensor, rows: Tensor | None) -> Tensor:
        """The same of sentences that are read one by one, then in their order and against it."""
        slots = story.shape[1]
        sentences = self._sentences(story.flatten(0, 1), rows).view(*story.shape[:2], -1)  # (B,S,n)
        slot, many = torch.arange(slots, device=story.device), count.unsqueeze(1)
        is_sentence = slot < many  # (B,S)
        sentences = sentences * is_sentence.unsqueeze(-1)
        turned = torch.where(is_sentence, many - 1 - slot, slot).unsqueeze(-1)  # (B,S,1): the last sentence first
        before, _ = self.before(sentences)  # (B,S,n/2)
        after, _ = self.after(sentences.gather(1, turned.expand_as(sentences)))
        after = after.gather(1, turned.expand_as(after))  # (B,S,n/2)
        facts: Tensor = sentences + torch.cat([before, after], -1)  # (B,S,n)
        return facts

    def _sentences(self, words: Tensor, rows: Tensor | None) -> Tensor:
        """Sentences (N,J) read one by one: (N,n). On a CPU equal ones are read once: most of a batch is repeated."""
        which = None
        if rows is not None and not rows.is_cuda:  # how many differ is not known to a graph of kernels
            kinds, which = torch.unique(rows.flatten(), return_inverse=True)  # (U,), (N,)
            place = torch.empty_like(kinds).scatter_(0, which, torch.arange(len(which)))  # (U,): one of each kind
            words = words[place]  # (U,J)
        states, _ = self.reader(self._vectors(words))  # (N,J,n) or (U,J,n)
        last = last_state(states, words)
        return last if which is None else last.index_select(0, which)

    def _vectors(self, words: Tensor) -> Tensor:
        """Embeddings (…,e) of words (…). Dropout is on the table, so that a word is the same all over a batch."""
        return nn.functional.embedding(words, self.dropout(self.embed.weight), self.embed.padding_idx)

    def _say(self, memory: Tensor, question: Tensor, said: Tensor | None) -> Tensor:
        before = memory.new_zeros(memory.shape[0], self.config.words)  # y₀ (B,V)
        state, logits = memory, []
        for step in range(self.config.answer_words):
            state = self.speak(torch.cat([before, question], -1), state)  # a_t (B,n)
            logits.append(self.answer(state))
            word = logits[-1].argmax(-1) if said is None else said[:, step]  # (B,)
            before = torch.nn.functional.one_hot(word, self.config.words).to(memory)
        return torch.stack(logits, 1)


@torch.no_grad()
def _begin_as_identity(weight: Tensor, bias: Tensor) -> None:
    """Let a GRU with weights (3n,n) of its input begin as one that takes its input as it is; thirds as in PyTorch."""
    size = weight.shape[1]
    nn.init.eye_(weight[2 * size :])  # the candidate
    bias[size : 2 * size] -= 1.0  # the update gate: rather the candidate than the state before
