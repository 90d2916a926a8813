"""Table 1 of Welleck et al. (2017), as printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from saccade.families.multiset.published import PUBLISHED
from saccade.tasks.published import published_for
from tiny_models import tiny_facts


def test_every_cell_of_the_paper_is_there() -> None:
    """Two systems, three data sets, two scores; that of HSAL-RL stands beside the plain and the improved one."""
    assert all(PUBLISHED["hsal-plain", data] == PUBLISHED["hsal", data] for data in ("mnist-set", "svhn"))
    cells = [(key, metric) for key, row in PUBLISHED.items() for metric in row.metrics if key[0] != "hsal-plain"]
    assert len(cells) == 2 * 3 * 2
    assert PUBLISHED["hsal", "mnist-multiset"].metrics == {"macro_f1": 0.978, "exact_match": 0.935}
    assert PUBLISHED["hsal-ce", "svhn"].metrics == {"macro_f1": 0.589, "exact_match": 0.307}
    assert not any(row.not_comparable for row in PUBLISHED.values())


@pytest.mark.parametrize(
    ("recipe", "data", "exact"),
    [
        ("hsal-mnist-set", "mnist-set", 0.96),
        ("hsal-svhn-multiset", "svhn", 0.947),
        ("hsal-ordered-mnist-set", "mnist-set", None),
        (None, "mnist-set", 0.96),
    ],
)
def test_only_the_system_of_the_paper_stands_beside_its_numbers(
    recipe: str | None, data: str, exact: float | None
) -> None:
    told = {} if recipe is None else {"name": recipe}
    facts = replace(tiny_facts(), family="multiset", architecture="hsal", recipe=told, data={"name": data})
    found = published_for(facts)
    assert (None if found is None else found.metrics["exact_match"]) == exact
