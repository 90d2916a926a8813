"""Runs the page's engine outside a page: in node, or in a headless Chromium, whichever is there."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chromium import ARGUMENTS, found

from saccade.web.page import STATIC

IN_ORDER = ("frames", "views", "engine/layers", "engine/networks", "engine/worker")
"""The modules that compute, each behind those that it imports."""
NODE = shutil.which("node")
CHROMIUM = found() if importlib.util.find_spec("playwright") else None
RUNTIMES = [name for name, path in (("node", NODE), ("chromium", CHROMIUM)) if path]
needs_runtime = pytest.mark.skipif(not RUNTIMES, reason="neither node nor Chromium is there to run the engine")


def computed(
    body: str, given: Any, folder: Path, *, runtime: str | None = None, modules: tuple[str, ...] = IN_ORDER
) -> Any:
    """What the JavaScript ``body``, which may await, returns for ``given``."""
    # the modules use no name twice, so that taking out the imports makes one script of them
    text = "\n".join((STATIC / "js" / f"{name}.js").read_text(encoding="utf-8") for name in modules)
    text = re.sub(r"^export ", "", re.sub(r"^import [^;]*;\n", "", text, flags=re.M), flags=re.M)
    script = f"{text}\nconst given = {json.dumps(given)};\nconst work = async () => {{{body}}};\n"
    if (runtime or RUNTIMES[0]) == "node":
        path = folder / "engine.mjs"
        start = "globalThis.self = globalThis;\n"  # what a worker and a page call themselves
        path.write_text(f"{start}{script}console.log(JSON.stringify(await work()));", encoding="utf-8")
        done = subprocess.run([NODE or "node", str(path)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)
    with ThreadPoolExecutor(1) as thread:  # in this one another test's browser may have left its loop running
        return thread.submit(_in_chromium, script).result()


def _in_chromium(script: str) -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            return browser.new_page().evaluate(f"async () => {{ {script} return work(); }}")
        finally:
            browser.close()
