"""Data: pictures, tables of them, generated scenes, causal sets, and shipped examples.

==============================  ========================================================================================
a picture                       ``read_picture``, ``Picture``, ``prepare``; ``example`` ships
your own tables and folders     ``read_table``, ``Table``, ``Row``
batches to learn from           ``TableData``, ``SceneData``, ``CaptionScenes``, ``MultisetScenes`` and
                                ``StorySource``, each with its settings, such as ``SceneDataConfig``
generated pictures of your own  ``DrawnPictures``, ``LabelledBatch``; ``hash_u32`` draws by number
scenes with their twins         ``read_causal_set``, ``CausalScene``
==============================  ========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.data.causal.reading import CausalScene, read_causal_set
    from saccade.data.files import example
    from saccade.data.pictures.feature_cache import FeatureCache
    from saccade.data.pictures.labelled import DrawnPictures, LabelledBatch
    from saccade.data.pictures.reading import Picture, prepare, read_picture
    from saccade.data.scenes.hashing import distinct_below, hash_u32, uniform_below
    from saccade.data.tables.table import Row, Table
    from saccade.families import read_table
    from saccade.families.caption.data import CaptionDataConfig, CaptionScenes
    from saccade.families.classify.data import LabelDataConfig
    from saccade.families.multiset.data import MultisetDataConfig, MultisetScenes
    from saccade.families.question.scenes import SceneData, SceneDataConfig
    from saccade.families.question.tables import TableData, TableDataConfig
    from saccade.families.story.data import StoryDataConfig
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = [
    "CaptionDataConfig",
    "CaptionScenes",
    "CausalScene",
    "DrawnPictures",
    "FeatureCache",
    "LabelDataConfig",
    "LabelledBatch",
    "MultisetDataConfig",
    "MultisetScenes",
    "Picture",
    "Row",
    "SceneData",
    "SceneDataConfig",
    "StoryDataConfig",
    "Table",
    "TableData",
    "TableDataConfig",
    "distinct_below",
    "example",
    "hash_u32",
    "prepare",
    "read_causal_set",
    "read_picture",
    "read_table",
    "uniform_below",
]
