"""How pages are read: notebooks as their text, code and stored outputs, and formulas as MathML.

Nothing is run. Browsers draw MathML themselves: no script, no font, no network.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def mathml(latex: str, *, display: str) -> str:
    """The formula as a ``<math>`` element; a formula that cannot be read stops the build."""
    try:
        formula = convert(latex, display=display)
    except Exception as error:  # the converter has no error class of its own
        raise ExtensionError(f"formula {latex!r}: {error}") from error
    # names of functions stand upright, with a little space behind them
    return re.sub(r"<mi>([a-z]{2,})</mi>", r'<mi class="function">\1</mi><mspace width="0.17em"/>', formula)


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node.astext(), display="inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def markdown_of(notebook: dict[str, Any]) -> str:
    """The notebook as MyST text."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell.get("outputs", []):
        shown = output.get("data", {})
        if "text/html" in shown:
            yield _raw("".join(shown["text/html"]))
        elif "image/png" in shown:
            data = "".join(shown["image/png"]).strip()
            yield _raw(f'<img alt="What the code above draws" src="data:image/png;base64,{data}">')
        else:
            text = "".join(output.get("text", shown.get("text/plain", "")))
            yield _raw(f"<pre>{html.escape(text)}</pre>")


def _raw(text: str) -> str:
    return f'``````{{raw}} html\n<div class="cell-output">\n{text}\n</div>\n``````'


class NotebookParser(MystParser):
    """Reads ``.ipynb`` files."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the notebook as the page that it stands for."""
        super().parse(markdown_of(json.loads(inputstring)), document)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
