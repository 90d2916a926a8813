"""Stories that a user gives: plain text, and a JSON list sent to the server.

Your own story as plain text: one sentence per line, or running text that is split into sentences.

Lines may have the line numbers of bAbI. Questions are not facts: a line with a tab (a question of a bAbI file, with its
answer) and a sentence that ends in a question mark are left out, and said in ``skipped``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from saccade.errors import DataError
from saccade.families.story.stories import words_of


def read_utf8(path: Path) -> str:
    """The text of ``path``, with or without a byte order mark; line ends become line feeds.

    Raises:
        DataError: the file cannot be read, is binary, or has another encoding.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: it is in UTF-16; save it as UTF-8")
    if (zero := content.find(b"\0")) >= 0:
        raise DataError(f"{path}: a binary file, not text (byte {zero} is 0); give a text file in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = error.object[error.start]
        raise DataError(f"{path}: line {line} is not UTF-8 (byte 0x{wrong:02x}); save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


_CLOSING = "\"'”’»)"
_ENDS = re.compile(rf"[.!?…][{_CLOSING}]*$")
_CUT = re.compile(
    rf"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bMrs\.)(?:(?<=[.!?…])|(?<=[.!?…][{_CLOSING}]))\s+"
)
_NUMBERED = re.compile(r"[0-9]+ +(?=\S)")


@dataclass(frozen=True)
class StoryText:
    """What a text tells."""

    sentences: tuple[str, ...]
    """The facts, in order, as written."""
    skipped: tuple[str, ...] = ()
    """What was left out: ``REASON: TEXT``."""


def read_story(path: Path) -> StoryText:
    """The sentences of a text file.

    Raises:
        DataError: the file cannot be read, is binary, has another encoding than UTF-8, or holds no sentence.
    """
    story = story_in(read_utf8(path))
    if not story.sentences:
        found = f"found {len(story.skipped)} left out ({story.skipped[0]})" if story.skipped else "it is empty"
        raise DataError(f"{path}: no sentence to remember; {found}; write one sentence per line")
    return story


def story_in(text: str) -> StoryText:
    """The facts of ``text``, and its questions apart.

    >>> story_in("Mary got the milk. She left. Where is the milk?")
    StoryText(sentences=('Mary got the milk.', 'She left.'), skipped=('a question: Where is the milk?',))
    """
    lines, skipped = [], []
    for line in text.splitlines():
        if "\t" in line.strip():
            skipped.append(f"a question: {' '.join(_NUMBERED.sub('', line.strip(), count=1).split())}")
        else:
            lines.append(line)
    told = []
    for sentence in cut_sentences("\n".join(lines)):
        if sentence.rstrip(_CLOSING).endswith("?"):
            skipped.append(f"a question: {sentence}")
        else:
            told.append(sentence)
    return StoryText(tuple(told), tuple(skipped))


def cut_sentences(text: str) -> list[str]:
    """The sentences of ``text``. What holds no word is none.

    A line is a sentence if all lines have numbers. Otherwise lines are cut where sentences end. A line goes on in the
    next one if it ends without a full stop and the next one starts in lower case, unless no line ends with a full stop.
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    filled = [line for line in lines if line]
    if filled and all(_NUMBERED.match(line) for line in filled):
        cut = [_NUMBERED.sub("", line, count=1) for line in filled]
    else:
        cut = [sentence for paragraph in _joined(lines) for sentence in _CUT.split(paragraph)]
    return [sentence for sentence in cut if words_of(sentence)]


def _joined(lines: list[str]) -> list[str]:
    """Lines, with those that a sentence runs over made one."""
    if not any(_ENDS.search(line) for line in lines):
        return lines
    joined: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on and line[:1].islower():
            joined[-1] += f" {line}"
        else:
            joined.append(line)
        goes_on = bool(line) and not _ENDS.search(line)
    return joined


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
