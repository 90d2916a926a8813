"""Pictures whose class hangs on a detail: pure functions of their number, edits that change one thing, fine stripes."""

import pytest
import torch
import torch.nn.functional as F

from saccade.data.details import (
    CELL,
    REACH,
    SIZE,
    DetailLayout,
    moved,
    render_details,
    rewoven,
    sample_details,
    surrounded,
)

SOME = torch.arange(40)


@pytest.fixture(scope="module")
def layout() -> DetailLayout:
    """The first pictures of a stream."""
    return sample_details(3, SOME)


@pytest.fixture(scope="module")
def pictures(layout: DetailLayout) -> torch.Tensor:
    """Their pixels."""
    return render_details(layout)


def test_a_picture_is_the_same_whoever_it_is_made_with(pictures: torch.Tensor) -> None:
    """Bit for bit: alone, in another order, beside repeats; and another seed gives other pictures."""
    order = torch.tensor([7, 39, 7, 0])
    assert torch.equal(render_details(sample_details(3, order)), pictures[order])
    assert torch.equal(render_details(sample_details(3, torch.tensor([21]))), pictures[21:22])
    assert not torch.equal(render_details(sample_details(4, torch.tensor([21]))), pictures[21:22])


def test_pictures_stay_what_they_were(pictures: torch.Tensor) -> None:
    """Recorded numbers: a trained model knows these pictures, so they must not change."""
    assert pictures.shape == (40, 3, SIZE, SIZE)
    assert int(pictures[:2].long().sum()) == 36_763_808


def test_evidence_is_where_the_mark_is(layout: DetailLayout, pictures: torch.Tensor) -> None:
    """Only there do pixels change when the stripes do."""
    changed = (render_details(rewoven(layout)) != pictures).any(1)  # (B,H,W)
    soft = F.max_pool2d(layout.masks.float().unsqueeze(1), 3, 1, 1)[:, 0].bool()  # one pixel of soft edge more
    assert not (changed & ~soft).any()
    assert (changed & layout.masks).sum() > 0.7 * layout.masks.sum()


def test_moving_moves_the_bearer_alone(layout: DetailLayout) -> None:
    """Same class, same discs, another cell that was free; pixels change at the old and the new place only."""
    there = moved(layout)
    assert torch.equal(there.label, layout.label)
    assert torch.equal(there.x[:, 1:], layout.x[:, 1:])
    cells = there.y // CELL * 3 + there.x // CELL
    assert all(len(set(row)) == 4 for row in cells.tolist())
    assert ((there.x[:, 0] // CELL != layout.x[:, 0] // CELL) | (there.y[:, 0] // CELL != layout.y[:, 0] // CELL)).all()
    changed = (render_details(there) != render_details(layout)).any(1)
    near = torch.zeros_like(changed)
    for number in range(len(layout)):
        for each in (layout, there):
            x, y = int(each.x[number, 0]), int(each.y[number, 0])
            near[number, y - REACH : y + REACH + 1, x - REACH : x + REACH + 1] = True
    assert not (changed & ~near).any()


def test_other_surroundings_leave_the_bearer(layout: DetailLayout, pictures: torch.Tensor) -> None:
    """Class, place and mark stay, and nearly every other pixel changes; discs still keep apart."""
    among = surrounded(layout)
    assert torch.equal(among.label, layout.label)
    assert torch.equal(among.masks, layout.masks)
    cells = among.y // CELL * 3 + among.x // CELL
    assert all(len(set(row)) == 4 for row in cells.tolist())
    assert (render_details(among) != pictures).any(1).float().mean() > 0.9


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_makes_the_same_pictures(pictures: torch.Tensor) -> None:
    """Bit for bit."""
    assert torch.equal(render_details(sample_details(3, SOME.cuda())).cpu(), pictures)
