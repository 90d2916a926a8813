"""Generators and readers; every sample says where the evidence is.

Names are looked up when first used, so that ``saccade.data.catalog`` costs no import of torch.
Functions named like their module are imported from it: ``from saccade.data.render import render``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.data.attributes import AttributeBatch, AttributeData, AttributeDataConfig
    from saccade.data.caption_readers import CAPTION_READERS, read_captions
    from saccade.data.captions import CaptionBatch, CaptionData, CaptionDataConfig, CaptionTable
    from saccade.data.catalog import DATA, DataEntry
    from saccade.data.export import write_captions, write_multisets, write_scenes
    from saccade.data.feature_cache import FeatureCache
    from saccade.data.glyphs import GlyphSet, glyphs_for
    from saccade.data.layout import SceneLayout, SceneSpec
    from saccade.data.multiset_readers import MULTISET_READERS, read_multisets
    from saccade.data.multisets import MultisetBatch, MultisetData, MultisetDataConfig, MultisetTable
    from saccade.data.palette import COLOURS
    from saccade.data.question_readers import READERS, read_questions
    from saccade.data.questions import Question, QuestionBatch, QuestionData, QuestionDataConfig, QuestionTable
    from saccade.data.scenes import sample_layout
    from saccade.data.vocabulary import Vocabulary

_HOME = {
    "AttributeBatch": "attributes",
    "AttributeData": "attributes",
    "AttributeDataConfig": "attributes",
    "CAPTION_READERS": "caption_readers",
    "read_captions": "caption_readers",
    "CaptionBatch": "captions",
    "CaptionData": "captions",
    "CaptionDataConfig": "captions",
    "CaptionTable": "captions",
    "DATA": "catalog",
    "DataEntry": "catalog",
    "write_captions": "export",
    "write_multisets": "export",
    "write_scenes": "export",
    "FeatureCache": "feature_cache",
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
    "READERS": "question_readers",
    "read_questions": "question_readers",
    "sample_layout": "scenes",
    "Vocabulary": "vocabulary",
}

__all__ = [
    "CAPTION_READERS",
    "COLOURS",
    "DATA",
    "MULTISET_READERS",
    "READERS",
    "AttributeBatch",
    "AttributeData",
    "AttributeDataConfig",
    "CaptionBatch",
    "CaptionData",
    "CaptionDataConfig",
    "CaptionTable",
    "DataEntry",
    "FeatureCache",
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
    "Vocabulary",
    "glyphs_for",
    "read_captions",
    "read_multisets",
    "read_questions",
    "sample_layout",
    "write_captions",
    "write_multisets",
    "write_scenes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'saccade.data' has no attribute '{name}'")
    return getattr(import_module(f"saccade.data.{_HOME[name]}"), name)
