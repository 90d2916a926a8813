"""``saccade reproduce`` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from saccade.commands.door import app
from saccade.families import tables
from saccade.verbs import reproduce as verb
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.result import Reproduction


def run(*args):
    return CliRunner().invoke(app, ["reproduce", *map(str, args)])


@pytest.fixture
def seen(monkeypatch):
    """What the verb was called with; it gives back one table."""
    calls = []

    def stand_in(table, **options):
        calls.append((table, options))
        report = None if options["out"] is None else Path(options["out"]) / "report.html"
        tables = [PlainTable("a title", ("system", "accuracy"), [("SOFT", "84.29\n1 × 10,000")], "a note")]
        return Reproduction(table, tables, [{"mean": float("nan")}], [], [], report, 1.0, "the legend")

    monkeypatch.setattr(verb, "reproduce", stand_in)
    return calls


def test_alone_it_lists_the_tables():
    assert "hattnet-table1" in run().stdout
    assert json.loads(run("--json").stdout) == {name: table.description for name, table in tables().items()}


def test_an_unknown_table_names_the_nearest():
    result = run("hattnet-tabel1")
    assert result.exit_code == 2
    assert "hattnet-table1" in result.stderr


def test_options_reach_the_verb(seen, tmp_path):
    done = run("hattnet-table1", "--seeds", 3, "--data", "mref", "--data", "mbg", "--protocol", "authors", "--train",
               "--jobs", 4, "--quick", "--limit", 50, "--out", tmp_path, "--device", "cpu")  # fmt: skip
    assert done.exit_code == 0, done.output
    ((table, options),) = seen
    options.pop("on_progress")
    assert (table, options) == (
        "hattnet-table1",
        {"seeds": 3, "data": ["mref", "mbg"], "protocol": "authors", "train": True, "jobs": 4, "quick": True,
         "limit": 50, "out": tmp_path, "device": "cpu"},
    )  # fmt: skip
    for words in ("a title", "84.29", "a note", "the legend", "report.html"):
        assert words in done.stdout


@pytest.mark.parametrize("options", [(), ("--json",), ("--quiet",), ("--json", "--quiet")])
def test_what_takes_long_is_told_on_stderr(monkeypatch, options):
    def stand_in(table, *, on_progress, **_):
        for done in range(3):
            on_progress("scoring soft-mref", done, 3)
        on_progress("drawing", 0, 1)
        return Reproduction(table, [], [], [], [], None, 1.0, "the legend")

    monkeypatch.setattr(verb, "reproduce", stand_in)
    done = run("hattnet-table1", *options)
    told = [line for line in done.stderr.splitlines() if line.endswith("…")]
    assert told == ([] if "--quiet" in options else ["scoring soft-mref …", "drawing …"])  # once each, off a terminal
    assert "scoring" not in done.stdout
    if "--json" in options:
        assert json.loads(done.stdout)["table"] == "hattnet-table1"


def test_json_is_all_there_is_on_stdout(seen):
    found = json.loads(run("hattnet-table1", "--json").stdout)
    assert (found["table"], found["cells"]) == ("hattnet-table1", [{"mean": None}])


def test_without_a_folder_it_says_how_to_get_the_figures(seen):
    result = run("hattnet-table1")
    assert "--out" in result.stderr
    assert "--out" not in run("hattnet-table1", "--quiet").stderr


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_and_the_list_do_not_import_torch(words):
    code = (
        f"import sys; sys.argv = ['saccade', 'reproduce', *{words}]; from saccade.commands import main\n"
        "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_several_tables_by_one_command(tmp_path: Path) -> None:
    """Each has its own folder; a name that is not known is refused before the first is made."""
    done = run("ran-table", "racnn-table", "--out", str(tmp_path / "both"), "--quiet")
    assert done.exit_code == 0, done.output
    assert sorted(folder.name for folder in (tmp_path / "both").iterdir()) == ["racnn-table", "ran-table"]
    refused = run("ran-table", "racn-table", "--out", str(tmp_path / "none"))
    assert refused.exit_code == 2
    assert not (tmp_path / "none").exists()
