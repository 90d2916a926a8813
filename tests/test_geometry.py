"""Coordinates: frames from layers, crops, canvases and the projection, against hand-worked and measured positions."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

from layer_probe import gradient_centre, made_linear
from saccade import geometry
from saccade.errors import ConfigError

Near = Callable[..., None]

numbers = st.floats(-8, 8, allow_nan=False)


@st.composite
def frames(draw: st.DrawFn) -> Tensor:
    """An affine map (2,3) that can be inverted without losing many digits."""
    values = [draw(numbers) for _ in range(6)]
    assume(abs(values[0] * values[4] - values[1] * values[3]) > 0.1)
    return torch.tensor(values, dtype=torch.float64).reshape(2, 3)


def turned(degrees: float, scale: float = 1.0, shift: tuple[float, float] = (0.0, 0.0)) -> Tensor:
    """A rotation by ``degrees``, a scale and a shift as a frame."""
    c, s = math.cos(math.radians(degrees)) * scale, math.sin(math.radians(degrees)) * scale
    return torch.tensor([[c, -s, shift[0]], [s, c, shift[1]]], dtype=torch.float64)


@given(frames())
def test_inverse_undoes_the_frame(frame: Tensor) -> None:
    for both in (geometry.compose(geometry.invert(frame), frame), geometry.compose(frame, geometry.invert(frame))):
        torch.testing.assert_close(both, geometry.identity(), rtol=0, atol=1e-9)


@given(frames(), frames(), numbers, numbers)
def test_compose_applies_the_inner_one_first(outer: Tensor, inner: Tensor, x: float, y: float) -> None:
    point = torch.tensor([x, y], dtype=torch.float64)
    together = geometry.apply(geometry.compose(outer, inner), point)
    torch.testing.assert_close(together, geometry.apply(outer, geometry.apply(inner, point)), rtol=1e-9, atol=1e-9)


def test_a_turned_box_reaches_to_all_four_corners(assert_near: Near) -> None:
    """A quarter turn, x' = −y, y' = x, and a slant, x' = x − 2y, where (1,2) and (4,6) alone would say −8 … −3."""
    box = torch.tensor([1.0, 2.0, 4.0, 6.0])
    assert_near(geometry.apply_to_boxes(torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]), box), [-6.0, 1.0, -2.0, 4.0])
    assert_near(geometry.apply_to_boxes(torch.tensor([[1.0, -2.0, 0.0], [0.0, 1.0, 9.0]]), box), [-11, 11, 0, 15])


@pytest.mark.parametrize(
    ("layer", "scale", "first_centre"),
    [
        (nn.Conv2d(1, 1, 3), 1, 1.5),  # valid: cell 0 sees pixels 0..2, centre of pixel 1
        (nn.Conv2d(1, 1, 3, padding=1), 1, 0.5),
        (nn.Conv2d(1, 1, 3, stride=2, padding=1), 2, 0.5),
        (nn.Conv2d(1, 1, 3, dilation=2), 1, 2.5),  # sees 0, 2, 4
        (nn.Conv2d(1, 1, 4, padding="same"), 1, 1.0),  # torch pads one before, two behind: sees -1..2
        (nn.AvgPool2d(3, 2, 1), 2, 0.5),
    ],
    ids=str,
)
def test_one_layer_by_hand(layer: nn.Module, scale: float, first_centre: float, assert_near: Near) -> None:
    frame = geometry.frame_through(layer)
    assert_near(frame[0, 0], scale)
    assert_near(geometry.apply(frame, torch.tensor([0.5, 0.5])), [first_centre, first_centre])


@st.composite
def layers(draw: st.DrawFn) -> nn.Module:
    """A convolution or pooling of any kind, padded or not."""
    kernel, stride = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    kind = draw(st.sampled_from(["conv", "dilated", "same", "max", "average"]))
    if kind == "same":
        return nn.Conv2d(1, 1, kernel, padding="same", dilation=draw(st.integers(1, 2)))
    padding = draw(st.integers(0, kernel // 2))
    if kind == "max":
        return nn.MaxPool2d(kernel, stride, padding)
    if kind == "average":
        return nn.AvgPool2d(kernel, stride, padding)
    return nn.Conv2d(1, 1, kernel, stride, padding, dilation=2 if kind == "dilated" else 1)


@pytest.mark.filterwarnings("ignore:Using padding=.same. with even kernel")
@given(st.lists(layers(), min_size=1, max_size=4))
def test_frames_are_where_the_gradient_is(chain: list[nn.Module]) -> None:
    """Away from the border the centre of mass of ∂cell/∂image is the centre that the frame tells."""
    network = nn.Sequential(*[part for layer in chain for part in (layer, nn.ReLU())])
    images = torch.zeros(1, 1, 151, 160, dtype=torch.float64, requires_grad=True)
    features = made_linear(network)(images)
    row, column = features.shape[-2] // 2, features.shape[-1] // 2
    expected = geometry.apply(geometry.frame_through(network), torch.tensor([column + 0.5, row + 0.5]))
    assert gradient_centre(images, features, row, column) == pytest.approx(tuple(expected.tolist()), abs=1e-3)


@pytest.mark.filterwarnings("ignore:Using padding=.same. with even kernel")
@given(st.lists(layers(), min_size=1, max_size=4), st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_grids_are_what_comes_out(chain: list[nn.Module], size: geometry.Size) -> None:
    network = nn.Sequential(*[part for layer in chain for part in (layer, nn.ReLU())])
    told = geometry.grid_through(network, size)
    try:
        made = network(torch.zeros(1, 1, *size))
    except RuntimeError:  # too small for one of the layers
        assert min(told) < 1
    else:
        assert told == tuple(made.shape[-2:])


def test_a_layer_that_does_not_tell_its_grid_makes_it_unknown() -> None:
    class PadsItself(nn.Conv2d):
        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return super().forward(nn.functional.pad(features, (1, 1, 1, 1)))

    own_step = nn.Sequential(nn.Conv2d(1, 1, 3))
    own_step.frame_step = geometry.identity()  # what it does to the grid is its own matter
    for layer in (nn.Upsample(scale_factor=2), nn.MaxPool2d(2, ceil_mode=True), PadsItself(1, 1, 3), own_step):
        assert geometry.grid_through(nn.Sequential(nn.ReLU(), layer), (9, 9)) is None


def test_a_module_may_say_its_own_step(assert_near: Near) -> None:
    upsample = nn.Upsample(scale_factor=2)
    upsample.frame_step = geometry.scale_shift((0.5, 0.5), (0, 0))
    assert_near(geometry.frame_through(nn.Sequential(nn.MaxPool2d(2), upsample)), geometry.identity())


@pytest.mark.parametrize("layer", [nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool2d(3), nn.ConvTranspose2d(1, 1, 2)])
def test_a_layer_of_unknown_kind_is_refused(layer: nn.Module) -> None:
    with pytest.raises(ConfigError, match=f"{type(layer).__name__} does not say .* frame_step"):
        geometry.frame_through(nn.Sequential(nn.ReLU(), layer))


def test_crop_frame_by_hand(assert_near: Near) -> None:
    """A 2×4 grid on the box x 10..30, y 5..9: cells of 5×2 pixels."""
    frame = geometry.crop_frame(torch.tensor([10.0, 5.0, 30.0, 9.0]), (2, 4))
    assert_near(frame, [[5.0, 0.0, 10.0], [0.0, 2.0, 5.0]])
    corners = geometry.apply(frame, torch.tensor([[0.0, 0.0], [4.0, 2.0]]))
    assert_near(corners, [[10.0, 5.0], [30.0, 9.0]])


def test_tilt_by_hand(assert_near: Near) -> None:
    """On 8×6 the centre (4,3) stays; slanted by 0.5 its lower neighbour moves by half, turned by 90° it goes left."""
    turn, slant = torch.tensor([[0.0, math.pi / 2, math.pi / 2], [0.5, 0.0, 0.5]], dtype=torch.float64)
    frames = geometry.tilt_frame(turn, slant, (6, 8))  # (3,2,3)
    assert_near(geometry.apply(frames, torch.tensor([4.0, 3.0])), [[4.0, 3.0]] * 3)
    assert_near(geometry.apply(frames, torch.tensor([4.0, 4.0])), [[4.5, 4.0], [3.0, 3.0], [3.0, 3.5]])
    assert_near(geometry.apply(frames, torch.tensor([5.0, 3.0])), [[5.0, 3.0], [4.0, 4.0], [4.0, 4.0]])
    assert_near(torch.linalg.det(frames[..., :2]), [1.0] * 3)


@given(frames(), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_frames_agree_with_affine_grid(theta: Tensor, grid: geometry.Size) -> None:
    """The point that affine_grid reads for a cell is where the frame puts the cell's centre."""
    picture = (30, 50)
    points = F.affine_grid(theta[None], [1, 1, *grid], align_corners=False)[0]  # (h,w,2) in [-1,1]
    pixels = (points + 1) / 2 * torch.tensor([picture[1], picture[0]], dtype=torch.float64)
    ys, xs = torch.meshgrid(torch.arange(grid[0]) + 0.5, torch.arange(grid[1]) + 0.5, indexing="ij")
    expected = geometry.apply(geometry.theta_to_frame(theta, grid, picture), torch.stack([xs, ys], dim=-1).double())
    torch.testing.assert_close(pixels, expected, rtol=1e-9, atol=1e-9)


def test_sample_cuts_whole_pixels_exactly() -> None:
    picture = torch.rand(2, 1, 9, 9)
    boxes = torch.tensor([[2.0, 3.0, 6.0, 5.0], [0.0, 0.0, 4.0, 2.0]])
    cut = geometry.sample(picture, geometry.crop_frame(boxes, (2, 4)), (2, 4))
    torch.testing.assert_close(cut[0], picture[0, :, 3:5, 2:6])
    torch.testing.assert_close(cut[1], picture[1, :, 0:2, 0:4])


@pytest.mark.parametrize(
    ("picture", "target", "placed"),
    [
        ((200, 100), (100, 100), (100, 50, 0, 25)),
        ((50, 201), (100, 100), (25, 100, 37, 0)),
        ((33, 77), (100, 60), (26, 60, 37, 0)),
        ((1, 1000), (64, 64), (1, 64, 31, 0)),
    ],
)
def test_fit_inside(picture: geometry.Size, target: geometry.Size, placed: tuple[int, ...], assert_near: Near) -> None:
    fit = geometry.fit_inside(picture, target)
    assert (fit.height, fit.width, fit.top, fit.left) == placed
    inside = [[fit.left, fit.top], [fit.left + fit.width, fit.top + fit.height]]
    corners = geometry.apply(fit.canvas, torch.tensor(inside, dtype=torch.float64))
    assert_near(corners, [[0.0, 0.0], [picture[1], picture[0]]])


SOFT_FRAME = geometry.scale_shift((16, 16), (15, 15))  # centres at 23, 39, 55, 71


@given(
    st.floats(2.0**-20, 1, width=32),
    st.sampled_from([SOFT_FRAME, geometry.scale_shift((-3.3, 7.1), (40, -5)), turned(30, 5, (11, 3))]),
    st.tuples(st.integers(1, 33), st.integers(1, 33)),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_a_uniform_map_stays_uniform_to_the_last_bit(
    value: float, frame: Tensor, size: geometry.Size, dtype: torch.dtype
) -> None:
    maps = torch.full((1, 3, 4), value, dtype=dtype)
    laid = geometry.project(maps, frame, size)
    assert laid.dtype == dtype
    assert laid.shape == (1, *size)
    assert bool((laid == maps[0, 0, 0]).all())


def test_between_centres_it_is_linear(assert_near: Near) -> None:
    """Cells at centres 2 and 6: pixels 2.5, 3.5, 4.5, 5.5 are ⅛, ⅜, ⅝, ⅞ of the way; beyond, constant."""
    laid = geometry.project(torch.tensor([[[0.0, 8.0]]]), geometry.scale_shift((4, 1), (0, 0)), (1, 8))
    assert_near(laid[0, 0], [0.0, 0.0, 1.0, 3.0, 5.0, 7.0, 8.0, 8.0])


def test_the_two_ways_of_projecting_agree() -> None:
    """A turn so small that it moves nothing takes the general path; the axis-aligned path must say the same."""
    maps = torch.rand(2, 3, 4, dtype=torch.float64)
    nearly = SOFT_FRAME.clone()
    nearly[0, 1] = 1e-13
    straight, general = (geometry.project(maps, frame, (100, 61)) for frame in (SOFT_FRAME, nearly))
    torch.testing.assert_close(straight, general, rtol=0, atol=1e-9)


def test_a_quarter_turn_turns_the_map(assert_near: Near) -> None:
    """x' = 4 − y, y' = x: the map turns clockwise by 90°."""
    maps = torch.arange(16.0).reshape(1, 4, 4)
    frame = torch.tensor([[0.0, -1.0, 4.0], [1.0, 0.0, 0.0]])
    assert_near(geometry.project(maps, frame, (4, 4)), torch.rot90(maps, -1, (1, 2)))


def test_half_covered_pixels_by_hand(assert_near: Near) -> None:
    """The box x 0.5..2, y 1..2.25 of a 3×3 picture."""
    frame = geometry.crop_frame(torch.tensor([0.5, 1.0, 2.0, 2.25], dtype=torch.float64), (7, 7))
    assert_near(geometry.coverage(frame, (7, 7), (3, 3)), [[[0, 0, 0], [0.5, 1, 0], [0.125, 0.25, 0]]])


def test_turned_crops_keep_their_area_and_place() -> None:
    """A square of side 10 about (16,16), turned by 45°: area 100, a diamond with its corners 7.07 away."""
    frame = geometry.compose(turned(45, 1, (16, 16)), geometry.crop_frame(torch.tensor([-5.0, -5.0, 5.0, 5.0]), (4, 4)))
    covered = geometry.coverage(frame, (4, 4), (32, 32))
    assert covered.sum().item() == pytest.approx(100, rel=0.02)
    assert covered[0, 16, 16 + 6] > 0.5
    assert covered[0, 16 - 4, 16 + 4] == 0
    assert bool((covered[0, 15:17, 12:20] == 1).all())


def test_touched_pixels_of_boxes() -> None:
    """A box that ends inside a pixel touches it, one that ends at its edge does not, NaN touches nothing."""
    boxes = torch.tensor([[[1.0, 0.5, 3.0, 2.0], [2.9, 1.0, 3.1, 9.0]], [[float("nan")] * 4, [-9.0, -9.0, 9.0, 9.0]]])
    found = geometry.touched(boxes, (3, 4))
    assert found.shape == (2, 2, 3, 4)
    assert found[0, 0].int().tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    assert found[0, 1].int().tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert not found[1, 0].any()
    assert found[1, 1].all()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_cells_whose_centre_lies_in_a_box(kind: torch.dtype) -> None:
    """Cells of 10 pixels from (5, 0) on: a left edge belongs to its box, a right edge does not; NaN has no cells."""
    frame = geometry.scale_shift((10.0, 10.0), (5.0, 0.0)).to(kind)  # centres at x 10, 20, 30 and y 5, 15
    boxes = torch.tensor([[[10.0, 5.0, 20.0, 15.0], [11.0, 0.0, 30.5, 20.0], [float("nan")] * 4]])
    found = geometry.cells_in_boxes(boxes, frame, (2, 3))
    expected = [[[1, 0, 0], [0, 0, 0]], [[0, 1, 1], [0, 1, 1]], [[0, 0, 0], [0, 0, 0]]]
    assert found.int().tolist() == [expected]
    turned = torch.tensor([[0.0, 10.0, 0.0], [10.0, 0.0, 0.0]], dtype=kind)  # rows go right and columns down
    assert geometry.cells_in_boxes(boxes[:, :1], turned, (2, 3)).int().tolist() == [[[[0, 0, 0], [1, 0, 0]]]]


def test_shares_of_cells_in_boxes() -> None:
    """By hand on 2×3 cells: a box of one and a half columns and the lower half of the first row; NaN has none."""
    boxes = torch.tensor([[0.5, 0.5, 2.0, 1.0], [float("nan")] * 4, [-3.0, -3.0, 9.0, 9.0]])
    shares = geometry.box_shares(boxes, (2, 3))
    assert shares[0].tolist() == [[0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]
    assert not shares[1].any()
    assert (shares[2] == 1).all()
