"""A teacher with a story: asks, changes the story, and asks again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_folder import remarks, saccade, settle

ASK = ("look", "story.txt", "--ask", "Where is the football?", "--model", "memn2n-stories")


def test_the_answer_follows_the_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = settle(tmp_path, monkeypatch) / "story.txt"
    told = ["Mary went to the kitchen.", "Mary took the football.", "Mary went to the garden."]
    story.write_text("\n".join(told) + "\n")
    shown = remarks(*ASK)
    assert "Where is the football? → garden" in shown
    assert all(sentence in shown for sentence in told)

    story.write_text("\n".join([*told, "Mary went to the bedroom."]) + "\n")
    seen = json.loads(saccade(*ASK, "--json"))
    assert seen["answer"] == "bedroom"

    story.write_text("\n".join([*told, "Zebulon juggled."]) + "\n")  # what it cannot use is said, and the rest counts
    shown = remarks(*ASK)
    assert "→ garden" in shown
    assert "unknown words were left out: zebulon, juggled" in shown
