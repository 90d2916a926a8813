"""Several seeds and recipes at once: the folders, the summary, what is refused, stopping and going on."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from typer.testing import CliRunner

import fake_children
import saccade
from saccade.commands.door import app
from saccade.commands.report import report
from saccade.engine.multi_run_progress import MultiRunProgress
from saccade.engine.parallel_runs import ParallelRuns
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError
from saccade.models.io.facts import read_facts
from saccade.verbs.training import several
from saccade.verbs.training.plan import make_plan
from saccade.verbs.training.run import Settings

NAMES, PLACES = ("Mary", "John", "Sandra", "Daniel"), ("kitchen", "garden", "office")


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def recipe(tmp_path: Path):
    """Writes a small recipe of stories and returns its file; ``main`` is its only phase."""
    stories = [
        {"story": [f"{name} went to the {place}."], "question": f"Where is {name}?", "answer": place, "split": split}
        for split, places in (("train", PLACES), ("val", PLACES[:2]), ("test", PLACES[2:]))
        for name in NAMES
        for place in places
        if (split == "train") == (name != "Daniel")
    ]
    table = tmp_path / "own.jsonl"
    table.write_text("".join(json.dumps(story) + "\n" for story in stories))

    def write(name: str, **changes: Any) -> str:
        phase = {"name": "main", "loss": {"name": "answer"}, "steps": 12, "validate_every": 4}
        phase |= {"optimizer": {"name": "sgd", "lr": 0.1}, "select": {"metric": "accuracy", "mode": "max"}}
        values = {
            "schema_version": 2,
            "extends": "memn2n",
            "replicas": 1,
            "batch_size": 4,
            "log_every": 2,
            "phases": [phase],
        }
        values |= {"phases": [phase], "data": {"name": f"jsonl:{table}"}, "model.config.dim": 4} | changes
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values))
        return str(path)

    return write


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children do what their recipe is called."""
    monkeypatch.setattr(several, "COMMAND", fake_children.COMMAND)


def run(*words: object):
    return CliRunner().invoke(app, [*map(str, words), "--device", "cpu"])


def content(out: Path) -> dict[str, Any]:
    return json.loads((out / "runs.json").read_text())


WAITS_FOR_THE_SIGNAL = """
import sys, threading
from saccade.engine import event_lines, stop
from saccade.verbs.training.child import main

told, on_signal, begin = threading.Event(), stop.StopRequest._on_signal, event_lines.LineReporter.begin
def noticed(self, number, frame):
    on_signal(self, number, frame)
    told.set()
def waiting(self, *facts):
    begin(self, *facts)
    told.wait(60)
stop.StopRequest._on_signal, event_lines.LineReporter.begin = noticed, waiting
sys.exit(main())
"""


@pytest.mark.slow
def test_seeds_stop_at_a_signal_go_on_and_are_what_each_is_alone(
    tmp_path: Path, recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process is a real one. In the first sitting one run makes one step: the signal comes before it."""
    out, name = tmp_path / "runs", recipe("own")

    class Stops(MultiRunProgress):
        def event(self, run: str | None, event: dict) -> None:
            if event["event"] == "begin":
                signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(several, "COMMAND", (sys.executable, "-c", WAITS_FOR_THE_SIGNAL))
        patch.setattr(several, "multi_run_progress", lambda mode, runs: Stops())
        stopped = run("train", name, "--seeds", 2, "--seed", 3, "--at-once", 1, "--out", out)
    assert stopped.exit_code == 130, stopped.output
    assert f"saccade train --resume --out {out}" in " ".join(stopped.stderr.split())
    first, second = content(out)["runs"]
    assert (first["name"], first["state"], first["result"]["step"]) == ("seed-3", "stopped", 1)
    assert (second["name"], second["state"], second["result"]) == ("seed-4", "waiting", None)
    assert {path.name for path in out.iterdir()} - {"logs"} == {"seed-3", "runs.json"}
    done = run("train", "--resume", "--out", out)
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} - {"logs"} == {"seed-3", "seed-4", "runs.json"}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = [
            saccade.train(name, seed=seed, out=tmp_path / f"alone-{seed}", device="cpu", quiet=True) for seed in (3, 4)
        ]
    finally:
        torch.set_num_threads(threads)
    digests = [read_facts(folder / "model").sha256 for folder in (out / "seed-3", out / "seed-4")]
    assert digests == [read_facts(each.out / "model").sha256 for each in alone]
    assert digests[0] != digests[1]
    for found, each in zip(content(out)["runs"], alone, strict=True):
        assert each.best is not None
        assert (found["state"], found["metric"], found["score"]) == ("finished", "accuracy", each.best.value)
        assert found["used"]["machine"] > 10 * 2**20
    assert content(out)["over_seeds"]["own"]["seeds"] == [3, 4]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_seeds_share_a_gpu_and_tell_its_memory(tmp_path: Path, recipe, capfd: pytest.CaptureFixture[str]) -> None:
    out, name = tmp_path / "runs", recipe("own")
    results = saccade.train(name, seeds=3, out=out, device="cuda")
    assert [each.stopped for each in results] == ["finished"] * 3
    found = content(out)
    assert all(each["used"]["device"] > 0 for each in found["runs"])
    assert "3 at once: " in capfd.readouterr().err  # the first was measured, and all fit
    assert found["sharing"].startswith(("by CUDA MPS", "by time slicing"))
    assert [each["attempts"] for each in found["runs"]] == [1, 1, 1]


@pytest.mark.usefixtures("fakes")
def test_one_of_three_recipes_fails_and_the_others_finish(tmp_path: Path, recipe) -> None:
    out = tmp_path / "runs"
    result = run("train", recipe("ok"), recipe("crash"), recipe("other"), "--out", out, "--quiet")
    assert result.exit_code == 1, result.output
    table = " ".join(result.stdout.split())
    assert "crash RuntimeError: it broke" in table
    assert "crash.txt" in table.replace(" ", "")
    states = {each["name"]: (each["state"], each["error"]) for each in content(out)["runs"]}
    assert states["ok"] == ("finished", None)
    assert states["crash"] == ("failed", "RuntimeError: it broke")
    assert "over seeds" not in result.stdout
    assert (out / "logs" / "crash.txt").is_file()
    with pytest.raises(
        several.RunsFailed, match=r"1 of 2 runs failed: refuse: the gradient of 'w' is not finite \(see"
    ):
        saccade.train([recipe("ok"), recipe("refuse")], out=tmp_path / "python", device="cpu", quiet=True)


@pytest.mark.usefixtures("fakes")
def test_seeds_are_summed_up(tmp_path: Path, recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "runs"
    monkeypatch.setattr("saccade.verbs.training.run.data_of", lambda run: "stories")
    result = run("train", recipe("ok"), recipe("other", extends=recipe("ok")), "--seeds", 3, "--out", out)
    assert result.exit_code == 0, result.output
    found = content(out)
    assert [each["name"] for each in found["runs"][:3]] == ["ok/seed-0", "ok/seed-1", "ok/seed-2"]
    over = found["over_seeds"]["ok"]  # 0.5, 0.6, 0.7
    assert (over["metric"], over["seeds"]) == ("accuracy", [0, 1, 2])
    assert (over["mean"], over["std"]) == (pytest.approx(0.6), pytest.approx(0.1))
    assert (over["low"], over["high"]) == (pytest.approx(0.6 - 0.2484, abs=1e-4), pytest.approx(0.8484, abs=1e-4))
    assert "0.6000 ± 0.1000" in result.stdout
    assert "0.3516–0.8484" in result.stdout
    assert "1 CPU thread each" in result.stderr
    assert "saccade evaluate" in result.stderr


@pytest.mark.usefixtures("fakes")
def test_python_gets_a_list_of_results(tmp_path: Path, recipe) -> None:
    results = saccade.train(recipe("ok"), seeds=2, out=tmp_path / "runs", device="cpu", quiet=True)
    assert [each.out for each in results] == [tmp_path / "runs" / "seed-0", tmp_path / "runs" / "seed-1"]
    assert [each.best.value for each in results if each.best] == [0.5, 0.6]
    assert all(each.stopped == "finished" for each in results)
    shown = json.loads(run("train", recipe("ok"), "--seeds", 1, "--out", tmp_path / "json", "--json", "-q").stdout)
    assert shown["runs"][0]["result"]["best"]["value"] == 0.5
    assert shown["over_seeds"]["ok"][1]["std"] is None


@pytest.mark.usefixtures("fakes")
def test_a_folder_of_runs_is_no_model_and_says_so(tmp_path: Path, recipe) -> None:
    out = tmp_path / "runs"
    saccade.train(recipe("ok"), seeds=2, out=out, device="cpu", quiet=True)
    (out / "seed-1" / "model").mkdir()
    with pytest.raises(CheckpointError, match=rf"holds several runs: name one of them, such as {out / 'seed-1'}$"):
        saccade.load(out)
    with pytest.raises(DataError, match="holds several runs: a page shows one of them"):
        report([out])


@pytest.mark.usefixtures("fakes")
def test_going_on_skips_what_is_finished_and_begins_what_is_new(
    tmp_path: Path, recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, ok = tmp_path / "runs", recipe("ok")
    jobs: list[dict] = []
    original = several._Several._job

    def job(self, run):
        jobs.append(original(self, run))
        return jobs[-1]

    monkeypatch.setattr(several._Several, "_job", job)
    assert run("train", ok, recipe("crash"), "--seeds", 1, "--out", out, "-q").exit_code == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    jobs.clear()
    again = run("train", ok, recipe("crash"), "--seeds", 2, "--out", out, "--resume", "-q")
    assert again.exit_code == 1, again.output
    states = {each["name"]: (each["state"], each["attempts"]) for each in content(out)["runs"]}
    assert {name: states[name] for name in ("ok/seed-0", "ok/seed-1")} == {
        "ok/seed-0": ("finished", 1), "ok/seed-1": ("finished", 1),
    }  # fmt: skip
    by_folder = {Path(each["out"]).relative_to(out).as_posix(): each for each in jobs}
    assert set(by_folder) == {"ok/seed-1", "crash/seed-0", "crash/seed-1"}
    goes_on, is_new = by_folder["crash/seed-0"], by_folder["ok/seed-1"]
    assert (goes_on["resume"], goes_on["recipe"], goes_on["settings"]["seed"]) == (True, None, None)
    assert (is_new["resume"], is_new["recipe"], is_new["settings"]["seed"]) == (False, ok, 1)
    assert content(out)["threads"] == 1  # as before: sums on the CPU depend on it


@pytest.mark.usefixtures("fakes")
def test_runs_go_on_only_as_they_began(tmp_path: Path, recipe) -> None:
    out, ok = tmp_path / "runs", recipe("ok")
    settings = {"out": out, "device": "cpu", "quiet": True}
    saccade.train(ok, seeds=2, overrides=["batch_size=3"], **settings)
    with pytest.raises(OutputError, match="not empty; continue it with `resume=True`"):
        saccade.train(ok, seeds=2, **settings)
    with pytest.raises(ConfigError, match=r"begun with overrides = \('batch_size=3',\), now it is \(\)"):
        saccade.train(ok, seeds=2, resume=True, **settings)
    with pytest.raises(ConfigError, match="holds seed-1, which these recipes and seeds leave out"):
        saccade.train(ok, seeds=1, overrides=["batch_size=3"], resume=True, **settings)
    with pytest.raises(ConfigError, match="holds several runs"):
        saccade.train(out=out, resume=True)
    assert "keep their recipes" in run("train", "--resume", "--out", out, "--set", "batch_size=4").stderr
    recipe("ok", log_every=3)
    with pytest.raises(ConfigError, match=r"the recipe .*ok.yaml changed since"):
        saccade.train(ok, seeds=2, overrides=["batch_size=3"], resume=True, **settings)
    with pytest.raises(CheckpointError, match=r"does not hold several runs \(no runs.json\)"):
        saccade.train(ok, seeds=2, resume=True, out=tmp_path, device="cpu")
    (out / "runs.json").write_text('{"schema_version": 1}')
    with pytest.raises(CheckpointError, match=r"runs.json is damaged \(KeyError"):
        saccade.train(ok, seeds=2, resume=True, **settings)


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(
    "wrong",
    [
        {"result": None},
        {"result": {}},
        {"result": [1]},
        {"attempts": "many"},
        {"used": 3},
        {"used": {"machine": None}},
        {"attempts": 1e999},
    ],
)
def test_a_damaged_entry_of_a_finished_run_is_refused(tmp_path: Path, recipe, wrong: dict) -> None:
    out, ok = tmp_path / "runs", recipe("ok")
    saccade.train(ok, seeds=1, out=out, device="cpu", quiet=True)
    found = json.loads((out / "runs.json").read_text())
    found["runs"][0] |= wrong
    (out / "runs.json").write_text(json.dumps(found).replace("Infinity", "1e999"))
    with pytest.raises(CheckpointError, match=r"runs.json is damaged"):
        saccade.train(ok, seeds=1, resume=True, out=out, device="cpu", quiet=True)


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["soft-mrf"], "unknown recipe 'soft-mrf'"),
        (["--set", "phases.0.stesp=3"], "unknown setting 'phases.0.stesp'"),
        (["--set", "phases.0.loss=hinge"], "loss 'hinge'"),
        (["--set", "phases.0.select.metric=acuracy"], "selects by 'acuracy'"),
        (["--data", "jsonl:/no/such/file"], "/no/such/file"),
        (["--seed", 99999999999], "seed: must lie in"),
        (["--max-minutes", 0], "max_minutes must be above 0"),
        (["--device", "gpu"], "gpu"),
        (["--devices", 2], "several runs train on one device each"),
        (["--accept-changed-data"], "add --resume"),
        (["--start", "no-such-model"], "no model 'no-such-model'"),
    ],
)
def test_a_mistake_is_found_before_anything_is_written(tmp_path: Path, recipe, words: list, message: str) -> None:
    out = tmp_path / "runs"
    result = CliRunner().invoke(
        app, ["train", recipe("ok"), *map(str, words), "--seeds", "2", "--out", str(out), "--quiet"]
    )
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.usefixtures("fakes")
def test_a_mistake_in_the_last_recipe_keeps_the_first_from_beginning(
    tmp_path: Path, recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[ParallelRuns] = []
    start_children = ParallelRuns.start_children
    monkeypatch.setattr(
        ParallelRuns, "start_children", lambda self, most: (children.append(self), start_children(self, most))
    )
    wrong = recipe("wrong", model={"name": "memn2n", "config": {"hosp": 3}})
    with pytest.raises(ConfigError, match=rf"^{wrong}: .*hosp"):
        saccade.train([recipe("ok"), wrong], out=tmp_path / "runs", device="cpu", quiet=True)
    assert not (tmp_path / "runs").exists()
    assert [child.process.returncode for child in children[0]._children.values()] != []
    assert all(child.process.returncode is not None for child in children[0]._children.values())


def test_a_mistake_in_one_of_several_recipes_names_it(tmp_path: Path, recipe) -> None:
    """With and without --steps; of one recipe alone the command has the name."""
    ok, out = recipe("ok"), {"out": tmp_path / "runs", "device": "cpu", "quiet": True}
    wrong = recipe("wrong", phases=[{"name": "other", "lenght": 1}])
    with pytest.raises(ConfigError, match=rf"^{wrong}: unknown setting 'phases.0.lenght'"):
        saccade.train([ok, wrong], **out)
    with pytest.raises(ConfigError, match=r"^unknown setting 'phases.0.lenght'"):
        saccade.train(wrong, seeds=2, **out)
    with pytest.raises(ConfigError, match=rf"^{wrong}: unknown setting 'phases.0.lenght'"):
        saccade.train([ok, wrong], steps=1, **out)
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("fakes")
def test_input_that_every_run_refuses_leaves_nothing(tmp_path: Path, recipe) -> None:
    with pytest.raises(DataError, match="no such data"):
        saccade.train(recipe("early"), seeds=2, out=tmp_path / "a" / "runs", device="cpu", quiet=True)
    assert not (tmp_path / "a" / "runs").exists()


def test_options_that_need_several_runs(tmp_path: Path, recipe) -> None:
    ok = recipe("ok")
    with pytest.raises(ConfigError, match="`at_once` is for several runs"):
        saccade.train(ok, at_once=2, out=tmp_path / "runs")
    with pytest.raises(ConfigError, match=r"would share the folder .*ok: name a recipe once"):
        saccade.train([ok, ok], out=tmp_path / "runs")
    with pytest.raises(ConfigError, match="no recipe: name one or more"):
        saccade.train([], out=tmp_path / "runs")
    with pytest.raises(ConfigError, match="seeds: expected 1 to 1000, found 0"):
        saccade.train(ok, seeds=0, out=tmp_path / "runs")


def test_seeds_of_stacks_leave_room_for_their_restarts(tmp_path: Path, recipe) -> None:
    stacked = make_plan([recipe("ok", replicas=10)], Settings(seed=5), 3, tmp_path)
    assert [planned.seed for planned in stacked] == [5, 15, 25]
    assert [planned.resolved.seed for planned in stacked] == [5, 15, 25]
    plain = make_plan([recipe("ok")], Settings(overrides=("seed=7",)), 3, tmp_path)
    assert [planned.run.name for planned in plain] == ["seed-7", "seed-8", "seed-9"]
    assert [planned.run.folder for planned in plain] == [tmp_path / f"seed-{seed}" for seed in (7, 8, 9)]
    assert len({json.dumps(planned.run.log.as_posix()) for planned in plain}) == 3


def test_paths_hold_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = Settings(data="csv:a.csv", start="runs/a").anywhere()
    assert (told.data, told.start) == (f"csv:{tmp_path / 'a.csv'}", str(tmp_path / "runs" / "a"))
    assert Settings(data="mref", start="soft-mref").anywhere() == Settings(data="mref", start="soft-mref")
