"""Your own stories as JSON lines, one question per line.

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

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from saccade.data.tables.doubts import check_usable, first_few, pluralise
from saccade.data.tables.rows import Cells, UnusableRowError, group_and_split, is_blank, jsonl_rows, text_in
from saccade.data.tables.splits import split_sizes
from saccade.errors import DataError
from saccade.families.story.readers.text import cut_sentences
from saccade.families.story.stories import StoryExample, words_of

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
