"""``saccade reproduce`` on the command line."""

import json
from functools import partial
from pathlib import Path

import pytest

from saccade.papers.tables import TABLES
from typed import typed

run = partial(typed, "reproduce")


def test_alone_it_lists_the_tables() -> None:
    assert "hattnet-table1" in run().stdout
    assert json.loads(run("--json").stdout) == {name: table.title for name, table in TABLES.items()}


def test_an_unknown_table_ends_in_one_line_that_names_the_nearest() -> None:
    result = run("hattnet-tabel1")
    assert result.exit_code == 2
    assert "hattnet-table1" in result.stderr


@pytest.mark.parametrize("several", [False, True])
def test_json_is_the_table_or_each_under_its_name(several: bool) -> None:
    names = ["ran-table", "racnn-table"] if several else ["ran-table"]
    whole = json.loads(run(*names, "--json").stdout)
    tables = whole if several else {"ran-table": whole}
    assert list(tables) == names
    assert tables["ran-table"]["cells"][0]["metric"] == "accuracy"


def test_tables_are_printed_and_written(tmp_path: Path) -> None:
    shown = run("ran-table").stdout
    assert "94.77 (94.48)" in shown
    assert "1 × 10,000" in shown
    assert "saccade train ran-56" in shown.replace("\n", " ")
    done = run("ran-table", "--out", tmp_path / "t.md", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "94.77 (94.48)" in (tmp_path / "t.md").read_text(encoding="utf-8")
