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

    found: Any = typer.main.get_command(app)
    for word in words:
        found = found.get_command(None, word)
    return found


def verbs() -> list[str]:
    """Every verb, those of a group as ``data make``."""
    names = command([]).list_commands(None)
    return [f"{name} {below}".strip() for name in names for below in getattr(command([name]), "commands", [""])]


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
        told = getattr(found.callback, "command", None)
        help_, example = (found.help, "") if told is None else (told.function.__doc__, told.example)
        for paragraph in inspect.cleandoc(help_ or "").partition("\nArgs:")[0].strip().split("\n\n"):
            made.append(nodes.paragraph("", "", *prose(" ".join(paragraph.split()))))
        made += [nodes.literal_block(example, example, language="bash")] if example else []
        texts = {} if told is None else {name: each.text for name, each in told.arguments().items()}
        rows = [_row(option, texts.get(option.name) or option.help or "") for option in found.params]
        return [*made, table(("option", "takes", "default", "meaning"), rows, "fields")]


def _row(option: Any, text: str) -> list[list[nodes.Node]]:
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
    app.add_directive("verb", Verb)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
