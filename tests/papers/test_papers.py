"""Published beside measured: a cell by hand, every table, and ``saccade reproduce``."""

import dataclasses
import json
from functools import partial
from math import sqrt
from pathlib import Path

import pytest
import torch

import saccade
from saccade import geometry
from saccade.models.facts import read_facts
from saccade.papers.results import PaperRun, RunScore, measure, published_for, recorded_runs
from saccade.papers.tables import TABLES, cells_of, zero_border
from saccade.zoo.folders import shipped
from typed import typed

FIELDS = tuple(field.name for field in dataclasses.fields(PaperRun) if field.name != "scores")


def run(value: float = 0.8, seed: int = 0, half: float | None = 0.01, n: int = 10_000) -> PaperRun:
    ends = (None, None) if half is None else (value - half, value + half)
    return PaperRun({"accuracy": RunScore(value, *ends, n, "test")}, **{**dict.fromkeys(FIELDS, ""), "seed": str(seed)})


def test_one_seed_has_no_spread_and_its_own_interval() -> None:
    found = measure([run()], "accuracy")
    assert (found.mean, found.std, found.seeds, found.n) == (0.8, None, (0,), 10_000)
    assert (found.low, found.high) == (pytest.approx(0.79), pytest.approx(0.81))


def test_three_seeds_by_hand() -> None:
    """0.80, 0.82, 0.84: mean 0.82, std 0.02; t(2) · 0.02/√3 = 0.04969; with 0.01 of the pictures: 0.05068."""
    found = measure([run(value, seed) for seed, value in enumerate((0.80, 0.84, 0.82))], "accuracy")
    assert (found.mean, found.std) == (pytest.approx(0.82), pytest.approx(0.02))
    half = sqrt(0.01**2 + (4.303 * 0.02 / sqrt(3)) ** 2)
    assert half == pytest.approx(0.05068, abs=1e-5)
    assert (found.low, found.high) == (pytest.approx(0.82 - half), pytest.approx(0.82 + half))


def test_what_is_missing_is_not_made_up() -> None:
    assert measure([], "accuracy") is None
    assert measure([run()], "bleu_4") is None
    without = measure([run(half=None), run(seed=1, n=300)], "accuracy")
    assert (without.low, without.high) == (None, None), "one interval is missing, so there is none for the mean"
    assert without.n == 300, "the smallest"


def test_every_recorded_score_is_of_a_run_and_within_its_interval() -> None:
    runs = recorded_runs()
    main = [each for each in runs.values() if each.kind == "main"]
    assert len(main) > 200
    assert all(each.command.startswith("saccade ") and each.machine and each.scores for each in main)
    cells = {(each.table, each.system, each.data, each.protocol, each.glyphs, each.drawing, each.seed) for each in main}
    assert len(cells) == len(main), "two runs of one seed in one cell"
    for each in main:
        for name, score in each.scores.items():
            if score.low is not None and score.high is not None:
                assert score.low - 1e-6 <= score.value <= score.high + 1e-6, (each.run, name)


def test_beyond_the_outermost_cell_a_map_falls_to_zero() -> None:
    """Cells of 4 pixels, centred at 4 and 8: what is extended stays 1; else pixel 0 has an eighth a side."""
    frame = geometry.scale_shift((4.0, 4.0), (2.0, 2.0))
    even = torch.ones(1, 2, 2)
    extended, ending = geometry.project(even, frame, (12, 12)), zero_border(even, frame, (12, 12))
    assert extended.min() == extended.max() == 1
    assert ending[0, 5, 5] == pytest.approx(1)
    assert ending[0, 0, 0] == pytest.approx(0.125**2)
    assert 0 < float(ending.mean()) < 1


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_printed_whole(name: str) -> None:
    found = saccade.reproduce(name)
    assert found.tables[0].rows
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows)
    whole = found.to_json()
    assert json.loads(json.dumps(whole))["table"] == name
    assert whole["cells"] or whole["rows"]
    assert found.markdown().count("\n| ") > len(found.tables)


def test_a_cell_has_its_seeds_its_published_number_and_its_command() -> None:
    cells = {
        (cell.system, cell.data, cell.protocol, cell.drawing, cell.metric): cell for cell in cells_of("hattnet-table1")
    }
    cell = cells["hattnet-ctx", "mref", "authors merged", "authors", "accuracy"]
    assert (cell.published, cell.measured.seeds, cell.measured.n) == (0.9851, (0, 1, 2, 3, 4), 10_000)
    assert cell.difference["value"] == pytest.approx(cell.measured.mean - 0.9851)
    assert "hattnet-ctx-mref" in cell.command
    fresh = cells["hattnet-ctx", "mref", "unlimited", "blend", "accuracy"]
    assert fresh.published is None, "the paper did not train without end"
    even = cells["uniform", "mref", "authors merged", "authors", "true_positive_strength"]
    assert even.published == pytest.approx(0.0234)
    assert cells["hattnet-ctx", "mref", "authors merged", "authors", "selectivity"].measured is not None


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("soft-mref", "accuracy", 0.8294),
        ("hattnet-ctx-mref", "true_positive_strength", 0.2259),
        ("hsal-mnist-multiset", "macro_f1", 0.978),
        ("memn2n-babi", "mean_error", None),  # trained in four ways: none is the paper's row for its facts alone
    ],
)
def test_a_shipped_model_has_the_published_numbers_of_its_system(name: str, metric: str, value: float | None) -> None:
    assert published_for(read_facts(shipped()[name])).get(metric) == value


reproduced = partial(typed, "reproduce")


def test_alone_it_lists_the_tables() -> None:
    assert "hattnet-table1" in reproduced().stdout
    assert json.loads(reproduced("--json").stdout) == {name: table.title for name, table in TABLES.items()}


def test_an_unknown_table_ends_in_one_line_that_names_the_nearest() -> None:
    result = reproduced("hattnet-tabel1")
    assert result.exit_code == 2
    assert "hattnet-table1" in result.stderr


@pytest.mark.parametrize("several", [False, True])
def test_json_is_the_table_or_each_under_its_name(several: bool) -> None:
    names = ["ran-table", "racnn-table"] if several else ["ran-table"]
    whole = json.loads(reproduced(*names, "--json").stdout)
    tables = whole if several else {"ran-table": whole}
    assert list(tables) == names
    assert tables["ran-table"]["cells"][0]["metric"] == "accuracy"


def test_tables_are_printed_and_written(tmp_path: Path) -> None:
    shown = reproduced("ran-table").stdout
    assert "94.77 (94.48)" in shown
    assert "1 × 10,000" in shown
    assert "saccade train ran-56" in shown.replace("\n", " ")
    done = reproduced("ran-table", "--out", tmp_path / "t.md", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "94.77 (94.48)" in (tmp_path / "t.md").read_text(encoding="utf-8")
