"""RAN and RA-CNN: sizes of the paper, masks, what each scale sees, where its crops lie, phases that stop early."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from saccade import geometry
from saccade.attention.zoom import box_theta, clamped_box, mask_in_crop, responding_region
from saccade.engine.recipe import load_recipe
from saccade.errors import ConfigError, DataError
from saccade.families import model_spec
from saccade.families.classify.task import ClassifyTask
from saccade.metrics.maps.edits import crop_boxes
from saccade.models.racnn import CROPS, RacnnModel, region_round
from saccade.models.ran import RanConfig, RanModel
from tiny_models import example_batch, named, tiny_model

PAIRS = (("ran-56", "resnet-cifar10"), ("ran-92", "resnet-92-cifar10"))
LARGE = {"stem": "large", "widths": (256, 512, 1024, 2048)}


def of_recipe(name: str) -> nn.Module:
    recipe = load_recipe(name)
    return model_spec(recipe.model.name).build(recipe.model.config).eval()


def weights(model: nn.Module) -> int:
    """Of convolutions and the last layer, without biases and norms: how the paper's number is counted."""
    return sum(each.weight.numel() for each in model.modules() if isinstance(each, nn.Conv2d | nn.Linear))


def multiplications(model: nn.Module, side: int = 32) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.forward_raw(torch.rand(1, 3, side, side))
    return counter.get_total_flops()


@pytest.mark.parametrize(("pair", "size"), [*zip(PAIRS, (1_132_976, 1_931_696))])
def test_it_has_the_papers_number_of_weights_and_so_has_its_control(pair: tuple[str, str], size: int) -> None:
    """1.9 M of Attention-92 in Table 3; Attention-56 is smaller by a module in each stage."""
    ours, plain = map(of_recipe, pair)
    assert weights(ours) == size
    assert weights(plain) == pytest.approx(weights(ours), rel=0.01)
    assert multiplications(plain) == pytest.approx(multiplications(ours), rel=0.01)


def test_a_training_step_leaves_the_masks_out() -> None:
    model = tiny_model(RanModel).eval()
    images = torch.rand(2, 3, 31, 34)
    alone = model.forward_raw(images, logits_only=True)
    assert named(alone).keys() == {".logits"}
    assert torch.equal(alone.logits, model.forward_raw(images).logits)
    task = ClassifyTask(model="ran", model_config={"widths": (8, 8, 8, 8)}, data={"name": "cifar10"})
    assert task.forward_options(None) == {"logits_only": True}


def test_names_and_grids_of_the_looks() -> None:
    trace = RanModel(RanConfig(modules=(2, 1, 1))).eval()(torch.rand(1, 3, 32, 32)).trace
    assert [look.name for look in trace.looks] == ["stage1-1", "stage1-2", "stage2", "stage3"]
    assert [look.weights.shape[-1] for look in trace.looks] == [32, 32, 16, 8]
    corner = torch.tensor([0.5, 0.5], dtype=torch.float64)
    for look, pixels in zip(trace.looks, (1, 1, 2, 4)):
        assert look.frame[0, 0] == pixels
        centre = look.frame[:, :2] @ corner + look.frame[:, 2]
        assert centre.tolist() == [0.5, 0.5]  # strides of 3×3 convolutions with a border start at the first pixel


def test_for_photographs_the_smallest_map_is_seven() -> None:
    with torch.device("meta"):
        model = RanModel(RanConfig(modules=(1, 2, 3), **LARGE)).eval()
        acts = model.forward_raw(torch.empty(1, 3, 224, 224)).acts
        grids = [acts[name].weights.shape[-1] for name in model.look_names]
    assert grids == [56, 28, 28, 14, 14, 14]
    assert weights(model) == 50_304_192


def built(**settings: Any) -> RacnnModel:
    """The tiny model, its proposals no longer at their start."""
    torch.manual_seed(0)
    model = tiny_model(RacnnModel, **settings).eval()
    for proposal in model.proposals.values():
        torch.nn.init.normal_(proposal.propose.weight, std=1.0)
    return model


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    """Six pictures."""
    return example_batch(RacnnModel, 6, 1)[0]["images"]


def test_scale_1_sees_the_picture_shrunk(images: torch.Tensor) -> None:
    """Its logits are those of its network on the antialiased smaller picture, and of nothing else."""
    model = built()
    small = F.interpolate(images, model.config.coarse, mode="bilinear", antialias=True)
    with torch.no_grad():
        logits = model.heads["scale1"](model.net("scale1")(small).mean((2, 3)))
        raw = model.forward_raw(images)
    torch.testing.assert_close(raw.scale_logits[:, 0], logits, rtol=1e-4, atol=1e-5)


def test_finer_scales_see_masked_crops_of_the_picture_itself(images: torch.Tensor) -> None:
    """Scale 3 by hand: its box in shares of scale 2's region, read from the picture, under its mask."""
    model = built()
    with torch.no_grad():
        raw = model.forward_raw(images)
        outer, inner = raw.boxes.unbind(1)  # (B,3) each
        centre = outer[:, :2] + (2 * inner[:, :2] - 1) * outer[:, 2:]  # of the inner box, in shares of the picture
        half = 2 * outer[:, 2] * inner[:, 2]
        theta = box_theta(torch.cat([centre, half[:, None]], dim=1))
        torch.testing.assert_close(raw.acts["scale3"].theta, theta)
        crop = geometry.sample_theta(images, theta, model.config.crop)
        seen = crop * mask_in_crop(inner[:, 2], model.config.crop, model.config.sharpness)[:, None]
        logits = model.heads["scale3"](model.net("scale3")(seen).mean((2, 3)))
    torch.testing.assert_close(raw.scale_logits[:, 2], logits, rtol=1e-4, atol=1e-5)


def test_strongest_response_is_in_the_right_place(images: torch.Tensor) -> None:
    """A network that answers to red alone responds where the red square is, through the frame of its cells."""
    model = built()
    red = torch.zeros(1, 3, 31, 34)
    red[:, 0, 20:28, 3:11] = 1.0  # its middle is at (7, 24)
    net = model.net("scale1")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        convolution = next(module for module in net.modules() if isinstance(module, torch.nn.Conv2d))
        convolution.weight[:, 0] = 1.0
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.fill_(1.0)
            elif isinstance(module, torch.nn.Conv2d) and module.kernel_size == (1, 1):
                module.weight.fill_(1.0)  # what a block leaves out of its branch goes by here
        x, y = model.forward_raw(red).strongest[0, 0].tolist()
    assert (x * 34, y * 31) == pytest.approx((7, 24), abs=4.5)


def test_responses_are_those_of_the_next_network_to_the_whole_region(images: torch.Tensor) -> None:
    """Scale 2's network sees the picture, scale 3's the region of scale 2, both at full size; no gradient."""
    model = built()
    raw = model.forward_raw(images, responses=True)
    assert model.forward_raw(images).responses is None
    crop = geometry.sample_theta(images, raw.acts["scale2"].theta, (31, 34))
    for number, (name, seen) in enumerate(zip(CROPS, (images, crop))):
        expected = responding_region(model.net(name)(seen).mean(1))
        torch.testing.assert_close(raw.responses[:, number], expected)
    assert not raw.responses.requires_grad
    first = model.forward_raw(images, last="scale1", responses=True).responses
    torch.testing.assert_close(first, raw.responses[:, :1])


def test_proposals_may_read_an_earlier_stage(images: torch.Tensor) -> None:
    """Boxes are what they make of its cells, answers those of the whole network; an unknown stage is refused."""
    model = built(read="layer1")
    net = model.net("scale1")
    with torch.no_grad():
        raw = model.forward_raw(images)
        small = model.shrink(images)
        cells = net.between(small, to="layer1")
        assert cells.shape[-2:] > net(small).shape[-2:]
        torch.testing.assert_close(raw.boxes[:, 0], model.proposals["scale2"](cells))
        logits = model.heads["scale1"](net(small).mean((2, 3)))
    torch.testing.assert_close(raw.scale_logits[:, 0], logits, rtol=1e-4, atol=1e-5)
    with pytest.raises(ConfigError, match="no stage 'layer9'"):
        built(read="layer9")


def test_all_scales_together_do_not_teach_the_scales(images: torch.Tensor) -> None:
    """The fused classifier learns from finished descriptors."""
    model = built().train()
    model.forward_raw(images).logits.sum().backward()
    assert all(parameter.grad is None for parameter in model.nets.parameters())


def test_controls_crop_as_they_say(images: torch.Tensor) -> None:
    """Centre and random have the side that is set; random differs by picture and repeats; whole has no crop."""
    centre = built(crops="centre", side=0.4).forward_raw(images).boxes
    torch.testing.assert_close(centre, torch.tensor([0.5, 0.5, 0.2]).expand_as(centre))
    model = built(crops="random", side=0.4)
    random, again = model.forward_raw(images).boxes, model.forward_raw(images[2:3]).boxes
    torch.testing.assert_close(random[2:3], again)
    torch.testing.assert_close(random, clamped_box(random, 0.0))
    assert len({tuple(row) for row in random[:, 0].tolist()}) == len(images)
    assert (random[..., 2] == 0.2).all()
    whole = built(crops="whole", coarse=(15, 16)).forward_raw(images)
    assert torch.equal(whole.boxes, torch.full_like(whole.boxes, 0.5))


def test_given_crops_lie_round_the_evidence(images: torch.Tensor) -> None:
    """A box in the middle, one at the border, one larger than the crop; without any, an error."""
    model = built(crops="given")
    evidence = torch.tensor([[15.0, 13.0, 19.0, 17.0], [0.0, 0.0, 3.0, 4.0], [2.0, 3.0, 32.0, 30.0]])
    frames = region_round(evidence, (31, 34), 0.5, model.config.crop)
    outer, inner = (crop_boxes(frames[name], model.config.crop) for name in CROPS)
    assert outer[0].tolist() == pytest.approx([8.5, 7.25, 25.5, 22.75])
    assert inner[0].tolist() == pytest.approx([12.75, 11.125, 21.25, 18.875])
    assert outer[1].tolist() == pytest.approx([0, 0, 17, 15.5])
    assert inner[1].tolist() == pytest.approx([0, 0, 8.5, 7.75])
    for box, crop in zip(evidence, inner):
        assert (crop[:2] <= box[:2] + 1e-4).all()
        assert (crop[2:] >= box[2:] - 1e-4).all()
    raw = model.forward_raw(images[:3], attention=frames)
    assert raw.logits.shape == (3, 3)
    with pytest.raises(DataError, match="round the evidence"):
        model.forward_raw(images)
