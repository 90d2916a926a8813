"""Stories with questions in files: those of bAbI, and your own CSV or JSON Lines.

bAbI v1.2, the twenty question answering tasks of Weston et al. (2015), in their official layout.

Below the folder that the archive unpacks to::

    en/qa1_single-supporting-fact_train.txt        1,000 questions of each task
    en/qa1_single-supporting-fact_test.txt         1,000
    en-10k/qa1_single-supporting-fact_train.txt    10,000
    en-10k/qa1_single-supporting-fact_test.txt     the same 1,000; where they are missing, those of en are taken

A line is ``NUMBER SENTENCE``, or ``NUMBER QUESTION ⇥ ANSWER ⇥ SUPPORTING``. Number 1 starts a story. Supporting facts
are line numbers of the story. A question takes up a number too, so these are not yet indices into the sentences.

Your own stories as JSON lines, one question per line.

=========== ==========================================================================================================
key          holds
=========== ==========================================================================================================
story        a list of sentences; or one text, which is cut at line ends and sentence ends; it may be empty
question     a question
answer       a word; or several, as ``"apple,milk"`` or as a list
supporting   optional: the sentences that the answer follows from, a list of numbers counted from 0
split        optional: train, val or test; without it each story falls into one by itself
group        optional: stories that belong together, such as one that grows from question to question; they fall into
             one split
task         optional: a name; scores are given for each
=========== ==========================================================================================================

Other keys are ignored. Unusable lines are left out and reported in ``skipped``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from saccade.data.tables.doubts import check_usable, first_few, pluralise
from saccade.data.tables.rows import Cells, UnusableRowError, group_and_split, is_blank, jsonl_rows, text_in
from saccade.data.tables.splits import split_sizes
from saccade.errors import DataError
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.text import cut_sentences, read_utf8

Size = Literal["1k", "10k"]

_FOLDERS: dict[Size, tuple[str, ...]] = {"1k": ("en",), "10k": ("en-10k", "en")}
"""Where the training questions of a size are; the second folder gives test files only."""
_FILE = re.compile(r"(qa([1-9][0-9]?))(?:_.+)?_(train|test)\.txt")  # en-valid has qa1_train.txt
_ARCHIVE = "tasks_1-20_v1-2"


def babi_files(root: Path, size: Size) -> dict[str, dict[str, Path]]:
    """The files of each task: ``{"qa1": {"train": PATH, "test": PATH}, …}``, by the numbers of the tasks.

    A file that is not there has no entry. Published copies lack some: the 10k training file of task 3 is one.

    Args:
        root: the unpacked folder, the folder that it is in, or a folder that holds the files themselves (such as
            ``en`` or ``hn-10k``).
        size: training questions of a task; it chooses between ``en`` and ``en-10k``.

    Raises:
        DataError: no file of bAbI is there.
    """
    if not root.is_dir():
        packed = "it is a file: unpack it and give the folder" if root.is_file() else "no such folder; check the path"
        raise DataError(f"babi:{root}: {packed}")
    found: dict[int, dict[str, Path]] = {}
    for rank, folder in enumerate(_folders(root, size)):
        for path in sorted(folder.glob("qa*.txt")):
            match = _FILE.fullmatch(path.name)
            if match and (rank == 0 or match[3] == "test"):
                found.setdefault(int(match[2]), {}).setdefault(match[3], path)
    if not found:
        names = ", ".join(sorted(path.name for path in root.iterdir())[:5]) or "nothing"
        raise DataError(
            f"babi:{root}: no files {_FOLDERS[size][0]}/qa1_…_train.txt; found {names}; "
            f"give the folder {_ARCHIVE} of the unpacked archive"
        )
    return {f"qa{number}": found[number] for number in sorted(found)}


def _folders(root: Path, size: Size) -> list[Path]:
    """Folders with files of ``size``, the one with its training files first."""
    if any(_FILE.fullmatch(path.name) for path in root.glob("qa*.txt")):
        names = {name for names in _FOLDERS.values() for name in names}
        if root.resolve().name not in names:
            return [root]  # another language, or a folder of the user's own
        root = root.resolve().parent
    if not any((root / name).is_dir() for name in _FOLDERS[size]):
        root = root / _ARCHIVE
    return [root / name for name in _FOLDERS[size]]


def read_babi(path: Path, task: str) -> list[StoryExample]:
    """All questions of one file, in its order.

    Args:
        path: a file of the official form.
        task: its name, for example ``qa1``; each question carries it.

    Raises:
        DataError: the file cannot be read, holds no question, or has a line of another form, which is named.
    """
    asked: list[StoryExample] = []
    told: list[str] = []
    place: dict[int, int] = {}  # line number of the story → index of its sentence
    shared: dict[str, str] = {}  # equal sentences are one string
    last = 0
    for at, line in enumerate(read_utf8(path).split("\n"), start=1):
        if not line.strip():
            continue
        head, _, text = line.partition(" ")
        number = int(head) if head.isascii() and head.isdigit() and len(head) < 10 else 0
        if not number:
            raise _malformed(path, at, f"it must start with a line number and a space, found '{line[:40]}'")
        if number == 1:
            told, place = [], {}
        elif number <= last or not last:
            raise _malformed(path, at, f"number {number} follows {last}; numbers rise, and 1 starts a story")
        last = number
        if "\t" in text:
            question, answer, supporting = _question(path, at, text, place)
            question, answer = shared.setdefault(question, question), shared.setdefault(answer, answer)
            asked.append(StoryExample(tuple(told), question, answer, supporting, task, f"{path.name}, line {at}"))
        else:
            sentence = text.strip()
            if not sentence:
                raise _malformed(path, at, "no sentence after the number")
            place[number] = len(told)
            told.append(shared.setdefault(sentence, sentence))
    if not asked:
        raise DataError(f"{path}: no question; a question has a tab before its answer: NUMBER QUESTION, tab, ANSWER")
    return asked


def _question(path: Path, at: int, text: str, place: dict[int, int]) -> tuple[str, str, tuple[int, ...]]:
    """Question, answer and the indices of supporting sentences."""
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) > 3 or not fields[0] or not fields[1]:
        raise _malformed(path, at, f"not QUESTION, tab, ANSWER, tab, SUPPORTING: '{text[:60]}'")
    numbers = fields[2].split() if len(fields) == 3 else ()
    try:
        return fields[0], fields[1], tuple([place[int(number)] for number in numbers])
    except (ValueError, KeyError) as error:
        raise _malformed(
            path, at, f"supporting facts '{fields[2]}' must be numbers of sentences that this story told before"
        ) from error


def _malformed(path: Path, at: int, why: str) -> DataError:
    return DataError(f"{path}, line {at}: {why}")


_NAMED = 3  # lines that a message names


class StoryRow(NamedTuple):
    """One line of the table."""

    asked: StoryExample
    split: str
    """train, val or test."""


@dataclass(frozen=True)
class StoryTable:
    """All questions of a file."""

    name: str
    """READER:PATH."""
    rows: tuple[StoryRow, ...]
    skipped: tuple[str, ...] = ()
    """Lines left out, each with its reason: ``REASON: WHERE``."""

    def count(self, split: str) -> int:
        """Questions in ``split``."""
        return sum(row.split == split for row in self.rows)

    def asked(self, split: str) -> list[StoryExample]:
        """The questions of ``split``, in the order of the file."""
        return [row.asked for row in self.rows if row.split == split]

    def summary(self) -> str:
        """What the table holds, in one line."""
        stories = pluralise(len({row.asked.sentences for row in self.rows}), "story", "stories")
        return f"{self.name}: {pluralise(len(self.rows), 'question')} about {stories} ({split_sizes(self.count)})"


def read_story_jsonl(path: Path) -> StoryTable:
    """The questions of a file with one JSON object in each line, in UTF-8.

    Raises:
        DataError: the file cannot be read, no line can be used, or a question is in two splits.
    """
    name, (lines, skipped) = f"jsonl:{path}", jsonl_rows(path)
    if not lines and not skipped:
        raise DataError(
            f'{name}: it is empty; add a line {{"story": [], "question": "", "answer": ""}} for each question'
        )
    has_split = any("split" in cells for _, cells in lines)
    rows = []
    for line, cells in lines:
        try:
            rows.append(_row(cells, has_split, f"{path.name}, line {line}"))
        except UnusableRowError as error:
            skipped.append(error.at(f"line {line}"))
    check_usable(name, rows, skipped, strict=False, thing="question")
    _refuse_torn(name, rows)
    return StoryTable(name, tuple(rows), tuple(skipped))


def _row(cells: Cells, has_split: bool, where: str) -> StoryRow:
    sentences = _sentences(cells)
    question = text_in(cells, "question")
    if not words_of(question):
        raise UnusableRowError("question without a word", f"'{question[:40]}'")
    _, split = group_and_split(cells, "\n".join(sentences), has_split)
    task = "" if is_blank(cells.get("task")) else text_in(cells, "task")
    return StoryRow(
        StoryExample(sentences, question, _answer(cells), _supporting(cells, len(sentences)), task, where), split
    )


def _sentences(cells: Cells) -> tuple[str, ...]:
    story = cells.get("story")
    if isinstance(story, str):
        return tuple(cut_sentences(story))
    if not isinstance(story, list):
        raise UnusableRowError("no story", "" if story is None else f"found {str(story)[:40]}")
    for at, sentence in enumerate(story):
        if not isinstance(sentence, str) or not words_of(sentence):
            raise UnusableRowError("sentence without a word", f"sentence {at} is {str(sentence)[:40]!r}")
    return tuple(" ".join(sentence.split()) for sentence in story)


def _answer(cells: Cells) -> str:
    answer = cells.get("answer")
    if isinstance(answer, list) and all(isinstance(word, (str, int, float)) for word in answer):
        text = ",".join(str(word).strip() for word in answer)
    else:
        text = text_in(cells, "answer")
    if not words_of(text):
        raise UnusableRowError("answer without a word", f"'{text[:40]}'")
    return text


def _supporting(cells: Cells, sentences: int) -> tuple[int, ...]:
    supporting = cells.get("supporting")
    if supporting is None:
        return ()
    numbers = supporting if isinstance(supporting, list) else [supporting]
    for number in numbers:
        if type(number) is not int or not 0 <= number < sentences:
            told = f"0 to {sentences - 1}" if sentences else "none, the story is empty"
            raise UnusableRowError("unusable supporting", f"{str(supporting)[:40]}; sentences are numbered {told}")
    return tuple(numbers)


def _refuse_torn(name: str, rows: Iterable[StoryRow]) -> None:
    """Refuse a table with the same question about the same story in two splits."""
    first: dict[tuple[tuple[str, ...], str], StoryRow] = {}
    torn = []
    for row in rows:
        before = first.setdefault((row.asked.sentences, row.asked.question), row)
        if before.split != row.split:
            torn.append(f"{before.asked.where} ({before.split}) and {row.asked.where} ({row.split})")
    if torn:
        raise DataError(
            f"{name}: {pluralise(len(torn), 'question')} in more than one split, so a score would be on training "
            f"stories: {first_few(torn, _NAMED)}; give each story one split, or leave out the key 'split'"
        )
