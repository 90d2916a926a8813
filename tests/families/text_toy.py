"""A toy family that reads text: a story, one sentence a line, and a name in; the place where that person is out.

Its model attends softly to sentences, so its looks lie on slots. Nothing in it knows pictures.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.examples import Example
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families import DataEntry, Family, ModelSpec
from saccade.families.reading import InputReader, Prepared, ReadItem
from saccade.losses.likelihood import cross_entropy
from saccade.metrics.intervals import Values
from saccade.metrics.result import summarise
from saccade.models.base import AttentionModel, Given
from saccade.models.facts import ModelFacts
from saccade.tasks.task import Batch, OpenedSplit, PhaseSettings, Task
from saccade.trace import Act, LookSpec, ModelOutput

NAMES, PLACES = ("mary", "john", "sandra"), ("kitchen", "garden", "office", "hall")
BUCKETS = 97
"""Words are told apart by a hash; 0 is no word."""


@dataclass(frozen=True)
class Story:
    """Sentences in order."""

    sentences: tuple[str, ...]
    name: str = "story"
    notes: tuple[str, ...] = ()
    image: None = None

    @property
    def stem(self) -> str:
        return Path(self.name).stem


class Stories(InputReader):
    """A text file with one sentence a line, or a list of sentences."""

    thing = "text"
    suffixes = frozenset({".txt"})

    def read(self, source: Any) -> Story:
        if isinstance(source, Story):
            return source
        if isinstance(source, (str, os.PathLike)):
            lines = Path(source).read_text(encoding="utf-8").splitlines()
            found = Story(tuple(line.strip() for line in lines if line.strip()), str(source))
        else:
            found = Story(tuple(source))
        if not found.sentences:
            raise DataError(f"{found.name}: no sentences; write one a line")
        return found

    def prepare(self, items: Sequence[Story], facts: ModelFacts | None) -> Prepared:
        words = [[ids(sentence) for sentence in story.sentences] for story in items]
        most = max(map(len, words))
        long = max(len(sentence) for story in words for sentence in story)
        table = torch.zeros(len(items), most, long, dtype=torch.long)  # (B,S,W)
        for number, story in enumerate(words):
            for place, sentence in enumerate(story):
                table[number, place, : len(sentence)] = torch.tensor(sentence)
        return Prepared((table,), tuple(ReadItem(story, slots=story.sentences) for story in items))


def ids(sentence: str) -> list[int]:
    return [1 + zlib.crc32(word.strip(".").lower().encode()) % (BUCKETS - 1) for word in sentence.split()]


STORIES = Stories()


@dataclass(frozen=True)
class StoryConfig:
    queries: int = len(NAMES)
    answers: int = len(PLACES)
    width: int = 16


class StoryModel(AttentionModel):
    """Sentences are sums of word vectors; the query is one more vector, and its products are the scores."""

    Config = StoryConfig

    def __init__(self, config: StoryConfig) -> None:
        super().__init__()
        self.look_specs = {"sentence": LookSpec("slots", "multiplier", "softmax")}
        self.config = config
        self.words = nn.Embedding(BUCKETS, config.width, padding_idx=0)
        self.query = nn.Embedding(config.queries, config.width)
        self.answer = nn.Linear(config.width, config.answers)

    def encode(self, words: Tensor) -> Tensor:
        return self.words(words).sum(2)  # (B,S,D)

    def respond(self, encoding: Tensor, query: Tensor | None = None, *, attention: Given | None = None) -> ModelOutput:
        is_there = (encoding != 0).any(-1)  # (B,S): the rest is padding
        scores = torch.einsum("bsd,bd->bs", encoding, self.query(query)).masked_fill(~is_there, -1e9)
        given = self.given(attention, "sentence", scores.shape)
        weights = scores.softmax(-1) if given is None else given  # (B,S)
        context = torch.einsum("bs,bsd->bd", weights, encoding)
        return ModelOutput(self.answer(context), {"sentence": Act(context, weights, scores)})


@dataclass(frozen=True)
class StoryData:
    name: str = "tales"
    seed: int = 0


class StorySplit:
    """Each person goes to one place; who is asked for, and where is that?"""

    def __init__(self, config: StoryData, split: str, device: torch.device | str = "cpu") -> None:
        self.config, self.split, self.device = config, split, torch.device(device)
        self.size = None if split == "train" else 40

    def story(self, number: int) -> tuple[list[str], int, int]:
        drawn = random.Random(f"{self.config.seed} {self.split} {number}")
        places = [drawn.randrange(len(PLACES)) for _ in NAMES]
        told = [f"{name.capitalize()} is in the {PLACES[place]}." for name, place in zip(NAMES, places)]
        told = [each for each in told if drawn.random() < 0.9] or told
        asked = drawn.choice([number for number, name in enumerate(NAMES) if name in " ".join(told).lower()])
        drawn.shuffle(told)
        return told, asked, places[asked]

    def take(self, indices: Tensor) -> Batch:
        told, asked, label = zip(*map(self.story, indices.tolist()))
        (words,) = STORIES.prepare([Story(tuple(each)) for each in told], None).inputs
        return {"words": words, "query": torch.tensor(asked), "label": torch.tensor(label)}


@dataclass(frozen=True)
class Default:
    """Cross-entropy."""


class StoryTask(Task):
    name = "tale"
    model_kind = StoryModel
    model_description = "reads stories"
    losses: ClassVar = {"default": Default}
    data_settings = StoryData

    def __init__(self, *, data: Mapping[str, Any], **more: Any) -> None:
        self.data_config = from_dict(StoryData, data, where="data")
        super().__init__(**more)

    @property
    def vocabularies(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return NAMES, PLACES

    def make_split(self, name: str) -> StorySplit:
        return StorySplit(self.data_config, name, self.device)

    def batch(self, data: StorySplit, indices: Tensor, number: int) -> Batch:
        return data.take(indices)

    def inputs(self, batch: Batch) -> dict[str, Any]:
        return {"words": batch["words"], "query": batch["query"]}

    def loss(self, raw: ModelOutput, batch: Batch, loss: PhaseSettings) -> dict[str, Tensor]:
        return {"loss": cross_entropy(raw["logits"], batch["label"])}

    def metric_names(self) -> tuple[str, ...]:
        return ("accuracy",)

    def validate(self, model: nn.Module) -> dict[str, float]:
        return scored(model, self.split("val"), 40).means()

    @classmethod
    def evaluate(
        cls, model: nn.Module, data: Mapping[str, Any], split: str, *, limit: int | None = None, **more: Any
    ) -> dict[str, Any]:
        config = from_dict(StoryData, data, where="data")
        found = scored(model, StorySplit(config, split), limit or 40)
        return {"data": config.name, "split": split, **summarise(n=limit or 40, metrics=found.means())}

    @classmethod
    def open_split(cls, settings: Mapping[str, Any], split: Split, **more: Any) -> OpenedSplit:
        chosen = StorySplit(from_dict(StoryData, settings, where="data"), split)

        def examples(many: int) -> list[Example]:
            told = [chosen.story(number) for number in range(many)]
            return [Example(story, PLACES[label], (), NAMES[asked]) for story, asked, label in told]

        return OpenedSplit(examples)


@torch.no_grad()
def scored(model: nn.Module, split: StorySplit, count: int) -> Values:
    batch, scores = split.take(torch.arange(count)), Values()
    logits = model.forward_raw(words=batch["words"], query=batch["query"])["logits"]
    scores.add_values({"accuracy": F.one_hot(logits.argmax(-1), len(PLACES))[range(count), batch["label"]]})
    return scores


class Tales(Family):
    """What it is made of."""

    def reads(self):
        return STORIES

    def task(self):
        return StoryTask


FAMILY = Tales(
    name="tale",
    title="a story and a name in, the place of that person out",
    folder=Path(__file__).parent,
    models={"tale": ModelSpec(lambda: StoryModel, "one soft attention over sentences", "a toy")},
    data={"tales": DataEntry("generator", "three people in four places", "none", "made on the fly")},
    headline=("accuracy",),
)
