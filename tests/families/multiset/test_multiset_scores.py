"""Scores and edits on readers whose answers are known: perfect, elsewhere, by what is aimed at, by heart."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from multiset_stubs import PACK, Known, short_splits
from saccade.config import from_dict
from saccade.families.multiset.data import MultisetBatch, MultisetDataConfig, MultisetScenes, at_size
from saccade.families.multiset.scores import MultisetScoring, glimpse_edits, is_right, read_all
from saccade.metrics.maps.edits import cells_on
from saccade.models.base import Given
from saccade.models.hsal import HsalConfig, HsalModel
from saccade.tasks.evaluate import evaluate
from saccade.trace import Act, MultisetOutput

N, T, STOP = 20, 5, 10


@pytest.fixture(scope="module")
def data() -> MultisetScenes:
    with short_splits(test=N):
        return MultisetScenes(from_dict(MultisetDataConfig, PACK), "test")


@pytest.fixture(scope="module")
def batch(data: MultisetScenes) -> MultisetBatch:
    return data.take(torch.arange(N))


def rightly(batch: MultisetBatch) -> Tensor:
    """The labels, then stop: (B,T)."""
    padded = torch.cat([batch.labels, torch.full((len(batch), 1), -1)], dim=1)
    return torch.where(padded >= 0, padded, STOP)


def middles(batch: MultisetBatch, grid: int) -> Tensor:
    """The cell (B,T,1) under the middle of each label's box; cell 0 where there is none."""
    boxes = torch.cat([batch.boxes, torch.zeros(len(batch), 1, 4)], dim=1).nan_to_num(0)
    x, y = ((boxes[..., place] + boxes[..., place + 2]) / 2 * grid / 100 for place in (0, 1))
    return (y.long().clamp(max=grid - 1) * grid + x.long().clamp(max=grid - 1)).unsqueeze(-1)


def scored(model: Known, data: MultisetScenes, **options):
    return evaluate(MultisetScoring(model, data, **options))


def test_a_perfect_reader_on_a_fine_grid(data, batch) -> None:
    """On cells of 5 pixels the middle of a box of 20 or more has the cell around it inside the box."""
    found = scored(Known(batch, rightly(batch), middles(batch, 20), (20, 20)), data)
    assert found["n"] == N
    assert found["metrics"]["macro_f1"] == found["metrics"]["exact_match"] == 1
    assert found["metrics"]["macro_f1_by_presence"] == pytest.approx(1)
    assert found["intervals"]["macro_f1"] == found["intervals"]["exact_match"]  # one rule, the same certainty
    assert 0.8 < found["intervals"]["macro_f1"][0] < found["intervals"]["macro_f1"][1] == 1.0
    assert found["attention"]["glimpse_in_evidence"] == found["attention"]["glimpse_on_label"] == 1
    assert set(found["metrics"]["exact_match_by_count"]) <= {"1", "2", "3", "4"}
    assert sum(found["counts"]["exact_match_by_count"].values()) == N
    steps = int((rightly(batch) != STOP).sum())
    assert found["counts"]["glimpse_on_label"] == found["counts"]["attn_saliency"] == steps


def test_the_right_digits_glimpsed_at_each_others_places(data, batch) -> None:
    """Still on objects, but not on what is said, wherever a picture has two different digits."""
    turned = middles(batch, 20).clone()
    for row, labels in enumerate(batch.labels.tolist()):
        held = [place for place, label in enumerate(labels) if label >= 0]
        turned[row, held] = turned[row, held[1:] + held[:1]]
    found = scored(Known(batch, rightly(batch), turned, (20, 20)), data)["attention"]
    assert found["glimpse_in_evidence"] == 1
    assert found["glimpse_on_label"] < 0.7


def test_of_a_list_the_order_counts(batch) -> None:
    several = (batch.present.sum(1) > 1) & (batch.labels[:, 0] != batch.labels[:, 1])
    assert bool(several.any())
    said = rightly(batch)
    swapped = torch.where(several[:, None], said[:, [1, 0, *range(2, T)]], said)
    for is_list, expected in ((False, torch.ones(N)), (True, (~several).float())):
        assert torch.equal(is_right(swapped, batch, STOP, is_list), expected)


def test_pictures_are_read_at_the_networks_size_and_maps_lie_on_the_original(batch) -> None:
    assert at_size(batch.images, (100, 100)) is batch.images
    assert at_size(batch.images, (50, 60)).shape == (N, 3, 50, 60)
    model = Known(batch, rightly(batch), middles(batch, 5))
    model.frame = model.frame * 2  # the network sees 200 × 200 pixels
    raw, trace = read_all(model, batch.images, (200, 200))
    assert trace.image_map("total").shape == (N, 100, 100)
    look = trace.look("covert")
    corner = trace.frame_on(look, (100, 100))[0] @ torch.tensor([5.0, 5.0, 1.0], dtype=torch.float64)
    assert corner.tolist() == [100.0, 100.0]
    assert len(raw.said) == N


class Aimed(HsalModel):
    """Reads digit t if the mask or the glimpses of step t are on it and it is in the picture."""

    def __init__(self, scenes: MultisetBatch) -> None:
        super().__init__(HsalConfig(backbone="small", through="stage2", input_size=(100, 100), hidden=8, meta_hidden=8))
        self.batch = scenes
        masks = scenes.masks()  # (B,M,H,W)
        on = cells_on(masks.flatten(0, 1), self.backbone.frames[self.look_stage], self.grid)
        self.on = on.unflatten(0, masks.shape[:2])  # (B,M,h,w)
        self.pixels = masks

    def encode(self, images: Tensor) -> Tensor:
        return images

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> MultisetOutput:
        return self.read(encoding, attention=attention)

    def read(self, encoding: Tensor, *_: Any, attention: Given | None = None) -> MultisetOutput:
        rows, there = self.recognised(encoding)  # (B,), (B,M)
        steps, most = self.steps, self.on.shape[1]
        maps = torch.zeros(len(rows), steps, *self.grid)
        maps[:, :most] = self.on[rows].float()
        aimed = maps.flatten(2).argmax(-1)[..., None].expand(-1, -1, self.config.glimpses).clone()  # (B,T,k)
        if attention is not None:
            maps[:, : attention["covert"].shape[1]] = attention["covert"]
            cells = attention["glimpse"].flatten(2).argmax(-1).unflatten(1, (-1, self.config.glimpses))
            aimed[:, : cells.shape[1]] = cells
        seen = (maps[:, :most] * self.on[rows]).flatten(2).any(2)  # (B,M)
        hit = self.on[rows].flatten(2).gather(2, aimed[:, :most]).any(2)  # (B,M)
        said = torch.full((len(rows), steps), STOP)
        labels = self.batch.labels[rows]
        for row in range(len(rows)):
            read = [int(labels[row, m]) for m in range(most) if bool(there[row, m] & self.reads(seen, hit)[row, m])]
            said[row, : len(read)] = torch.tensor(read, dtype=torch.long)
        active = torch.ones_like(said, dtype=torch.bool)
        label = {"active": active & (said != STOP), "emits": said}
        weights = F.one_hot(aimed, self.grid[0] * self.grid[1]).float().flatten(1, 2).unflatten(-1, self.grid)
        many = self.config.glimpses
        acts = {name: Act(weights=torch.zeros_like(maps), **label) for name in self.look_specs}
        acts["covert"].weights = maps
        acts["glimpse"] = Act(
            weights=weights,
            choice=aimed.flatten(1),
            log_prob=torch.zeros(len(rows), steps * many),
            **{name: each.repeat_interleave(many, 1) for name, each in label.items()},
        )
        return MultisetOutput(F.one_hot(said, STOP + 1).float(), acts, said=said, active=active, location=aimed)

    def recognised(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Which scene each picture is of, and which of its digits are drawn."""
        same = (images[:, None, 0] - self.batch.images[None, :, 0]).abs() < 1e-4  # (n,B,H,W)
        rows = (same & (images[:, None, 0] > 0.1)).flatten(2).sum(2).argmax(1)
        apart = (images[:, 0] - self.batch.images[rows, 0]).abs()[:, None] * self.pixels[rows]  # (n,M,H,W)
        return rows, (apart.flatten(2).sum(2) < 1) & self.batch.present[rows]

    def reads(self, seen: Tensor, hit: Tensor) -> Tensor:
        return seen | hit


class ByHeart(Aimed):
    """Shows the same and reads every digit that is drawn."""

    def reads(self, seen: Tensor, hit: Tensor) -> Tensor:
        return torch.ones_like(seen)


@pytest.fixture(scope="module")
def scenes() -> MultisetBatch:
    return MultisetScenes(MultisetDataConfig(name="mnist-set", glyphs="pack"), "test").take(torch.arange(12))


def edits_of(model: Aimed) -> dict:
    raw, trace = read_all(model.eval(), model.batch.images, (100, 100))
    return glimpse_edits(model, raw, trace, model.batch, (100, 100)).interventions()["model"]


def test_a_label_that_is_read_where_it_is_aimed_at_is_lost_elsewhere(scenes: MultisetBatch) -> None:
    found = edits_of(Aimed(scenes))
    changed = found["edits"]["changed"]["all"]
    assert changed["zero_target"] == changed["target_removed"] == 1
    assert changed["zero_random"] == changed["keep_target"] == changed["zero_heaviest"] == 0
    assert found["scores"]["edit_necessity"] == pytest.approx(1)
    assert found["scores"]["edit_sufficiency"] == pytest.approx(1)
    assert found["baselines"]["random_cells"] == {"edit_necessity": 0, "edit_sufficiency": pytest.approx(0)}


def test_a_label_that_is_known_by_heart_stays(scenes: MultisetBatch) -> None:
    changed = edits_of(ByHeart(scenes))["edits"]["changed"]
    assert changed["all"].pop("target_removed") == 1
    assert all(share == 0 for by in changed.values() for share in by.values())
