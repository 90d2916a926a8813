"""Whether the hub of models can be reached: said once, without trying again."""

from __future__ import annotations

import socket
import threading

import pytest

from saccade.backbones import hub


class Connection:
    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HTTPS_PROXY", "https_proxy", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_a_hub_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        assert hub.why_no_hub() is None


def test_a_hub_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    assert (hub.why_no_hub() or "").startswith("127.0.0.1 cannot be reached (")


def test_a_name_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(hub, "_PATIENCE", 0.01)
    monkeypatch.setattr(socket, "create_connection", lambda *args, **kwargs: release.wait(60) and Connection())
    assert hub.why_no_hub() == "huggingface.co cannot be reached (no answer)"
    release.set()


def test_offline_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *args, **kwargs: pytest.fail("asked"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "")  # so that it is undone
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "")
    assert not hub.is_offline()
    hub.work_offline()
    assert hub.why_no_hub() == "fetching is off (by `offline` or HF_HUB_OFFLINE)"
