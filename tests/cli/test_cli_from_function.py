"""Commands are made of Python functions: one place for names, types, defaults and help."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.cli.docstring import parse_docstring
from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.help import VerbCommand
from saccade.cli.options import Json

VERBS = (
    "compare", "evaluate", "export", "look", "probe", "report", "reproduce", "score", "serve", "tour",
    "train",
)  # fmt: skip
OTHERS = ("list", "doctor", "data list", "data make", "data show", "data get")


def stretch(
    model: str | Path,
    *,
    out: Path | str,
    factor: float = 1.5,
    parts: Sequence[str] = (),
    weights: Sequence[int] | None = None,
    kind: Literal["soft", "hard"] = "soft",
    thin: bool | None = None,
    resume: bool = False,
    on_progress: Callable[[int], None] | None = None,
    anything: Any = None,
) -> None:
    """Stretch ``model`` into ``out``.

    It is longer after that.

    Args:
        model: zoo name. Or a folder.
        out: folder to write to.
        factor: how much. More than 1 is longer.
        parts: only this part.
        weights: how much each counts. None: all the same.
        kind: of stretching.
        thin: thinner too, or not. None: by its kind.
        resume: go on with what is in ``out``.
        on_progress: called now and then.
        anything: for Python.
    """


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[typer.Typer, list[Given]]:
    """A command of that function, and what it was called with."""
    module = ModuleType("stretching")
    stretch.__module__ = "stretching"
    module.stretch = stretch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stretching", module)
    came: list[Given] = []

    @command_of(
        "stretching:stretch",
        {
            "model": Typed("MODEL"),
            "out": Typed("-o"),
            "parts": Typed("--part"),
            "weights": Typed(commas=True),
            "thin": Typed("--thin/--thick"),
            "resume": RARE,
        },
        example="saccade stretch soft-mref --out longer",
    )
    def command(given: Given, json: Json = False) -> None:
        came.append({**given, "json": json})

    stretched = typer.Typer(rich_markup_mode=None)
    stretched.command("stretch", cls=VerbCommand)(command)
    stretched.command("other", cls=VerbCommand)(command)
    return stretched, came


def test_what_is_typed_reaches_the_function(made: tuple[typer.Typer, list[Given]]) -> None:
    stretched, came = made
    words = ["m", "-o", "x", "--factor", "2", "--part", "a", "--part", "b", "--weights", "1,2", "--kind", "hard"]
    words = ["stretch", *words, "--thick", "--resume", "--json"]
    assert CliRunner().invoke(stretched, words).exit_code == 0
    assert CliRunner().invoke(stretched, ["stretch", "m", "--out", "x"]).exit_code == 0
    assert came == [
        {"model": "m", "out": Path("x"), "factor": 2.0, "parts": ["a", "b"], "weights": [1, 2], "kind": "hard",
         "thin": False, "resume": True, "json": True},
        {"model": "m", "out": Path("x"), "factor": 1.5, "parts": (), "weights": None, "kind": "soft", "thin": None,
         "resume": False, "json": False},
    ]  # fmt: skip
    for wrong in (["stretch", "m"], ["stretch", "--out", "x"], ["stretch", "m", "--out", "x", "--factor", "a"]):
        assert CliRunner().invoke(stretched, wrong).exit_code == 2


def test_help_is_the_docstring(made: tuple[typer.Typer, list[Given]]) -> None:
    stretched, _ = made
    short = CliRunner().invoke(stretched, ["stretch", "--help"]).output
    assert "Stretch MODEL into --out." in short
    assert re.search(r"--factor X +How much\. \[default: 1\.5\]", short)
    assert re.search(r"--weights A,B,… +How much each counts\. \[default: all the same\]", short)
    assert re.search(r"-o, --out PATH +Folder to write to\. \[required\]", short)
    assert re.search(r"--kind soft\|hard +Of stretching\. \[default: soft\]", short)
    assert "--resume" not in short
    assert "1 more option: root stretch --help-all" in short
    assert "--on-progress" not in short
    assert short.endswith("Example:\n  saccade stretch soft-mref --out longer\n")
    whole = CliRunner().invoke(stretched, ["stretch", "--help-all"]).output
    assert "It is longer after that." in whole
    assert "How much. More than 1 is longer. [default: 1.5]" in whole
    assert "--resume" in whole


def test_a_misspelt_argument_of_the_layer_is_found_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="no arguments modle"):
        command_of("saccade.verbs.export:export", {"modle": Typed("MODEL")}, example="")


def test_a_docstring_in_its_parts() -> None:
    doc = parse_docstring(saccade.train.__doc__ or "")
    assert doc.summary == "Train a model by a recipe."
    assert doc.arguments["epochs"].short == "How often to see all data"
    assert doc.arguments["epochs"].default == "the recipe's"
    assert "``phases``" in doc.arguments["epochs"].more


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_that_can_be_typed_is_an_option(verb: str) -> None:
    """Nothing is offered on the line that Python does not take, but for what is about printing."""
    command = get_command(app).commands[verb]  # type: ignore[attr-defined]
    python = set(inspect.signature(getattr(saccade, verb)).parameters)
    offered = {each.name for each in command.params} - {"help_all", "json", "quiet"}
    own = {"compare": {"out", "html"}, "report": {"out"}, "score": {"out", "pictures"}, "probe": {"named"}}
    own["reproduce"] = {"named", "check", "coverage"}
    own["look"] = {"example", "engine", "address", "actors", "part", "column", "maps", "side", "resume"}
    assert offered - own.get(verb, set()) <= python
    callbacks = {name for name in python if name.startswith("on_") or name == "announce"}
    in_python_alone = {"evaluate": {"allow_pack"}, "score": {"kind", "names"}, "reproduce": {"table", "overrides"}}
    assert python - offered - callbacks - {"quiet"} == in_python_alone.get(verb, set())


@pytest.mark.parametrize("verb", [*VERBS, *OTHERS])
def test_help_fits_a_screen_and_ends_with_an_example(verb: str) -> None:
    shown = CliRunner().invoke(app, [*verb.split(), "--help"], terminal_width=80).output
    lines = shown.rstrip("\n").splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert "Example:" in lines
    assert lines[-1].startswith(f"  saccade {verb}")
    assert "``" not in shown


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_help_name_options_that_exist(verb: str) -> None:
    shown = CliRunner().invoke(app, [verb, "--help-all"], terminal_width=200).output
    options = {name for line in shown.partition("Example:")[0].splitlines() for name in re.findall(r"--[a-z-]+", line)}
    used = set(re.findall(r"--[a-z-]+", shown.partition("Example:")[2]))
    assert used <= options
