"""Types: nothing is ignored without a code and a reason, and the typed script of a user runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import saccade

ROOT = Path(__file__).parents[1]
IGNORED = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w, -]+\])?(?P<rest>.*)$")


def unexplained(text: str) -> list[int]:
    """Numbers of the lines that ignore a type without a code, or without a comment behind or above that says why."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        ignored = IGNORED.search(line)
        above = number > 0 and lines[number - 1].strip().startswith("#")
        if ignored and not (ignored["code"] and (ignored["rest"].strip().startswith("#") or above)):
            found.append(number + 1)
    return found


def test_every_ignored_type_has_a_code_and_a_reason() -> None:
    package = Path(saccade.__file__).parent
    files = {path: unexplained(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    assert [f"{path}:{line}" for path, lines in files.items() for line in lines] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = b  # type: ignore", [1]),
        ("a = b  # type: ignore  # as it was", [1]),
        ("a = b  # type: ignore[misc]", [1]),
        ("a = b  # type: ignore[misc]  # b is an a", []),
        ("# b is an a\na = b  # type: ignore[misc, arg-type]", []),
    ],
)
def test_a_bare_ignore_is_found(text: str, lines: list[int]) -> None:
    assert unexplained(text) == lines


def test_the_typed_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "typed_user.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "the 7 is red; the map is 100 × 100"
    assert re.fullmatch(r"soft-mref: \d+% of 50 test questions", said[1])
    assert said[2:] == ["an even map puts 6% of its weight on the mask", "(1, 2) logits, 1 look"]
