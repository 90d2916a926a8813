"""The table of memory networks: measured beside published, restarts, generated tasks, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fake_runs import fake_run
from saccade.errors import ConfigError
from saccade.families.story.published import PUBLISHED, TASKS
from saccade.families.story.reproduction.memory_table import SETTINGS, MemoryTable, errors_of
from saccade.families.story.reproduction.systems import ROWS
from saccade.recorded import RecordedRun, Restarts
from saccade.verbs.reproduce import reproduce


def record(system="memn2n", protocol="task", size="10k", error=0.02, generated=("qa3",), tasks=20) -> RecordedRun:
    """A record whose restarts err by ``error`` and three times that, but for task 19 that fails."""
    made = fake_run(system, "babi", protocol, "", name=f"{system}-babi-{protocol}-{size}-seed0")
    runs = tuple(
        Restarts(
            errors={task: (error, 3 * error) if task != "qa19" else (0.5, 0.5)},
            kept={task: error if task != "qa19" else 0.5},
            chosen=0,
            generated=tuple({task} & set(generated)),
        )
        for task in (f"qa{number}" for number in range(1, tasks + 1))
    )
    scored = replace(made.evaluation, metrics={"mean_error": 0.1}, protocol=protocol)
    return replace(made, data={"name": "babi", "size": size}, evaluation=scored, restarts=runs)


def line(table, label):
    return next(row for row in table.rows if row[0] == label)


def test_a_cell_says_the_kept_restart_the_mean_of_all_and_the_published_error():
    found = errors_of(record())
    assert found.mean == pytest.approx((19 * 0.02 + 0.5) / 20)
    mean, std = found.over_restarts()
    assert mean == pytest.approx((19 * 0.04 + 0.5) / 20)
    assert std == pytest.approx((19 * 0.04 / 20) / 2**0.5)
    assert (found.failed, found.failed_by_restart) == (1, (1 + 20) / 2)
    assert found.others == pytest.approx((18 * 0.02 + 0.5) / 19), "the mean of the tasks with official questions"
    table = MemoryTable([record()], "task-10k").overview("task-10k")
    assert line(table, "MemN2N PE LS RN") == ["MemN2N PE LS RN", "6.6 (4)", "4.4 (1)*", "6.3±2.7 (10.5)", "4.5", "2"]
    assert line(table, "MemN2N PE")[1:3] == ["9.4 (6)", "no run"]
    assert line(table, "context: EntNet")[1:] == ["0.5", "–", "–", "–", "–"]
    assert line(table, "context: Universal Transformer")[1] == "0.21 (0)"
    joint = MemoryTable([], "joint-10k").overview("joint-10k")
    assert line(joint, "context: Universal Transformer")[1] == "0.29 (0)"


def test_tasks_that_are_missing_are_said_and_nothing_generated_leaves_the_column_out():
    table = MemoryTable([record(generated=(), tasks=19)]).overview("task-10k")
    assert line(table, "MemN2N PE LS RN")[2] == "4.5 (1)\n19 tasks"
    assert "not generated" not in "".join(table.columns)


def test_errors_of_every_task_stand_beside_the_published_ones():
    table = MemoryTable([record("memn2n", "joint", "1k", generated=())]).by_task("joint-1k")
    assert len(table.rows) == len(TASKS) == 20
    assert table.rows[1] == ["2 2 supporting facts", "2.0 (11.4)\n4.0±2.8"]
    starred = MemoryTable([record()]).by_task("task-10k")
    assert starred.rows[2][1] == "2.0*\n4.0±2.8"
    assert MemoryTable([]).by_task("joint-1k") is None


def test_a_system_of_generated_stories_stands_beside_the_same_of_official_ones():
    """In a table of its own: it never saw an official training story, so no row of the papers is like it."""
    every = tuple(f"qa{number}" for number in range(1, 21))
    made = record("memn2n-stories", "joint", "1k", error=0.1, generated=every)
    made = replace(made, recipe={**made.recipe, "model": {"name": "memn2n"}})
    official = record("memn2n", "joint", "1k", error=0.02, generated=())
    table = MemoryTable([made, official])
    shown = table.carried_over()
    assert shown.columns[1:] == [
        "MemN2N PE LS RN, joint-1k,\ngenerated stories (memn2n-stories)", "MemN2N PE LS RN, joint-1k,\nofficial stories"
    ]  # fmt: skip
    assert shown.rows[0] == ["1 1 supporting fact", "10.0", "2.0"]
    assert shown.rows[-1] == ["mean (failed)", "12.0 (20)", "4.4 (1)"]
    assert "memn2n-stories" not in [row.system for row in table.rows("joint-1k")]
    assert MemoryTable([made]).carried_over().rows[0] == ["1 1 supporting fact", "10.0", "–"]
    assert MemoryTable([official, record()]).carried_over() is None, "one generated task is a star, not a table"


def test_what_is_missing_is_what_can_be_trained_and_has_no_record():
    table = MemoryTable([record("memn2n", "joint", "1k")], "joint-1k")
    assert [row.system for row, _ in table.missing()] == [
        "memn2n-ls",
        "memn2n-ls-1hop",
        "memn2n-ls-2hops",
        "memn2n-lw",
        "dmn",
    ]
    assert {setting for _, setting in MemoryTable([]).missing()} == set(SETTINGS)
    assert all(row.recipe for row, _ in MemoryTable([]).missing())


def test_other_systems_get_rows_and_other_data_and_records_without_restarts_do_not():
    table = MemoryTable([record("memn2n-deep"), fake_run("soft", "mref"), replace(record(), restarts=())])
    assert [row.system for row in table.rows("task-10k")][-1] == "memn2n-deep"
    assert set(table.cells) == {("memn2n-deep", "task-10k")}


def test_the_first_of_two_records_of_a_cell_stands():
    first, second = record(error=0.01), record(error=0.03)
    assert MemoryTable([first]).with_runs([second]).errors("memn2n", "task-10k") == errors_of(first)


def test_an_unknown_protocol_is_named():
    with pytest.raises(ConfigError, match=r"task-2k.*task-1k"):
        MemoryTable([], "task-2k")


def test_looks_and_changed_stories_come_from_the_evaluation():
    made = record()
    attention = {"support_hit": 0.9, "support_mass": 0.5, "empty_mass": 0.1, "change_rate": 0.7, "causal_hold": 0.95,
                 "weights_hold": 0.8}  # fmt: skip
    attention |= {"weight_follow": 0.6, "causal_change": 0.5, "causal_follow": 0.4, "edit_agrees_all": 0.7,
                  "edit_agrees_all_random": 0.6}  # fmt: skip
    rivals = {"recency": {"support_hit": 0.4, "weight_follow": 0.2}, "random_looks": {"support_found": 0.3}}
    counts = {"change_rate": 400, "causal_change": 300, "causal_follow": 200, "causal_hold": 380, "weights_hold": 380,
              "weight_follow": 190, "edit_agrees_all": 400, "edit_agrees_all_random": 390,
              "tasks_without": {"causal_follow": ["qa4", "qa15"], "change_rate": ["qa1"]}}  # fmt: skip
    scored = replace(made.evaluation, attention=attention, baselines=rivals, counts=counts)
    table = MemoryTable([replace(made, evaluation=scored)])
    assert table.looking().rows == [
        ["MemN2N PE LS RN", "task-10k", "90.0", "–", "–", "50.0", "10.0", "–"],
        ["recency", "–", "40.0", "–", "–", "–", "–", "–"],
        ["random looks", "–", "–", "30.0", "–", "–", "–", "–"],
    ]
    answers, weights, edits = table.changing()
    assert answers.rows == [["MemN2N PE LS RN", "task-10k", "50.0\n300", "40.0\n200", "95.0\n380", "–", "–"]]
    assert "Tasks without a score: MemN2N PE LS RN, task-10k (follows: 4 15)." in answers.note
    assert weights.rows == [
        ["MemN2N PE LS RN", "task-10k", "60.0\n190", "–", "80.0\n380", "–"],
        ["recency", "–", "20.0", "–", "–", "–"],
    ]
    assert "Tasks without" not in weights.note
    assert edits.rows == [["MemN2N PE LS RN", "task-10k", "70.0\n400", "60.0\n390", "–", "–"]]
    assert MemoryTable([]).looking() is None
    assert MemoryTable([]).changing() == []


def test_published_means_are_the_means_of_their_tasks():
    """Columns of the papers: where the error of every task is known, the mean and the failed tasks follow from them."""
    known = {key: row for key, row in PUBLISHED.items() if "accuracy_qa1" in row.metrics}
    assert len(known) == 4
    for key, row in known.items():
        errors = [1 - row.metrics[f"accuracy_qa{number}"] for number in range(1, 21)]
        assert sum(errors) / 20 == pytest.approx(row.metrics["mean_error"], abs=6e-4), key
        assert sum(error > 0.05 + 1e-9 for error in errors) == row.metrics["failed_tasks"], key


def test_every_published_row_has_a_row_in_the_table():
    named = {row.system for row in ROWS}
    assert {system for system, _ in PUBLISHED} <= named
    assert all(where.removeprefix("babi-") in SETTINGS for _, where in PUBLISHED)


def test_reproduce_prints_the_table_and_wants_the_files_for_training(tmp_path):
    found = reproduce("memory-table", protocol="joint-10k")
    assert found.tables[0].rows[1][:2] == ["MemN2N PE LS RN", "7.5 (6)"]
    cell = next(cell for cell in found.cells if cell["system"] == "memn2n")
    assert (cell["published"], cell["published_failed"], cell["protocol"]) == (0.075, 6, "joint-10k")
    with pytest.raises(ConfigError, match="`data=babi:PATH`"):
        reproduce("memory-table", protocol="joint-1k", train=True, out=tmp_path)
    with pytest.raises(ConfigError, match="one stack"):
        reproduce("memory-table", protocol="joint-1k", data=["babi:x"], train=True, jobs=2, out=tmp_path)
