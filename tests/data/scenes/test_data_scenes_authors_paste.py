"""The authors' drawing by Pillow, worked out by hand; saccade's drawing of that name, and how far its own lies."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from authors_paste import drawn
from saccade.data.scenes import kernels
from saccade.data.scenes.drawing import Drawing, render, resized
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.sampler import sample_layout
from saccade.families.question.scenes import SceneData, SceneDataConfig

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def resized_here(glyph: np.ndarray, side: int) -> np.ndarray:
    """A glyph as saccade resizes it: Pillow's differs by up to 2 of 255, which counts twice where ink does."""
    return resized(torch.from_numpy(glyph)[None], torch.tensor([side]), side)[0].byte().numpy()


def authors_scenes(name: str, drawing: Drawing = "authors") -> SceneLayout:
    data = SceneData(SceneDataConfig(name, glyphs="pack", drawing=drawing), "test")
    return sample_layout(data.spec, data.glyphs, data.seed, torch.arange(24))


def by_pillow(layout: SceneLayout, **how: Any) -> np.ndarray:
    """(B,H,W,3) the scenes of a layout, pasted by Pillow onto saccade's backgrounds."""
    behind = layout.spec.background(layout.glyphs, layout.seed, layout.index, layout.spec.size)
    pictures = behind.permute(0, 2, 3, 1).contiguous().numpy()
    return np.stack([drawn(layout, scene, pictures[scene], **how) for scene in range(len(layout))])


def on_cuda(layout: SceneLayout) -> SceneLayout:
    """The same scenes on a GPU."""
    tensors = {name: column.cuda() for name, column in layout.tensors().items()}
    return replace(layout, glyphs=layout.glyphs.to("cuda"), **tensors)


def apart(layout: SceneLayout, expected: np.ndarray) -> np.ndarray:
    """How far the pictures of a layout are from others (B,H,W,3), in 255ths."""
    return np.abs(render(layout).cpu().permute(0, 2, 3, 1).numpy().astype(int) - expected)


@pytest.mark.parametrize("name", ["mref", "mdist", "mbg"])
def test_scenes_are_what_pillow_pastes(name: str) -> None:
    layout = authors_scenes(name)
    pasted_by_pillow = by_pillow(layout)
    assert apart(layout, by_pillow(layout, resize=resized_here)).max() <= 1
    found = apart(layout, pasted_by_pillow)
    assert (found > 2).mean() < 1e-4
    assert found.max() <= 3  # where Pillow's bilinear filter is off by 2, and the ink is nearly full


def test_the_makers_on_the_host_are_bit_equal() -> None:
    """NumPy; and torch, which is left the objects that may lie over each other."""
    for name in ("mref", "mdist", "mbg"):
        for drawing in get_args(Drawing):
            layout = authors_scenes(name, drawing)
            assert torch.equal(render(replace(layout, may_overlap=True)), render(layout)), (name, drawing)


def test_both_draws_every_other_scene_as_the_authors_do_and_mostly_three_of_four() -> None:
    blend, authors, both, mostly = (render(authors_scenes("mdist", drawing)) for drawing in get_args(Drawing))
    assert torch.equal(both[::2], blend[::2])
    assert torch.equal(both[1::2], authors[1::2])
    assert torch.equal(mostly[::4], blend[::4])
    for later in (1, 2, 3):
        assert torch.equal(mostly[later::4], authors[later::4])
    assert not torch.equal(blend[0], authors[0])


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("drawing", get_args(Drawing))
@pytest.mark.parametrize("name", ["mref", "mdist", "mbg"])
def test_gpu_draws_the_bytes_of_the_cpu(name: str, drawing: Drawing, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernels, and by torch's own operations."""
    here = authors_scenes(name, drawing)
    assert kernels.why_no_kernels(torch.device("cuda")) == ""
    assert torch.equal(render(on_cuda(here)).cpu(), render(here))
    monkeypatch.setattr(kernels, "_failure", "left out by the test")
    assert torch.equal(render(on_cuda(here)).cpu(), render(here))
