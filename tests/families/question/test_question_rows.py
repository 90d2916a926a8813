"""Tables of one's own: columns, splits, evidence, and every kind of row that cannot be used."""

import json
from pathlib import Path

import pytest
from saccade.families.question.table import QuestionTable
from saccade.families.question.tables.rows import TableOptions, read_csv, read_jsonl

from call_count import calls
from saccade.errors import DataError

STRICT = TableOptions(strict=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that stand for pictures, none a copy of another; a reader decodes none of them."""
    for name in ("a.png", "b.png", "sub/c.png", "m.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def csv(folder: Path, text: str, options: TableOptions = TableOptions(), encoding: str = "utf-8") -> QuestionTable:
    (folder / "t.csv").write_bytes(text.encode(encoding))
    return read_csv(folder / "t.csv", options)


def jsonl(folder: Path, *rows: object, options: TableOptions = TableOptions()) -> QuestionTable:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_jsonl(folder / "t.jsonl", options)


def test_a_plain_csv(folder):
    table = csv(folder, "image,query,label,split\na.png,crown,red,train\nsub/c.png,wing,blue,train\n", STRICT)
    first, second = table.rows
    assert (first.image, first.query, first.labels, first.split) == (folder / "a.png", "crown", ("red",), "train")
    assert (first.box, first.point, first.mask, first.group) == (None, None, None, "a.png")
    assert second.image == folder / "sub/c.png"
    assert table.name == f"csv:{folder / 't.csv'}"
    assert (table.queries, table.answers, table.multi_label) == (("crown", "wing"), ("blue", "red"), False)


def test_evidence_in_every_spelling(folder):
    table = csv(
        folder,
        "image,query,label,split,box,point,mask\n"
        'a.png,q,x,train,1 2 3.5 4,5 6,m.png\na.png,r,x,train,"[1, 2, 3, 4]","5,6",\nb.png,q,x,train,,,\n',
        STRICT,
    )
    assert [row.box for row in table.rows] == [(1, 2, 3.5, 4), (1, 2, 3, 4), None]
    assert [row.point for row in table.rows] == [(5, 6), (5, 6), None]
    assert [row.mask for row in table.rows] == [folder / "m.png", None, None]


def test_several_labels(folder):
    table = csv(
        folder, 'image,query,labels,split\na.png,q,red; shiny;red,train\nb.png,q,"[""a;b"", 7]",train\n', STRICT
    )
    assert table.multi_label
    assert [row.labels for row in table.rows] == [("red", "shiny"), ("a;b", "7")]


def test_json_lines(folder):
    table = jsonl(
        folder,
        {"image": "a.png", "query": 7, "labels": ["red", "shiny"], "split": "train", "box": [0, 0, 2, 2]},
        "",
        {"image": "b.png", "query": 7, "label": "red", "split": "train", "point": [1, 2.5], "mask": None},
        options=STRICT,
    )
    assert [row.labels for row in table.rows] == [("red", "shiny"), ("red",)]
    assert (table.rows[0].box, table.rows[1].point, table.queries) == ((0, 0, 2, 2), (1, 2.5), ("7",))
    assert table.multi_label
    assert table.name.startswith("jsonl:")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf_8_with_or_without_a_mark(folder, encoding):
    table = csv(folder, "Image, Query ,LABEL\r\na.png,größe,grün\r\n", STRICT, encoding)
    assert (table.queries, table.answers) == (("größe",), ("grün",))


def test_without_a_split_no_picture_is_in_two(tmp_path):
    lines = ["image,query,label"]
    for n in range(400):
        (tmp_path / f"{n}.png").write_text(str(n))
        lines += [f"{n}.png,q,x", f"./{n}.png,r,x"]
    table = csv(tmp_path, "\n".join(lines), STRICT)
    of_picture = {row.image.name: set() for row in table.rows}
    for row in table.rows:
        of_picture[row.image.name].add(row.split)
    assert all(len(splits) == 1 for splits in of_picture.values())
    shares = [table.count(split) / 800 for split in ("train", "val", "test")]
    assert shares == pytest.approx([0.70, 0.15, 0.15], abs=0.04)


def test_a_picture_keeps_its_split_when_the_table_grows_or_moves(tmp_path):
    kept = {}
    for place, names in (("one", range(20)), ("two", range(15, 60))):
        (tmp_path / place).mkdir()
        for n in names:
            (tmp_path / place / f"{n}.png").write_text(str(n))
        table = csv(tmp_path / place, "image,query,label\n" + "".join(f"{n}.png,q,x\n" for n in names))
        kept[place] = {row.image.name: row.split for row in table.rows}
    both = kept["one"].keys() & kept["two"].keys()
    assert len(both) == 5
    assert all(kept["one"][name] == kept["two"][name] for name in both)


def test_a_group_stays_together(tmp_path):
    for n in range(60):
        (tmp_path / f"{n}.png").write_text(str(n))
    table = csv(tmp_path, "image,query,label,group\n" + "".join(f"{n}.png,q,x,patient {n % 6}\n" for n in range(60)))
    assert len({(row.group, row.split) for row in table.rows}) == 6


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("gone.png,q,x,train,,", "no such picture in {folder}: line 3, gone.png"),
        ("/gone.png,q,x,train,,", "no such picture: line 3, /gone.png"),  # no folder was searched
        (",q,x,train,,", "empty image: line 3"),
        ("a.png, ,x,train,,", "empty query: line 3"),
        ("a.png,q,,train,,", "empty label: line 3"),
        ("a.png,q", "no split: line 3"),
        ("a.png,q,x,trian,,", "unknown split: line 3, 'trian' is none of train, val, test"),
        ("a.png,q,x,train,1 2 3,", "unreadable box: line 3, '1 2 3' is not 4 numbers"),
        ("a.png,q,x,train,1 2 nan 4,", "unreadable box: line 3, '1 2 nan 4' is not 4 numbers"),
        ("a.png,q,x,train,5 5 2 9,", "unreadable box: line 3, 5 5 2 9 has no area; corners go x1 y1 x2 y2"),
        ("a.png,q,x,train,1 2 3 4,gone.png", "no such mask in {folder}: line 3, gone.png"),
        ("a.png,q,x,train,1,2,3,4", "more cells than columns: line 3, quote cells that hold commas"),
        ("a.png,q,x,val,,\na.png,new,x,val,,", "query never seen in train: line 4, 'new'"),
        ("a.png,q,new,test,,", "label never seen in train: line 3, 'new'"),
        ("b.png,q,x,train,,", "duplicate: line 3 repeats line 2"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line(folder, row, reason):
    text = f"image,query,label,split,box,mask\nb.png,q,x,train,,\n{row}\n"
    assert csv(folder, text).skipped == (reason.format(folder=folder),)
    with pytest.raises(DataError, match="strict"):
        csv(folder, text, STRICT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column image, label; the file is empty"),
        ("image,query,lable\na.png,q,x\n", "no column label; found image, query, lable; the first line"),
        ("image,query,label,label\na.png,q,x,y\n", "more than one column label"),
        ("image,query" + ",x" * 500, "no column label; found image, query, x, .*, x, …; the first"),
        ("image,query,label\n", "t.csv: it is empty; add a row for each picture"),
        (
            "image,query,label\ngone.png,q,x\n",
            r"no row can be used; left out 1 × no such picture in .* \(line 2, gone.png\)",
        ),
        ('image,query,label\n"a.png,q,x\n', "line 2 is not CSV"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(folder, text, message):
    with pytest.raises(DataError, match=message):
        csv(folder, text)


def test_without_a_column_of_questions_all_are_asked_the_same(folder):
    table = csv(folder, "image,label\na.png,red\nb.png,blue\n")
    assert table.queries == ("what is it?",)
    assert "no column query: all are asked 'what is it?'" in table.summary()
    assert jsonl(folder, {"image": "b.png", "label": "x"}).queries == ("what is it?",)
    (skipped,) = jsonl(folder, {"image": "b.png", "label": "x"}, {"image": "a.png", "query": "q", "label": "x"}).skipped
    assert skipped == "no query: line 1"


def test_folders_by_class_are_questions_too(tmp_path):
    from saccade.families import family_of_data
    from saccade.families.question.readers import read_questions

    for split, label in (("train", "cat"), ("train", "dog"), ("test", "cat"), ("test", "eel")):
        place = tmp_path / split / label / "1.png"
        place.parent.mkdir(parents=True)
        place.write_text(f"{split}{label}")
    with pytest.warns(UserWarning, match="left out 1 × label never seen in train"):
        table = read_questions(f"folder:{tmp_path}")
    assert table.queries == ("what is it?",)
    assert sorted((row.labels[0], row.split) for row in table.rows) == [
        ("cat", "test"),
        ("cat", "train"),
        ("dog", "train"),
    ]
    assert family_of_data(f"folder:{tmp_path}").name == "classify"


def test_twice_the_rows_are_twice_the_work(folder):
    def work(count: int) -> int:
        rows = "".join(f"{'ab'[n % 2]}.png,query {n},label {n % 50},train\n" for n in range(count))
        table = []
        made = calls(lambda: table.append(csv(folder, "image,query,label,split\n" + rows, STRICT)))
        assert len(table[0].rows) == count
        return made

    work(10)  # whatever is computed once
    assert 1.5 < work(4_000) / work(2_000) < 2.2
