"""The page's modules, run in a real browser, against the numbers that the package computes itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_browser import floats
from PIL import Image

from saccade import geometry
from saccade.answer import Answer
from saccade.data.pictures.reading import Picture
from saccade.data.scenes.drawing import _RGB, COLOURS, resized
from saccade.data.scenes.glyphs import load_pack
from saccade.record import write_record
from saccade.show.colours import ANCHORS
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web.pictures import compose
from saccade.web.schemas import Digit, Scene
from saccade.web.views import view_of

Run = Callable[..., Any]
pytestmark = pytest.mark.web


@pytest.mark.parametrize(
    "frame",
    [
        [[10.0, 0.0, 3.0], [0.0, 7.0, -2.0]],
        [[8.0, 2.0, 1.0], [-3.0, 9.0, 12.0]],  # turned and sheared
    ],
)
def test_maps_are_laid_over_pictures_as_geometry_does(run: Run, frame: list[list[float]]) -> None:
    values = torch.rand(5, 6)
    laid = run(
        "frames",
        "return Array.from(m.project({values: new Float32Array(given.values), grid: [5, 6], frame: given.frame},"
        " {width: 64, height: 40}, 64, 40))",
        {"values": values.flatten().tolist(), "frame": frame},
    )
    expected = geometry.project(values[None], torch.tensor(frame, dtype=torch.float64), (40, 64))[0]
    np.testing.assert_allclose(np.array(laid).reshape(40, 64), expected.numpy(), atol=2e-6)


def test_the_cell_under_the_pointer(run: Run) -> None:
    """Cells of 10 × 20 pixels: (25, 45) lies in column 2, row 2; what is outside counts as the edge."""
    body = (
        "const map = {values: new Float32Array(12).map((_, i) => i), grid: [3, 4], frame: [[10, 0, 0], [0, 20, 0]]};"
        "return [m.cellAt(map, 25, 45), m.cellAt(map, 99, -5)]"
    )
    assert run("frames", body) == [{"row": 2, "column": 2, "value": 10}, {"row": 0, "column": 3, "value": 3}]


def test_acts_are_named_in_order_and_those_that_never_happened_left_out(run: Run) -> None:
    weights = base64.b64encode(np.arange(6, dtype="<f4").tobytes()).decode()
    look = {"name": "word", "kind": "soft", "role": "multiplier", "grid": [1, 2], "steps": 3, "weights": weights,
            "dtype": "float32", "frame": [[1, 0, 0], [0, 1, 0]], "active": [True, False, True],
            "gain": [1, 1, 0.5]}  # fmt: skip
    view = {"looks": [look], "words": ["a", "b", "dog"], "labels": None, "total": None}
    acts = run("acts", "return m.actsOf(given).map((act) => [act.title, act.note, m.measuresOf(act)])", view)
    assert acts == [
        ["word 1: a", "soft multiplier, 1×2 cells", "peak 1.00 · gate β 1.00"],
        ["word 3: dog", "soft multiplier, 1×2 cells", "peak 5.00 · gate β 0.50"],
    ]


def test_the_colours_are_those_of_the_package(run: Run) -> None:
    table = run("colours", "return Array.from(m.colourTable('saccade'))")
    ends = np.array(table).reshape(-1, 3)[[0, -1]]
    np.testing.assert_array_equal(ends, ANCHORS[[0, -1]])
    palette = run("colours", "return Object.entries(m.COLOURS)")
    assert {name: tuple(rgb) for name, rgb in palette} == _RGB
    assert [name for name, _ in palette] == list(COLOURS)


def test_glyphs_are_resized_to_the_last_bit(run: Run) -> None:
    glyph = load_pack().images[3]
    sizes = [7, 14, 20, 27, 28, 29, 33, 47, 63, 84]
    found = run(
        "scene",
        "return given.sizes.map((size) => Array.from(m.resizeGlyph(Uint8Array.from(given.ink), size)))",
        {"ink": glyph.flatten().tolist(), "sizes": sizes},
    )
    for size, pixels in zip(sizes, found):
        expected = resized(glyph[None], torch.tensor([size]), size)[0]
        np.testing.assert_array_equal(np.array(pixels).reshape(size, size), expected.numpy())


def test_a_scene_is_rendered_as_the_generator_renders_it(run: Run) -> None:
    digits = [
        {"digit": 7, "glyph": 3, "x": 4, "y": 9, "size": 33, "colour": "red"},
        {"digit": 0, "glyph": 7, "x": 20, "y": 20, "size": 61, "colour": "yellow"},  # overlaps the 7
        {"digit": 4, "glyph": 0, "x": 86, "y": 0, "size": 14, "colour": "blue"},
    ]
    scene = {"digits": digits, "background": "black", "seed": 0}
    found = run(
        "scene",
        "const glyphs = m;"
        "const drawn = m.renderScene(given, await glyphs.loadGlyphs('/glyphs.png'));"
        "return [Array.from(drawn.rgba), drawn.masks.map((mask) => Array.from(mask))]",
        scene,
    )
    expected = compose(Scene(digits=[Digit(**digit) for digit in digits]))
    rgba = np.array(found[0]).reshape(100, 100, 4)
    np.testing.assert_array_equal(rgba[..., :3], np.asarray(expected.picture.image))
    np.testing.assert_array_equal(np.array(found[1]).reshape(3, 100, 100), expected.masks.numpy())


def test_attention_on_the_evidence_beside_baselines(run: Run) -> None:
    """2 × 2 pixels, evidence is the left column, objects are the upper row: 0.7, 0.5, 0.5 and 0.5."""
    body = (
        "const map = {values: Float32Array.from([4, 2, 3, 1]), grid: [2, 2], frame: [[1, 0, 0], [0, 1, 0]]};"
        "const evidence = {width: 2, height: 2, mask: [1, 0, 1, 0]};"
        "return m.onTarget(map, evidence, [[1, 0, 0, 0], [0, 1, 0, 0]]).rows.map(({value}) => value)"
    )
    assert run("scores", body) == pytest.approx([0.7, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"schema": "saccade.view/2"}, "expected a view of saccade.view/1"),
        (None, "expected a view"),
        ({"schema": "saccade.views/1", "views": []}, "holds no view"),
        ({"schema": "saccade.view/1", "picture": {"width": 9e9, "height": 1}}, "damaged"),
        ({"schema": "saccade.view/1", "picture": {"width": 4, "height": 4}, "model": "m", "answer": "a",
          "alternatives": [], "looks": [{"name": "x", "kind": "soft", "role": "input", "steps": 1, "grid": [2, 2],
                                         "weights": "AAAA", "dtype": "float32"}], "total": None}, "damaged"),
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(run: Run, content: Any, said: str) -> None:
    body = "try { m.checkedViews(given, 'a.json'); return null; } catch (error) { return error.message; }"
    assert said in (run("records", body, content) or "it was taken")


def sighting(total: str) -> Sighting:
    """Gates on different grids, one of which only adds, a step that never took place, a crop, and a large picture."""
    frames = [geometry.scale_shift((10.0, 20.0), (3.0, 1.0)), geometry.scale_shift((25.0, 25.0), (0.0, 0.0))]
    frames.append(geometry.scale_shift((5.0, 6.0), (20.5, 7.0)))
    looks = (
        Look("first", "gate", "multiplier", torch.rand(1, 5, 9), norm="sigmoid", frame=frames[0]),
        Look("mask", "gate", "multiplier", torch.rand(1, 5, 9), norm="sigmoid", frame=frames[0], base=1.0),
        Look(
            "hop", "soft", "multiplier", torch.rand(1, 3, 4, 4).flatten(2).softmax(-1).reshape(1, 3, 4, 4),
            norm="softmax", frame=frames[1], active=torch.tensor([[True, False, True]]), gain=torch.rand(1, 3),
        ),
        Look("crop", "crop", "crop", None, grid=(8, 8), norm="none", frame=frames[2]),
    )  # fmt: skip
    canvas = geometry.fit_inside((1200, 1600), (100, 100)).canvas[None]
    trace = AttentionTrace(looks, canvas=canvas, image_size=torch.tensor([[1200, 1600]]), total=total)  # type: ignore[arg-type]
    picture = Picture(Image.effect_noise((1600, 1200), 60).convert("RGB"), "a.png")
    return Sighting(Answer("red", 0.75, alternatives=(("blue", 0.25),)), "7", picture, trace, "tiny")


@pytest.mark.parametrize("total", ["product", "mean", "last"])
def test_a_saved_look_becomes_the_view_that_the_server_makes(run: Run, tmp_path: Path, total: str) -> None:
    seen = sighting(total)
    record = write_record(tmp_path / "a", seen.record())
    given = {
        "content": json.loads(record.read_text(encoding="utf-8")),
        "bytes": base64.b64encode((tmp_path / "a.safetensors").read_bytes()).decode(),
    }
    body = (
        "const buffer = Uint8Array.from(atob(given.bytes), (character) => character.charCodeAt(0)).buffer;"
        "return await m.viewOfSavedLook(given.content, buffer)"
    )
    found, expected = run("records", body, given), view_of(seen)
    assert (found["picture"]["width"], found["picture"]["height"]) == (1024, 768)
    for name in ("schema", "model", "question", "answer", "kind", "confidence", "alternatives"):
        assert found[name] == expected[name]
    for mine, theirs in zip(found["looks"], expected["looks"], strict=True):
        assert [mine[key] for key in ("name", "kind", "role", "steps", "grid", "weights")] == [
            theirs[key] for key in ("name", "kind", "role", "steps", "grid", "weights")
        ]
        np.testing.assert_allclose(mine["frame"], np.array(theirs["frame"]) * 0.64, rtol=1e-9)
    np.testing.assert_allclose(found["looks"][-1]["box"], np.array(expected["looks"][-1]["box"]) * 0.64)
    assert found["total"]["grid"] == expected["total"]["grid"] == [96, 128]
    np.testing.assert_allclose(floats(found["total"]), floats(expected["total"]), atol=1e-6)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a safetensors file"),
        (b"\xff" * 16, "not a safetensors file"),
        ((2).to_bytes(8, "little") + b"{}", None),
        (
            (66).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'.ljust(66),
            "does not fit",
        ),
        ((66).to_bytes(8, "little") + b'{"a":{"dtype":"F8","shape":[],"data_offsets":[0,1]}}'.ljust(66) + b"0", "F8"),
    ],
)
def test_a_tensor_file_is_read_within_its_bounds(run: Run, data: bytes, said: str | None) -> None:
    body = (
        "try { return Object.keys(m.readTensors(Uint8Array.from(given).buffer)).length; }"
        "catch (error) { return error.message; }"
    )
    found = run("records", body, list(data))
    assert found == 0 if said is None else said in found
