"""Commands as a user types them, in a folder and with a cache of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from saccade.commands.door import app

SMALL_HEAD = (
    *("--backbone", "compact", "--set", "model.config.through=layer2", "--set", "model.config.pretrained=false"),
    *("--set", "data.size=[32,32]", "--steps", "60", "--batch-size", "16"),
    *("--set", "phases.0.select=null", "--set", "phases.0.restore_best=false", "--set", "phases.0.patience=null"),
)
"""What makes ``saccade train attributes-head`` a matter of seconds; val has too few pictures to choose by."""


def settle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in ``folder``, and keep what is cached there too."""
    monkeypatch.setenv("SACCADE_HOME", str(folder / "cache"))
    monkeypatch.chdir(folder)
    return folder


def saccade(*words: str) -> str:
    """What a command prints; it must end well."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def remarks(*words: str) -> str:
    """What a command prints on both streams, in one line."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())
