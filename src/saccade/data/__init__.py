"""Generators and readers; every sample says where the evidence is.

Names are looked up when first used, so that ``saccade.data.catalog`` costs no import of torch.
Functions named like their module are imported from it: ``from saccade.data.render import render``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.data.attributes import AttributeBatch, AttributeData, AttributeDataConfig
    from saccade.data.catalog import DATA, DataEntry
    from saccade.data.export import write_multisets, write_scenes
    from saccade.data.glyphs import GlyphSet, glyphs_for
    from saccade.data.layout import SceneLayout, SceneSpec
    from saccade.data.multiset_readers import MULTISET_READERS, read_multisets
    from saccade.data.multisets import MultisetBatch, MultisetData, MultisetDataConfig, MultisetTable
    from saccade.data.palette import COLOURS
    from saccade.data.questions import Question, QuestionBatch, QuestionData, QuestionDataConfig, QuestionTable
    from saccade.data.readers import READERS, read_questions
    from saccade.data.scenes import sample_layout

_HOME = {
    "AttributeBatch": "attributes",
    "AttributeData": "attributes",
    "AttributeDataConfig": "attributes",
    "DATA": "catalog",
    "DataEntry": "catalog",
    "write_multisets": "export",
    "write_scenes": "export",
    "GlyphSet": "glyphs",
    "glyphs_for": "glyphs",
    "SceneLayout": "layout",
    "SceneSpec": "layout",
    "MULTISET_READERS": "multiset_readers",
    "read_multisets": "multiset_readers",
    "MultisetBatch": "multisets",
    "MultisetData": "multisets",
    "MultisetDataConfig": "multisets",
    "MultisetTable": "multisets",
    "COLOURS": "palette",
    "Question": "questions",
    "QuestionBatch": "questions",
    "QuestionData": "questions",
    "QuestionDataConfig": "questions",
    "QuestionTable": "questions",
    "READERS": "readers",
    "read_questions": "readers",
    "sample_layout": "scenes",
}

__all__ = [
    "COLOURS",
    "DATA",
    "MULTISET_READERS",
    "READERS",
    "AttributeBatch",
    "AttributeData",
    "AttributeDataConfig",
    "DataEntry",
    "GlyphSet",
    "MultisetBatch",
    "MultisetData",
    "MultisetDataConfig",
    "MultisetTable",
    "Question",
    "QuestionBatch",
    "QuestionData",
    "QuestionDataConfig",
    "QuestionTable",
    "SceneLayout",
    "SceneSpec",
    "glyphs_for",
    "read_multisets",
    "read_questions",
    "sample_layout",
    "write_multisets",
    "write_scenes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'saccade.data' has no attribute '{name}'")
    return getattr(import_module(f"saccade.data.{_HOME[name]}"), name)
