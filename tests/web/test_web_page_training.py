"""A model is shown scenes of the kind it learned from, and where another one lies there its card says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from page_browser import Opened, expect, opened
from tiny_trained import facts_of, save_trained

from saccade.config import to_dict
from saccade.web.page import page_entry

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
    assert run("examples", "return m.adviceOn(given[0], given[1])", [trained(data), shown]) == said


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a model of every kind, whatever it answers."""
    from live_server import serving

    folder = tmp_path_factory.mktemp("kinds")
    folders = [save_trained(folder / name, data, name, DIGITS[:4]) for name, data in KINDS.items()]
    with serving(*folders) as server:
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
