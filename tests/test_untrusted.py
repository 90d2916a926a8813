"""Files of strangers: regular ones of a bounded size, values of a bounded depth."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from saccade.untrusted import DEEPEST, MAX_VALUES, check_plain, parse_json, read_regular
from saccade.yaml_text import LONGEST, MAX_NODES, parse_yaml, top_values


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_regular(tmp_path / "a", 3) == b"abc"
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "link") == b"abc"


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"abc")
    os.mkfifo(tmp_path / "pipe")
    for name, most, said in (
        ("large", 2, "3 bytes, and at most 2 are allowed"),
        ("pipe", 9, "not a regular file"),
        ("/dev/zero", 9, "not a regular file"),
        (".", 9, "Is a directory"),
        ("a\0b", 9, "no file can have this name"),
        ("\ud800", 9, "no file can have this name"),
        ("none", 9, "No such file"),
    ):
        with pytest.raises(OSError, match=said):
            read_regular(tmp_path / name, most)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested deeper than 64"),
        ("[" * 70 + "]" * 70, "nested deeper than 64"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested deeper than 64"),
        ('["a\\u0000b"]', "NUL"),
        ('{"a\\u0000b": 1}', "NUL"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('"\\udfff"', "half of a surrogate pair"),
        (str(2**63), "beyond 64 bits"),
        (f'{{"a": [{-(2**63) - 1}]}}', "beyond 64 bits"),
        ("9" * 5000, "digits"),
        ("{", "Expecting"),
    ],
)
def test_json_that_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_json(text)


def test_json_that_is_read() -> None:
    values = {"a": [1, -(2**63), 2**63 - 1, 1.5, None, True, "é", "\udcff"], "b": {"c": []}}
    assert parse_json(json.dumps(values)) == values
    deep = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert parse_json(json.dumps(deep)) == deep


def test_values_that_refer_to_themselves_or_are_too_many() -> None:
    circle: list = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested deeper"):
        check_plain(circle)
    with pytest.raises(ValueError, match=f"more than {MAX_VALUES:,} values"):
        check_plain([0] * (MAX_VALUES + 1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1e-3", {"a": 0.001}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 2024-13-45", {"a": "2024-13-45"}),
        ("1: x\n1.5: y\nyes: z", {"1": "x", "1.5": "y", "yes": "z"}),
        ("a: &b [1, 2]\nc: *b", {"a": [1, 2], "c": [1, 2]}),
        ("a: &b {x: 1}\nc: {<<: *b, y: 2}", {"a": {"x": 1}, "c": {"x": 1, "y": 2}}),
        ("a: [yes, no, ~, 0x10, -1, .5, text]", {"a": [True, False, None, 16, -1, 0.5, "text"]}),
        ("", None),
    ],
)
def test_yaml_that_is_read(text: str, value: object) -> None:
    assert parse_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!int x", "'x' is not a number .int. in line 1"),
        ("a: !!int ''", "is not a number"),
        ("a: !!float x", "is not a number"),
        ("a: !!bool x", "neither true nor false"),
        ("a: !!timestamp x", "could not determine a constructor"),
        ("a: !!set {b}", "could not determine a constructor"),
        ("a: !!python/name:os.system ''", "could not determine a constructor"),
        ("a: !!map [1]", "a mapping was expected"),
        ("[1, 2]: x", "a key is text"),
        ("? {a: b}\n: x", "a key is text"),
        ("a: 1\na: 2", "key 'a' again in line 2"),
        ("a: &b [*b]", "refers to itself"),
        ("a: &b {c: *b}", "refers to itself"),
        ("a: *b", "undefined alias"),
        ("[" * 100_000, "nested deeper than 64"),
        ("a: " + "9" * 5000, "is not a number"),
        ("a: 0x" + "f" * 40, "beyond 64 bits"),
        ("a: 1" + ":1" * 2000, "is not a number"),
        ('a: "\\0"', "NUL"),
        ('a: "\\ud800"', "half of a surrogate pair"),
        ("a: {<<: 5}", "expected a mapping"),
        ("a: b: c", "mapping values are not allowed"),
        ("x" * (LONGEST + 1), "characters, and at most"),
    ],
)
def test_yaml_that_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("form", "first"), [("[{}]", "[lol, lol]"), ("{{<<: [{}]}}", "{a: 1}")])
def test_a_billion_laughs_are_counted_not_made(form: str, first: str) -> None:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 10)]
    with pytest.raises(ValueError, match=f"more than {MAX_NODES:,} values"):
        parse_yaml("\n".join(lines))


def test_top_values_are_read_from_the_top_level_alone() -> None:
    text = "extends: a\nmodel: {title: inner}\nwords: [title, x]\n? [1]\n: title\ntitle: 'A: b'\npaper: p\nlast: x\n}"
    assert top_values(text, ("title", "paper"), ("extends",)) == {"extends": "a", "title": "A: b", "paper": "p"}
    assert top_values("name: x\n", ("title",)) == {}
    with pytest.raises(ValueError, match="line 1"):
        top_values("title: }", ("title",))
