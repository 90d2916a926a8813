"""The command ``saccade``: what is the same for all verbs, once. Options, help, ``--json``, progress and errors.

A verb is a module of :mod:`saccade.commands` with a ``COMMAND``, which names the Python function to call. The signature
and the docstring of the function are the options and the help.

An error that a user can cause prints one line on stderr, ``error: …``, and exits with code 2; Ctrl-C exits with 130.
``--debug``, anywhere in the command, also prints the traceback. A verb's module is imported when it is called, and
imports torch only once its function runs, unless it writes a page.
"""

from __future__ import annotations

import gc
import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from saccade.commands.verb import (
    REQUIRED,
    Argument,
    Command,
    Progress,
    Stream,
    arguments_of,
    fail,
    print_json,
    remark,
    say,
    warn,
)
from saccade.errors import ConfigError, SaccadeError, nearest

# The verbs in the order of help, which names them without importing them.
VERBS = {
    "look": "Ask a model about pictures or stories, and see where it looked.",
    "tour": "Score the shipped models beside published numbers, in one page.",
    "train": "Train a model by a recipe.",
    "evaluate": "Score the answers of a model, and its attention beside baselines.",
    "score": "Score maps from any tool, beside baselines and bounds.",
    "probe": "Find out whether attention is worth it on your own pictures.",
    "reproduce": "Make a paper's table from the results that come with saccade.",
    "report": "Make a page that opens offline, of one run or of records.",
    "export": "Write a model as ONNX, with the answer and every look as outputs.",
    "serve": "Ask models in a browser: drag a digit and see attention follow.",
    "data": "List, make, show and get data.",
    "list": "List the shipped models, or models, backbones, recipes, data, examples.",
    "doctor": "Check the installation: packages, devices, shipped models.",
}
_HELP = {"help_option_names": ["-h", "--help"]}
_WRONG_USE: Any = typer.BadParameter.__mro__[1]  # of wrong options: from click, or from typer's own copy of it
_SHOWN = {str: "TEXT", Path: "PATH", int: "N", float: "X"}


class Group(TyperGroup):
    """Commands of which nothing is printed but their help when none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command."""
        return super().parse_args(ctx, args or ["--help"])


class Lazy(Group):
    """The verbs, which are imported when they are named, and whose errors are one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--debug`` may stand anywhere: it belongs to the group, so it is moved to the front."""
        with one_line_errors(ctx):
            return super().parse_args(ctx, sorted(args, key=lambda arg: arg != "--debug"))

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs, in the order of help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb."""
        if cmd_name not in VERBS:
            raise ConfigError(f"no command '{cmd_name}': {nearest(cmd_name, VERBS)}")
        module = import_module(f"saccade.commands.{cmd_name}")
        if not hasattr(module, "COMMANDS"):
            return as_command(cmd_name, module.COMMAND)
        typed = typer.Typer(name=cmd_name, cls=Group, help=_summary(module.__doc__), **_PLAIN)
        typed.callback()(lambda: None)
        group: Any = typer.main.get_group(typed)
        group.commands |= {name: as_command(name, command) for name, command in module.COMMANDS.items()}
        return group

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The verbs with their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with one_line_errors(ctx):
            return super().invoke(ctx)


@contextmanager
def one_line_errors(ctx: Any) -> Iterator[None]:
    """Turn an error of the input into one line and exit code 2."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (SaccadeError, OSError, ValueError, _WRONG_USE) as error:
        if ctx.params.get("debug"):
            traceback.print_exc()
        if isinstance(error, OSError) and error.filename is not None:
            fail(f"{str(error.filename)[:200]}: {error.strerror}")
        elif isinstance(error, _WRONG_USE):
            fail(f"{error.format_message().rstrip('.')}; --help lists the options")
        else:
            fail(str(error) or type(error).__name__)
        raise typer.Exit(2) from error


_PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
app = typer.Typer(
    name="saccade",
    cls=Lazy,
    help="Models that answer, and show where they looked.",
    context_settings=_HELP,
    **_PLAIN,
)


def _version(wanted: bool) -> None:
    if wanted:
        from saccade import __version__

        say(f"saccade {__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of every verb."""


def as_command(name: str, command: Command) -> Any:
    """A verb as typer has it."""
    arguments = command.arguments()
    own = [_switch("json", "Print JSON on stdout, and nothing else.")] if command.json else []
    own += [_switch("quiet", "No progress and no remarks.", "-q")] if "quiet" not in arguments else []

    def verb(**values: Any) -> None:
        json, quiet = values.pop("json", False), values["quiet"]
        filled = {}
        for key, argument in arguments.items():
            value = values[key]
            if value is None or value == []:
                value = None if argument.default is REQUIRED else argument.default
            elif key in command.commas:
                value = [part.strip() for part in value.split(",")]
            filled[key] = value
        progress = Progress(shown=not quiet and (not json or sys.stderr.isatty()))
        called = command.run or command.function
        calls = {"on_progress": progress} if "on_progress" in arguments_of(called) else {}
        try:
            result = called(**filled, **calls)
            for item in result if isinstance(result, Stream) else ():
                if json:
                    print_json(item, indent=None)
        except SaccadeError as error:
            error.args = (_as_typed(str(error), command),)
            raise
        finally:
            progress.stop()
        if not json:
            command.show(result, {**filled, "quiet": quiet}, (lambda text: None) if quiet else remark)
        elif not isinstance(result, Stream):
            print_json(result)
        if code := command.code(result):
            raise typer.Exit(code)

    parameters = [*(_parameter(argument, command) for argument in arguments.values()), *own]
    parameters.sort(key=lambda parameter: parameter.default is not REQUIRED)
    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions take attributes
    verb.command = command  # type: ignore[attr-defined]  # as above; the reference pages read it
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    lines = "\n".join(f"  {line}" for line in command.example.splitlines())
    epilog = f"\b\nExample:\n{lines}" if lines else None
    typed = typer.Typer(**_PLAIN)
    typed.command(name, help=_summary(command.function.__doc__), epilog=epilog, context_settings=_HELP)(verb)
    return typer.main.get_command(typed)


def _summary(doc: str | None) -> str:
    return " ".join(inspect.cleandoc(doc or "").split("\n\n")[0].replace("`", "").split())


def _parameter(argument: Argument, command: Command) -> inspect.Parameter:
    name, default, in_one = argument.name, argument.default, argument.name in command.commas
    annotation: Any = str if in_one else list[argument.kind] if argument.many else argument.kind  # type: ignore[name-defined]  # a type
    help_, without = (_as_typed(text, command).replace("`", "") for text in (argument.help, argument.without))
    is_unset = in_one or default in (None, ())
    is_plain = is_unset or default is REQUIRED or default is False
    shows_default = without != "none" and (without or not is_plain)
    if is_unset:
        default, annotation = None, annotation | None
    elif isinstance(default, tuple):
        default = list(default)
    info: Any
    if place := command.place.get(name):
        info = typer.Argument(metavar=place, help=help_ and f"{help_}.", show_default=shows_default)
    else:
        names = command.names.get(name, "").split()
        own = [] if any(option.startswith("--") for option in names) else [f"--{name.replace('_', '-')}"]
        values = "A,B,…" if in_one else "|".join(map(str, argument.choices)) or _SHOWN.get(argument.kind)  # type: ignore[arg-type]  # a type
        metavar = command.words.get(name) or values
        info = typer.Option(*own, *names, metavar=metavar, help=help_ and f"{help_}.", show_default=shows_default)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[annotation, info], default=default
    )


def _switch(name: str, text: str, *short: str) -> inspect.Parameter:
    info = typer.Option(f"--{name}", *short, help=text, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[bool, info], default=False)


def _as_typed(text: str, command: Command) -> str:
    """Text in which arguments stand as they are typed: `out` is --out, `resume=True` is --resume."""
    arguments = command.arguments()

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in arguments:
            return match[0]
        own = [flag for flag in command.names.get(name, "").split() if flag.startswith("--")]
        flag = own[0].partition("/")[0] if own else f"--{name.replace('_', '-')}"
        return command.place.get(name) or flag + ("" if value in (None, "True") else f" {value}")

    return re.sub(r"`{1,2}(\w+)(?:=([^`]+))?`{1,2}", option, text)


def _warning(message: Warning | str, *where: object, **more: object) -> None:
    """A warning as one line on stderr, without the place in the code, which does not help at a command line."""
    warn(f"warning: {' '.join(str(message).split())}")


def main() -> None:
    """The entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without × or → must not end in a traceback
    # saccade's own limit on pixels is lower than Pillow's and says what to do; its warning would come on top.
    warnings.filterwarnings("ignore", message="Image size .* exceeds limit")
    warnings.showwarning = _warning
    gc.set_threshold(100_000, 50, 100)  # importing torch makes half a million objects that stay: 0.1 s
    try:
        app(prog_name="saccade")
    finally:
        gc.freeze()  # all of it ends with the process; looking through torch for cycles would take 0.15 s
