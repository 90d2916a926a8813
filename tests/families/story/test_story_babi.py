"""The official files of bAbI: which of them are there, what they say, and lines that they must not have."""

import re
from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.families.story.files import babi_files, read_babi

TWO = """\
1 Mary moved to the bathroom.
2 Where is Mary? \tbathroom\t1
3 Mary got the milk there.
4 John went to the hallway.
5 What is Mary carrying? \tmilk,apple\t3 1
1 John went back to the garden.
2 Where is John?\tgarden\t1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The unpacked archive in small; as in the published copies, a training file and the 10k test files are missing."""
    root = tmp_path / "tasks_1-20_v1-2"
    for size, task, part in [
        ("en", "qa10_indefinite-knowledge", "train"),
        ("en", "qa10_indefinite-knowledge", "test"),
        ("en", "qa2_two-supporting-facts", "train"),
        ("en", "qa2_two-supporting-facts", "test"),
        ("en-10k", "qa2_two-supporting-facts", "train"),
    ]:
        (root / size).mkdir(parents=True, exist_ok=True)
        (root / size / f"{task}_{part}.txt").write_text(TWO)
    (root / "en" / "qa_notes.txt").write_text("not a task")
    (root / "README.txt").write_text("read me")
    return root


def listed(files: dict[str, dict[str, Path]]) -> dict[str, dict[str, str]]:
    return {task: {part: path.parent.name for part, path in parts.items()} for task, parts in files.items()}


def test_files_of_1k(folder):
    both = {"train": "en", "test": "en"}
    assert listed(babi_files(folder, "1k")) == {"qa2": both, "qa10": both}
    assert list(babi_files(folder, "1k")) == ["qa2", "qa10"]  # by number
    assert babi_files(folder, "1k")["qa2"]["train"] == folder / "en" / "qa2_two-supporting-facts_train.txt"


def test_10k_takes_the_test_files_of_en_and_says_what_is_missing(folder):
    expected = {"qa2": {"train": "en-10k", "test": "en"}, "qa10": {"test": "en"}}
    assert listed(babi_files(folder, "10k")) == expected
    own = folder / "en-10k" / "qa2_two-supporting-facts_test.txt"
    own.write_text(TWO)
    assert babi_files(folder, "10k")["qa2"]["test"] == own


def test_folders_without_babi(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        babi_files(tmp_path / "none", "1k")
    (tmp_path / "tasks.tar.gz").write_bytes(b"")
    with pytest.raises(DataError, match="unpack it"):
        babi_files(tmp_path / "tasks.tar.gz", "1k")
    with pytest.raises(DataError, match=re.escape("no files en/qa1_…_train.txt; found tasks.tar.gz; give the folder")):
        babi_files(tmp_path, "1k")


def test_questions(folder):
    first, second, third = read_babi(folder / "en" / "qa2_two-supporting-facts_test.txt", "qa2")
    assert first.sentences == ("Mary moved to the bathroom.",)
    assert (first.question, first.answer, first.supporting) == ("Where is Mary?", "bathroom", (0,))
    assert second.sentences == (
        "Mary moved to the bathroom.",
        "Mary got the milk there.",
        "John went to the hallway.",
    )
    assert second.answer == "milk,apple"
    assert second.supporting == (1, 0)  # lines 3 and 1, in the order of the file
    assert third.sentences == ("John went back to the garden.",)
    assert {asked.task for asked in (first, second, third)} == {"qa2"}
    assert second.where == "qa2_two-supporting-facts_test.txt, line 5"


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "qa1.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_question_may_come_before_any_fact(tmp_path):
    (asked,) = read_babi(written(tmp_path, "1 Where is Mary?\tnowhere\n"), "qa1")
    assert (asked.sentences, asked.answer, asked.supporting) == ((), "nowhere", ())


def test_windows_line_ends_byte_order_mark_gaps_and_blank_lines(tmp_path):
    text = "\ufeff1 Mary moved.\r\n\r\n7 Where is Mary? \tthere\t1\r\n"
    (asked,) = read_babi(written(tmp_path, text), "qa1")
    assert (asked.sentences, asked.question, asked.answer, asked.supporting) == (
        ("Mary moved.",),
        "Where is Mary?",
        "there",
        (0,),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 Mary moved.\nMary left.\n", "line 2: it must start with a line number and a space, found 'Mary left.'"),
        ("1 Mary moved.\n2\n", "line 2: no sentence after the number"),
        ("2 Mary moved.\n", "line 1: number 2 follows 0; numbers rise, and 1 starts a story"),
        ("1 Mary moved.\n3 She left.\n3 Gone.\n", "line 3: number 3 follows 3"),
        ("1 Mary moved.\n2 Where?\t\t1\n", "line 2: not QUESTION, tab, ANSWER, tab, SUPPORTING"),
        ("1 Mary moved.\n2 \tthere\t1\n", "line 2: not QUESTION, tab, ANSWER, tab, SUPPORTING"),
        ("1 Mary moved.\n2 Where?\ta\t1\tb\n", "line 2: not QUESTION, tab, ANSWER, tab, SUPPORTING"),
        ("1 Mary moved.\n2 Where?\tthere\tone\n", "line 2: supporting facts 'one' must be numbers of sentences"),
        ("1 Mary moved.\n2 Who?\ta\t1\n3 Where?\tthere\t2\n", "line 3: supporting facts '2' must be numbers"),
        ("1 Mary moved.\n2 Where?\tthere\t3\n3 She left.\n", "line 2: supporting facts '3' must be numbers"),
        ("1 Mary moved.\n", "no question"),
        ("", "no question"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, why):
    with pytest.raises(DataError, match=re.escape(why)) as caught:
        read_babi(written(tmp_path, text), "qa1")
    assert str(tmp_path / "qa1.txt") in str(caught.value)
