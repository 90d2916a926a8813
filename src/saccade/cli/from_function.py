"""A command made of a Python function: its arguments are written once, in the signature and the docstring.

::

    @command_of("saccade.verbs.export:export", {"model": Typed("MODEL"), "out": Typed("-o")}, example="…")
    def export(given: Given, json: Json = False, quiet: Quiet = False) -> None:
        sidecar = saccade.export(**given)

The decorated function gets what was typed as ``given``, ready for the Python function, and has only options of its own
that are about printing. What the signature does not tell (short names, positions, commas) stands in :class:`Typed`.

========================  ==============================================================================================
in the signature          on the command line
========================  ==============================================================================================
``batch_size: int = 32``  ``--batch-size N``, default 32
``resume: bool = False``  the switch ``--resume``
``Path | str``            a path; of a union the first type that can be typed counts
``Sequence[str] = ()``    an option that may be repeated; with ``commas`` values by commas
``Literal["a", "b"]``     text; the function itself checks it, so the error is the same in both places
``Callable``, ``Any``     nothing: such an argument is for Python alone
========================  ==============================================================================================

The module of the function must be importable without torch: help is printed before anything heavy is loaded.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from saccade.cli.docstring import Docstring, Said, parse_docstring
from saccade.cli.typed_as import typed_as
from saccade.errors import ConfigError

Given = dict[str, Any]
"""The arguments of the Python function, as they were typed."""

_PLAIN: dict[str, tuple[type, str]] = {
    "str": (str, "TEXT"),
    "Path": (Path, "PATH"),
    "int": (int, "N"),
    "float": (float, "X"),
    "bool": (bool, ""),
    "Question": (str, "TEXT"),  # of saccade.families.responder; whatever is typed is text
}
_MANY = re.compile(r"^(?:Sequence|list|Iterable)\[(.*)\]$")


@dataclass(frozen=True)
class Typed:
    """What the signature does not tell about an argument."""

    name: str = ""
    """``-o`` is short for its own name, ``--set`` stands in its place, and ``MODEL`` makes it a positional argument."""
    many: bool = False
    """Several may be given, where the signature has one or several."""
    commas: bool = False
    """Several values are one text with commas between."""
    rare: bool = False
    """In ``--help-all`` alone."""
    shows: str = ""
    """What stands for the value in help."""
    unset: str = ""
    """What happens without it, where that is something else than the default of the signature: None is passed on."""

    @property
    def is_argument(self) -> bool:
        """Whether it is given by its place."""
        return bool(self.name) and not self.name.startswith("-")


RARE = Typed(rare=True)
HELP_ALL = "--help-all"


def _print_all(ctx: typer.Context, wanted: bool) -> None:
    """Print the whole help and stop."""
    command: Any = ctx.command
    if wanted:
        formatter = ctx.make_formatter()
        command.format_help(ctx, formatter, whole=True)
        typer.echo(formatter.getvalue().rstrip("\n"))
        raise typer.Exit


_WHOLE_HELP = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            HELP_ALL, callback=_print_all, is_eager=True, show_default=False, help="Every option, and more about each."
        ),
    ],
)


@dataclass(frozen=True)
class Made:
    """What help and errors need to know of a command that was made of a function."""

    doc: Docstring
    names: Mapping[str, str]
    """Parameter → how it is typed."""
    rare: Collection[str]
    """Parameters that ``--help`` leaves out."""
    example: str


@dataclass(frozen=True)
class _Type:
    """What a command line can make of an annotation."""

    plain: type
    shows: str
    many: bool = False


def command_of(
    target: str,
    typed: Mapping[str, Typed] | None = None,
    *,
    also: str = "",
    leave_out: Collection[str] = (),
    example: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of the function ``target`` and of the decorated function, which calls it and prints.

    Args:
        target: the Python function, as ``module:name``.
        typed: what its signature does not tell, by parameter.
        also: a second function, for a command that calls one or the other; what it has more is added.
        leave_out: parameters that are for Python alone, besides those that cannot be typed.
        example: the last lines of the help.
    """
    function, told = _function(target), typed or {}
    doc = parse_docstring(function.__doc__ or "")
    parameters = _parameters(function)
    if also:
        second = _function(also)
        doc = Docstring(doc.summary, doc.description, parse_docstring(second.__doc__ or "").arguments | doc.arguments)
        parameters = {**parameters, **{key: each for key, each in _parameters(second).items() if key not in parameters}}
    taken = {key: (each, _type_of(str(each.annotation))) for key, each in parameters.items() if key not in leave_out}
    wanted = {key: (each, how) for key, (each, how) in taken.items() if how is not None}
    if unknown := set(told) - set(wanted):
        raise TypeError(f"{target} has no arguments {', '.join(sorted(unknown))} that can be typed")
    names = {key: name for each in wanted for key, name in _shown_names(each, told.get(each, Typed())).items()}

    def decorate(show: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(show, eval_str=True).parameters.values() if each.name != "given"]
        made = [
            _parameter(each, how, told.get(key, Typed()), doc.arguments.get(key), names)
            for key, (each, how) in wanted.items()
            if how is not None
        ]
        made.sort(key=lambda each: each.default is not inspect.Parameter.empty)  # Python wants it so; help sorts anew

        def run(**values: Any) -> None:
            given = {key: _value(key, values[key], told.get(key, Typed()), wanted[key][0]) for key in wanted}
            show(given, **{each.name: values[each.name] for each in own})

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [*(each.replace(kind=keyword) for each in (*made, *own)), _WHOLE_HELP]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions take attributes
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__name__, run.__module__ = show.__name__, show.__module__
        run.__doc__ = typed_as(doc.summary, names)
        rare = {key for key in wanted if told.get(key, Typed()).rare}
        run.made = Made(doc, names, rare, inspect.cleandoc(example))  # type: ignore[attr-defined]  # as above
        return run

    return decorate


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Those that have a name; ``**options`` has none."""
    found = inspect.signature(function).parameters
    return {key: each for key, each in found.items() if each.kind is not inspect.Parameter.VAR_KEYWORD}


def _type_of(annotation: str) -> _Type | None:
    """The first type of ``annotation`` that can be typed; None where there is none.

    >>> _type_of("Path | str | None"), _type_of("Sequence[str]").many, _type_of("Callable[[int], None]")
    (_Type(plain=<class 'pathlib.Path'>, shows='PATH', many=False), True, None)
    """
    for part in _union(annotation):
        if part in _PLAIN:
            return _Type(*_PLAIN[part])
        if part.startswith("Literal["):
            choices = ast.literal_eval(f"({part[len('Literal[') : -1]},)")
            return _Type(str, "|".join(map(str, choices)))
        if (match := _MANY.match(part)) and (inner := _type_of(match.group(1))) is not None:
            return _Type(inner.plain, inner.shows, many=True)
    return None


def _union(annotation: str) -> list[str]:
    """The types of a union, those in brackets left whole."""
    parts, depth = [""], 0
    for sign in annotation:
        depth += (sign in "[(") - (sign in "])")
        if sign == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _shown_names(key: str, how: Typed) -> dict[str, str]:
    """How a parameter is typed; of a switch with two options also how its False is."""
    if how.is_argument:
        return {key: how.name}
    long = [name for name in how.name.split() if name.startswith("--")]
    yes, _, no = (long[0] if long else f"--{key.replace('_', '-')}").partition("/")
    return {key: yes, **({f"{key}=False": no} if no else {})}


def _parameter(
    each: inspect.Parameter, found: _Type, how: Typed, said: Said | None, names: Mapping[str, str]
) -> inspect.Parameter:
    """A parameter as typer takes it."""
    said = said or Said("")
    many = (found.many or how.many) and not how.commas
    is_required = each.default is inspect.Parameter.empty and not how.unset
    default = ... if is_required else each.default
    is_switch = found.plain is bool
    words = how.unset or typed_as(said.default, names)
    text = typed_as(said.short, names) + ("." if said.short else "")
    shows = how.shows or ("A,B,…" if how.commas else found.shows)
    more: dict[str, Any] = {"help": text, "show_default": words or not (default in (None, (), ...) or default is False)}
    # a type that is known at run time
    kind: Any = list[found.plain] if many else str if how.commas else found.plain  # type: ignore[name-defined]
    if how.unset or default is None or default == ():
        kind, default = kind | None, None
    if how.is_argument:
        info = typer.Argument(metavar=how.name + "…" * many, **more)
    else:
        decls = how.name.split()
        own = [] if any(name.startswith("--") for name in decls) else [f"--{each.name.replace('_', '-')}"]
        info = typer.Option(*own, *decls, metavar=None if is_switch else shows, **more)
    annotation = Annotated[kind, info]
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=annotation,
        default=inspect.Parameter.empty if is_required else default,
    )


def _value(key: str, value: Any, how: Typed, each: inspect.Parameter) -> Any:
    """What was typed, as the function takes it."""
    if value is None:
        return None if how.unset else each.default
    if not how.commas:
        return value
    inner = _type_of(str(each.annotation))
    plain = str if inner is None else inner.plain
    try:
        return [plain(part.strip()) for part in value.split(",") if part.strip()]
    except ValueError as error:
        raise ConfigError(f"`{key}`: expected numbers with commas between, as in 1,2,1, found '{value}'") from error
