"""Stories sent to the server: a JSON list of sentences, with limits."""

from __future__ import annotations

from saccade.errors import DataError

SENTENCES = 1000
"""Most sentences of a story sent to the server."""
CHARACTERS = 400
"""Most characters of one sentence."""


def sent_sentences(value: object) -> tuple[str, ...]:
    """The sentences in plain JSON values, with single spaces; those without a word are left out.

    Raises:
        DataError: it is no list of texts, or larger than the limits allow.
    """
    if not isinstance(value, list):
        raise DataError(f"a story is a list of sentences, found {_kind(value)}")
    if len(value) > SENTENCES:
        raise DataError(f"a story of {len(value):,} sentences is too long: send at most {SENTENCES:,}")
    for number, text in enumerate(value, start=1):
        if not isinstance(text, str):
            raise DataError(f"sentence {number} must be a text, found {_kind(text)}")
        if len(text) > CHARACTERS:
            raise DataError(f"sentence {number} has {len(text):,} characters: send at most {CHARACTERS}")
    told = (" ".join(text.split()) for text in value)
    return tuple(text for text in told if text)


def _kind(value: object) -> str:
    """What a JSON value is called in JSON."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
