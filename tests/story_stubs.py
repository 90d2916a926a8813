"""Models of stories for tests: small saved ones, one that knows the truth, one that draws, and a constant."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.attention.memory import HOP
from saccade.config import to_dict
from saccade.families import model_spec
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world import derive
from saccade.models.base import Given
from saccade.models.facts import ModelFacts
from saccade.models.folder import save_model
from saccade.models.story import StoryModel
from saccade.trace import Act, ModelOutput

LOOKS = ("hop1", "hop2")


@dataclass(frozen=True)
class StubConfig:
    words: int
    memory: int = 12


class StubModel(StoryModel):
    """Reads the words of each story and asks :meth:`told` for the answer and the weights."""

    Config = StubConfig

    def __init__(self, words: tuple[str, ...], memory: int = 12) -> None:
        super().__init__()
        self.config, self.words = StubConfig(len(words), memory), words
        self.look_specs = dict.fromkeys(LOOKS, HOP)
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def told(self, sentences: list[str], question: str) -> tuple[str, list[float]]:
        """The answer, and the weights of the sentences."""
        raise NotImplementedError

    def encode(self, story: Tensor) -> Tensor:
        return story

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        return self.forward_raw(encoding, query, attention=attention)

    def forward_raw(self, story: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        batch, slots, _ = story.shape
        logits = torch.zeros(batch, len(self.words))
        weights = torch.zeros(batch, slots)
        for row in range(batch):
            sentences = [self._text(ids) for ids in story[row] if bool(ids.any())]
            answer, own = self.told(sentences, self._text(query[row]))
            weights[row, : len(own)] = torch.tensor(own)
            if attention:  # what got no weight was not told
                given = torch.stack(list(attention.values()))[:, row, : len(sentences)]
                left = [text for at, text in enumerate(sentences) if own[at] == 0 or bool((given[:, at] > 0).all())]
                answer, _ = self.told(left, self._text(query[row]))
            logits[row, self.words.index(answer) if answer in self.words else 0] = 1.0
        return ModelOutput(logits, {name: Act(weights=weights, scores=weights) for name in LOOKS})

    def _text(self, ids: Tensor) -> str:
        return " ".join(self.words[number] for number in ids.tolist() if number)


class Oracle(StubModel):
    """Answers by the rules, and looks at what the answer follows from."""

    def told(self, sentences: list[str], question: str) -> tuple[str, list[float]]:
        known = derive(sentences, question)
        if known is None:
            return "", [0.0] * len(sentences)
        return known.answer, [
            1 / len(known.supporting) if n in known.supporting else 0.0 for n in range(len(sentences))
        ]


class Noise(StubModel):
    """Answer and weights are drawn anew for every story and question."""

    def told(self, sentences: list[str], question: str) -> tuple[str, list[float]]:
        generator = torch.Generator().manual_seed(zlib.crc32("\n".join([*sentences, question]).encode()))
        number = int(torch.randint(1, len(self.words), (), generator=generator))
        return self.words[number], torch.rand(len(sentences), generator=generator).tolist()


class Constant(StubModel):
    """Always one answer, and the same weight on every sentence."""

    def told(self, sentences: list[str], question: str) -> tuple[str, list[float]]:
        return "kitchen", [1.0 / max(1, len(sentences))] * len(sentences)


PEOPLE, PLACES = ("Mary", "John", "Sandra", "Daniel"), ("kitchen", "garden", "office", "hallway")
VERBS = ("moved to", "went to", "travelled to", "journeyed to")


def toy_questions(count: int, seed: int = 0) -> list[StoryExample]:
    """Questions of task 1, each about a story of its own of six sentences."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        draws = torch.randint(0, 4, (6, 3), generator=generator).tolist()
        sentences = tuple(f"{PEOPLE[who]} {VERBS[how]} the {PLACES[where]}." for who, how, where in draws)
        at = int(torch.randint(0, 6, (), generator=generator))
        known = derive(sentences, question := f"Where is {PEOPLE[draws[at][0]]}?")
        found.append(StoryExample(sentences, question, known.answer, known.supporting, "qa1"))
    return found


def toy_gifts(count: int, seed: int = 0) -> list[StoryExample]:
    """Questions of task 5 whose answer is a name, each about a story of its own of four sentences."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        giver, taker, third = (PEOPLE[at] for at in torch.randperm(4, generator=generator)[:3].tolist())
        thing = ("milk", "apple", "football")[int(torch.randint(0, 3, (), generator=generator))]
        where = (PLACES[at] for at in torch.randint(0, 4, (3,), generator=generator).tolist())
        moves = [f"{who} went to the {place}." for who, place in zip((giver, taker, third), where)]
        sentences = (*moves[:2], f"{giver} gave the {thing} to {taker}.", moves[2])
        question = f"Who gave the {thing} to {taker}?"
        found.append(StoryExample(sentences, question, giver, (2,), "qa5"))
    return found


def toy_words(asked: list[StoryExample]) -> tuple[str, ...]:
    """The vocabulary of the questions, the empty word first."""
    texts = {text for each in asked for text in (*each.sentences, each.question, each.answer)}
    return ("", *sorted({word for text in texts for word in words_of(text)}))


WORDS = (
    "", "bathroom", "garden", "hallway", "in", "is", "john", "kitchen", "mary", "sandra", "the", "to", "went", "where",
)  # fmt: skip
TOLD = ("Mary went to the garden.", "John went to the hallway.", "Mary went to the kitchen.")


def save_story_model(
    folder: Path,
    architecture: str = "memn2n",
    *,
    words: Sequence[str] = WORDS,
    data: Mapping[str, Any] | None = None,
    **config: Any,
) -> Path:
    """A model with random weights, by default of :data:`WORDS`, with a memory of 6 sentences."""
    spec = model_spec(architecture)
    fields = spec.load().Config.__dataclass_fields__
    known = {"words": len(words), "memory": 6, "longest": 6, "times": 6}
    torch.manual_seed(0)
    settings = {**{key: value for key, value in known.items() if key in fields}, **config}
    model = spec.build(settings)
    facts = ModelFacts(
        architecture=architecture,
        model=to_dict(model.config),
        family="story",
        queries=(),
        answers=tuple(words),
        preprocessing=None,
        name=f"tiny-{architecture}",
        data=dict(data or {"name": "stories", "tasks": [1]}),
    )
    save_model(model, folder, facts)
    return folder
