"""Readers of questions by name: ``csv:my.csv``, ``cub:FOLDER`` → a table of questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from saccade.data.causal.reading import CausalPicture, read_causal_set
from saccade.data.tables.doubts import warn_of_spellings
from saccade.data.tables.references import Reader, read_reference
from saccade.families.question.table import Question, QuestionTable, make_table
from saccade.families.question.tables.published import CubOptions, VisualGenomeOptions, read_cub, read_visual_genome
from saccade.families.question.tables.rows import (
    TableOptions,
    read_annotations,
    read_csv,
    read_folders,
    read_jsonl,
    read_metadata,
    read_parquet,
)

CAUSAL = "causal"


@dataclass(frozen=True)
class CausalOptions:
    """How a causal set is read as a table."""

    twins: bool = False
    """Ask the first question about the twins too, where it has an answer."""
    check: bool = False
    """Read all pictures first, and check their digests."""


def read_causal(folder: Path, options: CausalOptions) -> QuestionTable:
    """Both questions about each scene; the target's pixels are the evidence."""
    causal = read_causal_set(folder)
    if options.check:
        causal.verify()
    found: list[tuple[str, Question]] = []
    for scene in causal:
        asked = [(scene, scene.question, scene.answer, scene.target)]
        asked += [(scene, scene.other_question, scene.other_answer, scene.other)]
        pictures: list[tuple[CausalPicture, str, str | None, int]] = list(asked)
        if options.twins:
            pictures += [(twin, scene.question, twin.answer, scene.target) for twin in scene.twins.values()]
        found += [
            (
                f"scene {scene.id}",
                Question(
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
    return make_table(f"{CAUSAL}:{folder}", found, (), multi_label=False)


READERS: dict[str, Reader[QuestionTable]] = {
    "csv": Reader(read_csv, TableOptions),
    "jsonl": Reader(read_jsonl, TableOptions),
    "folder": Reader(read_folders, TableOptions),
    "coco": Reader(read_annotations, TableOptions),
    "metadata": Reader(read_metadata, TableOptions),
    "parquet": Reader(read_parquet, TableOptions),
    "causal": Reader(read_causal, CausalOptions),
    "cub": Reader(read_cub, CubOptions),
    "vg": Reader(read_visual_genome, VisualGenomeOptions),
}


def read_questions(reference: str, options: Mapping[str, object] | None = None) -> QuestionTable:
    """The questions that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    table = read_reference(reference, READERS, options, "question")
    warn_of_spellings(reference, table.queries, "queries")
    warn_of_spellings(reference, table.answers, "answers")
    return table
