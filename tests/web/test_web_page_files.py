"""The page as one file: its modules bundled, its policy exact, its size small, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from carried_models import LIVE
from PIL import Image

import saccade
from saccade.data.scenes.glyphs import load_pack
from saccade.errors import ConfigError
from saccade.predict import Predictor
from saccade.web.page import STATIC, bundle, offline_page


@pytest.fixture(scope="module")
def carried() -> list[Predictor]:
    return [saccade.load(name, "cpu") for name in LIVE]


@pytest.fixture(scope="module")
def page(carried: list[Predictor]) -> str:
    return offline_page(carried)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="saccade-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "main.js"


def test_modules_come_after_what_they_import_and_once(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        main='import { twice } from "./twice.js";\nimport { one as single } from "./one.js";\n\ntwice(single);\n',
        twice='import { one } from "./one.js";\n\n/** Doc. */\nexport function twice(x) {\n  // why\n'
        "  return one + x;\n}\n",
        one="// The number.\n\nexport const one = 1;\n",
    )
    assert bundle(entry) == (
        '"use strict";\n'
        "const module0 = (() => {\nconst one = 1;\nreturn { one };\n})();\n"
        "const module1 = (() => {\nconst { one } = module0;\nfunction twice(x) {\nreturn one + x;\n}\n"
        "return { twice };\n})();\n"
        "const module2 = (() => {\nconst { twice } = module1;\nconst { one: single } = module0;\n"
        "twice(single);\nreturn {  };\n})();\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('import one from "./one.js";\n', "import one from"),
        ('import { one } from "one";\n', "import { one } from"),
        ("export default 3;\n", "export default 3;"),
        ('export { one } from "./one.js";\n', "export { one }"),
        ('const text = "</script>";\n', "</script"),
    ],
)
def test_what_cannot_be_bundled_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        bundle(write(tmp_path, main=text, one="export const one = 1;\n"))


UNSAFE = re.compile(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:")
"""What no module may contain: text that becomes markup or code, and addresses."""


def test_no_module_makes_markup_or_code_of_text() -> None:
    texts = {path.name: path.read_text("utf-8") for path in (STATIC / "js").rglob("*.js")}
    assert len(texts) > 20  # or they were looked for in the wrong place
    assert not [name for name, text in texts.items() if UNSAFE.search(text)]


def test_the_page_with_its_models_is_small(page: str) -> None:
    assert len(page.encode()) <= 600_000


def test_the_policy_names_exactly_this_style_and_this_script(page: str) -> None:
    said = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    script = re.search(r'<script id="saccade-script">(.*?)</script>', page, re.DOTALL)
    assert said
    assert style
    assert script
    rules = dict(rule.split(" ", 1) for rule in said[1].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == digest(style[1])
    assert rules["script-src"] == digest(script[1])
    assert rules["worker-src"] == "blob:"
    assert said[0] in data_of(page)["document"]


def test_the_page_loads_nothing(page: str) -> None:
    assert not re.search(r"https?://", page)
    assert not re.search(r"<(link|iframe|object|img)\b", page)
    assert not re.search(r"\son\w+=", page.split('<script type="application/json"')[0])


def test_the_page_carries_its_models(page: str, carried: list[Predictor]) -> None:
    data = data_of(page)
    assert [model["model"] for model in data["weights"]] == list(LIVE)
    assert [model["sha256"] for model in data["weights"]] == [predictor.facts.sha256 for predictor in carried]
    assert "onmessage" in data["worker"]


def test_a_page_without_models_is_a_viewer_that_carries_views() -> None:
    hostile = {"schema": "saccade.view/1", "model": "</script><script>alert(1)</script>"}
    page = offline_page(views=[hostile])
    data = data_of(page)
    assert data["views"] == [hostile]
    assert data["weights"] == []
    assert data["worker"] is None
    assert page.count("</script>") == 2
    assert len(page.encode()) < 150_000


def test_the_sheet_holds_the_first_digits_of_the_pack() -> None:
    sheet = np.array(Image.open(STATIC / "glyphs.png"))
    pack = load_pack()
    assert sheet.shape == (10 * 28, 8 * 28)
    for digit in range(10):
        row = sheet[28 * digit : 28 * digit + 28].reshape(28, 8, 28).swapaxes(0, 1)
        assert (row == pack.images[pack.labels == digit][:8].numpy()).all()
