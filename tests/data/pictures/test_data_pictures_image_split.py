"""One split of a table: pictures that fail, evidence in the network input, a model's own words, bounded memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from saccade.data import Row, Table
from saccade.data.pictures.augment import Augmentation
from saccade.data.pictures.image_split import POINT_RADIUS, ByteStore, ImageSplit, Marks, carried
from saccade.data.pictures.reading import prepare, read_picture
from saccade.data.tables.table import Columns, answers_in
from saccade.errors import DataError
from saccade.geometry import apply, compose, touched

NAN = float("nan")
ASKED = Columns(needed=("image", "label|labels"), labels=answers_in, asks=True, thing="question", unknown="label")


def picture(folder: Path, name: str, size: tuple[int, int] = (40, 20), seed: int = 0) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def row(image: Path, query: str = "q", label: str = "x", split: str = "train", **more: Any) -> Row:
    return Row(image, (label,), split, query=query, **more)


def opened(*rows: Row, size: tuple[int, int] = (32, 32), split: str = "train", **more: Any) -> ImageSplit:
    how = {name: more.pop(name) for name in ("several", "most", "kind") if name in more}
    table = Table.of("csv:t.csv", [(str(n), each) for n, each in enumerate(rows)], ASKED, **how)
    return ImageSplit(table, split, size, **{"cache_mb": 16, **more})


def test_pictures_are_laid_in_as_look_does_and_each_is_kept_once(tmp_path: Path) -> None:
    one, other = picture(tmp_path, "a.png"), picture(tmp_path, "b.png", seed=1)
    data = opened(row(one), row(other), row(one, "r"))
    images, frames = data.images(torch.tensor([2, 0]))
    wanted, canvas, _ = prepare(read_picture(one), (32, 32))
    assert (images.dtype, frames) == (torch.float32, None)
    assert float((images - wanted).abs().max()) <= 0.5 / 255 + 1e-6  # kept as bytes
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert data.picture.tolist() == [0, 1, 0]
    assert torch.equal(data.pictures.canvas[data.picture[2]], canvas)
    assert (data.size, len(data), data.queries, data.answers) == (3, 3, ("q", "r"), ("x",))


def test_a_models_own_words_decide_what_is_used(tmp_path: Path) -> None:
    image = picture(tmp_path, "a.png")
    rows = [row(image, q, a, "test") for q, a in (("p", "x"), ("q", "x"), ("p", "new"), ("new", "x"))]
    with pytest.warns(UserWarning, match=r"2 questions, .*\(a.png, p, 'new'\)"):
        data = opened(*rows, split="test", queries=("q", "p"), answers=("z", "y", "x"))
    assert [(each.query, each.label) for each in data.rows] == [("p", "x"), ("q", "x")]
    assert data.skipped == (
        "label unknown to the model: a.png, p, 'new'",
        "query unknown to the model: a.png, new, 'new'",
    )
    ours = (row(image, label="red"), row(picture(tmp_path, "b.png", seed=1), label="green", split="test"))
    known = opened(*ours, split="test", queries=("q",), answers=("green", "red"))  # no training row says green
    assert (known.size, known.skipped) == (1, ())
    with pytest.raises(DataError, match="test"):
        opened(*ours, split="test")


def test_more_labels_than_a_model_says_go_from_training_and_stay_to_be_scored(tmp_path: Path) -> None:
    image = picture(tmp_path, "a.png")
    rows = [Row(image, labels, split, query="q") for split in ("train", "test") for labels in (("a", "b"), ("a",))]
    how = {"several": True, "kind": "multiset", "most": 1, "split": "train"}
    with pytest.warns(UserWarning, match=r"a\.png"):
        train = opened(*rows, **how)
    assert ([each.labels for each in train.rows], train.beyond) == ([("a",)], 0)
    with pytest.warns(UserWarning, match="2 questions, 1 with more than the 1"):
        test = opened(*rows, **{**how, "split": "test"})
    assert (test.size, test.beyond) == (2, 1)


def test_boxes_and_points_go_through_the_canvas_and_boxes_end_with_the_picture(tmp_path: Path, assert_near) -> None:
    image = picture(tmp_path, "a.png", (40, 20))  # into 32×32: scaled by 0.8, with 8 rows above and below
    rows = (row(image, box=(0, 0, 20, 10), point=(40, 20)), row(image, "p"), row(image, "r", box=(-9, 10, 90, 99)))
    data = opened(*rows)
    marks = data.marks(torch.arange(3))
    assert_near(marks.box[0], [0.0, 8.0, 16.0, 16.0])
    assert_near(marks.point[0], [32.0, 24.0])
    assert_near(marks.box[2], [0.0, 16.0, 32.0, 24.0])
    assert bool(marks.box[1].isnan().all())
    assert bool(marks.point[1].isnan().all())
    assert marks.evidence().flatten(1).any(1).tolist() == [True, False, True]
    assert marks.mask is None
    assert data.boxes_of_objects(torch.arange(3)).isnan().all(1).tolist() == [False, True, True]


def marks_of(
    box: Sequence[float] = (NAN,) * 4, point: Sequence[float] = (NAN,) * 2, mask: Tensor | None = None
) -> Marks:
    return Marks((28, 28), torch.tensor([list(box)]), torch.tensor([list(point)]), mask)


def test_evidence_of_a_box_is_what_it_touches_and_of_a_point_a_disc() -> None:
    assert marks_of(box=(2.0, 3.0, 5.0, 4.0)).evidence()[0].nonzero().tolist() == [[3, 2], [3, 3], [3, 4]]
    assert marks_of(box=(2.4, 3.4, 2.6, 3.6)).evidence()[0].nonzero().tolist() == [[3, 2]]  # smaller than a pixel
    assert POINT_RADIUS * 28 == 2
    disc = marks_of(point=(10.5, 4.5)).evidence()[0]
    assert int(disc.sum()) == 13  # pixels whose centre is within 2 of a pixel's centre: 1 + 3 + 5 + 3 + 1
    assert (bool(disc[4, 12]), bool(disc[4, 13]), bool(disc[6, 11])) == (True, False, False)


def test_the_finest_evidence_counts_and_a_point_says_nothing_of_the_object() -> None:
    mask = torch.zeros(1, 28, 28, dtype=torch.bool)
    mask[0, 9, 9] = True
    none, box, point = torch.zeros_like(mask), (0.0, 0.0, 28.0, 28.0), (10.5, 4.5)
    for marks, evidence, region in [
        (marks_of(box, point, mask), 1, 1),
        (marks_of(box, point), 13, 28 * 28),
        (marks_of(box, point, none), 13, 28 * 28),
        (marks_of(box), 28 * 28, 28 * 28),
        (marks_of(point=point), 13, 0),
        (marks_of(), 0, 0),
        (marks_of(mask=mask), 1, 1),
        (marks_of(mask=none), 0, 0),
    ]:
        assert (int(marks.evidence().sum()), int(marks.region().sum())) == (evidence, region)


def save_mask(path: Path, size: tuple[int, int], box: tuple[int, int, int, int]) -> Path:
    image = Image.new("L", size)
    image.paste(1, box)  # one is not zero
    image.save(path)
    return path


def test_masks_are_laid_in_like_their_picture(tmp_path: Path) -> None:
    image = picture(tmp_path, "a.png", (64, 32))
    mask = save_mask(tmp_path / "m.png", (64, 32), (0, 0, 32, 16))
    hair = save_mask(tmp_path / "h.png", (64, 32), (7, 0, 8, 32))  # a quarter of a pixel wide, beside an edge
    two = Image.new("L", (64, 32))
    two.paste(1, (0, 0, 32, 16))
    two.paste(2, (32, 16, 64, 32))
    two.save(tmp_path / "two.png")
    rows = [row(image, q, mask=m) for q, m in (("a", None), ("b", mask), ("c", hair))]
    data = opened(*rows, row(image, "d", mask=tmp_path / "two.png", mask_grey=2), size=(16, 16))
    found = data.marks(torch.arange(4)).mask
    assert found.flatten(1).sum(1).tolist() == [0, 32, 16, 32]
    assert [found[1].nonzero().amin(0).tolist(), found[1].nonzero().amax(0).tolist()] == [[4, 0], [7, 7]]
    assert set(found[2].nonzero()[:, 1].tolist()) == {1, 2}
    assert [found[3].nonzero().amin(0).tolist(), found[3].nonzero().amax(0).tolist()] == [[8, 8], [11, 15]]
    assert torch.equal(data.marks(torch.arange(4)).evidence(), found)
    assert data.marks(torch.arange(4), masks=False).mask is None


TILTS = [Augmentation(area=(0.7, 1.0)), Augmentation(area=(0.9, 1.6), aspect=1.2, turn=25.0, slant=0.3)]


@pytest.mark.parametrize("how", TILTS, ids=["cut", "turned"])
def test_varied_pictures_take_their_evidence_along(tmp_path: Path, how: Augmentation) -> None:
    """A white square on black: wherever it goes, box, point and mask go with it."""
    image, corners = Image.new("RGB", (60, 60)), (20, 26, 36, 44)
    image.paste((255, 255, 255), corners)
    image.save(tmp_path / "a.png")
    mask = save_mask(tmp_path / "m.png", (60, 60), corners)
    data = opened(
        row(tmp_path / "a.png", box=corners, point=(28, 35)), row(tmp_path / "a.png", "m", mask=mask), size=(60, 60)
    )
    numbers = torch.zeros(40, dtype=torch.long)
    images, frames = data.images(numbers, how, 3)
    assert torch.equal(images, data.images(numbers, how, 3)[0])
    marks, white = data.marks(numbers, frames), images[:, 0] > 0.5
    assert not bool((white & ~touched(marks.box, (60, 60))).any())
    inside = marks.box[:, :2].ge(0).all(1) & marks.box[:, 2:].le(60).all(1)  # not cut by the crop
    assert int(inside.sum()) > 20
    for b in inside.nonzero().flatten().tolist():
        y, x = white[b].nonzero().float().T + 0.5
        assert marks.point[b].tolist() == pytest.approx([x.mean().item(), y.mean().item()], abs=0.6)
        edges = [x.min().item() - 0.5, y.min().item() - 0.5, x.max().item() + 0.5, y.max().item() + 0.5]
        assert marks.box[b].tolist() == pytest.approx(edges, abs=2)  # a sharp corner is not quite white
    back = apply(compose(data.pictures.canvas[data.picture[numbers]], frames), marks.point.double())
    torch.testing.assert_close(back, torch.tensor([[28.0, 35.0]]).double().expand(40, 2), rtol=0, atol=1e-4)
    masks = data.marks(numbers + 1, frames).mask
    assert int((white ^ masks).sum()) < 0.05 * int(white.sum())
    assert torch.equal(masks, carried(data.marks(numbers + 1).evidence(), frames))


def test_what_does_not_fit_is_left_out_named_and_counted(tmp_path: Path) -> None:
    good = picture(tmp_path, "good.png", (40, 20))
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:300])
    (tmp_path / "text.png").write_text("hello")
    wrong_size = save_mask(tmp_path / "size.png", (20, 40), (0, 0, 5, 5))
    black = save_mask(tmp_path / "black.png", (40, 20), (0, 0, 0, 0))
    rows = [
        row(tmp_path / "cut.png", "a", mask=wrong_size),
        row(tmp_path / "text.png", "a"),
        row(good, "a"),
        row(good, "b", mask=wrong_size),
        row(good, "c", mask=black),
        row(good, "d", box=(40, 0, 50, 9)),
        row(good, "e", point=(3, 20.5)),
        row(good, "g", boxes=(None, (0, 20, 9, 30))),
        row(good, "f", point=(40, 20)),
    ]
    with pytest.warns(UserWarning, match=r"csv:t\.csv train: 2 questions, left out 2 × unreadable picture"):
        data = opened(*rows)
    assert [each.query for each in data.rows] == ["a", "f"]
    assert [entry.partition(": ")[0] for entry in data.skipped] == [
        "unreadable picture", "unreadable picture", "unreadable mask", "unreadable mask",
        "box outside the picture", "point outside the picture", "box outside the picture",
    ]  # fmt: skip
    for entry, named in zip(data.skipped, ("cut.png", "text.png", "20×40", "black.png", "good.png", "40×20")):
        assert named in entry
    assert data.images(torch.arange(2))[0].shape[0] == 2
    assert data.marks(torch.arange(2)).mask is None


@pytest.mark.parametrize("limit", [0, 401, 1 << 20])
def test_the_limit_does_not_change_what_is_taken_and_what_is_kept_is_decoded_once(limit: int) -> None:
    bad, asked = [1], []

    def decode(number: int) -> torch.Tensor:
        asked.append(number)
        if number in bad:
            raise DataError(f"{number} is damaged")
        return torch.full((2, 2), number % 256, dtype=torch.uint8)

    store = ByteStore(600, decode, (2, 2), limit=limit)  # more than is decoded at once
    assert (sorted(asked), store.unreadable) == (list(range(600)), {1: "1 is damaged"})
    asked.clear()
    numbers = torch.tensor([599, 0, 3, 300, 0, 255])
    assert torch.equal(store.take(numbers), (numbers % 256).to(torch.uint8)[:, None, None].expand(6, 2, 2))
    assert sorted(asked) == [number for number in sorted(numbers.tolist()) if number >= limit // 4]
    bad.append(599)
    if limit < 600 * 4:
        with pytest.raises(DataError, match="599 is damaged"):
            store.take(torch.tensor([0, 599]))
