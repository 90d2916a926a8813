"""The page as one file: its modules bundled, its policy exact, its size small, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from web_models import LIVE

import saccade
from saccade.errors import ConfigError
from saccade.web.page import STATIC, bundle, offline_page


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="saccade-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "main.js"


def test_what_cannot_be_bundled_is_refused(tmp_path: Path) -> None:
    for text in ('import one from "./one.js";', 'import { one } from "one";', "export default 3;",
                 'export { one } from "./one.js";', 'const text = "</script>";'):  # fmt: skip
        with pytest.raises(ConfigError, match=re.escape(text[-8:])):
            bundle(write(tmp_path, main=f"{text}\n", one="export const one = 1;\n"))


def test_no_module_makes_markup_or_code_of_text() -> None:
    unsafe = re.compile(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:|<html|<body")
    texts = {path.name: path.read_text("utf-8") for path in (STATIC / "js").rglob("*.js")}
    assert len(texts) > 20  # or they were looked for in the wrong place
    assert not [name for name, text in texts.items() if unsafe.search(text)]


def test_a_page_with_its_models_is_one_small_file_under_a_policy_of_its_own() -> None:
    carried = [saccade.load(name, "cpu") for name in LIVE]
    page = offline_page(carried)
    assert len(page.encode()) <= 600_000
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    script = re.search(r'<script id="saccade-script">(.*?)</script>', page, re.DOTALL)
    assert policy
    assert style
    assert script
    digests = [base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode() for part in (style, script)]
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert [rules["style-src"], rules["script-src"]] == [f"'sha256-{digest}'" for digest in digests]
    assert (rules["default-src"], rules["worker-src"]) == ("'none'", "blob:")
    assert not re.search(r"https?://|<(link|iframe|object|img)\b", page)
    assert not re.search(r"\son\w+=", page.split('<script type="application/json"')[0])
    data = data_of(page)
    assert policy[0] in data["document"]  # that of the pages it saves
    assert [model["sha256"] for model in data["weights"]] == [predictor.facts.sha256 for predictor in carried]
    assert "onmessage" in data["worker"]


def test_a_page_without_models_is_a_viewer_that_carries_views() -> None:
    hostile = {"schema": "saccade.view/1", "model": "</script><script>alert(1)</script>"}
    page = offline_page(views=[hostile])
    data = data_of(page)
    assert (data["views"], data["weights"], data["worker"]) == ([hostile], [], None)
    assert page.count("</script>") == 2
    assert len(page.encode()) < 150_000
