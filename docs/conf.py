"""The settings of the site. ``make docs`` builds it into ``build/site``; it needs no network and loads nothing."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "src")]

project = "saccade"
author = "the authors of saccade"
copyright = "the authors of saccade, Apache-2.0"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "api_pages",
    "page_formats",
    "reference_tables",
    "repository",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext", ".ipynb": "notebook"}
exclude_patterns = ["benchmarks", "extensions", "results", "static"]

html_theme = "furo"
html_title = "saccade"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
smartquotes = False  # -- is an option, not a dash
toc_object_entries = False  # the tree of pages ends at modules
pygments_style = "tango"
pygments_dark_style = "monokai"

myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["myst.header"]  # a notebook may go from its title to a third level

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"show-inheritance": True}

nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!saccade\.).*"),  # types of torch, NumPy and Pillow: their documentation is not here
]
