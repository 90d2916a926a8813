"""How a caption is cut into words, and the words that a model knows.

Captions as the words that a model learns to say: lower case, no punctuation, clitics on their own.

Scores cut captions by the full rules of the COCO evaluation (:mod:`saccade.metrics.text.tokens`). This is the part
of those rules that a model should learn: ``dog's`` is ``dog 's``, ``isn't`` is ``is n't``, hyphens stay inside a
word and marks stay inside a number.

What scored words have and these do not: symbols (``#``, ``&``, ``%``) and brackets (``-lrb-``), the full stop of
``mr.`` and ``u.s.``, the cut in ``can not`` and ``gon na``, and whole ``o'clock`` and ``'n'``. That concerns 41 of the
35,000 captions of Flickr8k's train and dev sets. It stays so because trained models keep their vocabulary.

The words a captioner can say, by number: 0 ends a caption, 1 is any other word, then the most frequent first.

A vocabulary belongs to a trained model, whose folder keeps it as ``vocab.json``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from saccade.errors import CheckpointError, DataError

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


class _Cleaned(dict[int, str]):
    """For ``str.translate``: letters, marks, numbers and what stands inside words stay; all else parts words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in _APOSTROPHES:
            kept = "'"
        elif character in _INSIDE or unicodedata.category(character)[0] in "LMN":
            kept = character
        else:
            kept = " "
        self[code] = kept
        return kept


_CLEANED = _Cleaned()


def tokenise(text: str) -> list[str]:
    """The words of ``text``, in any language that puts spaces between them.

    >>> tokenise("A dog's t-shirt isn't red, is it?")
    ['a', 'dog', "'s", 't-shirt', 'is', "n't", 'red', 'is', 'it']
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    return _TOKEN.findall(folded.translate(_CLEANED))


END, UNKNOWN = 0, 1  # numbers that every vocabulary has
NO_WORD = -1  # fills the places after the end of a caption

SPECIAL = ("<end>", "<unknown>")  # what the two are called; no caption has such words, since brackets part words


@dataclass(frozen=True)
class Vocabulary:
    """Words by number."""

    words: tuple[str, ...]  # the words from number 2 on, the most frequent first

    @classmethod
    def build(cls, captions: Iterable[str], *, at_least: int = 5, most: int = 10_000) -> Vocabulary:
        """The words of ``captions``, the most frequent first, equally frequent ones by the alphabet.

        Args:
            captions: texts; they are read once.
            at_least: how often a word must be there.
            most: words kept at most.

        Raises:
            DataError: no word is frequent enough.
        """
        counts: Counter[str] = Counter()
        for caption in captions:
            counts.update(tokenise(caption))
        frequent = [word for word, count in counts.items() if count >= at_least]
        if not frequent:
            word, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
            found = f"the most frequent, '{word}', is there {count}" if word else "there is no word at all"
            raise DataError(f"no word is in the captions {at_least} times: {found}; lower at_least, or add captions")
        return cls(tuple(sorted(frequent, key=lambda word: (-counts[word], word))[:most]))

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def __getitem__(self, number: int) -> str:
        """The word of that number; ``<end>`` and ``<unknown>`` too."""
        return SPECIAL[number] if number < len(SPECIAL) else self.words[number - len(SPECIAL)]

    def __contains__(self, word: object) -> bool:
        return word in self._number_of

    def number(self, word: str) -> int:
        """The number of ``word``, that of ``<unknown>`` for one that is not here."""
        return self._number_of.get(word, UNKNOWN)

    def encode(self, text: str) -> list[int]:
        """The numbers of the words of ``text``; the end is not among them."""
        return [self.number(word) for word in tokenise(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The words ``ids``, up to the first end or the first place that has none.

        >>> Vocabulary(("a", "dog")).decode([2, 3, 1, 0, -1])
        'a dog <unknown>'
        """
        said = []
        for number in map(int, ids):
            if number in (END, NO_WORD):
                break
            said.append(self[number])
        return " ".join(said)

    @property
    def entries(self) -> tuple[str, ...]:
        """All that has a number, at the place of its number: ``<end>``, ``<unknown>``, then the words."""
        return (*SPECIAL, *self.words)

    @classmethod
    def of_model(cls, entries: Sequence[str]) -> Vocabulary:
        """The vocabulary of a trained model, whose folder keeps its :attr:`entries`.

        Raises:
            CheckpointError: no vocabulary has such entries.
        """
        words = tuple(entries[len(SPECIAL) :])
        if tuple(entries[: len(SPECIAL)]) != SPECIAL or len(set(words)) < len(words):
            raise CheckpointError(
                f"the model's words are not {', '.join(SPECIAL)} and others, each once; get its folder again"
            )
        return cls(words)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, start=len(SPECIAL))}
