"""Published rows: fractions with a source, found through the family of a model; right for every shipped model."""

from dataclasses import replace
from pathlib import Path

import pytest

from saccade.families import families
from saccade.families.contract import Family
from saccade.models.io.facts import read_facts
from saccade.tasks.published import Published, published_for, published_rows
from saccade.zoo import shipped
from tiny_models import tiny_facts

ROWS = [(name, key, row) for name in families() for key, row in published_rows(name).items()]


@pytest.mark.parametrize(("name", "key", "row"), ROWS, ids=["-".join(key) for _, key, _ in ROWS])
def test_every_row_is_of_fractions_with_a_source(name, key, row):
    assert row.metrics
    counts = {"failed_tasks"} & set(row.metrics)
    assert all(type(row.metrics[name]) is int and 0 <= row.metrics[name] <= 20 for name in counts)
    assert all(type(value) is float and 0 <= value <= 1 for name, value in row.metrics.items() if name not in counts)
    assert "arXiv" in row.source or "CVPR" in row.source
    assert row.note
    data = families()[name].data
    assert {key[1], key[1].partition("-")[0]} & set(data), "a row for data that its family does not have"


def test_every_family_of_this_package_has_rows():
    assert {name for name, _, _ in ROWS} == set(families())


UNPUBLISHED = ("-cub", "-scenes", "-photos", "-stories", "tuned", "sparse", "ordered", "-babi", "-cifar10", "-details")
"""In the names of models that ask or do what no paper did; those of bAbI and CIFAR-10 stand in a table with their
protocol."""


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_model_stands_beside_the_number_of_its_paper_or_beside_none(name):
    facts = read_facts(shipped()[name])
    published = published_for(facts)
    assert (published is None) == any(part in name for part in UNPUBLISHED)
    told = {} if published is None else published.metrics
    assert published is None or {"accuracy", "macro_f1"} & set(told)
    assert all(score.published == told for score in facts.scores), "the card tells another number"


MADE_UP = {("gaze", "dots"): Published({"accuracy": 0.5}, "nobody")}


@pytest.fixture
def other(monkeypatch):
    """A family of another package, with and without published rows."""
    told = Family(
        "dots", "", Path(), reads="", models={}, data={}, task="", splits="", decode="", headline=(),
        published=f"{__name__}:MADE_UP",
    )  # fmt: skip
    silent = replace(told, name="silent", published=None)
    monkeypatch.setattr("saccade.tasks.published.families", lambda: {"dots": told, "silent": silent})


@pytest.mark.usefixtures("other")
def test_a_row_comes_from_the_family_of_the_model():
    facts = replace(tiny_facts(), family="dots", architecture="gaze", recipe={}, data={"name": "dots"})
    assert published_for(facts) is MADE_UP["gaze", "dots"]
    assert published_for(replace(facts, data={"name": "mref"})) is None
    assert published_for(replace(facts, family="silent")) is None
    assert published_for(replace(facts, family="not-installed")) is None


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(
    ("recipe", "is_of_the_paper"),
    [("gaze", True), ("gaze-dots", True), ("gaze-dots-long", True), ("gaze-tuned", False), ("gaze-sparse-dots", False)],
)
def test_only_the_system_of_the_paper_stands_beside_its_numbers(recipe, is_of_the_paper):
    facts = replace(tiny_facts(), family="dots", architecture="gaze", recipe={"name": recipe}, data={"name": "dots"})
    assert (published_for(facts) is not None) == is_of_the_paper
