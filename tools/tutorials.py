"""Make the pictures of the tutorials anew, with the code of their pages: ``python tools/tutorials.py [NAME…]``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from doc_blocks import ROOT, blocks, commands, images, pages, run_python
from PIL import Image


def main() -> None:
    for page in pages():
        wanted = images(page)
        if not wanted or (len(sys.argv) > 1 and Path(page).stem not in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names: dict[str, Any] = {}
            for block in blocks(page):
                if block.language == "python":
                    run_python(block, page, names)
                for words in commands(block.text) if block.language == "bash" else []:
                    if words[:2] == ["data", "make"]:
                        subprocess.run([sys.executable, "-m", "saccade", *words], check=True)
            for name, path in wanted.items():
                path.parent.mkdir(exist_ok=True)
                Image.open(name).convert("RGB").quantize(128).save(name, optimize=True)
                shutil.copy(name, path)
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
