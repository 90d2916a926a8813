"""What a model's facts say of the scenes it learned from, in the API and in pages, against the generators."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_trained import facts_of, save_trained

import saccade
from saccade.data.gallery import EXAMPLES
from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.sampler import sample_layout
from saccade.families import families
from saccade.families.caption.scenes import sample_captioned, scene_spec
from saccade.families.multiset.scenes import MultisetSpec, sample_multisets
from saccade.families.question.scenes.data import SPECS
from saccade.models.facts import read_facts
from saccade.web.family_page import CANVAS, TrainedScenes, page_entry, page_model
from saccade.zoo import shipped
from tiny_models import save_tiny, tiny_facts

SCENES = 300


def kind(name: str, **more: object) -> TrainedScenes:
    found = page_entry(facts_of(name, **more)).scenes
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "sample", "spec"),
    [
        ("mref", sample_layout, SPECS["mref"]),
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


@pytest.mark.parametrize(("name", "most"), [("scenes", 2), ("mnist-multiset", 4), ("mnist-set", 4)])
def test_scenes_of_which_some_are_empty_have_no_digit_at_least(name: str, most: int) -> None:
    assert kind(name, empty=0.03).digits == (0, most)
    assert kind(name, empty=0.0).digits == kind(name).digits == (1, most)
    assert kind("mnist-single", empty=0.03).digits == (1, 1)  # whatever is asked for, it has none


def test_backgrounds_and_colours() -> None:
    names = ("mref", "mdist", "mbg", "scenes", "mnist-set")
    assert [kind(name).background for name in names] == ["black", "distractors", "photo", "black", "clutter"]
    assert kind("mbg").colours == ("green", "yellow", "white", "red", "blue")
    assert kind("mnist-multiset").colours == ("white",)


@pytest.mark.parametrize("data", [{}, {"name": "cub"}, {"name": ["mref", "scenes"]}, {"name": None}])
@pytest.mark.parametrize("family", families())
def test_a_model_of_other_pictures_tells_of_no_scenes(family: str, data: dict) -> None:
    assert page_entry(tiny_facts(family=family, data=data)).scenes is None


def test_the_models_that_ship_tell_of_theirs() -> None:
    told = {name: page_entry(read_facts(folder)).scenes for name, folder in shipped().items()}
    assert told["crown-cub"] is None
    assert told["soft-mbg"] == kind("mbg")
    assert told["sat-hard-scenes"] == kind("scenes", empty=0.03)
    assert [name for name, scenes in told.items() if scenes is None] == [
        "crown-cub",
        "dmn-babi",
        "hsal-svhn-multiset",
        "memn2n-babi",
        "memn2n-stories",
        "racnn-details",
        "ran-56-cifar10",
        "sat-soft-photos",
    ]


def test_pages_carry_it() -> None:
    told = page_model(saccade.load("soft-mref", "cpu"))["scenes"]
    colours = ["green", "yellow", "white", "red", "blue"]
    assert told == {
        "digits": [5, 9], "sizes": [[14, 83]], "background": "black", "colours": colours, "repeats": False
    }  # fmt: skip


@pytest.mark.web
def test_the_api_tells_it_and_says_null_where_there_is_nothing_to_tell(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from live_server import live_server

    from saccade.web.service import Service

    folders = [
        save_trained(tmp_path / "reader", "mnist-set", "reader"),
        save_tiny(tmp_path / "other", name="other"),
    ]
    with live_server(Service(folders, "cpu")) as server:
        told = server.get("/api/models").json
    assert told["schema"] == "saccade.models/1"
    reader, other = told["models"]
    assert reader["scenes"] == {
        "digits": [1, 4], "sizes": [[20, 50]], "background": "clutter", "colours": ["white"], "repeats": False
    }  # fmt: skip
    assert other["scenes"] is None


def test_models_start_with_a_picture_of_their_kind_or_a_scene() -> None:
    told = {name: page_entry(read_facts(folder)) for name, folder in shipped().items()}
    with_example = {name: entry.example for name, entry in told.items() if entry.example}
    assert with_example == {"racnn-details": "stripes", "ran-56-cifar10": "cat", "sat-soft-photos": "cat"}
    # no bird ships for crown-cub
    assert all(told[name].scenes is None for name in with_example)


def test_every_example_that_data_declares_ships() -> None:
    declared = {entry.example for family in families().values() for entry in family.data.values()} - {""}
    assert declared
    assert declared <= set(EXAMPLES)
