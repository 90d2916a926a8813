"""Pictures that differ in a few pixels: what a cell sees, and encodings that equal those of whole pictures."""

import pytest
import torch
from torch import nn

from saccade.backbones import small_stack
from saccade.tasks.changed_pictures import Window, encode_changed, window_of
from saccade.tasks.forward_passes import EncodedPictures
from tiny_models import tiny_model

STAGE = (nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU())


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ((), Window(1, 0, 1)),
        (STAGE, Window(2, 0, 4)),
        ((*STAGE, nn.Conv2d(4, 4, 3, padding=1)), Window(2, -2, 8)),
        (small_stack().stages.values(), Window(16, 0, 46)),
        ((nn.Conv2d(3, 4, 3, dilation=2), nn.Conv2d(4, 4, 1)), Window(1, 0, 5)),
    ],
)
def test_what_a_cell_sees(layers, expected):
    """Four stages: 1 → 2 → 4 → 8 → 10 → 20 → 22 → 44 → 46 pixels, backwards from one cell."""
    assert window_of(layers) == expected


@pytest.mark.parametrize(
    "layer",
    [
        nn.GroupNorm(1, 4),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(3, 4, (3, 1)),
        nn.Conv2d(3, 4, 3, padding="same"),
        nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
        nn.MaxPool2d(2, ceil_mode=True),
    ],
)
def test_layers_that_are_not_known_to_see_a_window(layer):
    assert window_of([layer]) is None


def test_cells_that_see_a_change():
    """Cells of step 2 that see 4 pixels: pixel 5 is seen by the cells that begin at 2 and 4; pixel 0 by the first."""
    changed = torch.zeros(4, 20, dtype=torch.bool)
    changed[0, 5] = changed[1, 0] = changed[2, 19] = True
    low, high = Window(2, 0, 4).cells(changed, 9)
    assert (low.tolist(), high.tolist()) == ([1, 0, 8, 0], [2, 0, 8, 0])


@torch.inference_mode()
@pytest.mark.parametrize("size", [(40, 40), (37, 44)])
@pytest.mark.parametrize("context", [1, 3, 5])
def test_where_pictures_differ_they_are_encoded_as_whole_ones(size, context):
    """Changes in every corner, at the border, in the middle, and none at all."""
    torch.manual_seed(0)
    layers = nn.Sequential(*STAGE, nn.Conv2d(4, 6, context, padding=context // 2))
    before = torch.rand(7, 3, *size)
    images = before.clone()
    places = [(0, 0), (0, size[1] - 3), (size[0] - 4, 0), (size[0] - 4, size[1] - 3), (18, 21), (9, 0)]
    for number, (y, x) in enumerate(places):
        images[number, :, y : y + 4, x : x + 3] = torch.rand(3, 4, 3)
    crops = []

    def encode(part):
        crops.append(part.shape)
        return layers(part)

    known = layers(before)
    found = encode_changed(encode, window_of(layers), images, before, known.clone())
    assert found is not None
    torch.testing.assert_close(found, layers(images), rtol=1e-6, atol=1e-6)
    assert len(crops) == 1
    assert crops[0][2] * crops[0][3] < 0.45 * size[0] * size[1]
    assert not torch.allclose(found[:6], known[:6])


@torch.inference_mode()
def test_large_changes_are_left_to_others():
    layers = nn.Sequential(*STAGE)
    images, known = torch.rand(2, 3, 20, 20), torch.zeros(2, 4, 9, 9)
    assert encode_changed(layers, window_of(layers), images, 1 - images, known) is None
    assert known.count_nonzero() == 0


@torch.inference_mode()
@pytest.mark.parametrize("name", ["soft", "hattnet", "hattnet-ctx"])
def test_a_model_answers_about_changed_pictures_as_about_whole_ones(name):
    """Pictures of two scenes, one of them changed everywhere; questions share pictures, one picture is not asked."""
    model = tiny_model(name, 1).eval()
    scenes, which = torch.rand(2, 3, 48, 48), torch.tensor([1, 0, 1, 1])
    images = scenes[which].clone()
    images[0, :, 3:8, 40:46] = 1
    images[1] = 1 - images[1]
    images[2, :, 30:33, 2:9] = 0
    query, picture = torch.tensor([0, 3, 1, 2, 0]), torch.tensor([3, 0, 1, 0, 2])
    seen = EncodedPictures(model, scenes)
    seen.together = 2
    whole = model.forward_raw(images[picture], query)["logits"]
    torch.testing.assert_close(seen.changed(images, which).ask(query, picture)["logits"], whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen.logits_of_changed(images, which, query, picture), whole, rtol=1e-4, atol=1e-5)
