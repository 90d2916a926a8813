"""The other verbs: thin over their Python functions, quick to start, honest about what is missing."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

import saccade
from saccade import zoo
from saccade.cli import app
from saccade.cli.terminal import print_json
from saccade.errors import ConfigError, DataError
from saccade.models.io.folder import load_model, save_model
from tiny_models import save_tiny


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_help_version_and_no_arguments() -> None:
    assert run("--version").stdout.strip() == f"saccade {saccade.__version__}"
    for args in (["--help"], ["-h"], []):
        listed = run(*args).output
        assert all(
            verb in listed
            for verb in ("look", "compare", "train", "evaluate", "report", "data", "list", "doctor", "tour")
        )


@pytest.mark.parametrize("verb", ["train", "look", "evaluate", "score"])
def test_help_says_the_default_of_every_option(verb: str) -> None:
    """A line for each option, on a terminal that is wide enough; a few of none, which may be given again and again."""
    shown = CliRunner().invoke(app, [verb, "--help-all"], terminal_width=400).output
    options = [line for line in re.sub(r"\n {9,}", " ", shown).splitlines() if re.match(r"\s+-", line)]
    assert len(options) > 10
    without = [line for line in options if not re.search(r"\[default: .+\]|\[required\]|--help", line)]
    assert [line.split()[0] for line in without] == (["--set"] if verb == "train" else [])


@pytest.mark.parametrize(
    "args",
    [["--help"], ["list"], ["data", "list"], ["train", "--help"], ["data", "make", "--help"]],
)
def test_light_verbs_import_nothing_heavy(args: list[str]) -> None:
    heavy = ["torch", "numpy", "PIL", "matplotlib", "lightning_fabric", "safetensors", "fastapi", "timm", "http"]
    code = (
        f"import sys; sys.argv = ['saccade', *{args!r}]; from saccade.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"heavy = {heavy} + ['pydantic'] * ('typer._adapters' not in sys.modules)\n"  # newer ones need it
        "print('HEAVY', *(name for name in heavy if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1].strip() == "HEAVY"


def test_list_reads_no_settings_of_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_, **__):
        raise AssertionError("a whole recipe was read")

    monkeypatch.setattr("saccade.engine.recipe.parse_yaml", read)
    listed = json.loads(run("list", "recipes", "--json").stdout)["recipes"]
    assert listed["hattnet-ctx-mref"]["title"].startswith("HAttNet-CTX")


def test_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("saccade.families.reading.find_files", interrupted)
    result = run("look", "x.png")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_an_error_over_several_lines_becomes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_, **__):
        raise DataError("every source failed:\n  a: no\n  b: no")

    monkeypatch.setattr("saccade.data.fetch.fetch", failing)
    result = run("data", "get", "mnist")
    assert result.exit_code == 2
    assert result.stderr.strip() == "error: every source failed: a: no b: no"


def test_list_everything_or_one_catalog() -> None:
    everything = json.loads(run("list", "--json").stdout)
    assert set(everything) == {"models", "backbones", "recipes", "data", "zoo"}
    weights = {name: entry["weights"] for name, entry in everything["backbones"].items()}
    assert weights["small"] == "none"
    assert weights["mobilenetv2"] == "saccade data get mobilenetv2-imagenet"
    for version in range(3):
        assert weights[f"efficientnet-lite{version}"] == f"saccade data get efficientnet-lite{version}-imagenet"
    assert everything["models"]["soft"]["paper"]
    assert list(json.loads(run("list", "data", "--json").stdout)) == ["data"]
    assert "soft" in run("list", "models").stdout
    short, whole = run("list").stdout.splitlines(), run("list", "--all").stdout.splitlines()
    assert len(short) < 50 < len(whole)
    assert "a picture and a question in, one label (or several) out" in short
    assert sum(line.startswith("  hattnet-ctx-sparse-mref ") for line in short) == 1


@pytest.mark.parametrize("kind", [None, "models", "backbones", "recipes", "data"])
def test_lists_are_short_and_fit_80_columns(kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*filter(None, ["list", kind])).stdout.splitlines()
    assert len(lines) < 50
    assert max(map(len, lines)) <= 80


def test_recipes_are_folded_and_a_pattern_opens_them() -> None:
    short, full = run("list", "recipes").stdout, run("list", "recipes", "soft*").stdout
    found = json.loads(run("list", "recipes", "soft*", "--json").stdout)["recipes"]
    assert re.search(rf"^  soft\* +{len(found)}  ", short, re.MULTILINE)
    assert "soft-mref" not in short
    assert all(name.startswith("soft") and f"\n{name}\n" in full for name in found)
    refused = run("list", "models", "sfot")
    assert refused.exit_code == 2
    assert "models: no name fits 'sfot'; did you mean 'soft'" in refused.stderr


def test_the_zoo_is_listed_with_scores_and_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from saccade.models.io.facts import Score

    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    assert "none yet" in run("list", "zoo").stdout
    save_tiny(tmp_path / "good", name="good", scores=(Score("mref", "test", 1234, metrics={"accuracy": 0.5}),))
    (save_tiny(tmp_path / "bad") / "config.json").write_text("{")
    listed = json.loads(run("list", "zoo", "--json").stdout)["zoo"]
    assert listed["good"] == {
        "architecture": "soft",
        "parameters": 964,
        "metric": "accuracy",
        "score": 0.5,
        "scored on": "mref test, n 1,234",
        "licence": "open",
    }
    assert listed["bad"]["architecture"] == "damaged"
    assert run("list", "zoo").exit_code == 0


def test_doctor_says_what_is_there_and_verifies_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "mnist").mkdir(parents=True)
    (tmp_path / "home" / "mnist" / "x").write_bytes(b"12345")
    save_tiny(tmp_path / "zoo" / "good")
    result = run("doctor", "--json")
    found = json.loads(result.stdout)
    assert found["scene_makers"]["cpu"] == "NumPy"
    assert result.exit_code == 0
    assert found["problems"] == []
    assert found["zoo"] == {"good": "whole"}
    assert found["cache"] == {"folder": str(tmp_path / "home"), "holds": {"mnist": 5}}
    assert found["packages"]["torch"]
    assert found["devices"][0].startswith("cpu")
    assert list(found["programs"]) == ["METEOR 1.5"]
    weights = save_tiny(tmp_path / "zoo" / "bad") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    result = run("doctor")
    assert result.exit_code == 2
    assert "problem: bad: " in result.stderr
    assert "all is well" not in result.stdout


def test_doctor_misses_the_model_that_another_lies_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    model, facts = load_model(save_tiny(tmp_path / "zoo" / "first"))
    save_model(model, tmp_path / "zoo" / "second", facts, beside="first")
    assert json.loads(run("doctor", "--json").stdout)["zoo"] == {"first": "whole", "second": "whole"}
    (tmp_path / "zoo" / "first").rename(tmp_path / "away")
    result = run("doctor")
    assert result.exit_code == 2
    assert "problem: second: " in result.stderr


def test_doctor_names_missing_packages_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    needed = [
        "torch<3,>=2",
        "no-such-core>=1",
        'no-such-web[x]>=2; extra == "web"',
        "numpy; extra == 'web'",
        "pillow; extra == 'ok'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needed)
    result = run("doctor", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 2
    assert list(found["packages"]) == ["torch", "no-such-core"]
    assert "no-such-core" in found["problems"][0]
    assert found["extras"]["web"] == {"missing": ["no-such-web"], "get": "pip install 'saccade-attention[web]'"}
    assert found["extras"]["ok"] == {"missing": [], "get": None}


@pytest.mark.parametrize(("command", "problems"), [("saccade.app:run", 1), ("saccade.cli:main", 0)])
def test_doctor_names_a_foreign_saccade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, problems: int
) -> None:
    """Another project has this name on the package index; this package had it once, and is no stranger then."""
    info = tmp_path / "saccade-7.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: saccade\nVersion: 7.1\n")
    (info / "entry_points.txt").write_text(f"[console_scripts]\nsaccade = {command}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run("doctor", "--json")
    named = [line for line in json.loads(result.stdout)["problems"] if line.startswith("saccade 7.1 is another")]
    assert len(named) == problems
    assert all("pip uninstall saccade" in line and "saccade-attention" in line for line in named)
    assert result.exit_code == 2 * problems


def test_train_takes_the_usual_numbers_by_name() -> None:
    from saccade.commands.train import resolve

    recipe = resolve("attributes", epochs=3, batch_size=8, lr=1e-4, overrides=["seed=1"])
    phase = recipe.phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every, phase.optimizer.lr) == (3, None, 1, 1e-4)
    assert (recipe.batch_size, recipe.seed) == (8, 1)
    phase = resolve("attributes", steps=5).phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every) == (None, 5, None)  # one epoch is not one step


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attributes", "--epochs", "3", "--steps", "5"], "give --epochs or --steps, not both"),
        (["hsal-mnist-multiset", "--steps", "5"], "has the phases"),
        (["--resume", "--lr", "0.1"], "keeps its recipe"),
    ],
)
def test_train_refuses_numbers_that_it_cannot_place(tmp_path: Path, words: list[str], said: str) -> None:
    result = run("train", *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert said in result.stderr


def test_train_names_the_phase_that_numbers_are_for() -> None:
    from saccade.commands.train import resolve
    from saccade.engine.recipe import load_recipe

    last = load_recipe("hsal-mnist-multiset").phases[-1].name
    phases = resolve("hsal-mnist-multiset", phases=[last], steps=5).phases
    assert [(phase.name, phase.steps) for phase in phases] == [(last, 5)]


def test_a_path_alone_is_recognised_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(12):
            place = tmp_path / "photos" / name / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (10 * number, len(name), ord(name[0]))).save(place)
    result = run("data", "show", f"{tmp_path}/photos/", "--split", "train", "--out", tmp_path / "sheet.png")
    assert result.exit_code == 0, result.output
    assert f"{tmp_path}/photos/ is read as folder:{tmp_path}/photos\n" in result.stderr
    assert "2 classes" in result.stderr
    came: list[str] = []

    def train(recipe: str | None, **options: Any) -> SimpleNamespace:
        came.append(options["data"])
        return SimpleNamespace(stopped="finished", model=None, out=options["out"])

    monkeypatch.setitem(saccade.__dict__, "train", train)
    run("train", "ran-56-photos", "--data", f"{tmp_path}/photos/", "--out", tmp_path / "run")
    assert came == [f"folder:{tmp_path}/photos"]


def test_train_offline_fetches_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.backbones.hub import is_offline

    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "")
    run("train", "no-such-recipe", "--out", tmp_path)
    assert not is_offline()
    run("train", "no-such-recipe", "--out", tmp_path, "--offline")
    assert is_offline()


def test_train_passes_everything_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: dict[str, object] = {}

    def train(recipe: str | None, **options: object) -> SimpleNamespace:
        called.update(options, recipe=recipe)
        return SimpleNamespace(stopped="finished", model=None, out=options["out"])

    monkeypatch.setitem(saccade.__dict__, "train", train)
    result = run(
        "train", "soft-mref", "--out", tmp_path, "--set", "seed=1", "--set", "a.b=2", "--max-minutes", "1.5", "--resume"
    )
    assert result.exit_code == 0
    assert called["recipe"] == "soft-mref"
    assert called["overrides"] == ["seed=1", "a.b=2"]
    assert called["out"] == tmp_path
    assert (called["resume"], called["accept_changed_data"]) == (True, False)
    assert called["max_minutes"] == 1.5
    assert called["seed"] is None
    run("train", "--out", tmp_path, "--resume", "--accept-changed-data")
    assert (called["resume"], called["accept_changed_data"]) == (True, True)
    assert run("train", "soft-mref").exit_code == 2  # no --out
    stopped = SimpleNamespace(stopped="signal", model=None, out=tmp_path)
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: stopped)
    result = run("train", "soft-mref", "--out", tmp_path)
    assert result.exit_code == 130  # `train && evaluate` must not go on
    assert "evaluate" not in result.stderr


def test_train_ends_with_a_command_that_can_be_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = SimpleNamespace(stopped="finished", model=tmp_path, out="my runs/1")
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: done)
    result = run("train", "attributes", "--out", "my runs/1", "--data", "csv:my pictures/t.csv")
    assert "saccade evaluate 'my runs/1' --data 'csv:my pictures/t.csv'" in " ".join(result.output.split())
    assert "--data" not in run("train", "soft-mref", "--out", "runs/1", "--data", "mdist").output
    monkeypatch.setattr("saccade.commands.train.data_of", lambda out: "csv:/of/the/run.csv")
    again = run("train", "--resume", "--out", "my runs/1").output  # the run knows what it was told the first time
    assert "saccade evaluate 'my runs/1' --data csv:/of/the/run.csv" in " ".join(again.split())


def test_train_prints_its_result_as_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.engine.state import Best
    from saccade.engine.trainer import RunResult

    best = Best(0.5, 3, 0, {"accuracy": 0.5})
    done = RunResult(tmp_path, "time", 4, "main", best, {"loss": float("nan")}, 1.5, None, None)
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: done)
    assert json.loads(run("train", "soft-mref", "--out", tmp_path, "--json").stdout) == {
        "out": str(tmp_path), "stopped": "time", "step": 4, "phase": "main", "seconds": 1.5,
        "best": {"value": 0.5, "step": 3, "replica": 0, "metrics": {"accuracy": 0.5}},
        "validation": {"loss": None}, "checkpoint": None, "model": None,
    }  # fmt: skip


RESULT = {
    "model": "m", "data": "mref", "split": "test", "protocol": "authors", "n": 1000, "seed": 0, "seconds": 1.0,
    "metrics": {"accuracy": 0.8125, "accuracy_by_scale": {"(0.5,1]": None}},
    "attention": {"pointing": 0.5}, "baselines": {"uniform": {"pointing": 0.023}},
    "intervals": {"accuracy": [0.80, 0.82]}, "counts": {"pointing": 987}, "note": "of shipped digits",
}  # fmt: skip


def test_evaluate_prints_the_contract_or_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def fake(model: str, **options: object) -> dict:
        asked.update(options)
        options["on_progress"](5, 10)  # type: ignore[operator]
        return RESULT

    monkeypatch.setitem(saccade.__dict__, "evaluate", fake)
    assert json.loads(run("evaluate", "m", "--json", "--limit", 10, "--seed", 3).stdout) == RESULT
    assert asked["limit"] == 10
    assert asked["seed"] == 3
    shown = run("evaluate", "m")
    assert shown.stderr.splitlines()[0] == "scoring …"
    assert run("evaluate", "m", "--quiet").stderr == ""
    table = shown.stdout
    for text in ("81.2%", "80.0–82.0", "accuracy_by_scale.(0.5,1]", "50.0%", "2.3%", "uniform", "n 1,000, seed 0"):
        assert text in table
    assert "987" in table
    assert "of shipped digits" in table


def test_tour_shows_its_tables_and_where_the_page_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(out: Path, quick: bool, device: str, on_progress) -> SimpleNamespace:
        on_progress("soft-mref", 1, 2)
        assert (out, quick, device) == (tmp_path / "t", True, "auto")
        table = SimpleNamespace(title="scores", columns=("model", "here"), rows=[("soft-mref", "81.2")])
        return SimpleNamespace(report=Path("t/report.html"), tables=[table], seconds=61.4)

    monkeypatch.setitem(saccade.__dict__, "tour", fake)
    result = run("tour", "--quick", "--out", tmp_path / "t")
    assert result.exit_code == 0
    assert "81.2" in result.stdout
    assert "open t/report.html in a browser (61 s)" in result.stdout


def test_errors_of_python_functions_become_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_, **__):
        raise ConfigError("no recipe 'x'")

    monkeypatch.setitem(saccade.__dict__, "train", failing)
    result = run("train", "x", "--out", "y")
    assert result.exit_code == 2
    assert result.stderr.strip() == "error: no recipe 'x'"


def test_data_make_and_show_without_a_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "nothing"))
    made = run("data", "make", "mref", "--out", tmp_path / "scenes", "--count", 3, "--glyphs", "pack")
    assert made.exit_code == 0, made.stderr
    assert len(list((tmp_path / "scenes").glob("*.png"))) == 3
    assert len((tmp_path / "scenes" / "scenes.jsonl").read_text().splitlines()) == 3
    again = run("data", "make", "mref", "--out", tmp_path / "scenes", "--count", 3, "--glyphs", "pack")
    assert again.exit_code == 2
    sheet = run("data", "show", "mref", "--out", tmp_path / "sheet.png", "--count", 4, "--glyphs", "pack")
    assert sheet.exit_code == 0, sheet.stderr
    assert (tmp_path / "sheet.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["data", "make", "mrfe", "--out", "x"], "did you mean 'mref'"),
        (["data", "make", "mref", "--out", "x", "--split", "tset"], "did you mean 'test'"),
        (["data", "show", "mref", "--glyphs", "dsjoint"], "disjoint"),
        (["data", "get", "mnst"], "mnist"),
    ],
)
def test_wrong_names_of_data(args: list[str], word: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert word in result.stderr


def test_data_get_reports_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def fetch(name: str, progress) -> Path:
        asked.append(name)
        progress("part", 1, None)
        return tmp_path

    monkeypatch.setattr("saccade.data.fetch.fetch", fetch)
    assert str(tmp_path) in run("data", "get", "mref").stderr.replace("\n", "")
    assert asked == ["mnist"]  # the data set names its own download
    assert "mref" in run("data", "list").stdout


def test_report_of_records(tmp_path: Path) -> None:
    import numpy as np

    seen = saccade.load(save_tiny(tmp_path / "tiny"), "cpu").look(np.zeros((9, 9, 3), np.uint8), ask=1)
    seen.save(tmp_path / "records")
    result = run("report", tmp_path / "records", "--out", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    assert "data:image/" in (tmp_path / "r.html").read_text()
    for source, word in ((tmp_path / "gone.json", "no such record"), (tmp_path, "nor a folder of records")):
        result = run("report", source, "--out", tmp_path / "x.html")
        assert result.exit_code == 2
        assert word in result.stderr.replace("\n", " ")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("more", [(), ("--scores", "scores.json")])
def test_report_of_a_shipped_model_says_what_a_page_is_made_of(tmp_path: Path, more: tuple[str, ...]) -> None:
    result = run("report", "soft-mref", *more, "--out", tmp_path / "x.html")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert told.startswith("error: soft-mref: no such record or run folder; 'saccade look --out DIR' writes records")
    assert not (tmp_path / "x.html").exists()


def test_json_never_holds_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": SimpleNamespace(x=1).x})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": 1}
