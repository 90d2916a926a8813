"""RA-CNN's zoom: legal boxes, true gradients, right pixels; saliency, inhibition of return, Gaussian mixtures."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.attention import GaussianMixtureAttention, InhibitionOfReturn, SaliencyMap
from saccade.attention import zoom as zooming
from saccade.attention.glimpse import min_max, priority_map
from saccade.attention.zoom import (
    AttentionProposal,
    Downsample,
    apn_crop,
    box_theta,
    boxcar,
    clamped_box,
    legal_box,
    nested,
    responding_region,
    theta_box,
)


def corners(box: torch.Tensor) -> torch.Tensor:
    """x_0, y_0, x_1, y_1 (…,4) of a box (…,3)."""
    return torch.cat([box[..., :2] - box[..., 2:], box[..., :2] + box[..., 2:]], dim=-1)


def test_theta_by_hand() -> None:
    """Eq. (3): centre (0.5, 0.25), half side 0.25: θ has side ½, shift (0, −½)."""
    box = torch.tensor([[0.5, 0.25, 0.25]])
    assert box_theta(box).tolist() == [[[0.5, 0.0, 0.0], [0.0, 0.5, -0.5]]]
    assert theta_box(box_theta(box)).tolist() == box.tolist()


def test_boxcar_by_hand() -> None:
    """Eqs. (5, 6), k = 10, from 0.2 to 0.6: at the edge ½ − h(−4), in the middle h(2) − h(−2), far outside nearly 0."""

    def h(z: float) -> float:
        return 1 / (1 + math.exp(-10 * z))

    at = torch.tensor([0.2, 0.4, 0.9], dtype=torch.float64)
    low, high = torch.tensor(0.2, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64)
    expected = [0.5 - h(-0.4), h(0.2) - h(-0.2), h(0.7) - h(0.3)]
    assert boxcar(at, low, high, 10.0).tolist() == pytest.approx(expected)
    assert expected[1] == pytest.approx(0.7616, abs=1e-4)


@pytest.mark.parametrize("smallest", [1 / 3, 2 / 3, 1.0])
def test_every_number_gives_a_legal_box(smallest: float) -> None:
    """Also numbers at which a sigmoid saturates; a box that is legal stays as it is when clamped."""
    numbers = torch.cat([torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) * 20, torch.eye(3) * 1e4])
    box = legal_box(numbers.double(), smallest)
    x0, y0, x1, y1 = corners(box).unbind(-1)
    slack = 1e-12
    assert (torch.stack([x0, y0]) >= -slack).all()
    assert (torch.stack([x1, y1]) <= 1 + slack).all()
    assert ((2 * box[:, 2] >= smallest - slack) & (box[:, 2] <= 0.5 + slack)).all()
    assert torch.allclose(clamped_box(box, smallest), box, atol=1e-9)


def test_clamps_by_hand() -> None:
    """A side below a third grows to it, one beyond the picture shrinks to it; then the centre moves inside."""
    given = torch.tensor([[0.0, 0.9, 0.05], [0.3, 0.5, 0.9], [0.5, 0.5, 0.25]])
    expected = torch.tensor([[1 / 6, 5 / 6, 1 / 6], [0.5, 0.5, 0.5], [0.5, 0.5, 0.25]])
    assert torch.allclose(clamped_box(given), expected)


@pytest.mark.parametrize("size", [(31, 45), (224, 224), (7, 5)])
def test_crops_of_crops_land_on_the_right_pixels(size: tuple[int, int]) -> None:
    """Corners by hand: the inner box in shares of the outer one, in pixels of a picture of odd sides."""
    outer, inner = torch.tensor([[0.4, 0.6, 0.3]]).double(), torch.tensor([[0.55, 0.3, 0.2]]).double()
    theta = nested(box_theta(outer), box_theta(inner))  # (1,2,3)
    grid = (9, 11)
    frame = geometry.theta_to_frame(theta, grid, size)
    height, width = size
    x0, y0, x1, y1 = corners(outer)[0].tolist()
    u0, v0, u1, v1 = corners(inner)[0].tolist()
    expected = [(x0 + u0 * (x1 - x0)) * width, (y0 + v0 * (y1 - y0)) * height]
    opposite = [(x0 + u1 * (x1 - x0)) * width, (y0 + v1 * (y1 - y0)) * height]
    result = geometry.apply(frame, torch.tensor([[0.0, 0.0], [grid[1], grid[0]]]).double().unsqueeze(1)).squeeze(1)
    assert result[0].tolist() == pytest.approx(expected)
    assert result[1].tolist() == pytest.approx(opposite)
    picture = torch.stack(torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij"))
    read, _ = apn_crop(picture.double().unsqueeze(0), theta, inner[:, 2], grid)
    centre = geometry.apply(frame, torch.tensor([[5.5, 4.5]]).double())[0]
    assert [float(read[0, 1, 4, 5]), float(read[0, 0, 4, 5])] == pytest.approx(centre.tolist())


def test_gradients_are_those_of_what_is_computed() -> None:
    """Through crop and mask, of two nested boxes and of the picture."""
    generator = torch.Generator().manual_seed(2)
    coarse = torch.rand(2, 1, 4, 5, dtype=torch.float64, generator=generator)
    picture = F.interpolate(coarse, (9, 11), mode="bicubic").requires_grad_()
    numbers = torch.randn(2, 2, 3, dtype=torch.float64, generator=generator).requires_grad_()

    def seen(picture: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        outer, inner = legal_box(numbers).unbind(1)  # (B,3) each
        theta = nested(box_theta(outer), box_theta(inner))
        crop, mask = apn_crop(picture, theta, inner[:, 2], (3, 4), sharpness=12.0)
        return crop * mask.unsqueeze(1) + apn_crop(picture, box_theta(outer), outer[:, 2], (3, 4))[0]

    assert torch.autograd.gradcheck(seen, (picture, numbers))


def test_proposal_starts_centred_and_learns() -> None:
    """Half the parent's side before training, for every legal range that has it; gradients reach both layers."""
    for smallest, half in ((1 / 3, 0.25), (2 / 3, 1 / 3 + (0.5 - 1 / 3) * 0.05), (1.0, 0.5)):
        proposal = AttentionProposal(4, (3, 5), hidden=6, smallest=smallest)
        assert torch.allclose(proposal(torch.randn(2, 4, 3, 5)), torch.tensor([0.5, 0.5, half]).expand(2, 3))
    proposal = AttentionProposal(4, (3, 5), hidden=6)
    torch.nn.init.normal_(proposal.propose.weight)
    proposal(torch.randn(2, 4, 3, 5)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in proposal.parameters())


def test_a_map_responds_in_a_square() -> None:
    """One of 4 × 4 cells is a square of a quarter; two cells have their centroid between; one value is the whole."""
    one, two = torch.zeros(4, 4), torch.zeros(4, 4)
    one[2, 3] = 5.0
    two[1, 0], two[1, 2] = 3.25, 1.25  # the mean is 4.5 / 16 = 0.28125: 2.96875 and 0.96875 above it
    result = responding_region(torch.stack([one, two, torch.full((4, 4), 0.7)]))
    share = 0.96875 / 3.9375
    spread = 0.25 * share * (1 - share) + 1 / (12 * 16)  # two places half a side apart, and the width of a cell
    expected = [[0.875, 0.625, 0.125], [0.125 + 0.5 * share, 0.375, (3 * spread) ** 0.5], [0.5, 0.5, 0.5]]
    torch.testing.assert_close(result, torch.tensor(expected))


def test_a_region_is_not_rounded_in_lower_precision_around_it() -> None:
    torch.manual_seed(0)
    response = torch.rand(8, 7, 7)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = responding_region(response)
    assert torch.equal(result, responding_region(response))


def test_the_points_of_a_crop_are_not_rounded_in_lower_precision_around_it() -> None:
    """Products of matrices are rounded there, and points of a crop are such products."""
    picture = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    theta = zooming.box_theta(torch.tensor([[0.513, 0.487, 0.2437]]))
    expected, _ = zooming.apn_crop(picture, zooming.nested(theta, theta), torch.tensor([0.2437]), (32, 32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result, _ = zooming.apn_crop(picture, zooming.nested(theta, theta), torch.tensor([0.2437]), (32, 32))
    assert torch.equal(result, expected)


@pytest.mark.parametrize(("picture", "size"), [((224, 224), (112, 112)), ((31, 45), (17, 20)), ((9, 9), (9, 9))])
def test_shrink_is_antialiased_bilinear(picture: tuple[int, int], size: tuple[int, int]) -> None:
    """The same numbers as torch's own, for odd sizes too; nothing but weights of one row in it."""
    images = torch.rand(2, 3, *picture, generator=torch.Generator().manual_seed(3))
    expected = F.interpolate(images, size, mode="bilinear", antialias=True)
    assert torch.allclose(Downsample(picture, size)(images), expected, atol=1e-5)


Near = Callable[..., None]
VOLUME = torch.tensor([[[[1.0, -2.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, -4.0]]]])  # (1,2,2,2)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("energy", [[10.0, 4.0], [0.0, 25.0]]),
        ("absolute", [[4.0, 2.0], [0.0, 7.0]]),
        ("strongest", [[3.0, 2.0], [0.0, 4.0]]),
    ],
)
def test_saliency_by_hand(model: str, expected: list[list[float]], assert_near: Near) -> None:
    assert_near(SaliencyMap(model)(VOLUME), [expected])


def test_min_max_by_hand(assert_near: Near) -> None:
    maps = torch.tensor([[[2.0, 4.0, 10.0]], [[-1.0, -1.0, 1.0]]])
    assert_near(min_max(maps), [[[0.0, 0.25, 1.0]], [[0.0, 0.0, 1.0]]])


@pytest.mark.parametrize("level", [0.0, 5.0, -3.0])
def test_a_map_without_a_range_is_nothing(level: float) -> None:
    maps = torch.full((2, 3, 4), level, requires_grad=True)
    laid = min_max(maps)
    assert torch.equal(laid, torch.zeros(2, 3, 4))
    laid.sum().backward()
    assert maps.grad.isfinite().all()


def test_priority_is_the_product(assert_near: Near) -> None:
    mask, saliency = torch.tensor([[[0.5, 1.0, 0.0]]]), torch.tensor([[[1.0, 0.25, 1.0]]])
    assert_near(priority_map(mask, saliency), [[[1.0, 0.5, 0.0]]])


def test_inhibition_by_hand(assert_near: Near) -> None:
    saliency = torch.tensor([[[1.0, 0.5], [0.9, 0.2]]])
    mask = torch.tensor([[[0.25, 0.75], [0.0, 0.1]]])
    assert_near(InhibitionOfReturn()(saliency, mask, torch.tensor([[2, 2]])), [[[0.75, 0.0], [0.0, 0.1]]])


def test_what_is_left_is_cut_from_the_graph() -> None:
    tensors: list[Tensor] = [torch.rand(1, 2, 2, requires_grad=True) for _ in range(2)]
    assert not InhibitionOfReturn()(*tensors, torch.tensor([[0]])).requires_grad


def naive_mask(attention: GaussianMixtureAttention, state: Tensor, grid: tuple[int, int]) -> Tensor:
    """Section 3 of the paper, in loops."""
    m, n = grid
    masks = []
    for numbers in attention.parameters_of(state).tolist():
        k = attention.components
        alphas = [math.exp(a) for a in numbers[:k]]
        mask = torch.zeros(m, n, dtype=torch.float64)
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                for c in range(k):
                    sigma = [1 / (1 + math.exp(-numbers[group * k + c])) for group in (1, 2, 3)]
                    beta, kappa1, kappa2 = 1.5 + 0.5 * sigma[0], sigma[1] * m, sigma[2] * n
                    spot = math.exp(-beta * ((kappa1 - i) ** 2 + (kappa2 - j) ** 2))
                    mask[i - 1, j - 1] += alphas[c] / sum(alphas) * spot
        masks.append(mask)
    return torch.stack(masks)


@pytest.mark.parametrize("grid", [(7, 7), (3, 5), (1, 1)])
def test_the_formula_in_loops(grid: tuple[int, int], assert_near: Near) -> None:
    attention = GaussianMixtureAttention(6, components=3).double()
    state = torch.randn(4, 6, dtype=torch.float64) * 3
    assert_near(attention.mask(state, grid), naive_mask(attention, state, grid))
