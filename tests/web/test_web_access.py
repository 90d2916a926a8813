"""A server that other machines reach wants its token; there is no way to go without."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_server import LiveServer, serving

from saccade.commands.serve import serve
from saccade.web import guard

TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def remote(tiny_folder: Path) -> Iterator[LiveServer]:
    with serving(tiny_folder / "words", names=("", "lab-machine"), token=TOKEN) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/api/models", "/viewer.html", "/api/nothing", "/js/app.js"])
def test_without_the_token_nothing_is_answered(remote: LiveServer, path: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": "Basic " + TOKEN},
    ):
        reply = remote.get(path, **headers)
        assert (reply.status, reply.code) == (401, "token_wanted")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert remote.get(f"{path}?token=wrong").status == 401
    assert remote.get(path, Cookie=f"saccade_{remote.port}=wrong").status == 401


def test_a_script_sends_it_as_a_header(remote: LiveServer) -> None:
    assert remote.get("/api/models", Authorization=f"Bearer {TOKEN}").status == 200
    assert remote.get("/api/models", Authorization=f"bearer  {TOKEN}").status == 200


def test_a_browser_opens_the_address_once_and_keeps_a_cookie(remote: LiveServer) -> None:
    reply = remote.get(f"/?model=words&token={TOKEN}")
    assert reply.status == 303
    assert reply.headers["location"] == "/?model=words"
    cookie = reply.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()
    kept = cookie.partition(";")[0]
    assert remote.get("/", Cookie=kept).status == 200
    assert remote.get("/api/models", Cookie=f"other=1; {kept}").status == 200


def test_the_address_leads_to_no_other_site(remote: LiveServer) -> None:
    for path in ("//evil.example/", "/\\evil.example", "/%5cevil.example", "/%2fevil.example"):
        reply = remote.get(f"{path}?token={TOKEN}")
        assert reply.status == 303
        assert re.match(r"^/[^/\\]", reply.headers["location"])


def test_it_is_wanted_in_an_address_of_a_page_only(remote: LiveServer) -> None:
    assert remote.post(f"/api/ask?token={TOKEN}", {}).status == 401


def test_other_sites_are_refused_token_or_not(remote: LiveServer) -> None:
    sent = {"Authorization": f"Bearer {TOKEN}"}
    assert remote.get("/api/models", Host="evil.example", **sent).code == "wrong_host"
    assert remote.get("/api/models", Origin="http://evil.example", **sent).code == "wrong_origin"


def test_addresses_and_own_names_are_let_in_and_no_other_name(remote: LiveServer) -> None:
    for host, status in {"192.168.1.7:80": 200, "lab-machine": 200, "[fe80::1]": 200, "evil.example": 421}.items():
        assert remote.get("/api/models", Host=host, Authorization=f"Bearer {TOKEN}").status == status


def test_it_is_compared_in_constant_time(remote: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, original = [], hmac.compare_digest
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda *both: (compared.append(both), original(*both))[1])
    assert remote.get("/api/models", Authorization="Bearer wrong").status == 401
    assert (b"wrong", TOKEN.encode()) in compared
    monkeypatch.setattr(guard.hmac, "compare_digest", lambda *both: True)
    assert remote.get("/api/models", Authorization="Bearer wrong").status == 200  # nothing else compares


def test_another_address_gets_a_token_and_the_loopback_none(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apps, announced = [], []
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: apps.append(server.config.app))
    for host in ("127.0.0.1", "0.0.0.0"):
        serve([tiny_folder / "words"], host=host, port=0, allow_remote=True, log=False, announce=announced.append)
    assert [each._token is not None for each in apps] == [False, True]
    assert "token" not in announced[0]
    assert re.search(r"/\?token=[\w-]{43}$", announced[1])
