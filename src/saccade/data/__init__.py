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
    from saccade.data.causal.scenes import CausalScene as CausalScene
    from saccade.data.causal.scenes import read_causal_set as read_causal_set
    from saccade.data.pictures.feature_cache import FeatureCache as FeatureCache
    from saccade.data.pictures.labelled import DrawnPictures as DrawnPictures
    from saccade.data.pictures.labelled import LabelledBatch as LabelledBatch
    from saccade.data.pictures.reading import Picture as Picture
    from saccade.data.pictures.reading import prepare as prepare
    from saccade.data.pictures.reading import read_picture as read_picture
    from saccade.data.scenes.hashing import distinct_below as distinct_below
    from saccade.data.scenes.hashing import hash_u32 as hash_u32
    from saccade.data.scenes.hashing import uniform_below as uniform_below
    from saccade.data.tables.table import Row as Row
    from saccade.data.tables.table import Table as Table
    from saccade.families.caption.data import CaptionDataConfig as CaptionDataConfig
    from saccade.families.caption.data import CaptionScenes as CaptionScenes
    from saccade.families.classify.data import LabelDataConfig as LabelDataConfig
    from saccade.families.multiset.data import MultisetDataConfig as MultisetDataConfig
    from saccade.families.multiset.data import MultisetScenes as MultisetScenes
    from saccade.families.question.scenes import SceneData as SceneData
    from saccade.families.question.scenes import SceneDataConfig as SceneDataConfig
    from saccade.families.question.tables import TableData as TableData
    from saccade.families.question.tables import TableDataConfig as TableDataConfig
    from saccade.families.registry import read_table as read_table
    from saccade.families.story.data import StoryDataConfig as StoryDataConfig
    from saccade.zoo.folders import example as example
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
