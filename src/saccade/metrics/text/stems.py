"""English words without their endings, so that "runs" meets "running": Porter's second stemmer.

Porter, "The English (Porter2) stemming algorithm", Snowball 2001, without the exceptions added since; the step numbers
below are his. It works by rule alone: "better" does not meet "good". Two regions of a word decide whether an ending may
go: R1 is what follows the first consonant after a vowel, R2 is R1 of R1.
"""

from __future__ import annotations

import re
from functools import lru_cache

_EXCEPTIONS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie",
    "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
} | {word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}  # fmt: skip
_DONE_AFTER_PLURAL = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}

# A Y is a consonant: a y at the start of a word or after a vowel.
_CONSONANT_Y = re.compile(r"(^|(?<=[aeiouy]))y")
_REGION = re.compile(r"[aeiouy][^aeiouy]")
_REGION_AFTER = re.compile(r"gener|commun|arsen")
_VOWEL = re.compile(r"[aeiouy]")
_VOWEL_BEFORE_LAST = re.compile(r"[aeiouy].")
_SHORT_SYLLABLE = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$")
_DOUBLE = re.compile(r"(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$")

_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og",
    "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive",
     "ize", "ion"), "",
)  # fmt: skip
_MUST_FOLLOW = {"ogi": "l", "li": "cdeghkmnrt", "ion": "st"}
"""Endings that go only after one of these letters."""


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case; words of one or two letters stay as they are.

    >>> [stem(word) for word in ("running", "runs", "happily", "sky", "as")]
    ['run', 'run', 'happili', 'sky', 'as']
    """
    if len(word) <= 2:
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    word = _CONSONANT_Y.sub("Y", word.removeprefix("'"))
    first, second = _regions(word)
    word = _without_plural(_without_possessive(word))
    if word in _DONE_AFTER_PLURAL:
        return word
    word = _without_tense(word, first)
    if len(word) > 2 and word[-1] in "yY" and not _VOWEL.match(word[-2]):  # step 1c
        word = f"{word[:-1]}i"
    word = _replaced(word, _STEP_2, first, first)
    word = _replaced(word, _STEP_3, first, second)
    word = _replaced(word, _STEP_4, second, second)
    return _without_last(word, first, second).lower()


def _regions(word: str) -> tuple[int, int]:
    """Where R1 and R2 begin; the length of the word where there is none."""
    fixed = _REGION_AFTER.match(word)
    first = fixed.end() if fixed else _end_of(word, 0)
    return first, _end_of(word, first)


def _end_of(word: str, start: int) -> int:
    found = _REGION.search(word, start)
    return found.end() if found else len(word)


def _without_possessive(word: str) -> str:
    """Step 0."""
    for ending in ("'s'", "'s", "'"):
        if word.endswith(ending):
            return word.removesuffix(ending)
    return word


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL_BEFORE_LAST.search(word, 0, len(word) - 1):
        return word[:-1]
    return word


def _without_tense(word: str, first: int) -> str:
    """Step 1b."""
    ending = _longest_ending(word, ("eedly", "ingly", "edly", "eed", "ing", "ed"))
    rest = word.removesuffix(ending)
    if ending in ("eed", "eedly"):
        return f"{rest}ee" if len(rest) >= first else word
    if not ending or not _VOWEL.search(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if _DOUBLE.search(rest):
        return rest[:-1]
    is_short = len(rest) <= first and _SHORT_SYLLABLE.search(rest)
    return f"{rest}e" if is_short else rest


def _replaced(word: str, endings: dict[str, str], region: int, strict_region: int) -> str:
    """Steps 2, 3 and 4: the longest ending is replaced if it lies in the region; "ative" needs the strict one."""
    ending = _longest_ending(word, endings)
    rest = word.removesuffix(ending)
    if not ending or len(rest) < (strict_region if ending == "ative" else region):
        return word
    if ending in _MUST_FOLLOW and not rest.endswith(tuple(_MUST_FOLLOW[ending])):
        return word
    return rest + endings[ending]


def _without_last(word: str, first: int, second: int) -> str:
    """Step 5."""
    rest = word[:-1]
    if word.endswith("e"):
        goes = len(rest) >= second or (len(rest) >= first and not _SHORT_SYLLABLE.search(rest))
        return rest if goes else word
    return rest if word.endswith("ll") and len(rest) >= second else word


def _longest_ending(word: str, endings: dict[str, str] | tuple[str, ...]) -> str:
    """The longest of the endings that the word has, or nothing."""
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")
