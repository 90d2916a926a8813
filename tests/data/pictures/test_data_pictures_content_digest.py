"""Digests go by the bytes of files, whatever they are called and whenever they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from saccade.data.pictures.files import content_digests, copy_groups, files_digest


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    for number, content in enumerate([b"one", b"two", b"one", b""]):
        (tmp_path / f"{number}.png").write_bytes(content)
    return sorted(tmp_path.iterdir())


def test_digests_are_of_the_bytes_in_the_order_of_the_paths(paths: list[Path]) -> None:
    found = content_digests(paths)
    assert found == [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in paths]
    assert files_digest(paths) == files_digest([paths[2], paths[1], paths[0], paths[3]])
    assert files_digest(paths) != files_digest(paths[::-1])
    assert copy_groups(paths) == [0, 1, 0, 3]
