"""Errors of Python functions speak of parameters, those of the command line of options; both are one text.

``--option`` may stand in a message only inside a command that is quoted whole, as in 'saccade train --resume'.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import saccade
from saccade import scale
from saccade.checks import check_numbers, check_reals
from saccade.cli import app
from saccade.errors import SaccadeError
from tiny_models import save_tiny

PACKAGE = Path(saccade.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z…]")
COMMAND = re.compile(r"(?:'|`)(?:saccade|ray|sbatch|tools/|npm|pip)[^'`]*(?:'|`|$)|pip install .*$")
PARAMETER = re.compile(r"`(\w+)(?:=[^`]*)?`")
VERBS = (
    saccade.average, saccade.compare, saccade.evaluate, saccade.export, saccade.look, saccade.probe, saccade.report,
    saccade.reproduce, saccade.score, saccade.serve, saccade.tour, saccade.train, scale.look, scale.look_dataset,
)  # fmt: skip


def speaks_of_options(text: str) -> bool:
    return OPTION.search(COMMAND.sub("", text)) is not None


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts of all errors and warnings in a file; what is filled in is a …."""
    for node in ast.walk(tree):
        is_warning = isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
        if is_warning or (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            call = node if isinstance(node, ast.Call) else node.exc
            for each in call.args:  # type: ignore[union-attr]
                yield node.lineno, _text(each)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) for each in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def test_no_message_of_the_library_speaks_of_options() -> None:
    wrong, known = [], {name for verb in VERBS for name in inspect.signature(verb).parameters}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent.name == "cli":
            continue
        for line, text in messages(ast.parse(path.read_text("utf-8"))):
            where = f"{path.relative_to(PACKAGE)}:{line}: {text}"
            wrong += [where] if speaks_of_options(text) else []
            wrong += [f"{where} (no verb has `{name}`)" for name in PARAMETER.findall(text) if name not in known]
    assert not wrong, "\n".join(["", *wrong])


def test_the_walk_finds_what_is_wrong() -> None:
    code = 'raise ConfigError(f"{out} is not empty; go on with " "--resume")\nwarnings.warn("add --out DIR")'
    found = [text for _, text in messages(ast.parse(code))]
    assert found == ["… is not empty; go on with --resume", "add --out DIR"]
    assert all(map(speaks_of_options, found))
    assert not speaks_of_options("go on with 'saccade train --resume', or a--b")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a picture, maps and a folder that is not empty."""
    home = tmp_path_factory.mktemp("errors")
    save_tiny(home / "tiny")
    Image.new("RGB", (8, 8)).save(home / "a.png")
    np.save(home / "maps.npy", np.full((1, 4, 4), -1.0))
    np.save(home / "masks.npy", np.ones((1, 4, 4), bool))
    (home / "full").mkdir()
    (home / "full" / "x").write_text("x")
    return home


CASES: dict[str, tuple[Callable[[Path], Any], list[str], str, str]] = {
    "train into a full folder": (
        lambda at: saccade.train("soft-mref", out=at / "full", device="cpu"),
        ["train", "soft-mref", "--out", "full", "--device", "cpu"],
        "continue it with `resume=True`, or choose another `out`",
        "continue it with --resume, or choose another --out",
    ),
    "train with two lengths": (
        lambda at: saccade.train("soft-mref", out=at / "run", epochs=1, steps=1),
        ["train", "soft-mref", "--out", "run", "--epochs", "1", "--steps", "1"],
        "give `epochs` or `steps`, not both",
        "give --epochs or --steps, not both",
    ),
    "train with no batch": (
        lambda at: saccade.train("soft-mref", out=at / "run", batch_size=0),
        ["train", "soft-mref", "--out", "run", "--batch-size", "0"],
        "batch_size: expected 1 or more, found 0",
        "--batch-size: expected 1 or more, found 0",
    ),
    "train with a wrong override": (
        lambda at: saccade.train("soft-mref", out=at / "run", overrides=["seed"]),
        ["train", "soft-mref", "--out", "run", "--set", "seed"],
        "`overrides=seed`: expected key=value",
        "--set seed: expected key=value",
    ),
    "look with cells that nobody saves": (
        lambda at: saccade.look(at / "a.png", 1, model=at / "tiny", cells=True),
        ["look", "a.png", "--ask", "1", "--model", "tiny", "--cells"],
        "add `filmstrip=True` and `out=DIR`",
        "add --filmstrip and --out DIR",
    ),
    "look at a folder as if it were a picture": (
        lambda at: saccade.look(at / "full", 1, model=at / "tiny"),
        ["look", "full", "--ask", "1", "--model", "tiny"],
        "put it into a list, as in look(['",
        "no pictures",
    ),
    "evaluate too little": (
        lambda at: saccade.evaluate(at / "tiny", limit=0),
        ["evaluate", "tiny", "--limit", "0"],
        "limit: expected 1 or more",
        "--limit: expected 1 or more",
    ),
    "score negative maps": (
        lambda at: saccade.score(at / "maps.npy", at / "masks.npy"),
        ["score", "maps.npy", "--truth", "masks.npy"],
        "`signed=abs` takes absolute values",
        "--signed abs takes absolute values",
    ),
    "score by a method without a model": (
        lambda at: saccade.score(at, at / "masks.npy", method="own"),
        ["score", ".", "--truth", "masks.npy", "--method", "own"],
        "`method=own` needs a `model`",
        "--method own needs a --model",
    ),
    "reproduce without a place": (
        lambda at: saccade.reproduce("hattnet-table1", train=True),
        ["reproduce", "hattnet-table1", "--train"],
        "name one with `out`",
        "name one with --out",
    ),
    "rows without Ray": (
        lambda at: scale.look(at / "a.png", model=str(at / "tiny"), ask=1, out=at / "rows", actors=2),
        ["look", "a.png", "--model", "tiny", "--ask", "1", "--out", "rows", "--engine", "local", "--actors", "2"],
        "`address` and `actors` are for `engine=ray`",
        "--address and --actors are for --engine ray",
    ),
    "serve to everybody": (
        lambda at: saccade.serve([at / "tiny"], host="0.0.0.0"),
        ["serve", "tiny", "--host", "0.0.0.0"],
        "add `allow_remote=True`",
        "add --allow-remote",
    ),
    "average one run": (
        lambda at: saccade.average([at / "full"], out=at / "mean", weights=[1.0]),
        ["average", "full", "--out", "mean", "--weights", "a"],
        "two runs or more",
        "--weights: expected numbers with commas between",
    ),
    "a page of records with scores": (
        lambda at: saccade.report(at / "full", scores=at / "scores.json"),
        ["report", "full", "--scores", "scores.json"],
        "`scores` goes with the page of one run",
        "--scores goes with the page of one run",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_python_names_parameters_and_the_command_options(
    case: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, words, in_python, on_the_line = CASES[case]
    with pytest.raises(SaccadeError) as caught:
        call(place)
    assert in_python in str(caught.value)
    assert not speaks_of_options(str(caught.value))
    monkeypatch.chdir(place)
    done = CliRunner().invoke(app, words)
    line = done.stderr.strip().splitlines()[-1]
    assert done.exit_code == 2
    assert line.startswith("error: ")
    assert on_the_line in line
    assert "`" not in line


TEXTS: dict[str, Callable[[Path], Any]] = {
    "epochs": lambda at: saccade.train("soft-mref", out=at / "run", epochs="3"),
    "seeds": lambda at: saccade.train("soft-mref", out=at / "run", seeds="3"),
    "lr": lambda at: saccade.train("soft-mref", out=at / "run", lr="3"),
    "max_minutes": lambda at: saccade.train("soft-mref", out=at / "run", max_minutes="3"),
    "limit": lambda at: saccade.evaluate(at / "tiny", limit="3"),
    "sweeps": lambda at: saccade.evaluate(at / "tiny", sweeps="3"),
    "batch_size": lambda at: saccade.look(at / "a.png", 1, model=at / "tiny", batch_size="3"),
    "length_penalty": lambda at: saccade.look(at / "a.png", 1, model=at / "tiny", length_penalty="3"),
    "splits": lambda at: saccade.probe(at, out=at / "probe", splits="3"),
    "evidence_weight": lambda at: saccade.probe(at, out=at / "probe", evidence_weight="3"),
    "jobs": lambda at: saccade.reproduce("hattnet-table1", jobs="3"),
    "looks": lambda at: saccade.report(at / "full", looks="3"),
    "actors": lambda at: saccade.score(at / "maps.npy", at / "masks.npy", actors="3"),
    "side": lambda at: scale.look(at / "a.png", model=str(at / "tiny"), ask=1, out=at / "rows", side="3"),
    "port": lambda at: saccade.serve([at / "tiny"], port="3"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_where_a_number_belongs_is_named(name: str, place: Path) -> None:
    with pytest.raises(SaccadeError) as caught:
        TEXTS[name](place)
    found = re.fullmatch(
        rf"{name}: expected (a number|a whole number), found the text '3'; leave out the quotes: {name}=3(\.0)?",
        str(caught.value),
    )
    assert found, str(caught.value)


@pytest.mark.parametrize(
    "value", [2.5, True, [3], "many", torch.tensor(3), torch.zeros(9, 9), np.array([1, 2]), np.array(3)], ids=repr
)
def test_other_things_are_no_whole_numbers(value: Any, place: Path) -> None:
    with pytest.raises(
        SaccadeError, match=r"^epochs: expected a whole number, found .*; give a number, as in epochs=1$"
    ):
        saccade.train("soft-mref", out=place / "run", epochs=value)


def test_numbers_of_numpy_are_numbers() -> None:
    check_numbers(least=1, steps=np.int64(3))  # type: ignore[arg-type]
    check_reals(lr=np.float32(0.1))  # type: ignore[arg-type]
    with pytest.raises(SaccadeError, match="steps: expected 4 or more, found 3"):
        check_numbers(least=4, steps=np.int64(3))  # type: ignore[arg-type]
