"""A sample of the questions of a split: whole stories, drawn by a hash, with the share of each task kept.

Questions about one story lie side by side in a file, and the later ones of a story are harder. So neither the first
questions of a file nor every k-th one are a fair sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from saccade.families.story.stories import StoryExample


def story_numbers(asked: Sequence[StoryExample]) -> Tensor:
    """Which story each question is about (N,). It is that of the question before if it goes on with its sentences."""
    numbers = [0] if asked else []
    for before, each in pairwise(asked):
        goes_on = before.task == each.task and each.sentences[: len(before.sentences)] == before.sentences
        numbers.append(numbers[-1] + (not goes_on))
    return torch.tensor(numbers, dtype=torch.long)


def sample_questions(asked: Sequence[StoryExample], limit: int, seed: int = 0) -> list[StoryExample]:
    """At most ``limit`` questions, in their order.

    Every task gets its share of them. Within a task, stories are taken in the order of a hash of seed, task and the
    number of the story. Of the last story that is taken there may be room for some questions only; a hash says which.
    """
    if limit >= len(asked):
        return list(asked)
    numbers = story_numbers(asked).tolist()
    by_task: dict[str, list[int]] = {}
    for place, each in enumerate(asked):
        by_task.setdefault(each.task, []).append(place)
    kept: list[int] = []
    for task, share in _shares({task: len(own) for task, own in by_task.items()}, limit, seed).items():
        own = by_task[task]
        keys = {}
        for number, place in enumerate(own):
            story = numbers[place] - numbers[own[0]]  # the same whichever tasks are asked beside this one
            keys[place] = (_hash(seed, task, story), _hash(seed, task, story, number))
        kept += sorted(own, key=keys.__getitem__)[:share]
    return [asked[place] for place in sorted(kept)]


def _shares(sizes: dict[str, int], limit: int, seed: int) -> dict[str, int]:
    """How many of ``limit`` questions each task gets: as its size, rounded so that all together are ``limit``."""
    total = sum(sizes.values())
    exact = {task: limit * size / total for task, size in sizes.items()}
    found = {task: int(share) for task, share in exact.items()}
    left = limit - sum(found.values())
    for task in sorted(sizes, key=lambda task: (found[task] - exact[task], _hash(seed, task)))[:left]:
        found[task] += 1
    return found


def _hash(*parts: object) -> bytes:
    text = "\n".join(map(str, parts))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
