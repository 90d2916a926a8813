"""Features of a frozen network on disk, computed once: half precision, memory-mapped, bounded, checked.

A cache is a folder below ``folder``, named by a digest of its key. It holds ``facts.json`` and shards of some 32 MB:
features, then the SHA-256 of their bytes. Shards are written whole and checked once by each process; filling goes on
from those that are there. All caches below ``folder`` together stay below a limit: those opened longest ago make room.
What is open stays readable, because its shards are mapped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saccade.errors import ConfigError, DataError
from saccade.files import make_folder, write_bytes, write_json, writing
from saccade.progress import OnProgress, no_progress

FEATURES_MB = 32_768  # What all caches together may take, unless a setting says otherwise
SHARD_BYTES = 32 << 20  # Features of a shard at most; at least one is in it

_FACTS = "facts.json"
_SCHEMA = 2  # of schema 1 the key held names and times of pictures in place of their contents
_DIGEST_BYTES = 32
_LARGEST = float(torch.finfo(torch.float16).max)

Compute = Callable[[Tensor], Tensor]  # Numbers (b,) → features ``(b, *shape)`` of any float type, on any device


def feature_key(*, pictures: str, backbone: str, weights: str, stage: str, size: tuple[int, int]) -> str:
    """All that the features of pictures depend on, as text: files, network, weights, stage, and input size."""
    return f"{backbone} {stage} at {size[0]}×{size[1]}, weights {weights}, pictures {pictures}"


def weights_digest(tensors: Mapping[str, Tensor]) -> str:
    """A digest of named tensors, as a ``state_dict`` has them."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


class FeatureCache:
    """Numbers 0 … count − 1 to features, from disk.

    Args:
        folder: where caches are kept; it may hold others.
        shape: of one feature.
        count: how many there are.
        key: all that the features depend on, see :func:`feature_key`.
        limit_bytes: what all caches in ``folder`` may take together; a ConfigError if this one alone takes more.
    """

    def __init__(self, folder: Path | str, *, shape: tuple[int, ...], count: int, key: str, limit_bytes: int) -> None:
        self.shape, self.count, self.key = tuple(shape), count, key
        self._each = 2 * math.prod(shape)  # bytes
        self.per_shard = max(1, SHARD_BYTES // self._each)  # Features in a shard
        self.shards = -(-count // self.per_shard)  # Number of shards
        self.nbytes = count * self._each + self.shards * _DIGEST_BYTES  # What the shards take when all are there
        if self.nbytes > limit_bytes:
            raise ConfigError(
                f"features: {count:,} of shape {self.shape} need {_megabytes(self.nbytes)} on disk, more than the "
                f"{_megabytes(limit_bytes)} allowed; raise the limit (features_mb; 0 keeps none), or take a stage with "
                "fewer or smaller maps"
            )
        facts = {"schema_version": _SCHEMA, "key": key, "shape": list(self.shape), "count": count}
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = make_folder(Path(folder)) / name  # The folder of this cache
        _make_room(self.folder, limit_bytes - self.nbytes)
        self._open(facts)
        self._mapped: dict[int, np.ndarray] = {}
        there = [shard for shard in range(self.shards) if self._path(shard).is_file()]
        damaged = [shard for shard in there if not self._map(shard)]
        for shard in damaged:
            self._path(shard).unlink(missing_ok=True)
        if damaged:
            warnings.warn(
                f"{self.folder}: {len(damaged)} shard(s) damaged; their features are computed again", stacklevel=2
            )

    @property
    def is_complete(self) -> bool:
        """Whether every feature is there."""
        return len(self._mapped) == self.shards

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers of the features that are not there yet."""
        absent = [shard for shard in range(self.shards) if shard not in self._mapped]
        return tuple(number for shard in absent for number in self._numbers(shard))

    def fill(
        self,
        compute: Compute,
        *,
        batch_size: int = 64,
        on_progress: OnProgress = no_progress,
        begin: float = 0.0,
    ) -> None:
        """Compute what is missing; when it is interrupted, the shards that are done stay.

        Several processes may fill one cache: each leaves out what another has written. ``begin`` is the share of the
        shards (0..1) where this one begins, so that each computes its part and little twice. ``on_progress`` is called
        with (features behind us, features in all) after each batch.

        Raises:
            DataError: a feature is not finite, or too large for half precision.
        """
        first_shard, done = int(begin * self.shards), self.count - len(self.missing)
        for place in range(self.shards):
            shard = (first_shard + place) % self.shards
            if shard in self._mapped:
                continue
            numbers = self._numbers(shard)
            if not self._map(shard):  # else another process wrote it meanwhile
                features = np.empty((len(numbers), *self.shape), np.float16)
                for first in range(0, len(numbers), batch_size):
                    batch = numbers[first : first + batch_size]
                    features[first : first + len(batch)] = self._checked(compute(torch.tensor(batch)), batch)
                    on_progress("features", done + first + len(batch), self.count)
                content = features.tobytes()
                write_bytes(self._path(shard), content + hashlib.sha256(content).digest())
                self._map(shard)
            done += len(numbers)

    def take(self, numbers: Tensor) -> Tensor:
        """The features ``numbers`` (B,), filled before, repeats allowed: ``(B, *shape)`` float16 in main memory."""
        numbers = numbers.long().cpu()
        taken = np.empty((len(numbers), *self.shape), np.float16)
        shard_of, row = numbers.numpy() // self.per_shard, numbers.numpy() % self.per_shard
        for shard in np.unique(shard_of).tolist():
            here = shard_of == shard
            taken[here] = self._mapped[shard][row[here]]
        return torch.from_numpy(taken)

    def _open(self, facts: dict[str, object]) -> None:
        """Make the folder if it is not there; one that holds something else is made anew."""
        path, stored = self.folder / _FACTS, None
        if path.exists():
            with suppress(OSError, ValueError):
                stored = json.loads(path.read_text(encoding="utf-8"))
            if stored != facts:
                warnings.warn(f"{self.folder}: not what it should be; its features are computed again", stacklevel=3)
                shutil.rmtree(self.folder, ignore_errors=True)
        if stored != facts:
            write_json(path, facts)
        with writing(path):
            os.utime(path)  # when it was opened last

    def _map(self, shard: int) -> bool:
        size = len(self._numbers(shard)) * self._each
        try:
            mapped = np.memmap(self._path(shard), np.uint8, "r")
        except (OSError, ValueError):  # gone, or empty
            return False
        if hashlib.sha256(mapped[:size].data).digest() != mapped[size:].tobytes():  # cut short, too: no digest is left
            return False
        self._mapped[shard] = mapped[:size].view(np.float16).reshape(-1, *self.shape)
        return True

    def _numbers(self, shard: int) -> range:
        return range(shard * self.per_shard, min((shard + 1) * self.per_shard, self.count))

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:06d}.f16"

    def _checked(self, features: Tensor, numbers: range) -> np.ndarray:
        largest = features.detach().abs().amax(dim=tuple(range(1, features.dim()))).cpu()  # (b,)
        wrong = (~(largest <= _LARGEST)).nonzero().squeeze(1).tolist()  # NaN is not ≤
        if wrong:
            raise DataError(
                f"feature {numbers[wrong[0]]} reaches {float(largest[wrong[0]]):g}: half precision holds up to "
                f"{_LARGEST:g}; normalise the features, or keep none (features_mb: 0)"
            )
        return features.detach().to("cpu", torch.float16).numpy()


def _make_room(cache: Path, for_others: int) -> None:
    """Remove the caches beside ``cache`` that were opened longest ago, until the others take ``for_others`` at most."""
    others = []
    for facts in cache.parent.glob(f"*/{_FACTS}"):
        with suppress(OSError):  # another process is removing it
            size = sum(file.stat().st_size for file in facts.parent.iterdir())
            others += [(facts.stat().st_mtime, facts.parent, size)] if facts.parent != cache else []
    others.sort()
    total = sum(size for *_, size in others)
    for _, cache, size in others:
        if total <= for_others:
            return
        shutil.rmtree(cache, ignore_errors=True)
        total -= size


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count:,} bytes"
