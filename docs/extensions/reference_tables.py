"""Directives that make tables of the code.

``{fields} saccade.engine.recipe.Phase``: the fields of a dataclass, each with the comment behind it or the text under
it in the source; the option ``:prefix: phases.N.`` shows names with what stands before them in a file. ``{losses}
question`` and ``{models} question``: those of a family. ``{verbs}``: usage, help and options of all verbs, as the
command line declares them.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
import types as types_module
import typing
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Row = tuple[str, str, str, str]
"""Name, type, default, text."""


def rows_of(cls: type) -> Iterator[Row]:
    """One row for each field, those of base classes first."""
    texts: dict[str, str] = {}
    types: dict[str, str] = {}
    for home in reversed(cls.__mro__):
        if dataclasses.is_dataclass(home):
            source = textwrap.dedent(inspect.getsource(home))
            lines, body = source.splitlines(), ast.parse(source).body[0].body  # type: ignore[attr-defined]
            for each, after in zip(body, [*body[1:], None]):
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    types[each.target.id] = ast.unparse(each.annotation)
                    comment = lines[(each.end_lineno or 1) - 1].partition("  # ")[2]
                    texts[each.target.id] = comment or _text(after)
    hints = typing.get_type_hints(cls, include_extras=True)
    for item in dataclasses.fields(cls):
        bounded = "Annotated" in str(hints[item.name])
        shown = _with_bounds(hints[item.name]) if bounded else types.get(item.name, "")
        yield item.name, shown, _default(item), texts.get(item.name, "")


def _with_bounds(hint: Any) -> str:
    """A type with the bounds of its numbers: ``int, 1 to 64``."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return ", ".join([_with_bounds(args[0]), *map(str, args[1:])])
    if origin in (typing.Union, types_module.UnionType):
        return " | ".join(map(_with_bounds, args))
    return "None" if hint is type(None) else inspect.formatannotation(hint)


def _text(statement: ast.stmt | None) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    held = value.value if isinstance(value, ast.Constant) else ""
    return " ".join(held.split()) if isinstance(held, str) else ""


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default is not dataclasses.MISSING:
        return repr(item.default)
    if item.default_factory is dataclasses.MISSING:
        return "required"
    made = item.default_factory()
    return "see below" if dataclasses.is_dataclass(made) else repr(made)


def target(name: str) -> Any:
    """What a dotted name stands for."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def table(headings: tuple[str, ...], rows: list[list[list[nodes.Node]]], *classes: str) -> nodes.table:
    """A table of docutils nodes."""
    group = nodes.tgroup(cols=len(headings))
    group += [nodes.colspec(colwidth=1) for _ in headings]
    group += nodes.thead("", _row([[nodes.Text(each)] for each in headings]))
    group += nodes.tbody("", *(_row(cells) for cells in rows))
    return nodes.table("", group, classes=list(classes))


def _row(cells: list[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def prose(text: str) -> list[nodes.Node]:
    """One sentence of a docstring: what stands in double backticks, or in a role, becomes code."""
    found: list[nodes.Node] = []
    for code, name, rest in re.findall(r"``(.+?)``|:\w+:`~?([^`]+)`|((?:(?!``|:\w+:`).)+)", text):
        found.append(nodes.Text(rest) if rest else nodes.literal("", code or name.rpartition(".")[2]))
    return found


class Fields(SphinxDirective):
    """The table itself."""

    required_arguments = 1
    option_spec = {"prefix": directives.unchanged}  # noqa: RUF012  # as docutils declares it

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        return [fields_table(target(self.arguments[0]), self.options.get("prefix", ""))]


def fields_table(cls: type, prefix: str = "") -> nodes.table:
    """The table of the fields of ``cls``."""
    rows = []
    for name, kind, default, text in rows_of(cls):
        literal = nodes.literal("", prefix + name)
        rows.append([[literal], [nodes.literal("", kind)], [nodes.literal("", default)], prose(text)])
    return table(("key", "type", "default", "meaning"), rows, "fields")


class Losses(SphinxDirective):
    """Every loss of a family, with its numbers."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A heading line and a table for each."""
        from saccade.families import families

        made: list[nodes.Node] = []
        for name, cls in families()[self.arguments[0]].task().losses.items():
            made.append(nodes.paragraph("", "", nodes.literal("", name), nodes.Text(": "), *prose(_first(cls))))
            if dataclasses.fields(cls):
                made.append(fields_table(cls, "loss."))
        return made


class Models(SphinxDirective):
    """Every model of a family, with its settings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A heading line and a table for each class of settings."""
        from saccade.families import families

        by_class: dict[type, list[nodes.Node]] = {}
        for name, spec in families()[self.arguments[0]].models.items():
            line = [nodes.literal("", name), nodes.Text(f": {spec.summary} ({spec.paper}).")]
            if spec.defaults:
                line.append(nodes.Text(" Differs by "))
                line.append(nodes.literal("", ", ".join(f"{key}: {value}" for key, value in spec.defaults.items())))
            by_class.setdefault(spec.load().Config, []).append(nodes.paragraph("", "", *line))
        return [each for cls, lines in by_class.items() for each in (*lines, fields_table(cls, "model.config."))]


def _first(cls: type) -> str:
    """The first sentence of a docstring."""
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def command(words: list[str]) -> Any:
    """The click command of a verb."""
    import typer

    from saccade.commands.door import app

    found: Any = typer.main.get_command(app)
    for word in words:
        found = found.get_command(None, word)
    return found


def default_of(option: Any) -> str:
    """The default as help shows it."""
    shown = option.show_default
    if isinstance(shown, str):
        return shown
    if option.default is None or option.required:
        return "required" if option.required else ""
    return ("on" if option.default else "off") if isinstance(option.default, bool) else str(option.default)


class Verbs(SphinxDirective):
    """A section for each verb; those of a group as ``data make``."""

    def run(self) -> list[nodes.Node]:
        """Usage, help and table of each."""
        names = command([]).list_commands(None)
        verbs = [f"{name} {below}".strip() for name in names for below in getattr(command([name]), "commands", [""])]
        return [_verb(verb) for verb in verbs]


def _verb(verb: str) -> nodes.section:
    words = verb.split()
    found = command(words)
    context = found.make_context("saccade", [], resilient_parsing=True)
    usage = " ".join(["saccade", *words, *found.collect_usage_pieces(context)])
    title = nodes.title("", f"saccade {verb}")
    section = nodes.section(
        "", title, nodes.literal_block(usage, usage, language="text"), ids=[nodes.make_id(title.astext())]
    )
    told = getattr(found.callback, "command", None)
    help_, example = (found.help, "") if told is None else (told.function.__doc__, told.example)
    for paragraph in inspect.cleandoc(help_ or "").partition("\nArgs:")[0].strip().split("\n\n"):
        section += nodes.paragraph("", "", *prose(" ".join(paragraph.split())))
    if example:
        section += nodes.literal_block(example, example, language="bash")
    texts = {} if told is None else {name: each.text for name, each in told.arguments().items()}
    rows = [_option_row(option, texts.get(option.name) or option.help or "") for option in found.params]
    section += table(("option", "takes", "default", "meaning"), rows, "fields")
    return section


def _option_row(option: Any, text: str) -> list[list[nodes.Node]]:
    """Names, what it takes, default, help."""
    is_option = option.param_type_name == "option"
    names = [*option.opts, *option.secondary_opts] if is_option else [option.metavar or option.name.upper()]
    label = [part for name in names for part in (nodes.Text(" "), nodes.literal("", name))][1:]
    takes = "" if not is_option or option.is_flag else _kind(option)
    return [label, [nodes.Text(takes)], [nodes.Text(default_of(option))], prose(text)]


def _kind(option: Any) -> str:
    """What an option takes, in words; older versions of typer have types of click."""
    described = getattr(option, "type_descriptor", None)
    kind = str(option.type.name if described is None else described.annotation)
    words = {"int": "a whole number", "float": "a number", "Path": "a path", "Literal": "a word"}
    text = next((word for part, word in words.items() if part in kind), "text")
    return f"{text}, may repeat" if option.multiple else text


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("fields", Fields)
    app.add_directive("losses", Losses)
    app.add_directive("models", Models)
    app.add_directive("verbs", Verbs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
