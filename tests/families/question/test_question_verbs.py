"""One's own pictures from a table: learned and scored; and what a model says about its own maps."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import saccade
from saccade.engine.loop import RunResult
from saccade.errors import ConfigError, DataError
from saccade.models.facts import CONFIG
from small_tables import write_table
from tiny_models import save_tiny

TINY = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "phases.0.epochs=2",
    "phases.0.schedule.warmup=0",
)  # fmt: skip
SMALL = ("model.config.channels=4", "model.config.depth=2")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("pictures"), evidence="point")


def train(out: Path, data: str, *more: str, recipe: str | None = "attributes", **options: Any) -> RunResult:
    return saccade.train(recipe, data=data, out=out, overrides=[*TINY, *more], device="cpu", quiet=True, **options)


def scored(run: Path, data: str | None, **options: Any) -> dict:
    return saccade.evaluate(run, data=data, **{"device": "cpu", "sweeps": 1, **options})


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two epochs; not to be changed."""
    return train(tmp_path_factory.mktemp("runs") / "small", f"csv:{table}", *SMALL).out


def test_a_model_learns_a_table(table: Path, tmp_path: Path) -> None:
    """Enough epochs for colours on grey; the answer then depends on the question, and the look goes where it is."""
    more = ("model.config.channels=8", "model.config.depth=2", "model.config.dropout=0.0", "model.config.hidden=16")
    steps = ("phases.0.epochs=40", "phases.0.validate_every=10", "phases.0.optimizer.lr=5e-3")
    result = train(tmp_path / "run", f"csv:{table}", *more, *steps, "data.augment.area=[1.0,1.0]")
    assert result.best.value == result.best.metrics["accuracy"]  # the recipe says score
    assert "score" not in result.best.metrics  # which is no number of its own
    found = scored(tmp_path / "run", f"csv:{table}", sweeps=6)
    assert found["metrics"]["accuracy"] > 0.9
    assert found["metrics"]["swapped_query"] < 0.2
    for score in ("pointing_at", "attention_near", "true_positive_strength"):
        assert found["attention"][score] > 3 * found["baselines"]["uniform"][score], score
    assert found["attention"]["distance"] < found["baselines"]["box_centre_exact"]["distance"]
    assert found["attention"]["insertion"] > found["baselines"]["uniform"]["insertion"]


def test_a_model_of_pictures_has_to_be_told_where_they_are(run: Path, table: Path) -> None:
    with pytest.raises(ConfigError, match="does not store where its data is; give `data=csv:PATH`"):
        scored(run, None)
    with pytest.raises(ConfigError, match=r"glyphs: .* has no choice of these"):
        scored(run, f"csv:{table}", glyphs="pack")
    with pytest.raises(ConfigError, match="split"):
        scored(run, f"csv:{table}", split="tset")


def test_a_model_of_scenes_is_scored_on_a_table_of_the_same_words(tmp_path: Path) -> None:
    Image.new("RGB", (100, 100)).save(tmp_path / "a.png")
    Image.new("RGB", (100, 100), "red").save(tmp_path / "b.png")
    (tmp_path / "t.csv").write_text("image,query,label,split\na.png,3,red,test\nb.png,5,blue,test\n")
    found = saccade.evaluate("soft-mref", data=f"csv:{tmp_path / 't.csv'}", sweeps=0, device="cpu")
    assert (found["data"], found["n"]) == ("csv", 2)
    with pytest.raises(DataError, match="cannot be read"):
        saccade.evaluate("soft-mref", data="csv:nowhere.csv", device="cpu")


BETTER = {"n": 700, "value": 0.74, "chance": "part_prior", "chance_value": 0.12, "interval": [0.58, 0.66]}
LEVEL = {"n": 1760, "value": 0.47, "chance": "part_prior_exact", "chance_value": 0.51, "interval": [-0.08, 0.01]}
SAID = (
    "for '1' the map was not found to point better than where the part usually is: its peak was in the right place for "
    "47 % of 1,760 test questions, that guess for 51 %"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose maps were better than a blind one when it was asked for 0, and not when for 1."""
    made = save_tiny(tmp_path / "tiny")
    config = json.loads((made / CONFIG).read_text())
    against = {"maps": {"by_query": {"0": BETTER, "1": LEVEL}}}
    config["scores"] = [{"data": "own", "split": "test", "n": 2460, "against": against}]
    (made / CONFIG).write_text(json.dumps(config))
    return made


def test_an_answer_says_so_about_its_map(folder: Path) -> None:
    predictor, picture = saccade.load(folder, device="cpu"), torch.zeros(3, 24, 24)
    assert SAID not in predictor.look(picture, ask=0).notes
    seen = predictor.look(picture, ask=1)
    assert SAID in seen.remarks
    assert SAID in seen.notes
    assert SAID in seen.to_json()["notes"]
    assert [SAID in each.notes for each in predictor.look_many([picture, picture], ask=1)] == [True, True]
    given = predictor.look(picture, ask=1, attention=seen.trace.as_given())
    assert SAID not in given.notes  # its weights are not the model's own
