"""The door of all verbs: options from signatures, JSON, errors of one line, disks without room."""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from PIL import Image
from typer.testing import Result

import saccade
from saccade.commands import door, verb
from saccade.commands.verb import Command, check_call
from saccade.config import Within
from saccade.errors import ConfigError, DataError
from saccade.progress import OnProgress, no_progress
from tiny_runs import FRESH, TINY
from typed import typed


def stretch(
    model: str | Path,
    *,
    out: Path | str,
    factor: Annotated[float, Within(0, 9)] = 1.5,
    many: Annotated[int | None, Within(1)] = None,
    parts: Sequence[str] = (),
    weights: Sequence[str] | None = None,
    kind: Literal["soft", "hard"] = "soft",
    thin: bool | None = None,
    resume: bool = False,
    on_progress: OnProgress = no_progress,
    anything: Any = None,
) -> dict[str, object]:
    """Stretch ``model`` into ``out``.

    It is longer after that.

    Args:
        model: zoo name. Or a folder.
        out: folder to write to.
        factor: how much. More than 1 is longer.
        many: how often. None: twice.
        parts: only this part.
        weights: how much each counts. None: all the same.
        kind: of stretching.
        thin: thinner too, or not. None: by its kind.
        resume: go on with what is in ``out``.
        on_progress: called now and then.
        anything: for Python.
    """
    given = dict(locals())
    check_call(stretch, given)
    on_progress("stretch", 1, 2)
    return {name: value for name, value in given.items() if name not in ("on_progress", "anything")}


STRETCH = Command(
    stretch,
    lambda result, given, remark: (verb.say(f"stretched {result['model']}"), remark("it is longer now")),
    place={"model": "MODEL"},
    names={"out": "-o", "parts": "--part", "thin": "--thin/--thick"},
    commas=frozenset({"weights"}),
    code=lambda result: 3 if result["resume"] else 0,
    example="saccade stretch m --out x",
)


@pytest.fixture
def stretched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def call(*args: object) -> Result:
        return typed("look", *args)

    monkeypatch.setattr(door.Lazy, "get_command", lambda self, ctx, name: door.as_command("stretch", STRETCH))
    return call


def test_options_are_what_the_signature_says(stretched: Callable[..., Result]) -> None:
    plain = json.loads(stretched("m", "--out", "x", "--json").stdout)
    assert plain == {
        "model": "m", "out": "x", "factor": 1.5, "many": None, "parts": [], "weights": None, "kind": "soft",
        "thin": None, "resume": False,
    }  # fmt: skip
    words = ["--factor", 2, "--many", 3, "--part", "a", "--part", "b", "--weights", "1, 2", "--kind", "hard", "--thick"]
    full = json.loads(stretched("m", "-o", "x", *words, "--json").stdout)
    assert full == plain | {
        "factor": 2.0, "many": 3, "parts": ["a", "b"], "weights": ["1", "2"], "kind": "hard", "thin": False,
    }  # fmt: skip


def test_printing_progress_and_exit_code(stretched: Callable[..., Result]) -> None:
    loud, quiet = stretched("m", "--out", "x"), stretched("m", "--out", "x", "--quiet")
    assert (loud.stdout, loud.stderr) == ("stretched m\n", "stretch …\nit is longer now\n")
    assert (quiet.stdout, quiet.stderr) == ("stretched m\n", "")
    assert stretched("m", "--out", "x", "--resume").exit_code == 3


@pytest.mark.parametrize(
    ("wrong", "words", "named"),
    [
        ({"factor": 10}, ["--factor", "10"], "0 to 9"),
        ({"many": 0}, ["--many", "0"], "1 or more"),
        ({"many": 1.5}, ["--many", "1.5"], "many"),
        ({"kind": "sofd"}, ["--kind", "sofd"], "soft"),
    ],
)
def test_python_is_refused_what_the_command_line_is(
    stretched: Callable[..., Result], wrong: dict[str, Any], words: list[str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        stretch("m", out="x", **wrong)
    assert_refused(stretched("m", "--out", "x", *words), named)


def test_options_that_are_not_there_or_are_missing_are_named(stretched: Callable[..., Result]) -> None:
    assert_refused(stretched("m", "--out", "x", "--frob"), "--frob")
    assert_refused(stretched("m"), "--out")


def assert_refused(result: Result, named: str) -> None:
    assert result.exit_code == 2
    assert named in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataError("every source failed:\n  a: no\n  b: no"), "error: every source failed: a: no b: no"),
        (OSError(36, "File name too long", "long"), "error: long: File name too long"),
        (ValueError("embedded null byte"), "error: embedded null byte"),
        (DataError("a label: \x1b]52;c;x\x07"), "error: a label: \ufffd]52;c;x\ufffd"),
    ],
)
def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception, line: str) -> None:
    def failing(*_, **__):
        raise error

    monkeypatch.setattr("saccade.zoo.folders.example", failing)
    result = typed("look", "--example", "digits")
    assert (result.exit_code, result.stderr.strip()) == (2, line)
    assert "Traceback" in typed("look", "--example", "digits", "--debug").stderr


def test_an_error_names_options_as_they_are_typed(
    stretched: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise DataError("`resume=True` goes on; `parts=a`, `thin`, `model`, `many`, not `others=1`")

    monkeypatch.setitem(globals(), "check_call", failing)
    told = stretched("m", "--out", "x", "-q").stderr
    assert told == "error: --resume goes on; --part a, --thin, MODEL, --many, not `others=1`\n"


def test_other_errors_are_tracebacks_and_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, code in ((KeyboardInterrupt(), 130), (RuntimeError("a bug"), 1)):

        def failing(*_, error=error, **__):
            raise error

        monkeypatch.setattr("saccade.zoo.folders.example", failing)
        assert typed("look", "--example", "digits").exit_code == code


def test_help_version_and_no_arguments() -> None:
    assert typed("--version").stdout.strip() == f"saccade {saccade.__version__}"
    for args in (["--help"], ["-h"], []):
        assert all(f"  {name}" in typed(*args).output for name in door.VERBS)


@pytest.mark.parametrize("args", [["--help"], ["list"], ["data", "list"], ["train", "--help"], ["data", "make", "-h"]])
def test_light_verbs_import_nothing_heavy(args: list[str]) -> None:
    heavy = ["torch", "numpy", "PIL", "matplotlib", "lightning_fabric", "safetensors", "fastapi", "timm", "http"]
    code = (
        f"import sys; sys.argv = ['saccade', *{args!r}]; from saccade.commands.door import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print('HEAVY', *(name for name in {heavy} if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1].strip() == "HEAVY"


def test_nothing_printed_holds_nan_or_a_strangers_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    verb.print_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": "\x1b[2J\x9b2J", "d": Path("x")})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": None, "b": [None, 1.5], "c": "\x1b[2J\x9b2J", "d": "x"}
    verb.print_table("\x1b[2Jtitle", ("\x07",), [("label\x1b]0;x\x07", 1.0)], note="\x1b")
    verb.remark("\x1bc")
    verb.warn("\u202e")
    both = capsys.readouterr()
    assert not set("\x1b\x07\x9b\u202e") & set(printed + both.out + both.err)


TRAIN = ("train", "soft-mref", "--device", "cpu", "--quiet")
TRAIN += tuple(word for each in (*TINY, *FRESH) for word in ("--set", each))


def limit_files(size: int) -> Callable[[], None]:
    """No file may get larger than this: writing ends in the middle, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def refused(size: int, *words: object) -> str:
    """The one line that a command ends with where files are limited."""
    command = [sys.executable, "-m", "saccade", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files(size))
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()  # torch 2.15 adds some of its own
    (line,) = (line for line in lines if line.startswith("error: "))
    return line


@pytest.mark.parametrize("verb", ["train", "look", "data"])
def test_a_disk_without_room(run: Path, tmp_path: Path, verb: str) -> None:
    Image.new("RGB", (100, 100), "white").save(tmp_path / "a.png")
    words = {
        "train": (*TRAIN, "--out", tmp_path / "out" / "run"),
        "look": ("look", tmp_path / "a.png", "--model", run, "--ask", "1", "-q", "--out", tmp_path / "out"),
        "data": ("data", "make", "mref", "--glyphs", "pack", "-n", "2", "-q", "--out", tmp_path / "out" / "scenes"),
    }
    line = refused(300, *words[verb])
    assert "cannot write" in line
    assert "ulimit -f" in line
    assert not [path for path in (tmp_path / "out").rglob("*") if "saccade" in path.name]  # no drafts, no lock
