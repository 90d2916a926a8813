"""Questions as batches: labels, evidence in the network input, pictures that fail, a model's own words."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from saccade.data.pictures.label_evidence import POINT_RADIUS
from saccade.families.question.table import Question, make_table

from saccade.data.pictures.augment import Augmentation
from saccade.data.pictures.reading import prepare, read_picture
from saccade.errors import DataError
from saccade.families.question.tables.data import TableBatch, TableData, TableDataConfig
from saccade.geometry import apply, touched

NAN = float("nan")


def picture(folder: Path, name: str, size: tuple[int, int] = (40, 20), seed: int = 0) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def opened(*rows: Question, multi_label: bool = False, size=(32, 32), split: str = "train", **more) -> TableData:
    table = make_table("csv:t.csv", [(str(n), row) for n, row in enumerate(rows)], [], multi_label=multi_label)
    settings = {key: more.pop(key) for key in ("cache_mb", "augment") if key in more}
    return TableData(TableDataConfig("csv:t.csv", size=size, **settings), split, table=table, **more)


def test_pictures_are_laid_in_as_look_does(tmp_path):
    image = picture(tmp_path, "a.png")
    batch = opened(Question(image, "q", ("x",), "train")).take(torch.tensor([0, 0]))
    wanted, canvas, size = prepare(read_picture(image), (32, 32))
    assert batch.images.dtype == torch.float32
    assert float((batch.images - wanted).abs().max()) <= 0.5 / 255 + 1e-6  # kept as bytes
    assert torch.equal(batch.canvas[1], canvas)
    assert torch.equal(batch.image_size[1], size)
    assert batch.images.is_contiguous(memory_format=torch.channels_last)


def test_numbers_follow_the_words_of_the_table(tmp_path):
    a, b = picture(tmp_path, "a.png"), picture(tmp_path, "b.png", seed=1)
    rows = [(a, "wing", "red"), (b, "crown", "blue"), (a, "crown", "red")]
    data = opened(*(Question(image, query, (label,), "train") for image, query, label in rows))
    batch = data.take(torch.tensor([2, 0, 1]))
    assert (data.queries, data.answers, data.size, len(data)) == (("crown", "wing"), ("blue", "red"), 3, 3)
    assert (batch.query.tolist(), batch.label.tolist()) == ([0, 1, 0], [1, 1, 0])
    assert batch.picture.tolist() == [0, 0, 1]
    assert data.one_per_picture(5).tolist() == [0, 1]
    assert data.one_per_picture(1).tolist() == [0]


def test_questions_come_without_their_pictures_too(tmp_path):
    a, b = picture(tmp_path, "a.png"), picture(tmp_path, "b.png", seed=1)
    rows = [(a, "wing", "red"), (b, "crown", "blue"), (a, "crown", "red")]
    data = opened(*(Question(image, query, (label,), "train") for image, query, label in rows))
    query, label, number = data.questions(torch.tensor([2, 0, 1]))
    assert (query.tolist(), label.tolist(), number.tolist()) == ([0, 1, 0], [1, 1, 0], [0, 0, 1])
    with pytest.raises(DataError, match=r"train questions are numbered 0\.\.2, found 1\.\.3"):
        data.questions(torch.tensor([1, 3]))


def test_several_labels_are_a_row_of_zeros_and_ones(tmp_path):
    image = picture(tmp_path, "a.png")
    rows = [Question(image, q, labels, "train") for q, labels in (("p", ("a", "c")), ("q", ("b",)))]
    batch = opened(*rows, multi_label=True).take(torch.tensor([0, 1]))
    assert batch.label.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    assert batch.label.dtype == torch.float32


def test_a_models_own_words(tmp_path):
    image = picture(tmp_path, "a.png")
    rows = [Question(image, q, (a,), "test") for q, a in (("p", "x"), ("q", "x"), ("p", "new"), ("new", "x"))]
    with pytest.warns(UserWarning, match=r"2 questions, left out 1 × label unknown to the model \(a.png, p, 'new'\)"):
        data = opened(*rows, split="test", queries=("q", "p"), answers=("z", "y", "x"))
    batch = data.take(torch.arange(2))
    assert (batch.query.tolist(), batch.label.tolist()) == ([1, 0], [2, 2])
    assert data.skipped == (
        "label unknown to the model: a.png, p, 'new'",
        "query unknown to the model: a.png, new, 'new'",
    )


@pytest.mark.parametrize("cache_mb", [0, 1, 4096])
def test_what_is_kept_changes_nothing(tmp_path, cache_mb):
    paths = [picture(tmp_path, f"{n}.png", (300, 200), seed=n) for n in range(5)]
    rows = [Question(path, "q", ("x",), "train", point=(10, 20)) for path in paths]
    data, whole = opened(*rows, cache_mb=cache_mb, size=(300, 300)), opened(*rows, size=(300, 300))
    numbers = torch.tensor([4, 0, 4, 2])
    for one, other in zip(vars(data.take(numbers)).values(), vars(whole.take(numbers)).values()):
        assert one is other or torch.equal(one.nan_to_num(-1.0), other.nan_to_num(-1.0))


def test_boxes_and_points_go_through_the_canvas(tmp_path, assert_near):
    image = picture(tmp_path, "a.png", (40, 20))  # into 32×32: scaled by 0.8, with 8 rows above and below
    row = Question(image, "q", ("x",), "train", box=(0, 0, 20, 10), point=(40, 20))
    batch = opened(row, Question(image, "p", ("x",), "train")).take(torch.tensor([0, 1]))
    assert_near(batch.box[0], [0.0, 8.0, 16.0, 16.0])
    assert_near(batch.point[0], [32.0, 24.0])
    assert bool(batch.box[1].isnan().all())
    assert bool(batch.point[1].isnan().all())
    assert batch.evidence().flatten(1).any(1).tolist() == [True, False]
    assert batch.mask is None


def batch_of(box=(NAN,) * 4, point=(NAN,) * 2, mask=None, size=(28, 28)) -> TableBatch:
    zero = torch.zeros(1, dtype=torch.long)
    return TableBatch(
        torch.zeros(1, 3, *size), zero, zero, torch.eye(2, 3)[None], zero.expand(1, 2), zero,
        torch.tensor([box]), torch.tensor([point]), mask,
    )  # fmt: skip


def test_evidence_of_a_box_is_what_it_touches():
    found = batch_of(box=(2.0, 3.0, 5.0, 4.0)).evidence()[0]
    assert found.nonzero().tolist() == [[3, 2], [3, 3], [3, 4]]
    assert batch_of(box=(2.4, 3.4, 2.6, 3.6)).evidence()[0].nonzero().tolist() == [[3, 2]]  # smaller than a pixel


def test_evidence_of_a_point_is_a_disc():
    assert POINT_RADIUS * 28 == 2
    found = batch_of(point=(10.5, 4.5)).evidence()[0]
    assert int(found.sum()) == 13  # pixels whose centre is within 2 of a pixel's centre: 1 + 3 + 5 + 3 + 1
    assert bool(found[4, 12])
    assert not bool(found[4, 13])
    assert not bool(found[6, 11])


def test_the_finest_evidence_counts():
    mask = torch.zeros(1, 28, 28, dtype=torch.bool)
    mask[0, 9, 9] = True
    box, point = (0.0, 0.0, 28.0, 28.0), (10.5, 4.5)
    assert int(batch_of(box, point, mask).evidence().sum()) == 1
    assert int(batch_of(box, point).evidence().sum()) == 13
    assert int(batch_of(box, point, torch.zeros_like(mask)).evidence().sum()) == 13
    assert int(batch_of(box).evidence().sum()) == 28 * 28
    assert int(batch_of().evidence().sum()) == 0
    assert int(batch_of(mask=mask).evidence().sum()) == 1
    assert int(batch_of(mask=torch.zeros_like(mask)).evidence().sum()) == 0


def save_mask(path: Path, size: tuple[int, int], box: tuple[int, int, int, int]) -> Path:
    image = Image.new("L", size)
    image.paste(1, box)  # one is not zero
    image.save(path)
    return path


def test_masks_are_laid_in_like_their_picture(tmp_path):
    image = picture(tmp_path, "a.png", (64, 32))
    mask = save_mask(tmp_path / "m.png", (64, 32), (0, 0, 32, 16))
    hair = save_mask(tmp_path / "h.png", (64, 32), (7, 0, 8, 32))  # a quarter of a pixel wide, beside an edge
    rows = [Question(image, q, ("x",), "train", mask=m) for q, m in (("a", None), ("b", mask), ("c", hair))]
    batch = opened(*rows, size=(16, 16)).take(torch.arange(3))
    assert batch.mask.flatten(1).sum(1).tolist() == [0, 32, 16]
    assert batch.mask[1].nonzero().amin(0).tolist() == [4, 0]
    assert batch.mask[1].nonzero().amax(0).tolist() == [7, 7]
    assert set(batch.mask[2].nonzero()[:, 1].tolist()) == {1, 2}
    assert torch.equal(batch.evidence(), batch.mask)
    assert opened(*rows, size=(16, 16)).take(torch.arange(3), augment_seed=1).mask is None


def test_masks_follow_varied_pictures_where_they_are_asked_for(tmp_path):
    """A white square on black is its own mask: wherever the picture goes, the mask lies on the white pixels."""
    image = Image.new("RGB", (60, 60))
    image.paste((255, 255, 255), (10, 20, 25, 35))
    image.save(tmp_path / "a.png")
    mask = save_mask(tmp_path / "m.png", (60, 60), (10, 20, 25, 35))
    row = Question(tmp_path / "a.png", "q", ("x",), "train", mask=mask)
    data = opened(row, size=(60, 60), augment=Augmentation(area=(0.7, 1.0)))
    batch = data.take(torch.zeros(20, dtype=torch.long), augment_seed=3, masks=True)
    white = batch.images[:, 0] > 0.5
    assert int((white ^ batch.mask).sum()) < 0.05 * int(white.sum())
    assert len({int(each.sum()) for each in batch.mask}) > 5  # they do vary


def test_varied_pictures_take_their_evidence_along(tmp_path):
    """A white square on black: wherever it goes, box and point go with it."""
    image = Image.new("RGB", (60, 60))
    image.paste((255, 255, 255), (10, 20, 25, 35))
    image.save(tmp_path / "a.png")
    row = Question(tmp_path / "a.png", "q", ("x",), "train", box=(10, 20, 25, 35), point=(17.5, 27.5))
    data = opened(row, size=(60, 60), augment=Augmentation(area=(0.7, 1.0)))
    batch = data.take(torch.zeros(40, dtype=torch.long), augment_seed=3)
    inside = batch.box[:, :2].ge(0).all(1) & batch.box[:, 2:].le(60).all(1)  # not cut by the crop
    assert int(inside.sum()) > 20
    for b in inside.nonzero().flatten().tolist():
        y, x = (batch.images[b, 0] > 0.5).nonzero().double().T + 0.5
        x0, y0, x1, y1 = batch.box[b].tolist()
        assert (x.mean().item(), y.mean().item()) == pytest.approx(((x0 + x1) / 2, (y0 + y1) / 2), abs=0.6)
        assert batch.point[b].tolist() == pytest.approx([(x0 + x1) / 2, (y0 + y1) / 2], abs=1e-3)
    back = apply(batch.canvas, batch.point.double())
    torch.testing.assert_close(back, torch.tensor([[17.5, 27.5]]).double().expand(40, 2), rtol=0, atol=1e-4)
    assert torch.equal(batch.images, data.take(torch.zeros(40, dtype=torch.long), augment_seed=3).images)


def test_evidence_follows_a_turned_and_slanted_picture(tmp_path):
    """The box holds every white pixel and goes no further; the point stays in the middle of them."""
    image = Image.new("RGB", (60, 60))
    image.paste((255, 255, 255), (20, 26, 36, 44))
    image.save(tmp_path / "a.png")
    row = Question(tmp_path / "a.png", "q", ("x",), "train", box=(20, 26, 36, 44), point=(28, 35))
    how = Augmentation(area=(0.9, 1.6), aspect=1.2, turn=25.0, slant=0.3)
    batch = opened(row, size=(60, 60), augment=how).take(torch.zeros(40, dtype=torch.long), augment_seed=3)
    white = batch.images[:, 0] > 0.5
    assert not bool((white & ~touched(batch.box, (60, 60))).any())
    for b in range(40):
        y, x = white[b].nonzero().float().T + 0.5
        assert batch.point[b].tolist() == pytest.approx([x.mean().item(), y.mean().item()], abs=0.5)
        edges = [x.min().item() - 0.5, y.min().item() - 0.5, x.max().item() + 0.5, y.max().item() + 0.5]
        assert batch.box[b].tolist() == pytest.approx(edges, abs=2)  # a sharp corner is not quite white


def test_what_does_not_fit_is_left_out_named_and_counted(tmp_path):
    good = picture(tmp_path, "good.png", (40, 20))
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:300])
    (tmp_path / "text.png").write_text("hello")
    wrong_size = save_mask(tmp_path / "size.png", (20, 40), (0, 0, 5, 5))
    black = save_mask(tmp_path / "black.png", (40, 20), (0, 0, 0, 0))
    rows = [
        Question(tmp_path / "cut.png", "a", ("x",), "train", mask=wrong_size),
        Question(tmp_path / "text.png", "a", ("x",), "train"),
        Question(good, "a", ("x",), "train"),
        Question(good, "b", ("x",), "train", mask=wrong_size),
        Question(good, "c", ("x",), "train", mask=black),
        Question(good, "d", ("x",), "train", box=(40, 0, 50, 9)),
        Question(good, "e", ("x",), "train", point=(3, 20.5)),
        Question(good, "f", ("x",), "train", point=(40, 20)),
    ]
    with pytest.warns(UserWarning, match="csv:t.csv train: 2 questions, left out 2 × unreadable picture"):
        data = opened(*rows)
    assert [row.query for row in data.rows] == ["a", "f"]
    assert [entry.partition(": ")[0] for entry in data.skipped] == [
        "unreadable picture", "unreadable picture", "unreadable mask", "unreadable mask",
        "box outside the picture", "point outside the picture",
    ]  # fmt: skip
    assert "cut.png" in data.skipped[0]
    assert "20×40 pixels for a picture of 40×20" in data.skipped[2]
    assert "black all over" in data.skipped[3]
    assert data.skipped[4] == "box outside the picture: good.png, d, 40×20"
    batch = data.take(torch.arange(2))
    assert batch.images.shape[0] == 2
    assert batch.mask is None


def test_from_a_file_on_disk_to_a_batch(tmp_path):
    for n in range(3):
        picture(tmp_path, f"{n}.png", (30 + n, 20), seed=n)
    (tmp_path / "t.csv").write_text("image,query,label,split\n" + "".join(f"{n}.png,q,x{n},train\n" for n in range(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = TableData(TableDataConfig(f"csv:{tmp_path / 't.csv'}", size=(24, 24)), "train")
    assert data.take(torch.tensor([2])).label.tolist() == [2]
    assert data.take(torch.tensor([2])).image_size.tolist() == [[20, 32]]


def test_a_model_is_scored_on_words_that_the_tables_own_train_rows_never_use(tmp_path):
    a, b = picture(tmp_path, "a.png"), picture(tmp_path, "b.png", seed=1)
    rows = (Question(a, "crown", ("red",), "train"), Question(b, "crown", ("green",), "test"))
    known = opened(*rows, split="test", queries=("crown",), answers=("green", "red"))
    assert (known.size, known.skipped) == (1, ())
    with pytest.raises(DataError, match="no question in split 'test'"):
        opened(*rows, split="test")
