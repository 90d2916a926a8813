"""Examples of a split for sheets and reports: the picture, the question, the truth in words, and where it is."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image

from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.tables import TableData, TableDataConfig


def table(folder: Path, text: str) -> str:
    for number in range(3):
        Image.new("RGB", (20, 10), (80 * number, 0, 0)).save(folder / f"{number}.png")
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return f"csv:{folder / 't.csv'}"


def test_scenes_of_attributes_ask_about_each_scene_once() -> None:
    data = SceneData(SceneDataConfig(glyphs="pack"), "test")
    found = data.shown(3)
    batch = data.take(data.one_per_scene(3))
    assert [each.question for each in found] == [data.queries[query] for query in batch.query.tolist()]
    assert [each.truth for each in found] == [data.answers[label] for label in batch.label.tolist()]
    assert found[0].caption == f"{found[0].question} → {found[0].truth}"
    for each, image, mask in zip(found, batch.images, batch.evidence()):
        assert torch.equal(each.source, image)
        assert len(each.masks) == 1
        assert torch.equal(each.masks[0], mask)


def test_questions_without_evidence_have_no_masks(tmp_path: Path) -> None:
    rows = "image,query,label,split,box\n0.png,top,red,train,\n0.png,side,blue,train,\n1.png,side,red,train,2 2 8 6\n"
    data = TableData(TableDataConfig(table(tmp_path, rows), size=(10, 20)), "train")
    found = data.shown(9)
    assert [each.caption for each in found] == ["top → red", "side → red"]
    assert [len(each.masks) for each in found] == [0, 1]
    assert int(found[1].masks[0].sum()) == 6 * 4
