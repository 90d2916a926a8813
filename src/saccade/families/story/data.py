"""The settings of stories, and the questions of each split: generated, from bAbI, or from your own table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Literal

from saccade.config import Portion, Seed, Share, Within
from saccade.data.examples import Example
from saccade.data.tables.doubts import summarised
from saccade.data.tables.references import split_reference
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.families.story.files import Size, babi_files, read_babi, read_story_jsonl
from saccade.families.story.reading import StoryItem
from saccade.families.story.stories import StoryExample, story_words
from saccade.families.story.world import TASKS, generate_story
from saccade.models.facts import ModelFacts

READERS = ("babi", "jsonl")
GENERATED = "stories"
_MANY: dict[Size, int] = {"1k": 1000, "10k": 10_000}
SplitName = Literal["train", "val", "test"]


@dataclass(frozen=True)
class StoryDataConfig:
    """Which stories, and how much of them is kept."""

    name: str = GENERATED
    """``stories``, which are generated, ``babi:PATH`` or ``jsonl:PATH``."""
    tasks: Annotated[tuple[int, ...], Within(1, 20)] = ()
    """Numbers of the bAbI tasks that are asked; none: all that there are."""
    size: Size = "1k"
    """For bAbI: 1,000 or 10,000 training questions of each task."""
    questions: Annotated[int, Within(10, 1_000_000)] = 1000
    """For generated stories: training questions of each task. There are a tenth as many for validation, and as many
    for testing, but at most 1,000."""
    words: Literal["babi", "wide"] = "babi"
    """For generated stories: the words of bAbI, or more."""
    seed: Seed = 0
    """Seed of generated stories."""
    validation: Annotated[float, Within(0, 1, above=True, below=True)] = 0.1
    """Share of the training stories of files that are kept for validation."""
    memory: Annotated[int, Within(1, 1000)] = 50
    """Sentences of a story that are kept: the last so many."""
    fill: bool = False
    """For bAbI: generate the training questions of tasks whose file is missing, as the 10k file of task 3 may be."""
    noise: Share = 0.0
    """While training, the largest share of blank times between sentences (random noise)."""
    leave_out: Portion = 0.0
    """While training, the share of sentences that are left out, drawn anew each time, of those that the answer does not
    need. Supporting facts say which; the stories of questions without any stay whole."""

    @property
    def is_generated(self) -> bool:
        """Whether nothing is read."""
        return self.name == GENERATED


class StorySource:
    """The questions of every split of one data set, read or made when they are first asked for."""

    def __init__(self, config: StoryDataConfig) -> None:
        self.config = config
        self._read: dict[str, list[StoryExample]] = {}
        self.summary = ""
        """What a table of one's own holds, and which of its lines were left out; known once it was read."""

    def questions(self, split: SplitName) -> list[StoryExample]:
        """All questions of a split."""
        if split not in self._read:
            self._read |= self._load(split)
        if not self._read[split]:
            _, *left_out = self.summary.splitlines() or [""]
            advice = ["add other stories, or say with 'split' where each belongs"] if self.summary else []
            raise DataError("; ".join([f"{self.config.name}: no question in split '{split}'", *left_out, *advice]))
        return self._read[split]

    def words(self, *, by_word: bool) -> tuple[str, ...]:
        """The vocabulary of train and val, the empty word first.

        Args:
            by_word: only single words; otherwise an answer of several words is one entry too.
        """
        learned = [*self.questions("train"), *self.questions("val")]
        return story_words(learned, "split" if by_word else "joined")

    def _load(self, split: SplitName) -> dict[str, list[StoryExample]]:
        if self.config.is_generated:
            return {split: generated(self.config, split)}
        reader, path = split_reference(self.config.name, READERS)
        if reader == "babi":
            if split == "test":
                return {"test": babi_questions(path, self.config, "test")}
            train, val = held_out(babi_questions(path, self.config, "train"), self.config.validation)
            return {"train": train, "val": val}
        table = read_story_jsonl(path)
        left_out = [f"left out: {summarised(table.skipped)}"] if table.skipped else []
        self.summary = "\n".join([table.summary(), *left_out])
        return {name: table.asked(name) for name in ("train", "val", "test")}


def babi_questions(root: Path, config: StoryDataConfig, split: str) -> list[StoryExample]:
    """Questions of all wanted tasks of bAbI."""
    files = babi_files(root, config.size)
    wanted = [f"qa{task}" for task in config.tasks] or list(files)
    found: list[StoryExample] = []
    for task in wanted:
        if split in files.get(task, {}):
            found += read_babi(files[task][split], task)
        elif config.fill and split == "train":
            found += _told(int(task.removeprefix("qa")), config, _MANY[config.size], range(1 << 30))
        elif config.tasks:
            there = ", ".join(name for name, have in files.items() if split in have)
            raise DataError(
                f"{config.name}: no {split} file of {task} ({config.size}); there are {there}; "
                "set data.fill=true to generate its training questions"
            )
    return found


def held_out(asked: Sequence[StoryExample], share: float) -> tuple[list[StoryExample], list[StoryExample]]:
    """Training and validation questions: of each task the last ``share`` of its stories is held out, whole stories."""
    train: list[StoryExample] = []
    val: list[StoryExample] = []
    for task in dict.fromkeys(each.task for each in asked):
        own = [each for each in asked if each.task == task]
        cut = round(len(own) * (1 - share))
        while 0 < cut < len(own) and own[cut].sentences[:1] and _same_story(own[cut - 1], own[cut]):
            cut += 1
        train += own[:cut]
        val += own[cut:]
    return train, val


def _same_story(before: StoryExample, after: StoryExample) -> bool:
    return after.sentences[: len(before.sentences)] == before.sentences


def generated(config: StoryDataConfig, split: SplitName) -> list[StoryExample]:
    """Questions about generated stories."""
    many = {"train": config.questions, "val": max(1, config.questions // 10), "test": min(1000, config.questions)}
    first = {"train": 0, "val": 1, "test": 2}[split]  # train, val and test take stories in turn
    tasks = config.tasks or tuple(TASKS)
    return [each for task in tasks for each in _told(task, config, many[split], range(first, 1 << 30, 3))]


def _told(task: int, config: StoryDataConfig, many: int, indices: Iterable[int]) -> list[StoryExample]:
    """The first ``many`` questions about stories ``indices`` of a task."""
    found: list[StoryExample] = []
    for index in indices:
        found += generate_story(task, config.seed, index, words=config.words)
        if len(found) >= many:
            break
    return found[:many]


def open_split(
    settings: Mapping[str, object],
    split: Split,
    *,
    facts: ModelFacts | None = None,
    count: int | None = None,
    progress: Progress | None = None,
) -> OpenedSplit:
    """The questions of a split, one of each task in turn; see :class:`saccade.families.splits.OpenSplit`."""
    asked = StorySource(config_of(StoryDataConfig, settings)).questions(split)
    tasks = {each.task for each in asked}
    about = f" of {len(tasks)} tasks" if len(tasks) > 1 else ""
    return OpenedSplit(
        lambda many: [example_of(each) for each in in_turn(asked)[:many]], f"{len(asked):,} questions{about}"
    )


def example_of(asked: StoryExample) -> Example:
    """One question as a person sees it; the story knows which of its sentences the answer needs."""
    item = StoryItem(asked.sentences, asked.where or "story", supporting=asked.supporting)
    return Example(item, asked.answer, (), asked.question)


def in_turn(asked: Sequence[StoryExample]) -> list[StoryExample]:
    """The first question of every task, then the second of every task, and so on."""
    by_task: dict[str, list[StoryExample]] = {}
    for each in asked:
        by_task.setdefault(each.task, []).append(each)
    return [each for each in chain.from_iterable(zip_longest(*by_task.values())) if each is not None]
