"""``saccade serve``: which addresses it takes, what it says, and what is missing without the extra."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import saccade
from saccade.commands.serve import _listening, _reach
from saccade.errors import ConfigError, MissingExtraError, OutputError


@pytest.mark.parametrize(
    ("host", "is_remote"),
    [
        *((host, False) for host in ("127.0.0.1", "localhost", "::1", "127.0.0.9")),
        *((host, True) for host in ("0.0.0.0", "::", "192.168.1.7", "lab-machine", "")),
    ],
)
def test_any_address_but_the_loopback_needs_leave(host: str, is_remote: bool) -> None:
    assert _reach(host)[0] == is_remote
    if is_remote:
        with pytest.raises(ConfigError, match="allow_remote"):
            saccade.serve(host=host)


def test_a_missing_extra_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"uvicorn is not installed: pip install 'saccade-attention\[web\]'"):
        saccade.serve()


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"cannot listen on 127.0.0.1 port {port}"):
            _listening("127.0.0.1", port)


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
