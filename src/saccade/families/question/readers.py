"""Readers of questions by name: ``csv:my.csv``, ``cub:FOLDER`` → a table of questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saccade.data.causal.reading import CausalPicture, read_causal_set
from saccade.data.tables.references import Reader, own_readers
from saccade.data.tables.table import Found, Row, Table
from saccade.families.question.published import (
    COLUMNS,
    CubOptions,
    VisualGenomeOptions,
    read_cub,
    read_visual_genome,
)

CAUSAL = "causal"


@dataclass(frozen=True)
class CausalOptions:
    """How a causal set is read as a table."""

    twins: bool = False
    """Ask the first question about the twins too, where it has an answer."""
    check: bool = False
    """Read all pictures first, and check their digests."""


def read_causal(folder: Path, options: CausalOptions) -> Table:
    """Both questions about each scene; the target's pixels are the evidence."""
    causal = read_causal_set(folder)
    if options.check:
        causal.verify()
    found: list[Found] = []
    for scene in causal:
        asked = [(scene, scene.question, scene.answer, scene.target)]
        asked += [(scene, scene.other_question, scene.other_answer, scene.other)]
        pictures: list[tuple[CausalPicture, str, str | None, int]] = list(asked)
        if options.twins:
            pictures += [(twin, scene.question, twin.answer, scene.target) for twin in scene.twins.values()]
        found += [
            (
                f"scene {scene.id}",
                Row(
                    image=picture.image_path,
                    query=query,
                    labels=(answer,),
                    split=causal.facts.split,
                    mask=picture.mask_path,
                    mask_grey=target + 1,
                    group=scene.id,
                ),
            )
            for picture, query, answer, target in pictures
            if answer is not None
        ]
    return Table.of(f"{CAUSAL}:{folder}", found, COLUMNS)


READERS: dict[str, Reader] = {
    **own_readers(COLUMNS),
    "causal": Reader(read_causal, CausalOptions),
    "cub": Reader(read_cub, CubOptions),
    "vg": Reader(read_visual_genome, VisualGenomeOptions),
}
