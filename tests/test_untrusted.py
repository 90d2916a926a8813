"""Files of strangers: regular ones of a bounded size, values of a bounded depth."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from saccade.config import LONGEST_YAML, plain_yaml
from saccade.errors import CheckpointError
from saccade.files import DEEPEST, parse_json, read_json, read_regular


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


REFUSED = ("[" * 100_000, "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, '["a\\u0000b"]', '{"a\\u0000b": 1}',
           '["\\ud800"]', '"\\udfff"', str(2**63), f'{{"a": [{-(2**63) - 1}]}}', "9" * 5000, "{", "[1]")  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_json_that_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_json_that_is_read() -> None:
    values = {"a": [1, -(2**63), 2**63 - 1, 1.5, None, True, "é", "\udcff"], "b": {"c": []}}
    assert parse_json(json.dumps(values)) == values
    deep = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert parse_json(json.dumps(deep)) == deep


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1e-3", {"a": 0.001}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 2024-13-45", {"a": "2024-13-45"}),
        ("1: x\n1.5: y\nyes: z", {"1": "x", "1.5": "y", "yes": "z"}),
        ("a: [yes, no, ~, 0x10, -1, .5, text]", {"a": [True, False, None, 16, -1, 0.5, "text"]}),
        ("", None),
    ],
)
def test_yaml_that_is_read(text: str, value: object) -> None:
    assert plain_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: !!int x", "a: !!int ''", "a: !!float x", "a: !!bool x", "a: !!timestamp x", "a: !!set {b}", "a: !!map [1]",
        "a: !!python/name:os.system ''", "a: !!binary YQ==", "[1, 2]: x", "? {a: b}\n: x", "a: 1\na: 2", "a: &b [*b]",
        "a: &b [1]\nc: *b", "a: &b {x: 1}\nc: {<<: *b}", "a: *b", "[" * 100_000, "a: " + "9" * 5000, "a: b: c",
        "a: 0x" + "f" * 40, 'a: "\\0"', 'a: "\\ud800"', "x" * (LONGEST_YAML + 1),
    ],
)  # fmt: skip
def test_yaml_that_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - any of them
        plain_yaml(text)
    assert "\n" not in str(caught.value)
