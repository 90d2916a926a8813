"""Folders and files of one's own: by class, with metadata, COCO, Parquet; and which reader a path alone means."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.data import Table
from saccade.data.tables.readers import with_reader
from saccade.errors import DataError
from saccade.families import family_of_data
from small_tables import read_quietly


def write(top: Path, **files: str) -> Path:
    """``class__name=content``: files that have the name of a picture; nobody decodes them here."""
    for key, content in files.items():
        path = top / Path(*key.split("__")).with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return top


def read(path: Path, *, strict: bool = False) -> Table:
    return read_quietly(f"folder:{path}", "classify", strict=strict)


def many(top: Path, classes: tuple[str, ...] = ("cat", "dog"), each: int = 40) -> Path:
    return write(top, **{f"{name}__{number}": f"{name}{number}" for name in classes for number in range(each)})


def test_splits_above_the_classes_are_taken_and_a_part_of_train_is_val_where_there_is_none(tmp_path: Path) -> None:
    table = read(write(tmp_path / "a", train__cat__1="a", train__dog__1="b", validation__cat__2="c", test__dog__2="d"))
    assert {(row.label, row.split) for row in table.rows} == {
        ("cat", "train"), ("dog", "train"), ("cat", "val"), ("dog", "test")
    }  # fmt: skip
    many(tmp_path / "b" / "train")
    table = read(write(tmp_path / "b", test__cat__x="x", test__dog__y="y"))
    assert table.count("test") == 2
    assert 3 < table.count("val") < 25
    assert table.count("train") == 80 - table.count("val")


def test_what_cannot_be_used_is_counted_and_named(tmp_path: Path) -> None:
    top = write(many(tmp_path), cat__day1__more="a", **{"cat__.thumb": "t", ".git__x": "y"})
    (top / "empty").mkdir()
    (top / "cat" / "notes.txt").write_text("x")
    table = read(top)
    assert "cat" in {row.label for row in table.rows if row.image.parent.name == "day1"}
    assert len(table.rows) == 81  # hidden files do not count
    assert "class without pictures: empty" in table.skipped
    assert "no picture by its name: cat/notes.txt" in table.skipped
    with pytest.raises(DataError, match="2 pictures"):
        read(top, strict=True)


def test_the_same_picture_in_two_classes_is_left_out_of_both(tmp_path: Path) -> None:
    table = read(write(many(tmp_path), cat__same="twin", dog__other="twin", dog__third="alone!"))
    assert [entry for entry in table.skipped if entry.startswith("same picture in two classes")] == [
        "same picture in two classes: cat/same.png = dog/other.png",
        "same picture in two classes: dog/other.png = cat/same.png",
    ]
    assert not {"same.png", "other.png"} & {row.image.name for row in table.rows}
    assert "third.png" in {row.image.name for row in table.rows}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train__cat__1": "a", "dog__1": "b"}, "dog beside train"),
        ({"1": "a"}, "CLASS/PICTURE"),
        ({"empty__.hidden": "a"}, "class without pictures"),
    ],
)
def test_folders_that_make_no_table(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, **files))


def test_a_link_that_leads_back_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Followed, it would make every picture one of two classes."""
    many(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "cat" / "deep").symlink_to(tmp_path / "cat")
    table = read(tmp_path)
    assert len(table.rows) == 80
    assert table.skipped == ("link that leads back: loop",)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def pictures(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"{folder.name}{name}")
    return folder


def test_one_table_beside_the_pictures(tmp_path: Path) -> None:
    pictures(tmp_path, "a.png", "b.png")
    (tmp_path / "metadata.csv").write_text(
        "file_name;label;split\na.png;cat;train\nb.png;cat;test\ngone.png;cat;test\n"
    )
    table = read_quietly(f"metadata:{tmp_path}")
    assert [(row.image.name, row.label, row.split) for row in table.rows] == [
        ("a.png", "cat", "train"), ("b.png", "cat", "test")
    ]  # fmt: skip
    assert [each.partition(":")[0] for each in table.skipped] == [f"no such picture in {tmp_path}"]
    assert table.name == f"metadata:{tmp_path}"
    assert family_of_data(f"metadata:{tmp_path}").name == "classify"


def test_a_table_for_each_split(tmp_path: Path) -> None:
    for split, name in (("train", "a.png"), ("validation", "a.png"), ("test", "a.png")):
        pictures(tmp_path / split, name)
        line = {"file_name": name, "label": "cat", "query": "what?"}
        (tmp_path / split / "metadata.jsonl").write_text(json.dumps(line) + "\n[]\n")
    table = read_quietly(f"metadata:{tmp_path}")
    assert {(row.image.parent.name, row.split) for row in table.rows} == {
        ("train", "train"), ("validation", "val"), ("test", "test")
    }  # fmt: skip
    assert len(table.skipped) == 3
    assert family_of_data(f"metadata:{tmp_path}").name == "question"  # it has queries


def png(shade: int) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (3, 2), (shade, 0, 0)).save(stream, format="PNG")
    return stream.getvalue()


def write_parquet(path: Path, columns: dict[str, list[Any]], features: dict[str, Any] | None = None) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def test_pictures_inside_are_written_out_and_classes_named(tmp_path: Path) -> None:
    images = [{"bytes": png(10), "path": "a.png"}, {"bytes": png(20), "path": None}, {"bytes": b"no", "path": None}]
    path = write_parquet(
        tmp_path / "train-00000-of-00001.parquet",
        {"image": images, "label": [1, 0, 0]},
        {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}},
    )
    table = read_quietly(f"parquet:{path}")
    assert [(row.label, row.split) for row in table.rows] == [("dog", "train"), ("cat", "train")]
    assert [Image.open(row.image).getpixel((0, 0)) for row in table.rows] == [(10, 0, 0), (20, 0, 0)]
    assert table.skipped == ("bytes that are no picture: row 3",)
    table.rows[0].image.write_bytes(png(99))  # replaced in the cache
    assert read_quietly(f"parquet:{path}").rows[0].image.read_bytes() == png(10)
    assert family_of_data(f"parquet:{path}").name == "classify"


def test_lists_inside_are_labels_and_files_of_a_folder_have_their_splits_by_name(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data" / "train-0.parquet", {"image": [png(1), png(2)], "labels": [["x", "x"], []]})
    write_parquet(tmp_path / "data" / "test-0.parquet", {"image": [png(3)], "labels": [["x"]]})
    rows = read_quietly(f"parquet:{tmp_path / 'data'}", "multiset").rows
    assert sorted((row.split, row.labels) for row in rows) == [("test", ("x",)), ("train", ()), ("train", ("x", "x"))]
    assert family_of_data(f"parquet:{tmp_path / 'data'}").name == "multiset"


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet", {"label": ["x"]})
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    for reference, message in [
        ("parquet:{}/t.parquet", "no column image; found label"),
        ("parquet:{}/bad.parquet", r"bad\.parquet"),
        ("parquet:{}/empty", r"empty: no \.parquet"),
        ("metadata:{}/empty", r"empty: .*metadata\.csv"),
    ]:
        with pytest.raises(DataError, match=message):
            read_quietly(reference.format(tmp_path))


NAMES = ("mref", "csv")
"""Data that has a name."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("classes/cat", "described", "many/train", "mref", "flat"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "classes" / "cat" / "1.png").touch()
    (tmp_path / "described" / "metadata.csv").touch()
    (tmp_path / "many" / "train" / "metadata.jsonl").touch()
    (tmp_path / "flat" / "1.png").touch()
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet", "other.json"):
        (tmp_path / name).touch()
    (tmp_path / "coco.json").write_text('{"info": {}, "images": [], "annotations": []}')
    return tmp_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("classes/", "folder:classes"),
        ("many/", "metadata:many"),
        ("a.csv", "csv:a.csv"),
        ("a.parquet", "parquet:a.parquet"),
        ("coco.json", "coco:coco.json"),
        ("mref", "mref"),  # a generator, even beside a folder of its name
        ("csv:a.csv", "csv:a.csv"),
    ],
)
def test_each_kind_has_its_reader(place: Path, path: str, found: str) -> None:
    (place / "mref" / "cat").mkdir()
    assert with_reader(path, NAMES) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone.csv", "no such file or folder; data is a name"),
        ("mrf", "no such file or folder; did you mean 'mref'"),
        ("flat/", "no folders of classes.*metadata.csv"),
        ("other.json", "not a kind of file"),
    ],
)
def test_what_is_no_data_says_what_would_be(place: Path, path: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        with_reader(path, NAMES)


SQUARE = [[1, 1, 4, 1, 4, 3, 1, 3]]
"""Down the columns: the second column has its rows 1 and 2."""


def annotated(folder: Path, *annotations: dict[str, Any], size: tuple[int, int] = (4, 6)) -> Path:
    """Pictures 1 to 3 of ``size`` (H, W), each with the annotations that name it."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images = []
    for number in (1, 2, 3):
        Image.new("RGB", (size[1], size[0])).save(folder / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "height": size[0], "width": size[1]})
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": list(annotations)}))
    return path


def read_annotated(path: Path) -> Table:
    return read_quietly(f"coco:{path}", "classify")


def mask_of(table: Table) -> np.ndarray:
    return np.asarray(Image.open(table.rows[0].mask).convert("L")) > 0


def test_a_picture_of_one_category_is_a_row(tmp_path: Path) -> None:
    table = read_annotated(
        annotated(
            tmp_path,
            {"image_id": 1, "category_id": 7, "bbox": [1, 1, 2, 1]},
            {"image_id": 1, "category_id": 7, "bbox": [3, 0, 2, 4]},
            {"image_id": 2, "category_id": 7, "bbox": [0, 0, 1, 1]},
            {"image_id": 2, "category_id": 9, "bbox": [0, 0, 1, 1]},
        )
    )
    (row,) = table.rows
    assert (row.image, row.label, row.box, row.mask) == (tmp_path / "images" / "1.png", "cat", (1, 0, 5, 4), None)
    assert sorted(table.skipped) == ["no annotation: 3.png", "several categories: 2.png"]


def test_polygons_become_a_mask_in_the_cache_which_is_drawn_again_if_it_was_replaced(tmp_path: Path) -> None:
    path = annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": SQUARE})
    marked = mask_of(read_annotated(path))
    assert marked.shape == (4, 6)
    assert marked[1:3, 1:4].all()
    assert not marked[0].any()
    assert not marked[:, 5].any()
    mask = read_annotated(path).rows[0].mask
    assert mask.is_relative_to(tmp_path / "home")
    before = mask.read_bytes()
    mask.write_bytes(b"something else")
    assert read_annotated(path).rows[0].mask == mask
    assert mask.read_bytes() == before


def encoded(lengths: list[int]) -> str:
    """COCO's string, written after its definition."""
    text = ""
    for at, length in enumerate(lengths):
        value = length - lengths[at - 2] if at > 2 else length
        more = True
        while more:
            part = value & 0x1F
            value >>= 5
            more = value != -1 if part & 0x10 else value != 0
            text += chr((part | 0x20 if more else part) + 48)
    return text


@pytest.mark.parametrize("as_text", [False, True])
def test_run_lengths_as_numbers_and_as_text(tmp_path: Path, as_text: bool) -> None:
    """Down the columns; as text, the lengths from the fourth on are differences, some of them negative."""
    lengths = [100, 700, 3, 40, 900, 1, 656]
    runs = {"size": [60, 40], "counts": encoded(lengths) if as_text else lengths}
    path = annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": runs}, size=(60, 40))
    down = np.concatenate([np.full(length, at % 2) for at, length in enumerate(lengths)])
    assert np.array_equal(mask_of(read_annotated(path)), down.reshape(40, 60).T > 0)


@pytest.mark.parametrize(
    ("segmentation", "why"),
    [
        ({"size": [4, 6], "counts": [5, 2]}, "unreadable segmentation: 1.png, runs that do not add up to 4 × 6"),
        ({"size": [10**6, 10**6], "counts": [10**12]}, "unreadable segmentation: 1.png, run lengths of"),
        ({"size": [4, 6], "counts": [2**62, 2**62, 2**62, 2**62 + 24]}, "unreadable segmentation: 1.png"),
    ],
)
def test_a_segmentation_that_is_none_is_counted(tmp_path: Path, segmentation: object, why: str) -> None:
    good = {"image_id": 2, "category_id": 9, "bbox": [0, 0, 1, 1]}
    table = read_annotated(annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": segmentation}, good))
    assert len(table.rows) == 1
    assert any(each.startswith(why) for each in table.skipped)


@pytest.mark.parametrize("text", ["{", "[]", '{"images": [{"id": 1e999}]}'])
def test_a_file_that_is_no_coco_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=r"x\.json"):
        read_annotated(tmp_path / "x.json")
