"""Missing runs: what they are called, how they are trained in turn or side by side, and how one goes on."""

import subprocess
from pathlib import Path

import pytest

from saccade.engine.health import TrainingStopped
from saccade.verbs.reproduction import training
from saccade.verbs.reproduction.cells import Setting
from saccade.verbs.reproduction.training import Job


def job(system: str) -> Job:
    return Job(f"{system}-mref", system, "mref", Setting("unlimited", "disjoint"), seed=0)


def begin(out: Path, system: str) -> None:
    """What a run leaves that was stopped."""
    folder = out / "runs" / f"{system}-mref-unlimited-seed0"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("begun")


def test_a_job_is_named_as_its_record_will_be():
    assert job("soft").name == "soft-mref-unlimited-seed0"
    assert Job("soft-mref", "soft", "mref", Setting("authors", "merged"), 2).name == "soft-mref-authors-merged-seed2"
    of_recipe = Job("soft", "soft", "mine", Setting(""), 0)
    assert (of_recipe.name, of_recipe.protocol, of_recipe.overrides) == ("soft-mine-seed0", None, ())


def test_a_run_that_was_begun_goes_on(tmp_path, monkeypatch):
    begin(tmp_path, "soft")
    seen = []
    monkeypatch.setattr(training, "train", lambda recipe=None, **options: seen.append((recipe, options)))
    monkeypatch.setattr(training, "evaluate", lambda *_, **__: {})
    monkeypatch.setattr(training, "save_run_record", lambda *_, **__: None)
    training.train_missing([job("soft"), job("hard")], tmp_path, device="cpu")
    (soft, begun), (hard, fresh) = seen
    assert (soft, begun["resume"], "overrides" in begun) == (None, True, False)
    assert (hard, "resume" in fresh, fresh["protocol"], fresh["seed"]) == ("hard-mref", False, "unlimited", 0)


def test_side_by_side_every_job_is_a_process_of_its_own_and_one_failure_stops_no_other(tmp_path, monkeypatch):
    begin(tmp_path, "hard")
    commands, kept = [], []

    def run(words, **_):
        commands.append(words[3:])
        failed = "film-mref" in words
        return subprocess.CompletedProcess(
            words, int(failed), '{"n": 7}', "remark\nerror: out of memory" if failed else ""
        )

    monkeypatch.setattr(training.subprocess, "run", run)
    monkeypatch.setattr(training, "save_run_record", lambda found, run, *, name, **_: kept.append((name, found)))
    jobs = [job(system) for system in ("soft", "hard", "film")]
    with pytest.raises(TrainingStopped, match="film-mref-unlimited-seed0: error: out of memory"):
        training.train_missing(jobs, tmp_path, side_by_side=3, device="cpu", limit=50)
    assert sorted(kept) == [(f"{system}-mref-unlimited-seed0", {"n": 7}) for system in ("hard", "soft")]
    trained = {tuple(words[:2]) for words in commands if words[0] == "train"}
    assert trained == {("train", "soft-mref"), ("train", "film-mref"), ("train", "--resume")}
    scored = [words for words in commands if words[0] == "evaluate"]
    assert len(scored) == 2
    assert all(words[-2:] == ["--limit", "50"] for words in scored)
