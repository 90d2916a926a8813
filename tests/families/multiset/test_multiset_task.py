"""Training readers of multisets: every loss and what it teaches, validation, decoded answers, and controls."""

import itertools
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import saccade
from multiset_stubs import PACK, SMALL, short_splits
from saccade.engine.recipe import Phase
from saccade.errors import ConfigError
from saccade.families.multiset.task import (
    LOSSES,
    OF_OBJECTS,
    CrossEntropy,
    CrossEntropyOrdered,
    EachObject,
    Loss,
    MultisetLoss,
    MultisetTask,
    Reinforce,
    SingleObject,
)
from saccade.models.facts import ModelFacts, Preprocessing, read_facts
from saccade.models.folder import load_model
from saccade.models.multiset_reader import LabelReader
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.trace import Look, MultisetOutput
from step_traces import glimpse_trace


@pytest.fixture(autouse=True)
def _short():
    with short_splits():
        yield


def new_task(**changes) -> MultisetTask:
    return MultisetTask(**{"model": "hsal", "model_config": SMALL, "data": PACK, **changes})


def batches(task: MultisetTask, count: int, start: int = 0, **options):
    return list(itertools.islice(task.train_batches(start, **{"batch_size": 6, **options}), count))


def losses(task: MultisetTask, loss: Loss, batch=None) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    batch = batches(task, 1)[0] if batch is None else batch
    return task.loss(task.model.train().forward_raw(**task.inputs(batch)), batch, loss)


def test_the_finite_set_is_the_same_for_every_seed_and_ends() -> None:
    """The paper's 60,000 pictures: 55,000 of them are learned from, whatever the seed; fresh ones differ by seed."""
    one, other = (new_task(protocol="authors", seed=seed) for seed in (0, 1))
    assert (one.data_config.protocol, one.split("train").size, one.split("val").size) == ("authors", 55_000, 5_000)
    assert one.split("train/mnist-single").size == 55_000, "what teaches the backbone is as large"
    assert torch.equal(*(task.split("train").take(torch.arange(4)).images for task in (one, other)))
    assert new_task().split("train").size is None
    assert one.steps_per_epoch(512) == 107


READING = [kind for name, kind in LOSSES.items() if name not in (*OF_OBJECTS, "counts")]


@pytest.mark.parametrize("loss", [*(kind() for kind in READING), Reinforce(entropy=0.01)])
def test_every_loss_is_finite_and_tells_where_was_looked(loss: Loss) -> None:
    found = losses(new_task(), loss)
    assert all(value.dim() == 0 and bool(value.isfinite()) for value in found.values())
    assert 0 <= float(found["attn_saliency"]) <= 1


def test_orders_matter_to_cross_entropy_and_to_nothing_else() -> None:
    task = new_task()
    (batch,) = batches(task, 1, batch_size=24)
    turned = {**batch, "shuffled": batch["labels"]}
    back = {**batch, "labels": batch["shuffled"]}
    torch.manual_seed(0)
    raw = task.model.train().forward_raw(**task.inputs(batch))
    other = [float(task.loss(raw, each, CrossEntropy())["loss"]) for each in (batch, turned)]
    assert other[0] != other[1]
    same = [float(task.loss(raw, each, CrossEntropyOrdered())["loss"]) for each in (batch, turned)]
    assert same[0] == same[1]
    for loss in (Reinforce(), MultisetLoss()):
        one, two = (float(task.loss(raw, each, loss)["loss"]) for each in (batch, back))
        assert one == pytest.approx(two, rel=1e-5), loss


def test_looking_elsewhere_can_be_worth_less() -> None:
    """As much as ever with 1, the default; and then no note says that the model was taught where to look."""
    task, name = new_task(), "reinforce_expected"
    batch = batches(task, 1, batch_size=64)[0]
    assert task.phase_loss(Phase(steps=1, loss=name)) == LOSSES[name](elsewhere=1.0)
    assert task.training_notes() == {}
    plain, other = (losses(task, LOSSES[name](elsewhere=elsewhere), batch) for elsewhere in (1.0, -0.5))
    assert torch.equal(plain["loss"], losses(task, LOSSES[name](), batch)["loss"])
    assert other["class_reward"] < plain["class_reward"]
    assert other["location_reward"] < plain["location_reward"]
    task.phase_loss(Phase(steps=1, loss={"name": name, "elsewhere": -0.5}))
    assert task.training_notes()["maps_supervised"].startswith("by boxes: a look beside the label that is said counts")


def of_objects(loss: str) -> Phase:
    return Phase(steps=1, data="objects", loss=loss)


def test_boxes_that_are_not_there_teach_nothing(tmp_path: Path) -> None:
    """Silently, `each_object` would then be `single_object`; nor can a phase choose by what needs boxes."""
    task = new_task(data=table(tmp_path))
    assert task.phase_loss(of_objects("single_object")) == SingleObject()
    with pytest.raises(ConfigError, match="boxes"):
        task.phase_loss(of_objects("each_object"))
    with pytest.raises(ConfigError, match="elsewhere"):
        task.phase_loss(Phase(steps=1, loss={"name": "reinforce", "elsewhere": 0}))
    assert new_task().phase_loss(of_objects("each_object")) == EachObject()  # of generated scenes every place is known
    assert "object_accuracy" not in task.metric_names()
    assert "glimpse_on_label" not in task.metric_names()


def test_validation_asks_about_each_picture_and_about_each_box() -> None:
    """A classifier that says one word whatever it sees is right as often as that word occurs."""
    task = new_task(data={**PACK, "name": "mnist-set"})
    labels = task.split("val/mnist-single").take(torch.arange(12)).labels  # (12,1): one digit and its box
    word = int(labels[0])
    with torch.no_grad():
        task.model.single.weight.zero_()
        task.model.single.bias[word] += 9
    found = task.validate(task.model.eval())
    assert 0 < found["single_accuracy"] < 1
    assert found["single_accuracy"] == found["object_accuracy"] == pytest.approx(float((labels == word).float().mean()))


def table(folder: Path, options=None) -> dict[str, object]:
    """Ten pictures of 60 × 60 with up to three coloured squares; two of them empty."""
    lines = ["image,labels,split"]
    words = ["red; red", "blue", "", "red; blue; green", "green", "blue; blue", "", "green; red", "blue", "red"]
    for number, labels in enumerate(words):
        Image.new("RGB", (60, 60), (25 * number, 0, 90)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{labels},{'train' if number < 6 else 'val' if number < 8 else 'test'}")
    (folder / "table.csv").write_text("\n".join(lines), encoding="utf-8")
    return {"name": f"csv:{folder / 'table.csv'}", "size": 60, **({"options": options} if options else {})}


def test_a_table_of_ones_own_decides_labels_and_their_number(tmp_path: Path) -> None:
    task = new_task(data=table(tmp_path))
    assert task.answers == ("blue", "green", "red")
    assert (task.model.config.classes, task.model.config.most, task.size) == (3, 3, (60, 60))
    assert task.steps_per_epoch(2) == 3
    (batch,) = batches(task, 1, batch_size=4, data="objects")
    assert torch.equal(batch["labels"].sort(1).values, batch["shuffled"].sort(1).values)
    found = task.validate(task.model.eval())
    assert 0 <= found["exact_match"] <= 1
    task.save_model(task.model, tmp_path / "model", {"recipe": {"data": task.data_config.__dict__}})
    facts = read_facts(tmp_path / "model")
    assert facts.data["name"] == facts.recipe["data"]["name"] == "csv"  # where it lies is nobody's business
    with pytest.raises(ConfigError, match="data=csv:PATH"):
        MultisetTask.eval_settings(facts, {})
    settings = MultisetTask.eval_settings(facts, {"name": task.data_config.name})
    scored = MultisetTask.evaluate(load_model(tmp_path / "model")[0], settings, "test", facts=facts)
    assert (scored["data"], scored["n"], scored["counts"]["beyond_most"]) == ("csv", 2, 0)
    assert 0 <= scored["baselines"]["training_prior"]["exact_match"] <= 1
    assert task.summary() == task.table.summary() != new_task().summary() == ""


def test_losses_that_cannot_be_are_named() -> None:
    for phase, named in (
        ({"data": "default", "loss": "each_object"}, "each_object"),
        ({"data": "objects", "loss": "reinforce"}, "single_object"),
        ({"data": "object", "loss": "single_object"}, "'objects'"),
    ):
        with pytest.raises(ConfigError, match=named):
            new_task().phase_loss(Phase(steps=1, **phase))


CLASSES = ("cat", "dog", "owl")
END = len(CLASSES)


class Scripted(LabelReader):
    """Says what it was told to say, each with the probability 3/6; the looks are those of ``glimpse_trace``."""

    total = "mean"

    def __init__(self, said: list[int]) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.said = said

    def encode(self, images: Tensor) -> Tensor:
        return images

    def answer(self, encoding: Tensor) -> MultisetOutput:
        said = torch.tensor(self.said).expand(len(encoding), -1)  # (B,T)
        odds = torch.ones(*said.shape, END + 1).scatter(-1, said[..., None], 3.0)  # (B,T,4)
        return MultisetOutput(odds.log(), said=said)

    def looks(self, output: MultisetOutput) -> tuple[Look, ...]:
        return glimpse_trace(int(((output.said == END).cumsum(1) == 0).sum()), (40, 50)).looks


def scripted(*said: int) -> Sighting:
    """What is seen on one picture."""
    facts = ModelFacts("scripted", {}, "multiset", (), CLASSES, preprocessing=Preprocessing((40, 50)), name="reader")
    return Predictor(Scripted(list(said)), facts).look(Image.new("RGB", (50, 40)))


def test_labels_come_as_they_were_said_and_the_answer_in_the_order_of_classes() -> None:
    seen, half = scripted(2, 0, 2, END), pytest.approx(0.5)
    assert seen.answer == "{cat, owl, owl}"
    assert seen.labels == (("owl", half), ("cat", half), ("owl", half))
    assert seen.confidence == pytest.approx(0.5**4)  # three labels and the stop
    assert (seen.question, seen.alternatives) == (None, ())
    assert seen.trace.answer.tolist() == [[2, 0, 2, END]]


def test_it_looked_at_the_last_glimpse_before_each_label() -> None:
    """On cells of 10 pixels, five in a row: 0 and 7 before the owl, 13 twice before the cat."""
    seen = scripted(2, 0, END, END)
    assert seen.glimpses() == [[(5, 5), (25, 15)], [(35, 25), (35, 25)]]
    assert seen.looked_at == [(25, 15), (35, 25)]
    assert seen.to_json()["glimpses"] == [[[5, 5], [25, 15]], [[35, 25], [35, 25]]]


PHASE = ("steps=4", "validate_every=2", "schedule.warmup=0")
TINY = [f"phases.{number}.{setting}" for number in (0, 1) for setting in PHASE]
TINY += ["data.glyphs=pack", "batch_size=8", "log_every=2", "checkpoint_every=1"]


@pytest.mark.parametrize("recipe", ["hsal-ce-mnist-set", "counts-mnist-multiset"])
def test_controls_train_and_are_scored(recipe: str, tmp_path: Path) -> None:
    overrides = [*TINY, "model.config={backbone: small, through: stage2, hidden: 8}"]
    out = saccade.train(recipe, out=tmp_path / "run", overrides=overrides, device="cpu", quiet=True).out
    found = saccade.evaluate(out, device="cpu", limit=6)
    assert (found["n"], found["protocol"]) == (6, "unlimited")
    assert {"macro_f1", "exact_match", "macro_f1_by_presence"} <= set(found["metrics"])
    assert {"uniform", "grid_oracle"} <= set(found["baselines"])
