"""``reproduce``: records, shipped models and figures into one result; missing cells trained on request."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import torch
from tiny_runs import FRESH, TINY

import saccade.zoo
from fake_runs import fake_run, write_run
from saccade.config import to_dict
from saccade.engine.health import TrainingStopped
from saccade.errors import ConfigError
from saccade.families.question.reproduction.figures import SERIES, penalty_figure, recall_figure, scale_figure
from saccade.families.question.reproduction.table1 import SETTINGS, Table1
from saccade.families import model_spec
from saccade.models.io.folder import load_model, save_model
from saccade.recorded import recorded_runs
from saccade.verbs import reproduce as verb
from saccade.verbs.reproduction import training
from saccade.verbs.reproduction.confirm import verdict
from saccade.verbs.reproduction.training import missing_jobs

TABLE = "hattnet-table1"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty folder of results in place of the shipped ones."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    monkeypatch.setattr("saccade.recorded.runs.results_folder", lambda: folder)
    return folder


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """The shipped SOFT, and HARD and HAttNet-CTX of the same sizes as chance made them."""
    import dataclasses

    _, facts = load_model(saccade.zoo.shipped()["soft-mref"])
    soft, _ = load_model(saccade.zoo.shipped()["soft-mref"])
    folder = tmp_path / "zoo"
    save_model(soft, folder / "soft-mref", facts)
    torch.manual_seed(0)
    for system in ("hard", "hattnet-ctx"):
        model = model_spec(system).build({"queries": 10, "answers": 5, "channels": 4, "hidden": 4})
        told = dataclasses.replace(
            facts, architecture=system, model=to_dict(model.config), name=f"{system}-mref", training={"sha256": system}
        )
        save_model(model, folder / f"{system}-mref", told)
    monkeypatch.setattr(saccade.zoo, "ZOO", folder)


# ---------------------------------------------------------------- the whole


def test_tables_figures_and_page(results, zoo, tmp_path):
    sha256 = saccade.zoo.resolve("soft-mref").joinpath("config.json").read_text()
    sha256 = json.loads(sha256)["training"]["sha256"]
    fresh = {"protocol": "unlimited", "glyphs": "disjoint"}
    write_run(results, "soft", **fresh, accuracy=0.9, sha256=sha256)
    for penalty in (0.0, 0.3):
        config = {"spread_penalty": penalty} if penalty else {}
        write_run(results / "variants", "hattnet-ctx", **fresh, config=config, name=f"hattnet-ctx-mref-p{penalty}")
    calls = []
    out = tmp_path / "out"
    result = verb.reproduce(
        TABLE, data=("mref",), limit=60, out=out, device="cpu", progress=lambda *call: calls.append(call)
    )
    assert [path.name for path in result.figures] == [
        "figure-5a-unlimited.png", "figure-5b.png", "figure-6-mref.png", "sparse-gates.png",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in result.figures)
    page = (out / "report.html").read_text()
    assert result.report == out / "report.html"
    for words in ("Table 1a", "Table 1b", "Figure 5a", "Figure 5b", "Figure 6", "Sparse gates", "four projections"):
        assert words in page
    assert "://" not in page.replace("http://www.w3.org", "")  # pictures inside the file may spell "http" by chance
    verdicts = {each.model: each.verdict for each in result.confirmed}
    assert verdicts["hard-mref"] == "its run is not among the records"
    assert "record" in verdicts["soft-mref"]
    assert list(dict.fromkeys(call[0] for call in calls)) == [
        *(f"scoring {name}" for name in ("hard-mref", "hattnet-ctx-mref", "soft-mref")),
        "laying maps on pictures in every way",
        "drawing",
    ]
    told = result.to_json()
    assert json.loads(json.dumps(told))["confirmed"][0]["n"] == 60
    assert {cell["metric"] for cell in told["cells"]} >= {"accuracy", "true_positive_strength", "causal_hold"}


def test_without_a_place_nothing_is_written(results, zoo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    result = verb.reproduce(TABLE, data=("mref",), limit=20, device="cpu")
    assert (result.figures, result.report) == ([], None)
    assert set(tmp_path.rglob("*")) == before
    assert any("no run" in cell for table in result.tables for line in table.rows for cell in line)


def test_what_a_user_can_get_wrong(tmp_path):
    with pytest.raises(ConfigError, match="hattnet-table1"):
        verb.reproduce("hatnet-table1")
    with pytest.raises(ConfigError, match="--out"):
        verb.reproduce(TABLE, train=True)
    with pytest.raises(ConfigError, match="seeds"):
        verb.reproduce(TABLE, seeds=0)
    with pytest.raises(ConfigError, match="mref"):
        verb.reproduce(TABLE, data=("mreff",))


# ---------------------------------------------------------------- training


def test_missing_jobs_are_the_seeds_that_a_cell_lacks():
    table = Table1([fake_run("soft", seed=1), fake_run("blind", seed=0)], ("mref",), "authors")
    jobs = [job.name for job in missing_jobs(table, 2)]
    assert "soft-mref-authors-merged-seed0" in jobs
    assert "soft-mref-authors-merged-seed1" not in jobs
    assert "blind-mref-authors-merged-seed0" not in jobs
    assert "soft-mref-authors-seed1" in jobs, "disjoint glyphs are another cell"
    assert not [name for name in jobs if name.startswith(("uniform", "grid_oracle"))], "bounds are not trained"


def test_a_missing_cell_is_trained_once_evaluated_and_recorded(results, tmp_path, monkeypatch):
    monkeypatch.setattr(verb, "missing_jobs", lambda table, seeds: [
        job for job in missing_jobs(table, seeds) if (job.system, job.setting) == ("soft", SETTINGS[-1])
    ])  # fmt: skip
    monkeypatch.setattr(saccade.zoo, "ZOO", tmp_path)
    options = {"data": ("mref",), "protocol": "unlimited", "train": True, "limit": 20, "device": "cpu"}
    result = verb.reproduce(TABLE, **options, out=tmp_path / "out", overrides=[*TINY[1:], *FRESH, "data.glyphs=pack"])
    (run,) = recorded_runs(tmp_path / "out" / "results")
    assert (run.name, run.system, run.evaluation.n) == ("soft-mref-unlimited-seed0", "soft", 20)
    assert run.command.startswith("saccade train soft-mref --protocol unlimited --seed 0 --set data.glyphs=disjoint")
    assert (tmp_path / "out" / "runs" / run.name / "model" / "config.json").is_file()
    assert run.glyphs == "pack", "as the override has it"
    assert not [cell for cell in result.cells if cell["mean"] is not None], "shipped glyphs are no cell of the table"

    def never(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(training, "train", never)
    verb.reproduce(TABLE, **options, out=tmp_path / "out")


def test_a_run_that_was_begun_goes_on(tmp_path, monkeypatch):
    (tmp_path / "runs" / "soft-mref-unlimited-seed0").mkdir(parents=True)
    (tmp_path / "runs" / "soft-mref-unlimited-seed0" / "config.yaml").write_text("begun")
    seen = []
    monkeypatch.setattr(training, "train", lambda recipe=None, **options: seen.append((recipe, options)))
    monkeypatch.setattr(training, "evaluate", lambda *_, **__: {})
    monkeypatch.setattr(training, "keep", lambda *_, **__: None)
    jobs = [job for job in missing_jobs(Table1([], ("mref",), "unlimited"), 1) if job.system in ("soft", "hard")]
    training.train_missing(jobs, tmp_path, device="cpu")
    (soft, begun), (hard, fresh) = seen
    assert (soft, begun["resume"], "overrides" in begun) == (None, True, False)
    assert (hard, "resume" in fresh, fresh["protocol"], fresh["seed"]) == ("hard-mref", False, "unlimited", 0)


def test_side_by_side_every_job_is_a_process_of_its_own_and_one_failure_stops_no_other(tmp_path, monkeypatch):
    table = Table1([], ("mref",), "unlimited")
    jobs = [job for job in missing_jobs(table, 1) if job.system in ("soft", "hard", "film")]
    begun = tmp_path / "runs" / "hard-mref-unlimited-seed0"
    begun.mkdir(parents=True)
    (begun / "config.yaml").write_text("begun")
    commands, kept = [], []

    def run(words, **_):
        commands.append(words[3:])
        failed = "film-mref" in words
        return subprocess.CompletedProcess(
            words, int(failed), '{"n": 7}', "remark\nerror: out of memory" if failed else ""
        )

    monkeypatch.setattr(training.subprocess, "run", run)
    monkeypatch.setattr(training, "keep", lambda found, run, *, name, **_: kept.append((name, found)))
    with pytest.raises(TrainingStopped, match="film-mref-unlimited-seed0: error: out of memory"):
        training.train_missing(jobs, tmp_path, side_by_side=3, device="cpu", limit=50)
    assert sorted(kept) == [(f"{system}-mref-unlimited-seed0", {"n": 7}) for system in ("hard", "soft")]
    trained = {tuple(words[:2]) for words in commands if words[0] == "train"}
    assert trained == {("train", "soft-mref"), ("train", "film-mref"), ("train", "--resume")}
    scored = [words for words in commands if words[0] == "evaluate"]
    assert len(scored) == 2
    assert all(words[-2:] == ["--limit", "50"] for words in scored)


# ---------------------------------------------------------------- parts


def test_verdicts():
    run = fake_run(accuracy=0.90, half_width=0.006)
    assert verdict(0.91, (0.90, 0.92), run) == "agrees with the record"
    # 1.5 · √(0.01² + 0.006²) = 0.0175
    assert verdict(0.917, (0.907, 0.927), run) == "agrees with the record"
    assert verdict(0.918, (0.908, 0.928), run) == "differs from the record by +1.8 points"
    assert verdict(0.91, (0.9, 0.92), None) == "its run is not among the records"
    assert "no interval" in verdict(0.91, (0.9, 0.92), fake_run(half_width=None))
    other = fake_run(data="mbg", backgrounds="bsds500", accuracy=0.5)
    assert "not comparable" in verdict(0.5, (0.4, 0.6), other, "shipped-3")
    assert verdict(0.5, (0.4, 0.6), other, "bsds500") == "agrees with the record"


def test_the_scale_figure_has_a_line_a_system_and_says_where_there_is_none():
    table = Table1([fake_run("soft", accuracy=0.8), fake_run("soft", seed=1, accuracy=0.9), fake_run("hattnet")])
    mref, mdist, mbg = scale_figure(table, SETTINGS[0]).draw("light").axes
    lines = {line.get_label(): line for line in mref.get_lines() if not line.get_label().startswith("_")}
    assert list(lines) == ["SOFT", "HAttNet"]
    assert lines["SOFT"].get_ydata().tolist() == pytest.approx([0.85] * 5)
    assert [text.get_text() for text in mdist.texts] == ["no run"]
    assert "other photographs" in mbg.get_title(loc="left")
    assert scale_figure(table, SETTINGS[1]) is None


def test_a_system_has_the_same_colour_in_every_figure():
    def colour(*runs):
        (axes, *_) = scale_figure(Table1(runs, ("mref",)), SETTINGS[0]).draw("light").axes
        return {line.get_label(): line.get_color() for line in axes.get_lines()}["HAttNet"]

    assert colour(fake_run("hattnet")) == colour(fake_run("soft"), fake_run("hattnet"))
    assert len(set(SERIES)) == len(SERIES)


def test_no_curve_without_models_or_prices():
    assert recall_figure([], ("mref",)) is None
    assert penalty_figure([]) is None
    assert penalty_figure([SimpleNamespace(penalty=0.1), SimpleNamespace(penalty=0.2)]) is None
