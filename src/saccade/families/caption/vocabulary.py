"""How a caption is cut into words, the words that a model knows, and how words become sentences again.

Words are in lower case, without punctuation, clitics on their own: ``dog's`` is ``dog 's``, ``isn't`` is ``is n't``;
hyphens stay inside a word and marks inside a number. Scores cut captions by the full rules of the COCO evaluation
(:mod:`saccade.metrics.text.tokens`), which also have symbols and brackets, the full stop of ``mr.`` and the cut in
``can not``. It stays so because trained models keep their vocabulary.

Captions are found by a search, so one look may return several: :class:`CaptionResponder` searches for the words by beam
search, and asks the model once more for the probability of each; ``decode`` puts given words into a sentence.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

from torch import Tensor

from saccade.errors import CheckpointError, DataError
from saccade.families.answering import Responder, Response
from saccade.models.base import Given
from saccade.models.caption_decoding import Decoded
from saccade.models.facts import ModelFacts
from saccade.models.sat import SatModel
from saccade.trace import Answer, Output

_APOSTROPHES = "’ʼ＇`´‘"
_INSIDE = frozenset("'-.,:")  # what the pattern below knows what to do with

_WORD = r"[^\s'\-.,:]"
_TOKEN = re.compile(
    rf"""
      \d+(?:[.,:]\d+)+(?!{_WORD})            # 2.5, 10,000, 12:30
    | {_WORD}+(?=n't(?!{_WORD}))             # is of isn't, which gives up its n
    | n't(?!{_WORD})
    | '(?:s|m|d|re|ve|ll)(?!{_WORD})
    | {_WORD}+(?:-{_WORD}+)*                 # t-shirt
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=1 << 12)
def _cleaned(character: str) -> str:
    """Letters, marks, numbers and inner punctuation stay; all else separates words."""
    if character in _APOSTROPHES:
        return "'"
    stays = character in _INSIDE or unicodedata.category(character)[0] in "LMN"
    return character if stays else " "


def tokenise(text: str) -> list[str]:
    """The words of ``text``, in any language with spaces.

    >>> tokenise("A dog's t-shirt isn't red, is it?")
    ['a', 'dog', "'s", 't-shirt', 'is', "n't", 'red', 'is', 'it']
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    return _TOKEN.findall("".join(map(_cleaned, folded)))


END, UNKNOWN = 0, 1  # numbers that every vocabulary has
NO_WORD = -1  # fills the places after the end of a caption

SPECIAL = ("<end>", "<unknown>")  # what the two are called; no caption has such words, since brackets part words


@dataclass(frozen=True)
class Vocabulary:
    """A captioner's words by number: 0 ends a caption, 1 is any other word, then these.

    A model's folder stores its :attr:`entries` as ``vocab.json``.
    """

    words: tuple[str, ...]  # from number 2 on, the most frequent first

    @classmethod
    def build(cls, captions: Iterable[str], *, at_least: int = 5, most: int = 10_000) -> Vocabulary:
        """The ``most`` frequent words of ``captions``, each there ``at_least`` times; ties go by the alphabet."""
        counts: Counter[str] = Counter()
        for caption in captions:
            counts.update(tokenise(caption))
        frequent = [word for word, count in counts.items() if count >= at_least]
        if not frequent:
            word, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
            why = f"the most frequent, '{word}', is there {count}" if word else "there is no word at all"
            raise DataError(f"no word is in the captions {at_least} times: {why}; lower at_least, or add captions")
        return cls(tuple(sorted(frequent, key=lambda word: (-counts[word], word))[:most]))

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def __getitem__(self, number: int) -> str:
        """The word of a number, ``<end>`` and ``<unknown>`` included."""
        return SPECIAL[number] if number < len(SPECIAL) else self.words[number - len(SPECIAL)]

    def __contains__(self, word: object) -> bool:
        return word in self._number_of

    def number(self, word: str) -> int:
        """The number of ``word``, or of ``<unknown>``."""
        return self._number_of.get(word, UNKNOWN)

    def encode(self, text: str) -> list[int]:
        """The numbers of the words of ``text``, without the end."""
        return [self.number(word) for word in tokenise(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The words ``ids``, up to the first end or the first place that has none.

        >>> Vocabulary(("a", "dog")).decode([2, 3, 1, 0, -1])
        'a dog <unknown>'
        """
        words = []
        for number in map(int, ids):
            if number in (END, NO_WORD):
                break
            words.append(self[number])
        return " ".join(words)

    @property
    def entries(self) -> tuple[str, ...]:
        """All words by number: ``<end>``, ``<unknown>``, then the words."""
        return (*SPECIAL, *self.words)

    @classmethod
    def of_model(cls, entries: Sequence[str]) -> Vocabulary:
        """The vocabulary of a trained model, whose folder keeps its :attr:`entries`."""
        words = tuple(entries[len(SPECIAL) :])
        if tuple(entries[: len(SPECIAL)]) != SPECIAL or len(set(words)) < len(words):
            raise CheckpointError(f"the model's words are not {', '.join(SPECIAL)} and others; get its folder again")
        return cls(words)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=len(SPECIAL))}


BEAM = 5  # captions that are followed side by side while the best one is looked for


def decode(model: SatModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The sentence of each example, from logits (B,T,V) and the likeliest words (B,T)."""
    words = cast(Tensor, output.trace.answer)
    log_shares = _log_probabilities(output.logits, words)  # (B,T)
    ends = (words == 0).int().argmax(1).where((words == 0).any(1), (words >= 0).sum(1))  # (B,): words before the end
    wholes = (log_shares * (words >= 0).cpu()).sum(1)  # (B,)
    return [
        _sentence(ids, shares, int(end), float(whole), facts.answers)
        for ids, shares, end, whole in zip(words.tolist(), log_shares, ends, wholes)
    ]


class CaptionResponder(Responder):
    """Searches for captions; options are ``beam``, ``captions`` and ``length_penalty``."""

    model: SatModel

    def options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """How captions are searched for, in the words of ``SatModel.caption``."""
        options = super().options(values)
        several = options.get("captions", 1)
        width = options.get("beam", max(BEAM, several))
        if not 1 <= several <= width:
            raise DataError(f"captions are 1 or more and no more than the beam follows, found {several} of {width}")
        return {"width": width, "captions": several, "length_penalty": options.get("length_penalty", 0.0)}

    def respond(
        self, encoding: Tensor, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """The captions that the search found, the best first."""
        extra = {} if attention is None else {"attention": attention}
        decoded = self.model.caption(encoding, **options, **extra)
        return [self._response(encoding, decoded, which, attention) for which in range(decoded.words.shape[1])]

    def _response(self, encoding: Tensor, decoded: Decoded, which: int, attention: Given | None) -> Response:
        words = decoded.words[:, which]  # (B,T)
        log_shares = _log_probabilities(self.model.respond(encoding, words, attention=attention).logits, words)  # (B,T)
        lengths, wholes = decoded.lengths[:, which].tolist(), decoded.log_prob[:, which].tolist()
        answers = [
            _sentence(ids, shares, length, whole, self.facts.answers)
            for ids, shares, length, whole in zip(words.tolist(), log_shares, lengths, wholes)
        ]
        trace = self.model.trace_of(decoded, which)
        return Response(answers, trace if attention is None else trace.mark_given(attention))


def _log_probabilities(logits: Tensor, words: Tensor) -> Tensor:
    return logits.double().log_softmax(-1).gather(-1, words.clamp(min=0)[..., None])[..., 0].cpu()


def _sentence(ids: Sequence[int], log_shares: Tensor, length: int, whole: float, words: Sequence[str]) -> Answer:
    """One caption from its ids (T,), their log-probabilities (T,), its number of words, and its own log-probability."""
    parts = tuple((words[ids[step]], float(log_shares[step].exp())) for step in range(length))
    steps = sum(word >= 0 for word in ids)  # the end among them, if it was said
    return Answer(
        " ".join(word for word, _ in parts),
        math.exp(whole / steps) if steps else 0.0,
        kind="sentence",
        parts=parts,
        log_probability=whole,
    )
