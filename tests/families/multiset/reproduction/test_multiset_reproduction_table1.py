"""Table 1 of the multiset paper: measured beside published, seeds that are missing, curves from run folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fake_runs import fake_run
from saccade.errors import ConfigError
from saccade.families.multiset.reproduction import table1 as multiset_table
from saccade.families.multiset.reproduction.table1 import AUTHORS, FILES, UNLIMITED, MultisetTable, training_figures
from saccade.recorded import RecordedRun, recorded_runs
from saccade.verbs.reproduce import reproduce


def run(
    system: str = "hsal", data: str = "mnist-set", seed: int = 0, f1: float = 0.98, protocol: str = "unlimited"
) -> RecordedRun:
    """A recorded run of a reader; two tenths of its glimpses at random would be on an object."""
    name = f"{system}-{data}-{protocol}-seed{seed}" if data != "svhn" else f"{system}-svhn-multiset-seed{seed}"
    made = fake_run(system, data, protocol, "disjoint", seed, name=name)
    scored = replace(
        made.evaluation,
        metrics={"macro_f1": f1, "exact_match": f1 - 0.03},
        attention={"glimpse_in_evidence": 0.9, "glimpse_on_label": 0.8, "attn_saliency": 0.7},
        baselines={"random_glimpse": {"glimpse_in_evidence": 0.2, "attn_saliency": 0.1}},
        intervals={"macro_f1": [f1 - 0.01, f1 + 0.01]},
        counts={},
    )
    return replace(made, evaluation=scored)


def test_cells_stand_beside_the_published_ones() -> None:
    both = [run(seed=seed, f1=f1, protocol="authors") for seed, f1 in ((0, 0.97), (1, 0.99))]
    table = MultisetTable([*both, run(f1=0.995), run("hsal-ce", "svhn", f1=0.6)])
    cell = table.cell("macro_f1", "hsal", "mnist-set", AUTHORS)
    assert cell.measured is not None
    assert (cell.measured.mean, cell.measured.seeds, cell.published) == (pytest.approx(0.98), (0, 1), 0.990)
    assert cell.difference is not None
    assert cell.difference.value == pytest.approx(-0.01)
    shown = table.answers()
    assert shown.columns == [
        "", "MNIST Set, authors F1", "MNIST Set, authors 0-1", "MNIST Set, unlimited F1", "MNIST Set, unlimited 0-1",
        "MNIST Multiset, authors F1", "MNIST Multiset, authors 0-1", "MNIST Multiset, unlimited F1",
        "MNIST Multiset, unlimited 0-1", "SVHN Multiset F1", "SVHN Multiset 0-1",
    ]  # fmt: skip
    first, plain, second = shown.rows[:3]
    assert first[:2] == ["HSAL-RL, improved", "98.00±1.41 (99.00)\n2 × 10,000"]
    assert first[3] == "99.50\n1 × 10,000", "no published number beside training without end"
    assert first[5] == "no run (97.80)"
    assert second[9:] == ["60.00 (58.90)\n1 × 10,000", "57.00 (30.70)\n1 × 10,000"]
    assert plain[:4] == ["HSAL-RL, plain", "no run (99.00)", "no run (96.00)", "no run"]
    assert [row[0] for row in shown.rows[3:]] == [
        "control: CE in reading order", "control: multiset loss", "control: counts",
    ]  # fmt: skip


def test_other_systems_get_rows_of_their_own_and_other_data_do_not() -> None:
    table = MultisetTable([run("hsal-deep"), fake_run("soft", "mref")])
    assert list(table.systems)[-1] == "hsal-deep"
    assert "soft" not in table.systems


def test_glimpses_stand_beside_other_ways_to_glimpse() -> None:
    shown = MultisetTable([run()]).looking("mnist-set", UNLIMITED)
    assert [list(row) for row in shown.rows] == [
        ["HSAL-RL, improved", "90.00", "80.00", "70.00"], ["bound: at random", "20.00", "–", "10.00"],
    ]  # fmt: skip
    assert not MultisetTable([run()]).looking("svhn", FILES).rows
    assert not MultisetTable([run()]).looking("mnist-set", AUTHORS).rows


def test_how_each_row_was_trained_stands_beside_it() -> None:
    rows = {tuple(row[:2]): row[2:] for row in MultisetTable(recorded_runs()).trained().rows}
    plain, entropy = (rows[system, "MNIST Multiset, unlimited"] for system in ("HSAL-RL, plain", "Cross-Entropy"))
    assert plain == ["10.2 M fresh pictures", "mnist-test-10000", "compact", "reinforce", "12,000 steps"]
    assert entropy[-2:] == ["cross_entropy", "4,000 steps"], "a third of the budget, and the table says so"
    finite = MultisetTable([run(protocol="authors")]).trained().rows
    assert finite[0][1:3] == ["MNIST Set, authors", "55,000 pictures"]


def test_runs_otherwise_taught_stand_by_name() -> None:
    shown = MultisetTable([], ("mnist-set",)).otherwise([run(), run(data="svhn")])
    assert [row[:2] for row in shown.rows] == [["hsal-mnist-set-unlimited-seed0", "98.00"]]
    assert len(shown.rows[0]) == len(shown.columns) == 5


def test_what_is_missing_is_trained_where_scenes_can_be_made() -> None:
    table = MultisetTable([run(seed=0)], ("mnist-set", "svhn"), "unlimited")
    jobs = table.missing(2)
    assert {job.data for job in jobs} == {"mnist-set"}
    assert [job.seed for job in jobs if job.system == "hsal"] == [1]
    assert len(jobs) == 1 + 5 * 2
    assert jobs[0].name == "hsal-mnist-set-unlimited-seed1"
    assert table.with_runs([run(seed=0, f1=0.1)]).runs == tuple(table.runs)  # a cell's run of a seed stays
    both = MultisetTable([run(seed=0)], ("mnist-set",))
    assert {job.name for job in both.missing(1) if job.system == "hsal"} == {"hsal-mnist-set-authors-seed0"}
    assert len(both.with_runs([run(protocol="authors")]).runs) == 2


def test_curves_come_from_what_runs_kept_and_begin_with_the_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"step": step, "kind": "validation", "phase": phase, "values": {"macro_f1": step / 100}}
        for step, phase in ((5, "activation"), (10, "controllers"), (20, "controllers"))
    ]
    first, second = (replace(run(seed=seed), course=tuple(rows[: 4 - seed])) for seed in (1, 2))
    phases = [{"name": "activation", "data": "objects"}, {"name": "controllers"}]
    first, second = (replace(each, recipe={**each.recipe, "phases": phases}) for each in (first, second))
    runs = [second, first, run(seed=0), run("hsal-ce")]  # two of them kept nothing of their way
    drawings = training_figures(MultisetTable(runs, ("mnist-set", "svhn")))
    assert [drawing.name for drawing in drawings] == ["hsal-figure6"]  # of the saliency nothing was measured
    assert drawings[0].write(tmp_path).is_file()
    assert "Figure 6" in drawings[0].block().caption
    kept = {}
    monkeypatch.setattr(multiset_table, "line_panels", lambda panels, **options: kept.update(panels) or (None, None))
    drawings[0].draw("light")
    assert list(kept["MNIST Set, unlimited"]) == ["HSAL-RL, improved"]
    line = kept["MNIST Set, unlimited"]["HSAL-RL, improved"]
    assert (list(line.x), list(line.y)) == ([5, 15], [0.1, 0.2])


def test_the_verb_prints_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = [run(), run("hsal-ce", f1=0.7)]
    monkeypatch.setattr("saccade.families.multiset.reproduction.recorded_runs", lambda: here)
    found = reproduce("hsal-table1", out=tmp_path)
    assert found.tables[0].rows[2][1:4] == ["no run (73.50)", "no run (47.80)", "70.00\n1 × 10,000"]
    assert len(found.cells) == 6 * 5 * 2
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Cross-Entropy" in page
    assert "arXiv:1711.05165" in page
    assert "differences, points of 0-1" in page
    assert "Without a bracket no interval was recorded." in page
    only = reproduce("hsal-table1", data=["mnist-set"])
    assert (only.report, len(only.cells)) == (None, 6 * 2 * 2)
    with pytest.raises(ConfigError, match="data 'mref'"):
        reproduce("hsal-table1", data=["mref"])


def test_a_protocol_is_shown_alone_and_an_unknown_one_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.families.multiset.reproduction.recorded_runs", lambda: [run()])
    for protocol in ("authors", "unlimited"):
        cells = reproduce("hsal-table1", protocol=protocol).cells
        assert {cell["protocol"] for cell in cells if cell["data"] != "svhn"} == {protocol}
    with pytest.raises(ConfigError, match="protocol 'author': did you mean 'authors'"):
        reproduce("hsal-table1", protocol="author")
