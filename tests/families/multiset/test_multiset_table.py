"""Labels of pictures in tables: spellings, boxes, what a set or a list is; and the most frequent multiset."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet_tables import pretend_pictures, table_of
from saccade.data import Row, Table
from saccade.errors import DataError
from saccade.families.multiset.readers import COLUMNS, Kind, _boxes, _labels, commonest_multiset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pretend_pictures(tmp_path)


def csv(folder: Path, text: str, **options: object) -> Table:
    return table_of(folder / "t.csv", text, "multiset", **options)


def test_labels_repeat_and_keep_their_order(folder):
    table = csv(folder, "image,labels,split\na.png,7; 3;7,train\nb.png,,train\nc.png,3,test\n", strict=True)
    assert [row.labels for row in table.rows] == [("7", "3", "7"), (), ("3",)]
    assert [row.split for row in table.rows] == ["train", "train", "test"]
    assert table.rows[0].image == folder / "a.png"
    assert (table.answers, table.most, table.kind, table.several) == (("3", "7"), 3, "multiset", True)
    assert csv(folder, "image,labels,split\na.png,7; 3;7,train\nb.png,3,train\n", most=2).most == 2


LABEL = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5)


@given(st.lists(LABEL, max_size=6))
def test_any_labels_come_back(labels):
    assert _labels({"labels": labels}) == tuple(labels)
    assert _labels({"labels": json.dumps(labels)}) == tuple(labels)
    assert _labels({"labels": " ; ".join(labels)}) == tuple(labels)


@given(st.lists(st.tuples(*[st.integers(0, 99)] * 2), min_size=1, max_size=5))
def test_any_boxes_come_back(corners):
    boxes = tuple((float(x), float(y), x + 1.5, y + 2.0) for x, y in corners)
    assert _boxes({"boxes": "; ".join(" ".join(map(repr, box)) for box in boxes)}, len(boxes)) == boxes
    assert _boxes({"boxes": json.dumps(boxes)}, len(boxes)) == boxes


def test_a_set_refuses_repeats_by_picture(folder):
    text = "image,labels,split\na.png,3;7,train\nb.png,7;3;7,train\nc.png,3;3,test\n"
    with pytest.raises(DataError, match=r"kind 'set'.*: b\.png, c\.png; remove"):
        csv(folder, text, kind="set")
    fine = csv(folder, text.replace("7;3;7", "7").replace("3;3", "3"), kind="set")
    assert (fine.kind, fine.most) == ("set", 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a.png,[3,train,", "unreadable labels: line 3, [3"),
        ('a.png,"[3, null]",train,', "unreadable labels: line 3, [3, null]"),
        ('a.png,"[[3]]",train,', "unreadable labels: line 3, [[3]]"),
        ("a.png,3;7,train,1 2 3 4", "boxes for other labels: line 3, 1 boxes for 2 labels"),
        ("a.png,,train,1 2 3 4", "boxes for other labels: line 3, 1 boxes for 0 labels"),
        ("a.png,3,train,1 2 3", "unreadable box: line 3, '1 2 3' is not 4 numbers"),
        ("a.png,3;8,test,", "label never seen in train: line 3, '8'"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line(folder, row, reason):
    assert csv(folder, f"image,labels,split,boxes\nb.png,3;7,train,\n{row}\n").skipped == (reason,)


def test_a_table_without_labels_to_learn_is_refused(folder):
    with pytest.raises(DataError, match="labels; found image, label"):
        csv(folder, "image,label\na.png,3\n")
    with pytest.raises(DataError, match=r"t\.csv"):
        csv(folder, "image,labels,split\na.png,,train\nb.png,3,test\n")


CLASSES = ("a", "b", "c")


def of_rows(*rows: tuple[str, str], kind: Kind = "multiset") -> Table:
    """Rows as (split, labels)."""
    made = tuple(Row(Path(f"{number}.png"), tuple(labels), split) for number, (split, labels) in enumerate(rows))
    return Table("csv:t.csv", made, COLUMNS, (), CLASSES, several=True, most=3, kind=kind)


@pytest.mark.parametrize(
    ("rows", "kind", "answers", "expected"),
    [
        ("train ab,train c,train ba,val c,test c", "multiset", CLASSES, (0, 1)),
        ("train ab,train c,train ba", "multiset", ("b", "c", "a"), (0, 2)),  # by the numbers of the model's own words
        ("train ab,train ba,train ba", "list", CLASSES, (1, 0)),
        ("train ,train a,train ", "multiset", CLASSES, ()),
        ("train c,train a", "multiset", CLASSES, (2,)),  # of equals the first
        ("test a", "multiset", CLASSES, None),
        ("train ab", "multiset", ("b",), None),
    ],
)
def test_the_commonest_of_the_training_pictures(rows, kind, answers, expected):
    table = of_rows(*(row.split(" ") for row in rows.split(",")), kind=kind)
    assert commonest_multiset(table, answers) == expected
