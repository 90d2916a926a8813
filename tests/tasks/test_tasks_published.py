"""What the papers printed: fractions with a source, and a row for every model that ships."""

import pytest

from saccade.data.attributes import SPECS
from saccade.models.facts import read_facts
from saccade.tasks.published import PUBLISHED
from saccade.zoo import shipped

METRICS = {"accuracy", "true_positive_strength"}


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_every_entry_is_a_fraction_with_a_source(key):
    row = PUBLISHED[key]
    assert row.metrics
    assert set(row.metrics) <= METRICS
    assert all(type(value) is float and 0 < value < 1 for value in row.metrics.values())
    assert "arXiv" in row.source
    assert row.note
    assert key[1] in SPECS, "a row for data that is not there"


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_model_stands_beside_a_published_number(name):
    facts = read_facts(shipped()[name])
    published = PUBLISHED[facts.architecture, facts.data["name"]]
    assert "accuracy" in published.metrics
    assert all(score.published == published.metrics for score in facts.scores), "the card tells another number"


def test_the_table_is_in_the_papers_order():
    """Table 1, MREF: STN < HARD < SOFT < HAttNet < HAttNet-CTX in accuracy; every system looks better than evenly."""
    accuracy = [
        PUBLISHED[model, "mref"].metrics["accuracy"] for model in ("stn", "hard", "soft", "hattnet", "hattnet-ctx")
    ]
    assert accuracy == sorted(accuracy)
    assert accuracy[0] < 0.42, "STN never used the query"
    strength = {model: row.metrics.get("true_positive_strength") for (model, _), row in PUBLISHED.items()}
    assert min(value for model, value in strength.items() if value and model != "uniform") > 5 * strength["uniform"]
