"""Many pictures through one model: what is kept, under which names, and what is refused before anything is written."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.commands.look_files import kept_looks
from saccade.errors import DataError
from saccade.predict import Predictor, load
from saccade.sighting import Sighting
from tiny_models import save_tiny


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return load(save_tiny(tmp_path_factory.mktemp("models") / "tiny"), "cpu")


def picture(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 31, 3), dtype=np.uint8)).save(path)
    return path


def kept(
    predictor: Predictor, paths: Sequence[Path], ask: int | None, out: Path, batch_size: int = 32, **options: Any
) -> Iterator[Sighting]:
    return kept_looks(predictor.look_many(paths, ask, batch_size=batch_size), out, **options)


def test_the_table_may_be_parquet_too(predictor: Predictor, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'tables'")
    paths = [picture(tmp_path / name, number) for number, name in enumerate(("a.png", "b,\nor so.png"))]
    seen = list(kept(predictor, paths, 1, tmp_path / "out", parquet=True))
    rows = parquet.read_table(tmp_path / "out" / "looks.parquet").to_pylist()
    assert [row["source"] for row in rows] == [*map(str, paths)]
    assert [row["answer"] for row in rows] == [each.answer for each in seen]
    assert [(row["x"], row["y"]) for row in rows] == [each.peak for each in seen]
    assert rows[0]["confidence"] == pytest.approx(seen[0].confidence, abs=1e-6)
    assert rows[0]["fit_p"] is None


def test_of_several_pictures_one_table_lies_beside_them(predictor: Predictor, tmp_path: Path) -> None:
    paths = [picture(tmp_path / name, number) for number, name in enumerate(("a.png", "b, or so.png", "c.png"))]
    seen = list(kept(predictor, paths, 1, tmp_path / "out"))
    with (tmp_path / "out" / "looks.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == list(map(str, paths))
    for row, each in zip(rows, seen, strict=True):
        assert (row["asked"], row["answer"], float(row["confidence"])) == ("1", each.answer, round(each.confidence, 6))
        assert (row["next_best"], float(row["next_confidence"])) == (
            each.alternatives[0][0],
            pytest.approx(each.alternatives[0][1], abs=1e-6),
        )
        assert (int(row["x"]), int(row["y"])) == each.peak
        assert (tmp_path / "out" / f"{row['files']}.json").is_file()


def test_a_folder_that_was_made_for_nothing_goes_again(predictor: Predictor, tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_text("no picture")
    (tmp_path / "there").mkdir()
    for place, is_kept in (("made", False), ("there", True)):
        with pytest.raises(DataError, match="not a picture"):
            list(kept(predictor, [bad], 1, tmp_path / place))
        assert (tmp_path / place).exists() == is_kept
