"""The trace: what it accepts, how it slices, its maps and rebuilt contexts, and edits of looks, by hand."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.trace import AttentionTrace, Look

Near = Callable[..., None]

IDENTITY = geometry.identity()


def uniform(*shape: int, cells: int = 2) -> Tensor:
    """Weights that sum to 1 over the last ``cells`` axes."""
    return torch.full(shape, 1.0 / torch.Size(shape[-cells:]).numel())


def soft(weights: Tensor | None = None, **fields: Any) -> Look:
    weights = uniform(2, 3, 4) if weights is None else weights
    usual: dict[str, Any] = {"name": "map", "kind": "soft", "role": "multiplier", "norm": "softmax", "frame": IDENTITY}
    return Look(**{**usual, **fields, "weights": weights})


def crop(frame: Tensor = IDENTITY, **fields: Any) -> Look:
    return Look(**{"name": "crop", "kind": "crop", "role": "crop", "frame": frame, "grid": (2, 2), **fields})


EVERY_KIND = {
    "soft": soft(),
    "soft with steps": soft(uniform(2, 5, 3, 4), gain=torch.rand(2, 5), emits=torch.ones(2, 5, dtype=torch.long)),
    "hard, chosen": soft(kind="hard", choice=torch.tensor([0, 11]), log_prob=torch.tensor([-1.0, 0.0])),
    "gate": soft(torch.rand(2, 3, 4), kind="gate", norm="sigmoid"),
    "gate with steps": soft(torch.rand(2, 5, 3, 4), kind="gate", norm="none", full=torch.rand(2, 5, 6, 3, 4)),
    "input": soft(torch.rand(2, 3, 4), role="input", norm="l2"),
    "slots": Look("hop", "slots", "multiplier", uniform(2, 6, cells=1), norm="softmax"),
    "crop": crop(IDENTITY.expand(2, 2, 3), active=torch.tensor([True, False])),
    "crop shared by all": crop(),
}  # fmt: skip


def test_given_looks_are_marked_and_promise_nothing() -> None:
    """Weights that add up to 2 break the promise of a softmax, unless they were given."""
    looks = (soft(), soft(2 * uniform(2, 3, 4), name="edited"))
    trace = AttentionTrace(looks, meta={"model": "soft"})
    with pytest.raises(DataError, match="'edited': norm 'softmax' promises a sum of 1"):
        trace.validate()
    marked = trace.mark_given({"edited": trace.look("edited").weights}).validate()
    assert marked.meta == {"model": "soft", "given": ["edited"]}
    assert [look.norm for look in marked.looks] == ["softmax", "none"]
    assert torch.equal(marked.look("edited").weights, looks[1].weights)
    assert "given" not in trace.meta


@pytest.mark.parametrize("look", EVERY_KIND.values(), ids=EVERY_KIND)
def test_every_kind_is_accepted(look: Look) -> None:
    assert look.validate() is look
    trace = AttentionTrace((look,))
    assert trace.validate() is trace


def test_what_is_inactive_may_be_anything() -> None:
    weights = uniform(2, 2, 3, 4).clone()
    weights[1, 1] = float("nan")
    active = torch.tensor([[True, True], [True, False]])
    choice, log_prob = torch.tensor([[0, 1], [2, -1]]), torch.tensor([[-1.0, -1.0], [-1.0, 7.0]])
    soft(weights, kind="hard", active=active, choice=choice, log_prob=log_prob).validate()
    with pytest.raises(DataError, match="NaN"):
        soft(weights, kind="hard").validate()
    with pytest.raises(DataError, match="outside its 12 cells"):
        soft(uniform(2, 2, 3, 4), kind="hard", choice=choice).validate()


@pytest.mark.parametrize(
    ("look", "named"),
    [
        (soft(kind="sotf"), "'sotf'.*'soft'"),
        (Look("a", "slots", "multiplier", uniform(2, 1, 3, 4)), "weights"),
        (soft(frame=IDENTITY.expand(3, 2, 3)), "frame"),
        (soft(uniform(2, 3, 4) * 1.01), "softmax.*0.01"),
        (soft(torch.full((1, 1, 1), float("inf")), norm="none"), "NaN or infinity"),
        (soft(scores=torch.zeros(2, 4, 3)), "scores"),
        (soft(kind="gate", norm="none", full=torch.zeros(2, 6, 4, 3)), "full"),
        (soft(choice=torch.tensor([0, 12])), "12 cells"),
        (crop(grid=None), "grid"),
        (crop(weights=uniform(2, 2, 2)), "weights"),
    ],
)  # fmt: skip
def test_each_defect_is_refused(look: Look, named: str) -> None:
    with pytest.raises(DataError, match=named):
        look.validate()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"looks": ()}, "at least one look"),
        ({"looks": (soft(), soft())}, "map, map"),
        ({"looks": (soft(), soft(uniform(3, 3, 4), name="b"))}, "batch of 2"),
        ({"image_size": torch.zeros(3, 2)}, "image_size"),
        ({"looks": (soft(uniform(2, 3, 4) * 2),)}, "softmax"),
    ],
)
def test_each_defect_of_a_trace_is_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(DataError, match=named):
        AttentionTrace(**{"looks": (soft(),), **fields}).validate()


def full_trace() -> AttentionTrace:
    words = soft(
        torch.softmax(torch.randn(4, 3, 6), -1).reshape(4, 3, 2, 3), name="word", gain=torch.rand(4, 3),
        scores=torch.randn(4, 3, 2, 3), active=torch.ones(4, 3).bool(), emits=torch.arange(12).reshape(4, 3),
        frame=IDENTITY.repeat(4, 1, 1),
    )  # fmt: skip
    return AttentionTrace(
        (soft(uniform(4, 3, 4).clone()), words, crop()),
        answer=torch.arange(4),
        canvas=IDENTITY.repeat(4, 1, 1),
        image_size=torch.tensor([[8, 9]] * 4),
        meta={"model": "x"},
    ).validate()


def test_one_example_is_a_view_with_its_batch_axis() -> None:
    trace = full_trace()
    one = trace[2].validate()
    assert len(one) == 1
    assert one.answer.tolist() == [2]
    assert one.meta == {"model": "x"}
    for whole, part in zip(trace.looks, one.looks):
        for name, tensor in part.tensors().items():
            source = whole.tensors()[name]
            shared = name == "frame" and source.dim() == 2
            assert tensor.data_ptr() == (source if shared else source[2]).data_ptr(), name


ONE = torch.tensor([[[0.1, 0.2], [0.3, 0.4]]])
TWO = torch.tensor([[[1.0, 0.5], [0.0, 0.25]]])
SQUARE = torch.tensor([[2, 2]])


def total_of(*looks: Look, how: Any) -> Tensor:
    return AttentionTrace(looks, image_size=SQUARE, total=how).validate().image_map()


def gate(weights: Tensor = TWO, **fields: Any) -> Look:
    return soft(weights, **{"name": "gate", "kind": "gate", "norm": "sigmoid", **fields})


def test_totals_by_hand(assert_near: Near) -> None:
    """Product: 0.1·1, 0.2·0.5, 0.3·0, 0.4·0.25. Mean: half the sums. Last: the second."""
    assert_near(total_of(gate(), soft(ONE), how="product"), [[[0.1, 0.1], [0.0, 0.1]]])
    assert_near(total_of(gate(), soft(ONE), how="mean"), [[[0.55, 0.35], [0.15, 0.325]]])
    assert_near(total_of(gate(), soft(ONE), how="last"), ONE)


def test_inputs_and_slots_are_not_part_of_the_total(assert_near: Near) -> None:
    prior = gate(role="input", name="prior")
    hop = Look("hop", "slots", "multiplier", uniform(1, 5, cells=1), norm="softmax")
    for how in ("mean", "product", "last"):
        assert_near(total_of(soft(ONE), prior, hop, how=how), ONE)


def test_slots_have_no_map() -> None:
    trace = AttentionTrace((EVERY_KIND["slots"],), image_size=torch.tensor([[2, 2]] * 2))
    with pytest.raises(DataError, match="lies on slots"):
        trace.image_map("hop")
    with pytest.raises(DataError, match="there is no total map"):
        trace.image_map()


def test_crops_and_maps_combine(assert_near: Near) -> None:
    """A crop over the left column multiplies the map by 1 on the left and 0 on the right."""
    left = crop(geometry.crop_frame(torch.tensor([[0.0, 0.0, 1.0, 2.0]]), (2, 2)))
    total = total_of(left, soft(ONE), how="product")
    assert_near(total, [[[0.1, 0.0], [0.3, 0.0]]])
    assert total.dtype == torch.float32


def test_a_policy_counts_where_nothing_else_was_attended(assert_near: Near) -> None:
    """What was drawn from is no part of what multiplied the features; alone it is all there is."""
    drawn = soft(torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]), kind="hard", role="policy", name="glimpse")
    mask = soft(torch.tensor([[[0.5, 0.0], [0.0, 0.25]]]), norm="sigmoid", name="covert")
    for how in ("mean", "product", "last"):
        assert_near(total_of(mask, drawn, how=how), mask.weights)
        assert_near(total_of(drawn, how=how), drawn.weights)


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.sampled_from(["mean", "product", "last"]))
def test_totals_against_a_loop(active: list[bool], how: str) -> None:
    maps = torch.rand(1, len(active), 2, 2)
    kept = [maps[0, step] for step, on in enumerate(active) if on]
    neutral = torch.ones(2, 2) if how == "product" else torch.zeros(2, 2)
    expected = neutral
    for number, current in enumerate(kept, start=1):
        if how == "product":
            expected = expected * current
        elif how == "mean":
            expected = expected + (current - expected) / number
        else:
            expected = current
    total = total_of(soft(maps, norm="none", active=torch.tensor([active])), how=how)
    torch.testing.assert_close(total[0], expected)


def test_a_map_comes_back_to_the_original_picture() -> None:
    """A 60×30 picture inside a 40×40 input: 40×20 pixels at left 10, so input (x, y) is picture ((x−10)·1.5, y·1.5).
    The 4×4 grid of 10-pixel cells: cell (row 2, column 1) lies at input 10..20 × 20..30, picture 0..15 × 30..45."""
    fit = geometry.fit_inside((60, 30), (40, 40))
    weights = torch.zeros(1, 4, 4)
    weights[0, 2, 1] = 1
    look = soft(weights, frame=geometry.scale_shift((10, 10), (0, 0)))
    trace = AttentionTrace((look,), canvas=fit.canvas[None], image_size=torch.tensor([[60, 30]])).validate()
    laid = trace.image_map()
    assert laid.shape == (1, 60, 30)
    assert divmod(int(laid.argmax()), 30) == (37, 7)  # the pixel whose centre is (7.5, 37.5)
    assert laid.max() == 1
    assert laid[0, 0].max() == 0
    half = trace.image_map(size=(30, 15))  # the same at half the size
    assert divmod(int(half.argmax()), 15) == (18, 3)


def test_chosen_cells_come_back_to_the_original_picture(assert_near: Near) -> None:
    """The same picture: the cells 9 (row 2, column 1) and 14 have their centres at (7.5, 37.5) and (22.5, 52.5)."""
    fit = geometry.fit_inside((60, 30), (40, 40))
    frame = geometry.scale_shift((10, 10), (0, 0))
    even = torch.full((1, 2, 4, 4), 1 / 16)
    look = Look("glimpse", "hard", "policy", even, norm="softmax", frame=frame, choice=torch.tensor([[9, 14]]))
    trace = AttentionTrace((look,), canvas=fit.canvas[None], image_size=torch.tensor([[60, 30]])).validate()
    assert_near(trace.chosen_on(look).float(), torch.tensor([[[7.5, 37.5], [22.5, 52.5]]]))
    assert_near(trace.chosen_on(look, (30, 15)).float(), torch.tensor([[[3.75, 18.75], [11.25, 26.25]]]))
    with pytest.raises(DataError, match="holds no choices"):
        trace.chosen_on(soft(even[:, 0]))


def test_pictures_of_different_sizes_are_asked_for_one_by_one(assert_near: Near) -> None:
    sizes = torch.tensor([[4, 4], [8, 2]])
    canvas = torch.stack([geometry.identity(), geometry.scale_shift((0.5, 2), (0, 0))])
    trace = AttentionTrace((soft(torch.rand(2, 4, 4), norm="none"),), canvas=canvas, image_size=sizes).validate()
    with pytest.raises(DataError, match="2 known sizes"):
        trace.image_map()
    assert [tuple(part.image_map().shape) for part in trace] == [(1, 4, 4), (1, 8, 2)]
    together = trace.image_map(size=(5, 7))
    assert_near(together, torch.cat([part.image_map(size=(5, 7)) for part in trace]))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_crop_is_laid_where_its_frame_lies() -> None:
    """A network cuts on the GPU, the canvas stays in main memory: the map of the crop comes out on the GPU."""
    frame, size = geometry.crop_frame(torch.tensor([[0.0, 0.0, 5.0, 7.0]]), (2, 2)), torch.tensor([[10, 10]])
    expected, box = AttentionTrace((crop(frame),), image_size=size).image_map(), crop(frame.cuda())
    assert AttentionTrace((box,), image_size=size).image_map().is_cuda
    torch.testing.assert_close(AttentionTrace((box,), image_size=size).image_map().cpu(), expected)


VALUES = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 10.0], [0.0, 0.0]]]])  # (1,2,2,2)


def hard(role: str, choice: list[int]) -> Look:
    return soft(ONE, kind="hard", role=role, choice=torch.tensor(choice))


@pytest.mark.parametrize(
    ("look", "expected"),
    [(soft(ONE), [3.0, 2.0]), (hard("multiplier", [1]), [2.0, 10.0]), (hard("mixture", [1]), [3.0, 2.0])],
    ids=["soft", "hard takes the chosen cell", "a mixture mixes"],
)
def test_contexts_by_hand(look: Look, expected: list[float], assert_near: Near) -> None:
    """0.1·1 + 0.2·2 + 0.3·3 + 0.4·4 = 3 and 0.2·10 = 2."""
    assert_near(look.rebuild(VALUES), [expected])


def test_steps_and_gain_by_hand(assert_near: Near) -> None:
    """Second step: the first cell alone, (1, 0), doubled."""
    first_cell = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])
    look = soft(torch.stack([ONE, first_cell], dim=1), gain=torch.tensor([[1.0, 2.0]]))
    assert_near(look.rebuild(VALUES), [[[3.0, 2.0], [2.0, 0.0]]])


def test_a_gate_multiplies_cell_by_cell(assert_near: Near) -> None:
    assert_near(gate().rebuild(VALUES), [[[[1.0, 1.0], [0.0, 1.0]], [[0.0, 5.0], [0.0, 0.0]]]])


def test_a_channelwise_gate_uses_its_channels(assert_near: Near) -> None:
    full = torch.stack([TWO, torch.full_like(TWO, 0.1)], dim=1)
    look = gate(full.mean(1), full=full)
    assert_near(look.rebuild(VALUES), [[[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]]])


def test_slots_by_hand(assert_near: Near) -> None:
    """¼·(1, 0) + ¾·(0, 4) = (0.25, 3); the second hop takes the first slot."""
    memory = torch.tensor([[[1.0, 0.0], [0.0, 4.0]]])  # (1,S,C)
    look = Look("hop", "slots", "multiplier", torch.tensor([[0.25, 0.75]]), norm="softmax")
    assert_near(look.rebuild(memory), [[0.25, 3.0]])
    hops = dataclasses.replace(look, weights=torch.tensor([[[0.25, 0.75], [1.0, 0.0]]]))
    assert_near(hops.rebuild(memory), [[[0.25, 3.0], [1.0, 0.0]]])


def words() -> Look:
    """Two words over two cells."""
    weights = torch.tensor([[[[0.25, 0.75]], [[0.5, 0.5]]]])
    return Look("word", "soft", "multiplier", weights, norm="softmax")


def slots(norm: str, *weights: float) -> Look:
    return Look("hop", "slots", "multiplier", torch.tensor([weights]), norm=norm)


@pytest.mark.parametrize(
    ("edited", "weights"),
    [
        (words().edit(torch.tensor([[False, True]]), step=0), [[[[1.0, 0.0]], [[0.5, 0.5]]]]),  # what is left sums to 1
        (words().edit(torch.tensor([[False, True]]), onto=torch.tensor([[True, False]]), step=1),
         [[[[0.25, 0.75]], [[1.0, 0.0]]]]),
        (words().edit(torch.tensor([[True, False]])), [[[[0.0, 1.0]], [[0.0, 1.0]]]]),
        (slots("softmax", 0.5, 0.3, 0.2).edit(torch.tensor([True, False, False])), [[0.0, 0.6, 0.4]]),
        (slots("sigmoid", 0.5, 0.25).edit(torch.tensor([True, False])), [[0.0, 0.25]]),  # a gate is not scaled
    ],
)  # fmt: skip
def test_weights_that_are_taken_away_or_moved(edited: Look, weights: list) -> None:
    torch.testing.assert_close(edited.weights, torch.tensor(weights))
    assert edited.norm == "none"


def test_another_cell_is_glimpsed() -> None:
    """Cell 3 of 2 × 2 is the last of the second row; each example may have its own."""
    look = Look("glimpse", "hard", "policy", torch.full((2, 3, 2, 2), 0.25), choice=torch.zeros(2, 3, dtype=torch.long))
    edited = look.point(torch.tensor([3, 1]), step=1)
    assert edited.weights[:, 1].tolist() == [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]
    assert bool((edited.weights[:, [0, 2]] == 0.25).all())
    assert edited.choice is None
    assert look.point(2).weights.flatten(2).argmax(-1).tolist() == [[2] * 3] * 2


def test_another_box_is_cut() -> None:
    """A grid of 4 × 2 cells (h, w) over x 10 … 20, y 0 … 8: cells of 5 × 2 pixels that begin at (10, 0)."""
    crop = Look("crop", "crop", "crop", frame=torch.eye(2, 3).expand(2, 2, 3), grid=(4, 2))
    expected = [[[5.0, 0.0, 10.0], [0.0, 2.0, 0.0]]] * 2
    assert crop.aim(torch.tensor([10.0, 0.0, 20.0, 8.0])).frame.tolist() == expected
    assert crop.aim((10, 0, 20, 8)).frame.tolist() == expected


def test_the_first_steps_alone_are_given() -> None:
    assert words().as_given(1)["word"].tolist() == [[[[0.25, 0.75]]]]
    assert words().as_given()["word"].shape == (1, 2, 1, 2)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda: words().edit(torch.tensor([[True, False]]), step=2), "no step 2"),
        (lambda: words().edit(torch.tensor([[1.0, 0.0]])), "bool"),
        (lambda: words().point(2), "cells.*0 … 1"),
        (lambda: words().aim(torch.tensor([0.0, 0.0, 1.0, 1.0])), "edit it with edit"),
        (lambda: words().as_given(0), "has 2 steps"),
    ],
)
def test_what_cannot_be_edited_is_said(edit, message: str) -> None:
    with pytest.raises(DataError, match=message):
        edit()


@pytest.mark.parametrize("box", [[1.0, 0.0, 1.0, 2.0], [0.0, 0.0, float("nan"), 2.0], [2.0, 0.0, 1.0, 2.0]])
def test_a_box_without_area_is_refused(box: list[float]) -> None:
    crop = Look("crop", "crop", "crop", frame=torch.eye(2, 3)[None], grid=(2, 2))
    with pytest.raises(DataError, match="x0 < x1"):
        crop.aim(torch.tensor(box))
    with pytest.raises(DataError, match="boxes"):
        crop.aim(torch.rand(3, 4))
    with pytest.raises(DataError, match="aim"):
        crop.edit(torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(DataError, match="aim"):
        crop.point(0)
