"""The directive ``{verb}``: usage, help and every option of a verb, as the command line itself declares them.

```{verb} data make
```
"""

from __future__ import annotations

import inspect
from typing import Any

from dataclass_fields import prose, table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def command(words: list[str]) -> Any:
    """The click command of a verb."""
    import typer

    from saccade.commands.door import app

    found = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]  # type: ignore[attr-defined]
    return found


def verbs() -> list[str]:
    """Every verb, those of a group as ``data make``."""
    return [
        f"{name} {below}".strip()
        for name, each in command([]).commands.items()
        for below in getattr(each, "commands", [""])
    ]


def default_of(option: Any) -> str:
    """The default as help shows it."""
    shown = option.show_default
    if isinstance(shown, str):
        return shown
    if option.default is None or option.required:
        return "required" if option.required else ""
    return ("on" if option.default else "off") if isinstance(option.default, bool) else str(option.default)


class Verb(SphinxDirective):
    """One verb."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Usage, help, table."""
        words = self.arguments[0].split()
        found = command(words)
        context = found.make_context("saccade", [], resilient_parsing=True)
        usage = " ".join(["saccade", *words, *found.collect_usage_pieces(context)])
        made: list[nodes.Node] = [nodes.literal_block(usage, usage, language="text")]
        for paragraph in [*inspect.cleandoc(found.help or "").split("\n\n"), *_description(found)]:
            made.append(nodes.paragraph("", "", *prose(" ".join(paragraph.split()))))
        example = inspect.cleandoc(_told(found).example) if _told(found) else ""
        made += [nodes.literal_block(example, example, language="bash")] if example else []
        rows = [_row(option, _more(found, option)) for option in found.params if not getattr(option, "hidden", False)]
        return [*made, table(("option", "takes", "default", "meaning"), rows, "fields")]


def _told(found: Any) -> Any:
    """What the verb's Python function tells, where the command was made of one."""
    return getattr(found.callback, "made", None)


def _description(found: Any) -> list[str]:
    """The paragraphs of its docstring after the first."""
    from saccade.cli.typed_as import typed_as

    told = _told(found)
    return [] if told is None else [typed_as(text, told.names) for text in told.doc.description]


def _more(found: Any, option: Any) -> str:
    """What the docstring of the verb's Python function says after the first sentence about an option."""
    from saccade.cli.typed_as import typed_as

    made = _told(found)
    said = None if made is None else made.doc.arguments.get(option.name)
    return "" if said is None else typed_as(said.more, made.names)


def _row(option: Any, more: str) -> list[list[nodes.Node]]:
    """Names, what it takes, default, help."""
    is_option = option.param_type_name == "option"
    names = [*option.opts, *option.secondary_opts] if is_option else [option.metavar or option.name.upper()]
    label = [part for name in names for part in (nodes.Text(" "), nodes.literal("", name))][1:]
    takes = "" if not is_option or option.is_flag else _kind(option)
    meaning = prose(" ".join(f"{option.help or ''} {more}".split()))
    return [label, [nodes.Text(takes)], [nodes.Text(default_of(option))], meaning]


def _kind(option: Any) -> str:
    """What an option takes, in words; older versions of typer have types of click."""
    described = getattr(option, "type_descriptor", None)
    kind = str(option.type.name if described is None else described.annotation)
    words = {"int": "a whole number", "float": "a number", "Path": "a path", "Literal": "a word"}
    text = next((word for part, word in words.items() if part in kind), "text")
    return f"{text}, may repeat" if option.multiple else text


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("verb", Verb)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
