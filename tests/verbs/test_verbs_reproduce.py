"""``reproduce``: the arguments, the table that a family declares, and a missing cell trained on request."""

from pathlib import Path

import pytest

import saccade.families
import saccade.zoo
from saccade.errors import ConfigError, SaccadeError
from saccade.families.contract import Family, PaperTable
from saccade.families.question.reproduction.table1 import SETTINGS, Table1
from saccade.recorded import recorded_runs
from saccade.verbs.reproduce import reproduce
from saccade.verbs.reproduction import training
from saccade.verbs.reproduction.request import Request
from tiny_runs import FRESH, TINY

TABLE = "hattnet-table1"


def made_up(request: Request):
    """The function behind a table of another package."""
    return request.result([], [{"request": request}], "the legend")


@pytest.fixture
def declared(monkeypatch) -> str:
    """A table of a family that is not one of saccade's."""
    tables = {"made-up-table7": PaperTable("Table 7 of nobody", f"{__name__}:made_up")}
    family = Family(
        "made-up", "", Path(), reads="", models={}, data={}, task="", splits="", decode="", headline=(), tables=tables
    )
    monkeypatch.setattr(saccade.families, "families", lambda: {"made-up": family})
    return "made-up-table7"


def test_the_function_of_the_table_gets_every_argument(declared, tmp_path):
    given = {
        "data": ("a", "b:PATH"), "protocol": "dev", "seeds": 3, "train": True, "jobs": 4, "quick": True, "limit": 7,
        "device": "cpu", "overrides": ["x=1"], "progress": lambda what, done, total: None,
    }  # fmt: skip
    result = reproduce(declared, **given, out=tmp_path / "new")
    assert (result.table, result.legend, result.figures, result.report) == (declared, "the legend", [], None)
    request = result.cells[0]["request"]
    assert {name: getattr(request, name) for name in given} == given
    assert (request.table, request.folder) == (declared, tmp_path / "new")
    assert request.folder.is_dir()


def test_without_a_place_the_request_has_no_folder(declared):
    request = reproduce(declared).cells[0]["request"]
    assert (request.folder, request.runs, request.data, request.protocol) == (None, None, None, "all")


@pytest.mark.parametrize(
    ("table", "options", "complaint"),
    [
        ("made-up-tabel7", {}, "no table 'made-up-tabel7': did you mean 'made-up-table7'"),
        ("made-up-table7", {"train": True}, "`out`"),
        ("made-up-table7", {"seeds": 0}, "seeds: expected 1 or more, found 0"),
        ("made-up-table7", {"jobs": 0}, "jobs: expected 1 or more, found 0"),
    ],
)
@pytest.mark.usefixtures("declared")
def test_what_a_user_can_get_wrong(table, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        reproduce(table, **options)


def test_a_wrong_place_is_found_before_any_work(declared, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setitem(globals(), "made_up", lambda request: pytest.fail("worked"))
    with pytest.raises(SaccadeError, match="file"):
        reproduce(declared, out=tmp_path / "file")


@pytest.mark.parametrize("name", saccade.families.tables())
def test_every_declared_table_has_a_function(name):
    """Names of data and protocol that no table has are refused before anything is computed."""
    with pytest.raises(ConfigError, match="data 'no-such-data'"):
        reproduce(name, data=["no-such-data"])
    with pytest.raises(ConfigError, match="protocol 'no-such-protocol'"):
        reproduce(name, protocol="no-such-protocol")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty folder of results in place of the shipped ones."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    monkeypatch.setattr("saccade.recorded.runs.results_folder", lambda: folder)
    return folder


@pytest.mark.usefixtures("results")
def test_a_missing_cell_is_trained_once_evaluated_and_recorded(tmp_path, monkeypatch):
    missing = Table1.missing
    monkeypatch.setattr(Table1, "missing", lambda table, seeds: [
        job for job in missing(table, seeds) if (job.system, job.setting) == ("soft", SETTINGS[-1])
    ])  # fmt: skip
    monkeypatch.setattr(saccade.zoo, "ZOO", tmp_path)
    options = {"data": ("mref",), "protocol": "unlimited", "train": True, "limit": 20, "device": "cpu"}
    result = reproduce(TABLE, **options, out=tmp_path / "out", overrides=[*TINY[1:], *FRESH, "data.glyphs=pack"])
    (run,) = recorded_runs(tmp_path / "out" / "results")
    assert (run.name, run.system, run.evaluation.n) == ("soft-mref-unlimited-seed0", "soft", 20)
    assert run.command.startswith("saccade train soft-mref --protocol unlimited --seed 0 --set data.glyphs=disjoint")
    assert (tmp_path / "out" / "runs" / run.name / "model" / "config.json").is_file()
    assert run.glyphs == "pack", "as the override has it"
    assert not [cell for cell in result.cells if cell["mean"] is not None], "shipped glyphs are no cell of the table"

    def never(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(training, "train", never)
    reproduce(TABLE, **options, out=tmp_path / "out")
