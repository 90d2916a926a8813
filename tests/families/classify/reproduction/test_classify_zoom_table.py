"""The table of what zooming gives: measured beside published and beside controls; what is missing is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fake_runs import fake_run
from saccade.engine.recipe import packaged_recipes
from saccade.errors import ConfigError
from saccade.families.classify.reproduction.zoom_table import SYSTEMS, ZoomTable
from saccade.recorded import RecordedRun
from saccade.verbs.reproduce import reproduce


def run(system: str, data: str = "details", seed: int = 0, accuracy: float = 0.9) -> RecordedRun:
    """A recorded run whose scale 1 knows a quarter, and whose crops cover all but a tenth."""
    made = fake_run(system, data, "unlimited", "", seed, name=f"{system}-{data}-unlimited-seed{seed}")
    scored = replace(
        made.evaluation,
        metrics={"scale1_accuracy": 0.25, "scale2_accuracy": accuracy, "scale3_accuracy": 0.8, "accuracy": 0.95},
        attention={"scale2_covers_evidence": 0.9, "scale2_inside_evidence": 0.03},
        baselines={"centred_crop": {"scale2_covers_evidence": 0.11}},
        intervals={},
        counts={},
    )
    return replace(made, evaluation=scored)


def test_scales_stand_side_by_side() -> None:
    """Mean over seeds; published numbers on the birds alone; a row without a run says so."""
    table = ZoomTable([run("racnn"), run("racnn", seed=1, accuracy=0.8), run("racnn-centre", accuracy=0.3)])
    rows = {row[0]: row[1:] for row in table.answers("details").rows}
    assert rows["RA-CNN"][1].startswith("85.00±")
    assert rows["control: crops in the middle"][1].startswith("30.00")
    assert rows["control: three networks, no crop"] == ["no run"] * 4
    assert next(row[1:] for row in table.answers("cub").rows) == [
        "no run (77.80)", "no run (82.40)", "no run (81.20)", "no run (85.30)",
    ]  # fmt: skip


def test_crops_stand_beside_centred_ones() -> None:
    """Of systems that have a run."""
    (row,) = ZoomTable([run("racnn")]).crops("details").rows
    assert row[:2] == ["RA-CNN", "90.00 (11.00)"]
    assert ZoomTable([]).crops("details").rows == []


def test_pictures_drawn_again_have_a_table_where_they_were_scored() -> None:
    """Of systems that were asked again, with the number of pictures that count."""
    made = run("racnn")
    scores = {"moved_follow": 0.35, "moved_hold": 1.0}
    asked = replace(made, evaluation=replace(made.evaluation, metrics=scores, counts={"moved_follow": 1_729}))
    (row,) = ZoomTable([asked, run("racnn-centre")]).redrawn("details").rows
    assert row[:3] == ["RA-CNN", "35.00", "100.00"]
    assert row[-1] == "1,729"
    assert [table.title for table in ZoomTable([run("racnn")]).further()] == ["crops on details, % (centred)"]


def test_what_is_missing_can_be_trained() -> None:
    """Every row of details by a recipe of its own; the birds only where they lie."""
    jobs = ZoomTable([run("racnn")]).missing(1)
    assert [job.system for job in jobs] == [system for system in SYSTEMS if system != "racnn"]
    birds = ZoomTable([], ("cub:somewhere",)).missing(1)
    assert len(birds) == len(SYSTEMS)
    assert all(job.source == "cub:somewhere" for job in birds)
    assert {job.recipe for job in (*jobs, *birds)} <= set(packaged_recipes())


def test_the_table_is_printed_by_its_name() -> None:
    """With every cell as plain values; unknown data is named."""
    found = reproduce("racnn-table", data=["details"])
    assert {cell["metric"] for cell in found.cells} >= {"scale1_accuracy", "accuracy"}
    assert len(found.cells) == 4 * len(SYSTEMS)
    with pytest.raises(ConfigError, match="cars"):
        reproduce("racnn-table", data=["cars"])
