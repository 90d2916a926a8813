"""Tables in a narrow terminal."""

from __future__ import annotations

import pytest

from saccade.cli import terminal
from saccade.cli.terminal import print_table


def test_the_name_of_a_row_is_not_broken_to_make_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [("HAttNet-CTX", *["a long cell of words"] * 3), ("hattnet-ctx-sparse-mdist-again", *["x"] * 3)]
    print_table("t", ("system", "a", "b", "c"), rows)
    shown = capsys.readouterr().out
    assert "HAttNet-CTX" in shown
    assert "hattnet-ctx-sparse-mdist-aga" in [line.strip().split("  ")[0] for line in shown.splitlines()]


def test_a_table_too_wide_for_its_words_is_stacked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eleven columns do not fit into 80: each row becomes its name and lines of column and value, no word broken."""
    monkeypatch.setenv("COLUMNS", "80")
    columns = ("model", "map", "follow", "turn", "specific", "hold", "strength", "selective", "pointing", "IoU", "n")
    values = [f"{number}8.1" for number in range(1, 10)]
    print_table("board", columns, [("HAttNet-CTX, sparse", "own × foreground", *values)])
    lines = capsys.readouterr().out.splitlines()
    assert "HAttNet-CTX, sparse" in lines
    assert max(map(len, lines)) <= 80
    told = " · ".join(line.strip() for line in lines[3:] if line.strip())
    assert told == " · ".join(f"{name} {value}" for name, value in zip(columns[1:], ("own × foreground", *values)))


def test_a_table_without_rows_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("nothing", ("a", "b"), [])
    assert "nothing" in capsys.readouterr().out


def test_a_table_that_does_not_fit_is_folded_and_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = ("picture", "asked", "answer", "confidence", "next best", "looked at x, y")
    print_table("t", columns, [("shop pictures/p003.jpg", "circle", "green", "99.5%", "yellow 0.4%", "143, 42")])
    shown = capsys.readouterr().out
    assert {*" ".join(columns).split(), "143,", "42"} <= set(shown.split())
    assert "pictures/p003.jpg " in shown


def test_a_long_path_gives_way_before_other_words_are_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = ("picture", "asked", "answer", "confidence", "next best", "looked at x, y", "fit")
    path = "/home/somebody/lib/site-packages/saccade/data/gallery/digits.png"
    print_table("t", columns, [(path, "7", "white", "100.0%", "green 0.0%", "13, 10", "unlike, p 0.001")])
    shown = capsys.readouterr().out
    assert {*" ".join(columns).split(), "100.0%", "unlike,"} <= set(shown.split())
    assert path in "".join(line[2:].split("  ")[0].strip() for line in shown.splitlines())


def test_a_heading_is_broken_before_a_cell_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = ("picture", "asked", "answer", "confidence", "next best", "looked at x, y", "fit (p)")
    row = ("digits.png", "7", "red", "100.0%", "blue 0.0%", "9, 12", "usual (0.94)")
    print_table("t", columns, [row])
    lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in lines[-2].split("   ") if cell.strip()] == list(row)
    assert "looked" in lines[2]
    assert "x, y" not in lines[2]


def test_a_name_leaves_half_of_a_very_narrow_terminal_to_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table("t", ("model", "n"), [("hattnet-ctx-sparse-mdist", "10,000")])
    assert "10,000" in capsys.readouterr().out


def test_a_note_stands_under_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ("a",), [("1",)], note="↓ low is good")
    assert capsys.readouterr().out.rstrip().endswith("\n↓ low is good")
    print_table("t", ("a",), [("1",)])
    assert "low" not in capsys.readouterr().out


def test_progress_off_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 4.0, 11.0, 12.0, 30.0, 31.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(terminal, "_progress", lambda unit: _Disabled())
    with terminal.stages(shown=True) as update:
        for done in (1, 2, 3, 4, 5):  # the last is the end, which the next line tells
            update("features", done, 5)
        update("training soft attention", 0, 10)
    assert capsys.readouterr().err.splitlines() == ["features …", "features: 3 of 5", "training soft attention …"]


class _Disabled:
    """A bar where there is no terminal."""

    disable = True

    def __enter__(self) -> _Disabled:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def add_task(self, what: str, total: int | None) -> int:
        return 0

    def update(self, task: int, **values: object) -> None:
        return None
