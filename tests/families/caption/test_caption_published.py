"""Table 1 of Xu et al. (2015), as printed."""

from __future__ import annotations

from dataclasses import replace

from saccade.families.caption.published import METRICS, PUBLISHED
from saccade.families.caption.reproduction.table1 import COLUMNS
from saccade.tasks.published import published_for
from tiny_models import tiny_facts


def test_every_cell_of_the_paper_is_there() -> None:
    """15 rows, of which 62 cells are printed; two of them stand beside the recipes of the paper's own setting too."""
    printed = {key: row for key, row in PUBLISHED.items() if not key[0].endswith("-paper")}
    assert len(printed) == 15
    assert len([(key, metric) for key, row in printed.items() for metric in row.metrics]) == 62
    for system in ("sat-soft", "sat-hard"):
        assert PUBLISHED[f"{system}-paper", "flickr8k"].metrics == PUBLISHED[system, "flickr8k"].metrics
        assert (f"{system}-paper", "coco") not in PUBLISHED
    assert PUBLISHED["sat-hard", "flickr8k"].metrics == {
        "bleu_1_nobp": 0.67, "bleu_2_nobp": 0.457, "bleu_3_nobp": 0.314, "bleu_4_nobp": 0.213, "meteor": 0.2030,
    }  # fmt: skip
    assert PUBLISHED["cmu", "coco"].metrics == {"meteor": 0.2041}
    assert not any(row.not_comparable for row in PUBLISHED.values())


def test_the_reproduced_table_has_the_papers_columns() -> None:
    assert tuple(COLUMNS) == METRICS


def test_a_tuned_captioner_is_not_the_papers() -> None:
    captioner = replace(tiny_facts(), family="caption", architecture="sat-soft", data={"name": "flickr8k"})
    assert published_for(replace(captioner, recipe={"name": "sat-soft"})) is PUBLISHED["sat-soft", "flickr8k"]
    assert published_for(replace(captioner, recipe={"name": "sat-soft-tuned"})) is None
