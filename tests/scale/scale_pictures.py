"""Small pictures for jobs: as files, as a WebDataset shard, as Parquet."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def png(seed: int, size: tuple[int, int] = (20, 31)) -> bytes:
    """A noisy picture."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def folder_of(path: Path, count: int, first: int = 0) -> Path:
    """A folder of so many pictures."""
    path.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        (path / f"{number:03d}.png").write_bytes(png(number))
    return path


def shard_of(path: Path, pictures: dict[str, bytes]) -> Path:
    """A tar shard, with a text beside each picture."""
    with tarfile.open(path, "w") as archive:
        for name, data in pictures.items():
            for member, content in ((name, data), (f"{Path(name).stem}.txt", b"a caption")):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


def table_of(path: Path, column: str, values: list[Any]) -> Path:
    """A Parquet file with one column, and another beside it."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"label": list(range(len(values))), column: values}), path)
    return path


def assert_same_rows(found: list[dict[str, Any]], wanted: list[dict[str, Any]], *, but: tuple[str, ...] = ()) -> None:
    """Equal to the last bit, but for some columns."""
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted):
        assert {key: one[key] for key in one if key not in but} == {key: two[key] for key in two if key not in but}
