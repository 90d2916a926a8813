"""Tables of questions: whose words they have, and what is left out."""

import subprocess
import sys
from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.families.question.table import Question, make_table, with_known_words


def question(query: str = "crown", labels: tuple[str, ...] = ("red",), split: str = "train", **more) -> Question:
    return Question(Path("a.png"), query, labels, split, **more)


def found(*questions: Question) -> list[tuple[str, Question]]:
    return [(f"line {number}", each) for number, each in enumerate(questions, start=2)]


def test_words_are_those_of_train_in_alphabetical_order():
    rows = found(question("wing", ("white",)), question("back", ("black",)), question("back", ("white",), "val"))
    table = make_table("csv:x", rows, [], multi_label=False)
    assert (table.queries, table.answers) == (("back", "wing"), ("black", "white"))
    assert [table.count(split) for split in ("train", "val", "test")] == [2, 1, 0]
    assert table.skipped == ()


def test_words_never_seen_in_train_are_left_out_and_named():
    rows = found(
        question(), question("tail", split="test"), question(labels=("mauve",), split="val"), question(split="val")
    )
    table = make_table("csv:x", rows, ["empty label: line 9"], multi_label=False)
    assert [row.split for row in table.rows] == ["train", "val"]
    assert table.skipped == (
        "empty label: line 9",
        "query never seen in train: line 3, 'tail'",
        "label never seen in train: line 4, 'mauve'",
    )


def test_of_several_labels_the_known_ones_stay():
    rows, skipped = with_known_words(
        found(question(labels=("red", "mauve", "shiny"))), ["crown"], ["shiny", "red"], "new"
    )
    assert [row.labels for row in rows] == [("red", "shiny")]
    assert skipped == ["label new: line 2, 'mauve'"]


def test_a_table_without_train_has_all_its_words():
    table = make_table(
        "csv:x", found(question(split="test"), question("wing", ("blue",), "test")), [], multi_label=False
    )
    assert (table.queries, table.answers, len(table.rows)) == (("crown", "wing"), ("blue", "red"), 2)


def test_nothing_usable_and_strict_are_errors_that_say_why():
    with pytest.raises(DataError, match=r"csv:x: no row can be used; left out 2 × empty label \(line 2; line 3\)"):
        make_table("csv:x", [], ["empty label: line 2", "empty label: line 3"], multi_label=False)
    with pytest.raises(DataError, match=r"^csv:x: it is empty; add"):
        make_table("csv:x", [], [], multi_label=False)
    with pytest.raises(DataError, match=r"strict, and 1 row cannot be used: 1 × empty label"):
        make_table("csv:x", found(question()), ["empty label: line 2"], multi_label=False, strict=True)
    assert make_table("csv:x", found(question()), [], multi_label=False, strict=True).rows


def test_some_keeps_all_questions_about_the_first_pictures():
    rows = [
        Question(Path(f"{split}{n // 2}"), f"q{n % 2}", ("x",), split) for split in ("val", "train") for n in range(6)
    ]
    table = make_table("csv:x", found(*rows), [], multi_label=False).some("val", 2)
    assert [row.image.name for row in table.rows if row.split == "val"] == ["val0", "val0", "val1", "val1"]
    assert table.count("train") == 6


def test_tables_are_read_without_torch():
    code = "import sys\n"
    code += "from saccade.families.question.readers import READERS as r\nsys.exit('torch' in sys.modules or not r)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_words_that_only_a_model_knows_are_still_there_for_it():
    rows = found(question(), question(labels=("mauve",), split="test"))
    table = make_table("csv:x", rows, [], multi_label=False)
    assert [row.labels for row in table.as_found] == [question().labels, ("mauve",)]
    assert table.count("test") == 0
    assert len(table.some("train", 0).as_found) == 1
