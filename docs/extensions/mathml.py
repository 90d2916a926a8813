"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
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
    raise _skip()


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), display="block")}</div>\n')
    raise _skip()


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
