"""Readers of multisets: HSAL against the paper in plain steps, its looks and ends; the counting control."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from saccade import geometry
from saccade.attention.hard import gumbel_noise
from saccade.families import model_spec
from saccade.losses.multiset import hsal_expected_loss, hsal_loss
from saccade.models.hsal import HsalModel
from saccade.models.multiset_reader import MultisetCountsModel
from saccade.trace import ModelOutput
from tiny_models import example_batch, named, tiny_model

Near = Callable[..., None]
T, K = 3, 2  # of the tiny model
CELLS, CLASSES = 42, 3


def tiny(**changes: Any) -> HsalModel:
    torch.manual_seed(0)
    return tiny_model(HsalModel, **changes)


def images(count: int = 4, seed: int = 0) -> Tensor:
    return example_batch(HsalModel, count, seed)[0]["images"]


def forced(cells: Tensor, said: Tensor) -> tuple[Tensor, Tensor]:
    """Noise that makes a rollout glimpse at ``cells`` (B,T,k) and say ``said`` (B,T)."""
    return F.one_hot(cells, CELLS) * 1e6, F.one_hot(said, CLASSES + 1) * 1e6


def plain_rollout(model: HsalModel, volume: Tensor, cells: Tensor, said: Tensor) -> dict[str, Tensor]:
    """Section 3 of the paper line by line, nothing projected beforehand, for given actions."""
    count, (h, w) = len(volume), model.grid
    result: dict[str, list[Tensor]] = {key: [] for key in ("class_logits", "locations", "mask", "saliency", "priority")}
    energy = (volume[:, : model.channels] ** 2).sum(1)  # S
    low, high = energy.amin((1, 2), keepdim=True), energy.amax((1, 2), keepdim=True)
    saliency = (energy - low) / (high - low)
    previous, meta_state = torch.zeros(count, CLASSES + 1), torch.zeros(count, model.config.meta_hidden)
    state = torch.zeros(count, model.config.hidden)
    for t in range(T):
        x = torch.cat([saliency.flatten(1), previous], 1)
        meta_state = model.meta.remember(model.meta.encode(x), meta_state)
        mask = model.meta.attention.mask(meta_state, (h, w))
        product = mask * saliency
        low, high = product.amin((1, 2), keepdim=True), product.amax((1, 2), keepdim=True)
        priority = (product - low) / (high - low)
        glimpse = (mask.unsqueeze(1) * volume).sum((2, 3))  # g_0
        action = torch.zeros(count, h * w)  # a_0
        if not model.config.carry_state:
            state = torch.zeros_like(state)
        for i in range(K + 1):
            x = torch.cat([priority.flatten(1), previous, action, glimpse], 1)
            state = model.controller.remember(model.controller.encode(x), state)
            if i < K:
                scores = model.controller.locate(state)
                if model.controller.follow is not None:
                    scores = scores + model.controller.follow * priority.flatten(1)
                result["locations"].append(scores.softmax(-1))
                action = F.one_hot(cells[:, t, i], h * w).float()
                glimpse = volume.flatten(2)[torch.arange(count), :, cells[:, t, i]]
        result["class_logits"].append(model.controller.classify(state))
        result["mask"].append(mask)
        result["saliency"].append(saliency)
        result["priority"].append(priority)
        previous = F.one_hot(said[:, t], CLASSES + 1).float()
        left = (saliency - mask).clamp(min=0)
        for b in range(count):
            for i in range(K):
                left[b, cells[b, t, i] // w, cells[b, t, i] % w] = 0
        saliency = left
    return {key: torch.stack(values, 1) for key, values in result.items()}


@pytest.mark.parametrize("changes", [{}, {"carry_state": False}, {"fine_stage": "stage1"}, {"follow_priority": True}])
def test_the_rollout_is_the_papers(changes: dict[str, Any], assert_near: Near) -> None:
    model = tiny(**changes).train()
    cells, said = torch.randint(CELLS, (4, T, K)), torch.randint(CLASSES + 1, (4, T))
    with torch.no_grad():
        volume = model.encode(images())
        raw = model.read(volume, *forced(cells, said))
        plain = plain_rollout(model, volume, cells, said)
    near = {"rtol": 1e-4, "atol": 1e-5}
    assert torch.equal(raw.location, cells)
    assert torch.equal(raw.said, said)
    assert_near(raw.logits, plain["class_logits"], **near)
    assert_near(raw.acts["glimpse"].weights.flatten(2), plain["locations"], **near)
    assert_near(raw.acts["covert"].weights, plain["mask"], **near)
    assert_near(raw.acts["saliency"].weights, plain["saliency"], **near)
    assert_near(raw.acts["priority"].weights, plain["priority"], **near)
    assert_near(raw.location_reward, plain["priority"].flatten(2).gather(2, cells), **near)
    assert_near(raw.said_log_prob, plain["class_logits"].log_softmax(-1).gather(2, said[..., None])[..., 0], **near)


def test_the_best_of_each_is_chosen_outside_training() -> None:
    raw = tiny().eval().forward_raw(images())
    assert torch.equal(raw.acts["glimpse"].choice, raw.acts["glimpse"].weights.flatten(2).argmax(-1))
    said = raw.logits.argmax(-1)
    assert torch.equal(raw.said[raw.active], said[raw.active])


@pytest.fixture
def ended() -> tuple[HsalModel, ModelOutput]:
    """Three pictures, drawn to say: 1 1 stop, stop 2 0, 0 stop 1."""
    model = tiny().train()
    said = torch.tensor([[1, 1, 3], [3, 2, 0], [0, 3, 1]])
    return model, model.read(model.encode(images(3)), *forced(torch.randint(CELLS, (3, T, K)), said))


def test_steps_count_until_stop_is_said(ended: tuple[HsalModel, ModelOutput]) -> None:
    model, raw = ended
    assert raw.active.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert raw.said.tolist() == [[1, 1, 3], [3, 2, 0], [0, 3, 1]]  # in training a rollout goes on
    trace = model.wrap(raw, (31, 34)).trace.validate()
    labels = [[True, True, False], [False, False, False], [True, False, False]]
    assert trace.look("covert").active.tolist() == labels
    assert trace.look("glimpse").active.tolist() == [[flag for flag in row for _ in range(K)] for row in labels]
    assert trace.look("glimpse").emits[0].tolist() == [1, 1, 1, 1, 3, 3]


def test_behind_the_end_nothing_is_said_outside_training() -> None:
    model = tiny().eval()
    with torch.no_grad():
        model.controller.classify.weight.zero_()
        model.controller.classify.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 9.0]))
    output = model(images())
    assert (output.trace.answer == model.stop).all()
    assert output.trace.look("covert").active.sum() == 0
    assert torch.equal(output.trace.image_map(), torch.zeros(4, 31, 34))  # nothing was named, nothing attended


class Asked(TorchDispatchMode):
    """Which operations made the host wait for a number."""

    def __init__(self) -> None:
        super().__init__()
        self.by: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation.name().partition(".")[0] in ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"):
            self.by.append(operation.name())
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("loss", [hsal_loss, hsal_expected_loss])
def test_no_step_of_training_waits_for_the_device(loss: Callable[..., dict[str, Tensor]]) -> None:
    model, pictures, labels = tiny().train(), images(), torch.tensor([[2, 2], [0, -1], [-1, -1], [1, 0]])
    with Asked() as asked:
        loss(model.forward_raw(pictures), labels, entropy_weight=0.1)["loss"].backward()
    assert asked.by == []
    with Asked() as asked:
        float(pictures.sum())
    assert asked.by == ["aten::_local_scalar_dense"]


def test_what_is_drawn_and_rewarded_is_in_full_precision() -> None:
    """Under autocast the rollout of coarse activations is exactly that of the same numbers without it."""
    model = tiny().train()
    coarse = model.encode(images()).detach().bfloat16()
    noise = gumbel_noise((4, T, K, CELLS), like=coarse), gumbel_noise((4, T, CLASSES + 1), like=coarse)
    with torch.autocast("cpu", torch.bfloat16):
        raw = model.read(coarse, *noise)
    plain = model.read(coarse.float(), *noise)
    for (key, result), expected in zip(named(raw).items(), named(plain).values(), strict=True):
        assert result.dtype != torch.bfloat16, key
        assert torch.equal(result, expected), key


def test_paper_sizes() -> None:
    with torch.device("meta"):
        settings = {"backbone": "resnet34", "input_size": (224, 224), "hidden": 512}
        model: Any = model_spec("hsal").build(settings)
    assert (model.grid, model.channels, model.steps) == ((7, 7), 512, 5)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["meta.encode.weight"] == (128, 49 + 11)
    assert shapes["meta.attention.parameters_of.weight"] == (4 * 5, 128)
    assert shapes["controller.encode.weight"] == (512, 49 + 11 + 49 + 512)
    assert shapes["controller.remember.weight_hh"] == (3 * 512, 512)
    assert (shapes["controller.locate.0.weight"], shapes["controller.locate.2.weight"]) == ((64, 512), (49, 64))
    assert (shapes["controller.classify.weight"], shapes["controller.value.weight"]) == ((11, 512), (1, 512))


def test_finer_activations_lie_under_their_cell() -> None:
    """A picture that is its own x coordinate: under each coarse cell the finer cells tell where they are."""
    model = tiny(fine_stage="stage1")
    fine = model.fine
    assert (fine.ratio, fine.channels) == (2, 32 * 4)
    frames, grids = model.backbone.frames, model.backbone.grid((31, 34))
    columns = frames["stage1"][0, 0] * (torch.arange(grids["stage1"][1]) + 0.5) + frames["stage1"][0, 2]
    ramp = columns.float().expand(1, 32, *grids["stage1"])  # the pixel at which each finer cell lies
    result = fine(ramp).unflatten(1, (32, 2, 2))  # (1,F,row,column,h,w)
    centre = frames["stage2"][0, 0] * (torch.arange(7) + 0.5) + frames["stage2"][0, 2]  # (w,)
    quarter = float(frames["stage2"][0, 0]) / 4
    inside = slice(1, -1)  # bilinear reading ends at the border
    for column, side in ((0, -quarter), (1, quarter)):
        there = result[0, 0, 0, column, 0]
        torch.testing.assert_close(there[inside], centre.float()[inside] + side, rtol=1e-4, atol=1e-3)


STOP = 3


@pytest.fixture
def model() -> MultisetCountsModel:
    torch.manual_seed(0)
    return tiny_model(MultisetCountsModel).eval()


def said(model: MultisetCountsModel, shares: list[list[float]]) -> tuple[list[int], Tensor]:
    """What is said of the probabilities of 0, 1 and 2 objects of each of three classes."""
    logits, said = model._labels(torch.tensor([shares]).clamp_min(1e-9).log())
    return said[0].tolist(), logits[0]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], [STOP, STOP, STOP]),
        ([[0.3, 0.7, 0], [1, 0, 0], [0.2, 0.8, 0]], [2, 0, STOP]),  # the surest first
        ([[0.1, 0.2, 0.7], [1, 0, 0], [0.2, 0.8, 0]], [0, 2, 0]),  # one for sure, then the other, then one more
        ([[0, 0, 1], [0, 0, 1], [0, 0, 1]], [0, 0, 1]),  # there are no more steps
    ],
)
def test_counts_as_a_multiset(model: MultisetCountsModel, shares: list[list[float]], expected: list[int]) -> None:
    assert said(model, shares)[0] == expected


def test_logits_are_the_odds_of_one_more(model: MultisetCountsModel) -> None:
    _, logits = said(model, [[0.2, 0.5, 0.3], [1, 0, 0], [1, 0, 0]])
    torch.testing.assert_close(logits[0, 0].sigmoid(), torch.tensor(0.8))
    torch.testing.assert_close(logits[1, 0].sigmoid(), torch.tensor(0.3))
    assert torch.equal(logits[:, STOP], torch.zeros(3))
    assert logits.isfinite().all()


def test_a_box_around_one_cell_is_judged_by_that_cell(model: MultisetCountsModel) -> None:
    """Its pixels come from the frame of the look; half of a cell counts as much as all of it if nothing else is in."""
    images = torch.rand(2, 3, 31, 34)
    encoding = model.encode(images)  # (2,C,h,w)
    frame = model.backbone.frames[model.look_stage]
    for row, column, right in ((0, 0, 1.0), (1, 2, 1.0), (model.grid[0] - 1, model.grid[1] - 1, 0.5)):
        cell = torch.tensor([[column, row], [column + right, row + right]], dtype=torch.float64)
        box = geometry.apply(frame, cell).flatten().float()
        result = model.forward_raw(images, single=True, boxes=box.expand(2, 1, 4)).object_logits
        assert torch.allclose(result[:, 0], model.single(encoding[:, :, row, column]), atol=1e-5)
