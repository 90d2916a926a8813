"""What a model's facts say of the scenes it learned from, in the API and in pages, against the generators."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_trained import facts_of, save_trained

from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.sampler import sample_layout
from saccade.families.caption.scenes import sample_captioned, scene_spec
from saccade.families.multiset.scenes import MultisetSpec, sample_multisets
from saccade.families.question.scenes import SPEC
from saccade.web.page import CANVAS, TrainedScenes, page_entry
from tiny_models import save_tiny

SCENES = 300


def kind(name: str, **more: object) -> TrainedScenes:
    found = page_entry(facts_of(name, **more)).scenes
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "sample", "spec"),
    [
        ("mref", sample_layout, SPEC),
        ("scenes", sample_captioned, scene_spec(CANVAS)),
        ("mnist-multiset", sample_multisets, MultisetSpec()),
        ("mnist-set", sample_multisets, MultisetSpec(repeats=False)),
        ("mnist-single", sample_multisets, MultisetSpec(repeats=False, alone=True)),
    ],
)
def test_what_is_told_holds_for_what_is_drawn(name: str, sample, spec) -> None:
    trained = kind(name)
    layout = sample(spec, load_pack(), 3, torch.arange(SCENES))
    assert (int(layout.count.min()), int(layout.count.max())) == trained.digits
    sides = set(layout.side[layout.present].tolist())
    assert all(any(low <= side <= high for low, high in trained.sizes) for side in sides)
    assert all(sides & set(range(low, high + 1)) for low, high in trained.sizes)
    drawn = [row[here].tolist() for row, here in zip(layout.classes, layout.present)]
    assert any(len(set(digits)) < len(digits) for digits in drawn) == trained.repeats


@pytest.mark.web
def test_the_api_tells_it_and_says_null_where_there_is_nothing_to_tell(tmp_path: Path) -> None:
    from live_server import serving

    folders = [
        save_trained(tmp_path / "reader", "mnist-set", "reader"),
        save_tiny(tmp_path / "other", name="other"),
    ]
    with serving(*folders) as server:
        told = server.get("/api/models").json
    assert told["schema"] == "saccade.models/1"
    reader, other = told["models"]
    assert reader["scenes"] == {
        "digits": [1, 4], "sizes": [[20, 50]], "background": "clutter", "colours": ["white"], "repeats": False
    }  # fmt: skip
    assert other["scenes"] is None
