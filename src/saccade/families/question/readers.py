"""Readers of questions by name: ``csv:my.csv``, ``cub:FOLDER`` → a table of questions."""

from __future__ import annotations

from collections.abc import Mapping

from saccade.data.tables.doubts import warn_of_spellings
from saccade.data.tables.references import Reader, read_reference
from saccade.families.question.table import QuestionTable
from saccade.families.question.tables.causal_table import CausalOptions, read_causal
from saccade.families.question.tables.cub import CubOptions, read_cub
from saccade.families.question.tables.rows import (
    TableOptions,
    read_annotations,
    read_csv,
    read_folders,
    read_jsonl,
    read_metadata,
    read_parquet,
)
from saccade.families.question.tables.visual_genome import VisualGenomeOptions, read_visual_genome

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
