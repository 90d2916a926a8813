"""Tables of labels and boxes, both layouts of SVHN, and rows that cannot be used."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.data import Row, Table
from saccade.errors import DataError
from saccade.families.multiset.data import MultisetDataConfig, MultisetFiles
from saccade.families.multiset.readers import (
    COLUMNS,
    Kind,
    SvhnOptions,
    commonest_multiset,
    read_digit_struct,
    read_svhn,
)
from saccade.families.multiset.task import MultisetTask
from small_tables import pretend_pictures, table_of


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


def test_a_set_refuses_repeats_by_picture(folder):
    text = "image,labels,split\na.png,3;7,train\nb.png,7;3;7,train\nc.png,3;3,test\n"
    with pytest.raises(DataError, match=r"kind 'set'.*: b\.png, c\.png; remove"):
        csv(folder, text, kind="set")
    fine = csv(folder, text.replace("7;3;7", "7").replace("3;3", "3"), kind="set")
    assert (fine.kind, fine.most) == ("set", 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('a.png,"[3, null]",train,', "unreadable labels: line 3, [3, null]"),
        ("a.png,3;7,train,1 2 3 4", "boxes for other labels: line 3, 1 boxes for 2 labels"),
        ("a.png,3,train,1 2 3", "unreadable box: line 3, '1 2 3' is not 4 numbers"),
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
        ("test a", "multiset", CLASSES, None),
    ],
)
def test_the_commonest_of_the_training_pictures(rows, kind, answers, expected):
    table = of_rows(*(row.split(" ") for row in rows.split(",")), kind=kind)
    assert commonest_multiset(table, answers) == expected


ROW = '{n}.jpg,1 9,"6.5,6.5,26.6,48.7 25.6,7.3,49.5,49.5"'


def reduced(folder: Path, rows: list[str], part: str = "train") -> Path:
    """A folder as the reduced copy has it; pictures are grey squares of 56 × 56."""
    (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.csv").write_text("\n".join(["image,digits,boxes_xyxy", *rows]))
    for row in rows:
        name = row.split(",")[0]
        if name and not name.startswith("gone"):
            Image.new("RGB", (56, 56), (90, 90, 90)).save(folder / part / name)
    return folder


def test_the_reduced_copy_is_not_cut_again(tmp_path):
    reduced(tmp_path, [ROW.format(n=n) for n in range(1, 40)])
    table = read_svhn(tmp_path, SvhnOptions())
    row = table.rows[0]
    assert row.image == tmp_path / "train" / "1.jpg"
    assert row.labels == ("1", "9")
    assert row.boxes == ((6.5, 6.5, 26.6, 48.7), (25.6, 7.3, 49.5, 49.5))
    assert row.crop is None
    assert (table.answers, table.most, table.kind, len(table.rows)) == (("1", "9"), 2, "multiset", 39)
    data = MultisetFiles(MultisetDataConfig(f"svhn:{tmp_path}", size=56), table, "train")
    batch = data.take(torch.arange(3))
    assert batch.images.shape == (3, 3, 56, 56)
    torch.testing.assert_close(batch.boxes[0], torch.tensor(row.boxes))
    assert read_svhn(tmp_path, SvhnOptions(kind="list")).kind == "list"


def test_without_test_pictures_a_part_of_train_is_held_out(tmp_path):
    """Which part depends on the number of the picture alone, so it is the same for .jpg and .png."""
    reduced(tmp_path / "a", [ROW.format(n=n) for n in range(1, 601)])
    reduced(tmp_path / "b", [ROW.format(n=n).replace("jpg", "png") for n in range(400, 601)])
    whole, part = read_svhn(tmp_path / "a", SvhnOptions()), read_svhn(tmp_path / "b", SvhnOptions())
    shares = [whole.count(split) / 600 for split in ("train", "val", "test")]
    assert shares == pytest.approx([0.85, 0.05, 0.10], abs=0.03)
    split_of = {row.image.stem: row.split for row in whole.rows}
    assert all(split_of[row.image.stem] == row.split for row in part.rows)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('gone.jpg,1,"1,1,9,9"', "no such picture"),
        ('7.jpg,1 9,"1,1,9,9"', "boxes for other digits: train/7.jpg, 1 boxes for 2 digits"),
        ('7.jpg,11,"1,1,9,9"', "unknown digit: train/7.jpg, 11"),
        ('7.jpg,1,"9,1,9,9"', "unreadable box: train.csv line 3, 9,1,9,9 has no area; corners go x1 y1 x2 y2"),
    ],
)
def test_a_number_that_cannot_be_used_is_named(tmp_path, row, reason):
    (skipped,) = read_svhn(reduced(tmp_path, [ROW.format(n=1), row]), SvhnOptions()).skipped
    assert skipped.startswith(reason)


def digit_struct(path: Path, numbers: list[tuple[str, list[tuple[float, ...]]]]) -> None:
    """A file as MATLAB 7.3 writes it; each digit is (label, left, top, width, height)."""
    h5py = pytest.importorskip("h5py")
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        kept = file.create_group("#refs#")

        def reference(value) -> "h5py.Reference":
            return kept.create_dataset(str(len(kept)), data=np.array(value)).ref

        def references(found) -> "np.ndarray":
            column = np.empty((len(found), 1), dtype=h5py.ref_dtype)
            column[:, 0] = found
            return column

        names, boxes = [], []
        for name, digits in numbers:
            names.append(reference(np.array([[ord(letter)] for letter in name], dtype=np.uint16)))
            group = kept.create_group(str(len(kept)))
            boxes.append(group.ref)
            for at, column in enumerate(("label", "left", "top", "width", "height")):
                values = [digit[at] for digit in digits]
                one = len(values) == 1
                data = [[values[0]]] if one else references([reference([[value]]) for value in values])
                group.create_dataset(column, data=data, dtype=None if one else h5py.ref_dtype)
        for part, found in (("name", names), ("bbox", boxes)):
            file.create_dataset(f"digitStruct/{part}", data=references(found), dtype=h5py.ref_dtype)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "svhn"


def test_official_pictures_are_cut_and_their_boxes_follow(tmp_path, cache):
    for part, count in (("train", 30), ("test", 2)):
        numbers = [(f"{n}.png", [(1.0, 40, 20, 20, 40), (10.0, 60, 20, 20, 40)]) for n in range(1, count + 1)]
        digit_struct(tmp_path / part / "digitStruct.mat", numbers)
        for name, _ in numbers:
            picture = Image.new("RGB", (200, 100))
            picture.paste((255, 255, 255), (60, 20, 80, 60))  # the zero
            picture.save(tmp_path / part / name)
    data = MultisetTask.open(MultisetDataConfig(f"svhn:{tmp_path}", size=52), "test")
    batch = data.take(torch.arange(2))
    assert data.answers == ("0", "1")
    assert batch.labels.tolist() == [[1, 0]] * 2
    # the union is (40, 20, 80, 60); with 6 px more on each side it is 52 × 52: nothing is stretched
    assert batch.boxes[0].tolist() == [[6, 6, 26, 46], [26, 6, 46, 46]]
    assert torch.equal(batch.images[0, 0] > 0.5, batch.masks()[0, 1])


def test_another_file_is_refused(tmp_path, cache):
    pytest.importorskip("h5py")
    for content in (b"", b"not HDF5"):
        (tmp_path / "digitStruct.mat").write_bytes(content)
        with pytest.raises(DataError, match=r"not a digitStruct.mat of SVHN .*unpack the archive again"):
            read_digit_struct(tmp_path / "digitStruct.mat")
