"""What looks wrong with a table is counted, and its first case named."""

from __future__ import annotations

from pathlib import Path

from saccade.data.tables.doubts import contradictions, repeated_keys
from saccade.data.tables.rows import jsonl_rows

A, B = Path("x/a.png"), Path("x/b.png")


def test_contradictory_labels() -> None:
    rows = [(A, "colour", ["red"]), (A, "colour", ["blue"]), (A, "size", ["red"]), (B, "colour", ["blue"])]
    assert contradictions(rows, "question") == (
        "1 question has contradictory labels in different rows (first a.png, 'colour': 'red' and 'blue')"
    )
    rows += [(B, "colour", ["green"]), (B, "colour", ["red"])]
    assert contradictions(rows, "question").startswith(
        "2 questions have contradictory labels in different rows (first a.png,"
    )
    assert contradictions([(A, "", ["1", "2"]), (A, "", ["1"])], "picture") == (
        "1 picture has contradictory labels in different rows (first a.png: '1; 2' and '1')"
    )


def test_repeated_keys_of_json_lines(tmp_path: Path) -> None:
    lines = [
        '{"image": "a.png", "label": "red", "label": "blue"}',
        '{"image": "a.png", "label": "red"}',
        '{"image": "a.png", "box": {"x": 1, "x": 2}}',
        "[1]",
        '{"image": "a.png", "image": "b.png"',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    repeated: list[str] = []
    rows, skipped = jsonl_rows(tmp_path / "t.jsonl", repeated)
    assert [line for line, _ in rows] == [1, 2, 3]
    assert rows[0][1]["label"] == "blue"
    assert repeated == ["line 1, 'label'", "line 3, 'x'"]
    assert len(skipped) == 2
    assert repeated_keys(repeated) == "2 rows repeat a JSON key, and the last value counts (first line 1, 'label')"
    assert repeated_keys(repeated[:1]).startswith("1 row repeats a JSON key")
    assert repeated_keys([]) == ""
