"""Words that differ in spelling alone are told, not changed; words that merely resemble each other are not."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from saccade.data.tables.spellings import spelt_alike, warn_of_spellings
from saccade.families.multiset.readers import read_multisets
from saccade.families.question.readers import read_questions


@pytest.mark.parametrize(
    "group", [["Cup", "cup"], ["CUP", "Cup", "cup"], ["tea  cup", "tea cup", "tea_cup"], ["e\u0301te", "\u00e9te"]]
)
def test_spellings_of_one_word_stand_together(group: list[str]) -> None:
    assert spelt_alike([*reversed(group), "plate", "cups", "tea-cup"]) == [group]


def test_different_words_are_nobodys_business() -> None:
    words = ["cup", "cups", "c u p", "7", "07"]
    assert spelt_alike(words) == []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_spellings("csv:t.csv", words, "labels")
    assert told == []


def test_of_many_the_first_are_named() -> None:
    words = [spelt for letter in "abcd" for spelt in (letter, letter.upper())]
    with pytest.warns(UserWarning, match=r"labels that differ .* 'A', 'a'; 'B', 'b'; 'C', 'c'; …; spell"):
        warn_of_spellings("csv:t.csv", words, "labels")


def pictures(folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.png").write_bytes(f"not decoded: {name}".encode())


def test_labels_of_a_table_stay_as_they_are_and_are_told(tmp_path: Path) -> None:
    pictures(tmp_path)
    (tmp_path / "t.csv").write_text("image,labels,split\na.png,cup; Cup,train\nb.png,plate,train\n")
    with pytest.warns(UserWarning, match="labels that differ in spelling alone are learnt as different ones: 'Cup', "):
        table = read_multisets(f"csv:{tmp_path / 't.csv'}")
    assert table.classes == ("Cup", "cup", "plate")


def test_answers_of_questions_too(tmp_path: Path) -> None:
    pictures(tmp_path)
    (tmp_path / "t.csv").write_text("image,query,label,split\na.png,what,cup,train\nb.png,what,Cup,train\n")
    with pytest.warns(UserWarning, match="answers that differ in spelling alone"):
        assert read_questions(f"csv:{tmp_path / 't.csv'}").answers == ("Cup", "cup")
