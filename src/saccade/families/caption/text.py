"""Captions as the words that a model learns to say: lower case, no punctuation, clitics on their own.

Scores cut captions by the full rules of the COCO evaluation (:mod:`saccade.metrics.text.tokens`). This is the part
of those rules that a model should learn: ``dog's`` is ``dog 's``, ``isn't`` is ``is n't``, hyphens stay inside a
word and marks stay inside a number.

What scored words have and these do not: symbols (``#``, ``&``, ``%``) and brackets (``-lrb-``), the full stop of
``mr.`` and ``u.s.``, the cut in ``can not`` and ``gon na``, and whole ``o'clock`` and ``'n'``. That concerns 41 of the
35,000 captions of Flickr8k's train and dev sets. It stays so because trained models keep their vocabulary.
"""

from __future__ import annotations

import re
import unicodedata

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
