"""Table 1 from hand-made records: every cell says what it must, and nothing that was not measured."""

import pytest

from fake_runs import fake_run, run_values
from saccade.config import from_dict
from saccade.errors import ConfigError
from saccade.families.question.published import OTHER_PHOTOGRAPHS
from saccade.families.question.reproduction.table1 import DATA, SETTINGS, Table1
from saccade.recorded import RecordedRun, recorded_runs
from saccade.verbs.reproduction.cells import NO_RUN

RUNS = (
    fake_run("soft", seed=0, accuracy=0.80),
    fake_run("soft", seed=1, accuracy=0.82),
    fake_run("soft", seed=2, accuracy=0.84),
    fake_run("soft", protocol="unlimited", glyphs="disjoint", accuracy=0.9),
    fake_run("hattnet-ctx", data="mbg", accuracy=0.85, half_width=0.02),
    fake_run("something-new", accuracy=0.5),
)


def row(table, label):
    (found,) = [line for line in table.rows if line[0] == label]
    return dict(zip(table.columns, found))


def test_a_cell_beside_the_published_one():
    line = row(Table1(RUNS).accuracy("mref"), "SOFT")
    assert line["paper"] == "82.94"
    assert line["authors merged"] == "82.00±2.00\n3 × 10,000"
    assert line["difference [95 %]"] == "-0.94\n[-6.01, +4.13]"  # ± 5.068, see the tests of seeds
    assert line["authors disjoint"] == NO_RUN
    assert line["unlimited"] == "90.00\n1 × 10,000"


def test_a_cell_without_a_run_says_so_and_keeps_the_published_number():
    line = row(Table1(RUNS).accuracy("mdist"), "HAttNet-CTX")
    assert (line["paper"], line["authors merged"], line["difference [95 %]"]) == ("96.02", NO_RUN, "–")


def test_other_photographs_are_marked_in_every_table_of_mbg():
    table = Table1(RUNS)
    for made in (table.accuracy("mbg"), table.strength("mbg"), table.looking("mbg")):
        assert OTHER_PHOTOGRAPHS in made.title
    line = row(table.accuracy("mbg"), "HAttNet-CTX")
    assert line["paper"] == "81.01 on SUN"
    assert line["difference [95 %]"] == "+3.99\n[+1.99, +5.99]\nnot comparable"
    assert row(table.accuracy("mbg"), "STN, bounded")["difference [95 %]"] == "–"
    assert row(table.short(), "HAttNet-CTX")["MBG as published"] == "85.00 (81.01 on SUN)\n1 × 10,000"
    assert row(table.short(), "SOFT")["MREF as published"].startswith("82.00±2.00 (82.94)\n")
    assert OTHER_PHOTOGRAPHS in table.short().note
    assert all(OTHER_PHOTOGRAPHS in cell.not_comparable for cell in table.cells() if cell.data == "mbg")
    assert not any(cell.not_comparable for cell in table.cells() if cell.data != "mbg")


def test_bounds_come_from_the_baselines_and_answer_nothing():
    table = Table1(RUNS)
    line = row(table.strength("mref"), "bound: even")
    assert (line["paper"], line["authors merged"]) == ("2.34", "2.33±0.00\n3 × 10,000")
    assert line["difference [95 %]"] == "-0.01"
    assert "bound: even" not in {line[0] for line in table.accuracy("mref").rows}
    assert row(table.strength("mbg"), "bound: even")["authors merged"] == "2.33\n1 × 10,000"  # on any grid
    assert row(table.strength("mbg"), "bound: best cell, one grid")["authors merged"] == "–"  # no run has one grid
    assert row(table.strength("mref"), "bound: best cell, one grid")["authors merged"] == "19.00±0.00\n3 × 10,000"


def test_a_model_of_several_grids_has_bounds_of_its_own_and_none_of_the_old_definition():
    old = run_values("hattnet-ctx", strength=0.7)
    old["evaluation"]["attention"]["by_look"] = {"stage1": {"pointing": 0.1}, "stage4": {"pointing": 0.2}}
    new = {**old, "evaluation": {**old["evaluation"], "definition": 2}}
    line = "bound: best map, four grids"
    shown = [
        row(Table1([from_dict(RecordedRun, values)]).strength("mref"), line)["authors merged"] for values in (old, new)
    ]
    assert shown == ["–", "19.00\n1 × 10,000"]
    assert (
        row(Table1([from_dict(RecordedRun, new)]).strength("mref"), "bound: best cell, one grid")["authors merged"]
        == "–"
    )


def test_a_system_that_the_table_does_not_know_still_has_its_row():
    assert row(Table1(RUNS).accuracy("mref"), "something-new")["authors merged"].startswith("50.00")


def test_only_cells_with_a_run_tell_where_they_looked():
    told = Table1(RUNS).looking("mref")
    assert [line[:2] for line in told.rows if line[0] == "SOFT"] == [
        ["SOFT", "authors merged\n3 × 10,000"],
        ["SOFT", "unlimited\n1 × 10,000"],
    ]
    assert "HARD" not in {line[0] for line in told.rows}
    assert Table1(RUNS).looking("mdist").rows == []


def test_the_short_table_has_the_five_systems_of_the_paper_and_what_was_run():
    short = Table1(RUNS).short()
    labels = [line[0] for line in short.rows]
    assert labels == ["STN, plain", "STN, bounded", "SOFT", "HARD", "HAttNet", "HAttNet-CTX", "something-new"]
    assert row(short, "SOFT")["MREF as published"] == "82.00±2.00 (82.94)\n3 × 10,000"
    assert row(short, "STN, bounded")["MREF as published"] == "no run (39.10)"


def test_json_of_a_cell():
    (cell,) = [
        cell.to_json()
        for cell in Table1(RUNS).cells(["accuracy"])
        if (cell.system, cell.data, cell.setting) == ("soft", "mref", SETTINGS[0])
    ]
    assert cell["mean"] == pytest.approx(0.82)
    assert cell["seeds"] == [0, 1, 2]
    assert cell["difference"] == pytest.approx(-0.0094)
    assert cell["difference_interval"][0] == pytest.approx(-0.0094 - 0.05068, abs=1e-5)


def test_protocol_and_data_choose_the_columns():
    assert Table1(RUNS, protocol="unlimited").accuracy("mref").columns == ["system", "unlimited"]
    assert len(Table1(RUNS, ("mref",), "authors").cells(["accuracy"])) == 2 * len(Table1(RUNS).rows_of("accuracy"))
    with pytest.raises(ConfigError, match="mdist"):
        Table1(RUNS, ("mdits",))
    with pytest.raises(ConfigError, match="authors"):
        Table1(RUNS, DATA, "author")


def test_further_runs_fill_gaps_and_replace_nothing():
    more = [fake_run("soft", seed=0, accuracy=0.1), fake_run("soft", seed=3, accuracy=0.82)]
    cell = Table1(RUNS).with_runs(more).cell("accuracy", "soft", "mref", SETTINGS[0])
    assert cell.measured.seeds == (0, 1, 2, 3)
    assert cell.measured.mean == pytest.approx(0.82)


def test_missing_jobs_are_the_seeds_that_a_cell_lacks():
    table = Table1([fake_run("soft", seed=1), fake_run("blind", seed=0)], ("mref",), "authors")
    jobs = [job.name for job in table.missing(2)]
    assert "soft-mref-authors-merged-authors-drawing-seed0" in jobs
    assert "soft-mref-authors-merged-authors-drawing-seed1" not in jobs
    assert "blind-mref-authors-merged-authors-drawing-seed0" not in jobs
    assert "soft-mref-authors-authors-drawing-seed1" in jobs, "disjoint glyphs are another cell"
    assert not [name for name in jobs if name.startswith(("uniform", "grid_oracle"))], "bounds are not trained"


@pytest.mark.parametrize("drawing", ["blend", ""])
def test_a_cell_of_runs_that_are_drawn_otherwise_says_so(drawing):
    """Records from before there were several drawings do not name theirs: it is ``blend``."""
    table = Table1([fake_run("soft", accuracy=0.8, drawing=drawing)])
    assert row(table.accuracy("mref"), "SOFT")["authors merged"] == "80.00\n1 × 10,000, blend"
    assert row(table.short(), "SOFT")["MREF as published"] == "80.00 (82.94)\n1 × 10,000, blend"
    assert table.looking("mref").rows[0][1] == "authors merged\n1 × 10,000, blend"
    assert "names their drawing behind its count" in table.short().note
    assert table.cell("accuracy", "soft", "mref", SETTINGS[0]).to_json()["drawing"] == "blend"
    assert "soft-mref-authors-merged-authors-drawing-seed0" in [job.name for job in table.missing(1)]


def test_runs_of_different_drawings_are_never_averaged():
    old = [fake_run("soft", seed=seed, accuracy=0.1, drawing="blend") for seed in range(3)]
    table = Table1(old).with_runs([fake_run("soft", seed=0, accuracy=0.8)])
    cell = table.cell("accuracy", "soft", "mref", SETTINGS[0])
    assert (cell.measured.mean, cell.measured.seeds, cell.drawn) == (0.8, (0,), "")
    unlimited = {"protocol": "unlimited", "glyphs": "disjoint"}
    mixed = [fake_run("soft", seed=seed, drawing=name, **unlimited) for seed, name in enumerate(("both", "authors"))]
    assert Table1(mixed).drawn("soft", "mref", SETTINGS[-1]) == "authors"
    assert len(Table1(mixed).of("soft", "mref", SETTINGS[-1])) == 1


def test_a_run_that_was_scored_on_another_drawing_names_both():
    run = fake_run("soft", protocol="unlimited", glyphs="disjoint", drawing="both", scored_on="authors")
    assert run.drawing == "both, scored on authors"
    cell = row(Table1([run]).accuracy("mref"), "SOFT")["unlimited"]
    assert cell == "80.00\n1 × 10,000, both, scored on authors"
    assert fake_run("soft", drawing="", scored_on="blend").drawing == "blend"


def test_every_record_of_the_authors_sizes_keeps_its_drawing() -> None:
    """They were made before scenes could be drawn otherwise; the recipes of today draw theirs as the authors do."""
    old = [
        run for run in (*recorded_runs(), *recorded_runs(variants=True)) if run.on in DATA and "drawing" not in run.data
    ]
    of_authors = [run for run in old if run.protocol == "authors"]
    assert len(of_authors) >= 39
    assert {run.drawing for run in old} == {"blend"}
    assert all("data.drawing=blend" in run.again for run in of_authors)


def test_the_table_on_photographs_names_the_set_and_says_which_are_too_few():
    ours = fake_run(data="mbg", backgrounds="bsds500-test-100-ee467d42")
    few = fake_run(data="mbg", seed=1, backgrounds="shipped-test-3-c8aec02d")
    note = Table1([ours]).accuracy("mbg").note
    assert "bsds500-test-100-ee467d42 (1 run)" in note
    assert "ship" not in note
    assert "the nine photographs that ship" in Table1([ours, few]).short().note
    assert "bsds500" not in Table1([ours]).accuracy("mref").note


def test_every_record_on_photographs_names_its_set() -> None:
    found = {run.evaluation.backgrounds for run in (*recorded_runs(), *recorded_runs(variants=True)) if run.on == "mbg"}
    assert found == {"bsds500-test-100-ee467d42"}
