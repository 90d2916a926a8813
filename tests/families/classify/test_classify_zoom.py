"""A model that zooms: its losses and phases, its scores, crops aimed elsewhere, and what is shown of it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import saccade
from saccade import geometry
from saccade.attention.spatial_transformer import given_window
from saccade.attention.zoom import SMALLEST
from saccade.commands.train import train
from saccade.data.pictures import labelled
from saccade.data.pictures.augment import Augmentation
from saccade.data.pictures.labelled import LabelledBatch
from saccade.engine.recipe import load_recipe
from saccade.errors import ConfigError, DataError
from saccade.families.classify.data import LabelDataConfig, varied
from saccade.families.classify.task import ClassifyTask, Proposals, Rank, Scales, taught_regions, zoom_loss
from saccade.families.classify.zoom_scores import causal_values, crops_round, drawn_again, zoom_edits
from saccade.metrics.maps.edits import covers_evidence, crop_boxes
from saccade.models.base import Given
from saccade.models.racnn import CROPS, RacnnConfig, RacnnModel
from saccade.trace import Act, LabelOutput
from saccade.web.views import view_of
from tiny_models import tiny_config

TINY = {"through": "layer1", "hidden": 4, "coarse": [32, 32], "crop": [24, 24]}
DETAILS = {"name": "details", "size": [224, 224]}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation and test splits of a few pictures."""
    monkeypatch.setattr(labelled, "SIZES", {"train": None, "val": 4, "test": 4})


def task(**settings: Any) -> ClassifyTask:
    """The task on generated details, with a small model."""
    return ClassifyTask(model="racnn", model_config={**TINY, **settings}, data=DETAILS, seed=0)


def test_losses_by_hand() -> None:
    """Logits of nothing: each scale costs ln 3 and so do all together; equal scales cost the margin twice."""
    raw = LabelOutput(**{"scale_logits": torch.zeros(2, 3, 3), "logits": torch.zeros(2, 3)})
    label = torch.tensor([0, 2])
    assert float(zoom_loss(raw, label, Scales(), SMALLEST)["loss"]) == pytest.approx(4 * math.log(3))
    assert float(zoom_loss(raw, label, Rank(margin=0.2), SMALLEST)["loss"]) == pytest.approx(0.4)
    coarse = LabelOutput(**{"scale_logits": torch.zeros(2, 1, 3)})
    assert float(zoom_loss(coarse, label, Scales("scale1"), SMALLEST)["loss"]) == pytest.approx(math.log(3))


def test_proposals_are_taught_legal_regions_round_the_strongest_response() -> None:
    """A response in the corner asks for the region that just fits; each scale may be taught by itself."""
    strongest = torch.tensor([[[0.0, 0.5], [0.6, 1.0]]])
    boxes = torch.tensor([[[0.5, 0.5, 0.25], [0.6, 0.75, 0.25]]])
    raw = LabelOutput(scale_logits=torch.zeros(1, 2, 3), strongest=strongest, boxes=boxes)
    taught = [[[0.25, 0.5, 0.25], [pytest.approx(0.6), 0.75, 0.25]]]
    assert taught_regions(raw, Proposals(), SMALLEST).tolist() == taught
    label = torch.tensor([0])
    assert float(zoom_loss(raw, label, Proposals("scale3"), SMALLEST)["loss"]) == pytest.approx(0.0, abs=1e-9)
    assert float(zoom_loss(raw, label, Proposals("scale2"), SMALLEST)["loss"]) == pytest.approx(0.25 - 0.05)


def test_proposals_may_be_taught_the_square_of_responses() -> None:
    """Grown as the loss says, then legal: a side of 0.2 becomes a third, one of 0.8 lies inside the picture."""
    responses = torch.tensor([[[0.5, 0.4, 0.05], [0.3, 0.5, 0.2]]])
    boxes = torch.tensor([[[0.5, 0.4, 1 / 6], [0.4, 0.5, 0.3]]])
    raw = LabelOutput(responses=responses, boxes=boxes, scale_logits=torch.zeros(1, 2, 3))
    loss = Proposals(target="responses", grow=2.0)
    wanted = torch.tensor([[[0.5, 0.4, 1 / 6], [0.4, 0.5, 0.4]]])
    torch.testing.assert_close(taught_regions(raw, loss, SMALLEST), wanted)
    found = float(zoom_loss(raw, torch.tensor([0]), loss, SMALLEST)["loss"])
    assert found == pytest.approx((0.1 - 0.05) / 2)  # the mean of two boxes


def test_a_loss_that_does_not_fit_the_model_is_refused() -> None:
    """Cross-entropy would teach the fused classifier alone; a control has no proposals to teach."""
    zooming, control = task(), task(crops="centre")
    with pytest.raises(ConfigError, match="taught by scales, proposals or rank"):
        zooming.checked_loss(ClassifyTask.losses["cross_entropy"](), "default")
    with pytest.raises(ConfigError, match="proposes no crops"):
        control.checked_loss(Rank(), "default")
    plain = ClassifyTask(model="resnet", model_config={"widths": [8, 8, 8, 8]}, data=DETAILS, seed=0)
    with pytest.raises(ConfigError, match="taught by cross_entropy"):
        plain.checked_loss(Scales(), "default")


def test_evidence_goes_with_varied_pictures() -> None:
    """A mirrored, cut picture has its evidence where the mark now is: the pixels there are the same grey."""
    config = LabelDataConfig(name="details", size=(224, 224), augment=Augmentation())
    plain = ClassifyTask.open(config, "val").take(torch.arange(4)).in_float()
    changed = varied(plain, config, 3)
    moved = [not torch.equal(*masks) for masks in zip(plain.evidence, changed.evidence)]
    assert any(moved)
    for image, mask in zip(changed.images, changed.evidence):
        if int(mask.sum()) > 100:
            assert float(image[:, mask].mean()) == pytest.approx(0.5, abs=0.06)


class _Oracle(RacnnModel):
    """Looks where the mark is and says its class: it reads both off a list of pictures that it was shown before."""

    def know(self, batches: list[labelled.LabelledBatch]) -> None:
        self.known = batches

    def answer(self, encoding: torch.Tensor, **options: Any) -> LabelOutput:
        for batch in self.known:
            images = batch.images.float() / 255
            if images.shape == encoding.shape and torch.allclose(images, encoding):
                raw = super().answer(encoding, attention=crops_round(self, batch.evidence))
                raw.logits = torch.nn.functional.one_hot(batch.label, 12).float()
                return raw
        raise LookupError("a picture that was not shown before")


def test_who_looks_at_the_mark_follows_every_change() -> None:
    """All six causal scores are 1 for an oracle, and undefined for pictures that it gets wrong."""
    model = _Oracle(RacnnConfig(answers=12, through="layer1", hidden=4, coarse=(32, 32), crop=(24, 24))).eval()
    data = ClassifyTask.open(LabelDataConfig(name="details", size=(224, 224)), "test")
    numbers = torch.arange(1)  # as many as a CPU takes at once
    again = drawn_again(data, numbers)
    shown = data.take(numbers)
    batch = shown.in_float()
    model.know([shown, *again.values()])
    raw = model.forward_raw(batch.images)
    found = causal_values(model, raw, batch, again)
    assert len(found) == 6
    assert all(value.tolist() == [1.0] for value in found.values())
    raw.logits = raw.logits.roll(1, dims=1)
    assert all(value.isnan().all() for value in causal_values(model, raw, batch, again).values())


def test_the_control_of_boxes_needs_boxes(tmp_path: Path) -> None:
    """It trains and scores where evidence is known; elsewhere it says what is missing."""
    control = task(crops="given")
    batch = next(control.train_batches(0, batch_size=2))
    inputs = control.inputs(batch)
    assert set(inputs["attention"]) == {"scale2", "scale3"}
    raw = control.model.forward_raw(**inputs)
    assert torch.isfinite(zoom_loss(raw, batch["label"], Scales(), SMALLEST)["loss"])
    told = control.validate(control.model.eval())
    assert told["scale3_covers_evidence"] == pytest.approx(1.0)
    data = {**DETAILS, "shift": {"pixels": 2}}
    shifted = ClassifyTask(model="racnn", model_config={**TINY, "crops": "given"}, data=data, seed=0)
    with pytest.raises(DataError, match="round the evidence"):
        next(shifted.train_batches(0, batch_size=2))


def test_recipe_trains_and_a_picture_shows_its_crops(tmp_path: Path) -> None:
    """Every phase moves what it trains; a look tells every scale and draws frames inside each other."""
    recipe = load_recipe("racnn-details")
    steps = [f"phases.{number}.steps=1" for number in range(len(recipe.phases))]
    changes = [f"model.config.{name}={value}" for name, value in TINY.items()]
    result = train("racnn-details", out=tmp_path / "run", overrides=["batch_size=2", *steps, *changes], device="cpu")
    assert result.phase == "classes"
    assert {"scale1_accuracy", "scale3_covers_evidence"} <= set(result.validation)
    model = saccade.load(tmp_path / "run")
    data = ClassifyTask.open(LabelDataConfig(name="details", size=(224, 224)), "test")
    picture = data.take(torch.arange(1)).images[0]
    seen = model.look(picture)
    assert [name for name, _, _ in seen.on_the_way] == ["scale1", "scale2", "scale3"]
    told = seen.to_json()
    assert [entry["at"] for entry in told["on_the_way"]] == ["scale1", "scale2", "scale3"]
    assert [look["kind"] for look in told["looks"]] == ["crop", "crop"]
    x0, y0, x1, y1 = crop_boxes(seen.trace.looks[-1].frame, seen.trace.looks[-1].grid)[0].tolist()
    assert seen.peak == (int((x0 + x1) / 2), int((y0 + y1) / 2))
    view = view_of(seen)  # the page draws frames, and says what each scale says
    assert view["total"] is None
    assert [entry[0] for entry in view["on_the_way"]] == ["scale1", "scale2", "scale3"]
    assert seen.filmstrip().width > seen.overlay().width  # every scale with its crop, not the frames alone


SIDE = (31, 34)


def pictures(count: int = 8) -> LabelledBatch:
    """A lit mark of 4 × 4 pixels in each picture, on a chequered ground."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 3, *SIDE, generator=generator) * 0.1
    evidence = torch.zeros(count, *SIDE, dtype=torch.bool)
    for row in range(count):
        x, y = 3 + 3 * row % 24, 4 + 5 * row % 20
        evidence[row, y : y + 4, x : x + 4] = True
        images[row, :, evidence[row]] = 1.0
    return LabelledBatch(images, torch.arange(count) % 3, evidence)


class Near(RacnnModel):
    """Right where the second crop covers a lit mark, and one class further where it does not."""

    def __init__(self, batch: LabelledBatch) -> None:
        super().__init__(tiny_config(RacnnModel))
        self.batch = batch
        self.own = {name: self._round(half) for name, half in zip(CROPS, (8.0, 5.0))}

    def _round(self, half: float) -> Tensor:
        found = []
        for mask in self.batch.evidence:
            y, x = (each.float().mean() for each in mask.nonzero().T)
            found.append([max(0.0, x - half), max(0.0, y - half), min(34.0, x + half), min(31.0, y + half)])
        return geometry.crop_frame(torch.tensor(found, dtype=torch.float64), self.config.crop)

    def answer(
        self, encoding: Tensor, *, attention: Given | None = None, last: str = "scale3", responses: bool = False
    ) -> LabelOutput:
        rows = (encoding.flatten(1)[:, None] - self.batch.images.flatten(1)).abs().sum(2).argmin(1)  # (n,)
        frames = {name: self.own[name][rows] for name in CROPS} | dict(attention or {})
        lit = (encoding[:, 0] > 0.9) & self.batch.evidence[rows]  # (n,H,W)
        boxes = crop_boxes(frames[CROPS[-1]], self.config.crop)
        right = self.sees(covers_evidence(boxes, lit).nan_to_num() > 0.5)
        said = torch.where(right, self.batch.label[rows], (self.batch.label[rows] + 1) % 3)
        logits = 5.0 * F.one_hot(said, 3)
        acts = {name: Act(theta=given_window(frame, self.config.crop, encoding)) for name, frame in frames.items()}
        return LabelOutput(logits, acts, scale_logits=logits[:, None].expand(-1, 3, -1))

    def sees(self, covered: Tensor) -> Tensor:
        return covered


class Careless(Near):
    """Says the same wherever its crops are."""

    def sees(self, covered: Tensor) -> Tensor:
        return torch.ones_like(covered)


def edits(model: Near) -> dict[str, Any]:
    raw = model.eval().answer(model.batch.images)
    found = zoom_edits(model, raw, model.batch, torch.arange(len(model.batch.images)))
    return found.interventions()["model"]


def test_an_answer_that_needs_its_crop_goes_with_it() -> None:
    found = edits(Near(pictures()))
    changed, right = found["edits"]["changed"]["all"], found["edits"]["right"]["all"]
    assert changed["zero_target"] == changed["target_removed"] == 1
    assert changed["keep_target"] == 0
    assert right["keep_target"] == 1
    assert found["scores"] == {"edit_necessity": pytest.approx(1)}  # there is no ceiling for sufficiency
    assert found["edits"]["changed"]["scale2, later frozen"]["zero_target"] == 0  # the finest crop stays where it was
    assert found["edits"]["changed"]["scale3"]["zero_target"] == 1


def test_an_answer_that_does_not_look_stays() -> None:
    changed = edits(Careless(pictures()))["edits"]["changed"]
    shares = [share for by in changed.values() for share in by.values() if share == share]
    assert shares
    assert set(shares) == {0.0}
