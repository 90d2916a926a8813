"""An answer in words: what a model said, how sure it was, and what else it considered. The same for every family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerKind = Literal["label", "labels", "sentence", "none"]


@dataclass(frozen=True)
class Answer:
    """What a model answered; how it is drawn and stored follows from its kind and from the trace."""

    text: str
    confidence: float
    """Probability of the answer, 0..1; of a sentence, that of a word of it (the geometric mean, its end included)."""
    kind: AnswerKind = "label"
    """One label; labels said one after the other; the words of a sentence; none where the model has no head."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """The other answers and their probabilities, likeliest first: all of them, or of very many the first few."""
    parts: tuple[tuple[str, float], ...] | None = None
    """What was said one after the other, each with its probability; None for one label."""
    log_probability: float | None = None
    """Of a whole sentence, its end included."""
    on_the_way: tuple[tuple[str, str, float], ...] = ()
    """What it would have answered before it had seen all, in order: where (a scale), the answer, its probability."""
