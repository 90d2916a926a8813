"""Tables of questions: whose words they have, and what is left out."""

from pathlib import Path

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


def test_some_keeps_all_questions_about_the_first_pictures():
    rows = [
        Question(Path(f"{split}{n // 2}"), f"q{n % 2}", ("x",), split) for split in ("val", "train") for n in range(6)
    ]
    table = make_table("csv:x", found(*rows), [], multi_label=False).some("val", 2)
    assert [row.image.name for row in table.rows if row.split == "val"] == ["val0", "val0", "val1", "val1"]
    assert table.count("train") == 6


def test_words_that_only_a_model_knows_are_still_there_for_it():
    rows = found(question(), question(labels=("mauve",), split="test"))
    table = make_table("csv:x", rows, [], multi_label=False)
    assert [row.labels for row in table.as_found] == [question().labels, ("mauve",)]
    assert table.count("test") == 0
    assert len(table.some("train", 0).as_found) == 1
