"""Captions as words, parted as the reference evaluation parts them: lower case, no punctuation, clitics on their own.

The captions that scores are published for are tokenised by Stanford's PTB tokeniser before they are compared, and its
punctuation is thrown away. This is the part of it that captions need: ``dog's`` is ``dog 's``, ``isn't`` is ``is n't``,
hyphens stay inside a word and marks stay inside a number. A full stop never becomes a word: kept in both captions and
references, the one at the end of nearly every Flickr caption would raise BLEU for nothing.

Deviations: symbols (``#``, ``&``, ``%``) are left out too, and ``cannot`` or ``gonna`` stay one word.
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
