"""Scenes rendered again, and the scores of maps of models whose truth is known: one that knows, noise, a blind one."""

import pytest
import torch
import torch.nn.functional as F
from attribute_stubs import COLOURS, SIZE, OneLook
from torch import Tensor

from saccade.backbones import small_stack
from saccade.data.scenes.backgrounds import SIDE
from saccade.data.scenes.drawing import rgb
from saccade.data.scenes.layout import SceneLayout
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.twins import OTHER_COLOURS, SceneTwins, coarsest_cell, twin_scores
from saccade.geometry import scale_shift
from saccade.metrics.maps.baselines import Grid, Grids, seen_by_cells
from saccade.metrics.maps.twins import ALIKE
from saccade.tasks.evaluate import evaluate
from saccade.trace import Act, ModelOutput

N, LEAST = 44, 16


class Knowing(OneLook):
    """Recognises scenes and their twins by their pixels; names the colour asked for, looks at its best 4×4 cell."""

    def __init__(self, batch: SceneBatch) -> None:
        stack = small_stack(channels=1)
        super().__init__(stack.frames["stage4"])
        self.grid = stack.grid(SIZE)["stage4"]
        self.footprint = seen_by_cells(torch.ones(1, *SIZE, dtype=torch.bool), self.frame, self.grid)[0]  # (4,4)
        twins = SceneTwins(batch, LEAST)
        scene, obj = twins.layout.present.nonzero().unbind(1)
        each = twins.layout[scene]
        often = torch.arange(len(obj)).repeat_interleave(OTHER_COLOURS)
        steps = torch.arange(1, COLOURS).repeat(len(obj))
        old = each.colour.gather(1, obj[:, None]).squeeze(1)
        self.known: dict[bytes, tuple[Tensor, Tensor, Tensor]] = {}
        self._learn(twins.images, twins.layout)
        self._learn(twins.moved, twins.moved_scenes)
        self._learn(twins.removed, each.remove(obj))
        self._learn(twins.recoloured, each[often].recolour(obj[often], (old[often] + steps) % COLOURS))

    def _learn(self, images: Tensor, layout: SceneLayout) -> None:
        classes = layout.classes.where(layout.present, -1)  # (P,N)
        for image, *told in zip(images, layout.masks(), classes, layout.colour):
            self.known[image.contiguous().numpy().tobytes()] = tuple(told)

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        seen = [self.see(self.known[image.contiguous().numpy().tobytes()], int(q)) for image, q in zip(encoding, query)]
        answer, weights = (torch.stack(column) for column in zip(*seen))
        return ModelOutput(30.0 * F.one_hot(answer, COLOURS), {"cell": Act(weights=weights)})

    def see(self, scene: tuple[Tensor, Tensor, Tensor], query: int) -> tuple[Tensor, Tensor]:
        masks, classes, colour = scene
        at = (classes == query).nonzero().flatten()
        if not len(at):
            return torch.tensor(0), torch.full(self.grid, 1 / 16)
        seen = seen_by_cells(masks[at], self.frame, self.grid)[0] / self.footprint  # (4,4)
        return colour[at[0]], F.one_hot(seen.flatten().argmax(), 16).float().view(self.grid)


class Blind(OneLook):
    """Looks at what is bright and answers the channel that is brightest in all, whatever is asked."""

    def __init__(self) -> None:
        super().__init__(scale_shift((10.0, 10.0), (0.0, 0.0)))

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        mean = encoding.mean(dim=(2, 3))  # (B,3)
        weights = F.avg_pool2d(encoding.amax(1, keepdim=True), 10).squeeze(1)  # (B,10,10)
        weights = weights / weights.sum(dim=(1, 2), keepdim=True)
        return ModelOutput(20 * F.pad(mean, (0, 2)), {"cell": Act(weights=weights)})


@pytest.fixture(scope="module")
def data() -> SceneData:
    return SceneData(SceneDataConfig(glyphs="pack"), "test")


@pytest.fixture(scope="module")
def batch(data: SceneData) -> SceneBatch:
    return data.take(torch.arange(N))


@pytest.fixture(scope="module")
def twins(batch: SceneBatch) -> SceneTwins:
    return SceneTwins(batch, LEAST)


@pytest.fixture(scope="module")
def seer(batch: SceneBatch) -> Knowing:
    return Knowing(batch).eval()


@pytest.fixture(scope="module")
def knowing(seer: Knowing, batch: SceneBatch) -> dict:
    return twin_scores(seer, batch).summary()


def test_moved_digits_lie_on_free_ground_far_enough_away(twins: SceneTwins):
    scene, obj = twins.layout.present.nonzero().unbind(1)
    found = twins.is_free[scene, obj]
    assert 0.5 < found.double().mean() < 1
    moved, row = twins.moved_scenes, torch.arange(len(obj))
    steps = [
        (new[row, obj] - old[scene, obj]).abs()
        for new, old in zip((moved.x, moved.y), (twins.layout.x, twins.layout.y))
    ]
    step = torch.maximum(*steps)
    assert (step[found] >= LEAST).all()
    assert (step[~found] == 0).all()
    everything = twins.masks.any(1)[scene]  # (P,H,W), the old place included
    assert not (everything & twins.moved_masks)[found].any()
    old = twins.masks[scene, obj]
    assert torch.equal(old.sum(dim=(1, 2)), twins.moved_masks.sum(dim=(1, 2)))  # the same digit, whole
    where_changed = (twins.moved != twins.images[scene]).any(1)  # (P,H,W)
    assert not (where_changed & ~(old | twins.moved_masks)).any()


def test_the_other_digit_is_another_one_of_like_area(twins: SceneTwins):
    truth = twins.truth()
    assert (twins.other != twins.target).all()
    assert not (truth.target & truth.other).any()
    area = [mask.sum(dim=(1, 2)).double() for mask in (truth.target, truth.other)]
    ratio = (area[0] / area[1]).log().abs().exp()
    assert torch.equal(truth.is_alike, ratio <= ALIKE)
    assert truth.is_alike.double().mean() > 0.7
    assert truth.has_moved.double().mean() > 0.6


def test_moves_are_as_long_as_a_cell_of_the_coarsest_grid():
    frames = [torch.tensor([[step, 0.0, 0.0], [0.0, step, 0.0]]) for step in (2.0, 15.5)]
    assert coarsest_cell(Grids(tuple(Grid(frame, (4, 4)) for frame in frames), "product")) == 16
    assert coarsest_cell(None) == 10


def test_batches_cut_no_scene(data: SceneData):
    parts = data.by_scene(torch.arange(0, 120, 2), 20)
    assert torch.equal(torch.cat(parts), torch.arange(0, 120, 2))
    assert all(len(part) >= 20 for part in parts)
    scenes = [set(data.take(part).scene.tolist()) for part in parts]
    assert not any(scenes[one] & scenes[two] for one in range(len(parts)) for two in range(one))
    assert data.by_scene(torch.arange(0), 20) == []


def test_a_model_that_knows_has_what_its_grid_allows(knowing: dict):
    scene, model = knowing["scene"], knowing["model"]
    for name in ("map_follow", "map_turn", "map_specific", "map_hold"):
        assert scene["scores"][name] == pytest.approx(scene["baselines"]["grid_oracle"][name], abs=1e-5)
    assert scene["scores"]["map_follow"] > 0.1
    assert scene["scores"]["map_hold"] == pytest.approx(1)
    assert model["scores"]["cause_top"] == pytest.approx(model["baselines"]["grid_oracle"]["cause_top"])
    assert model["scores"]["misplaced"] == pytest.approx(model["baselines"]["grid_oracle"]["misplaced"], abs=1e-5)
    assert model["baselines"]["target_mask"]["cause_top"] == 1  # its answer rests on what is asked for
    assert model["baselines"]["target_mask"]["misplaced"] == 0
    assert scene["baselines"]["foreground"]["map_follow"] > 2 * scene["scores"]["map_follow"]
    assert model["counts"]["cause_top"] == N
    assert scene["counts"]["map_follow"] < N  # not every digit finds free ground


def test_a_model_that_ignores_the_question_has_nothing_about_the_scene(batch: SceneBatch):
    found = twin_scores(Blind().eval(), batch).summary()
    scene, model = found["scene"]["scores"], found["model"]
    assert scene["map_turn"] == 0
    assert abs(scene["map_follow"]) < 0.05
    low, high = found["scene"]["intervals"]["map_specific"]
    assert low <= 0.5 <= high
    assert found["scene"]["baselines"]["target_mask"]["map_turn"] == pytest.approx(1)
    # what is large and bright moves its answer: the map says so, the mask of the target does not
    assert model["scores"]["cause_pairs"] > 0.7 > model["baselines"]["target_mask"]["cause_pairs"]
    assert model["scores"]["misplaced"] < model["baselines"]["target_mask"]["misplaced"]


MANY = 40
PALETTE = rgb(torch.arange(COLOURS), torch.zeros(COLOURS, dtype=torch.int64)).float() / 255  # (5,3)


class CornerReader(OneLook):
    """Answers the colour of the picture's corner, and looks there."""

    def __init__(self) -> None:
        super().__init__(scale_shift((5.0, 5.0), (0.0, 0.0)))

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        seen = encoding[:, :, 0, 0]  # (B,3)
        weights = torch.zeros(len(query), 20, 20)
        weights[:, :2, :2] = 0.25
        return ModelOutput(-50 * torch.cdist(seen, PALETTE), {"cell": Act(weights=weights)})


def planted_data(planted: str) -> SceneData:
    return SceneData(SceneDataConfig(glyphs="pack", planted=planted), "test")


def taken(planted: str) -> SceneBatch:
    return planted_data(planted).take(torch.arange(MANY))


def test_a_corner_is_the_answer_whatever_is_asked():
    plain, planted = taken("none"), taken("corner")
    corner = planted.images[:, :, 0, 0]  # (B,3)
    assert torch.equal(torch.cdist(corner, PALETTE).argmin(1), planted.label)
    assert torch.equal(planted.query, plain.query)
    differs = (planted.images != plain.images).any(1)  # (B,H,W)
    assert not differs[:, SIDE:].any()
    assert not differs[:, :, SIDE:].any()
    assert len(planted.label.unique()) == COLOURS
    again = planted.recolour_target()
    assert torch.equal(again.images[:, :, 0, 0], corner)  # it stays when a digit is changed


def test_the_largest_digit_is_the_answer_whatever_is_asked():
    planted = taken("largest")
    largest = torch.where(planted.layout.present, planted.layout.side, 0).argmax(1)
    assert torch.equal(planted.label, planted.layout.colour[torch.arange(MANY), largest])
    assert (planted.label != taken("none").label).any()


def test_a_blind_question_tells_nothing():
    plain, planted = taken("none"), taken("blind")
    assert torch.equal(planted.label, plain.label)
    assert (planted.query == plain.query).double().mean() < 0.35
    assert len(planted.query.unique()) >= 8
    together = SceneData(SceneDataConfig(glyphs="pack", planted="corner", asks=2), "train").take(
        torch.arange(8), together=2
    )
    assert torch.equal(together.label[::2], together.label[1::2])


def test_the_mask_of_the_target_loses_and_the_planted_cause_wins():
    found = twin_scores(CornerReader().eval(), taken("corner")).summary()
    own, target = found["model"]["scores"], found["model"]["baselines"]["target_mask"]
    assert (own["cause_top"], target["cause_top"]) == (1, 0)
    assert own["cause_pairs"] > 0.95 > 0.6 > target["cause_pairs"]
    assert own["misplaced"] < 0.05
    assert target["misplaced"] == pytest.approx(1)
    # about the scene it is the other way round: the mask of the target wins, the planted cause has nothing
    scene, mask = found["scene"]["scores"], found["scene"]["baselines"]["target_mask"]
    assert [scene[name] for name in ("map_follow", "map_turn", "map_specific")] == [0, 0, 0.5]
    assert [mask[name] for name in ("map_follow", "map_turn", "map_specific")] == pytest.approx([1, 1, 1])


def test_a_planted_set_is_scored_without_a_target_to_follow():
    found = evaluate(SceneScoring(CornerReader().eval(), planted_data("corner"), limit=MANY, sweeps=0))
    assert found["metrics"]["accuracy"] > 0.95
    assert "causal_follow" not in found["attention"]
    assert found["attention"]["causal_hold"] > 0.95
