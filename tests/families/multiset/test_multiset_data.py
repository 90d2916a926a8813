"""Multisets as scenes and batches; tables of labels and boxes, both layouts of SVHN, and rows that cannot be used."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.data import Row, Table
from saccade.data.pictures.augment import Augmentation
from saccade.data.scenes.backgrounds import strewn
from saccade.data.scenes.drawing import resized
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import GlyphLayout
from saccade.errors import DataError
from saccade.families.multiset.data import MultisetDataConfig, MultisetFiles, MultisetScenes
from saccade.families.multiset.readers import (
    COLUMNS,
    Kind,
    SvhnOptions,
    commonest_multiset,
    read_digit_struct,
    read_svhn,
)
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets
from saccade.families.multiset.task import MultisetTask
from small_tables import pretend_pictures, table_of

SPEC = MultisetSpec()
SET = MultisetSpec(repeats=False)


def sample(numbers: torch.Tensor, spec: MultisetSpec = SPEC, seed: int = 0) -> GlyphLayout:
    return sample_multisets(spec, glyphs_for("train", "pack"), seed, numbers)


@pytest.fixture(scope="module")
def thousand() -> GlyphLayout:
    return sample(torch.arange(1000))


def test_counts_sizes_and_digits_are_spread_as_in_the_paper():
    layout = sample(torch.arange(6000), seed=5)
    counts = torch.bincount(layout.count, minlength=5) / 6000
    assert counts[0] == 0
    assert (counts[1:] - 0.25).abs().max() < 0.02
    sides = layout.side[layout.present]
    assert (int(sides.min()), int(sides.max())) == (20, 50)
    assert abs(sides.double().mean() - 35) < 0.3
    classes = torch.bincount(layout.classes[layout.present], minlength=10) / layout.present.sum()
    assert (classes - 0.1).abs().max() < 0.01
    assert torch.equal(layout.glyphs.labels[layout.glyph], layout.classes)


def test_a_multiset_repeats_digits_and_a_set_does_not():
    def share_with_repeats(spec: MultisetSpec) -> float:
        layout = sample(torch.arange(3000), spec)
        rows = [row[:count].tolist() for row, count in zip(layout.classes, layout.count.tolist())]
        return sum(len(set(row)) < len(row) for row in rows) / len(rows)

    assert share_with_repeats(SET) == 0
    # 1 to 4 digits, each as often: 1 − (1 + 0.9 + 0.9·0.8 + 0.9·0.8·0.7) / 4
    assert share_with_repeats(SPEC) == pytest.approx(0.219, abs=0.02)


def test_digits_have_cells_as_large_as_the_largest_and_come_in_reading_order(thousand):
    for b in range(300):
        boxes = thousand.boxes[b][thousand.present[b]].tolist()
        cell = max(x1 - x0 for x0, _, x1, _ in boxes)
        corners = [(y0 // cell, x0 // cell) for x0, y0, _, _ in boxes]
        assert corners == sorted(set(corners))
        for (row, column), (_, _, x1, y1) in zip(corners, boxes):
            assert x1 <= (column + 1) * cell <= 100
            assert y1 <= (row + 1) * cell <= 100


def test_pictures_are_clutter_with_the_digits_written_over_it(thousand):
    """Each pixel by hand: the clutter, then of every digit the pixels that have ink."""
    part = thousand[:12]
    expected = strewn(part.glyphs, 0, part.index, 100, 8).long()
    for b in range(12):
        for k in range(int(part.count[b])):
            x, y, side = int(part.x[b, k]), int(part.y[b, k]), int(part.side[b, k])
            ink = resized(part.glyphs.images[part.glyph[b, k]][None], torch.tensor([side]), side)[0].long()
            window = expected[b, y : y + side, x : x + side]
            window[ink > 0] = ink[ink > 0]
    images = paint(part)
    assert images.shape == (12, 3, 100, 100)
    for channel in range(3):
        assert torch.equal(images[:, channel].long(), expected)


def generated(name: str = "mnist-multiset", split: str = "val", **settings) -> MultisetScenes:
    return MultisetScenes(MultisetDataConfig(name, glyphs="pack", **settings), split)


def test_labels_come_first_and_have_their_boxes_and_masks():
    batch = generated().take(torch.arange(60))
    counts = batch.present.sum(1)
    assert torch.equal(batch.present, torch.arange(4) < counts[:, None])
    assert torch.equal(batch.boxes.isfinite().all(-1), batch.present)
    assert batch.boxes[~batch.present].isnan().all()
    masks = batch.masks()
    assert masks.shape == (60, 4, 100, 100)
    assert torch.equal(masks.flatten(2).any(-1), batch.present)
    for b in range(60):
        for k in range(int(counts[b])):
            x0, y0, x1, y1 = batch.boxes[b, k].int().tolist()
            assert masks[b, k].sum() == masks[b, k, y0:y1, x0:x1].sum()
            assert (batch.images[b, 0][masks[b, k]] > 0).all()


def test_empty_scenes_are_in_training_only_unless_asked_for():
    def empty(data: MultisetScenes) -> float:
        return float((data.take(torch.arange(1024)).present.sum(1) == 0).float().mean())

    assert empty(generated(split="train")) == pytest.approx(0.03, abs=0.015)
    assert empty(generated(split="train", empty=0.0)) == 0
    assert empty(generated(split="test")) == empty(generated(split="val", empty=0.5)) == 0
    assert empty(generated(split="test", options={"empty_held_out": 0.5})) == pytest.approx(0.5, abs=0.04)
    assert empty(generated("mnist-single", "train", empty=0.5)) == 0


def test_a_seed_shuffles_labels_with_their_places():
    data = generated(split="train")
    plain, mixed = data.take(torch.arange(300)), data.take(torch.arange(300)).shuffled(7)
    again, other = data.take(torch.arange(300)).shuffled(7), data.take(torch.arange(300)).shuffled(8)
    assert torch.equal(mixed.labels, again.labels)
    assert not torch.equal(mixed.boxes.nan_to_num(), other.boxes.nan_to_num())
    assert torch.equal(plain.counts(10), mixed.counts(10))
    assert torch.equal(plain.present, mixed.present)  # padding stays behind
    assert torch.equal(plain.images, mixed.images)
    mixed_masks, masks = mixed.masks(), plain.masks()
    for b in range(20):
        for k in range(int(mixed.present[b].sum())):
            (was,) = (plain.boxes[b] == mixed.boxes[b, k]).all(-1).nonzero().flatten().tolist()
            assert plain.labels[b, was] == mixed.labels[b, k]
            assert torch.equal(mixed_masks[b, k], masks[b, was])


def test_training_pictures_are_varied_by_a_seed_and_their_boxes_follow():
    turned = MultisetDataConfig(glyphs="pack", augment=Augmentation(area=(1.0, 1.0), aspect=1.0))  # mirrors half
    plain, numbers = MultisetScenes(MultisetDataConfig(glyphs="pack"), "train"), torch.arange(40)
    data = MultisetScenes(turned, "train")
    varied, again, still = data.take(numbers, vary=3), data.take(numbers, vary=3), plain.take(numbers)
    assert torch.equal(varied.images, again.images)
    assert torch.equal(data.take(numbers).images, still.images)  # nobody asked
    assert torch.equal(plain.take(numbers, vary=3).images, still.images)  # nobody said how
    assert torch.equal(varied.labels, still.labels)
    mirrored = (varied.images - still.images).abs().flatten(1).amax(1) > 0.01
    assert 8 < int(mirrored.sum()) < 32
    torch.testing.assert_close(varied.images[mirrored], still.images[mirrored].flip(-1))
    flipped = still.boxes[mirrored][..., [2, 1, 0, 3]] * torch.tensor([-1, 1, -1, 1]) + torch.tensor([100, 0, 100, 0])
    torch.testing.assert_close(varied.boxes[mirrored], flipped, equal_nan=True)
    ink = varied.images[:, 0] > 0
    assert (varied.masks().any(1) & ink).sum() > 0.9 * ink.sum()  # boxes hold the digits, and clutter is little


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
