"""Run the notebooks of the documentation anew, with their outputs: ``python tools/notebooks.py [NAME…]``.

Needs the extra ``notebook``. What depends on the machine or the moment (times, warnings, versions) stays out of the
files, so that running them again changes nothing but what changed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from small_png import smaller_base64, smaller_embedded

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
LARGEST = 240_000
"""Bytes of a notebook with its pictures."""


def run(path: Path) -> None:
    """Execute the notebook at ``path`` and write it back; an error in a cell stops everything and writes nothing."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, record_timing=False, coalesce_streams=True, resources=where).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_kept(each) for each in cell.outputs if each.get("name") != "stderr"]
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    text = nbformat.writes(notebook) + "\n"
    if len(text.encode()) > LARGEST:
        sys.exit(f"{path.name}: {len(text.encode()):,} bytes with its outputs, more than {LARGEST:,}; show less")
    path.write_text(text, encoding="utf-8")


def _kept(output: NotebookNode) -> NotebookNode:
    """An output with small pictures, and without the second copy of one: PIL offers each as PNG and as JPEG."""
    shown = output.get("data", {})
    if "image/png" in shown:
        shown.pop("image/jpeg", None)
        shown["image/png"] = smaller_base64(shown["image/png"])
    if "text/html" in shown:
        shown["text/html"] = smaller_embedded(shown["text/html"])
    return output


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
            continue
        start = time.perf_counter()
        run(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
