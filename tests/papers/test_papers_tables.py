"""Published beside measured: the tables that ``saccade reproduce`` prints and those of the documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tables as tool

import saccade
from saccade.models.facts import read_facts
from saccade.papers.results import published, published_for, recorded_runs
from saccade.papers.tables import TABLES, cells_of
from saccade.zoo import shipped


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
    assert cell.measured is not None
    assert cell.difference is not None
    assert (cell.published, cell.measured.seeds, cell.measured.n) == (0.9851, (0, 1, 2, 3, 4), 10_000)
    assert cell.difference["value"] == pytest.approx(cell.measured.mean - 0.9851)
    assert "hattnet-ctx-mref" in cell.command
    fresh = cells["hattnet-ctx", "mref", "unlimited", "blend", "accuracy"]
    assert fresh.published is None, "the paper did not train without end"
    even = cells["uniform", "mref", "authors merged", "authors", "true_positive_strength"]
    assert even.published == pytest.approx(0.0234)
    assert cells["hattnet-ctx", "mref", "authors merged", "authors", "selectivity"].measured is not None


def test_published_numbers_are_fractions_of_known_tables_and_systems() -> None:
    assert {row.table for row in published()} <= set(TABLES)
    assert all(0 <= row.value <= 1 or row.metric == "failed_tasks" for row in published())
    keys = [(row.table, row.system, row.data, row.protocol, row.metric) for row in published()]
    assert len(keys) == len(set(keys))
    labels = {(run.table, run.data, run.label) for run in recorded_runs().values() if run.kind == "main"}
    compared = {(row.table, row.data, row.protocol) for row in published()} & labels
    assert len(compared) >= 12, "a label that no run has would compare nothing"


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("soft-mref", "accuracy", 0.8294),
        ("hattnet-ctx-mref", "true_positive_strength", 0.2259),
        ("hattnet-ctx-sparse-mref", "accuracy", None),
        ("hsal-mnist-multiset", "macro_f1", 0.978),
        ("hsal-ordered-mnist-multiset", "macro_f1", None),
        ("memn2n-babi", "mean_error", None),  # trained in four ways: none is the paper's row for its facts alone
    ],
)
def test_a_shipped_model_has_the_published_numbers_of_its_system(name: str, metric: str, value: float | None) -> None:
    assert published_for(read_facts(shipped()[name])).get(metric) == value


def test_the_tables_of_the_documents_are_current() -> None:
    assert tool.write_tables(check=True) == 0


def test_a_run_is_added_with_its_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs", "scores"):
        lines = (tool.results_folder() / f"{name}.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"{name}.csv").write_text(lines[0], encoding="utf-8")
    monkeypatch.setattr(tool, "results_folder", lambda: tmp_path)
    monkeypatch.setattr(tool, "recorded_runs", lambda: recorded_runs(tmp_path))
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    recipe = {"name": "soft-mref", "seed": 3, "phases": [{"epochs": 5}, {"epochs": 7}]}
    config = {"data": {"name": "mref", "glyphs": "disjoint"}, "recipe": recipe, "sha256": "ab" * 32}
    (run / "model" / "config.json").write_text(json.dumps({**config, "training": {"machine": "a CPU"}}))
    (run / "metrics.jsonl").write_text('{"seconds": 90, "step": 12}\n')
    evaluation = {
        "split": "test", "n": 50, "protocol": "authors", "drawing": "blend", "metrics": {"accuracy": 0.5},
        "attention": {"by_look": {"last": {"pointing": 0.25}}}, "baselines": {"uniform": {"pointing": 0.125}},
        "intervals": {"accuracy": [0.4, 0.6]}, "counts": {"accuracy": 49},
        "interventions": {"n": 3, "scene": {"scores": {"map_follow": 0.75}, "counts": {"map_follow": 2}}},
    }  # fmt: skip
    tool.add(evaluation, run, "soft-mref-authors-seed3", "hattnet-table1", "saccade train soft-mref", "main")
    recorded_runs.cache_clear()
    found = recorded_runs(tmp_path)["soft-mref-authors-seed3"]
    recorded_runs.cache_clear()
    assert (found.system, found.label, found.seed, found.epochs, found.minutes) == (
        "soft", "authors disjoint", "3", "5+7", "1.5",
    )  # fmt: skip
    assert {name: (score.value, score.n) for name, score in found.scores.items()} == {
        "accuracy": (0.5, 49),
        "by_look/last/pointing": (0.25, 50),
        "baseline/uniform/pointing": (0.125, 50),
        "map_follow": (0.75, 2),
    }
    assert (found.scores["accuracy"].low, found.scores["accuracy"].high) == (0.4, 0.6)
