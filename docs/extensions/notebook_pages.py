"""Notebooks as pages: their text, code and stored outputs. Nothing is run."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


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
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
