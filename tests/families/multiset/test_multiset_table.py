"""Tables of pictures and their labels: what is read, what a set or a list is, and every row that cannot be used.

Last, the most frequent multiset of a table, and what it scores as a baseline.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saccade.families.multiset.table import (
    Kind,
    MultisetRow,
    MultisetTable,
    MultisetTableOptions,
    _boxes,
    _labels,
    commonest_multiset,
    read_multiset_csv,
    read_multiset_jsonl,
)

from saccade.errors import DataError
from saccade.families import family_of_data

STRICT = MultisetTableOptions(strict=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that stand for pictures; a reader decodes none of them."""
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(f"not decoded: {name}".encode())
    return tmp_path


def csv(folder: Path, text: str, options: MultisetTableOptions = MultisetTableOptions()) -> MultisetTable:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return read_multiset_csv(folder / "t.csv", options)


def jsonl(folder: Path, *rows: object, options: MultisetTableOptions = MultisetTableOptions()) -> MultisetTable:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_multiset_jsonl(folder / "t.jsonl", options)


def test_labels_repeat_and_keep_their_order(folder):
    table = csv(folder, "image,labels,split\na.png,7; 3;7,train\nb.png,,train\nc.png,3,test\n", STRICT)
    assert [row.labels for row in table.rows] == [("7", "3", "7"), (), ("3",)]
    assert [row.split for row in table.rows] == ["train", "train", "test"]
    assert table.rows[0].image == folder / "a.png"
    assert (table.classes, table.most, table.kind, table.skipped) == (("3", "7"), 3, "multiset", ())
    assert table.name == f"csv:{folder / 't.csv'}"
    assert [table.count(split) for split in ("train", "val", "test")] == [2, 0, 1]


def test_json_lists_numbers_and_the_empty_multiset(folder):
    table = jsonl(
        folder,
        {"image": "a.png", "labels": [7, "a;b", 7], "split": "train"},
        {"image": "b.png", "labels": [], "split": "train"},
        {"image": "c.png", "labels": 7, "split": "train"},
        options=STRICT,
    )
    assert [row.labels for row in table.rows] == [("7", "a;b", "7"), (), ("7",)]


def test_boxes_in_every_spelling(folder):
    table = csv(
        folder,
        "image,labels,split,boxes\n"
        "a.png,3;7,train,1 2 3.5 4; 5 6 7 8\n"
        'b.png,3;7,train,"[[1, 2, 3, 4], null]"\n'
        "c.png,3;7,train,; 5 6 7 8\n",
        STRICT,
    )
    assert [row.boxes for row in table.rows] == [
        ((1, 2, 3.5, 4), (5, 6, 7, 8)),
        ((1, 2, 3, 4), None),
        (None, (5, 6, 7, 8)),
    ]
    assert csv(folder, "image,labels,boxes\na.png,3,\n").rows[0].boxes == ()
    assert csv(folder, "image,labels,boxes\na.png,3; 7, \n").rows[0].boxes == ()


def test_without_a_split_the_picture_decides_as_in_tables_of_questions(tmp_path):
    from saccade.families.question.tables.rows import TableOptions, read_csv

    for n in range(60):
        (tmp_path / f"{n}.png").write_text(str(n))
    table = csv(tmp_path, "image,labels\n" + "".join(f"{n}.png,x\n" for n in range(60)))
    (tmp_path / "q.csv").write_text("image,query,label\n" + "".join(f"{n}.png,q,x\n" for n in range(60)))
    questions = read_csv(tmp_path / "q.csv", TableOptions())
    assert {row.image: row.split for row in table.rows} == {row.image: row.split for row in questions.rows}
    assert {row.split for row in table.rows} == {"train", "val", "test"}


def test_a_table_without_training_rows_has_the_words_of_all(folder):
    assert csv(folder, "image,labels,split\na.png,3;3;3,test\nb.png,7,val\n").classes == ("3", "7")


LABEL = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)


@given(st.lists(LABEL, max_size=6))
def test_any_labels_come_back(labels):
    assert _labels({"labels": labels}) == tuple(labels)
    assert _labels({"labels": json.dumps(labels)}) == tuple(labels)
    assert _labels({"labels": " ; ".join(labels)}) == tuple(labels)


@given(st.lists(st.tuples(*[st.integers(0, 99)] * 2), min_size=1, max_size=5))
def test_any_boxes_come_back(corners):
    boxes = tuple((float(x), float(y), x + 1.5, y + 2.0) for x, y in corners)
    assert _boxes("; ".join(" ".join(map(repr, box)) for box in boxes), len(boxes)) == boxes
    assert _boxes(json.dumps(boxes), len(boxes)) == boxes


def test_a_set_refuses_repeats_by_line(folder):
    text = "image,labels,split\na.png,3;7,train\nb.png,7;3;7,train\nc.png,3;3,test\n"
    with pytest.raises(DataError, match=r"kind 'set', but a label repeats in 2 row\(s\): line 3, line 4; remove"):
        csv(folder, text, MultisetTableOptions(kind="set"))
    fine = csv(folder, text.replace("7;3;7", "7").replace("3;3", "3"), MultisetTableOptions(kind="set"))
    assert (fine.kind, fine.most) == ("set", 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("gone.png,3,train,", "no such picture in {folder}: line 3, gone.png"),
        (",3,train,", "empty image: line 3"),
        ("a.png", "no split: line 3"),
        ("a.png,3,trian,", "unknown split: line 3, 'trian' is none of train, val, test"),
        ("a.png,[3,train,", "unreadable labels: line 3, [3"),
        ('a.png,"[3, null]",train,', "unreadable labels: line 3, [3, null]"),
        ('a.png,"[[3]]",train,', "unreadable labels: line 3, [[3]]"),
        ("a.png,3;7,train,1 2 3 4", "boxes for other labels: line 3, 1 boxes for 2 labels"),
        ("a.png,,train,1 2 3 4", "boxes for other labels: line 3, 1 boxes for 0 labels"),
        ("a.png,3,train,1 2 3", "unreadable box: line 3, '1 2 3' is not 4 numbers"),
        ("a.png,3,train,5 5 2 9", "unreadable box: line 3, 5 5 2 9 has no area; corners go x1 y1 x2 y2"),
        ("a.png,3,train,,more", "more cells than columns: line 3, quote cells that hold commas"),
        ("a.png,3;8,test,", "label never seen in train: line 3, '8'"),
        ("b.png,7,train,", "picture named twice: line 3 repeats line 2"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line(folder, row, reason):
    text = f"image,labels,split,boxes\nb.png,3;7,train,\n{row}\n"
    assert csv(folder, text).skipped == (reason.format(folder=folder),)
    with pytest.raises(DataError, match="strict, and 1 row"):
        csv(folder, text, STRICT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column image, labels; the file is empty"),
        ("image,label\na.png,3\n", "no column labels; found image, label; the first"),
        ("image,labels\n", "t.csv: it is empty; add a row for each picture"),
        ("image,labels,split\na.png,,train\nb.png,3,test\n", "none of its 1 training pictures has a label"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(folder, text, message):
    with pytest.raises(DataError, match=message):
        csv(folder, text)


def test_a_table_without_queries_holds_multisets(folder):
    csv(folder, "image,labels\na.png,3\n")
    jsonl(folder, {"image": "a.png", "labels": ["x"]})
    (folder / "q.csv").write_text("image,query,label\na.png,q,x\n")
    assert family_of_data(f"csv:{folder / 't.csv'}").name == "multiset"
    assert family_of_data(f"jsonl:{folder / 't.jsonl'}").name == "multiset"
    assert family_of_data("svhn:anywhere").name == "multiset"
    assert family_of_data(f"csv:{folder / 'q.csv'}").name == "question"
    assert family_of_data("cub:birds").name == "question"
    with pytest.raises(DataError, match="cannot be read"):
        family_of_data(f"csv:{folder / 'gone.csv'}")
    (folder / "n.csv").write_text("image,tag\na.png,x\n")
    with pytest.raises(DataError, match="fit no family; needed are question: image, label, query"):
        family_of_data(f"csv:{folder / 'n.csv'}")


CLASSES = ("a", "b", "c")
N, STOP = 20, 10


def of_rows(*rows: tuple[str, str], kind: Kind = "multiset") -> MultisetTable:
    """Rows as (split, labels)."""
    made = tuple(
        MultisetRow(Path(f"{number}.png"), tuple(labels), split) for number, (split, labels) in enumerate(rows)
    )
    return MultisetTable("csv:t.csv", made, CLASSES, 3, kind)


def test_the_commonest_of_the_training_pictures_in_any_order():
    held = of_rows(("train", "ab"), ("train", "c"), ("train", "ba"), ("val", "c"), ("test", "c"))
    assert commonest_multiset(held, CLASSES) == (0, 1)
    assert commonest_multiset(held, ("b", "c", "a")) == (0, 2)  # by the numbers of the model's own words


def test_a_list_is_as_it_stands():
    held = of_rows(("train", "ab"), ("train", "ba"), ("train", "ba"), kind="list")
    assert commonest_multiset(held, CLASSES) == (1, 0)


def test_nothing_may_be_the_commonest_and_ties_go_to_the_first():
    assert commonest_multiset(of_rows(("train", ""), ("train", "a"), ("train", "")), CLASSES) == ()
    assert commonest_multiset(of_rows(("train", "c"), ("train", "a")), CLASSES) == (2,)


def test_without_training_pictures_in_these_words_there_is_none():
    assert commonest_multiset(of_rows(("test", "a")), CLASSES) is None
    assert commonest_multiset(of_rows(("train", "ab")), ("b",)) is None
