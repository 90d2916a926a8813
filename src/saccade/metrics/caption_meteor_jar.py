"""METEOR 1.5 itself, run as the Java program that its authors published: the only number beside a printed METEOR.

Denkowski and Lavie, "Meteor Universal", WMT 2014. ``saccade data get meteor`` puts the program and its paraphrase table
into the cache folder; else those inside the package ``pycocoevalcap`` (extra ``meteor``) are taken, which is never
imported. Java must be on the PATH. What is missing :func:`meteor_missing` says, and :func:`saccade.metrics.meteor_lite`
is what remains.

The captions go through two files, one caption a line, instead of the program's dialogue over pipes: nothing can block,
and no caption can be mistaken for the ``|||`` between fields. Every picture needs the same number of references there,
so the first one is repeated; METEOR takes the best, so a repetition changes nothing.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from saccade.cache import METEOR, METEOR_JAR, METEOR_PARAPHRASES, cache_home
from saccade.errors import ConfigError, MissingExtraError
from saccade.metrics.caption_words import Words, judged_captions

_PACKAGE = "pycocoevalcap"
_FEATURE, _EXTRA = "METEOR 1.5", "meteor"
_NUMBER = re.compile(r"[\d.]+(E-?\d+)?")  # as Java prints one


class _Files(NamedTuple):
    jar: Path
    paraphrases: Path


class _Program(NamedTuple):
    java: str
    files: _Files


def meteor_missing() -> str | None:
    """Why METEOR 1.5 cannot run here and what to do about it; None when it can."""
    try:
        _program()
    except MissingExtraError as error:
        return str(error)
    return None


def meteor_jar(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, timeout_seconds: float = 900.0
) -> float:
    """METEOR 1.5 of a set of captions, a fraction 0..1; NaN when there are no pictures.

    Args:
        hypotheses: one caption for each picture.
        references: what people said of it, any number for each picture.
        timeout_seconds: after which the program is ended. A thousand pictures take well under a minute.

    Raises:
        MissingExtraError: there is no Java, or no program for it.
        ConfigError: the program failed, or took longer.
    """
    pictures = judged_captions(hypotheses, references)
    program = _program()
    if not pictures:
        return float("nan")
    most = max(len(picture.references) for picture in pictures)
    padded = [words for _, known in pictures for words in [*known, *[known[0]] * (most - len(known))]]
    with tempfile.TemporaryDirectory(prefix="saccade-meteor-") as folder:
        said_file, reference_file = Path(folder, "said.txt"), Path(folder, "references.txt")
        _write(said_file, [picture.said for picture in pictures])
        _write(reference_file, padded)
        jar, paraphrases = map(str, program.files)
        options = ["-l", "en", "-norm", "-a", paraphrases, "-q", "-r", str(most)]  # quiet: the score alone, to stdout
        java = [program.java, "-Xmx2G", "-Dfile.encoding=UTF-8", "-jar", jar]
        return _final_score([*java, str(said_file), str(reference_file), *options], timeout_seconds)


def _program() -> _Program:
    """Where Java and METEOR are."""
    files = next((files for files in _places() if all(file.is_file() for file in files)), None)
    if files is None:
        raise MissingExtraError(_FEATURE, _EXTRA, f"it is not here; 'saccade data get {METEOR}' brings it, as does")
    java = shutil.which("java")
    if java is None:
        without = "it is a Java program and there is no 'java' on the PATH; install a Java runtime too"
        raise MissingExtraError(_FEATURE, _EXTRA, without)
    return _Program(java, files)


def _places() -> Iterator[_Files]:
    """Where METEOR may be: in the cache folder, then in the package that carries it."""
    fetched = cache_home() / METEOR
    yield _Files(fetched / METEOR_JAR.name, fetched / METEOR_PARAPHRASES.name)
    found = importlib.util.find_spec(_PACKAGE)
    for home in (found.submodule_search_locations or []) if found else []:
        inside = Path(home, "meteor")
        yield _Files(inside / METEOR_JAR.name, inside / "data" / METEOR_PARAPHRASES.name)


def _write(file: Path, captions: list[Words]) -> None:
    """One caption a line."""
    lines = (f"{' '.join(words)}\n" for words in captions)
    file.write_text("".join(lines), encoding="utf-8", newline="\n")


def _final_score(command: list[str], timeout_seconds: float) -> float:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program on files of our own
            command, capture_output=True, text=True, errors="replace", timeout=timeout_seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"METEOR 1.5 was ended after {timeout_seconds:g} s without a score; give it more time or fewer pictures"
        ) from error
    except OSError as error:
        raise ConfigError(f"METEOR 1.5 could not be started: {error}; try '{command[0]} -version'") from error
    printed = done.stdout.strip()
    if done.returncode or not _NUMBER.fullmatch(printed):
        said = (done.stderr.strip() or printed or "nothing").splitlines()[-1]
        raise ConfigError(
            f"METEOR 1.5 gave no score (exit code {done.returncode}, it said '{said}'); try '{command[0]} -version'"
        )
    return float(printed)
