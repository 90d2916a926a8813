"""A small world of people, rooms and things that tells stories in the form of bAbI, and a reader of such stories."""

from saccade.families.story.world.generator import TASKS, generate_story
from saccade.families.story.world.reader import answer_of, derive

__all__ = ["TASKS", "answer_of", "derive", "generate_story"]
