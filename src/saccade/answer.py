"""An answer in words: what a model said, how sure it was, and what else it considered. The same for every family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerKind = Literal["label", "labels", "sentence", "none"]


@dataclass(frozen=True)
class Answer:
    """What a model answered; how it is drawn and stored follows from its kind and from the trace."""

    text: str
    #: Probability of the answer, 0..1; of a sentence, that of a word of it (the geometric mean, its end included).
    #: Calibrated where the model has a temperature, see ``raw``.
    confidence: float
    #: One label; labels said one after the other; the words of a sentence; none where the model has no head.
    kind: AnswerKind = "label"
    #: The other answers and their probabilities, likeliest first: all of them, or of very many the first few.
    alternatives: tuple[tuple[str, float], ...] = ()
    #: What was said one after the other, each with its probability; None for one label.
    parts: tuple[tuple[str, float], ...] | None = None
    log_probability: float | None = None  #: Log-probability of the whole sentence, including its end.
    #: What it would have answered before it had seen all, in order: where (a scale), the answer, its probability.
    on_the_way: tuple[tuple[str, str, float], ...] = ()
    #: Before calibration: the probability of the answer, then that of each alternative. Empty: not calibrated.
    raw: tuple[float, ...] = ()

    @property
    def is_calibrated(self) -> bool:
        """Whether the probabilities were put right by the model's temperature."""
        return bool(self.raw)

    @property
    def raw_confidence(self) -> float:
        """The confidence as the network gives it, before calibration."""
        return self.raw[0] if self.raw else self.confidence
