"""Questions as batches: numbers of queries and labels, with or without their pictures; evidence of varied pictures."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.data import Row, Table
from saccade.data.pictures.augment import Augmentation
from saccade.families.question.readers import COLUMNS
from saccade.families.question.tables import TableData, TableDataConfig


def picture(folder: Path, name: str, seed: int = 0) -> Path:
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 40, 3), dtype=np.uint8)).save(folder / name)
    return folder / name


def opened(*rows: Row, several: bool = False, size=(32, 32), **settings) -> TableData:
    table = Table.of("csv:t.csv", [(str(n), row) for n, row in enumerate(rows)], COLUMNS, several=several)
    return TableData(TableDataConfig("csv:t.csv", size=size, **settings), "train", table=table)


@pytest.fixture
def three(tmp_path: Path) -> TableData:
    a, b = picture(tmp_path, "a.png"), picture(tmp_path, "b.png", seed=1)
    rows = [(a, "wing", "red"), (b, "crown", "blue"), (a, "crown", "red")]
    return opened(*(Row(image, (label,), "train", query=query) for image, query, label in rows))


def test_numbers_follow_the_words_of_the_table(three):
    batch = three.take(torch.tensor([2, 0, 1]))
    assert (three.queries, three.answers, three.size, len(three)) == (("crown", "wing"), ("blue", "red"), 3, 3)
    assert (batch.query.tolist(), batch.label.tolist()) == ([0, 1, 0], [1, 1, 0])
    assert batch.picture.tolist() == [0, 0, 1]
    assert [len(three.shown(count)) for count in (5, 1)] == [2, 1]


def test_questions_come_without_their_pictures_too(three):
    query, label, number = three.questions(torch.tensor([2, 0, 1]))
    assert (query.tolist(), label.tolist(), number.tolist()) == ([0, 1, 0], [1, 1, 0], [0, 0, 1])


def test_several_labels_are_a_row_of_zeros_and_ones(tmp_path):
    image = picture(tmp_path, "a.png")
    rows = [Row(image, labels, "train", query=q) for q, labels in (("p", ("a", "c")), ("q", ("b",)))]
    batch = opened(*rows, several=True).take(torch.tensor([0, 1]))
    assert batch.label.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    assert batch.label.dtype == torch.float32


def test_boxes_follow_varied_pictures_and_masks_where_they_are_asked_for(tmp_path):
    """A white square on black is its own mask: wherever the picture goes, the mask lies on the white pixels."""
    image = Image.new("RGB", (60, 60))
    image.paste((255, 255, 255), (10, 20, 25, 35))
    image.save(tmp_path / "a.png")
    row = Row(tmp_path / "a.png", ("x",), "train", query="q", mask=tmp_path / "a.png", box=(10, 20, 25, 35))
    data = opened(row, size=(60, 60), augment=Augmentation(area=(0.7, 1.0)))
    numbers = torch.zeros(20, dtype=torch.long)
    batch, without = data.take(numbers, vary=3, masks=True), data.take(numbers, vary=3)
    white = batch.images[:, 0] > 0.5
    assert int((white ^ batch.evidence()).sum()) < 0.05 * int(white.sum())
    assert len({int(each.sum()) for each in batch.marks.mask}) > 5  # they do vary
    assert without.marks.mask is None
    assert torch.equal(without.marks.box, batch.marks.box)


def test_from_a_file_on_disk_to_a_batch(tmp_path):
    for n in range(3):
        picture(tmp_path, f"{n}.png", seed=n)
    (tmp_path / "t.csv").write_text("image,query,label,split\n" + "".join(f"{n}.png,q,x{n},train\n" for n in range(3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = TableData(TableDataConfig(f"csv:{tmp_path / 't.csv'}", size=(24, 24)), "train")
    assert data.take(torch.tensor([2])).label.tolist() == [2]
