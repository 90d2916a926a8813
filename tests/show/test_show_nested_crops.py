"""Nested crops on their picture: frames where the crops lie, darker outside, and what was said at each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.show.nested_crops import nested_crops
from saccade.trace import AttentionTrace, Look

SIZE = 400


def crop(name: str, box: tuple[float, float, float, float]) -> Look:
    """A crop of a picture of 400 × 400 pixels, read at 10 × 10."""
    frame = geometry.crop_frame(torch.tensor([box], dtype=torch.float64), (10, 10))
    return Look(name, "crop", "crop", frame=frame, grid=(10, 10))


@pytest.fixture
def trace() -> AttentionTrace:
    """Two crops, one inside the other."""
    looks = (crop("scale2", (100, 120, 300, 320)), crop("scale3", (150, 180, 250, 280)))
    return AttentionTrace(looks, answer=torch.tensor([0]), total="mean")


def drawn(trace: AttentionTrace, **options: object) -> np.ndarray:
    """The drawing on a grey picture."""
    return np.asarray(nested_crops(Image.new("RGB", (SIZE, SIZE), (120, 120, 120)), trace, **options)).astype(int)


def test_frames_lie_where_the_crops_are(trace: AttentionTrace) -> None:
    """White lines on the edges of both boxes, at the height of their middles; none elsewhere in that row."""
    row = drawn(trace)[230, :, 0]
    bright = set(np.flatnonzero(row > 250).tolist())
    for edge in (100, 150, 250, 300):
        assert bright & set(range(edge - 3, edge + 3)), edge
    assert all(min(abs(place - edge) for edge in (100, 150, 250, 300)) <= 4 for place in bright)


def test_what_fewer_crops_show_is_darker(trace: AttentionTrace) -> None:
    """Inside both the picture is as it was; between them darker; outside darkest."""
    pixels = drawn(trace)[..., 0]
    inner, between, outside = pixels[230, 200], pixels[300, 200], pixels[380, 200]
    assert inner == 120
    assert inner > between > outside


def test_each_frame_says_its_name_and_what_was_said(trace: AttentionTrace) -> None:
    """A plate above the frame; it is longer with an answer on it."""
    plain, told = drawn(trace), drawn(trace, said={"scale2": "a very long answer"})
    assert (plain[105:118, 101:140] > 200).any()
    assert (told[105:118, 200:230].mean()) > (plain[105:118, 200:230].mean())


def test_only_several_crops_are_nested(trace: AttentionTrace) -> None:
    """One crop, or a crop beside a map, is drawn as before."""
    soft = Look("map", "soft", "multiplier", torch.full((1, 2, 2), 0.25), "softmax", torch.eye(2, 3))
    assert trace.is_nested
    assert not AttentionTrace(trace.looks[:1], answer=trace.answer).is_nested
    assert not AttentionTrace((*trace.looks, soft), answer=trace.answer).is_nested


def test_plates_do_not_cover_each_other_and_are_left_out_where_there_is_no_room(trace: AttentionTrace) -> None:
    """On a low picture the second plate finds no place beside the first; on a narrow one neither fits."""
    looks = (crop("scale2", (100, 0, 300, 30)), crop("scale3", (110, 0, 210, 30)))
    low = AttentionTrace(looks, answer=torch.tensor([0]), total="mean")
    said = {"scale2": "red", "scale3": "blue"}
    picture = Image.new("RGB", (SIZE, 30), (120, 120, 120))
    both = np.asarray(nested_crops(picture, low, said=said))
    first = np.asarray(nested_crops(picture, low, said={"scale2": "red", "scale3": "blue" * 30}))
    assert np.array_equal(both, first)
    narrow = Image.new("RGB", (40, SIZE), (120, 120, 120))
    shown = np.asarray(nested_crops(narrow, trace, said=said))
    assert not (shown.min(-1) > 250).all(1).any()  # no plate from edge to edge
    assert np.array_equal(shown, np.asarray(nested_crops(narrow, trace, said={"scale2": "a", "scale3": "b"})))
