"""The settings of stories, and the questions of each split: generated, from bAbI, or from your own table.

bAbI v1.2 holds the twenty tasks of Weston et al. (2015). Below the folder that its archive unpacks to::

    en/qa1_single-supporting-fact_train.txt        1,000 questions of each task
    en/qa1_single-supporting-fact_test.txt         1,000
    en-10k/qa1_single-supporting-fact_train.txt    10,000
    en-10k/qa1_single-supporting-fact_test.txt     the same 1,000; where they are missing, those of en are taken

A line is ``NUMBER SENTENCE``, or ``NUMBER QUESTION ⇥ ANSWER ⇥ SUPPORTING``. Number 1 starts a story. Supporting facts
are line numbers of the story, in which questions count too.

Your own stories are JSON lines, one question per line, with ``story`` (a list of sentences, or one text, which is cut
at line ends and sentence ends; it may be empty), ``question``, ``answer`` (a word, or several as ``"apple,milk"`` or a
list), and perhaps ``supporting`` (numbers of sentences, from 0), ``split``, ``group`` and ``task``. Other keys are
ignored. Without ``split`` each story falls into a split by itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Annotated, Literal

from saccade.config import Portion, Seed, Share, Within
from saccade.data.examples import SPLITS, Example, split_sizes
from saccade.data.tables.doubts import check_usable, first_few, pluralise, summarised
from saccade.data.tables.readers import split_reference
from saccade.data.tables.rows import Cells, UnusableRowError, group_and_split, is_blank, jsonl_rows, text_in
from saccade.errors import DataError
from saccade.families.story.reading import StoryItem
from saccade.families.story.stories import StoryExample, cut_sentences, words_of
from saccade.families.story.world import TASKS, generate_story
from saccade.models.facts import ModelFacts

READERS = ("babi", "jsonl")
GENERATED = "stories"
Size = Literal["1k", "10k"]
_MANY: dict[Size, int] = {"1k": 1000, "10k": 10_000}
# Folders of each size; the second has test files only.
_FOLDERS: dict[Size, tuple[str, ...]] = {"1k": ("en",), "10k": ("en-10k", "en")}
_ARCHIVE = "tasks_1-20_v1-2"
_FILE = re.compile(r"(qa([1-9][0-9]?))(?:_.+)?_(train|test)\.txt")  # en-valid has qa1_train.txt
_TEXT = r"[^\S\t]*([^\t]*[^\t\s])[^\S\t]*"
_LINE = re.compile(rf"([0-9]{{1,9}}) {_TEXT}(?:\t{_TEXT}(?:\t([0-9\s]*))?)?")

Splits = dict[str, list[StoryExample]]  # The questions of each split


@dataclass(frozen=True)
class StoryDataConfig:
    """Which stories, and how much of them is kept."""

    name: str = GENERATED  # ``stories``, which are generated, ``babi:PATH`` or ``jsonl:PATH``.
    tasks: Annotated[tuple[int, ...], Within(1, 20)] = ()  # Numbers of the bAbI tasks; none: all.
    size: Size = "1k"  # For bAbI: 1,000 or 10,000 training questions of each task.
    questions: Annotated[int, Within(10, 1_000_000)] = 1000
    """For generated stories: training questions per task. Validation has a tenth as many, testing as many, but at most
    1,000."""
    words: Literal["babi", "wide"] = "babi"  # For generated stories: the words of bAbI, or more.
    seed: Seed = 0  # Seed of generated stories.
    validation: Annotated[float, Within(0, 1, above=True, below=True)] = 0.1
    """Validation share of the training stories of files."""
    memory: Annotated[int, Within(1, 1000)] = 50  # Last sentences of a story that are kept.
    fill: bool = False  # For bAbI: generate training questions for missing files, such as the 10k file of task 3.
    noise: Share = 0.0  # In training, the largest share of blank times between sentences (random noise).
    leave_out: Portion = 0.0
    """In training, the share of unneeded sentences that are left out, drawn anew each time. Supporting facts say which
    are needed; stories without any stay whole."""

    @property
    def is_generated(self) -> bool:
        """Whether nothing is read."""
        return self.name == GENERATED


class StorySource:
    """The questions of every split of one data set, loaded when first needed."""

    def __init__(self, config: StoryDataConfig) -> None:
        self.config = config
        self._read: Splits = {}
        self.summary = ""  # One line about your own table, and lines left out; set once it was read

    def questions(self, split: str) -> list[StoryExample]:
        """All questions of a split."""
        if split not in self._read:
            self._read |= self._load(split)
        if not self._read[split]:
            _, *left_out = self.summary.splitlines() or [""]
            advice = ["add other stories, or say with 'split' where each belongs"] if self.summary else []
            raise DataError("; ".join([f"{self.config.name}: no question in split '{split}'", *left_out, *advice]))
        return self._read[split]

    def _load(self, split: str) -> Splits:
        config = self.config
        if config.is_generated:
            return {split: generated_split(config, split)}
        reader, path = split_reference(config.name, READERS)
        if reader == "jsonl":
            splits, self.summary = read_story_jsonl(path)
            return splits
        if split == "test":
            return {"test": babi_questions(path, config, "test")}
        train, val = held_out(babi_questions(path, config, "train"), config.validation)
        return {"train": train, "val": val}


@dataclass(frozen=True)
class AskedQuestions:
    """One split of questions, to score and show."""

    name: str  # Of the data
    questions: list[StoryExample]
    facts: ModelFacts | None = None  # Of the model that is asked

    def described(self) -> dict[str, object]:
        """The name of the data, or its reader."""
        return {"data": self.name.partition(":")[0]}

    def shown(self, count: int) -> list[Example]:
        """The first questions, of each task in turn."""
        turns = chain.from_iterable(zip_longest(*by_task(self.questions).values()))
        shown = []
        for example in [example for example in turns if example is not None][:count]:
            item = StoryItem(example.sentences, example.where or "story", supporting=example.supporting)
            shown.append(Example(item, example.answer, (), example.question))
        return shown


@lru_cache(maxsize=1)
def generated_split(config: StoryDataConfig, split: str) -> list[StoryExample]:
    """The questions of a split of generated stories; splits take stories in turn."""
    sizes = (config.questions, max(1, config.questions // 10), min(1000, config.questions))
    first, tasks = SPLITS.index(split), config.tasks or tuple(TASKS)
    return [example for task in tasks for example in generated(config, task, sizes[first], first, 3)]


def generated(config: StoryDataConfig, task: int, many: int, first: int = 0, every: int = 1) -> Iterator[StoryExample]:
    """The first ``many`` questions about every ``every``-th story of a task from ``first`` on."""
    stories = (generate_story(task, config.seed, at, config.words) for at in range(first, 1 << 30, every))
    return islice(chain.from_iterable(stories), many)


def babi_questions(root: Path, config: StoryDataConfig, part: str) -> list[StoryExample]:
    """Questions of the wanted bAbI tasks; ``part`` is train or test."""
    files = babi_files(root, config.size)
    questions: list[StoryExample] = []
    for task in [f"qa{task}" for task in config.tasks] or list(files):
        if part in files.get(task, {}):
            questions += read_babi(files[task][part], task)
        elif config.fill and part == "train":
            questions += generated(config, int(task.removeprefix("qa")), _MANY[config.size])
        elif config.tasks:
            there = ", ".join(name for name, parts in files.items() if part in parts)
            missing = f"no {part} file of {task} ({config.size}); there are {there}"
            raise DataError(f"{config.name}: {missing}; set data.fill=true to generate its training questions")
    return questions


def babi_files(root: Path, size: Size) -> dict[str, dict[str, Path]]:
    """The files of each task: ``{"qa1": {"train": PATH, "test": PATH}, …}``, by task number, those that there are.

    ``root`` is the unpacked folder, its parent, or a folder with the files themselves.
    """
    files: dict[int, dict[str, Path]] = {}
    for rank, folder in enumerate(_folders(root, size)):
        for path in sorted(folder.glob("qa*.txt")):
            match = _FILE.fullmatch(path.name)
            if match and (rank == 0 or match[3] == "test"):
                files.setdefault(int(match[2]), {}).setdefault(match[3], path)
    if not files:
        wanted = f"{_FOLDERS[size][0]}/qa1_…_train.txt"
        raise DataError(f"babi:{root}: no files {wanted} there; unpack the archive, and give its folder {_ARCHIVE}")
    return {f"qa{number}": files[number] for number in sorted(files)}


def _folders(root: Path, size: Size) -> list[Path]:
    if any(_FILE.fullmatch(path.name) for path in root.glob("qa*.txt")):
        if root.resolve().name not in ("en", "en-10k"):
            return [root]  # another language, or a folder of the user's own
        root = root.resolve().parent
    if not any((root / name).is_dir() for name in _FOLDERS[size]):
        root = root / _ARCHIVE
    return [root / name for name in _FOLDERS[size]]


def read_babi(path: Path, task: str) -> list[StoryExample]:
    """All questions of one file, in order, with the name of its ``task``, such as ``qa1``."""
    questions: list[StoryExample] = []
    sentences: list[str] = []
    places: dict[int, int] = {}  # line number of the story → index of its sentence
    last = 0
    for at, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        number, text, answer, numbers = match.groups() if match else ("0", "", None, None)
        if int(number) == 1:
            sentences, places = [], {}
        supporting = [places.get(int(part)) for part in (numbers or "").split()]
        if not (int(number) == 1 or 0 < last < int(number)) or None in supporting:
            wanted = "NUMBER SENTENCE, or NUMBER QUESTION, tab, ANSWER, tab, numbers of SENTENCES before it"
            raise DataError(f"{path}, line {at}: '{line[:60]}' is not {wanted}; numbers rise, and 1 starts a story")
        last = int(number)
        if answer is None:
            places[last] = len(sentences)
            sentences.append(sys.intern(text))  # a file has a few hundred different ones
        else:
            facts = tuple(place for place in supporting if place is not None)
            where = f"{path.name}, line {at}"
            questions.append(StoryExample(tuple(sentences), sys.intern(text), sys.intern(answer), facts, task, where))
    return questions


def held_out(examples: Sequence[StoryExample], share: float) -> tuple[list[StoryExample], list[StoryExample]]:
    """Training and validation questions: the last ``share`` of each task is held out, in whole stories."""
    train, val = list[StoryExample](), list[StoryExample]()
    for questions in by_task(examples).values():
        cut = round(len(questions) * (1 - share))
        while 0 < cut < len(questions) and questions[cut].sentences[:1] and questions[cut].goes_on(questions[cut - 1]):
            cut += 1
        train += questions[:cut]
        val += questions[cut:]
    return train, val


def by_task(examples: Iterable[StoryExample]) -> dict[str, list[StoryExample]]:
    """The questions of each task."""
    tasks: dict[str, list[StoryExample]] = {}
    for example in examples:
        tasks.setdefault(example.task, []).append(example)
    return tasks


def read_story_jsonl(path: Path) -> tuple[Splits, str]:
    """The questions of a JSON-lines file in UTF-8, and a summary of the file."""
    name, skipped = f"jsonl:{path}", list[str]()
    lines = list(jsonl_rows(path, skipped))
    has_split = any("split" in cells for _, cells in lines)
    splits: Splits = {split: [] for split in SPLITS}
    first: dict[tuple[tuple[str, ...], str], tuple[str, str]] = {}  # story and question → where, split
    torn = []
    for line, cells in lines:
        where = f"{path.name}, line {line}"
        try:
            example = _question_in(cells, where)
            _, split = group_and_split(cells, "\n".join(example.sentences), has_split)
        except UnusableRowError as error:
            skipped.append(error.at(f"line {line}"))
            continue
        splits[split].append(example)
        before = first.setdefault((example.sentences, example.question), (where, split))
        if before[1] != split:
            torn.append(f"{before[0]} ({before[1]}) and {where} ({split})")
    check_usable(name, first, skipped, strict=False, thing="question")
    if torn:
        named = f"{pluralise(len(torn), 'question')} in more than one split: {first_few(torn, 3)}"
        raise DataError(f"{name}: {named}; give each story one split, or leave out the key 'split'")
    stories = pluralise(len({sentences for sentences, _ in first}), "story", "stories")
    questions = pluralise(sum(map(len, splits.values())), "question")
    summary = f"{name}: {questions} about {stories} ({split_sizes(lambda split: len(splits[split]))})"
    return splits, summary + (f"\nleft out: {summarised(skipped)}" if skipped else "")


def _question_in(cells: Cells, where: str) -> StoryExample:
    story, answer, supporting = (cells.get(key) for key in ("story", "answer", "supporting"))
    if not isinstance(story, (str, list)):
        raise UnusableRowError("no story", "" if story is None else f"found {str(story)[:40]}")
    if isinstance(story, str):
        sentences = cut_sentences(story)
    else:
        sentences = [" ".join(_worded("sentence", text).split()) for text in story]
    if isinstance(answer, list) and all(isinstance(word, (str, int, float)) for word in answer):
        answer = ",".join(map(str, answer))
    numbers = supporting if isinstance(supporting, list) else [] if supporting is None else [supporting]
    if not all(type(number) is int and 0 <= number < len(sentences) for number in numbers):
        allowed = f"0 to {len(sentences) - 1}" if sentences else "none, the story is empty"
        raise UnusableRowError("unusable supporting", f"{str(supporting)[:40]}; sentences are numbered {allowed}")
    return StoryExample(
        tuple(sentences),
        _worded("question", text_in(cells, "question")),
        _worded("answer", text_in({"answer": answer}, "answer")),
        tuple(numbers),
        "" if is_blank(cells.get("task")) else text_in(cells, "task"),
        where,
    )


def _worded(what: str, text: object) -> str:
    if not isinstance(text, str) or not words_of(text):
        raise UnusableRowError(f"{what} without a word", f"'{str(text)[:40]}'")
    return text
