"""What is said about tables: numbers of things, rows that were left out, words that differ in spelling alone."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from saccade.data.tables.wording import (
    check_usable,
    first_few,
    pluralise,
    spelt_alike,
    summarised,
    warn_of_spellings,
)
from saccade.errors import DataError
from saccade.families.multiset.readers import read_multisets
from saccade.families.question.readers import read_questions

LEFT_OUT = ("empty label: line 2", "empty label: line 3")


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (0, ("picture",), "0 pictures"),
        (1, ("picture",), "1 picture"),
        (28_463, ("picture",), "28,463 pictures"),
        (1, ("query", "queries"), "1 query"),
        (2, ("query", "queries"), "2 queries"),
    ],
)
def test_so_many_things(number, words, said):
    assert pluralise(number, *words) == said


@pytest.mark.parametrize(("names", "said"), [("", ""), ("a", "a"), ("ab", "a; b"), ("abc", "a; b; …")])
def test_a_list_names_its_first_and_says_that_there_are_more(names, said):
    assert first_few(list(names), 2) == said


@pytest.mark.parametrize("strict", [False, True])
def test_a_table_with_nothing_to_use_is_refused_strict_or_not(strict):
    with pytest.raises(DataError, match=r"^csv:x: it is empty; add a row for each picture$"):
        check_usable("csv:x", [], (), strict=strict)
    with pytest.raises(DataError, match=r"^csv:x: no caption can be used; left out 2 × empty label \(line 2; line 3\)"):
        check_usable("csv:x", [], LEFT_OUT, strict=strict, thing="caption")


def test_what_is_left_out_beside_something_to_use_is_an_error_for_the_strict_alone():
    check_usable("csv:x", ["row"], LEFT_OUT, strict=False)
    check_usable("csv:x", ["row"], (), strict=True)
    with pytest.raises(DataError, match=r"^csv:x: strict, and 2 rows cannot be used: 2 × empty label"):
        check_usable("csv:x", ["row"], LEFT_OUT, strict=True)
    with pytest.raises(DataError, match=r"strict, and 1 caption cannot be used"):
        check_usable("csv:x", ["row"], LEFT_OUT[:1], strict=True, thing="caption")


def test_a_summary_counts_every_reason_and_names_three():
    left_out = ["duplicate: line 7"] + [f"no such picture: line {n}, {n}.png" for n in range(2, 1_302)]
    assert summarised(left_out) == (
        "1,300 × no such picture (line 2, 2.png; line 3, 3.png; line 4, 4.png; …), 1 × duplicate (line 7)"
    )


def test_of_nothing_there_is_no_summary():
    assert summarised([]) == ""


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
    with pytest.warns(UserWarning, match="labels that differ in spelling alone count as different ones: 'Cup', "):
        table = read_multisets(f"csv:{tmp_path / 't.csv'}")
    assert table.classes == ("Cup", "cup", "plate")


def test_answers_of_questions_too(tmp_path: Path) -> None:
    pictures(tmp_path)
    (tmp_path / "t.csv").write_text("image,query,label,split\na.png,what,cup,train\nb.png,what,Cup,train\n")
    with pytest.warns(UserWarning, match="answers that differ in spelling alone"):
        assert read_questions(f"csv:{tmp_path / 't.csv'}").answers == ("Cup", "cup")
