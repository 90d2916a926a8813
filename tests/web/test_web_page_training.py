"""A model is shown scenes of the kind it learned from, and where another one lies there its card says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, expect, opened, served
from tiny_trained import facts_of, save_trained

from saccade.config import to_dict
from saccade.web.family_page import page_entry
from saccade.web.page import STATIC

pytestmark = [pytest.mark.web, pytest.mark.slow]
DIGITS = tuple(str(digit) for digit in range(10))
KINDS = {"asked": "mref", "outside": "mbg", "captioned": "scenes", "reads": "mnist-multiset", "lists": "mnist-set"}


def trained(data: str, **more: Any) -> dict[str, Any]:
    found = page_entry(facts_of(data, **more)).scenes
    assert found is not None
    return to_dict(found)


def scene(*digits: tuple[int, int, str], background: str = "black") -> dict[str, Any]:
    """A scene of (digit, size, colour)."""
    made = [{"digit": digit, "size": size, "colour": colour} for digit, size, colour in digits]
    return {"digits": made, "background": background, "seed": 0}


@pytest.fixture(scope="module")
def run(browser: Any) -> Iterator[Callable[..., Any]]:
    with served(STATIC) as site, opened(browser, f"{site}/glyphs.png") as page:

        def call(module: str, body: str, given: Any = None) -> Any:
            return page.page.evaluate(
                f"async (given) => {{ const m = await import('/js/{module}.js'); {body} }}", given
            )

        yield call


RED = (7, 40, "red")
WHITE = (7, 40, "white")


@pytest.mark.parametrize(
    ("data", "shown", "said"),
    [
        ("scenes", scene(RED), ""),
        ("scenes", scene(RED, (3, 20, "red")), ""),
        ("scenes", scene(RED, (3, 20, "red"), (4, 20, "blue")), "Trained on scenes of one or two digits."),
        ("scenes", scene((7, 30, "red")), "Trained on scenes of digits, 18–27 or 36–48 px large."),
        ("scenes", scene(RED, (7, 20, "blue")), "Trained on scenes of digits, none of them twice."),
        ("scenes", scene(RED, background="clutter"), "Trained on scenes of digits, on black."),
        ("mnist-multiset", scene(WHITE, WHITE, background="clutter"), ""),
        ("mnist-multiset", scene(WHITE), ""),
        ("mnist-multiset", scene(WHITE, background="photo:palace"), "Trained on scenes of digits, among grey clutter."),
        ("mnist-multiset", scene(RED, background="clutter"), "Trained on scenes of white digits."),
        ("mnist-multiset", scene(background="clutter"), "Trained on scenes of one to four digits."),
        ("mnist-single", scene(WHITE, (1, 40, "white"), background="clutter"), "Trained on scenes of one digit."),
        ("mnist-set", scene(*[RED] * 5), "Trained on scenes of one to four white digits, none of them twice."),
        ("mbg", scene(*((digit, 20, "red") for digit in range(5)), background="photo:palace"), ""),
        ("mbg", scene(*((digit, 20, "red") for digit in range(5))), "Trained on scenes of digits, on photographs."),
    ],
)  # fmt: skip
def test_advice_names_what_is_unlike_training(run: Any, data: str, shown: dict[str, Any], said: str) -> None:
    assert run("training", "return m.adviceOn(given[0], given[1])", [trained(data), shown]) == said


def test_an_empty_scene_is_like_those_of_which_some_were_empty(run: Any) -> None:
    body, some = "return m.adviceOn(given[0], given[1])", trained("scenes", empty=0.03)
    assert run("training", body, [some, scene()]) == ""
    assert run("training", body, [trained("scenes"), scene()]) == "Trained on scenes of one or two digits."
    many = scene(RED, (3, 20, "red"), (4, 20, "blue"))
    assert run("training", body, [some, many]) == "Trained on scenes of at most two digits."


def test_nothing_is_said_of_a_model_that_tells_nothing(run: Any) -> None:
    assert run("training", "return m.adviceOn(null, given)", scene(*[RED] * 20)) == ""


@pytest.mark.parametrize(
    ("data", "example"),
    [("mref", "Five digits"), ("mdist", "Five digits"), ("mbg", "On a photograph"), ("scenes", "Two digits"),
     ("mnist-multiset", "A multiset"), ("mnist-set", "A set")],
)  # fmt: skip
def test_there_is_an_example_for_every_kind(run: Any, data: str, example: str) -> None:
    body = (
        "const { EXAMPLES } = await import('/js/examples.js');"
        "return Object.keys(EXAMPLES).filter((name) => m.fits(given, EXAMPLES[name].scene))"
    )
    assert run("training", body, trained(data))[0] == example


@pytest.mark.parametrize("data", ["mref", "scenes", "mnist-multiset", "mnist-set"])
def test_new_scenes_are_of_the_kind(run: Any, data: str) -> None:
    kind = trained(data)
    body = (
        "const { unlike } = await import('/js/training.js');"
        "const [trained] = given, scenes = [];"
        "for (let seed = 0; seed < 60; seed++) scenes.push(m.randomScene(seed, trained.background, trained));"
        "return scenes.map((scene) => [scene.digits.map(({ digit }) => digit), unlike(trained, scene)])"
    )
    drawn = run("scene", body, [kind])
    assert not any(value for _, differs in drawn for name, value in differs.items() if name != "count")
    counts = {len(digits) for digits, _ in drawn}
    assert counts <= set(range(1, kind["digits"][1] + 1))
    assert len(counts) > 1
    assert any(len(set(digits)) < len(digits) for digits, _ in drawn) == kind["repeats"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model of every kind, whatever it answers."""
    pytest.importorskip("fastapi")
    from live_server import live_server

    from saccade.web.service import Service

    folder = tmp_path_factory.mktemp("kinds")
    folders = [save_trained(folder / name, data, name, DIGITS[:4]) for name, data in KINDS.items()]
    with live_server(Service(folders, "cpu")) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Opened]:
    with opened(browser, address) as watched:
        watched.settle()
        yield watched


def choose(page: Opened, name: str, number: int = 0) -> None:
    page.lens(number).locator(".lens-head select").select_option(name)


def test_choosing_a_model_brings_its_scene(page: Opened) -> None:
    expect(page.part("example")).to_have_value("Five digits")
    for name, example in (("captioned", "Two digits"), ("reads", "A multiset"), ("lists", "A set"),
                          ("outside", "On a photograph"), ("asked", "Five digits")):  # fmt: skip
        choose(page, name)
        expect(page.part("example")).to_have_value(example)
        expect(page.lens().locator(".advice")).to_be_hidden()
        page.settle()


def test_a_composed_scene_stays_and_the_card_advises(page: Opened) -> None:
    page.part("digit-list").get_by_label("Select the 3").click()
    page.part("colour-list").get_by_label("yellow").click()
    choose(page, "captioned")
    expect(page.lens().locator(".advice span")).to_have_text(
        "Trained on scenes of one or two digits, 18–27 or 36–48 px large."
    )
    expect(page.part("digit-list").locator("button")).to_have_count(5)
    page.lens().get_by_role("button", name="Show such a scene").click()
    expect(page.part("example")).to_have_value("Two digits")
    expect(page.lens().locator(".advice")).to_be_hidden()
    choose(page, "asked")  # an example is nobody's own
    expect(page.part("example")).to_have_value("Five digits")


def test_a_dragged_digit_makes_the_scene_ones_own(page: Opened) -> None:
    page.drag((23, 25), (60, 40))
    choose(page, "reads")
    expect(page.lens().locator(".advice")).to_be_visible()
    expect(page.part("digit-list").locator("button")).to_have_count(5)


def test_it_opens_with_the_scene_of_its_first_model(browser: Any, tmp_path: Path) -> None:
    from live_server import live_server

    from saccade.web.service import Service

    folder = save_trained(tmp_path / "captioned", "scenes", "captioned")
    with live_server(Service([folder], "cpu")) as server, opened(browser, f"http://127.0.0.1:{server.port}/") as page:
        page.settle()
        expect(page.part("example")).to_have_value("Two digits")
