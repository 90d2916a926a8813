"""Allowed ranges of settings that decide size and speed: wide enough for real models, too narrow for attacks.

A model folder is untrusted. Its settings are checked before anything is built from them.
"""

from __future__ import annotations

from typing import Annotated

from saccade.config import Within

MAX_WORDS = 1_000_000
"""Queries, answers, classes, words."""
MAX_UNITS = 8192
"""Channels and hidden units of one layer."""
MAX_STAGES = 64
"""Layers in a row."""
MAX_STEPS = 512
"""Words or labels, one after the other."""
MAX_GLIMPSES = 32
"""Before each of them."""
MAX_PIXELS = 4096
"""A side of a picture that a model is built for."""
MAX_SENTENCES = 1024
"""Most sentences of a story in a model's memory."""
MAX_HOPS = 16
"""Looks at one story, or words of its answer."""

Words = Annotated[int, Within(1, MAX_WORDS)]
Units = Annotated[int, Within(1, MAX_UNITS)]
Depth = Annotated[int, Within(1, MAX_STAGES)]
Steps = Annotated[int, Within(1, MAX_STEPS)]
Glimpses = Annotated[int, Within(1, MAX_GLIMPSES)]
Sentences = Annotated[int, Within(1, MAX_SENTENCES)]
Hops = Annotated[int, Within(1, MAX_HOPS)]
Pixels = Annotated[tuple[int, int], Within(1, MAX_PIXELS)]
