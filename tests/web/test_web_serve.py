"""``saccade serve``: which addresses it takes, what it says, and what is missing without the extra."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app
from saccade.errors import CheckpointError, ConfigError, MissingExtraError, OutputError
from saccade.web import serve as serving


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.9"])
def test_the_loopback_needs_no_leave(host: str) -> None:
    serving.check_host(host, allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "lab-machine", ""])
def test_any_other_address_does(host: str) -> None:
    with pytest.raises(ConfigError, match="allow_remote"):
        serving.check_host(host, allow_remote=False)
    serving.check_host(host, allow_remote=True)


def test_a_missing_extra_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(MissingExtraError, match=r"uvicorn is not installed: pip install 'saccade-attention\[web\]'"):
        saccade.serve()


def test_views_need_no_extra() -> None:
    code = "import saccade.web.views, saccade.web.serve, sys; print('fastapi' in sys.modules, 'uvicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"cannot listen on 127.0.0.1 port {port}"):
            serving.listening("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_told() -> None:
    with pytest.raises(OutputError, match="cannot listen on no-such-host"):
        serving.listening("no-such-host.invalid", 0)


def test_wrong_wishes_end_in_one_line() -> None:
    remote = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0"])
    assert remote.exit_code == 2
    assert "error: host 0.0.0.0" in remote.output
    assert CliRunner().invoke(app, ["serve", "--port", "70000"]).exit_code == 2


def test_models_are_checked_before_anything_is_served(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from saccade.families import families
    from saccade.web.service import Service
    from saccade.zoo import shipped
    from tiny_models import save_tiny

    with pytest.raises(CheckpointError, match="no model 'sfot-mref'"):
        Service(["sfot-mref"])
    one, other = save_tiny(tmp_path / "a", name="twin"), save_tiny(tmp_path / "b", name="twin")
    with pytest.raises(ConfigError, match="two models are called 'twin'"):
        Service([one, other])
    served = [entry.name for entry in Service().models.entries()]
    featured = [name for family in families().values() for name in family.featured]
    assert served[: len(featured)] == featured  # what families feature comes first
    assert served[len(featured) :] == sorted(set(shipped()) - set(featured))


def test_the_command_serves_until_it_is_ended(tiny_folder: Path) -> None:
    pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "saccade", "serve", str(tiny_folder / "words"), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            # its socket listens by now: a request waits there until the server takes it
            with urllib.request.urlopen(f"{address}api/models", timeout=60) as reply:
                assert b'"words"' in reply.read()
        finally:
            process.terminate()
            process.wait(60)
