"""Models: one file per system, composed of mechanisms and a backbone; each family lists its own.

``ImageOnlyModel``, ``QueryModel``, ``LabelModel``, ``StoryModel`` and ``AttentionModel`` are bases of your own models.
The settings of a model are its ``Config``. ``load_model`` and ``save_model`` read and write model folders;
``build_backbone`` makes the network below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.backbones import Stages as Stages
    from saccade.backbones import build_backbone as build_backbone
    from saccade.backbones.pretrained import load_imagenet as load_imagenet
    from saccade.models.base import AttentionModel as AttentionModel
    from saccade.models.base import Given as Given
    from saccade.models.base import ImageModel as ImageModel
    from saccade.models.base import ImageOnlyModel as ImageOnlyModel
    from saccade.models.base import LabelModel as LabelModel
    from saccade.models.base import QueryModel as QueryModel
    from saccade.models.controls import BlindModel as BlindModel
    from saccade.models.controls import CrossModel as CrossModel
    from saccade.models.controls import FilmModel as FilmModel
    from saccade.models.dmn import DMNModel as DMNModel
    from saccade.models.facts import ModelFacts as ModelFacts
    from saccade.models.facts import Preprocessing as Preprocessing
    from saccade.models.facts import read_facts as read_facts
    from saccade.models.folder import load_model as load_model
    from saccade.models.folder import save_model as save_model
    from saccade.models.folder import store_as as store_as
    from saccade.models.hattnet import HAttNetModel as HAttNetModel
    from saccade.models.hsal import HsalModel as HsalModel
    from saccade.models.memn2n import MemN2NModel as MemN2NModel
    from saccade.models.multiset_reader import MultisetCountsModel as MultisetCountsModel
    from saccade.models.picture_query import AnswerHead as AnswerHead
    from saccade.models.picture_query import PictureQueryConfig as PictureQueryConfig
    from saccade.models.picture_query import PictureQueryModel as PictureQueryModel
    from saccade.models.probe import AskedProbeModel as AskedProbeModel
    from saccade.models.probe import ProbeModel as ProbeModel
    from saccade.models.question_head import QuestionHeadModel as QuestionHeadModel
    from saccade.models.racnn import RacnnModel as RacnnModel
    from saccade.models.ran import RanModel as RanModel
    from saccade.models.ran import ResidualNetModel as ResidualNetModel
    from saccade.models.sat import SatModel as SatModel
    from saccade.models.soft import HardModel as HardModel
    from saccade.models.soft import SoftModel as SoftModel
    from saccade.models.stn import StnModel as StnModel
    from saccade.models.stn import StnTunedModel as StnTunedModel
    from saccade.models.story import StoryLSTMModel as StoryLSTMModel
    from saccade.models.story import StoryModel as StoryModel
    from saccade.models.vit import VitModel as VitModel
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
