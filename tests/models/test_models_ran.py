"""RAN: its size is the paper's, its control has the same size, and its masks are where the paper has them."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from saccade.engine.recipe import load_recipe
from saccade.families import model_spec
from saccade.families.classify.task import ClassifyTask
from saccade.models.ran import RanConfig, RanModel
from tiny_models import named, tiny_model

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
