"""What a family gets to reproduce a table with: runs of the folder, missing ones trained, files written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PIL import Image

from fake_runs import fake_run, write_run
from saccade.recorded import RecordedRun
from saccade.show.report import Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction import request as requests
from saccade.verbs.reproduction.cells import Setting
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.request import Request
from saccade.verbs.reproduction.training import Job


@dataclass(frozen=True)
class Seeds:
    """A table of one cell: its runs by seed."""

    runs: tuple[RecordedRun, ...] = ()

    def with_runs(self, more: Iterable[RecordedRun]) -> Seeds:
        there = {run.seed for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if run.seed not in there)))

    def missing(self, seeds: int) -> list[Job]:
        there = {run.seed for run in self.runs}
        setting = Setting("authors", "merged")
        return [Job("soft-mref", "soft", "mref", setting, seed) for seed in range(seeds) if seed not in there]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]


def never(*_, **__):
    raise AssertionError("trained")


def test_without_a_folder_only_the_records_count(monkeypatch):
    monkeypatch.setattr(requests, "train_missing", never)
    table = Seeds((fake_run(seed=0),))
    assert Request("t", seeds=3).completed(table) is table


def test_earlier_runs_of_the_folder_are_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(requests, "train_missing", never)
    write_run(tmp_path / "results", seed=0, accuracy=0.1)
    write_run(tmp_path / "results", seed=1)
    found = Request("t", seeds=5, folder=tmp_path).completed(Seeds((fake_run(seed=0, accuracy=0.8),)))
    assert found.seeds == [0, 1]
    assert found.runs[0].value("accuracy") == 0.8, "a cell keeps its run of a seed"


def test_what_neither_records_nor_folder_have_is_trained(tmp_path, monkeypatch):
    write_run(tmp_path / "results", seed=1)
    asked = []

    def train_missing(jobs, out, **options):
        asked.append(([job.seed for job in jobs], out, options))
        return [fake_run(seed=job.seed) for job in jobs]

    monkeypatch.setattr(requests, "train_missing", train_missing)
    told = lambda what, done, total: None  # noqa: E731
    given = {"limit": 9, "device": "cpu", "overrides": ["x=1"], "progress": told}
    found = Request("t", seeds=4, train=True, jobs=2, folder=tmp_path, **given).completed(Seeds((fake_run(seed=0),)))
    assert asked == [([2, 3], tmp_path, {"side_by_side": 2, **given})]
    assert found.seeds == [0, 1, 2, 3]


PLAIN = PlainTable("a title", ("system", "accuracy"), [("SOFT", "84.29")])


def page():
    sections = [Section("Table", "", [table_block(PLAIN)]), Section("Figures", "", [])]
    return reproduction_page("A paper", "Measured again.", sections, again="Like this.", commands=["saccade doctor"])


def test_a_result_writes_its_figures_and_its_page(tmp_path):
    picture = Drawing("figure-1", "What it shows.", "its source", Image.new("RGB", (4, 3)))
    found = Request("t", folder=tmp_path).result(
        [PLAIN], [{"mean": 0.5}], "the legend", drawings=[picture], page=page()
    )
    assert (found.figures, found.report) == ([tmp_path / "figure-1.png"], tmp_path / "report.html")
    assert found.figures[0].read_bytes().startswith(b"\x89PNG")
    assert "84.29" in found.report.read_text(encoding="utf-8")
    told = found.to_json()
    assert (told["table"], told["cells"], told["confirmed"]) == ("t", [{"mean": 0.5}], [])
    assert (told["figures"], told["report"]) == ([str(path) for path in found.figures], str(found.report))


def test_without_a_folder_a_result_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = Request("t").result([PLAIN], [], "the legend", confirmed=[{"model": "soft-mref"}], page=page())
    assert (found.figures, found.report, found.to_json()["report"]) == ([], None, None)
    assert found.to_json()["confirmed"] == [{"model": "soft-mref"}]
    assert not list(tmp_path.iterdir())


def test_a_page_leaves_out_empty_sections_and_ends_with_how_to_make_it_again():
    made = page()
    assert [section.title for section in made.sections] == ["Table", "Make it again"]
    assert [block.command for block in made.sections[-1].blocks] == ["saccade doctor"]
