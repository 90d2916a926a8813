"""What is asked of every picture of a job, and the parts that it is cut into: plain values that travel anywhere."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from saccade.errors import ConfigError, nearest
from saccade.scale.schema import SCHEMA_VERSION

KeptMaps = Literal["total", "all", "none"]
PartKind = Literal["files", "tar", "parquet"]


@dataclass(frozen=True)
class Job:
    """What is asked of every picture."""

    model: str
    """A zoo name, a model folder or run folder that every machine sees, ``timm:NAME`` or ``hf:NAME``."""
    digest: str
    """Digest of the model's files; all machines must have the same."""
    ask: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the model's family, such as beam."""
    maps: KeptMaps = "total"
    """Which maps are kept: of all looks together, of each look and step too, or none."""
    side: int = 64
    """The longer side of a kept map, in cells; a smaller picture has as many as it has pixels."""

    def checked(self) -> Job:
        """The job, or a ConfigError."""
        if self.maps not in get_args(KeptMaps):
            raise ConfigError(f"maps: {nearest(self.maps, get_args(KeptMaps))}, found '{self.maps}'")
        if not 1 <= self.side <= 1024:
            raise ConfigError(f"map side: 1 to 1,024 cells, found {self.side}")
        return self

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}


@dataclass(frozen=True)
class Member:
    """A picture file, or a shard of pictures."""

    uri: str
    name: str
    """The path from what all sources have in common; of a picture without its suffix."""
    stamp: str
    """Size and time, or what the store has of it: it changes when the file does."""


@dataclass(frozen=True)
class Part:
    """What one worker looks at in one go, and writes as one file: some picture files, or one shard."""

    number: int
    kind: PartKind
    members: tuple[Member, ...]
    column: str | None = None
    """Column of a Parquet file that has the pictures; None: it is found."""

    def file(self, job: Job) -> str:
        """The name of its file: number, and a digest of what is asked and of what is looked at."""
        told = json.dumps(
            [job.to_json(), self.kind, self.column, [asdict(each) for each in self.members]], sort_keys=True
        )
        return f"part-{self.number:06d}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.parquet"

    def to_json(self) -> str:
        """As text, for a worker elsewhere."""
        return json.dumps([self.number, self.kind, [list(asdict(each).values()) for each in self.members], self.column])

    @classmethod
    def from_json(cls, text: str) -> Part:
        """From :meth:`to_json`."""
        number, kind, members, column = json.loads(text)
        return cls(number, kind, tuple(Member(*each) for each in members), column)


def model_digest(folder: Path | None, name: str) -> str:
    """Digest of the files that decide the answers; for a published model of another library, of its name."""
    digest = hashlib.sha256()
    if folder is None:
        digest.update(name.encode())
    for file in sorted(folder.iterdir()) if folder is not None else ():
        if file.suffix in (".json", ".safetensors"):
            digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]
