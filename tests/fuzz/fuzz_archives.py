"""Downloaded archives: wheels, gzipped tars and gzipped files, unpacked as ``saccade data get`` does."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzing import RefusedError, Target, spoilt_bytes

from saccade.data import fetch
from saccade.files import RemoteFile

CONTENT = b"the wanted file\n" * 64
WANTED = RemoteFile("wanted.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
Case = tuple[str, bytes]
"""Name of the archive, its bytes."""


class Archives(Target):
    name = "archives"
    deadline = 5.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bases: dict[str, bytes] = {
            "a.whl": _zip({"p/wanted.bin": CONTENT, "p/other": b"x" * 500}),
            "a.tar.gz": _tar({"p/wanted.bin": CONTENT, "p/other": b"x" * 500}),
            "a.gz": gzip.compress(CONTENT),
        }

    def corpus(self) -> Mapping[str, Any]:
        link = tarfile.TarInfo("p/wanted.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        device = tarfile.TarInfo("p/wanted.bin")
        device.type = tarfile.CHRTYPE
        huge = bytearray(_zip({"p/wanted.bin": CONTENT}))
        huge[-22:] = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
        made: dict[str, Any] = {f"good {name}": (name, data) for name, data in self.bases.items()}
        made |= {
            "bomb zip": lambda: ("a.whl", _zip({"p/wanted.bin": bytes(50_000_000)})),
            "bomb tar": lambda: ("a.tar.gz", _tar({"p/wanted.bin": bytes(50_000_000)})),
            "bomb beside": lambda: ("a.tar.gz", _tar({"p/other": bytes(50_000_000), "p/wanted.bin": CONTENT})),
            "bomb gz": lambda: ("a.gz", gzip.compress(bytes(50_000_000))),
            "bomb in gz": lambda: ("a.gz", gzip.compress(gzip.compress(bytes(50_000_000)))),
            "up and away": lambda: ("a.tar.gz", _tar({"../../wanted.bin": CONTENT})),
            "root": lambda: ("a.whl", _zip({"/wanted.bin": CONTENT})),
            "link": lambda: ("a.tar.gz", _tar({}, [link])),
            "device": lambda: ("a.tar.gz", _tar({}, [device])),
            "wrong content": lambda: ("a.whl", _zip({"p/wanted.bin": CONTENT[::-1]})),
            "encrypted": lambda: ("a.whl", _flagged(_zip({"p/wanted.bin": CONTENT}))),
            "unknown compression": lambda: ("a.whl", _compressed_by(99)),
            "huge directory": lambda: ("a.whl", bytes(huge)),
            "many members": lambda: ("a.whl", _zip({f"p/{number}": b"" for number in range(5000)})),
            "many tar members": lambda: ("a.tar.gz", _tar({f"p/{number}": b"" for number in range(5000)})),
        }
        for name in self.bases:
            made |= {f"{name} {data[:9]!r}": (name, data) for data in (b"", bytes(1000), b"<html>" * 50)}
        return made

    def drawn(self, rng: random.Random) -> Case:
        name = rng.choice(list(self.bases))
        if name == "a.whl" or rng.random() < 0.3:
            return name, spoilt_bytes(rng, self.bases[name], list(self.bases.values()))
        inside = spoilt_bytes(rng, gzip.decompress(self.bases[name]))  # what the digest of gzip would not let through
        return name, gzip.compress(inside, 1)

    def run(self, case: Case) -> None:
        name, data = case
        place = self.lay({name: data})
        target = place / "out"
        target.mkdir()
        try:
            if name == "a.gz":
                _from_mirror(place / name, target)
            else:
                fetch._take_out(["cp", str(place / name), "."], [WANTED], target)
        except fetch.SourceError as error:
            left = [path.name for path in target.iterdir() if not WANTED.is_at(path)]
            if left:
                raise AssertionError(f"a refused archive left {left}") from error
            raise RefusedError(str(error)) from error
        if not WANTED.is_at(target / WANTED.name) or len(list(target.iterdir())) != 1:
            raise AssertionError("an archive was taken that does not hold the wanted file")


def _from_mirror(packed: Path, target: Path) -> None:
    """As a mirror delivers it, without the network."""
    real = fetch._download
    fetch._download = lambda url, place, progress: place.write_bytes(packed.read_bytes())  # type: ignore[assignment]
    try:
        fetch._from_mirror("https://example.invalid", [WANTED], target, lambda *_: None)
    finally:
        fetch._download = real


def _zip(members: Mapping[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def _tar(members: Mapping[str, bytes], more: list[tarfile.TarInfo] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
        for entry in more or ():
            packed.addfile(entry)
    return buffer.getvalue()


def _flagged(data: bytes) -> bytes:
    """A zip whose members say that they are encrypted."""
    made = bytearray(data)
    made[6] |= 1
    made[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(made)


def _compressed_by(method: int) -> bytes:
    data = bytearray(_zip({"p/wanted.bin": CONTENT}))
    data[8] = method
    data[data.index(b"PK\x01\x02") + 10] = method
    return bytes(data)
