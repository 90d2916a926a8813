"""How a crop lies on the evidence, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from saccade import geometry
from saccade.metrics.maps.edits import anywhere_scores, centred, crop_boxes, crop_scores, mask_boxes


def _mask(box: tuple[int, int, int, int], size: tuple[int, int] = (8, 10)) -> torch.Tensor:
    x0, y0, x1, y1 = box
    mask = torch.zeros(1, *size, dtype=torch.bool)
    mask[0, y0:y1, x0:x1] = True
    return mask


def test_scores_by_hand() -> None:
    """Evidence (2,2)–(6,4), crop (4,1)–(8,5): half of the 8 pixels; 4 / (16 + 8 − 4); 4 of 16 pixels of the crop."""
    mask, crop = _mask((2, 2, 6, 4)), torch.tensor([[4.0, 1.0, 8.0, 5.0]])
    found = crop_scores(crop, mask)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {"covers_evidence": 0.5, "overlap": 0.2, "inside_evidence": 0.25}
    )


def test_a_crop_may_cut_through_pixels() -> None:
    """Half a pixel of one column of two rows: 1 of 8 pixels less."""
    found = crop_scores(torch.tensor([[0.0, 0.0, 5.5, 8.0]]), _mask((2, 2, 6, 4)))
    assert float(found["covers_evidence"]) == pytest.approx(7 / 8)


def test_boxes_of_masks_and_crops() -> None:
    """The tight box; nothing for an empty mask; a crop's box from its frame, on an odd grid."""
    boxes = mask_boxes(torch.cat([_mask((2, 3, 6, 8)), torch.zeros(1, 8, 10, dtype=torch.bool)]))
    assert boxes[0].tolist() == [2, 3, 6, 8]
    assert boxes[1].isnan().all()
    assert crop_scores(torch.tensor([[0.0, 0, 1, 1]]), torch.zeros(1, 8, 10).bool())["covers_evidence"].isnan()
    box = torch.tensor([[1.5, 2.0, 7.25, 6.0]], dtype=torch.float64)
    assert torch.allclose(crop_boxes(geometry.crop_frame(box, (5, 7)), (5, 7)), box)


def test_controls_have_the_same_side() -> None:
    """Centred in 8 × 10; anywhere is the mean over places, here by loops over the lattice."""
    crop, mask = torch.tensor([[0.0, 0.0, 4.0, 4.0]]), _mask((6, 1, 9, 3))
    assert centred(crop, (8, 10)).tolist() == [[3.0, 2.0, 7.0, 6.0]]
    places = [((10 - 4) * (i + 0.5) / 16, (8 - 4) * (j + 0.5) / 16) for i in range(16) for j in range(16)]
    each = [crop_scores(torch.tensor([[x, y, x + 4, y + 4]], dtype=torch.float64), mask) for x, y in places]
    found = anywhere_scores(crop, mask)
    for name in found:
        expected = sum(float(scores[name]) for scores in each) / len(each)
        assert float(found[name]) == pytest.approx(expected)
