"""Recorded runs: where they are found, what they say, and what is refused."""

import json
from itertools import pairwise

import pytest

from fake_runs import fake_run, run_values, write_run
from saccade.errors import CheckpointError, ConfigError, DataError
from saccade.recorded import read_run, recorded_runs, results_folder, save_run_record, superseded_runs


def test_the_shipped_results_are_found_and_all_of_them_read():
    assert (results_folder() / "soft-mref-unlimited-seed0.json").is_file()
    runs = {run.name: run for run in recorded_runs()}
    run = runs["soft-mref-unlimited-seed0"]
    assert (run.system, run.on, run.protocol, run.glyphs, run.seed) == ("soft", "mref", "unlimited", "disjoint", 0)
    assert run.value("accuracy") == run.evaluation.metrics["accuracy"]
    assert run.value("selectivity") == run.evaluation.attention["selectivity"]
    assert run.value("true_positive_strength", of="uniform") == pytest.approx(0.0234, abs=2e-4)
    assert run.settings == {"dropout": 0.0}
    assert all(run.name not in runs for run in recorded_runs(variants=True))


def test_the_row_is_what_stands_before_the_data_set():
    assert fake_run(name="hattnet-ctx-sparse-mref-unlimited-seed3", model="hattnet-ctx").system == "hattnet-ctx-sparse"
    assert fake_run(name="something-else", model="hard").system == "hard"


def test_what_is_not_there_is_none_and_counts_fall_back_to_n():
    run = fake_run(half_width=None, n=77)
    assert run.value("bleu_4") is None
    assert run.value("accuracy", of="nobody") is None
    assert run.interval("accuracy") is None
    assert (run.count("accuracy"), run.count("selectivity")) == (77, 77)
    assert run.value("accuracy_by_scale") is None, "a group of scores is no score"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda values: values.pop("evaluation"), "evaluation"),
        (lambda values: values.update(extra=1), "extra"),
        (lambda values: values["recipe"].pop("seed"), "seed"),
        (lambda values: values["evaluation"].update(n="many"), "evaluation.n"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, message):
    values = run_values()
    damage(values)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match=message) as caught:
        read_run(path)
    assert "bad.json" in str(caught.value)


def test_text_that_is_no_json_and_a_file_that_is_not_there(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(DataError, match="not a recorded run"):
        recorded_runs(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_run(tmp_path / "none.json")


def finished_run(folder):
    """The two files of a run folder that a record is made of."""
    values = run_values()
    (folder / "model").mkdir(parents=True)
    config = {key: values[key] for key in ("recipe", "data")} | {
        "training": {"machine": "a machine", "versions": {}, "loss": 3}, "sha256": "abc", "revision": "r1",
    }  # fmt: skip
    (folder / "model" / "config.json").write_text(json.dumps(config))
    rows = [
        {"seconds": 1, "step": 1, "phase": "main", "kind": "train", "values": {"loss": 2}},
        {
            "seconds": 90,
            "step": 40,
            "phase": "main",
            "kind": "validation",
            "values": {"accuracy": 1 / 3, "f1": float("nan")},
        },
    ]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return values["evaluation"]


def test_a_run_is_kept_and_reads_back(tmp_path):
    evaluation = finished_run(tmp_path / "run")
    options = {"name": "soft-mref-x-seed0", "command": "c", "folder": tmp_path / "results"}
    kept = save_run_record(evaluation, tmp_path / "run", **options)
    assert read_run(tmp_path / "results" / "soft-mref-x-seed0.json") == kept
    assert kept.training == {
        "machine": "a machine", "versions": {}, "minutes": 1.5, "steps": 40, "revision": "r1", "sha256": "abc",
    }  # fmt: skip
    assert kept.evaluation.model == "soft-mref-x-seed0"
    assert kept.course == ({"step": 40, "phase": "main", "kind": "validation", "values": {"accuracy": 0.33333}},)
    assert save_run_record(evaluation, tmp_path / "run", **options, revision="r2").training["revision"] == "r2"


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (30, 30), (31, 30), (100, 31)])
def test_of_many_validations_some_are_kept_and_the_last_of_each_phase(tmp_path, count, kept):
    evaluation = finished_run(tmp_path / "run")
    rows = [
        {
            "seconds": 1,
            "step": n,
            "phase": "first" if n < 5 else "main",
            "kind": "validation",
            "values": {"accuracy": 0.5},
        }
        for n in range(1, count + 1)
    ]
    (tmp_path / "run" / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = {"name": "soft-mref-x-seed0", "command": "c", "folder": tmp_path / "results"}
    steps = [row["step"] for row in save_run_record(evaluation, tmp_path / "run", **options).course]
    assert len(steps) == kept
    assert steps == sorted(set(steps))
    assert {min(4, count), count} <= set(steps)
    assert all(later - step <= -(-count // 30) for step, later in pairwise(steps))


@pytest.mark.parametrize(("classes", "is_kept"), [(100, True), (101, False)])
def test_scores_of_single_classes_are_kept_where_they_are_few(tmp_path, classes, is_kept):
    evaluation = finished_run(tmp_path / "run") | {"per_class": {f"class {n}": {"recall": 0.5} for n in range(classes)}}
    save_run_record(evaluation, tmp_path / "run", name="soft-mref-x-seed0", command="c", folder=tmp_path / "results")
    written = json.loads((tmp_path / "results" / "soft-mref-x-seed0.json").read_text())["evaluation"]
    assert ("per_class" in written) == is_kept


def test_a_record_says_that_the_data_changed_on_the_way(tmp_path):
    evaluation = finished_run(tmp_path / "run")
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    config["training"]["data_changes"] = ["from step 2 on: rows: 1 changed"]
    (tmp_path / "run" / "model" / "config.json").write_text(json.dumps(config))
    kept = save_run_record(
        evaluation, tmp_path / "run", name="soft-mref-x-seed0", command="c", folder=tmp_path / "results"
    )
    assert kept.training["data_changes"] == ["from step 2 on: rows: 1 changed"]


def test_an_unfinished_run_and_a_strange_evaluation_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(CheckpointError, match="not a finished run"):
        save_run_record({}, tmp_path, name="x", command="c", folder=tmp_path / "results")
    evaluation = finished_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="sorprise"):
        save_run_record(
            {**evaluation, "sorprise": 1}, tmp_path / "run", name="x", command="c", folder=tmp_path / "results"
        )
    assert not (tmp_path / "results").exists()


def test_runs_come_by_name(tmp_path):
    for seed in (2, 0, 1):
        write_run(tmp_path, seed=seed)
    write_run(tmp_path / "variants", seed=9)
    assert [run.seed for run in recorded_runs(tmp_path)] == [0, 1, 2]
    assert [run.seed for run in recorded_runs(tmp_path, variants=True)] == [9]
    assert recorded_runs(tmp_path / "nowhere") == ()


def test_a_record_that_changes_is_read_again(tmp_path):
    """Records are kept in memory as long as their files stay the same."""
    write_run(tmp_path, seed=0)
    (first,), (again,) = recorded_runs(tmp_path), recorded_runs(tmp_path)
    assert again is first
    (path,) = tmp_path.glob("*.json")
    path.write_text(path.read_text().replace(first.command, "saccade train another"))
    (changed,) = recorded_runs(tmp_path)
    assert changed.command == "saccade train another" != first.command


def test_superseded_runs_say_why_and_stand_in_no_table() -> None:
    old = superseded_runs()
    assert old
    assert all(run.superseded for run in old)
    assert not any(run.superseded for run in (*recorded_runs(), *recorded_runs(variants=True)))
