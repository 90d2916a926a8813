"""A causal set as Parquet: one row per scene, pictures as the structs of the datasets library.

The schema marks the picture columns as that library does, so it decodes them. Needs the extra
``tables``.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from saccade.data.causal.facts import CausalFacts
from saccade.data.causal.truth import MASKED, SCENE, TWINS, picture_name
from saccade.errors import MissingExtraError

if TYPE_CHECKING:
    from saccade.data.causal.writing import Encoded

SHARD = 2_500
"""Scenes in a file; some 100 MB."""
_GROUP = 100  # scenes in a row group; these are in memory
TEXTS = ("id", "split", "query", "label", "other_query", "other_label", "digest", "truth")
"""Columns of text: both questions with their answers, and the line of truth.jsonl as it is."""
NUMBERS = ("target", "other")
ANSWERS = {name: f"{name}_label" for name in TWINS}
"""Twin → column of its answer to the first question; null where the target is gone."""
IMAGES = {SCENE: "image"} | {name: name for name in TWINS}
"""Picture → its column."""
MASKS = {name: f"{name}_mask" for name in MASKED}


class ParquetShards:
    """Writes ``data/SPLIT-00000-of-00004.parquet`` and so on; without a folder it writes nothing."""

    def __init__(self, folder: Path | None, facts: CausalFacts) -> None:
        self._folder, self._facts = folder, facts
        self._held: list[dict[str, Any]] = []
        self._writer: Any = None
        self._shards, self._in_shard = 0, 0
        if folder is not None:
            self._arrow, self._parquet = _pyarrow()
            self._schema = _schema(self._arrow)
            (folder / "data").mkdir()

    def __enter__(self) -> ParquetShards:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()

    def add(self, scene: Encoded) -> None:
        """Add one scene."""
        if self._folder is None:
            return
        self._held.append(_cells(scene, self._facts.split))
        if len(self._held) == _GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._held or self._folder is None:
            return
        if self._writer is None:
            shards = -(-self._facts.count // SHARD)
            name = f"{self._facts.split}-{self._shards:05d}-of-{shards:05d}.parquet"
            self._writer = self._parquet.ParquetWriter(self._folder / "data" / name, self._schema, compression="none")
            self._shards, self._in_shard = self._shards + 1, 0
        self._writer.write_table(self._arrow.Table.from_pylist(self._held, schema=self._schema))
        self._in_shard += len(self._held)
        self._held = []
        if self._in_shard >= SHARD:
            self._writer.close()
            self._writer = None


def check_pyarrow() -> None:
    """Refuse to begin without pyarrow."""
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("a causal set as Parquet", "tables") from error


def _schema(arrow: Any) -> Any:
    picture = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    columns = {name: (arrow.string(), "string") for name in (*TEXTS, *ANSWERS.values())}
    columns |= {name: (arrow.int64(), "int64") for name in NUMBERS}
    columns |= {name: (picture, "") for name in (*IMAGES.values(), *MASKS.values())}
    features = {
        name: {"dtype": kind, "_type": "Value"} if kind else {"_type": "Image"} for name, (_, kind) in columns.items()
    }
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    return arrow.schema([(name, type_) for name, (type_, _) in columns.items()], metadata=told)


def _cells(scene: Encoded, split: str) -> dict[str, object]:
    row = scene.row
    (query, other_query), twins = row["questions"], row["twins"]
    pictures = {column: (scene.images[name], name) for name, column in IMAGES.items()}
    pictures |= {column: (scene.masks[name], name) for name, column in MASKS.items()}
    return {
        "id": row["id"],
        "split": split,
        "query": query["query"],
        "label": query["answer"],
        "other_query": other_query["query"],
        "other_label": other_query["answer"],
        "target": row["target"],
        "other": row["other"],
        "digest": row["digest"],
        "truth": json.dumps(row),
        **{column: twins[name]["answers"][0] for name, column in ANSWERS.items()},
        **{
            column: {"bytes": content, "path": f"{picture_name(row['id'], name)}.png"}
            for column, (content, name) in pictures.items()
        },
    }
