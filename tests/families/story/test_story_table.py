"""Stories of one's own as JSON lines: what a line may hold, and lines that are left out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from saccade.errors import DataError
from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.files import StoryTable, read_story_jsonl

GOOD = {"story": ["Mary got the milk.", "Mary left."], "question": "What has Mary?", "answer": "milk"}


def written(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "own.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def table(tmp_path: Path, *rows: Any) -> StoryTable:
    return read_story_jsonl(written(tmp_path, *rows))


def test_a_whole_line(tmp_path):
    row = GOOD | {"supporting": [1, 0], "split": "val", "task": "qa1", "more": 1}
    (read,) = table(tmp_path, row).rows
    assert read.split == "val"
    assert read.asked.sentences == ("Mary got the milk.", "Mary left.")
    assert (read.asked.question, read.asked.answer, read.asked.supporting) == ("What has Mary?", "milk", (1, 0))
    assert (read.asked.task, read.asked.where) == ("qa1", "own.jsonl, line 1")


@pytest.mark.parametrize(
    ("change", "attribute", "value"),
    [
        ({"story": "Mary got the milk. Mary left."}, "sentences", ("Mary got the milk.", "Mary left.")),
        ({"story": "Mary got the milk\nMary left"}, "sentences", ("Mary got the milk", "Mary left")),
        ({"story": []}, "sentences", ()),
        ({"story": ""}, "sentences", ()),
        ({"answer": ["milk", "apple"]}, "answer", "milk,apple"),
        ({"answer": 2}, "answer", "2"),
        ({"supporting": 1}, "supporting", (1,)),
        ({"supporting": []}, "supporting", ()),
        ({"task": None}, "task", ""),
    ],
)
def test_other_ways_to_write_it(tmp_path, change, attribute, value):
    (row,) = table(tmp_path, GOOD | change).rows
    assert getattr(row.asked, attribute) == value


@pytest.mark.parametrize(
    ("change", "skipped"),
    [
        ({"story": None}, "no story: line 2"),
        ({"story": 3}, "no story: line 2, found 3"),
        ({"story": ["Mary left.", " . "]}, "sentence without a word: line 2, sentence 1 is ' . '"),
        ({"story": ["Mary left.", 7]}, "sentence without a word: line 2, sentence 1 is '7'"),
        ({"question": ""}, "empty question: line 2"),
        ({"question": "?"}, "question without a word: line 2, '?'"),
        ({"answer": []}, "answer without a word: line 2, ''"),
        ({"answer": None}, "no answer: line 2"),
        ({"answer": {"a": 1}}, 'no answer: line 2, found {"a": 1}'),
        ({"supporting": [2]}, "unusable supporting: line 2, [2]; sentences are numbered 0 to 1"),
        ({"supporting": [-1]}, "unusable supporting: line 2, [-1]; sentences are numbered 0 to 1"),
        ({"supporting": [True]}, "unusable supporting: line 2, [True]; sentences are numbered 0 to 1"),
        ({"supporting": "0"}, "unusable supporting: line 2, 0; sentences are numbered 0 to 1"),
        ({"story": [], "supporting": [0]}, "unusable supporting: line 2, [0]; sentences are numbered none, the story"),
    ],
)
def test_lines_that_are_left_out(tmp_path, change, skipped):
    found = table(tmp_path, GOOD, GOOD | change, GOOD)
    assert len(found.rows) == 2
    assert len(found.skipped) == 1
    assert found.skipped[0].startswith(skipped)


def test_what_is_no_json(tmp_path):
    assert table(tmp_path, GOOD, "Mary left.", "", "[1]").skipped == (
        "not a JSON object: line 2",
        "not a JSON object: line 4",
    )
    with pytest.raises(DataError, match=r"no question can be used; left out 1 × not a JSON object \(line 1\)"):
        table(tmp_path, "Mary left.")
    with pytest.raises(DataError, match="it is empty; add a line"):
        table(tmp_path)
    path = tmp_path / "own.jsonl"
    path.write_bytes('{"story": "Zoë"}'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_story_jsonl(path)


def test_splits(tmp_path):
    rows = [GOOD | {"story": [f"Mary got {number} apples."]} for number in range(200)]
    found = table(tmp_path, *rows, *(row | {"question": "Who has apples?"} for row in rows))
    assert 100 < found.count("train") / 2 < 180
    assert found.count("val") > 0
    assert found.count("train") + found.count("val") + found.count("test") == 400
    for first, second in zip(found.rows[:200], found.rows[200:], strict=True):
        assert first.split == second.split  # one story, two questions
    assert [asked.where for asked in found.asked("val")] == [
        row.asked.where for row in found.rows if row.split == "val"
    ]
    assert found.summary().startswith(f"{found.name}: 400 questions about 200 stories (train ")
    together = table(tmp_path, *(row | {"group": "one"} for row in rows))
    assert len({row.split for row in together.rows}) == 1


def test_splits_that_are_wrong(tmp_path):
    found = table(tmp_path, GOOD | {"split": "train"}, GOOD | {"split": "exam"}, GOOD)
    assert found.skipped == ("unknown split: line 2, 'exam' is none of train, val, test", "no split: line 3")
    torn = (
        re.escape("1 question in more than one split") + ".*" + re.escape("line 1 (train) and own.jsonl, line 2 (test)")
    )
    with pytest.raises(DataError, match=torn):
        table(tmp_path, GOOD | {"split": "train"}, GOOD | {"split": "test"})


def test_a_split_without_a_question_is_told_after_another_was_read(tmp_path: Path) -> None:
    """All splits are read together: that 'train' was asked for first must not hide that 'val' is empty."""
    line = {"story": ["Ann is in the hall."], "question": "Where is Ann?", "answer": "hall", "split": "train"}
    (tmp_path / "own.jsonl").write_text(json.dumps(line) + "\n")
    source = StorySource(StoryDataConfig(name=f"jsonl:{tmp_path / 'own.jsonl'}"))
    assert len(source.questions("train")) == 1
    with pytest.raises(DataError, match=r"no question in split 'val'; add other stories, or say with 'split'"):
        source.questions("val")
