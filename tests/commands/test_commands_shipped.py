"""The shipped soft-mref: as good as its record says, and its card, config and recorded result tell one story."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import pytest

import saccade
from saccade.models.card import model_card
from saccade.models.facts import Score, read_facts
from saccade.papers.results import recorded_runs
from saccade.zoo import shipped

N = 600


@pytest.fixture(scope="module")
def folder() -> Path:
    return shipped()["soft-mref"]


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Score:
    return read_facts(folder).scores[0]


@pytest.fixture(scope="module")
def found() -> dict:
    return saccade.evaluate("soft-mref", glyphs="pack", limit=N, sweeps=0, device="cpu")


@pytest.mark.slow
def test_it_is_as_good_as_its_record(found: dict, recorded: Score) -> None:
    """Within four standard errors of the score on 10,000 scenes of MNIST's test digits."""
    assert found["n"] == N
    for group in ("metrics", "attention"):
        for name, share in getattr(recorded, group).items():
            if name in ("accuracy", "swapped_query", "causal_follow", "causal_hold"):
                error = math.sqrt(share * (1 - share) / N)
                assert found[group][name] == pytest.approx(share, abs=4 * error), name


@pytest.mark.slow
def test_it_looks_at_what_it_is_asked_for(found: dict) -> None:
    attention, baselines = found["attention"], found["baselines"]
    assert attention["selectivity"] > 0.5
    assert attention["causal_hold"] > 0.9
    for baseline in ("uniform", "centre_gaussian", "shuffled", "all_objects"):
        for score in ("true_positive_strength", "selectivity", "pointing", "iou", "pr_auc"):
            assert attention[score] > 1.5 * baselines[baseline][score], (baseline, score)
    assert attention["true_positive_strength"] < baselines["grid_oracle"]["true_positive_strength"]


def test_weights_config_card_and_recorded_result_are_of_one_model(folder: Path, recorded: Score) -> None:
    facts = read_facts(folder)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == facts.sha256 == facts.training["sha256"]
    assert (folder / "card.md").read_text(encoding="utf-8") == model_card(facts)
    (run,) = [
        run
        for run in recorded_runs().values()
        if run.sha256 and digest.startswith(run.sha256) and run.drawing.endswith(recorded.drawing or run.drawing)
    ]  # one that was scored on both drawings has a run of each
    assert run.command == facts.training["command"]
    assert run.seed == str(recorded.seed)
    for name, value in {**recorded.metrics, **recorded.attention}.items():
        if isinstance(value, float):
            assert run.scores[name].value == pytest.approx(value, rel=1e-6), name
    assert run.scores["accuracy"].n == recorded.n
