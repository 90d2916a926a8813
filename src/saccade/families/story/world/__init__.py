"""Generates stories in the form of bAbI from a small world, and answers questions about such stories by rules."""

from saccade.families.story.world.generator import TASKS, generate_story
from saccade.families.story.world.reader import answer_of, derive

__all__ = ["TASKS", "answer_of", "derive", "generate_story"]
