"""People against people: one left out at a time."""

import pytest

from saccade.metrics import bleu, cider, rouge_l
from saccade.metrics.text import meteor as people
from saccade.metrics.text.meteor import people_scores

CAPTIONS = [
    ("A dog runs fast.", "the dog runs", "one dog is running"),
    ("Two birds fly", "two birds", "birds fly away", "a fourth caption"),
    ("nobody else spoke",),
]


@pytest.fixture(autouse=True)
def _without_java(monkeypatch):
    monkeypatch.setattr(people, "meteor_missing", lambda: "not here")


def test_each_person_in_turn_against_the_others():
    told = []
    found = people_scores(CAPTIONS, lambda *report: told.append(report))
    assert (found.pictures, found.turns, told) == (2, 3, [(1, 3), (2, 3), (3, 3)])
    turns = [
        (
            [captions[turn] for captions in CAPTIONS[:2]],
            [tuple(text for place, text in enumerate(captions) if place != turn) for captions in CAPTIONS[:2]],
        )
        for turn in range(3)
    ]
    for name in ("bleu_1", "bleu_4_nobp", "length_ratio"):
        assert found.metrics[name] == pytest.approx(sum(bleu(*turn)[name] for turn in turns) / 3)
    assert found.metrics["cider"] == pytest.approx(sum(cider(*turn) for turn in turns) / 3)
    assert found.metrics["rouge_l"] == pytest.approx(sum(rouge_l(*turn) for turn in turns) / 3)
    assert "meteor" not in found.metrics
    assert 0 < found.metrics["bleu_1"] < 1


def test_meteor_is_there_where_it_can_run(monkeypatch):
    monkeypatch.setattr(people, "meteor_missing", lambda: None)
    monkeypatch.setattr(people, "meteor_jar", lambda said, known: len(known[0]) / 10)
    assert people_scores(CAPTIONS).metrics["meteor"] == pytest.approx(0.2)
