"""Questions about stories as tensors on a device, what a model says to them, and where it looks.

Sentences repeat, so each is stored once: a table of word ids (U,J), and for every question the numbers of its
sentences (N,S), 0 where a slot is empty.

A memory network may look at slots that hold no sentence, a dynamic memory network at an end-of-passes fact. What lies
on these is put together into one last column: the weights of any model are (B,S+1), with S slots of sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.families.story.stories import StoryExample, answer_tokens, memory_places, words_of
from saccade.metrics import slots
from saccade.models.base import Given, attention_kwargs
from saccade.models.story import StoryModel
from saccade.trace import ModelOutput, joined

_NOISE, _LEFT_OUT = 0x73746F72, 0x6C656674  # tell these draws apart from all others of a seed
NOT_KNOWN = -1  # An answer outside the vocabulary. Also fills places after the last supporting fact.
PART = 50  # Stories of like length read together by a recurrent model
RIVALS = ("recency", "uniform", "word_overlap")


class Sizes(NamedTuple):
    """Sizes of tensors that hold questions."""

    memory: int  # S: last sentences of a story
    longest: int  # J, words of a sentence or question
    answer_words: int  # A, words of an answer


def sizes_of(examples: Sequence[StoryExample], memory: int) -> Sizes:
    """Sizes that hold all ``examples``; of a longer story only the last ``memory`` sentences are kept."""
    texts = {text for example in examples for text in (*example.sentences, example.question)}
    answers = {example.answer for example in examples}
    longest, answer_words = (max([1, *(len(words_of(text)) for text in some)]) for some in (texts, answers))
    most = max((len(example.sentences) for example in examples), default=1)
    return Sizes(max(1, min(memory, most)), longest, answer_words)


class StoryTensors:
    """One split on a device.

    Unknown words are left out, and sentences of only these take no slot. An answer is ``by_word``, then 0, or one entry
    of the vocabulary ``words``, whose word 0 is the empty one.
    """

    def __init__(
        self,
        examples: Sequence[StoryExample],
        words: Sequence[str],
        sizes: Sizes,
        device: torch.device,
        *,
        by_word: bool,
    ) -> None:
        self.device, self.size = device, len(examples)
        numbers = {word: number for number, word in enumerate(words)}
        ids: list[list[int]] = [[]]
        number_of: dict[str, int] = {}

        def number(text: str) -> int:
            if text not in number_of:
                number_of[text] = len(ids)
                ids.append([numbers[word] for word in words_of(text) if word in numbers][: sizes.longest])
            return number_of[text]

        def column(rows: list[list[int]], width: int, fill: int = 0) -> Tensor:
            filled = [row + [fill] * (width - len(row)) for row in rows]
            return torch.tensor(filled, dtype=torch.long).reshape(len(rows), width).to(self.device)

        memory = sizes.memory
        sentence_rows = [[number(text) for text in example.sentences] for example in examples]
        in_memory = [memory_places([ids[row] for row in story], memory) for story in sentence_rows]
        rows = [[story[place] for place in places] for story, places in zip(sentence_rows, in_memory)]
        answers = [_answer_ids(example.answer, numbers, by_word, sizes.answer_words) for example in examples]
        # A supporting fact that the memory does not hold is left out, so that the others are the first.
        at = [{place: slot for slot, place in enumerate(places)} for places in in_memory]
        support = [
            [slot[place] for place in example.supporting if place in slot] for example, slot in zip(examples, at)
        ]
        self.rows = column(rows, memory)  # (N,S)
        self.query = column([[number(example.question)] for example in examples], 1)[:, 0]  # (N,)
        self.sentences = column(ids, sizes.longest)  # (U,J)
        self.answer = column(answers, len(answers[0]) if answers else 1)  # (N,A), A = 1 for one entry
        self.supporting = column(support, max([1, *map(len, support)]), NOT_KNOWN)  # (N,F)
        self.count = (self.rows != 0).sum(1)  # (N,)
        self.task_names = list(dict.fromkeys(example.task for example in examples))
        place = {name: at for at, name in enumerate(self.task_names)}
        self.task = column([[place[example.task]] for example in examples], 1)[:, 0]  # (N,)
        self._bags: Tensor | None = None
        lengths = (self.sentences != 0).sum(1)  # (U,)
        self.length = int(lengths[self.rows].sum(1).max()) if self.size else 0  # Words of the longest story

    def take(self, indices: Tensor) -> dict[str, Tensor]:
        """Questions ``indices`` (B,): story (B,S,J), query (B,J), answer (B,A), supporting (B,F), count, task (B,).

        ``rows`` (B,S) and ``query_row`` (B,) are the numbers of their sentences.
        """
        at = indices.to(self.device, non_blocking=True)
        rows, query = self.rows[at], self.query[at]
        return {
            "rows": rows,
            "query_row": query,
            "story": self.sentences[rows],
            "query": self.sentences[query],
            "answer": self.answer[at],
            "supporting": self.supporting[at],
            "count": self.count[at],
            "task": self.task[at],
        }

    def take_some(self, indices: Tensor, share: float, *, seed: int, rows: Tensor) -> dict[str, Tensor]:
        """:meth:`take` without a share of the unneeded sentences; see :func:`needed_and_some`."""
        whole = self.take(indices)
        support = whole["supporting"]  # (B,F)
        stays = needed_and_some(support, whole["count"], whole["rows"].shape[1], share, seed=seed, rows=rows)  # (B,S)
        order = (~stays).to(torch.uint8).argsort(dim=1, stable=True)  # (B,S): the kept ones first, in their order
        left = torch.where(stays.gather(1, order), whole["rows"].gather(1, order), 0)  # (B,S)
        slot = stays.cumsum(1) - 1  # (B,S), where each kept one goes
        support = torch.where(support >= 0, slot.gather(1, support.clamp(min=0)), support)  # (B,F)
        return whole | {"rows": left, "story": self.sentences[left], "supporting": support, "count": stays.sum(1)}

    def bags(self, rows: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
        """Bags of words (…,W) of the sentences ``rows`` (…), made once by ``of`` from ids (U,J)."""
        if self._bags is None:
            self._bags = of(self.sentences)  # (U,W)
        return self._bags[rows]


def _answer_ids(answer: str, numbers: dict[str, int], by_word: bool, most: int) -> list[int]:
    ids = [numbers.get(token, NOT_KNOWN) for token in answer_tokens(answer, by_word=by_word)]
    return ids[:most] + [0] * (most - len(ids)) if by_word else ids or [NOT_KNOWN]


def needed_and_some(supporting: Tensor, count: Tensor, slots: int, share: float, *, seed: int, rows: Tensor) -> Tensor:
    """Slots (B,S) to keep: all ``supporting`` facts (B,F), and other sentences but for a ``share``.

    A story of ``count`` (B,) sentences without a supporting fact is kept whole. ``rows`` (B,) are the examples' numbers
    in the run.
    """
    slot = torch.arange(slots, device=count.device)  # (S,)
    is_needed = (supporting.unsqueeze(-1) == slot).any(1)  # (B,S)
    bits = hash_u32(seed ^ _LEFT_OUT, rows.to(count.device).unsqueeze(1), 0, slot)  # (B,S)
    stays = is_needed | (bits >= share * 2**32) | (supporting < 0).all(1, keepdim=True)
    return stays & (slot < count.unsqueeze(1))


def noisy_times(count: Tensor, slots: int, share: float, *, seed: int, rows: Tensor) -> Tensor:
    """Times (B,S) with blanks between sentences: random noise (Sukhbaatar et al. 2015, Section 4.2).

    Among n + b times, b drawn from 0 … ⌈share · n⌉, the n sentences of a story (``count``, (B,)) take n at random, in
    their order. Times depend on ``seed``, the number of the example in the run (``rows``, (B,)) and n.
    """
    device = count.device
    n = count.unsqueeze(1)  # (B,1)
    most = slots + int(-(-share * slots // 1))  # P: times that there can be
    place = torch.arange(most + 1, device=device)  # (P+1,)
    bits = hash_u32(seed ^ _NOISE, rows.to(device).unsqueeze(1), 0, place)  # (B,P+1)
    blanks = uniform_below(bits[:, :1], torch.ceil(share * n).long() + 1)  # (B,1)
    time = place[:-1]  # (P,)
    order = bits[:, 1:].masked_fill(time >= n + blanks, 1 << 33).argsort(dim=1, stable=True)  # (B,P)
    drawn = torch.where(time < n, order, most).sort(1).values  # (B,P): the first n of these, the latest first
    back = (n - 1 - torch.arange(slots, device=device)).clamp(min=0)  # (B,S): sentences told after this one
    return drawn.gather(1, back) + 1


class SentenceWeights(NamedTuple):
    """The looks at a batch of stories, on the CPU."""

    # By look: weights (B,S+1), 0 on slots without a sentence, whose weight is in the last column.
    looks: dict[str, Tensor]
    active: dict[str, Tensor]  # By look: (B,) whether it took place and did not choose the end of the passes
    present: Tensor  # (B,S) slots with a sentence
    has_end: bool = False  # Whether the last column is an end-of-passes fact rather than empty slots

    @property
    def total(self) -> Tensor:
        """The mean over the looks that took place (B,S+1)."""
        count = torch.stack(list(self.active.values())).sum(0).clamp(min=1)  # (B,)
        added = sum(weights * self.active[name].unsqueeze(1) for name, weights in self.looks.items())
        return torch.as_tensor(added) / count.unsqueeze(1)


def sentence_weights(model: StoryModel, raw: ModelOutput, story: Tensor) -> SentenceWeights | None:
    """The looks at stories (B,S,J) in a result of ``forward_raw``; None without looks."""
    present = (story != 0).any(-1).cpu()  # (B,S)
    size = present.shape[1]
    looks, active, has_end = {}, {}, False
    for look in model.looks(raw):
        if look.weights is None:
            continue
        weights = look.weights.cpu().double()  # (B,S) or, with an end-of-passes fact, (B,S+1)
        has_end |= weights.shape[1] > size
        on_slots = weights[:, :size] * present
        looks[look.name] = torch.cat([on_slots, (weights.sum(1) - on_slots.sum(1)).clamp(min=0).unsqueeze(1)], 1)
        took_place = torch.ones(len(weights), dtype=torch.bool) if look.active is None else look.active.bool().cpu()
        chose_end = weights.shape[1] > size and look.norm == "softmax"  # a pass that chooses the end looks no more
        active[look.name] = took_place & (looks[look.name].argmax(1) < size) if chose_end else took_place
    return SentenceWeights(looks, active, present, has_end) if looks else None


def rival_maps(batch: Mapping[str, Tensor]) -> dict[str, SentenceWeights]:
    """One look of each rival at the ``story`` (B,S,J) for the ``query`` (B,Q)."""
    story, query = batch["story"].cpu(), batch["query"].cpu()
    present = (story != 0).any(-1)  # (B,S)
    always = torch.ones(len(present), dtype=torch.bool)
    maps = zip(RIVALS, (slots.recency(present), slots.uniform(present), slots.word_overlap(story, query)))
    return {
        name: SentenceWeights({name: F.pad(weights.nan_to_num(), (0, 1))}, {name: always}, present)
        for name, weights in maps
    }


def supporting_slots(supporting: Tensor, present: Tensor) -> Tensor:
    """Slots (B,S) of the supporting facts in memory, from their numbers (B,F), below 0 for none."""
    places = torch.arange(present.shape[1], device=present.device)
    return (supporting.unsqueeze(2) == places).any(1) & present


def as_tensors(model: StoryModel, examples: Sequence[StoryExample], words: Sequence[str]) -> StoryTensors:
    """Questions on the device of the model, in its words."""
    device = next(model.parameters()).device
    sizes = sizes_of(examples, int(model.config.memory))
    return StoryTensors(examples, words, sizes, device, by_word=model.answers_word_by_word)


def batch_of(model: StoryModel, examples: Sequence[StoryExample], words: Sequence[str]) -> dict[str, Tensor]:
    """All of these questions as one batch of :func:`batch_for`."""
    return batch_for(model, as_tensors(model, examples, words), torch.arange(len(examples)))


def batch_for(model: Any, tensors: StoryTensors, indices: Tensor) -> dict[str, Tensor]:
    """Questions ``indices`` (B,) with all memory slots, and bags of words if the model reads them."""
    batch = tensors.take(indices)
    empty = int(model.config.memory) - batch["story"].shape[1]
    batch["story"] = F.pad(batch["story"], (0, 0, 0, empty))  # (B,S,J)
    if "bags" in model.training_inputs:
        batch["bags"] = F.pad(tensors.bags(batch["rows"], model.bags), (0, 0, 0, empty))  # (B,S,W)
        batch["query_bags"] = tensors.bags(batch["query_row"], model.bags)  # (B,W)
    return batch


def respond(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None = None) -> ModelOutput:
    """``forward_raw`` of a batch of :func:`batch_for`, perhaps with given weights."""
    if model.slots_include_past and len(batch["story"]) > PART:
        return _by_length(model, batch, attention)
    options: dict[str, Any] = {name: batch[name] for name in ("bags", "query_bags") if name in batch}
    return model.forward_raw(batch["story"], batch["query"], **options, **attention_kwargs(attention))


def _by_length(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None) -> ModelOutput:
    """The same for stories of like length together, without their empty slots.

    A recurrent model ignores empty slots, and stories of task 3 have 4 to 228 sentences.
    """
    story, query = batch["story"], batch["query"]
    size = story.shape[1]
    length = ((story != 0).any(-1) * torch.arange(1, size + 1, device=story.device)).amax(1)  # (B,)
    order = length.argsort()
    parts = []
    for chosen in torch.split(order, PART):
        most = max(1, int(length[chosen[-1]]))
        part_attention = attention and {name: weights[chosen, : most + 1] for name, weights in attention.items()}
        options: dict[str, Any] = {}
        if "rows" in model.training_inputs:
            options = {"rows": batch["rows"][chosen, :most], "query_row": batch["query_row"][chosen]}
        raw = model.forward_raw(story[chosen, :most], query[chosen], **options, **attention_kwargs(part_attention))
        for act in raw.acts.values():  # the empty slots that were left out: (B,S'+1) → (B,S+1)
            act.weights = F.pad(act.weights, (0, size - most))
            act.scores = F.pad(act.scores, (0, size - most), value=-torch.inf)
        parts.append(raw)
    return joined(parts)[order.argsort()]


def predictions(raw: ModelOutput) -> Tensor:
    """Ids of the predicted words: (B,A), A = 1 for one entry of the vocabulary."""
    logits = raw.logits
    return logits.argmax(-1) if logits.dim() == 3 else logits.argmax(-1, keepdim=True)


def is_right(predicted: Tensor, answer: Tensor) -> Tensor:
    """Whether predicted words (B,A) are those of the answer (B,A'): (B,). Word 0 ends an answer."""
    most = min(predicted.shape[1], answer.shape[1])
    same = (predicted[:, :most] == answer[:, :most]).all(1)
    return same & (predicted[:, most:] == 0).all(1) & (answer[:, most:] == 0).all(1)
