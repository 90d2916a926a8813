"""A story as plain text: how it is cut into sentences, what is left out of it, and files that are no text."""

import re
from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.families.story.text import cut_sentences, read_story, story_in


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mary went home.\nJohn left.\n", ["Mary went home.", "John left."]),
        ("mary went home\n\n  john   left\n", ["mary went home", "john left"]),
        ("Mary went home. John left! Sam stayed", ["Mary went home.", "John left!", "Sam stayed"]),
        ("Mary went\nto the den. John\nleft.", ["Mary went to the den.", "John left."]),
        ("A title\nMary went home.", ["A title", "Mary went home."]),
        ("Mary went\n\nto the den.", ["Mary went", "to the den."]),
        ("Mr. Smith ran 3.5 miles. Mrs. Smith did not.", ["Mr. Smith ran 3.5 miles.", "Mrs. Smith did not."]),
        ('He said "Stay." Then he left.', ['He said "Stay."', "Then he left."]),
        ("1 Mary went home.\n2 John left. He ran.\n", ["Mary went home.", "John left. He ran."]),
        ("3 men came.\nMary left.", ["3 men came.", "Mary left."]),
        ("... \n\t\n!", []),
        ("", []),
    ],
)
def test_sentences(text, sentences):
    assert cut_sentences(text) == sentences


def test_questions_are_no_facts():
    text = "1 Mary went home.\n2 Where is Mary? \thome\t1\n3 John left.\n4 Who left?\n"
    story = story_in(text)
    assert story.sentences == ("Mary went home.", "John left.")
    assert story.skipped == ("a question: Where is Mary? home 1", "a question: Who left?")


def test_a_file(tmp_path: Path):
    path = tmp_path / "story.txt"
    path.write_bytes("\ufeffZoë went home.\r\nSam left.\r\n".encode())
    assert read_story(path).sentences == ("Zoë went home.", "Sam left.")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no sentence to remember; it is empty"),
        (b" \n\n", "no sentence to remember; it is empty"),
        (b"Where is Mary?\n", "no sentence to remember; found 1 left out (a question: Where is Mary?)"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a binary file, not text (byte 8 is 0)"),
        ("Zoë went.\n".encode("latin-1"), "line 1 is not UTF-8 (byte 0xeb)"),
        ("Zoë went.\n".encode("utf-16"), "it is in UTF-16"),
    ],
)
def test_files_that_tell_nothing(tmp_path, content, why):
    path = tmp_path / "story.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(f"{path}: {why}")):
        read_story(path)
