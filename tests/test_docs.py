"""The documents keep to what the code does and what was recorded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_tables_are_current():
    done = subprocess.run([sys.executable, ROOT / "tools" / "tables.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_python_block_runs(tmp_path, monkeypatch, capsys):
    """The block of the README, word for word, on a generated scene."""
    from saccade.data.attributes import AttributeData, AttributeDataConfig
    from saccade.data.export import write_scenes

    monkeypatch.chdir(tmp_path)
    config = AttributeDataConfig(name="mref", glyphs="pack")
    write_scenes(config, "test", 1, tmp_path / "scenes")
    next((tmp_path / "scenes").glob("**/*.png")).rename(tmp_path / "scene.png")
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[0].split()
    assert printed[0] in AttributeData(config, "test").answers
    assert 0 <= float(printed[1]) <= 1
    assert any((tmp_path / "out").glob("*.png"))


def test_the_guide_scores_a_method_of_ones_own(capsys):
    """The block of the guide on four scenes instead of a hundred: gradients mark the digit better than an even map."""
    text = (ROOT / "docs" / "guide.md").read_text().partition("### Score a method of your own")[2]
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    assert block.count("one_per_scene(100)") == 1
    exec(compile(block.replace("one_per_scene(100)", "one_per_scene(4)"), "guide.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    marked, _, even, _, followed = (float(re.search(r"([\d.]+)(?: \(|, n )", line)[1]) for line in printed)
    assert marked > 5 * even
    assert 0 <= followed <= 1


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "TESTING.md", "docs/guide.md", "docs/papers.md", "docs/results.md"]
)
def test_links_and_named_files_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"
    for named in re.findall(r"`((?:attention|models|backbones|data|metrics|tasks)/[\w/]+\.py)`", text):
        assert (ROOT / "src" / "saccade" / named).exists(), f"{page} names {named}"
