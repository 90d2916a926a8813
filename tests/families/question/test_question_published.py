"""Tables 1 and 2 of Seo et al. (2016), as printed."""

from dataclasses import replace

from saccade.families.question.published import PUBLISHED
from saccade.tasks.published import published_for
from tiny_models import tiny_facts


def test_every_cell_of_the_paper_is_there():
    """Table 1: five systems and three data sets, strengths for four of them and for the even map; Table 2: three.

    The row of STN stands twice, because two systems here are readings of it.
    """
    assert all(PUBLISHED["stn-plain", data] == PUBLISHED["stn", data] for data in ("mref", "mdist", "mbg"))
    cells = [(key, metric) for key, row in PUBLISHED.items() for metric in row.metrics if key[0] != "stn-plain"]
    assert len(cells) == 5 * 3 + 5 * 3 + 3 * 2
    assert PUBLISHED["hattnet-ctx", "mdist"].metrics == {"accuracy": 0.9602, "true_positive_strength": 0.2280}
    assert PUBLISHED["hattnet-ctx", "mbg"].metrics == {"accuracy": 0.8101, "true_positive_strength": 0.1101}
    assert PUBLISHED["hard", "vg"].metrics == {"weighted_map": 0.2381, "weighted_map_with_prior": 0.2804}


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


def test_only_the_photographs_differ_from_the_papers():
    assert {data for (_, data), row in PUBLISHED.items() if row.not_comparable} == {"mbg"}
    assert all(row.not_comparable for (_, data), row in PUBLISHED.items() if data == "mbg")


def test_sparse_gates_are_not_the_papers():
    gates = replace(tiny_facts(), architecture="hattnet-ctx", data={"name": "mref"})
    assert published_for(replace(gates, recipe={"name": "hattnet-ctx-mref"})) is PUBLISHED["hattnet-ctx", "mref"]
    assert published_for(replace(gates, recipe={"name": "hattnet-ctx-sparse-mref"})) is None
