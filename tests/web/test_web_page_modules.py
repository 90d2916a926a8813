"""The page's modules, run in a real browser, against the numbers that the package computes itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_browser import floats, opened, served
from PIL import Image

from saccade import geometry
from saccade.answer import Answer
from saccade.data.pictures.reading import Picture
from saccade.data.scenes.drawing import _RGB, COLOURS
from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.resize import resized
from saccade.record import write_record
from saccade.show.colours import ANCHORS
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web.page import STATIC
from saccade.web.scenes import compose
from saccade.web.schemas import Digit, Scene
from saccade.web.views import view_of

Run = Callable[..., Any]
pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def run(browser: Any) -> Iterator[Run]:
    """``run(module, body, given)``: what ``body``, which sees the module as ``m``, returns."""
    with served(STATIC) as site, opened(browser, f"{site}/glyphs.png") as page:

        def call(module: str, body: str, given: Any = None) -> Any:
            script = f"async (given) => {{ const m = await import('/js/{module}.js'); {body} }}"
            return page.page.evaluate(script, given)

        yield call


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


def test_a_map_at_half_the_size_samples_the_same_field(run: Run) -> None:
    """A linear ramp reads the same wherever it is sampled: x/64 at the centres of 32 wide pixels."""
    laid = run(
        "frames",
        "const values = Float32Array.from({length: 64}, (_, x) => (x + 0.5) / 64);"
        "return Array.from(m.project({values, grid: [1, 64], frame: m.IDENTITY}, {width: 64, height: 1}, 32, 1))",
    )
    np.testing.assert_allclose(laid, (2 * np.arange(32) + 1) / 64, atol=1e-6)


def test_frames_compose_and_invert(run: Run) -> None:
    outer, inner = torch.rand(2, 3, dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    both, back = run(
        "frames",
        "return [m.compose(given[0], given[1]), m.invert(given[0])]",
        [outer.tolist(), inner.tolist()],
    )
    np.testing.assert_allclose(both, geometry.compose(outer, inner).numpy(), rtol=1e-12)
    np.testing.assert_allclose(back, geometry.invert(outer).numpy(), rtol=1e-9)


@pytest.mark.parametrize("size", [(480, 640), (640, 480), (100, 100), (3, 1000), (37, 61)])
def test_pictures_are_fitted_as_geometry_does(run: Run, size: tuple[int, int]) -> None:
    found = run("frames", "return m.fitInside({width: given[1], height: given[0]}, 100)", list(size))
    fit = geometry.fit_inside(size, (100, 100))
    assert [found[name] for name in ("height", "width", "top", "left")] == [fit.height, fit.width, fit.top, fit.left]
    np.testing.assert_allclose(found["canvas"], fit.canvas.numpy(), rtol=1e-12)


def test_the_cell_under_the_pointer(run: Run) -> None:
    """Cells of 10 × 20 pixels: (25, 45) lies in column 2, row 2; what is outside counts as the edge."""
    body = (
        "const map = {values: new Float32Array(12).map((_, i) => i), grid: [3, 4], frame: [[10, 0, 0], [0, 20, 0]]};"
        "return [m.cellAt(map, 25, 45), m.cellAt(map, 99, -5)]"
    )
    assert run("frames", body) == [{"row": 2, "column": 2, "value": 10}, {"row": 0, "column": 3, "value": 3}]


def test_half_floats_are_read(run: Run) -> None:
    values = np.array([0.0, -0.0, 1.0, -2.5, 65504.0, 6e-8, 6.1e-5, 0.333, np.inf], dtype="<f2")
    text = base64.b64encode(values.tobytes()).decode()
    read = run("acts", "return Array.from(m.decodeFloats(given, 'float16'), String)", text)
    np.testing.assert_array_equal([float(value) for value in read], values.astype(np.float64))


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
    palette = run("palette", "return Object.entries(m.COLOURS)")
    assert {name: tuple(rgb) for name, rgb in palette} == _RGB
    assert [name for name, _ in palette] == list(COLOURS)


@pytest.mark.parametrize("name", ["saccade", "viridis", "cividis"])
def test_lightness_rises_in_every_colour_map(run: Run, name: str) -> None:
    table = np.array(run("colours", "return Array.from(m.colourTable(given))", name)).reshape(-1, 3) / 255
    linear = np.where(table <= 0.04045, table / 12.92, ((table + 0.055) / 1.055) ** 2.4)
    assert (np.diff((linear @ (0.2126, 0.7152, 0.0722))[::16]) > 0).all()


def test_glyphs_are_resized_to_the_last_bit(run: Run) -> None:
    glyph = load_pack().images[3]
    sizes = [7, 14, 20, 27, 28, 29, 33, 47, 63, 84]
    found = run(
        "glyphs",
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
        "const glyphs = await import('/js/glyphs.js');"
        "const drawn = m.renderScene(given, await glyphs.loadGlyphs('/glyphs.png'));"
        "return [Array.from(drawn.rgba), drawn.masks.map((mask) => Array.from(mask))]",
        scene,
    )
    expected = compose(Scene(digits=[Digit(**digit) for digit in digits]))
    rgba = np.array(found[0]).reshape(100, 100, 4)
    np.testing.assert_array_equal(rgba[..., :3], np.asarray(expected.picture.image))
    np.testing.assert_array_equal(np.array(found[1]).reshape(3, 100, 100), expected.truth.masks.numpy())


def test_clutter_depends_on_its_seed_alone(run: Run) -> None:
    body = (
        "const glyphs = await (await import('/js/glyphs.js')).loadGlyphs('/glyphs.png');"
        "const drawn = (seed) => m.renderScene({digits: [], background: 'distractors', seed}, glyphs);"
        "return given.map((seed) => Array.from(drawn(seed).rgba))"
    )
    one, again, other = run("scene", body, [1, 1, 2])
    assert one == again
    assert one != other
    share = np.mean(np.array(one).reshape(-1, 4)[:, :3].max(1) > 0)
    assert 0.005 < share < 0.2


def test_random_scenes_have_different_digits_that_do_not_touch(run: Run) -> None:
    for seed in range(20):
        digits = run("scene", "return m.randomScene(given, 'black').digits", seed)
        assert len({digit["digit"] for digit in digits}) == len(digits) >= 3
        boxes = np.zeros((100, 100), int)
        for digit in digits:
            boxes[digit["y"] : digit["y"] + digit["size"], digit["x"] : digit["x"] + digit["size"]] += 1
        assert boxes.max() == 1
        assert boxes.sum() == sum(digit["size"] ** 2 for digit in digits)


def test_a_digit_stays_inside_the_picture(run: Run) -> None:
    digit = {"digit": 1, "glyph": 0, "x": 10, "y": 10, "size": 30, "colour": "red"}
    body = "return [m.changed(given, {x: 95}), m.changed(given, {size: 300}), m.changed(given, {y: -4, size: 1})]"
    moved, large, small = run("scene", body, digit)
    assert (moved["x"], large["size"], large["x"], small["size"], small["y"]) == (70, 84, 10, 14, 0)


def test_attention_on_the_evidence_beside_baselines(run: Run) -> None:
    """2 × 2 pixels, evidence is the left column, objects are the upper row: 0.7, 0.5, 0.5 and 0.5."""
    body = (
        "const map = {values: Float32Array.from([4, 2, 3, 1]), grid: [2, 2], frame: [[1, 0, 0], [0, 1, 0]]};"
        "const evidence = {width: 2, height: 2, mask: [1, 0, 1, 0]};"
        "return m.onTarget(map, evidence, [[1, 0, 0, 0], [0, 1, 0, 0]]).rows.map(({value}) => value)"
    )
    assert run("scores", body) == pytest.approx([0.7, 0.5, 0.5, 0.5])


def test_scores_of_a_view_are_listed_beside_their_baselines(run: Run) -> None:
    scores = {
        "attention": {"true_positive_strength": 0.25, "pointing": 1.0},
        "baselines": {"uniform": {"true_positive_strength": 0.04}, "broken": None},
    }
    (table,) = run("scores", "return m.scoresOfView(given)", scores)
    assert [(row["label"], row["value"]) for row in table["rows"]] == [("this model", 0.25), ("spread evenly", 0.04)]
    assert run("scores", "return m.scoresOfView(null)") == []


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (1, "100 %"), (0.0002, "< 0.1 %"), (0.99995, "> 99.9 %"), (0.004, "0.4 %"), (0.126, "13 %"),
     (0.995, "99.5 %")],
)  # fmt: skip
def test_percent_never_claims_certainty(run: Run, share: float, shown: str) -> None:
    assert run("dom", "return m.percent(given)", share) == shown


def test_only_the_newest_question_waits(run: Run) -> None:
    body = (
        "const asked = []; let go;"
        "const latest = new m.Latest((job) => { asked.push(job); return new Promise((done) => (go = done)); });"
        "for (const job of [1, 2, 3, 4]) latest.push(job);"
        "go(); await new Promise((done) => setTimeout(done)); go(); await new Promise((done) => setTimeout(done));"
        "latest.push(5); return asked"
    )
    assert run("latest", body) == [1, 4, 5]


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
    found, expected = run("saved_look", body, given), view_of(seen)
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
    found = run("safetensors", body, list(data))
    assert found == 0 if said is None else said in found


OPENING = """
    const state = {mode: "scene", picture: null, scene: "first", models: ["things"]};
    const said = [], fitted = [];
    const page = {
        source: {example: async () => { Object.assign(state, given.meanwhile); throw new Error("gone"); }},
        store: {state, set: (changed) => Object.assign(state, changed)},
        composer: {fit: (scenes) => fitted.push(scenes)},
        notices: {say: (error) => said.push(error.message)},
    };
    if (given.arrives) page.source.example = async () => { Object.assign(state, given.meanwhile); return "cat"; };
    await m.openWith({name: "things", example: "cat", scenes: "digits"}, page);
    return [state.mode, state.picture, fitted, said];
"""


@pytest.mark.parametrize("arrives", [True, False])
def test_what_the_user_opened_meanwhile_stays(run: Run, arrives: bool) -> None:
    own = {"mode": "picture", "picture": "own"}
    assert run("opening_input", OPENING, {"arrives": arrives, "meanwhile": own}) == ["picture", "own", [], []]


def test_an_example_that_does_not_arrive_gives_way_to_a_scene(run: Run) -> None:
    found = run("opening_input", OPENING, {"arrives": False, "meanwhile": {}})
    assert found == ["scene", None, ["digits"], ["gone"]]
    assert run("opening_input", OPENING, {"arrives": True, "meanwhile": {}}) == ["picture", "cat", [], []]


def test_a_refused_example_is_told_in_the_words_of_the_server(run: Run) -> None:
    body = """
        const fetched = window.fetch;
        window.fetch = async () => new Response(given, {status: 429});
        const said = await new m.ServerSource().example("cat").catch((error) => error.message);
        window.fetch = fetched;
        return said;
    """
    assert run("source_server", body, json.dumps({"error": {"message": "too busy"}})) == "too busy"
    assert run("source_server", body, "") == "the server answered 429 without an explanation"
