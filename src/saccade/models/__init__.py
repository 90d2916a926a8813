"""Models: one file per system, composed of mechanisms and a backbone; each ``family.py`` lists its own.

``ImageOnlyModel``, ``QueryModel``, ``LabelModel``, ``StoryModel`` and ``AttentionModel`` are bases of your own models.
``load_model`` and ``save_model`` read and write model folders; ``build_backbone`` makes the network below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.backbones import Stages, build_backbone
    from saccade.backbones.pretrained import load_imagenet
    from saccade.models.base import AttentionModel, Given, ImageModel, ImageOnlyModel, LabelModel, QueryModel
    from saccade.models.caption_decoder import SatConfig
    from saccade.models.controls import BlindModel, CrossConfig, CrossModel, FilmModel
    from saccade.models.dmn import DMNConfig, DMNModel
    from saccade.models.facts import ModelFacts, Preprocessing, read_facts
    from saccade.models.folder import load_model, save_model, store_as
    from saccade.models.hard import HardConfig, HardModel
    from saccade.models.hattnet import HAttNetConfig, HAttNetModel
    from saccade.models.hsal import HsalModel
    from saccade.models.hsal_controller import HsalConfig
    from saccade.models.memn2n import MemN2NConfig, MemN2NModel
    from saccade.models.multiset_reader import MultisetCountsConfig, MultisetCountsModel
    from saccade.models.picture_query import AnswerHead, PictureQueryConfig, PictureQueryModel
    from saccade.models.probe import AskedProbeModel, ProbeConfig, ProbeModel
    from saccade.models.racnn import RacnnConfig, RacnnModel
    from saccade.models.ran import RanConfig, RanModel, ResidualNetConfig, ResidualNetModel
    from saccade.models.sat import SatModel
    from saccade.models.soft import SoftConfig, SoftModel
    from saccade.models.stn import StnConfig, StnModel, StnTunedConfig, StnTunedModel
    from saccade.models.story import StoryLSTMConfig, StoryLSTMModel, StoryModel
    from saccade.models.vit import VitConfig, VitModel
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = [
    "AnswerHead",
    "AskedProbeModel",
    "AttentionModel",
    "BlindModel",
    "CrossConfig",
    "CrossModel",
    "DMNConfig",
    "DMNModel",
    "FilmModel",
    "Given",
    "HAttNetConfig",
    "HAttNetModel",
    "HardConfig",
    "HardModel",
    "HsalConfig",
    "HsalModel",
    "ImageModel",
    "ImageOnlyModel",
    "LabelModel",
    "MemN2NConfig",
    "MemN2NModel",
    "ModelFacts",
    "MultisetCountsConfig",
    "MultisetCountsModel",
    "PictureQueryConfig",
    "PictureQueryModel",
    "Preprocessing",
    "ProbeConfig",
    "ProbeModel",
    "QueryModel",
    "RacnnConfig",
    "RacnnModel",
    "RanConfig",
    "RanModel",
    "ResidualNetConfig",
    "ResidualNetModel",
    "SatConfig",
    "SatModel",
    "SoftConfig",
    "SoftModel",
    "Stages",
    "StnConfig",
    "StnModel",
    "StnTunedConfig",
    "StnTunedModel",
    "StoryLSTMConfig",
    "StoryLSTMModel",
    "StoryModel",
    "VitConfig",
    "VitModel",
    "build_backbone",
    "load_imagenet",
    "load_model",
    "read_facts",
    "save_model",
    "store_as",
]
