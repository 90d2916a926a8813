"""What the papers printed: fractions with a source, and a row for every model that ships."""

from dataclasses import replace

import pytest

from saccade.families.multiset.data import SCENES
from saccade.families.question.scene_data import SPECS
from saccade.models.io.facts import read_facts
from saccade.tasks.published import CAPTION_METRICS, PUBLISHED, published_for
from saccade.zoo import shipped
from tiny_models import tiny_facts

METRICS = {
    "accuracy", "true_positive_strength", "weighted_map", "weighted_map_with_prior", "macro_f1", "exact_match",
    *CAPTION_METRICS,
}  # fmt: skip
READ = {"vg", "svhn", "flickr8k", "flickr30k", "coco"}
"""Data sets that are read from files."""


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_every_entry_is_a_fraction_with_a_source(key):
    row = PUBLISHED[key]
    assert row.metrics
    assert set(row.metrics) <= METRICS
    assert all(type(value) is float and 0 < value < 1 for value in row.metrics.values())
    assert "arXiv" in row.source
    assert row.note
    assert key[1] in {*SPECS, *SCENES, *READ}, "a row for data that is not there"
    assert bool(row.not_comparable) == (key[1] == "mbg"), "only the photographs differ from the paper's"


UNPUBLISHED = ("-cub", "-scenes", "tuned", "sparse", "ordered")
"""In the names of models that ask or do what no paper did."""


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_model_stands_beside_the_number_of_its_paper_or_beside_none(name):
    facts = read_facts(shipped()[name])
    published = published_for(facts)
    assert (published is None) == any(part in name for part in UNPUBLISHED)
    told = {} if published is None else published.metrics
    assert published is None or {"accuracy", "macro_f1"} & set(told)
    assert all(score.published == told for score in facts.scores), "the card tells another number"


def test_the_table_is_in_the_papers_order():
    """Table 1, MREF: STN < HARD < SOFT < HAttNet < HAttNet-CTX in accuracy; every system looks better than evenly."""
    accuracy = [
        PUBLISHED[model, "mref"].metrics["accuracy"] for model in ("stn", "hard", "soft", "hattnet", "hattnet-ctx")
    ]
    assert accuracy == sorted(accuracy)
    assert accuracy[0] < 0.42, "STN never used the query"
    strength = {
        model: row.metrics.get("true_positive_strength") for (model, data), row in PUBLISHED.items() if data == "mref"
    }
    assert min(value for model, value in strength.items() if value and model != "uniform") > 5 * strength["uniform"]


def test_every_cell_of_the_paper_is_there():
    """Seo, Table 1: five systems and three data sets, strengths for four of them and for the even map; Table 2: three.

    Welleck, Table 1: two systems, three data sets, two scores. Xu, Table 1: 15 rows, of which 62 cells are printed.
    """
    cells = [(key, metric) for key, row in PUBLISHED.items() for metric in row.metrics]
    assert len(cells) == 5 * 3 + 5 * 3 + 3 * 2 + 2 * 3 * 2 + 62
    assert PUBLISHED["sat-hard", "flickr8k"].metrics == {
        "bleu_1_nobp": 0.67, "bleu_2_nobp": 0.457, "bleu_3_nobp": 0.314, "bleu_4_nobp": 0.213, "meteor": 0.2030,
    }  # fmt: skip
    assert PUBLISHED["cmu", "coco"].metrics == {"meteor": 0.2041}
    assert PUBLISHED["hsal", "mnist-multiset"].metrics == {"macro_f1": 0.978, "exact_match": 0.935}
    assert PUBLISHED["hsal-ce", "svhn"].metrics == {"macro_f1": 0.589, "exact_match": 0.307}
    assert PUBLISHED["hattnet-ctx", "mdist"].metrics == {"accuracy": 0.9602, "true_positive_strength": 0.2280}
    assert PUBLISHED["hattnet-ctx", "mbg"].metrics == {"accuracy": 0.8101, "true_positive_strength": 0.1101}
    assert PUBLISHED["hard", "vg"].metrics == {"weighted_map": 0.2381, "weighted_map_with_prior": 0.2804}


@pytest.mark.parametrize(
    ("architecture", "recipe", "data", "exact"),
    [
        ("hsal", "hsal-mnist-set", "mnist-set", 0.96),
        ("hsal", "hsal-svhn-multiset", "svhn", 0.947),
        ("hsal", "hsal-ordered-mnist-set", "mnist-set", None),
        ("hsal", None, "mnist-set", 0.96),
    ],
)
def test_only_the_system_of_the_paper_stands_beside_its_numbers(architecture, recipe, data, exact) -> None:
    told = {} if recipe is None else {"name": recipe}
    facts = replace(tiny_facts(), architecture=architecture, recipe=told, data={"name": data})
    found = published_for(facts)
    assert (None if found is None else found.metrics["exact_match"]) == exact


def test_a_tuned_captioner_and_sparse_gates_are_not_the_paper_s() -> None:
    captioner = replace(tiny_facts(), architecture="sat-soft", data={"name": "flickr8k"})
    assert published_for(replace(captioner, recipe={"name": "sat-soft"})) is not None
    assert published_for(replace(captioner, recipe={"name": "sat-soft-tuned"})) is None
    gates = replace(tiny_facts(), architecture="hattnet-ctx", data={"name": "mref"})
    assert published_for(replace(gates, recipe={"name": "hattnet-ctx-mref"})) is not None
    assert published_for(replace(gates, recipe={"name": "hattnet-ctx-sparse-mref"})) is None
