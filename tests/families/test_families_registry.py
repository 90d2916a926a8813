"""The registry of families, and ``examples/dots``: a family of another package that goes through every verb.

The package is not installed here. A folder on the path holds the metadata that an installation would write, so that a
fresh interpreter finds it. Two interpreters run the verbs: the first trains and stops, the second does the rest.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import NamedTuple

import pytest

from saccade.errors import ConfigError, DataError
from saccade.families import DataEntry, Family, ModelSpec
from saccade.families import registry as families
from saccade.record import read_record

OTHER = Family(
    name="other",
    title="something in, something out",
    folder=Path(__file__).parent,
    models={"other-model": ModelSpec(object, "a model", "no paper")},
    data={"other-data": DataEntry("generator", "data", "none", "made on the fly")},
    headline=("score",),
)


OWN = ["question", "multiset", "caption", "story", "classify"]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    """Lets an entry point lead to an object of this module, called FOUND."""

    def add(found: object) -> None:
        monkeypatch.setitem(globals(), "FOUND", found)
        point = EntryPoint("other", f"{__name__}:FOUND", families.GROUP)
        monkeypatch.setattr(families, "entry_points", lambda group: [point] if group == families.GROUP else [])
        monkeypatch.setattr(families, "_broken", {})
        families.families.cache_clear()

    yield add
    families.families.cache_clear()


def test_a_family_from_outside_stands_beside_those_of_the_package(added: Callable[[object], None]) -> None:
    added(OTHER)
    assert list(families.families()) == [*OWN, "other"]
    assert families.family_of_model("other-model") is OTHER
    assert families.family_of_data("other-data") is OTHER
    assert families.headline("other", {"accuracy": 0.5, "score": 0.25}) == ("score", 0.25)
    assert families.broken_families() == {}


def test_one_that_does_not_load_is_left_out_with_a_warning(added: Callable[[object], None]) -> None:
    added(OTHER)
    del globals()["FOUND"]  # the entry point leads nowhere now
    with pytest.warns(UserWarning, match="does not load and is left out .*AttributeError"):
        assert list(families.families()) == OWN
    (reason,) = families.broken_families().values()
    assert "AttributeError" in reason
    globals()["FOUND"] = None


def test_a_family_whose_name_is_taken_is_left_out(added: Callable[[object], None]) -> None:
    added(replace(OTHER, name="question"))
    assert families.family("question") is not OTHER
    assert list(families.families()) == OWN


def test_what_nobody_knows_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no family 'captoin': did you mean 'caption'.*installed"):
        families.family("captoin")
    with pytest.raises(ConfigError, match="no model 'sfot': did you mean 'soft'"):
        families.model_spec("sfot")
    with pytest.raises(DataError, match="no generated data 'mreff': did you mean 'mref'"):
        families.family_of_data("mreff")
    with pytest.raises(DataError, match="no reader 'cvs': did you mean 'csv'"):
        families.family_of_data("cvs:table.csv")
    assert families.headline("not-installed", {"note": "x", "score": 0.5}) == ("score", 0.5)


@pytest.mark.parametrize(
    ("header", "name"),
    [("image,query,label", "question"), ("image,labels", "multiset"), ("image,caption", "caption")],
)
def test_a_table_is_of_the_family_whose_columns_it_has(tmp_path: Path, header: str, name: str) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\na,b,c\n", encoding="utf-8")
    assert families.family_of_data(f"csv:{tmp_path / 't.csv'}").name == name


def test_every_target_of_every_family_is_there() -> None:
    for family in families.families().values():
        assert all(part() is not None for part in (family.reads, family.task, family.decode, family.responder))
        assert family.task().name == family.name
        assert callable(family.task().show_split)
        assert family.recipes()
        assert all(spec.load().Config for spec in family.models.values())


ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "dots"
ENTRY_POINTS = "[saccade.families]\ndots = dots.family:FAMILY\n"
TINY = ["--set", "phases.0.steps=6", "--set", "phases.0.validate_every=3", "--set", "batch_size=8", "--device", "cpu"]
DRIVER = """
import json, sys
from typer.testing import CliRunner
from saccade.commands.door import app
found = []
for words in json.load(sys.stdin):
    result = CliRunner().invoke(app, words)
    found.append([result.exit_code, result.stdout, result.stderr, repr(result.exception)])
print(json.dumps(found))
"""


class Done(NamedTuple):
    """What a verb said."""

    code: int
    out: str
    said: str
    exception: str


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an interpreter in which the package counts as installed."""
    site = tmp_path_factory.mktemp("site")
    info = site / "saccade_dots-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: saccade-dots\nVersion: 0.1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    return with_path(str(site), str(PACKAGE))


def with_path(*folders: str) -> dict[str, str]:
    path = os.pathsep.join([*folders, str(ROOT / "src")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def verbs(commands: dict[str, list[str]], folder: Path, environment: dict[str, str]) -> dict[str, Done]:
    """Every verb in one fresh interpreter, in order."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(list(commands.values())),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return {name: Done(*each) for name, each in zip(commands, json.loads(done.stdout.splitlines()[-1]))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dots")


@pytest.fixture(scope="module")
def done(folder: Path, environment: dict[str, str]) -> dict[str, Done]:
    """All verbs, each with a name; the run was stopped before its second step and went on in another interpreter."""
    stopped = {"train": ["train", "dots", "--out", "run", *TINY, "--max-minutes", "1e-9"]}
    found = verbs(stopped, folder, environment)
    assert not (folder / "run" / "model").exists()
    commands = {
        "resume": ["train", "--resume", "--out", "run", "--device", "cpu"],
        "whole": ["train", "dots", "--out", "whole", *TINY],
        "evaluate": ["evaluate", "run", "--limit", "60", "--json"],
        "tables": ["evaluate", "run", "--limit", "12"],
        "make": ["data", "make", "dots", "--out", "made", "--count", "3"],
        "show": ["data", "show", "dots", "--out", "sheet.png", "--count", "6"],
        "look": ["look", "made", "--model", "run", "--out", "looks", "--json"],
        "asked": ["look", "made/00000001.png", "--model", "run", "--ask", "7"],
        "report": ["report", "run", "--looks", "2", "--out", "run.html"],
        "records": ["report", "looks", "--out", "looks.html"],
        "list": ["list", "--json"],
        "doctor": ["doctor", "--json"],
        "misspelt": ["train", "dots", "--out", "no", "--set", "data.sides=3"],
    }
    return found | verbs(commands, folder, environment)


def test_every_verb_ends_well(done: dict[str, Done]) -> None:
    wrong = {name: each for name, each in done.items() if each.code and name not in ("asked", "misspelt")}
    assert not wrong


def test_a_resumed_run_has_the_weights_of_an_uninterrupted_one(folder: Path, done: dict[str, Done]) -> None:
    run, whole = (json.loads((folder / name / "model" / "config.json").read_text("utf-8")) for name in ("run", "whole"))
    assert run["sha256"] == whole["sha256"]
    assert (run["family"], run["architecture"], run["answers"]) == ("dots", "dots", list("012345"))
    assert run["training"]["step"] == whole["training"]["step"]  # that of the better validation
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert max(row["step"] for row in rows) == 6


def test_the_model_is_scored_beside_baselines(done: dict[str, Done]) -> None:
    scores = json.loads(done["evaluate"].out)
    assert (scores["data"], scores["split"], scores["n"]) == ("dots", "test", 60)
    assert 0 <= scores["metrics"]["accuracy"] <= 1
    assert 1 / 6 < scores["baselines"]["commonest_label"]["accuracy"] < 0.5
    assert scores["baselines"].keys() >= {"uniform", "centre_gaussian", "shuffled", "grid_oracle"}
    assert scores["attention"].keys() - {"by_look"} == scores["baselines"]["uniform"].keys()
    assert scores["counts"]["pointing"] < 60  # a picture without dots has no evidence
    assert "commonest label" in done["tables"].out


def test_looks_are_answers_files_and_rows(folder: Path, done: dict[str, Done]) -> None:
    seen = [json.loads(line) for line in done["look"].out.splitlines()]
    assert [Path(each["picture"]).name for each in seen] == [f"0000000{number}.png" for number in range(3)]
    assert all(each["question"] is None and each["answer"] in set("012345") for each in seen)
    assert {Path(name).suffix for name in os.listdir(folder / "looks")} == {".png", ".json", ".safetensors", ".csv"}
    record = read_record(folder / "looks" / "00000001.json")
    assert record.trace.look("dots").weights.shape == (1, 10, 10)
    assert done["asked"].code == 2
    assert "takes no question" in done["asked"].said


def test_it_is_listed_with_the_families_of_the_package(done: dict[str, Done]) -> None:
    listed = json.loads(done["list"].out)
    assert listed["models"]["dots"]["family"] == "dots"
    assert listed["recipes"]["dots"]["title"] == "Count dots with one soft attention"
    assert {"dots", "mref"} <= listed["data"].keys()
    assert json.loads(done["doctor"].out)["families"][-1] == "dots"
