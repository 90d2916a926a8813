"""Readings of Table 1b, on maps that can be worked out by hand, and on a shipped model."""

from __future__ import annotations

import pytest
import torch

from saccade.families.question.reproduction.readings import (
    READINGS,
    SYSTEMS,
    last,
    mean,
    mean_of_peaks,
    mean_of_sums,
    product,
    reading_table,
    recorded_readings,
    study_readings,
)
from saccade.predict import load
from saccade.recorded import recorded_runs

MAPS = torch.tensor([[[[0.2, 0.6], [0.2, 0.2]]], [[[0.1, 0.1], [0.3, 0.5]]]])  # (2,1,2,2)


def test_each_way_to_combine_two_maps_by_hand() -> None:
    """First map: sum 1.2, peak 0.6; second: sum 1, peak 0.5."""

    def flat(maps: torch.Tensor) -> list[float]:
        return maps.flatten().tolist()

    assert flat(product(MAPS)) == pytest.approx([0.02, 0.06, 0.06, 0.10])
    assert flat(last(MAPS)) == pytest.approx([0.1, 0.1, 0.3, 0.5])
    assert flat(mean(MAPS)) == pytest.approx([0.15, 0.35, 0.25, 0.35])
    assert flat(mean_of_sums(MAPS)) == pytest.approx(
        [0.2 / 2.4 + 0.05, 0.25 + 0.05, 0.2 / 2.4 + 0.15, 0.2 / 2.4 + 0.25]
    )
    assert flat(mean_of_peaks(MAPS)) == pytest.approx([1 / 6 + 0.1, 0.5 + 0.1, 1 / 6 + 0.3, 1 / 6 + 0.5])


def test_the_first_reading_is_that_of_the_tables_and_one_map_has_no_readings_but_its_border() -> None:
    study = study_readings({name: load(f"{name}-mref", "cpu") for name in ("soft", "hattnet-ctx-sparse")}, "mref", 40)
    soft, sparse = study.strengths["soft"], study.strengths["hattnet-ctx-sparse"]
    assert list(soft) == list(READINGS)
    for name, value in soft.items():
        like = "last map alone, zero border" if "zero" in name else "last map alone, edge extended"
        assert value == pytest.approx(soft[like]), name
    first = next(iter(READINGS))
    assert sparse[first] > 0.5 > sparse["last map alone, edge extended"], "its gates do the work, not its last map"
    assert study.even[first] == pytest.approx(0.023, abs=0.006)
    assert study.even["product of all maps, zero border"] > 1.3 * study.even[first]


def test_the_recorded_studies_have_every_reading_of_every_system() -> None:
    found = {study.data: study for study in recorded_readings()}
    assert {"mref", "mdist"} <= set(found)
    runs, variants = recorded_runs(), recorded_runs(variants=True)
    for study in found.values():
        assert set(study.strengths) == set(SYSTEMS)
        table = reading_table(study, runs, variants)
        assert [row[0] for row in table.rows[: 1 + len(READINGS)]] == ["published", *READINGS]
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert any("dropout" in row[0] for row in table.rows), "how it was trained is a reading too"
        trained, last = (next(row for row in table.rows if name in row[0]) for name in ("as trained", "… last map"))
        same = [one == other for one, other in zip(trained[1:], last[1:])]
        assert same == [True, True, False, False, True, True], "SOFT and HARD have one map; sparse has no such run"
