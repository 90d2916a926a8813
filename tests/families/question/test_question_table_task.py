"""The training side of questions about pictures: words from the table, batches by number, losses, what is refused."""

import itertools
import json
import math

import pytest
import torch
from torch import nn

from saccade.errors import DataError
from saccade.families.question.task import (
    Default,
    QuestionTask,
    sampled_loss,
)
from saccade.metrics.labels import right_answers
from saccade.metrics.sets import weighted_map
from saccade.models.folder import load_model
from saccade.trace import QuestionOutput
from small_tables import SPLITS, write_table

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
