"""A causal set on disk: pictures and masks as PNG, truth as JSON lines, the same as Parquet; whole or not at all.

One thread draws, others encode and write. At most :data:`_AHEAD` batches are in memory.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from saccade.atomic import folder_in_place, make_folder
from saccade.data.causal.card import card
from saccade.data.causal.facts import CARD, FACTS, ROWS, V1, V1_COUNT, CausalFacts, check_frozen, is_frozen
from saccade.data.causal.parquet import ParquetShards
from saccade.data.causal.png import png
from saccade.data.causal.rows import rows_of
from saccade.data.causal.scenes import CausalBatch
from saccade.data.causal.truth import MASKED, SCENE, TWINS, Row, SetDigest, picture_name, scene_digest

Format = Literal["png", "parquet", "both"]
_AHEAD = 2
_TOGETHER = 16  # scenes that one task encodes


@dataclass(frozen=True, eq=False)
class Encoded:
    """One scene as it is written."""

    row: Row
    images: dict[str, bytes]
    """PNG files by SCENE and TWINS."""
    masks: dict[str, bytes]
    """By MASKED."""


def write_set(
    batches: Iterator[CausalBatch],
    facts: CausalFacts,
    out: Path,
    form: Format,
    progress: Callable[[int, int], None] | None = None,
) -> CausalFacts:
    """Write the scenes of ``batches``; returns their facts with what is known now.

    Args:
        batches: as many scenes as the facts say.
        facts: all but ``digest``, ``last`` and ``version``.
        out: a new or empty folder.
        form: png, parquet or both.
        progress: called with (scenes written, scenes in all).
    """
    digest, done, last = SetDigest(), 0, 0
    with folder_in_place(out, durable=False) as place:
        pictures = place if form != "parquet" else None
        if pictures is not None:
            make_folder(pictures / "images")
            make_folder(pictures / "masks")
        with (
            _one_core_to_draw(),
            ParquetShards(place if form != "png" else None, facts) as shards,
            (place / ROWS).open("w", encoding="utf-8") as lines,
        ):
            for scene in _encoded(batches, pictures):
                lines.write(json.dumps(scene.row) + "\n")
                shards.add(scene)
                digest.add(scene.row["digest"])
                last, done = int(scene.row["id"]), done + 1
                if progress is not None and (done % _TOGETHER == 0 or done == facts.count):
                    progress(done, facts.count)
        whole = replace(facts, digest=digest.hex(), last=last)
        whole = replace(whole, version=V1 if is_frozen(whole) and whole.count == V1_COUNT else None)
        check_frozen(whole, str(out))
        (place / FACTS).write_text(json.dumps(whole.to_json(), indent=2) + "\n", encoding="utf-8")
        (place / CARD).write_text(card(whole, form), encoding="utf-8")
    return whole


@contextmanager
def _one_core_to_draw() -> Iterator[None]:
    """Torch draws with one thread meanwhile: its operations are small, and the other cores encode."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _encoded(batches: Iterator[CausalBatch], pictures: Path | None) -> Iterator[Encoded]:
    """The scenes in their order, encoded by several threads, and written as files where ``pictures`` says where."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as threads:
        waiting: deque[list[Future[list[Encoded]]]] = deque()
        try:
            for batch in batches:
                rows = rows_of(batch)
                parts = range(0, len(batch), _TOGETHER)
                waiting.append([threads.submit(_encode_some, batch, rows, first, pictures) for first in parts])
                if len(waiting) >= _AHEAD:
                    for part in waiting.popleft():
                        yield from part.result()
            for held in waiting:
                for part in held:
                    yield from part.result()
        finally:
            threads.shutdown(cancel_futures=True)  # after an error nobody waits for the rest


def _encode_some(batch: CausalBatch, rows: list[Row], first: int, pictures: Path | None) -> list[Encoded]:
    made = [_encode(batch, rows[at], at) for at in range(first, min(first + _TOGETHER, len(batch)))]
    if pictures is not None:
        for scene in made:
            for folder, files in (("images", scene.images), ("masks", scene.masks)):
                for name, content in files.items():
                    path = f"{pictures}/{folder}/{picture_name(scene.row['id'], name)}.png"
                    with open(path, "wb", buffering=0) as file:
                        file.write(content)
    return made


def _encode(batch: CausalBatch, row: Row, at: int) -> Encoded:
    images = {name: np.stack(list(batch.images[name][at]), -1) for name in (SCENE, *TWINS)}  # (H,W,3) each
    masks = {name: batch.masks[name][at] for name in MASKED}  # (H,W) each
    row = {**row, "digest": scene_digest(row, images, masks)}
    return Encoded(row, *({name: png(each) for name, each in held.items()} for held in (images, masks)))
