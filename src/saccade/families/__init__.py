"""Families: one kind of question each, with its models, data and task in one folder; and the registry of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.families.answering import InputReader as InputReader
    from saccade.families.answering import Pictures as Pictures
    from saccade.families.answering import Responder as Responder
    from saccade.families.page import PageModel as PageModel
    from saccade.families.page import TrainedScenes as TrainedScenes
    from saccade.families.registry import DataEntry as DataEntry
    from saccade.families.registry import Decode as Decode
    from saccade.families.registry import Family as Family
    from saccade.families.registry import ModelSpec as ModelSpec
    from saccade.families.registry import Probing as Probing
    from saccade.families.registry import data_entries as data_entries
    from saccade.families.registry import families as families
    from saccade.families.registry import family as family
    from saccade.families.registry import family_of_data as family_of_data
    from saccade.families.registry import family_of_model as family_of_model
    from saccade.families.registry import headline as headline
    from saccade.families.registry import model_spec as model_spec
    from saccade.families.registry import models as models
    from saccade.families.registry import read_table as read_table
    from saccade.families.registry import recipes as recipes
    from saccade.models.facts import ModelFacts as ModelFacts
    from saccade.tasks.label_task import LabelTask as LabelTask
    from saccade.tasks.picture_task import PictureTask as PictureTask
    from saccade.tasks.task import Task as Task
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
