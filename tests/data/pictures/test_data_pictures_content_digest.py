"""Digests go by the bytes of files, whatever they are called and whenever they were written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from saccade.data.pictures.files import content_digests, copy_groups, files_digest


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    for number, content in enumerate([b"one", b"two", b"one", b""]):
        (tmp_path / f"{number}.png").write_bytes(content)
    return sorted(tmp_path.iterdir())


def test_digests_are_of_the_bytes_in_the_order_of_the_paths(paths: list[Path]) -> None:
    told: list[tuple[int, int]] = []
    found = content_digests(paths, progress=lambda *far: told.append(far))
    assert found == [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in paths]
    assert told == [(number, 4) for number in (1, 2, 3, 4)]
    assert content_digests([]) == []
    assert files_digest(paths) == files_digest([paths[2], paths[1], paths[0], paths[3]])
    assert files_digest(paths) != files_digest(paths[::-1])


def test_a_file_rewritten_in_place_with_its_old_time_has_another_digest(paths: list[Path]) -> None:
    before, time = content_digests(paths[:1]), paths[0].stat().st_mtime_ns
    paths[0].write_bytes(b"new")
    os.utime(paths[0], ns=(time, time))
    assert content_digests(paths[:1]) != before


def test_pictures_with_the_same_bytes_are_one_group(paths: list[Path]) -> None:
    assert copy_groups(paths) == [0, 1, 0, 3]
