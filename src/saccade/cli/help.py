"""How a verb looks: its help, with a line for each option where it fits, and its errors, which speak of options.

``--help`` has what most people need, with the first sentence about each option. ``--help-all`` has every option with
all that its docstring says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from typer.core import TyperCommand

from saccade.cli.from_function import HELP_ALL, Made
from saccade.cli.typed_as import typed_as
from saccade.errors import ConfigError, SaccadeError

F = TypeVar("F", bound=Callable[..., None])
_WIDEST = 26
"""Characters of the column with the options; the text of a longer one begins on the next line."""


class VerbCommand(TyperCommand):
    """A command with its own help."""

    @property
    def made(self) -> Made | None:
        """What its Python function tells, where it was made of one."""
        return getattr(self.callback, "made", None)

    def invoke(self, ctx: Any) -> Any:
        """Run it; an error that speaks of parameters speaks of options then."""
        try:
            return super().invoke(ctx)
        except SaccadeError as error:
            long = {each.name: [name for name in each.opts if name.startswith("--")] for each in self.params}
            own = {str(name): options[0] for name, options in long.items() if options}
            names = own if self.made is None else self.made.names
            error.args = (typed_as(str(error), names, leads=isinstance(error, ConfigError)),)
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the name of the command."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return [*(_opening(each) if each.required else f"[{_opening(each)}]" for each in arguments), "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any, *, whole: bool = False) -> None:
        """Usage, summary, arguments, options, example."""
        self.format_usage(ctx, formatter)
        made = self.made
        paragraphs = [self.help or ""] if made is None else [typed_as(made.doc.summary, made.names)]
        if made is not None and whole:
            paragraphs += [typed_as(text, made.names) for text in made.doc.description]
        for text in filter(None, paragraphs):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
        params = self.get_params(ctx)
        rare = set() if made is None or whole else set(made.rare)
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            shown = [each for each in params if each.param_type_name == kind and each.name not in rare]
            rows = [(_opening(each), _text(each, made, whole)) for each in shown]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=_WIDEST)
        hidden = len([each for each in params if each.name in rare])
        if hidden:
            formatter.write(f"\n{hidden} more option{'s' * (hidden > 1)}: {ctx.command_path} {HELP_ALL}\n")
        example = made.example if made is not None else getattr(self.callback, "example", "")
        if example:
            with formatter.section("Example"):
                for line in example.splitlines():
                    formatter.write(f"  {line}\n")


def with_example(example: str) -> Callable[[F], F]:
    """The last lines of the help of a command that has no Python function."""

    def decorate(function: F) -> F:
        function.example = example  # type: ignore[attr-defined]  # functions take attributes
        return function

    return decorate


def _opening(param: Any) -> str:
    """The names of a parameter, and what its value looks like."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    short_first = sorted(param.opts, key=lambda name: name.startswith("--"))
    names = ", ".join(short_first) + "".join(f" / {name}" for name in param.secondary_opts)
    return names if param.is_flag else f"{names} {param.metavar or 'TEXT'}"


def _text(param: Any, made: Made | None, whole: bool) -> str:
    """What is said of a parameter, and its default."""
    said = made.doc.arguments.get(param.name) if made is not None and whole else None
    text = str(param.help or "")
    if said is not None and said.more and made is not None:
        text = f"{text} {typed_as(said.more, made.names)}"
    return " ".join(filter(None, (text, _default(param, whole))))


def _default(param: Any, whole: bool) -> str:
    """What happens without it; that a switch is off is said in the whole help alone."""
    if param.required:
        return "[required]"
    if whole and getattr(param, "is_flag", False) and param.default is False and not param.is_eager:
        return "[default: off]"
    if isinstance(param.show_default, str):
        return f"[default: {param.show_default}]"
    return f"[default: {param.default}]" if param.show_default and param.default is not None else ""
