"""METEOR: alignments, stems, the score by hand, of word numbers, and by the program of its authors."""

import itertools
import stat
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ConfigError
from saccade.metrics.text.meteor import (
    EXACT,
    STEM,
    Alignment,
    MeteorWords,
    align,
    meteor_jar,
    meteor_lite,
    meteor_missing,
    meteor_of_words,
)
from saccade.metrics.text.tokens import stem


def words(text):
    return text.split()


@pytest.mark.parametrize(
    ("stems", "text"),
    [
        ("run run run runner", "run runs running runner"),
        ("fli fli die tie cri cri by", "fly flies dies ties cry cries by"),
        ("hope hop hope hop", "hope hop hoping hopping"),  # e comes back, a double letter goes
        ("nation nation relat condit general", "nation national relational conditional generalization"),
        ("dog dog dog", "dog dog's dogs'"),
        ("generic generat communiti communism", "generically generated community communism"),
        ("sky news inning herring succeed", "sky news inning herring succeeded"),
    ],
)
def test_stems(stems, text):
    assert [stem(word) for word in words(text)] == words(stems)


def every_pairing(said, reference):
    """The best of all pairings, by trying them all."""
    best = (0.0, 0, 0)
    places = [None, *range(len(reference))]
    for chosen in itertools.product(places, repeat=len(said)):
        used = [place for place in chosen if place is not None]
        if len(set(used)) < len(used):
            continue
        pairs = [(said[i], reference[place]) for i, place in enumerate(chosen) if place is not None]
        if any(stem(one) != stem(other) for one, other in pairs):
            continue
        weight = sum(EXACT if one == other else STEM for one, other in pairs)
        joins = sum(
            before is not None and after == before + 1
            for before, after in itertools.pairwise(chosen)
            if after is not None
        )
        best = max(best, (round(weight, 9), joins, len(pairs)))
    return Alignment(best[0], best[2], best[2] - best[1])


CAPTION = st.lists(st.sampled_from(["a", "run", "runs", "dog"]), max_size=5)


@given(said=CAPTION, reference=CAPTION)
def test_no_pairing_is_better(said, reference):
    assert align(said, reference) == every_pairing(said, reference)


def test_a_score_worked_by_hand():
    """ "a dog" and "runs"~"running": M = 2.6 of 3 and of 4 words, 2 chunks in 3 pairs."""
    precision, recall = 2.6 / 3, 2.6 / 4
    mean = precision * recall / (0.85 * precision + 0.15 * recall)
    expected = mean * (1 - 0.6 * (2 / 3) ** 0.2)
    assert meteor_lite(["a dog runs"], [("a dog is running",)]) == pytest.approx(expected)
    assert meteor_lite(["a dog runs"], [("two birds", "a dog is running", "a cat")]) == pytest.approx(expected)


ENTRIES = (
    "<end>", "<unknown>", "a", "in", "the", "with", "is", "it",
    "dog", "dogs", "runs", "running", "brown", "grass", "tall", "jumps", "man", "hat",
)  # fmt: skip
END, UNKNOWN = 0, 1
WIDTH = 9


def table(delta: float = 0.75) -> MeteorWords:
    return MeteorWords(ENTRIES, end=END, unknown=UNKNOWN, delta=delta)


def rows(captions: list[str], width: int = WIDTH) -> torch.Tensor:
    """(1,N,width); a word that is no entry is unknown."""
    numbers = [[ENTRIES.index(w) if w in ENTRIES else UNKNOWN for w in caption.split()] for caption in captions]
    return torch.tensor([row + [-1] * (width - len(row)) for row in numbers])[None]


def score(said: str, *references: str, delta: float = 0.75) -> float:
    return float(meteor_of_words(rows([said]), rows(list(references)), table(delta)))


def penalty(chunks: int, pairs: int) -> float:
    return 1 - 0.6 * (chunks / pairs) ** 0.2


def test_words_stems_weights_and_chunks_by_hand() -> None:
    """a dog runs in grass | the dog is running in tall grass.

    dog, in and grass are met as words, runs as a stem; a, in | the, is, in are function words. "run in" is a run of two
    stems in both captions; dog and grass stand alone.
    """
    matched = 0.75 + 0.25 + 0.75 + 0.6 * 0.75
    there, known = 3 * 0.75 + 2 * 0.25, 4 * 0.75 + 3 * 0.25
    precision, recall = matched / there, matched / known
    expected = precision * recall / (0.85 * precision + 0.15 * recall) * penalty(3, 4)
    assert score("a dog runs in grass", "the dog is running in tall grass") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("said", "references"),
    [
        ("a dog runs", ["a dog is running"]),
        ("a brown dog runs in the grass", ["the dog is running in tall grass"]),
        ("the man with a hat jumps", ["a dog jumps", "a man jumps with the hat", "it runs"]),
        ("running dogs", ["dogs running in grass"]),
    ],
)
def test_without_weights_it_is_meteor_lite(said: str, references: list[str]) -> None:
    """Where each word can have one partner only, and the caption is not the reference itself."""
    expected = meteor_lite([said], [references])
    assert score(said, *references, delta=0.5) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loose", ["in", "with a", "is", "in the"])
def test_breaking_off_costs_though_the_reference_has_those_words(loose: str) -> None:
    reference = "a man with a hat is in the grass"
    whole = score("a man", reference)
    assert score(f"a man {loose}", reference) < whole
    assert score(f"a man {loose} <end>", reference) < whole
    assert score(f"a man {loose} grass", reference) > whole


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str = "print(0.25)") -> Path:
    """A ``java`` that keeps its arguments and files in ``folder`` and then runs ``program``; a jar for it."""
    jar = folder / "site" / "pycocoevalcap" / "meteor" / "meteor-1.5.jar"
    (jar.parent / "data").mkdir(parents=True)
    jar.write_bytes(b"not really")
    (jar.parent / "data" / "paraphrase-en.gz").write_bytes(b"nor this")
    monkeypatch.setenv("SACCADE_HOME", str(folder / "home"))
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"#!{sys.executable}\n"
        "import sys, shutil, time\n"
        f"said, known = sys.argv[5:7]\nshutil.copy(said, {str(folder)!r} + '/said')\n"
        f"shutil.copy(known, {str(folder)!r} + '/known')\n"
        f"open({str(folder)!r} + '/arguments', 'w').write(' '.join(sys.argv[1:]))\n"
        f"{program}\n"
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.syspath_prepend(str(folder / "site"))
    return jar


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def test_captions_go_line_by_line_and_references_are_made_equally_many(tmp_path, monkeypatch):
    jar = stand_in(tmp_path, monkeypatch)
    assert meteor_missing() is None
    assert meteor_jar(["a dog", "two  birds"], [("a dog runs",), ("birds", "two birds", "b")]) == 0.25
    assert lines(tmp_path / "said") == ["a dog", "two birds"]
    assert lines(tmp_path / "known") == ["a dog runs"] * 3 + ["birds", "two birds", "b"]
    arguments = (tmp_path / "arguments").read_text()
    assert f"-jar {jar} " in arguments
    assert arguments.endswith(f"-l en -norm -a {jar.parent}/data/paraphrase-en.gz -q -r 3")


def test_no_caption_can_break_the_lines(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    odd = ["one\ntwo\r\nthree\u2028four\x85five", "a ||| b ||| EVAL", "", "café 日本 🐦", "half \ud800 pair"]
    meteor_jar(odd, [("x",)] * 5)
    assert lines(tmp_path / "said") == [
        "one two three four five", "a | | | b | | | eval", "", "café 日本", "half pair"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (
            "sys.stderr.write('loading\\nOutOfMemoryError: heap\\n'); sys.exit(1)",
            "OutOfMemoryError: heap",
        ),
        ("print('NaN')", "NaN"),
        ("time.sleep(60)", r"0\.3 seconds"),
    ],
)
def test_a_program_that_fails_or_hangs_is_quoted_and_leaves_nothing(tmp_path, monkeypatch, program, complaint):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    stand_in(tmp_path, monkeypatch, program)
    with pytest.raises(ConfigError, match=complaint):
        meteor_jar(["a"], [("a",)], timeout_seconds=0.3 if "sleep" in program else 60)
    assert list((tmp_path / "scratch").iterdir()) == []
