"""The vocabulary of a model that speaks in sentences: a file of its own, and checked as the rest of the folder is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caption_stubs import WORDS, save_tiny_captioner
from saccade.errors import CheckpointError
from saccade.families.caption.vocabulary import Vocabulary
from saccade.models.facts import VOCABULARY, read_facts
from saccade.models.folder import load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny_captioner(tmp_path / "teller")


def test_words_lie_beside_the_configuration_and_come_back(folder: Path) -> None:
    assert "answers" not in json.loads((folder / "config.json").read_text())
    held = json.loads((folder / VOCABULARY).read_text())
    assert held == {"schema_version": 1, "words": list(Vocabulary.of_model(held["words"]).entries)}
    _, facts = load_model(folder)
    assert (facts.answers, facts.sentences) == (WORDS, True)


@pytest.mark.parametrize(
    "content",
    [
        None, "not json", "[1]", '{"schema_version": 1}', '{"schema_version": 9, "words": []}',
        '{"schema_version": 1, "words": []}', '{"schema_version": 1, "words": ["a", "a", "b", "c", "d"]}',
        '{"schema_version": 1, "words": [1, 2, 3, 4, 5]}',
    ],
)  # fmt: skip
def test_a_damaged_vocabulary_is_refused(folder: Path, content: str | None) -> None:
    path = folder / VOCABULARY
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(CheckpointError, match=str(folder)):
        read_facts(folder)


def test_words_must_be_as_many_as_the_model_has(folder: Path) -> None:
    (folder / VOCABULARY).write_text(json.dumps({"schema_version": 1, "words": [*WORDS, "owl"]}))
    with pytest.raises(CheckpointError, match=r"6 vocabulary, .* 5"):
        load_model(folder)
