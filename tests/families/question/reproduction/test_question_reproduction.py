"""``hattnet-table1`` as a whole: records, shipped models and figures into one result."""

import dataclasses
import json

import pytest
import torch

import saccade.zoo
from fake_runs import write_run
from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families import model_spec
from saccade.models.io.folder import load_model, save_model
from saccade.verbs.reproduce import reproduce

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
    result = reproduce(
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
    verdicts = {each["model"]: each["verdict"] for each in result.confirmed}
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
    result = reproduce(TABLE, data=("mref",), limit=20, device="cpu")
    assert (result.figures, result.report) == ([], None)
    assert set(tmp_path.rglob("*")) == before
    assert any("no run" in cell for table in result.tables for line in table.rows for cell in line)


def test_unknown_data_and_protocols_name_the_nearest():
    with pytest.raises(ConfigError, match="mref"):
        reproduce(TABLE, data=("mreff",))
    with pytest.raises(ConfigError, match="authors"):
        reproduce(TABLE, protocol="author")
