"""The page's modules, run in a real browser, against the numbers that the package computes itself."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fastapi")

from page_browser import floats
from PIL import Image

from saccade import geometry
from saccade.data.pictures.reading import Picture
from saccade.data.scenes.drawing import _RGB, resized
from saccade.data.scenes.glyphs import load_pack
from saccade.record import write_record
from saccade.show.colours import ANCHORS
from saccade.sighting import Sighting
from saccade.trace import Answer, AttentionTrace, Look
from saccade.web.pictures import compose
from saccade.web.schemas import Digit, Scene
from saccade.web.views import view_of

Run = Callable[..., Any]


def test_maps_are_laid_over_pictures_as_geometry_does(run: Run) -> None:
    values = torch.rand(5, 6)
    for frame in ([[10.0, 0.0, 3.0], [0.0, 7.0, -2.0]], [[8.0, 2.0, 1.0], [-3.0, 9.0, 12.0]]):  # and turned and sheared
        laid = run(
            "frames",
            "return Array.from(m.project({values: new Float32Array(given.values), grid: [5, 6], frame: given.frame},"
            " {width: 64, height: 40}, 64, 40))",
            {"values": values.flatten().tolist(), "frame": frame},
        )
        expected = geometry.project(values[None], torch.tensor(frame, dtype=torch.float64), (40, 64))[0]
        np.testing.assert_allclose(np.array(laid).reshape(40, 64), expected.numpy(), atol=2e-6)


def test_the_colours_are_those_of_the_package(run: Run) -> None:
    table = run("colours", "return Array.from(m.colourTable('saccade'))")
    np.testing.assert_array_equal(np.array(table).reshape(-1, 3)[[0, -1]], ANCHORS[[0, -1]])
    assert {name: tuple(rgb) for name, rgb in run("colours", "return Object.entries(m.COLOURS)")} == _RGB


def test_scenes_and_glyphs_are_drawn_as_the_generator_draws_them_to_the_last_bit(run: Run) -> None:
    glyph, sizes = load_pack().images[3], [7, 14, 27, 28, 29, 47, 84]
    body = "return given.sizes.map((size) => Array.from(m.resizeGlyph(Uint8Array.from(given.ink), size)))"
    for size, pixels in zip(sizes, run("scene", body, {"ink": glyph.flatten().tolist(), "sizes": sizes})):
        expected = resized(glyph[None], torch.tensor([size]), size)[0]
        np.testing.assert_array_equal(np.array(pixels).reshape(size, size), expected.numpy())
    digits = [
        {"digit": 7, "glyph": 3, "x": 4, "y": 9, "size": 33, "colour": "red"},
        {"digit": 0, "glyph": 7, "x": 20, "y": 20, "size": 61, "colour": "yellow"},  # overlaps the 7
        {"digit": 4, "glyph": 0, "x": 86, "y": 0, "size": 14, "colour": "blue"},
    ]
    body = (
        "const drawn = m.renderScene(given, await m.loadGlyphs('/glyphs.png'));"
        "return [Array.from(drawn.rgba), drawn.masks.map((mask) => Array.from(mask))]"
    )
    rgba, masks = run("scene", body, {"digits": digits, "background": "black", "seed": 0})
    drawn = compose(Scene(digits=[Digit(**digit) for digit in digits]))
    np.testing.assert_array_equal(np.array(rgba).reshape(100, 100, 4)[..., :3], np.asarray(drawn.picture.image))
    np.testing.assert_array_equal(np.array(masks).reshape(3, 100, 100), drawn.masks.numpy())


def test_attention_on_the_evidence_beside_baselines(run: Run) -> None:
    """2 × 2 pixels, evidence is the left column, objects are the upper row: 0.7, 0.5, 0.5 and 0.5."""
    body = (
        "const map = {values: Float32Array.from([4, 2, 3, 1]), grid: [2, 2], frame: [[1, 0, 0], [0, 1, 0]]};"
        "const evidence = {width: 2, height: 2, mask: [1, 0, 1, 0]};"
        "return m.onTarget(map, evidence, [[1, 0, 0, 0], [0, 1, 0, 0]]).rows.map(({value}) => value)"
    )
    assert run("scores", body) == pytest.approx([0.7, 0.5, 0.5, 0.5])


def test_a_file_that_is_no_record_is_refused(run: Run) -> None:
    body = "try { m.checkedViews(given, 'a.json'); return 'taken'; } catch (error) { return error.message; }"
    short = {"name": "x", "kind": "soft", "role": "input", "steps": 1, "grid": [2, 2], "weights": "AAAA",
             "dtype": "float32"}  # fmt: skip
    view = {"schema": "saccade.view/1", "model": "m", "answer": "a", "alternatives": [], "looks": []}
    for content, said in (
        ({"schema": "saccade.view/2"}, "expected a view of saccade.view/1"),
        (None, "expected a view"),
        ({"schema": "saccade.views/1", "views": []}, "holds no view"),
        ({**view, "picture": {"width": 9e9, "height": 1}}, "damaged"),
        ({**view, "picture": {"width": 4, "height": 4}, "looks": [short]}, "damaged"),
        (view, "taken"),
    ):
        assert said in run("records", body, content)
    body = "try { return m.readTensors(Uint8Array.from(given).buffer); } catch (error) { return error.message; }"
    for header, said in (
        (b"", "not a safetensors file"),
        (b"\xff" * 8, "not a safetensors file"),
        (b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}', "does not fit"),
        (b'{"a":{"dtype":"F8","shape":[],"data_offsets":[0,1]}}', "F8"),
    ):
        data = len(header).to_bytes(8, "little") + header if header.startswith(b"{") else header * 2
        assert said in run("records", body, list(data))


def sighting(total: Any) -> Sighting:
    """Gates on different grids, one of which only adds, a step that never took place, a crop, and a large picture."""
    frames = [geometry.scale_shift((10.0, 20.0), (3.0, 1.0)), geometry.scale_shift((25.0, 25.0), (0.0, 0.0))]
    hops = torch.rand(1, 3, 16).softmax(-1).reshape(1, 3, 4, 4)
    looks = (
        Look("first", "gate", "multiplier", torch.rand(1, 5, 9), norm="sigmoid", frame=frames[0]),
        Look("mask", "gate", "multiplier", torch.rand(1, 5, 9), norm="sigmoid", frame=frames[0], base=1.0),
        Look("hop", "soft", "multiplier", hops, norm="softmax", frame=frames[1],
             active=torch.tensor([[True, False, True]]), gain=torch.rand(1, 3)),
        Look("crop", "crop", "crop", None, grid=(8, 8), norm="none",
             frame=geometry.scale_shift((5.0, 6.0), (20.5, 7.0))),
    )  # fmt: skip
    canvas = geometry.fit_inside((1200, 1600), (100, 100)).canvas[None]
    trace = AttentionTrace(looks, canvas=canvas, image_size=torch.tensor([[1200, 1600]]), total=total)
    picture = Picture(Image.effect_noise((1600, 1200), 60).convert("RGB"), "a.png")
    return Sighting(Answer("red", 0.75, alternatives=(("blue", 0.25),)), "7", picture, trace, "tiny")


@pytest.mark.parametrize("total", ["product", "mean"])
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
    view, expected = run("records", body, given), view_of(seen)
    assert (view["picture"]["width"], view["picture"]["height"]) == (1024, 768)
    for name in ("schema", "model", "question", "answer", "kind", "confidence", "alternatives"):
        assert view[name] == expected[name]
    for mine, theirs in zip(view["looks"], expected["looks"], strict=True):
        same = ("name", "kind", "role", "steps", "grid", "weights")
        assert {key: mine[key] for key in same} == {key: theirs[key] for key in same}
        np.testing.assert_allclose(mine["frame"], np.array(theirs["frame"]) * 0.64, rtol=1e-9)
    np.testing.assert_allclose(view["looks"][-1]["box"], np.array(expected["looks"][-1]["box"]) * 0.64)
    np.testing.assert_allclose(floats(view["total"]), floats(expected["total"]), atol=1e-6)


RED, WHITE, FIVE = (7, 40, "red"), (7, 40, "white"), [(digit, 20, "red") for digit in range(5)]


def test_a_worker_that_breaks_is_told_and_asked_no_more(run: Run) -> None:
    body = """
    globalThis.Worker = class { postMessage() { this.onerror({ message: "broken" }); } };
    const source = new m.OfflineSource([{}], "");
    return [await source.open().catch(({ message }) => message), await source.open().catch(({ message }) => message)];
    """
    assert run("source_offline", body) == ["broken", "broken"]
