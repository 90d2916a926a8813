"""Questions about pictures of a table: words, batches, losses, refusals; learned, scored, with remarks on maps."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn

import saccade
from saccade.engine.loop import RunResult
from saccade.errors import ConfigError, DataError
from saccade.families.question.task import Default, QuestionTask, sampled_loss
from saccade.metrics.labels import right_answers
from saccade.metrics.sets import weighted_map
from saccade.models.facts import CONFIG
from saccade.models.folder import load_model
from saccade.trace import QuestionOutput
from small_tables import SPLITS, write_table
from tiny_models import save_tiny

SMALL = {"channels": 4, "depth": 2, "hidden": 4, "dropout": 0.0}
TRAIN = 2 * len(SPLITS["train"])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("several"), several=True)


def new_task(path, *, seed=0, model="soft", config=SMALL, **data) -> QuestionTask:
    return QuestionTask(
        model=model, model_config=config, data={"name": f"csv:{path}", "size": [48, 48], **data}, seed=seed
    )


def batches(task, count, *, start=0, **options):
    return list(itertools.islice(task.train_batches(start, **options), count))


def test_the_loss_of_a_set_by_hand(several):
    """Odds 3:1 for the first of four answers, 1:1 for the rest; {first, second} holds: −log(3/4 · (1/2)³)."""
    raw = QuestionOutput(**{"logits": torch.tensor([[math.log(3), 0.0, 0.0, 0.0]])})
    found = new_task(several).loss(raw, {"label": torch.tensor([[1.0, 1.0, 0.0, 0.0]])}, Default())
    assert set(found) == {"loss", "top1"}
    assert float(found["loss"]) == pytest.approx(math.log(32 / 3))
    assert float(found["top1"]) == 1


def test_right_answers_by_hand():
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    assert right_answers(logits, torch.tensor([0, 1])).tolist() == [True, False]
    assert right_answers(logits, torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).tolist() == [False, True]


def test_drawn_locations_are_rewarded_with_the_whole_set():
    """Two draws with odds 1:1 and 3:1 for the one answer, which holds: rewards −log 2 and −log 4/3."""
    raw = QuestionOutput(
        **{
            "sampled_logits": torch.tensor([[[0.0], [math.log(3)]]]),
            "sampled_log_prob": torch.zeros(1, 2),
            "entropy": torch.zeros(1),
        }
    )
    found = sampled_loss(raw, torch.tensor([[1.0]]), entropy_weight=0.0)
    assert float(found) == pytest.approx((math.log(2) + math.log(4 / 3)) / 2)


def test_validation_by_hand(table, several):
    """A model that always prefers the first answer; of several labels its ranking is constant, so AP is the share."""

    class Constant(nn.Module):
        network_size = None

        def __init__(self, answers):
            super().__init__()
            self.logits = torch.tensor([[1.0] + [0.0] * (answers - 1)])

        def forward_raw(self, images, query):
            return QuestionOutput(self.logits.expand(len(query), -1))

    one = new_task(table)
    label = one.split("val").take(torch.arange(18)).label
    found = one.validate(Constant(3))
    assert found["accuracy"] == pytest.approx(float((label == 0).double().mean()))
    assert found["loss"] == pytest.approx(math.log(math.e + 2) - found["accuracy"], rel=1e-5)
    assert set(found) == set(one.metric_names())
    assert one.metric_names()[0] == "accuracy"  # what a recipe calls score
    many = new_task(several)
    labels = many.split("val").take(torch.arange(18)).label
    found = many.validate(Constant(4))
    assert found["weighted_map"] == pytest.approx(weighted_map(torch.zeros(18, 4), labels))
    assert found["top1"] == pytest.approx(float(labels[:, 0].mean()))
    assert set(found) == set(many.metric_names())
    assert many.metric_names()[0] == "weighted_map"


def test_the_model_folder_tells_nobody_where_the_pictures_were(table, tmp_path):
    task = new_task(table)
    recipe = {"name": "attributes", "data": {"name": f"csv:{table}", "size": [48, 48]}}
    task.save_model(task.model, tmp_path / "m", {"recipe": recipe, "step": 7})
    assert recipe["data"]["name"] == f"csv:{table}"  # the run's own recipe is left alone
    for file in (tmp_path / "m").iterdir():
        assert str(table.parent).encode() not in file.read_bytes(), file.name
    model, facts = load_model(tmp_path / "m")
    assert facts.data["name"] == facts.recipe["data"]["name"] == "csv"
    assert (facts.family, facts.queries, facts.answers) == ("question", ("lower", "upper"), ("blue", "green", "red"))
    assert facts.preprocessing.size == (48, 48)
    assert json.loads((tmp_path / "m" / "config.json").read_text())["model"]["answers"] == 3
    assert all(torch.equal(value, task.model.state_dict()[name]) for name, value in model.state_dict().items())


def test_a_table_that_cannot_train_is_refused(table, tmp_path):
    lines = table.read_text().splitlines()
    for split in ("train", "val"):
        kept = [line for line in lines if f",{split}," not in line]
        cut = table.with_name(f"without-{split}.csv")
        cut.write_text("\n".join(kept))
        with pytest.raises(DataError, match=f"no question in split '{split}'; training needs train and val rows"):
            new_task(cut)
    with pytest.raises(DataError, match=f"{TRAIN + 1} .* {TRAIN} "):
        batches(new_task(table), 1, batch_size=TRAIN + 1)
    with pytest.raises(DataError, match="batch_size=32"):
        new_task(table).steps_per_epoch(TRAIN + 1)  # found before a run folder is begun


TINY = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "phases.0.epochs=2",
    "phases.0.schedule.warmup=0",
)  # fmt: skip
SMALL_RUN = ("model.config.channels=4", "model.config.depth=2")


@pytest.fixture(scope="module")
def written_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("pictures"), evidence="point")


def train(out: Path, data: str, *more: str, recipe: str | None = "attributes", **options: Any) -> RunResult:
    return saccade.train(recipe, data=data, out=out, overrides=[*TINY, *more], device="cpu", quiet=True, **options)


def scored(run: Path, data: str | None, **options: Any) -> dict:
    return saccade.evaluate(run, data=data, **{"device": "cpu", "sweeps": 1, **options})


@pytest.fixture(scope="module")
def run(written_table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two epochs; not to be changed."""
    return train(tmp_path_factory.mktemp("runs") / "small", f"csv:{written_table}", *SMALL_RUN).out


def test_a_model_learns_a_table(written_table: Path, tmp_path: Path) -> None:
    """Enough epochs for colours on grey; the answer then depends on the question, and the look goes where it is."""
    more = ("model.config.channels=8", "model.config.depth=2", "model.config.dropout=0.0", "model.config.hidden=16")
    steps = ("phases.0.epochs=40", "phases.0.validate_every=10", "phases.0.optimizer.lr=5e-3")
    result = train(tmp_path / "run", f"csv:{written_table}", *more, *steps, "data.augment.area=[1.0,1.0]")
    assert result.best.value == result.best.metrics["accuracy"]  # the recipe says score
    assert "score" not in result.best.metrics  # which is no number of its own
    found = scored(tmp_path / "run", f"csv:{written_table}", sweeps=6)
    assert found["metrics"]["accuracy"] > 0.9
    assert found["metrics"]["swapped_query"] < 0.2
    for score in ("pointing_at", "attention_near", "true_positive_strength"):
        assert found["attention"][score] > 3 * found["baselines"]["uniform"][score], score
    assert found["attention"]["distance"] < found["baselines"]["box_centre_exact"]["distance"]
    assert found["attention"]["insertion"] > found["baselines"]["uniform"]["insertion"]


def test_a_model_of_pictures_has_to_be_told_where_they_are(run: Path, written_table: Path) -> None:
    with pytest.raises(ConfigError, match="does not store where its data is; give `data=csv:PATH`"):
        scored(run, None)
    with pytest.raises(ConfigError, match=r"glyphs: .* has no choice of these"):
        scored(run, f"csv:{written_table}", glyphs="pack")
    with pytest.raises(ConfigError, match="split"):
        scored(run, f"csv:{written_table}", split="tset")


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
