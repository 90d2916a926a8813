"""Tables of one's own: columns, splits, evidence, words, doubts, every row that cannot be used, and samples of rows.

Every family reads its rows by the same code. What a row may hold is tested through questions, which have the most
columns; what all families must hold to, through all of them.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from saccade.data import Row, Table, read_table
from saccade.data.examples import hashed_share, sample_pictures, sample_rows
from saccade.data.tables.table import Columns
from saccade.errors import ConfigError, DataError
from saccade.families.question.readers import COLUMNS as OF_QUESTIONS
from small_tables import read_quietly

TRUTH = {"question": ("query,label", "q,one"), "classify": ("label", "one"), "multiset": ("labels", "one"),
         "caption": ("caption", "one")}  # fmt: skip
"""The columns that a family needs beside the picture, and what a row has in them."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that stand for pictures, none a copy of another; a reader decodes none of them."""
    for name in ("a.png", "b.png", "c.png", "d.png", "sub/e.png", "m.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(f"it is {name[-5:]}".encode())
    return tmp_path


def read(path: Path, reader: str = "csv", family: str = "question", **options: object) -> Table:
    return read_quietly(f"{reader}:{path}", family, **options)


def csv(folder: Path, text: str, family: str = "question", *, encoding: str = "utf-8", **options: object) -> Table:
    (folder / "t.csv").write_bytes(text.encode(encoding))
    return read(folder / "t.csv", "csv", family, **options)


def jsonl(folder: Path, *rows: object, family: str = "question", **options: object) -> Table:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read(folder / "t.jsonl", "jsonl", family, **options)


def of_family(folder: Path, family: str, more: str, *rows: str) -> Path:
    """A table of rows ``PICTURE,MORE`` in the columns of a family."""
    columns, truth = TRUTH[family]
    lines = [f"{image},{truth}{',' * bool(rest)}{rest}" for image, _, rest in (row.partition(",") for row in rows)]
    (folder / "t.csv").write_text("\n".join([f"image,{columns}{',' * bool(more)}{more}", *lines]))
    return folder / "t.csv"


def test_evidence_in_every_spelling(folder: Path) -> None:
    text = (
        "image,query,label,split,box,point,mask\n"
        'a.png,q,x,train,1 2 3.5 4,5 6,m.png\na.png,r,x,train,"[1, 2, 3, 4]","5,6",\nb.png,q,x,train,,,\n'
    )
    table = csv(folder, text, strict=True)
    assert [row.box for row in table.rows] == [(1, 2, 3.5, 4), (1, 2, 3, 4), None]
    assert [row.point for row in table.rows] == [(5, 6), (5, 6), None]
    assert [row.mask for row in table.rows] == [folder / "m.png", None, None]
    of_labels = csv(folder, text.replace("a.png,r", "c.png,r"), "classify").rows
    assert [(row.box, row.point, row.query) for row in of_labels[:2]] == [
        ((1, 2, 3.5, 4), None, ""), ((1, 2, 3, 4), None, "")
    ]  # fmt: skip


def test_a_table_is_the_same_as_csv_and_as_json_lines(folder: Path) -> None:
    text = 'image,query,labels,split,box\na.png,7,red; shiny;red,train,0 0 2 2\nsub/e.png,7,"[""a;b"", 7]",train,\n'
    table = csv(folder, text, strict=True)
    first, second = table.rows
    assert first == Row(folder / "a.png", ("red", "shiny"), "train", query="7", box=(0, 0, 2, 2))
    assert (second.image, second.labels) == (folder / "sub/e.png", ("a;b", "7"))
    assert (table.queries, table.several, table.name) == (("7",), True, f"csv:{folder / 't.csv'}")
    lines = (
        {"image": "a.png", "query": 7, "labels": ["red", "shiny"], "split": "train", "box": [0, 0, 2, 2]},
        "",
        {"file_name": "sub/e.png", "query": 7, "labels": ["a;b", 7], "split": "train", "mask": None},
    )
    assert jsonl(folder, *lines, strict=True).rows == table.rows


def test_without_a_split_a_picture_has_the_same_one_in_every_family_and_wherever_it_lies(tmp_path: Path) -> None:
    found: list[dict[str, str]] = []
    for family, numbers in zip(TRUTH, (range(400), range(300, 600), range(200), range(100, 500))):
        place = tmp_path / family
        place.mkdir()
        for n in numbers:
            (place / f"{n}.png").write_text(str(n))
        names = (f"./{n}.png" if n % 2 else f"{n}.png" for n in numbers)
        rows = read(of_family(place, family, "", *names), family=family).rows
        assert len(rows) == len(numbers)
        found.append({row.image.name: row.split for row in rows})
    shares = [list(found[0].values()).count(split) / 400 for split in ("train", "val", "test")]
    assert shares == pytest.approx([0.70, 0.15, 0.15], abs=0.04)
    for other in found[1:]:
        both = found[0].keys() & other.keys()
        assert len(both) >= 100
        assert all(found[0][name] == other[name] for name in both)


@pytest.mark.parametrize("family", TRUTH)
def test_a_group_stays_together(tmp_path: Path, family: str) -> None:
    for n in range(60):
        (tmp_path / f"{n}.png").write_text(str(n))
    path = of_family(tmp_path, family, "group", *(f"{n}.png,patient {n % 6}" for n in range(60)))
    split_of: dict[int, set[str]] = {}
    for row in read(path, family=family).rows:
        split_of.setdefault(int(row.image.stem) % 6, set()).add(row.split)
    assert [len(splits) for splits in split_of.values()] == [1] * 6


WRONG = [
    ("gone.png,q,x,train,,", "no such picture in {folder}: line 3, gone.png"),
    ("a.png,q", "no split: line 3"),
    ("a.png,q,x,train,5 5 2 9,", "unreadable box: line 3, 5 5 2 9 has no area; corners go x1 y1 x2 y2"),
    ("a.png,q,x,train,1,2,3,4", "more cells than columns: line 3, quote cells that hold commas"),
    ("b.png,q,x,train,,", "duplicate: line 3 repeats line 2"),
]
"""A row of a table, and how it is counted."""


@pytest.mark.parametrize(("row", "reason"), WRONG)
def test_a_row_that_cannot_be_used_is_named_by_its_line(folder: Path, row: str, reason: str) -> None:
    text = f"image,query,label,split,box,mask\nb.png,q,x,train,,\n{row}\n"
    assert csv(folder, text).skipped == (reason.format(folder=folder),)
    with pytest.raises(DataError, match=r"t\.csv: strict"):
        csv(folder, text, strict=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column image, label; the file is empty"),
        ("image,query,label\n", r"t\.csv: no question can be used; it is empty"),
        ('image,query,label\n"a.png,q,x\n', "line 2 is not CSV"),
        ("image,query,label\na.png,q,caf\xe9\n", "not UTF-8"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        csv(folder, text, encoding="latin-1")


def question(query: str = "crown", labels: tuple[str, ...] = ("red",), split: str = "train") -> Row:
    return Row(Path("a.png"), labels, split, query=query)


def table_of(*rows: Row, columns: Columns = OF_QUESTIONS, **more: object) -> Table:
    return Table.of("csv:x", [(f"line {n}", row) for n, row in enumerate(rows, start=2)], columns, **more)


def test_words_never_seen_in_train_are_left_out_named_and_kept_for_a_model_that_knows_them() -> None:
    rows = (question(), question("tail", split="test"), question(labels=("mauve",), split="val"), question(split="val"))
    table = table_of(*rows, skipped=["empty label: line 9"])
    assert [row.split for row in table.rows] == ["train", "val"]
    assert table.skipped == (
        "empty label: line 9",
        "query never seen in train: line 3, 'tail'",
        "label never seen in train: line 4, 'mauve'",
    )
    assert table.as_found == rows


def test_of_several_labels_the_known_ones_stay_or_the_row_goes() -> None:
    found = [("line 2", question(labels=("red", "mauve", "shiny")))]
    rows, skipped = OF_QUESTIONS.matching(found, ["crown"], ["shiny", "red"], "new")
    assert [row.labels for row in rows] == [("red", "shiny")]
    assert skipped == ["label new: line 2, 'mauve'"]
    assert Columns().matching(found, [], ["shiny", "red"], "new") == ([], ["label new: line 2, 'mauve'"])


@pytest.mark.parametrize("family", TRUTH)
def test_pictures_and_groups_in_two_splits_are_refused_by_name(folder: Path, family: str) -> None:
    rows = ("a.png,train,", "b.png,train,", "./a.png,test,", "a.png,val,", "b.png,val,")
    with pytest.raises(DataError, match=r"a\.png \(train, test, val\); b\.png \(train, val\)"):
        read(of_family(folder, family, "split,group", *rows), family=family)
    with pytest.raises(DataError, match=r": ann \(train, val\)"):
        read(of_family(folder, family, "split,group", "a.png,train,ann", "b.png,val,ann", "c.png,train,bob"),
             family=family)  # fmt: skip


@pytest.mark.parametrize("family", TRUTH)
def test_copies_in_two_splits_are_named_and_a_clean_table_is_read_in_silence(folder: Path, family: str) -> None:
    """d has the length of the others and other bytes; b is a copy within its split, which is nobody's leak."""
    path = of_family(folder, family, "split", "a.png,train", "b.png,train", "c.png,test", "d.png,test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_table(f"csv:{path}", family).rows) == 4
    for copy in ("b.png", "c.png"):
        (folder / copy).write_bytes((folder / "a.png").read_bytes())
    with pytest.warns(UserWarning, match=r"1 picture .*: c\.png \(test\) = a\.png \(train\);") as told:
        assert len(read_table(f"csv:{path}", family).rows) == 4
    assert len([each for each in told if "byte" in str(each.message)]) == 1


Doubtful = tuple[str, Callable[[Path], Table], str]
DOUBTS: list[Doubtful] = [
    ("contradictions", lambda folder: csv(folder, "image,query,label\na.png,q,red\na.png,q,blue\na.png,r,red\n"),
     "1 question .* (first a.png, 'q': 'red' and 'blue')"),
    ("classes that a split lacks", lambda folder: csv(
        folder, "image,label,split\na.png,x,train\nb.png,y,train\nc.png,x,test\n", "classify"),
     "1 class without a test picture (y)"),
    ("one picture", lambda folder: csv(
        folder, "image,label,split\na.png,x,train\nb.png,y,train\nc.png,y,train\n", "classify"), "picture (x)"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "made", "doubt"), DOUBTS, ids=[what for what, *_ in DOUBTS])
def test_what_looks_wrong_is_told_below_the_summary(
    folder: Path, what: str, made: Callable[[Path], Table], doubt: str
) -> None:
    first, *doubts = made(folder).summary().splitlines()
    number, _, detail = doubt.partition(" .* ")
    assert [line for line in doubts if number in line and detail in line], (what, doubts)
    assert first.startswith(("csv:", "jsonl:"))


def test_an_unknown_reader_or_option_names_the_nearest() -> None:
    for reference, options, error, message in [
        ("jsnl:x", {}, DataError, "'jsnl'.*'jsonl'"),
        ("csv:x", {"strct": True}, ConfigError, r"data\.options\.strct.*'strict'"),
    ]:
        with pytest.raises(error, match=message):
            read_table(reference, "question", **options)


DATA = Path("/data")
PICTURES = [Path(f"/data/{number:04}.jpg") for number in range(400)]


def test_a_table_sorted_by_label_gives_both_labels_their_share():
    """The first 100 of 400 rows would all have the first label; the sample has about as many of each (sd 4)."""
    found = sample_rows(PICTURES, DATA, 100)
    assert len(found) == 100
    assert 35 <= int((found < 200).sum()) <= 65


@pytest.mark.parametrize(("count", "pictures"), [(0, 0), (30, 30), (60, 50), (999, 50)])
def test_each_picture_comes_once_before_any_comes_twice(count, pictures):
    images = [picture for picture in PICTURES[:50] for _ in range(3)]
    words = ["crown", "bill", "belly"] * 50
    found = sample_pictures(images, DATA, words, count).tolist()
    assert len(found) == min(count, 150)
    assert len({images[row] for row in found}) == pictures
    assert found == sorted(found)


def test_equal_names_in_folders_are_a_sample_of_both_and_the_root_does_not_matter():
    """Frames of videos: by their names alone, a sample would hold the same frames of all videos."""
    places = [f"{video:02}/{frame:02}.jpg" for video in range(20) for frame in range(20)]
    here, there = ([Path(root) / place for place in places] for root in ("/data", "/mnt/a/b"))
    found = sample_rows(here, Path("/data"), 100)
    assert found.tolist() == sample_rows(there, Path("/mnt/a/b"), 100).tolist()
    assert len({int(row) % 20 for row in found}) > 15  # by names: 5 frames of each video
    words = ["crown", "bill"] * 200
    swept = [sample_pictures(images, root, words, 60) for images, root in ((here, DATA), (there, Path("/mnt/a/b")))]
    assert swept[0].tolist() == swept[1].tolist()


def test_shares_are_pinned():
    assert hashed_share("a.png") == pytest.approx(0.4962016, abs=1e-7)
