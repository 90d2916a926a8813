"""Answers and maps of scenes that are rendered again with one thing changed."""

import pytest
import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.maps.interventions import (
    Moved,
    causal_follow,
    cause_pairs,
    cause_top,
    gained,
    map_follow,
    map_hold,
    map_specific,
    map_turn,
    misplaced,
    object_effects,
    off_objects,
)
from saccade.metrics.maps.localisation import mass_on, total_variation


def test_an_answer_that_follows_is_the_new_truth_whatever_the_first_answer_was():
    after, new, old = torch.tensor([3, 2, 3]), torch.tensor([3, 3, 3]), torch.tensor([0, 2, 1])
    assert causal_follow(after, new, old).tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="old answer"):
        causal_follow(after, new, torch.tensor([0, 3, 1]))


PICTURES, SIDE, BOX = 2000, 12, 3


def boxes(corner: Tensor) -> Tensor:
    """(B,H,W) bool: squares of 3 × 3 pixels with their upper left at ``corner`` (B,2)."""
    at = torch.arange(SIDE)
    rows = (at >= corner[:, :1]) & (at < corner[:, :1] + BOX)  # (B,H)
    columns = (at >= corner[:, 1:]) & (at < corner[:, 1:] + BOX)  # (B,W)
    return rows[:, :, None] & columns[:, None, :]


def drawn(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Target and other in the upper half, and both after a move to the lower half; none overlap: (B,H,W) bool."""
    random = torch.Generator().manual_seed(seed)
    jitter = torch.randint(0, 3, (PICTURES, 4, 2), generator=random)  # (B,4,2)
    corners = jitter + torch.tensor([[0, 0], [0, 6], [6, 0], [6, 6]])
    return tuple(boxes(corners[:, each]) for each in range(4))  # type: ignore[return-value]


TARGET, OTHER, TARGET_NEW, OTHER_NEW = drawn(0)


def scores_of(make) -> dict[str, Tensor]:
    """Every score of the maps that ``make(asked, mask of target, mask of other)`` gives; ``asked`` is 0 or 1."""
    nothing = torch.zeros_like(TARGET)
    before = make(0, TARGET, OTHER)
    target, other = make(0, TARGET_NEW, OTHER), make(0, TARGET, OTHER_NEW)
    removed = make(0, nothing, OTHER), make(0, TARGET, nothing)
    return {
        "follow": map_follow(before, Moved(target, TARGET, TARGET_NEW), Moved(other, OTHER, OTHER_NEW)),
        "turn": map_turn(before, make(1, TARGET, OTHER), TARGET, OTHER),
        "specific": (map_specific(before, target, other) + map_specific(before, *removed)) / 2,
        "hold": map_hold(before, other),
    }


def near(values: Tensor, expected: float) -> bool:
    """Whether a mean lies within four of its standard errors."""
    return abs(float(values.mean()) - expected) < 4 * float(values.std()) / len(values) ** 0.5


@pytest.mark.parametrize("is_noise", [False, True])
def test_maps_that_never_move_say_nothing(is_noise):
    noise = torch.rand(PICTURES, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    found = scores_of(lambda asked, target, other: noise if is_noise else torch.ones_like(noise))
    for name, expected in (("follow", 0), ("turn", 0), ("specific", 0.5), ("hold", 1)):
        assert found[name].eq(expected).all(), name


def test_fresh_noise_says_nothing_within_its_sampling_error():
    random = torch.Generator().manual_seed(2)
    found = scores_of(lambda *_: torch.rand(PICTURES, SIDE, SIDE, generator=random) ** 4)
    assert near(found["follow"], 0)
    assert near(found["turn"], 0)
    assert near(found["specific"], 0.5)
    assert found["follow"].std() > 0.01
    assert found["hold"].mean() < 0.6


def test_maps_of_all_objects_that_ignore_the_question_say_nothing():
    found = scores_of(lambda asked, target, other: (target | other).float() + 0.01)
    assert found["follow"].abs().max() < 1e-6
    assert found["turn"].eq(0).all()
    assert found["specific"].eq(0.5).all()
    assert found["hold"].mean() < 0.7


def test_the_mask_of_what_is_asked_for_has_all():
    found = scores_of(lambda asked, target, other: (other if asked else target).float() + 1e-9)
    for name, expected in (("follow", 1.0), ("turn", 1.0), ("specific", 1.0), ("hold", 1.0)):
        assert torch.allclose(found[name], torch.tensor(expected), atol=1e-5), name


def test_numbers_by_hand():
    """One row of four pixels; the target moves from the first to the last, the other from the second to the third."""
    place = torch.eye(4, dtype=torch.bool)[:, None, None]  # (4,1,1,4): one mask for each pixel
    before = torch.tensor([[[4.0, 2.0, 1.0, 1.0]]])  # .5 .25 .125 .125
    target = torch.tensor([[[1.0, 2.0, 1.0, 4.0]]])  # .125 .25 .125 .5
    other = torch.tensor([[[4.0, 1.0, 2.0, 1.0]]])  # .5 .125 .25 .125
    assert mass_on(before, place[0]).tolist() == [0.5]
    assert mass_on(before, torch.stack([place[0, 0], place[3, 0]])[None]).tolist() == [[0.5, 0.125]]
    assert total_variation(before, target).tolist() == [0.375]
    assert gained(before, Moved(target, place[0], place[3])).tolist() == [0.375]  # ½[.375 + .375]
    assert gained(before, Moved(other, place[1], place[2])).tolist() == [0.125]  # ½[.125 + .125]
    follow = map_follow(before, Moved(target, place[0], place[3]), Moved(other, place[1], place[2]))
    assert follow.tolist() == [0.25]
    assert map_turn(before, target, place[0], place[3]).tolist() == [0.375]
    assert map_specific(before, target, other).tolist() == [1.0]
    assert map_specific(before, other, other).tolist() == [0.5]
    assert map_hold(before, other).tolist() == [0.875]


def test_effects_by_hand():
    before = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    after = torch.tensor([
        [[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]],  # TV .5 and 0; 0 and 0
        [[[0.0, 1.0], [0.5, 0.5]], [[9.0, 9.0], [9.0, 9.0]]],  # TV 1 and .5; not there, so never read
    ])  # fmt: skip
    effects = object_effects(before, after, torch.tensor([[True, True], [True, False]]))
    assert effects[0].tolist() == [0.25, 0.0]
    assert effects[1, 0] == 0.75
    assert effects[1, 1].isnan()


def test_cause_rank_by_hand():
    effects = torch.tensor([[0.60, 0.02, 0.00], [0.60, 0.30, torch.nan], [0.08, 0.02, 0.00], [0.02, 0.01, 0.00]])
    mass = torch.tensor([[0.5, 0.1, 0.2], [0.2, 0.4, 0.9], [0.2, 0.3, 0.1], [0.3, 0.2, 0.1]])
    assert cause_top(mass, effects)[:2].tolist() == [1.0, 0.0]  # the object that is not there does not count
    assert cause_top(mass, effects)[2:].isnan().all()  # max e < .1
    pairs = cause_pairs(mass, effects)
    assert pairs[:3].tolist() == [1.0, 0.0, 0.5]  # 0-1 and 0-2; 0-1; 0-1 wrong and 0-2 right
    assert pairs[3].isnan()
    assert cause_top(torch.ones(1, 3), effects[:1]).item() == pytest.approx(1 / 3)  # all share the most mass
    assert cause_pairs(torch.ones(1, 3), effects[:1]).item() == 0.5


def test_misplaced_by_hand():
    masks = torch.eye(4, dtype=torch.bool)[None, :3, None]  # (1,3,1,4): three objects of one pixel, one empty pixel
    maps = torch.tensor([[[5.0, 2.0, 1.0, 2.0]]])
    effects = torch.tensor([[0.6, 0.2, 0.04]])
    assert misplaced(maps, masks, effects).item() == pytest.approx(1 / 8)
    assert off_objects(maps, masks).item() == pytest.approx(2 / 10)
    assert misplaced(maps, masks, torch.tensor([[0.6, torch.nan, 0.04]])).item() == pytest.approx(1 / 6)
    assert misplaced(maps, masks, torch.tensor([[0.04, 0.0, 0.0]])).isnan().all()
    assert misplaced(torch.tensor([[[0.0, 0.0, 0.0, 1.0]]]), masks, effects).isnan().all()


@pytest.mark.parametrize(
    "score",
    [
        lambda: total_variation(torch.rand(3, 4, 4), torch.rand(1, 4, 4)),
        lambda: cause_top(torch.rand(1, 2), torch.rand(3, 2)),
    ],
)
def test_other_shapes_do_not_broadcast(score) -> None:
    with pytest.raises(ShapeError):
        score()
